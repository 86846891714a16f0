//! Flights that grow, but more slowly than slow start lets them: congestion avoidance.

use crate::attribute::context::Context;
use crate::attribute::woken::{PLATEAU, clocked, flight_of};
use crate::step::Step;
use crate::track::CwndState;
use tcpwhy_base::Cause;

/// Fewer segments HyStart leaves alone (`hystart_low_window`).
const LEAST_SEGMENTS: u32 = 16;

/// Slow start adds a segment for each ACK (RFC 5681, 3.1), and Linux one for each segment that was
/// acknowledged (`tcp_slow_start`): three round trips make more than three times of a flight where each two
/// segments are acknowledged (RFC 9293, 3.8.6.3), and half as much again where one ACK is for seven. Where
/// they make less, slow start has ended, and does not begin again without a loss or an idle time (rule 131).
pub(super) fn avoids_congestion(context: &Context, steps: &[Step], limits: &mut [Cause], mss: u32) {
    let large = |k: &usize| flight_of(&steps[*k]) >= LEAST_SEGMENTS * mss;
    let Some(from) =
        (0..steps.len()).filter(large).find(|&k| grows_slowly(context, &steps[k..], &limits[k..]))
    else {
        return;
    };
    for (step, limit) in steps.iter().zip(limits).skip(from) {
        if *limit == Cause::SlowStart && step.cwnd == CwndState::Growing && clocked(step) {
            *limit = Cause::CongestionWindow;
        }
    }
}

/// Only ACKs let go what comes within three round trips of the first of them, as long as those are by then,
/// each time a little more; and not half as much again has been in flight.
fn grows_slowly(context: &Context, steps: &[Step], limits: &[Cause]) -> bool {
    let Some(first) = steps.first() else { return false };
    let mut trip = context.rtt;
    for (k, (step, limit)) in steps.iter().zip(limits).enumerate() {
        let Some(acked) = step.acked().filter(|_| step.cwnd == CwndState::Growing) else { return false };
        // A window becomes no smaller either: with an eighth less in flight something else was the limit (rule 19).
        let (flight, least) = (flight_of(step), flight_of(first));
        if *limit != Cause::SlowStart || flight < least - least / 8 || k > 0 && flight >= least / 2 * 3 {
            return false;
        }
        trip = trip.max(acked.rtt.unwrap_or_default());
        if step.end - first.end >= trip.times(i64::from(PLATEAU)) {
            return true;
        }
    }
    false
}
