//! What released a segment, as the kernel of its sender tells: where that was watched, packets are asked only
//! for what it does not say.

use crate::profile::delayed_from;
use crate::release::acked::is_held_until;
use crate::release::value::{Pause, Release, Wait};
use crate::release::window::{flight_until, late_us};
use crate::track::{Arrival, Passage, PathView, Repair};
use tcpwhy_base::{Nanos, Source, Timer, Witness};

/// Between a call or a timer and the packet that it sends: a busy host takes up to a millisecond.
pub(crate) const AT_ONCE: Nanos = Nanos::millis(1);

/// The release, corrected by the witness. A witness is believed only beside its host: elsewhere its times are
/// not those of the tap.
pub(super) fn witnessed(p: &Passage<'_>, inferred: Release, witness: &Witness) -> Release {
    if !is_beside(&p.path) {
        return inferred;
    }
    let told = match p.arrived.arrival {
        _ if p.since.speaker != p.sender => by_answer(p, &inferred, witness),
        Arrival::Retransmission => by_timer(p, &inferred, witness),
        _ if inferred.wait == Wait::Burst => None,
        _ => by_write(p, &inferred, witness),
    };
    told.unwrap_or(inferred)
}

/// The tap is beside the host that this is the path of: over loopback and within a rack every tap is beside
/// both, whichever end answers sooner.
pub(crate) fn is_beside(path: &PathView) -> bool {
    path.is_near() || path.own() <= AT_ONCE
}

fn by_kernel(release: Release) -> Release {
    Release { source: Source::Kernel, ..release }
}

/// The timer that sent it again.
fn by_timer(p: &Passage<'_>, inferred: &Release, witness: &Witness) -> Option<Release> {
    let (timer, at) = witness.timer?;
    let repair = match timer {
        Timer::Retransmission => Repair::Timeout,
        Timer::Probe => Repair::Probe,
        Timer::DelayedAck => return None,
    };
    if at > p.time || p.time - at > AT_ONCE {
        return None;
    }
    match inferred.wait {
        // Why each copy is lost no timer tells, nor when the first sign of a loss was.
        Wait::Loss { repair: seen, .. } if seen == repair || seen == Repair::BlackHole => {
            Some(by_kernel(*inferred))
        }
        _ => {
            let again = p.flow.recovery.is_some();
            Some(by_kernel(Release { wait: Wait::Loss { repair, again }, loss: None, ..*inferred }))
        }
    }
}

/// The write that it carries, or what that waited for.
fn by_write(p: &Passage<'_>, inferred: &Release, witness: &Witness) -> Option<Release> {
    if let Some((_, until)) = witness.room
        && until > p.since.time
        && p.time - until <= AT_ONCE
    {
        return Some(by_kernel(Release { wait: Wait::SendBuffer, ack: None, ..*inferred }));
    }
    let written = witness.written?;
    if p.time - written <= AT_ONCE && written > p.since.time {
        let outstanding = p.arrived.before.nxt.minus(p.flow.una).max(0) as u32;
        let wait = Wait::Pause(Pause { outstanding, ..Pause::default() });
        return Some(by_kernel(Release { wait, ack: None, ..*inferred }));
    }
    let late = Release { written: (written > p.since.time).then_some(written), ..*inferred };
    match inferred.wait {
        // It was there and left later: a limit of TCP's, which only Nagle's algorithm is known to be.
        Wait::Nagle { .. } if witness.nodelay != Some(true) => Some(by_kernel(late)),
        Wait::Pause(_) | Wait::CorkTimer { .. } => {
            let held = by_option(p, inferred, witness, p.since.time.max(written));
            held.map(|held| Release { written: late.written, ..held })
                .or_else(|| there(inferred, late.written))
        }
        // What else held it held nothing that had not been written; what that was, packets tell.
        Wait::Acked(_) | Wait::Window { .. } | Wait::Closed { .. } => late.written.map(|_| late),
        _ => None,
    }
}

/// It looks like a pause of a writer that had written before it began.
fn there(inferred: &Release, late: Option<Nanos>) -> Option<Release> {
    let Wait::Pause(pause) = inferred.wait else { return None };
    let wait = Wait::Pause(Pause { there: true, ..pause });
    late.is_none().then_some(Release { wait, ..*inferred })
}

/// The first segment of an answer: its application worked until it wrote. What held it from then on is known
/// of options alone.
fn by_answer(p: &Passage<'_>, inferred: &Release, witness: &Witness) -> Option<Release> {
    let written = witness.written.filter(|&w| w > p.since.time)?;
    let turn = matches!(inferred.wait, Wait::Turn { .. });
    if p.time - written <= AT_ONCE {
        return turn.then(|| by_kernel(Release { wait: Wait::ANSWER, ..*inferred }));
    }
    let held = match inferred.wait {
        Wait::Nagle { .. } if witness.nodelay != Some(true) => Some(by_kernel(*inferred)),
        Wait::Turn { .. } => by_option(p, inferred, witness, written),
        _ => None,
    }?;
    Some(Release { written: Some(written), ..held })
}

/// A partial segment was there at `from`, and was held until now by an option of its socket.
fn by_option(p: &Passage<'_>, inferred: &Release, witness: &Witness, from: Nanos) -> Option<Release> {
    if p.segment.len >= p.mss() || p.time - from <= AT_ONCE {
        return None;
    }
    if witness.corked == Some(true) {
        return Some(by_kernel(Release { wait: Wait::Cork { wait: p.time - from }, ack: None, ..*inferred }));
    }
    if witness.nodelay != Some(false) {
        return None;
    }
    let ack = p.acks.newest_first().take_while(|a| a.time > p.since.time).find(|a| is_held_until(p, a))?;
    let delay = ack.late_by(p.path.peer());
    let delayed = delay > delayed_from(p.path.rtt);
    let flight = flight_until(p, ack);
    let late_us = late_us(p, ack);
    let wait = Wait::Nagle { first: p.flow.last_len(), flight, delay, delayed, late_us, prompt: false };
    Some(by_kernel(Release { wait, ..*inferred }.with_ack(ack.frame())))
}
