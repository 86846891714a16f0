//! What released a segment, as the kernel of its sender tells: where that was watched, packets are asked only for what it
//! does not say.

use crate::profile::delayed_from;
use crate::release::acked::is_held_until;
use crate::release::inferred::flight_until;
use crate::release::value::{Pause, Release, Wait};
use crate::track::{Arrival, Passage, Repair};
use tcpwhy_base::{Nanos, Source, Timer, Witness};

/// Between a call or a timer and the packet that it sends: a busy host takes up to a millisecond.
const AT_ONCE: Nanos = Nanos::millis(1);

/// The release, corrected by the witness. A witness is believed only beside its host: elsewhere its times are not those of
/// the tap.
pub(super) fn witnessed(p: &Passage<'_>, inferred: Release, witness: &Witness) -> Release {
    // Over loopback and within a rack every tap is beside both: which end answers sooner says nothing.
    let beside = p.path.is_near() || p.path.own() <= AT_ONCE;
    if !beside || p.since.speaker != p.sender {
        return inferred;
    }
    let told = match p.arrived.arrival {
        Arrival::Retransmission => by_timer(p, &inferred, witness),
        _ if inferred.wait == Wait::Burst => None,
        _ => by_write(p, &inferred, witness),
    };
    told.map_or(inferred, |release| Release { source: Source::Kernel, ..release })
}

/// The timer that sent it again.
fn by_timer(p: &Passage<'_>, inferred: &Release, witness: &Witness) -> Option<Release> {
    let (timer, at) = witness.timer?;
    let repair = match timer {
        Timer::Retransmission => Repair::Timeout,
        Timer::Probe => Repair::Probe,
    };
    let again = p.flow.recovery.is_some();
    let at_once = at <= p.time && p.time - at <= AT_ONCE;
    at_once.then_some(Release { wait: Wait::Loss { repair, again }, loss: None, ..*inferred })
}

/// The write that it carries, or what that waited for.
fn by_write(p: &Passage<'_>, inferred: &Release, witness: &Witness) -> Option<Release> {
    if let Some((_, until)) = witness.room
        && until > p.since.time
        && p.time - until <= AT_ONCE
    {
        return Some(Release { wait: Wait::SendBuffer, ack: None, ..*inferred });
    }
    let written = witness.written?;
    if p.time - written <= AT_ONCE && written > p.since.time {
        let outstanding = p.arrived.before.nxt.minus(p.flow.una).max(0) as u32;
        let wait = Wait::Pause(Pause { outstanding, flight: 0, full: false });
        return Some(Release { wait, ack: None, ..*inferred });
    }
    let written = (written > p.since.time).then_some(written);
    match inferred.wait {
        // It was there and left later: a limit of TCP's, which only Nagle's algorithm is known to be.
        Wait::Nagle { .. } if witness.nodelay != Some(true) => Some(Release { written, ..*inferred }),
        Wait::Pause(_) | Wait::CorkTimer { .. } if witness.nodelay == Some(false) => {
            let ack =
                p.acks.newest_first().take_while(|a| a.time > p.since.time).find(|a| is_held_until(p, a))?;
            let delay = ack.late_by(p.path.peer());
            let delayed = delay > delayed_from(p.path.rtt);
            let flight = flight_until(p, ack);
            let wait = Wait::Nagle { first: p.flow.last_len(), flight, delay, delayed, prompt: false };
            Some(Release { wait, written, ..*inferred }.with_ack(ack.frame()))
        }
        _ => None,
    }
}
