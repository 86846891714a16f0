//! Answers that the server's kernel lets go, because their program holds them (rule 115).

use crate::wire::{Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::{Analysis, Finding};
use tcpwhy_base::{Cause, FixId, Nanos};

/// The causes of the last of eight answers of so many bytes, with their times: seven left after 224 to 236
/// ms, with ticks of 4 ms, the last after `late`.
fn last(late: Nanos, bytes: u32) -> Vec<(Cause, Nanos)> {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.timestamps = true;
    w.handshake();
    let mut tick = ms(400);
    for k in 0..8 {
        // Whenever the request comes, the timer ends with a tick.
        let work = if k < 7 { ms(224) + us(700 * i64::from(k)) } else { late };
        w.at(tick - work - ms(10)).client().data(100);
        w.at(tick - work + us(20)).server().ack();
        w.at(tick).server().data(bytes);
        w.after(ms(20)).client().ack();
        tick = tick + ms(280 + 4 * i64::from(k % 3)) + if k == 6 { late } else { Nanos::ZERO };
    }
    let c = w.connection();
    let spans = c.exchanges.last().map_or(&[][..], |x| &x.spans);
    spans.iter().map(|s| (s.cause, s.end - s.start)).collect()
}

/// One that took longer than the timer, or not as long, was worked on; what fills a segment no cork holds.
#[test]
fn only_what_was_as_late_as_the_timer_was_corked() {
    let largest = |late: Nanos, bytes: u32| last(late, bytes).into_iter().max_by_key(|s| s.1).unwrap().0;
    assert_eq!(largest(ms(228), 500), Cause::Cork);
    assert_eq!(largest(ms(5_000), 500), Cause::ServerThink);
    assert_eq!(largest(ms(260), 500), Cause::ServerThink);
    assert_eq!(largest(ms(195), 500), Cause::ServerThink);
    assert_eq!(largest(ms(228), 1_448), Cause::ServerThink);
}

/// A server that writes so many pieces of twelve segments and 100 bytes into a cork, one each second: the kernel
/// gives the end of each up with a tick, 224 to 228 ms after the rest of it was acknowledged.
fn pieces(tap: Tap, count: i64, lossy: Option<i64>) -> Analysis {
    let mut w = Wire::new(tap, ms(20));
    w.timestamps = true;
    w.handshake();
    w.at(ms(30)).client().data(100);
    for k in 0..count {
        let tick = ms(284 + 1_000 * k);
        let (piece, mss) = (12 * w.mss(), w.mss());
        let start = tick - ms(244) - us(300 * k);
        if lossy == Some(k) {
            w.at(start - ms(60)).server().write(piece);
            w.server().data(mss).lost();
            w.after(ms(10)).client().ack();
            let offset = w.host[1].nxt.minus(w.host[1].isn) as u32 - 1 - mss;
            w.at(start).server().repeat(offset, mss);
        } else {
            w.at(start).server().write(piece);
        }
        w.after(ms(10)).client().ack();
        w.at(tick).server().data(100);
        w.after(ms(20)).client().ack();
    }
    analyze(&w.segments())
}

fn finding(analysis: &Analysis, cause: Cause) -> Option<&Finding> {
    analysis.findings.iter().find(|f| f.cause == cause)
}

/// Who sleeps until the next piece is due, whatever the cork does meanwhile, pauses (rule 151).
#[test]
fn a_cork_within_a_pause_of_its_writer_held_up_nobody() {
    for tap in [Tap::Server, Tap::Client] {
        let analysis = pieces(tap, 14, None);
        let pause = finding(&analysis, Cause::SenderPause).expect("its pauses");
        assert_eq!(pause.occurrences, 13, "each of them one");
        assert!(pause.range.longest > ms(960), "{}", pause.range.longest);
        assert_eq!(pause.fixes[0].fix, FixId::Application);
        assert!(pause.fixes[0].how[0].contains("limit_rate"), "{}", pause.fixes[0].how[0]);
        // Behind the last one nothing was written: the answer waited for its end.
        assert_eq!(finding(&analysis, Cause::Cork).map(|f| f.occurrences), Some(1));
    }
}

/// Nor did one that began when a loss had been repaired.
#[test]
fn a_cork_behind_a_loss_held_up_nobody_either() {
    let analysis = pieces(Tap::Server, 14, Some(8));
    let lost = [Cause::TailLossProbe, Cause::RetransmissionTimeout, Cause::FastRecovery];
    assert!(lost.iter().any(|&c| finding(&analysis, c).is_some()));
    assert_eq!(finding(&analysis, Cause::Cork).map(|f| f.occurrences), Some(1));
}
