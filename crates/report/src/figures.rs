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

/// `1 connection`, `34 exchanges`, `2 processes`.
pub fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n if what.ends_with('s') => format!("{n} {what}es"),
        n => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        assert_eq!([0, 1, 2].map(|n| count(n, "capture")), ["0 captures", "1 capture", "2 captures"]);
        assert_eq!([1, 2].map(|n| count(n, "process")), ["1 process", "2 processes"]);
    }
}
