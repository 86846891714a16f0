//! Shares and counts as they stand in sentences of every form.

/// `41 %`, `0.4 %`, `below 0.1 %`.
pub fn percent(share: f64) -> String {
    let p = share * 100.0;
    match p {
        p if p <= 0.0 => "0 %".into(),
        p if p < 0.1 => "<0.1 %".into(),
        p if p < 0.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// `1 connection`, `34 exchanges`.
pub(crate) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
