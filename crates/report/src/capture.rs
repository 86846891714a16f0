use jiff::Timestamp;
use tcpwhy_base::Nanos;

/// What is known of the input as a whole.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// Names of the inputs, in the order in which they were read.
    pub files: Vec<String>,
    /// Frames read, TCP or not.
    pub packets: u64,
    /// TCP packets among them.
    pub tcp_packets: u64,
    /// Earliest and latest frame, TCP or not.
    pub span: Option<(Nanos, Nanos)>,
    /// Connections listed.
    pub connections: u64,
    /// What packets were wrapped in (VLAN, GRE, VXLAN, ...), and how many.
    pub encapsulations: Vec<(&'static str, u64)>,
    /// What the reader and the analysis want said.
    pub warnings: Vec<Warning>,
}

impl Capture {
    /// The moment from which all times are counted.
    pub fn start(&self) -> Nanos {
        self.span.map_or(Nanos::ZERO, |s| s.0)
    }

    /// Earliest to latest frame.
    pub fn duration(&self) -> Nanos {
        self.span.map_or(Nanos::ZERO, |(start, end)| end - start)
    }
}

/// Something that limits what can be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable word for programs.
    pub code: &'static str,
    /// A plain sentence with the next step.
    pub text: String,
    /// How often.
    pub count: u64,
}

/// A moment as RFC 3339 with nanoseconds, in UTC.
pub fn rfc3339(time: Nanos) -> String {
    match Timestamp::from_nanosecond(i128::from(time.0)) {
        Ok(t) => t.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string(),
        Err(_) => format!("{} ns since 1970", time.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_kept() {
        assert_eq!(rfc3339(Nanos(1_700_000_000_000_000_001)), "2023-11-14T22:13:20.000000001Z");
        assert_eq!(rfc3339(Nanos(0)), "1970-01-01T00:00:00.000000000Z");
    }
}
