use crate::{Analysis, Exchange, Finding};
use std::cmp::Reverse;
use std::collections::HashMap;
use tcpwhy_base::{Cause, FixId, Nanos, Side, TraceParent};

/// Names that a finding carries.
const NAMES: usize = 5;

/// What the first bytes of an exchange say of it. The analysis sees none of them: who reads the capture a
/// second time puts it here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// `POST /orders`; empty if only the rest is known.
    pub name: Box<str>,
    /// Status of an HTTP/1 response.
    pub status: Option<u16>,
    /// The span of the application that it belongs to.
    pub parent: Option<TraceParent>,
}

impl Exchange {
    /// `POST /orders`, where it has a name.
    pub fn name(&self) -> Option<&str> {
        self.named.as_ref().map(|n| &*n.name).filter(|n| !n.is_empty())
    }
}

/// Commands that are answered when something comes, or their own timeout ends; XREAD mostly is one (BLOCK).
const ON_PURPOSE: &[&str] = &[
    "Redis BLMOVE",
    "Redis BLMPOP",
    "Redis BLPOP",
    "Redis BRPOP",
    "Redis BRPOPLPUSH",
    "Redis BZMPOP",
    "Redis BZPOPMAX",
    "Redis BZPOPMIN",
    "Redis MONITOR",
    "Redis PSUBSCRIBE",
    "Redis PSYNC",
    "Redis SSUBSCRIBE",
    "Redis SUBSCRIBE",
    "Redis SYNC",
    "Redis WAIT",
    "Redis WAITAOF",
    "Redis XREAD",
    "Redis XREADGROUP",
    "MySQL binlog dump",
];
/// What is said of them in the place of what looks for slow commands.
const WAITS: &str = "Blocking commands: These are answered when something comes or their timeout ends (BLPOP, XREAD BLOCK, SUBSCRIBE): they wait on purpose, and nothing is wrong. If it came late, look at who writes it";
/// That finds slow commands, of which those are none.
const SLOW_COMMANDS: &str = "Redis: ";

fn waits_on_purpose(name: &str) -> bool {
    ON_PURPOSE.contains(&name)
}

/// Nothing is to be looked for in a server whose clients asked it to wait.
fn waited_on_purpose(f: &mut Finding) {
    for fix in f.fixes.iter_mut().filter(|fix| fix.fix == FixId::Application) {
        (fix.saves, fix.guess) = (None, None);
        if fix.how.first().is_some_and(|how| how != WAITS) {
            fix.how.retain(|how| !how.starts_with(SLOW_COMMANDS));
            fix.how.insert(0, WAITS.into());
        }
    }
}

/// A cause, and the side that shows it.
type Key = (Cause, Option<Side>);

/// What the exchanges are called that show something.
#[derive(Default)]
struct Shown<'a> {
    /// Time and exchanges by name.
    names: HashMap<&'a str, (Nanos, u64)>,
    nameless: bool,
}

impl Shown<'_> {
    /// How long they waited on purpose.
    fn on_purpose(&self) -> Nanos {
        let waits = self.names.iter().filter(|(name, _)| waits_on_purpose(name));
        waits.fold(Nanos::ZERO, |sum, (_, (time, _))| sum + *time)
    }

    /// The names that hold most of the time; and whether there is more.
    fn most(&self) -> (Vec<(Box<str>, u64)>, bool) {
        let mut sorted: Vec<_> = self.names.iter().map(|(&name, &(time, n))| (name, time, n)).collect();
        sorted.sort_by_key(|&(name, time, _)| (Reverse(time), name));
        let more = self.nameless || sorted.len() > NAMES;
        (sorted.into_iter().take(NAMES).map(|(name, _, n)| (name.into(), n)).collect(), more)
    }
}

impl Analysis {
    /// Says of each finding which exchanges show it, those first that hold most of its time.
    pub fn name_findings(&mut self) {
        let mut all: HashMap<Key, Shown<'_>> = HashMap::new();
        let mut seen: Vec<Key> = Vec::new();
        for x in self.connections.iter().flat_map(|c| &c.exchanges) {
            seen.clear();
            for span in &x.spans {
                let key = (span.cause, span.side);
                let shown = all.entry(key).or_default();
                let Some(name) = x.name() else {
                    shown.nameless = true;
                    continue;
                };
                let (time, count) = shown.names.entry(name).or_default();
                *time += span.duration();
                if !seen.contains(&key) {
                    seen.push(key);
                    *count += 1;
                }
            }
        }
        let summed =
            |cause| self.connections.iter().any(|c| c.exchanges_omitted.budget.get(cause) > Nanos::ZERO);
        for f in &mut self.findings {
            let shown = all.get(&(f.cause, f.side));
            let waited = shown.map_or(Nanos::ZERO, Shown::on_purpose);
            if f.cause == Cause::ServerThink
                && waited > Nanos::ZERO
                && waited.times(10) >= f.of_requests().times(9)
            {
                waited_on_purpose(f);
            }
            let (names, more) = shown.map(Shown::most).unwrap_or_default();
            // Of those that are only summed as a whole nobody knows.
            let more = more || self.totals.not_kept > 0;
            f.more_names = !names.is_empty() && (more || summed(f.cause));
            f.names = names;
        }
    }
}
