//! How large an experiment may be, and which words it may hand on. A scenario may come from somebody else: without its
//! `[programs]`, which are programs, all that it can do is to run for a while.

use super::written::{Host, Workload, Written};
use crate::LabError;
use std::collections::BTreeMap;
use tcpwhy_base::Step;

/// The largest value of a key, and why.
struct Bound {
    key: &'static str,
    most: u64,
    why: &'static str,
}

const fn bound(key: &'static str, most: u64, why: &'static str) -> Bound {
    Bound { key, most, why }
}

const CONNECTIONS: Bound = bound("workload.connections", 2_000, "each takes a thread at both ends");
const REQUESTS: Bound =
    bound("workload: requests of all connections", 1_000_000, "each call is written down");
const COUNT: Bound = bound("connects.count", 1_000_000, "each connection is written down");
/// Their addresses are those of 10.77.1.0 to 10.77.255.0.
const HALF_OPEN: Bound = bound("connects.half_open", 65_000, "there are no more addresses for their senders");
const RUNS: Bound = bound("expect.runs", 1_000, "more tell nothing new");
const REPEAT: Bound = bound("programs.repeat", 100_000, "each time is written down");
const VALUES: Bound = bound("sweep.values", 1_000, "each is an experiment");
const READ_CHUNK: Bound = bound("read_chunk", 64 << 20, "it is kept in memory");
const BUFFERS: Bound =
    bound("workload: what all connections write or read at once", 2 << 30, "it is kept in memory");
/// `tcp_info` of a socket; a finer look would change what it looks at.
const SHORTEST_SAMPLE_MS: f64 = 0.1;
/// Largest single write that is kept in memory as one (`endpoints`).
const LARGEST_WRITE: u64 = 64 << 20;
/// `TCP_CA_NAME_MAX` without its end.
const NAME: usize = 15;

impl Bound {
    fn check(&self, value: u64) -> Result<(), LabError> {
        if value <= self.most {
            return Ok(());
        }
        let Bound { key, most, why } = self;
        Err(LabError::Scenario(format!("{key} = {value}: {most} at most, because {why}")))
    }
}

impl Written {
    /// Refuses what would take more than a machine has, and words that are not what they seem.
    pub(super) fn check_bounds(&self) -> Result<(), LabError> {
        check_workload(&self.workload, [&self.client, &self.server])?;
        if let Some(connects) = &self.connects {
            COUNT.check(connects.count.into())?;
            HALF_OPEN.check(connects.half_open.into())?;
        }
        if let Some(programs) = &self.programs {
            REPEAT.check(programs.repeat.into())?;
        }
        if let Some(expect) = &self.expect {
            RUNS.check(expect.runs.into())?;
        }
        if let Some(sweep) = &self.sweep {
            VALUES.check(sweep.values.len() as u64)?;
        }
        if self.sample_ms != 0.0 && (self.sample_ms.is_nan() || self.sample_ms < SHORTEST_SAMPLE_MS) {
            return Err(LabError::Scenario(format!(
                "sample_ms = {}: 0 for none, or {SHORTEST_SAMPLE_MS} and more",
                self.sample_ms
            )));
        }
        for (name, host) in [("client", &self.client), ("server", &self.server)] {
            check_words(name, host)?;
        }
        self.check_texts()
    }

    /// What is printed for people is text and nothing that acts on a terminal.
    fn check_texts(&self) -> Result<(), LabError> {
        let mut texts: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        texts.insert("title", Some(&self.title));
        texts.insert("source", self.source.as_deref());
        if let Some(expect) = &self.expect {
            texts.insert("expect.reason", expect.reason.as_deref());
            texts.insert("expect.deviation", expect.deviation.as_deref());
            for (key, stated) in [("expect.published", &expect.published), ("expect.theory", &expect.theory)]
            {
                texts.insert(key, stated.as_ref().and_then(|s| s.text.as_deref()));
            }
        }
        for (key, text) in texts {
            if text.is_some_and(|t| t.contains(|c: char| c.is_control() && c != '\n' && c != '\t')) {
                return Err(LabError::Scenario(format!(
                    "{key}: control characters do not belong into a text"
                )));
            }
        }
        Ok(())
    }
}

