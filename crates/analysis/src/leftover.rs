//! What is left of a connection's sums without the parts that are kept in detail.

use crate::budget::Budget;
use crate::place::Part;
use crate::result::{Connection, Span};
use tcpwhy_base::Nanos;

/// Takes its setup out of the sums; no exchange and no gap of it is kept in detail so far.
pub(crate) fn leave_out_setup(connection: &mut Connection) {
    let setup = connection.setup.as_ref().map_or(&[][..], |setup| &setup.spans);
    connection.exchanges_omitted.budget = without(&connection.budget, setup);
    connection.gaps_omitted.budget = connection.gap_budget.clone();
}

/// A budget without the time of spans that it is of. Mostly that is one span and all of its cause: there is
/// room for the others alone.
fn without(budget: &Budget, spans: &[Span]) -> Budget {
    let room = budget.0.len().saturating_sub(usize::from(spans.len() == 1));
    let mut left = Budget(Vec::with_capacity(room));
    for &(cause, time) in &budget.0 {
        let of = spans.iter().filter(|span| span.cause == cause);
        let time = of.fold(time, |time, span| time - span.duration());
        if time != Nanos::ZERO {
            left.0.push((cause, time));
        }
    }
    debug_assert!(left == without_each(budget, spans), "taken out at once it is another one");
    left
}

/// The same, one span after the other.
fn without_each(budget: &Budget, spans: &[Span]) -> Budget {
    let mut budget = budget.clone();
    spans.iter().for_each(|span| budget.subtract(span.cause, span.duration()));
    budget
}

/// Takes the exchanges and gaps that are kept in detail out of what the setup has left.
pub(crate) fn leave_out_kept(connection: &mut Connection) {
    let mut omitted = std::mem::take(&mut connection.exchanges_omitted);
    let mut gaps = std::mem::take(&mut connection.gaps_omitted);
    for (id, span) in connection.spans() {
        match id.part {
            Part::Setup => {}
            Part::Exchange(_) => omitted.budget.subtract(span.cause, span.duration()),
            Part::Gap(_) => gaps.budget.subtract(span.cause, span.duration()),
        }
    }
    for exchange in &connection.exchanges {
        omitted.count -= 1;
        omitted.duration = omitted.duration - (exchange.end - exchange.start);
        omitted.bytes[0] -= exchange.bytes[0];
        omitted.bytes[1] -= exchange.bytes[1];
    }
    for gap in &connection.gaps {
        gaps.count -= 1;
        gaps.duration = gaps.duration - (gap.end - gap.start);
    }
    (connection.exchanges_omitted, connection.gaps_omitted) = (omitted, gaps);
}
