//! What a connection is, where two taps have seen it: the one that is explained, beside the client, or the
//! one that tells.

use super::across::{Across, ToldStep, Until};
use crate::rest::at_rest;
use crate::result::TwoTaps;
use crate::step::Step;
use crate::track::{Left, SynsThere};
use tcpwhy_base::{End, Nanos, Segment, Seq};

/// Which tap has seen it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Role {
    /// There is one tap.
    #[default]
    Only,
    /// It is explained, with what the other tap tells.
    Explained(Box<Across>),
    /// It tells the other what its server waited for.
    Tells(Box<Teller>),
}

at_rest! { enum Role { 0 => Only, 1 => Explained(value), 2 => Tells(value) } }

/// What the connection at the server's tap has to say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Teller {
    /// What the server waited for, not told yet.
    steps: Vec<ToldStep>,
    /// The last packet was no copy of another.
    is_new: bool,
}

at_rest! { Teller { steps, is_new } }

impl Teller {
    /// What it has to say since it was last asked; `None`: the last packet was a copy.
    pub(crate) fn tell(&mut self) -> Option<Vec<ToldStep>> {
        std::mem::take(&mut self.is_new).then(|| std::mem::take(&mut self.steps))
    }
}

impl Role {
    /// There is one tap alone.
    #[inline]
    pub(crate) fn is_only(&self) -> bool {
        matches!(self, Role::Only)
    }

    /// It tells the other tap.
    pub(crate) fn tells(&self) -> bool {
        matches!(self, Role::Tells(_))
    }

    /// A packet of `s` passed that was no copy. Gives when it left, if it is data that the other tap saw leave.
    #[inline]
    pub(crate) fn passes(&mut self, s: End, segment: &Segment) -> Option<Left> {
        match self {
            Role::Only => None,
            Role::Explained(across) => across.passes_here(s, segment),
            Role::Tells(teller) => {
                teller.is_new = true;
                None
            }
        }
    }

    /// The step as the tap beside its sender knows it, and the one before, where the wait had two reasons.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        ended: &Until<'_>,
        before: Option<Step>,
        step: Step,
    ) -> (Option<Step>, Step) {
        match self {
            Role::Explained(across) if ended.sender == End::Server => match across.settle(ended, &step) {
                Some(told) => (None, told),
                None => (before, step),
            },
            Role::Tells(teller) if ended.sender == End::Server => {
                teller.steps.push(ToldStep::new(ended, step, before));
                (before, step)
            }
            _ => (before, step),
        }
    }

    /// The step that was settled last is this; the round trip is known.
    pub(crate) fn cross(&mut self, step: &mut Step, rtt: Nanos) {
        if let Role::Explained(across) = self
            && step.across
        {
            across.cross(step, rtt);
        }
    }

    /// Where there are two taps: the segment that ended the step that was settled last was held on its way for so long.
    pub(crate) fn held_on_its_way(&self, step: &Step, rtt: Nanos, tick: Nanos) -> Option<Nanos> {
        match self {
            Role::Explained(across) if step.across => across.held_on_its_way(rtt, tick),
            _ => None,
        }
    }

    /// Where there are two taps: up to where its server has sent, if that is beyond `nxt` and has not come,
    /// and since when.
    #[inline]
    pub(crate) fn sent_beyond(&self, nxt: Seq) -> Option<(Seq, Nanos)> {
        match self {
            Role::Explained(across) => across.sent_beyond(nxt),
            _ => None,
        }
    }

    /// What the tap beside the server says of answers that may be corked, where there are two.
    pub(crate) fn ticks(&self) -> Option<Option<u16>> {
        match self {
            Role::Explained(across) => Some(across.ticks()),
            _ => None,
        }
    }

    /// The steps before the one that was settled last.
    pub(crate) fn lead(&mut self) -> Vec<Step> {
        match self {
            Role::Explained(across) => across.take_lead(),
            _ => Vec::new(),
        }
    }

    /// What the server's tap saw of the handshake until now.
    pub(crate) fn syns_there(&self) -> Option<SynsThere> {
        match self {
            Role::Explained(across) => across.syns_there(),
            _ => None,
        }
    }

    /// What both say together; the captures end at `end`.
    pub(crate) fn finish(&mut self, end: Nanos) -> Option<Box<TwoTaps>> {
        match self {
            Role::Explained(across) => across.finish(end),
            _ => None,
        }
    }
}