fn check_workload(w: &Workload, hosts: [&Host; 2]) -> Result<(), LabError> {
    let connections = u64::from(w.connections);
    CONNECTIONS.check(connections)?;
    REQUESTS.check(connections.saturating_mul(w.requests.into()))?;
    let turns = w.turns.iter().flat_map(|t| t.request.iter().chain(&t.response));
    let steps = w.request.iter().chain(&w.response).chain(turns);
    let writes = steps.map(|step| if let Step::Write(bytes) = step { *bytes } else { 0 });
    let largest = writes.max().unwrap_or(0).min(LARGEST_WRITE);
    let mut both: u64 = 0;
    for host in hosts {
        READ_CHUNK.check(host.read_chunk)?;
        both += host.read_chunk.max(largest);
    }
    BUFFERS.check(both.saturating_mul(connections))
}

/// A word reaches the arguments of a command, the name of a sysctl a path.
fn check_words(name: &str, host: &Host) -> Result<(), LabError> {
    let is_word = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c) || more.contains(c))
    };
    if !is_word(&host.congestion, "") || host.congestion.len() > NAME {
        return Err(LabError::Scenario(format!(
            "{name}.congestion = {:?}: the name of a congestion control, such as cubic or bbr",
            host.congestion
        )));
    }
    match host.sysctl.keys().find(|key| !is_word(key, ".")) {
        Some(key) => {
            Err(LabError::Scenario(format!("{name}.sysctl {key:?}: letters, digits, points, _ and -")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    const SMALL: &str = "title = 't'\n[workload]\nrequest = [200]\nresponse = [1000]\n";

    fn refused(set: &str) -> String {
        match Scenario::parse(SMALL, &[set.to_owned()]) {
            Ok(_) => format!("{set} was taken"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn what_is_too_large_is_refused_with_the_bound() {
        for (set, words) in [
            ("workload.connections=4000000000", "2000 at most"),
            ("workload.connections=2001", "a thread at both ends"),
            ("workload.requests=4000000000", "1000000 at most"),
            ("connects.half_open=4000000000", "65000 at most"),
            ("connects.count=4000000000", "1000000 at most"),
            ("expect={ measure = 'elapsed', runs = 4000000000 }", "1000 at most"),
            ("client.read_chunk=100000000000", "67108864 at most"),
            ("sample_ms=0.000001", "0.1 and more"),
            ("sample_ms=nan", "0.1 and more"),
        ] {
            assert!(refused(set).contains(words), "{set}: {}", refused(set));
        }
        let many = ["workload.connections=2000".to_owned(), "workload.request=[60000000]".to_owned()];
        let said = Scenario::parse(SMALL, &many).unwrap_err().to_string();
        assert!(said.contains("2147483648 at most"), "{said}");
        for good in ["workload.connections=2000", "workload.requests=1000000", "sample_ms=0"] {
            assert!(Scenario::parse(SMALL, &[good.into()]).is_ok(), "{good}");
        }
    }

    #[test]
    fn words_are_words() {
        for set in [
            "client.congestion='cubic dev lo'",
            "server.congestion='-help'",
            "client.congestion=''",
            "client.congestion='cubic;reboot'",
            "client.congestion='a_name_that_is_too_long'",
        ] {
            assert!(refused(set).contains("the name of a congestion control"), "{set}: {}", refused(set));
        }
        assert!(refused("client.sysctl={ \"net.ipv4.tcp_sack\\n\" = 1 }").contains("letters, digits"));
        assert!(refused("title=\"\\u001b]0;x\\u0007\"").contains("title: control characters"));
        assert!(refused("source=\"\\u009b2J\"").contains("source: control characters"));
    }
}
