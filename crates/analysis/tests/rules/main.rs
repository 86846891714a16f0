//! The rules by which time is labelled, one small capture each. See `wire` for how they are written.

#[path = "../wire/mod.rs"]
mod wire;

mod captures;
mod exchanges;
mod loss;
mod nagle;
mod opening;
mod windows;
