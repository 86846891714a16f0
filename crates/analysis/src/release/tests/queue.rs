//! What left before any ACK could have let it go (rule 72).

use super::*;

/// A full segment in the middle of a run, 15 ms behind the one before, of a sender 20 ms away: what an ACK let go left 20 ms before it
/// passed. The one before had left up to 22.5 ms before it passed itself (an eighth for jitter).
#[test]
fn what_no_ack_can_have_released_was_in_the_queue() {
    let from = Nanos::ZERO - ms(20) - ms(20).part(8);
    let behind = |ack: Nanos| row(ms(15), MSS).far().acked_in_part(ack);
    behind(from).is(Wait::Burst);
    let released = |r: &Row| matches!(r.release().wait, Wait::Acked(_));
    assert!(released(&behind(from + Nanos(1))));
    assert!(released(&behind(ms(15) - ms(20))));
    // Where hosts take as long as the path nothing is told.
    let short = behind(from).with(|r| r.path.rtt = ms(1) - Nanos(1));
    assert!(released(&short));
    // Nor behind the end of a write.
    let pushed = behind(from).with(|r| r.flow.last = r.flow.last.map(|l| Last { psh: true, ..l }));
    assert!(matches!(pushed.release().wait, Wait::Pause(_)));
}
