//! Which fixes of the table are looked at for a finding.

use super::Brief;
use super::example::{idle, is_held_within_tls, waits_to_continue};
use crate::facts::Facts;
use crate::result::Finding;
use tcpwhy_base::{Cause, FixId, Nanos};

/// The fixes for this finding, the best first: mostly those of its cause. What is known of a rhythm of its pauses, and of events.
pub(super) fn listed(
    f: &Finding,
    connection: &Brief,
    (rhythm, events): (Option<Nanos>, bool),
) -> &'static [FixId] {
    match f.facts {
        // What was lost on the way met no queue of the server: a SYN-ACK passed the tap, or a second tap lacks the packet.
        Facts::SynRepeats { answered: true, syn_ack: false, .. } | Facts::SynsLost { .. } => {
            &[FixId::FixLoss, FixId::Firewall, FixId::ReuseConnections][..]
        }
        // Nothing shows that anybody listens there: first find out where the SYN goes.
        Facts::Unanswered { .. } | Facts::SynsIgnored { .. } => &[FixId::Firewall, FixId::ListenBacklog],
        // Nor that a SYN came to the server before the one that was answered.
        Facts::SynRepeats { answered: false, syn_ack: false, at_server: false, .. } => {
            &[FixId::Firewall, FixId::ListenBacklog, FixId::ReuseConnections]
        }
        // The client cannot tell a lossy path from a server that takes no connection.
        Facts::FirstData { .. } => &[FixId::FixLoss, FixId::ListenBacklog, FixId::AcceptFaster],
        // No TLS followed.
        Facts::EncryptionRefused { .. } => &[FixId::ReuseConnections],
        // Only early data, which not every request may be, saves a trip of TLS 1.3; a connection that is kept always does.
        _ if f.cause == Cause::TlsHandshake && connection.tls.is_new().is_some() => {
            &[FixId::Tls13, FixId::ReuseConnections, FixId::TlsResumption]
        }
        // What waits for a word of the server has the next piece ready; of events nothing was there that could have been read ahead.
        _ if waits_to_continue(f, connection) || events => &[FixId::Application],
        // A buffer that is ready hides no more than it takes to be sent: what comes later by a timeout was being made, and no clock is hurried.
        _ if rhythm.is_some() || f.cause == Cause::SenderPause && f.range.longest >= idle(connection) => {
            &[FixId::Application, FixId::LargerWrites]
        }
        // What waits for its turn is answered sooner where there are more.
        _ if f.in_turn.is_some() => &[FixId::MoreWorkers, FixId::Application],
        // The library writes the first piece: no call of the application could hold both.
        _ if is_held_within_tls(f, connection) => &[FixId::Nodelay, FixId::ReuseConnections],
        _ => f.cause.info().fixes,
    }
}
