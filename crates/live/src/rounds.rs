//! How often the kernel walks through its whole table of connections. That takes a millisecond of a processor
//! on a host with a table of 262,144 slots, however few of them are in use, and a request that comes then
//! waits. A socket that is known costs microseconds to ask for, and whether there are new ones the kernel
//! counts.

use crate::sample::{Sample, State};
use crate::{Diag, LiveError, Spare, processor_time};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// Counters of connections, of the network namespace of who opens it.
const COUNTERS: &str = "/proc/thread-self/net/snmp";
/// What is not counted, such as handshakes that somebody else began, is looked for at least so often.
const AT_LEAST: Duration = Duration::from_millis(500);
/// Listeners that nobody waits at are asked for at least so often: theirs is a table, too, of 16,384 slots.
const LISTENERS: Duration = Duration::from_millis(50);

/// Asks for all sockets, as cheaply as that can be had.
#[derive(Debug)]
pub struct Rounds {
    diag: Diag,
    /// Where connections that opened are counted; None: this kernel does not say.
    counters: Option<File>,
    buffer: Vec<u8>,
    /// That count before the last walk.
    opened: Option<u64>,
    /// A walk takes at most this part of the time: one in so many; half of that where no processor has time to spare.
    part: u32,
    spare: Spare,
    walked: Option<Instant>,
    /// What the last walk took of a processor, and what each socket takes that is asked for by itself.
    walk: Duration,
    each: Duration,
    known: Vec<Sample>,
    /// When listeners were listed.
    listened: Option<Instant>,
}

impl Rounds {
    /// Of this thread's network namespace; walks take at most one part of the time of a processor in `part`.
    pub fn open(part: u32) -> Result<Rounds, LiveError> {
        Ok(Rounds {
            diag: Diag::open()?,
            counters: File::open(COUNTERS).ok(),
            buffer: vec![0; 8 << 10],
            opened: None,
            part,
            spare: Spare::default(),
            walked: None,
            walk: Duration::ZERO,
            each: Duration::from_micros(5),
            known: Vec::new(),
            listened: None,
        })
    }

    /// Whether no processor has time to spare.
    pub fn disturbs(&mut self) -> bool {
        self.spare.has_none()
    }

    /// Listeners are listed in the next round, however soon that comes.
    pub fn want_listeners(&mut self) {
        self.listened = None;
    }

    /// Takes the sockets of the round before, and leaves those of now. Gives what part of its processor time
    /// is rationed already.
    pub fn look(&mut self, sockets: &mut Vec<Sample>) -> Result<Duration, LiveError> {
        let opened = self.opened();
        let connections = sockets.iter().filter(|s| s.state != State::Listen).count();
        let single = self.each * u32::try_from(connections).unwrap_or(u32::MAX);
        let is_new = opened.is_none() || opened != self.opened;
        let part = if self.disturbs() { self.part * 2 } else { self.part };
        let due = |at: Instant| {
            let age = at.elapsed();
            age >= self.walk * part && (is_new || age >= AT_LEAST || has_handshakes(sockets))
        };
        if single < self.walk && !self.walked.is_none_or(due) && self.ask_each(sockets).is_ok() {
            return Ok(Duration::ZERO);
        }
        let began = processor_time();
        self.diag.sockets(sockets)?;
        self.walk = processor_time() - began;
        (self.opened, self.walked) = (opened, Some(Instant::now()));
        self.listened = self.walked;
        Ok(if single < self.walk { self.walk } else { Duration::ZERO })
    }

    /// Listeners, and what is known.
    fn ask_each(&mut self, sockets: &mut Vec<Sample>) -> Result<(), LiveError> {
        let began = processor_time();
        std::mem::swap(sockets, &mut self.known);
        let is_busy = |s: &Sample| s.state == State::Listen && s.rqueue > 0;
        if self.listened.is_none_or(|at| at.elapsed() >= LISTENERS) || self.known.iter().any(is_busy) {
            self.diag.listeners(sockets)?;
            self.listened = Some(Instant::now());
        } else {
            sockets.clear();
            sockets.extend(self.known.iter().filter(|s| s.state == State::Listen).cloned());
        }
        let listeners = sockets.len();
        self.diag.again(self.known.iter().filter(|s| s.state != State::Listen), sockets)?;
        let asked = sockets.len() - listeners;
        // Closed since, it lies in wait for late packets under the same name.
        sockets.retain(|s| s.state != State::TimeWait);
        if asked > 0 {
            self.each = (processor_time() - began) / u32::try_from(asked).unwrap_or(u32::MAX);
        }
        Ok(())
    }

    /// How many connections were opened, from here or from elsewhere.
    fn opened(&mut self) -> Option<u64> {
        let n = self.counters.as_ref()?.read_at(&mut self.buffer, 0).ok()?;
        opens(std::str::from_utf8(self.buffer.get(..n)?).ok()?)
    }
}

/// What the count of opened connections does not show: handshakes that are under way, or that a full queue
/// keeps from ending.
fn has_handshakes(sockets: &[Sample]) -> bool {
    sockets.iter().any(|s| s.state == State::SynReceived || (s.state == State::Listen && s.rqueue > s.wqueue))
}

/// `ActiveOpens` and `PassiveOpens` of `/proc/net/snmp`.
fn opens(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|l| l.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let both = names.split(' ').zip(values.split(' ')).filter(|(name, _)| name.ends_with("Opens"));
    both.map(|(_, value)| value.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn opened_connections_are_counted() {
        let text = "Udp: A\nUdp: 1\nTcp: Min ActiveOpens PassiveOpens EstabResets\nTcp: -1 20 300 4000\n";
        assert_eq!(opens(text), Some(320));
        for damaged in ["", "Tcp: ActiveOpens\n", "Tcp: ActiveOpens\nTcp: x\n"] {
            assert_eq!(opens(damaged), None, "{damaged}");
        }
        assert!(Rounds::open(50).unwrap().opened().is_some());
    }

    /// Whichever way it is asked for.
    #[test]
    fn new_sockets_are_seen_and_old_ones_followed() {
        let mut rounds = Rounds::open(1).unwrap();
        let mut sockets = Vec::new();
        rounds.look(&mut sockets).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let of = |sockets: &[Sample]| sockets.iter().filter(|s| s.peer.port == port).count();
        let mut until = |wanted: usize| {
            let end = Instant::now() + Duration::from_secs(60);
            while of(&sockets) != wanted && Instant::now() < end {
                rounds.look(&mut sockets).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            assert_eq!(of(&sockets), wanted);
        };
        until(1);
        // Long before the next walk has to come.
        until(1);
        drop((client, listener));
        until(0);
    }
}
