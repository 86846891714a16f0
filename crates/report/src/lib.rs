//! From the result of an analysis to bytes: JSON for programs, text for people. Takes connections, findings and
//! what the reader said about the input; gives whole documents, written piece by piece. Has its own serialisable
//! types, so that the JSON stays a promise when the inside changes. Knows no packets, opens no files.

mod capture;
pub mod causes;
pub mod compare;
pub mod html;
pub mod json;
pub mod predict;
#[cfg(test)]
mod sample;
mod schema;
mod summary;
pub mod svg;
pub mod text;

mod warnings;

pub use capture::{Capture, Warning, rfc3339};
pub use summary::{Summary, worst};
pub use text::bytes;
pub use warnings::{quality_warnings, quality_warnings_of};
