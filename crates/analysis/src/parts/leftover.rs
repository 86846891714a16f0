//! What is left of a connection's sums without the parts that are kept in detail.

use crate::place::Part;
use crate::result::{Connection, Omitted};

/// Takes the parts kept in detail out of the sums.
pub(crate) fn leave_out(connection: &mut Connection) {
    let mut omitted: Omitted = std::mem::take(&mut connection.exchanges_omitted);
    let mut gaps: Omitted = std::mem::take(&mut connection.gaps_omitted);
    (omitted.budget, gaps.budget) = (connection.budget.clone(), connection.gap_budget.clone());
    for (id, span) in connection.spans() {
        let of = if matches!(id.part, Part::Gap(_)) { &mut gaps } else { &mut omitted };
        of.budget.subtract(span.cause, span.duration());
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
