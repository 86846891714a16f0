//! The second pass over a file: the packets of one exchange, for its time line.

use crate::input::Input;
use tcpwhy_analysis::{Connection, Exchange};
use tcpwhy_base::{Nanos, Segment, Seq};
use tcpwhy_capture::{Dissector, Verdict};
use tcpwhy_report::text::Packet;

/// More are neither read by anybody nor kept.
const MOST: usize = 100_000;

/// The packets of `x`; or the sentence that says why there are none.
pub(crate) fn of_exchange(
    inputs: &[Input],
    frames_before: &[u64],
    c: &Connection,
    x: &Exchange,
) -> Result<Vec<Packet>, String> {
    if inputs.iter().any(Input::is_stdin) {
        return Err(
            "The packets beside the spans need a second look at the capture: save standard input to a file \
                    and explain that."
                .into(),
        );
    }
    let mut found = Found { packets: Vec::new(), base: [None; 2], latest: c.start };
    let mut dissector = Dissector::new();
    let mut segment = Segment::EMPTY;
    for (input, &before) in inputs.iter().zip(frames_before) {
        if before >= c.frames.1 {
            break;
        }
        let mut reader = input.open()?;
        // A damaged end was reported when it was read first.
        while let Ok(Some(frame)) = reader.next() {
            let number = before + frame.number;
            if number > c.frames.1 || found.packets.len() == MOST {
                break;
            }
            let verdict = dissector.dissect(&frame, 0, &mut segment);
            if number >= c.frames.0 && verdict == Verdict::Tcp {
                found.take(&segment, c, x);
            }
        }
    }
    Ok(found.packets)
}

struct Found {
    packets: Vec<Packet>,
    /// The sequence number from which each end is counted.
    base: [Option<Seq>; 2],
    latest: Nanos,
}

impl Found {
    fn take(&mut self, s: &Segment, c: &Connection, x: &Exchange) {
        let from = match (s.src, s.dst) {
            ends if ends == (c.client, c.server) => 0,
            ends if ends == (c.server, c.client) => 1,
            _ => return,
        };
        // As Wireshark counts: a SYN is 0, the first byte 1.
        let first = if s.flags.syn() { s.seq } else { s.seq - 1 };
        let base = *self.base[from].get_or_insert(first);
        let peer = s.flags.ack().then(|| *self.base[1 - from].get_or_insert(s.ack - 1));
        self.latest = self.latest.max(s.time);
        if self.latest < x.start || self.latest > x.end {
            return;
        }
        let scaled = c.ends[0].wscale.is_some() && c.ends[1].wscale.is_some() && !s.flags.syn();
        let shift = if scaled { c.ends[from].wscale.unwrap_or(0).min(14) } else { 0 };
        self.packets.push(Packet {
            frame: s.frame,
            time: self.latest,
            from_client: from == 0,
            flags: s.flags,
            seq: s.seq.minus(base) as u32,
            ack: peer.map(|p| s.ack.minus(p) as u32),
            len: s.len,
            window: u64::from(s.window) << shift,
        });
    }
}
