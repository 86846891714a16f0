use jiff::Timestamp;
use tcpwhy_analysis::Frames;
use tcpwhy_base::Nanos;

/// What is known of the input as a whole.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// Names of the inputs, in the order in which they were read.
    pub files: Vec<String>,
    /// Frames in the inputs before each: the analysis numbers frames through all inputs, people by file.
    pub frames_before: Vec<u64>,
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
    /// Packets were left out on purpose, so that numbers of connections are not those of other tools.
    pub partial: bool,
    /// It is all that passed in a network made for a command: neither a filter nor the place can have been wrong.
    pub of_command: bool,
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

/// The frames as numbered in their file, and its index. Frames that reach over the end of a file are those of the
/// later one: it holds the end of the wait.
pub(crate) fn local(frames: &Frames, frames_before: &[u64]) -> (Frames, u16) {
    if frames_before.len() < 2 || frames.last() == 0 {
        return (*frames, 0);
    }
    let file = frames_before.partition_point(|&before| before < frames.last()).saturating_sub(1);
    let before = frames_before[file];
    let mut key = [0; 4];
    let kept = frames.keys().filter(|&k| k > before).map(|k| k - before);
    key.iter_mut().zip(kept).for_each(|(slot, k)| *slot = k);
    let file = u16::try_from(file).unwrap_or(u16::MAX);
    let first = frames.first().max(before + 1) - before;
    (Frames::new(file, first, frames.last() - before, &key), file)
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

/// A moment for people: day and time of day in UTC, to the microsecond.
pub fn time_of_day(time: Nanos) -> String {
    match Timestamp::from_nanosecond(i128::from(time.0)) {
        Ok(t) => t.strftime("%Y-%m-%d %H:%M:%S.%6f (UTC)").to_string(),
        Err(_) => format!("{} ns since 1970", time.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_by_file() {
        let all = |a, b, keys: &[u64]| local(&Frames::new(0, a, b, keys), &[0, 10, 20]);
        assert_eq!(all(3, 5, &[4]), (Frames::new(0, 3, 5, &[4]), 0));
        assert_eq!(all(10, 10, &[]), (Frames::new(0, 10, 10, &[]), 0));
        assert_eq!(all(11, 15, &[12]), (Frames::new(1, 1, 5, &[2]), 1));
        assert_eq!(all(8, 22, &[9, 21, 22]), (Frames::new(2, 1, 2, &[1, 2]), 2));
        assert_eq!(local(&Frames::new(0, 8, 22, &[9]), &[0]).0, Frames::new(0, 8, 22, &[9]));
    }

    #[test]
    fn nanoseconds_are_kept() {
        assert_eq!(rfc3339(Nanos(1_700_000_000_000_000_001)), "2023-11-14T22:13:20.000000001Z");
        assert_eq!(rfc3339(Nanos(0)), "1970-01-01T00:00:00.000000000Z");
    }
}
