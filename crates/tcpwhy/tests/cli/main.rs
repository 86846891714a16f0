//! The program from outside: what it prints, on which stream, and how it ends.

mod bad_input;
mod commands;
mod common;
mod explain;
