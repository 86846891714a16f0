//! Capture
