//! From the result of an analysis to bytes: JSON for programs, text for people. Takes connections, findings and
//! what the reader said about the input; gives whole documents, written piece by piece. Has its own serialisable
//! types, so that the JSON stays a promise when the inside changes. Knows no packets, opens no files.

mod answer;
mod capture;
pub mod causes;
pub mod compare;
mod figures;
pub mod html;
pub mod json;
pub mod predict;
pub mod run;
#[cfg(test)]
mod sample;
mod schema;
pub mod svg;
pub mod text;

mod warnings;

pub use answer::{Answer, Part, headline, sureness, tcp_time, worst};
pub use capture::{Capture, Warning, rfc3339};
pub use text::bytes;
pub use warnings::{quality_warnings, quality_warnings_of};
