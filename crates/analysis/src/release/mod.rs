//! What released a data segment: the ACKs it may have left with, a timer, or the application.
//!
//! [`release`] decides, from a [`Passage`] and the [`Habits`] of the hosts so far, and changes nothing; what a release
//! teaches is learnt afterwards ([`Habits::learn`]). What the packets say is in `inferred`; a kernel that was watched
//! knows better (`witnessed`).

mod acked;
mod both_ways;
mod from_afar;
mod habits;
mod inferred;
mod probes;
mod repeats;
mod silence;
mod testimony;
mod timed;
mod unseen;
mod value;
mod window;
mod witnessed;

#[cfg(test)]
mod tests;

pub(crate) use both_ways::{Filled, goes_on};
pub(crate) use habits::Habits;
pub(crate) use inferred::burst_within;
pub(crate) use repeats::latest_probe;
pub(crate) use silence::{Hindsight, hindsight};
pub(crate) use testimony::Testimony;
pub(crate) use value::{Acked, Doubt, Freed, Pause, Release, Wait};
pub(crate) use witnessed::{AT_ONCE, is_beside};

use crate::track::Passage;
use tcpwhy_base::Witness;

/// What released the segment.
#[inline]
pub(crate) fn release(passage: &Passage<'_>, habits: &Habits, witness: Option<&Witness>) -> Release {
    // Nothing is done to what is inferred alone, so that it need not be copied.
    match witness {
        None => inferred::inferred(passage, habits),
        Some(witness) => witnessed::witnessed(passage, inferred::inferred(passage, habits), witness),
    }
}
