//! Settings that are often advised for a finding and have no effect on it, by the rules of the kernel. Those
//! of which only a replay shows it come from there.

use crate::facts::Facts;
use crate::result::{Finding, NoEffect};
use tcpwhy_base::{Cause, FixId, Nanos};

/// A setting that no finding asks for.
const MAX_SYN_BACKLOG: &str = "max_syn_backlog";

impl Finding {
    /// What has no effect on this finding, whatever its figures are.
    ///
    /// `tcp_max_syn_backlog` is read only with SYN cookies off, and then beside the limit of the listener, which is the
    /// smaller of backlog and somaxconn for both queues (`tcp_conn_request`, `inet_csk_reqsk_queue_is_full`,
    /// `sk_acceptq_is_full`). `tcp_abort_on_overflow` is read only when the final ACK meets a full accept queue
    /// (`tcp_check_req`): then it ends the connection.
    pub fn no_effect(&self) -> Vec<NoEffect> {
        let at_syn = match (self.cause, &self.facts) {
            (Cause::AcceptQueueFull, _) => false,
            (Cause::SynQueueFull, _) => true,
            (Cause::SynRetransmit, Facts::SynRepeats { at_server: true, answered: false, .. }) => true,
            _ => return Vec::new(),
        };
        let none =
            |id, what: &str| NoEffect { id, place: "server", what: what.to_owned(), saves: Nanos::ZERO };
        let abort = if at_syn {
            "tcp_abort_on_overflow=1, which is not asked when a SYN meets a full queue"
        } else {
            "tcp_abort_on_overflow=1, which makes an error of the wait"
        };
        vec![
            none(
                MAX_SYN_BACKLOG,
                "tcp_max_syn_backlog alone: the backlog of listen() and somaxconn bound both queues",
            ),
            none(FixId::AbortOnOverflow.info().id, abort),
        ]
    }
}
