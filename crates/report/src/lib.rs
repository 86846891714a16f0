//! Report
