//! What a router says of a segment that was too large (rule 89).

use crate::wire::{SERVER, Tap, Wire, alike_at_rest, ms};
use tcpwhy_analysis::{Connection, Span};
use tcpwhy_base::{Cause, Nanos, Observation, TooBig};

const MSS: u32 = 1448;

fn opened() -> Wire {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    w.after(ms(20));
    w
}

/// The connection, and the frame of the router's word about the server's byte `offset` at this time.
fn told(w: &Wire, at: Nanos, offset: u32, mtu: u32) -> (Connection, u64) {
    let mut segments = w.segments();
    let at = segments[0].time - ms(10) + at;
    let frame = segments.iter().filter(|s| s.time <= at).count() as u64 + 1;
    segments.iter_mut().filter(|s| s.time > at).for_each(|s| s.frame += 1);
    let [dst, src] = [w.host[0].end, w.host[SERVER].end];
    let told = TooBig { time: at, frame, src, dst, link: 0, seq: w.host[SERVER].isn + 1 + offset, mtu };
    let mut analysis = alike_at_rest(|analyzer| {
        for segment in &segments {
            if segment.frame == frame + 1 {
                analyzer.observe(Observation::TooBig(&told));
            }
            analyzer.observe(Observation::Segment(segment));
        }
    });
    (*analysis.connections.remove(0), frame)
}

fn of(c: &Connection, cause: Cause) -> Vec<&Span> {
    c.exchanges.iter().flat_map(|x| &x.spans).filter(|s| s.cause == cause).collect()
}

/// A tunnel of PPPoE takes eight bytes: the repeats are smaller by less than options can take, and no rule
/// but the router's word tells them from plain ones (rule 59).
fn obeyed(flight: u32) -> Wire {
    let mut w = opened();
    let piece = MSS - 8;
    (0..flight).for_each(|_| _ = w.server().data(MSS).lost());
    w.after(ms(3));
    (0..flight).for_each(|n| _ = w.server().repeat(n * piece, piece));
    w.server().repeat(flight * piece, flight * 8);
    w.after(ms(10)).client().ack();
    w.after(ms(10)).server().data(100);
    w
}

#[test]
fn who_obeys_sends_again_at_once() {
    let w = obeyed(4);
    let (c, frame) = told(&w, ms(41), 0, 1492);
    let spans = of(&c, Cause::PathMtu);
    assert!(!spans.is_empty(), "{:?}", c.budget);
    assert!(spans[0].confidence > 0.96, "{}", spans[0].confidence);
    assert!(spans[0].frames.keys().any(|f| f == frame), "{:?}", spans[0].frames);
    let said = spans[0].facts.sentence();
    assert!(said.contains("larger than 1492 bytes") && said.contains("ICMP"), "{said}");
    assert_eq!(c.budget.get(Cause::FastRecovery), Nanos::ZERO);
    // It costs what the word and the repeat took on top of the trip that the first copies would have taken
    // anyway (rule 14), and no window.
    assert_eq!(c.budget.get(Cause::PathMtu).0 / 100_000, 30, "{:?}", c.budget);
    assert_eq!(c.budget.get(Cause::CongestionWindow), Nanos::ZERO);
    // What it sends from now on is full at the size that goes on: no small segment is held behind it.
    assert!(of(&w.connection(), Cause::PathMtu).is_empty());
}

/// The kernel heeds no word about what is not in flight, which others may have made up.
#[test]
fn a_word_about_what_is_not_in_flight_says_nothing() {
    let sure = |offset: u32| of(&told(&obeyed(4), ms(41), offset, 1492).0, Cause::PathMtu).len();
    assert!(sure(0) > 0 && sure(3 * MSS) > 0 && sure(4 * MSS - 1) > 0);
    assert_eq!([sure(4 * MSS), sure(0_u32.wrapping_sub(1))], [0, 0]);
}

/// The word passed the tap, and its host did not heed it: the timer repeats the full segment. One timeout
/// says nothing, with the word it does.
#[test]
fn who_does_not_obey_waits_for_timers() {
    let mut w = opened();
    (0..3).for_each(|_| _ = w.server().data(MSS).lost());
    w.after(ms(230)).server().repeat(0, MSS).lost();
    w.after(ms(460)).server().repeat(0, 1000);
    w.after(ms(20)).client().ack();
    w.server().repeat(1000, 1000);
    w.server().repeat(2000, 1000);
    w.server().repeat(3000, 3 * MSS - 3000);
    w.after(ms(20)).client().ack();
    for mtu in [1400, 0] {
        let (c, _) = told(&w, ms(41), 0, mtu);
        assert_eq!(c.budget.get(Cause::RetransmissionTimeout), Nanos::ZERO, "{:?}", c.budget);
        assert!(c.budget.get(Cause::PathMtu) > ms(650), "{:?}", c.budget);
        let said = of(&c, Cause::PathMtu)[0].facts.sentence();
        assert_eq!(said.contains("larger than 1400 bytes"), mtu > 0, "{said}");
    }
}

/// A word that comes while a repeat is under way is about that one, and so about the first.
#[test]
fn a_word_about_a_repeat_tells_what_the_first_was() {
    let mut w = opened();
    w.server().data(MSS).lost();
    w.after(ms(230)).server().repeat(0, MSS).lost();
    w.after(ms(3)).server().repeat(0, MSS - 8);
    w.server().repeat(MSS - 8, 8);
    w.after(ms(20)).client().ack();
    w.server().data(100);
    let (c, _) = told(&w, ms(41 + 230), 0, 1492);
    let by_timer =
        |c: &Connection| c.budget.get(Cause::RetransmissionTimeout) + c.budget.get(Cause::TailLossProbe);
    assert_eq!(by_timer(&c), Nanos::ZERO, "{:?}", c.budget);
    assert!(c.budget.get(Cause::PathMtu) > ms(200), "{:?}", c.budget);
    assert!(by_timer(&w.connection()) > ms(200));
}
