use crate::Nanos;

/// One step of a message, as an application makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One call of `write` with so many bytes.
    Write(u64),
    /// The application does something else for so long.
    Pause(Nanos),
}

/// One request and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// What the client does before it writes.
    pub before: Nanos,
    /// The client's message; empty: the server speaks first.
    pub request: Vec<Step>,
    /// The server's work between the request's last byte and the answer's first.
    pub think: Nanos,
    /// The server's message; empty: the transfer is one-way.
    pub response: Vec<Step>,
}

impl Turn {
    /// Bytes of a message.
    pub fn bytes(message: &[Step]) -> u64 {
        message.iter().fold(0, |sum, step| match step {
            Step::Write(n) => sum.saturating_add(*n),
            Step::Pause(_) => sum,
        })
    }
}

/// What the applications do, with TCP taken away: sizes, write boundaries, think times, order. Extracted from a
/// capture, replayed by the model or the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The turns, in order; where there are more requests than turns, they start again from `repeat_from`.
    pub turns: Vec<Turn>,
    /// Turns before this one open each connection and are not repeated.
    pub repeat_from: usize,
    /// The first so many turns are a TLS handshake.
    pub tls: usize,
    /// The request on a connection that is open already, where an opening turn stands for the first one (the Finished
    /// of TLS 1.3 leaves with it).
    pub kept: Option<Turn>,
    /// Requests altogether, opening turns not counted.
    pub requests: u32,
    /// A new connection for every so many requests; 0: one for all.
    pub reconnect_every: u32,
    /// The client writes all requests of a connection before it reads the first answer.
    pub pipeline: bool,
    /// The server closes right after its last answer, which sends what Nagle's algorithm holds.
    pub server_closes: bool,
}

impl Workload {
    /// One request after the other on one connection.
    pub fn serial(turn: Turn, requests: u32) -> Workload {
        Workload { turns: vec![turn], requests, ..Workload::default() }
    }

    /// The nth turn of a connection, opening turns included.
    pub fn turn(&self, n: usize) -> Option<&Turn> {
        let fixed = self.repeat_from.min(self.turns.len());
        if n < fixed {
            return self.turns.get(n);
        }
        let cycle = self.turns.len() - fixed;
        if cycle == 0 { None } else { self.turns.get(fixed + (n - fixed) % cycle) }
    }

    /// Bytes that one connection carries up and down, its opening turns included.
    pub fn totals(&self) -> [u64; 2] {
        let fixed = self.repeat_from.min(self.turns.len());
        let (opening, cycle) = self.turns.split_at(fixed);
        let requests = u64::from(self.requests_each());
        let sum = |pick: fn(&Turn) -> u64| {
            let first = opening.iter().fold(0_u64, |sum, turn| sum.saturating_add(pick(turn)));
            cycle.iter().zip(0..).fold(first, |sum, (turn, n)| {
                // How often this one is among so many requests.
                let often = (requests + cycle.len() as u64 - 1 - n) / cycle.len() as u64;
                sum.saturating_add(pick(turn).saturating_mul(often))
            })
        };
        [sum(|t| Turn::bytes(&t.request)), sum(|t| Turn::bytes(&t.response))]
    }

    /// Requests of one connection, opening turns not counted.
    pub fn requests_each(&self) -> u32 {
        if self.reconnect_every == 0 { self.requests } else { self.reconnect_every.min(self.requests) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_repeat_after_the_opening() {
        let turn = |n| Turn { request: vec![Step::Write(n)], ..Turn::default() };
        let w = Workload {
            turns: vec![turn(1), turn(2), turn(3)],
            repeat_from: 1,
            requests: 9,
            ..Workload::default()
        };
        let sizes: Vec<u64> = (0..6).filter_map(|n| w.turn(n)).map(|t| Turn::bytes(&t.request)).collect();
        assert_eq!(sizes, [1, 2, 3, 2, 3, 2]);
        assert_eq!(Workload::default().turn(0), None);
        // 1, then 2, 3, 2, 3, 2, 3, 2, 3, 2.
        assert_eq!((w.totals(), Workload { reconnect_every: 4, ..w }.totals()), ([23, 0], [11, 0]));
        assert_eq!(Workload::default().totals(), [0, 0]);
    }

    #[test]
    fn pauses_carry_no_bytes_and_sums_saturate() {
        assert_eq!(Turn::bytes(&[Step::Write(4), Step::Pause(Nanos::secs(1)), Step::Write(6)]), 10);
        assert_eq!(Turn::bytes(&[Step::Write(u64::MAX), Step::Write(6)]), u64::MAX);
    }
}
