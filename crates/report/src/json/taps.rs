//! What two taps say of a connection together.

use super::values::{Context, Pair};
use schemars::JsonSchema;
use serde::Serialize;
use tcpwhy_analysis::{Lost, TwoTaps};
use tcpwhy_base::End;

/// Packets on their way between the taps.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Taps {
    /// Packets that passed the tap of their sender.
    pub sent: Pair,
    /// Those of them that never came to the other tap; null where packets are joined or split on the way.
    pub lost: Option<Pair>,
    /// Those of the lost that carried data.
    pub lost_data: Option<Pair>,
    /// The lost ones, in the order of time; no more than some hundred.
    pub losses: Vec<Loss>,
}

/// A packet that never came to the other tap.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Loss {
    /// Who sent it: `client` (lost on the way there) or `server` (on the way back).
    pub from: &'static str,
    /// When it passed its sender's tap.
    pub at_ns: i64,
    /// Its frame there.
    pub frame: u64,
    /// Index of the input that holds it.
    pub file: u16,
    /// Its payload.
    pub bytes: u32,
    /// It was a SYN or SYN-ACK.
    pub syn: bool,
}

impl Taps {
    pub(super) fn new(two: &TwoTaps, cx: Context<'_>) -> Taps {
        let known = two.comparable.iter().all(|&c| c);
        let loss = |lost: &Lost| {
            let (file, frame) = cx.place(lost.frame);
            let from = if lost.from == End::Client { "client" } else { "server" };
            Loss { from, at_ns: cx.ns(lost.time), frame, file, bytes: lost.bytes, syn: lost.syn }
        };
        Taps {
            sent: two.sent.into(),
            lost: known.then(|| two.lost.into()),
            lost_data: known.then(|| two.lost_data.into()),
            losses: if known { two.losses.iter().map(loss).collect() } else { Vec::new() },
        }
    }
}
