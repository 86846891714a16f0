//! Small runs, packet by packet: each line is one event, each figure follows from a rule of the kernel that
//! stands beside it. Two runs on both sides of a boundary differ by one byte, one packet or one nanosecond.

mod acks;
mod answers;
mod late;
mod losses;
mod opening;
mod path;
mod receiving;
mod script;
mod sending;
