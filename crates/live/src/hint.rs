//! Is anything the matter that single writes and reads would tell more of? Programs that run for each of them
//! cost a request a part of a microsecond, and need not run where nothing waits.

use crate::judge::JIFFY;
use crate::sample::{Info, Sample};

/// Two samples of one socket, one after the other, show a writer or a reader that waits, or a loss.
pub(crate) fn is_worth_listening(before: &Sample, now: &Sample) -> bool {
    let (Some(then), Some(info)) = (&before.info, &now.info) else { return false };
    let waits = then.notsent > 0 && info.notsent > 0;
    waits || is_full(now) || is_unread(before, now, then, info) || is_lossy(then, info)
}

/// A writer that finds no room is told of some when a third is free (`sk_stream_write_space`).
fn is_full(s: &Sample) -> bool {
    s.wqueue > 0 && s.memory.is_some_and(|m| u64::from(m.wmem_queued) * 3 >= u64::from(m.sndbuf) * 2)
}

/// Something lay there all the time, or came more than a jiffy ago.
fn is_unread(before: &Sample, now: &Sample, then: &Info, info: &Info) -> bool {
    let read = |s: &Sample, i: &Info| i.bytes_received.wrapping_sub(s.rqueue.into());
    let stays = before.rqueue > 0 && read(before, then) == read(now, info);
    now.rqueue > 0 && (stays || info.last_data_recv >= JIFFY)
}

fn is_lossy(then: &Info, info: &Info) -> bool {
    info.total_retrans > then.total_retrans || info.ca_state >= 3 || info.retransmits > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Memory;
    use tcpwhy_base::Nanos;

    fn sample(change: impl FnOnce(&mut Sample, &mut Info)) -> Sample {
        let mut info = Info { snd_mss: 1448, cwnd: 10, bytes_received: 100, ..Info::default() };
        let mut s = Sample {
            memory: Some(Memory { sndbuf: 30_000, ..Memory::default() }),
            ..Sample::open(40_000, 80)
        };
        change(&mut s, &mut info);
        s.info = Some(info);
        s
    }

    #[test]
    fn only_what_waits_is_worth_listening_to() {
        let quiet = sample(|_, _| ());
        let asked = sample(|s, i| (s.rqueue, i.bytes_received) = (50, 150));
        let again = sample(|s, i| (s.rqueue, i.bytes_received) = (50, 250));
        let old = sample(|s, i| (s.rqueue, i.last_data_recv) = (50, Nanos::millis(12)));
        let unsent = sample(|s, i| (s.wqueue, i.notsent, i.unacked) = (400, 200, 1));
        let sent = sample(|s, i| (s.wqueue, i.unacked) = (400, 1));
        let full = sample(|s, _| {
            s.wqueue = 9000;
            s.memory = Some(Memory { sndbuf: 30_000, wmem_queued: 20_000, ..Memory::default() });
        });
        let lost = sample(|_, i| i.total_retrans = 1);
        for (before, now, worth) in [
            (&quiet, &quiet, false),
            (&quiet, &asked, false),
            // Another request each time: it is read.
            (&asked, &again, false),
            (&asked, &asked, true),
            (&quiet, &old, true),
            (&quiet, &unsent, false),
            (&unsent, &unsent, true),
            (&sent, &sent, false),
            (&quiet, &full, true),
            (&quiet, &lost, true),
            (&lost, &lost, false),
        ] {
            assert_eq!(is_worth_listening(before, now), worth, "{before:?} {now:?}");
        }
    }
}
