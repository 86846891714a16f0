//! Where microseconds decide which pattern a run falls into: all of them, and how often.

use crate::common::*;
use tcpwhy_base::{Cause, Nanos, Step};
use tcpwhy_model::{MAX_EVENTS, Question, Scenario, stories};

/// 60 blocks of 99,900 bytes over 100 Mbit/s, answered with one.
fn blocks() -> Scenario {
    serial(path(0.2, 100.0, 300_000, 1500), turn(&[99_900], 0.0, &[1]), 60)
}

/// The peer's window grows until a block and its tail fit (`tcp_rcv_space_adjust`, with a round trip in whole
/// ticks of the time stamps): no tail is cut at the window's edge, and none waits for a delayed ACK. In one
/// of the kernel's five runs the window stood where some tails were cut, for a while: 691 ms.
#[test]
fn blocks_that_just_fit_the_window_wait_for_no_delayed_ack() {
    near(total(&go(&blocks())), measured("60 blocks of 99,900 bytes"), 5.0, "all of them");
    let longest = latencies(&go(&blocks())).into_iter().fold(0.0, f64::max);
    near(longest, measured("60 blocks of 99,900 bytes, the longest"), 10.0, "the longest block");
    let patterns = chances(&blocks(), 60).patterns();
    assert!((48..60).contains(&patterns[0].runs), "mostly, and not always: {patterns:?}");
}

/// A send buffer below a segment: after each a small piece leaves, which the reader acknowledges before the
/// next comes, if it is quicker than four copies of 16 KiB; what follows then waits for the delayed ACK, and
/// the writer with it.
#[test]
fn a_buffer_below_a_segment_waits_for_a_delayed_ack_in_most_rounds() {
    for (rtt, id) in
        [(1.0, "13 MB up, SNDBUF 16K, MTU 65500, RTT 1"), (5.0, "13 MB up, SNDBUF 16K, MTU 65500, RTT 5")]
    {
        let s = serial(path(rtt, 0.0, 0, 65_500), turn(&[13_000_000], 0.0, &[]), 1);
        let s = with(s, 0, |h| (h.sndbuf, h.write_chunk) = (Some(16_384), Some(16_384)));
        // In how many rounds the reader is quicker differs by machine and moment: the kernel's own runs take
        // 4.5 to 8.7 s. Without these waits it would be 0.4 and 1.2 s.
        near(usual(&s), measured(id), 35.0, id);
    }
}

/// 300 KB at 1 Gbit/s, 2 bytes 2 ms later: whether the tail of the 300 KB is the only segment that its
/// receiver has not acknowledged decides whether it waits for the timer, and the 2 bytes for Nagle.
#[test]
fn a_trailer_waits_in_some_of_the_requests() {
    let request = vec![Step::Write(300_000), Step::Pause(ms(2.0)), Step::Write(2)];
    let turn = tcpwhy_base::Turn { request, ..turn(&[], 0.0, &[200]) };
    let s = serial(path(0.2, 1000.0, 1_000_000, 1500), turn, 20);
    let question = Question { scenario: s, skip: 0, max_events: MAX_EVENTS };
    let (mut held, mut all, mut times) = (0, 0, Vec::new());
    for n in 0..20 {
        let varied = question.varied(n);
        let answer = varied.ask().unwrap();
        for x in &stories(&varied.scenario, &answer.outcome, 0)[0].exchanges {
            all += 1;
            let waits = x
                .spans
                .iter()
                .any(|s| s.cause == Cause::NagleDelayedAck && s.end - s.start > Nanos::millis(20));
            held += u32::from(waits);
            if waits {
                times.push((x.end - x.start).as_ms());
            }
        }
    }
    assert_eq!(all, 400);
    assert!((4..200).contains(&held), "in some: {held} of 400");
    times.sort_by(f64::total_cmp);
    near(
        times[times.len() / 2],
        measured("300 KB and a trailer, one that waits"),
        10.0,
        "a request that waits",
    );
}
