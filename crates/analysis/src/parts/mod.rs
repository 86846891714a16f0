//! Ending the parts of a connection: setup, exchanges, gaps, and the connection itself.

mod ledger;
mod opening;
mod summary;
mod sums;
mod unfinished;

pub(crate) use ledger::{Ending, GRANTED_WITHIN_TLS, Ledger};
pub(crate) use summary::{Identity, summary};
pub(crate) use unfinished::{Unfinished, how_unfinished, is_goodbye};
