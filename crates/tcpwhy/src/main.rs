//! tcpwhy
fn main() {}
