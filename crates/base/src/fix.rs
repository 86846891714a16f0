//! What can be done about a cause: the types, and the table, whose rows stand in a file for each group.

mod application;
mod buffers;
mod opening;
mod path;
mod unless;

pub use unless::{OVERSHOOT, Shown, Unless};

/// Where a fix is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The end whose segment or write waited.
    Writer,
    /// The end that received.
    Reader,
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either host's system settings.
    Host,
    /// The path between.
    Path,
}

/// One concrete way to make a fix. `{name}` in the text is filled from the [`Figures`] of the capture; a
/// line whose figure is not known is left out, so every fix has at least one line without any.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Where it applies: `Linux`, `Windows`, `nginx`, `Go`, `Java`, ...
    pub system: &'static str,
    /// The exact setting or change.
    pub text: &'static str,
}

/// One row of the fix table.
#[derive(Clone, Copy, Debug)]
pub struct FixInfo {
    /// The fix.
    pub fix: FixId,
    /// Stable id in JSON.
    pub id: &'static str,
    /// Where it is made.
    pub place: Place,
    /// What speaks against it: if a capture shows one of these, it is not offered.
    pub unless: &'static [Unless],
    /// What to do, in a few words.
    pub title: &'static str,
    /// How, most common first.
    pub how: &'static [How],
}

impl FixInfo {
    /// Why this fix cannot help where a capture shows that.
    pub fn refuted(&self, shown: &Shown) -> Option<String> {
        self.unless.iter().find_map(|unless| unless.refutes(shown))
    }
}

/// Figures of a capture that fill the placeholders of [`How`].
#[derive(Clone, Debug, Default)]
pub struct Figures(pub Vec<(&'static str, String)>);

impl Figures {
    /// The text with its placeholders filled, or `None` if one of them is not known.
    pub fn fill(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            let value = &self.0.iter().find(|(name, _)| *name == &rest[open + 1..close])?.1;
            out.push_str(&rest[..open]);
            out.push_str(value);
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Something a person can do about a cause. The order is that of the table [`FIXES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each one means")]
pub enum FixId {
    ReuseConnections,
    FastOpen,
    CloserServer,
    Tls13,
    TlsResumption,
    ListenBacklog,
    Firewall,
    AcceptFaster,
    AbortOnOverflow,
    SynCookies,
    StartListener,
    PortRange,
    TwReuse,
    Application,
    MoreWorkers,
    LargerWrites,
    ReadFaster,
    ApplicationWindow,
    ReadWhileWriting,
    OneWrite,
    Nodelay,
    CorkWhole,
    Quickack,
    Uncork,
    BiggerWindow,
    UnsetRcvbuf,
    SmallerMtu,
    UnsetSndbuf,
    NotsentLowat,
    Wmem,
    Rmem,
    MemoryLimit,
    Initcwnd,
    SmallerResponse,
    LargerMtu,
    NoIdleRestart,
    WindowScaling,
    FixLoss,
    CongestionControl,
    HostLoad,
    RtoMin,
    ThinStreams,
    FixReordering,
    ClampMss,
    MtuProbing,
    FasterLink,
    QueueManagement,
    FewerRoundTrips,
    UserTimeout,
}

impl FixId {
    /// Its row of the table.
    pub const fn info(self) -> &'static FixInfo {
        &FIXES[self as usize]
    }
}
/// The one table of fixes: the groups one after the other.
pub const FIXES: &[FixInfo] = &{
    let groups = [opening::ROWS, application::ROWS, buffers::ROWS, path::ROWS];
    let mut all = [groups[0][0]; COUNT];
    let (mut group, mut row, mut at) = (0, 0, 0);
    while group < groups.len() {
        if row == groups[group].len() {
            (group, row) = (group + 1, 0);
        } else {
            all[at] = groups[group][row];
            (row, at) = (row + 1, at + 1);
        }
    }
    all
};

const COUNT: usize = opening::ROWS.len() + application::ROWS.len() + buffers::ROWS.len() + path::ROWS.len();

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEHOLDERS: [&str; 18] = [
        "need_bytes",
        "need_buffer",
        "have_bytes",
        "most_segments",
        "rtt",
        "rate",
        "rate_mbit",
        "server",
        "port",
        "client",
        "client_port",
        "own_port",
        "ends",
        "at",
        "until",
        "segments",
        "count",
        "mss",
    ];

    fn placeholders(text: &'static str) -> Vec<&'static str> {
        text.split('{')
            .skip(1)
            .map(|rest| rest.split_once('}').unwrap_or_else(|| panic!("unclosed brace: {text}")).0)
            .collect()
    }

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in FIXES.iter().enumerate() {
            assert_eq!(row.fix as usize, i, "{}", row.id);
            assert_eq!(row.fix.info().id, row.id);
        }
        assert_eq!(FIXES.len(), FixId::UserTimeout as usize + 1, "a fix has no row");
    }

    #[test]
    fn ids_are_unique_and_titles_are_imperative_phrases() {
        for (i, row) in FIXES.iter().enumerate() {
            assert!(FIXES[..i].iter().all(|other| other.id != row.id), "{} twice", row.id);
            assert!(row.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            assert!(row.title.starts_with(|c: char| c.is_ascii_uppercase()), "{}", row.id);
            assert!(!row.title.contains(['{', '}']) && !row.title.ends_with('.'), "{}", row.id);
        }
    }

    #[test]
    fn every_fix_says_how_even_when_nothing_was_measured() {
        let nothing = Figures::default();
        for row in FIXES {
            assert!((2..=10).contains(&row.how.len()), "{} has {} lines", row.id, row.how.len());
            assert!(row.how.iter().any(|how| nothing.fill(how.text).is_some()), "{}", row.id);
            assert!(row.how.iter().all(|how| !how.system.is_empty() && !how.text.is_empty()), "{}", row.id);
        }
    }

    #[test]
    fn placeholders_are_the_known_ones_and_all_of_them_fill() {
        let figures = Figures(PLACEHOLDERS.map(|name| (name, "1".to_owned())).to_vec());
        for how in FIXES.iter().flat_map(|row| row.how) {
            for name in placeholders(how.text) {
                assert!(PLACEHOLDERS.contains(&name), "{{{name}}} in: {}", how.text);
            }
            let filled = figures.fill(how.text).expect("all figures are given");
            assert!(!filled.contains(['{', '}']), "{filled}");
        }
    }

    #[test]
    fn a_line_with_an_unknown_figure_is_left_out() {
        let figures = Figures(vec![("rtt", "40.2 ms".to_owned())]);
        assert_eq!(figures.fill("a trip of {rtt}").as_deref(), Some("a trip of 40.2 ms"));
        assert_eq!(figures.fill("at least {need_bytes}"), None);
    }
}
