//! What is left of a connection's sums without the parts that are kept in detail.

use crate::place::Part;
use crate::result::Connection;

/// Takes its setup out of the sums; no exchange and no gap of it is kept in detail so far.
pub(crate) fn leave_out_setup(connection: &mut Connection) {
    let mut budget = connection.budget.clone();
    for span in connection.setup.iter().flat_map(|setup| &setup.spans) {
        budget.subtract(span.cause, span.duration());
    }
    connection.exchanges_omitted.budget = budget;
    connection.gaps_omitted.budget = connection.gap_budget.clone();
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
