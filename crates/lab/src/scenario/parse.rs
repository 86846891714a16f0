//! From TOML to a scenario that makes sense, or one sentence that says what does not.

use super::written::{Chosen, Direction, Link, Workload, Written};
use super::{Expect, Scenario, meant};
use crate::LabError;
use crate::formula::Names;
use serde::Deserialize;

impl Scenario {
    /// From TOML; `set` are `key.sub=value` that replace what stands there.
    pub fn parse(text: &str, set: &[String]) -> Result<Scenario, LabError> {
        let mut table: toml::Table = text.parse().map_err(|e| wrong(&e, text))?;
        for item in set {
            let (path, value) = item
                .split_once('=')
                .ok_or_else(|| LabError::Scenario(format!("--set {item}: write key=value")))?;
            let parsed = format!("v = {value}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
            put(&mut table, path, parsed.unwrap_or_else(|| toml::Value::String(value.to_owned())))?;
        }
        if !set.is_empty() {
            return Scenario::from_table(&table);
        }
        // From the text where it is unchanged: errors then know their line.
        toml::from_str::<Written>(text).map_err(|e| wrong(&e, text))?.try_into()
    }

    /// From a table that was put together. By way of its text: to read tables as well would be the same code
    /// once more, as much as all the rest of this crate.
    pub(crate) fn from_table(table: &toml::Table) -> Result<Scenario, LabError> {
        toml::from_str::<Written>(&table.to_string()).map_err(|e| wrong(&e, ""))?.try_into()
    }

    /// From TOML, with `more` keys in the place of what stands there: the published size, or a value of a
    /// sweep. `set` as in [`Scenario::parse`].
    pub fn parse_with(
        text: &str,
        more: impl IntoIterator<Item = (String, toml::Value)>,
        set: &[String],
    ) -> Result<Scenario, LabError> {
        let mut all: Vec<String> = more.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        all.extend(set.iter().cloned());
        Scenario::parse(text, &all)
    }

    /// What formulas may name: milliseconds, Mbit/s, bytes. `path` is the calibrated round trip without any delay.
    pub(crate) fn names(&self, path: f64) -> Names {
        self.written.names(path)
    }
}

/// A scenario in a file that the lab has written.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Kept(serde_json::Value);

impl TryFrom<Kept> for Scenario {
    type Error = LabError;

    fn try_from(Kept(value): Kept) -> Result<Scenario, LabError> {
        match in_toml(value) {
            Some(toml::Value::Table(table)) => Scenario::from_table(&table),
            _ => Err(LabError::Scenario("no table".into())),
        }
    }
}

/// What stands in JSON, which has null for what TOML leaves out: nothing.
fn in_toml(value: serde_json::Value) -> Option<toml::Value> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(yes) => yes.into(),
        serde_json::Value::Number(n) => match n.as_i64() {
            Some(whole) => whole.into(),
            None => n.as_f64()?.into(),
        },
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(all) => all.into_iter().filter_map(in_toml).collect::<Vec<_>>().into(),
        serde_json::Value::Object(all) => {
            let entries = all.into_iter().filter_map(|(key, value)| Some((key, in_toml(value)?)));
            entries.collect::<toml::Table>().into()
        }
    })
}

impl Written {
    pub(super) fn check(&self) -> Result<(), LabError> {
        let refuse = |what: String| Err(LabError::Scenario(what));
        if !(68..=65535).contains(&self.link.mtu) {
            return refuse(format!("link.mtu = {}: IPv4 allows 68 to 65535", self.link.mtu));
        }
        if self.client.read_chunk == 0 || self.server.read_chunk == 0 {
            return refuse("read_chunk = 0: nothing would ever be read".into());
        }
        if !(0.0..=3600.0).contains(&self.limit_s) {
            return refuse(format!("limit_s = {}: 0 to 3600", self.limit_s));
        }
        self.check_bounds()?;
        check_link(&self.link)?;
        if self.connects.is_some() && self.programs.is_some() {
            return refuse("both [connects] and [programs]: keep one of them".into());
        }
        if self.connects.as_ref().is_some_and(|c| c.count == 0) {
            return refuse("connects.count is at least 1".into());
        }
        if self.programs.as_ref().is_some_and(|p| p.client.is_empty()) {
            return refuse("programs.client: the command to run is missing".into());
        }
        let mut drops = self.link.up.drops.iter().chain(&self.link.down.drops);
        if self.programs.is_some() && drops.any(|d| matches!(d, Chosen::Last { .. })) {
            let why =
                "counts from the last byte, and nobody knows how many a program sends: name one with \"seq\"";
            return refuse(format!("drops of what = \"last\" {why}"));
        }
        if self.connects.is_none() && self.programs.is_none() {
            check_workload(&self.workload)?;
        }
        if let Some(expect) = &self.expect {
            let mut names = self.names(0.0);
            if expect.against.is_some() {
                names.insert("against", 1.0);
            }
            expect.check(&names)?;
        }
        Ok(())
    }

    fn names(&self, path: f64) -> Names {
        let (link, w) = (&self.link, &self.workload);
        let one_way = |d: &Direction| {
            let hops: f64 = d.hops.iter().filter_map(|h| h.delay_ms).sum();
            d.delay_ms.unwrap_or(link.rtt_ms / 2.0) + hops
        };
        let [up, down] = if w.check().is_ok() { meant::workload(w).totals() } else { [0, 0] };
        let rate = |d: &Direction| d.rate_mbit.or(link.rate_mbit).unwrap_or(0.0);
        // IP and TCP headers, the time stamp option.
        let mss = f64::from(link.mtu) - 52.0;
        let wire = |bytes: u64, rate: f64| {
            if rate > 0.0 { bytes as f64 * f64::from(link.mtu) / mss * 0.008 / rate } else { 0.0 }
        };
        Names::from([
            ("rtt", one_way(&link.up) + one_way(&link.down)),
            ("path", path),
            ("mtu", f64::from(link.mtu)),
            ("mss", mss),
            ("rate_up", rate(&link.up)),
            ("rate_down", rate(&link.down)),
            ("up", up as f64),
            ("down", down as f64),
            ("up_wire", wire(up, rate(&link.up))),
            ("down_wire", wire(down, rate(&link.down))),
            ("requests", f64::from(w.requests)),
            ("think", w.think_ms),
            ("gap", w.gap_ms),
            ("count", self.connects.as_ref().map_or(0.0, |c| f64::from(c.count))),
        ])
    }
}

fn check_link(link: &Link) -> Result<(), LabError> {
    let plain = |d: &Direction| {
        d.loss == 0.0
            && d.drops.is_empty()
            && d.duplicate == 0.0
            && d.reorder.is_none()
            && d.rate_mbit.is_none()
    };
    if link.offload && (link.rate_mbit.is_some() || !plain(&link.up) || !plain(&link.down)) {
        let why = "rates, queues and losses would act on pieces of 64 KB";
        return Err(LabError::Scenario(format!("link.offload goes with delays only: {why}")));
    }
    let each = |name: &str, d: &Direction| -> Result<(), LabError> {
        let refuse = |what: String| Err(LabError::Scenario(format!("{name}.{what}")));
        for (key, value) in [("loss", d.loss), ("duplicate", d.duplicate)] {
            if !(0.0..=1.0).contains(&value) {
                return refuse(format!("{key} = {value}: a probability lies between 0 and 1"));
            }
        }
        if let Some(rate) = d.rate_mbit.filter(|r| !r.is_finite() || *r <= 0.0) {
            return refuse(format!("rate_mbit = {rate}: a rate is above 0"));
        }
        for (key, value) in [("delay_ms", d.delay_ms.unwrap_or(0.0)), ("jitter_ms", d.jitter_ms)] {
            if !(0.0..=3_600_000.0).contains(&value) {
                return refuse(format!("{key} = {value}: 0 to an hour"));
            }
        }
        Ok(())
    };
    if !(0.0..=3_600_000.0).contains(&link.rtt_ms) {
        return Err(LabError::Scenario(format!("link.rtt_ms = {}: 0 to an hour", link.rtt_ms)));
    }
    if let Some(rate) = link.rate_mbit.filter(|r| !r.is_finite() || *r <= 0.0) {
        return Err(LabError::Scenario(format!("link.rate_mbit = {rate}: a rate is above 0")));
    }
    for (name, d) in [("link.up", &link.up), ("link.down", &link.down)] {
        each(name, d)?;
        for hop in &d.hops {
            each(&format!("{name}.hops"), hop)?;
            if !hop.hops.is_empty() {
                return Err(LabError::Scenario(format!("{name}.hops: a hop has no hops of its own")));
            }
        }
    }
    Ok(())
}

fn check_workload(w: &Workload) -> Result<(), LabError> {
    w.check().map_err(LabError::Scenario)
}

impl Workload {
    fn check(&self) -> Result<(), String> {
        if self.requests == 0 || self.connections == 0 {
            return Err("workload: requests and connections are at least 1".into());
        }
        if meant::workload(self).totals() == [0, 0] {
            return Err("workload: neither request nor response".into());
        }
        Ok(())
    }
}

impl Expect {
    fn check(&self, names: &Names) -> Result<(), LabError> {
        let stated = [&self.published, &self.theory];
        let formulas =
            stated.into_iter().flatten().filter_map(|s| s.value.as_ref()).chain(&self.value).chain(&self.or);
        for formula in formulas {
            formula
                .value(names)
                .map_err(|why| LabError::Scenario(format!("expect: formula \"{formula}\": {why}")))?;
        }
        if let Some(control) = &self.control {
            let mut names = names.clone();
            names.insert("measured", 0.0);
            let formula = &control.value;
            formula
                .value(&names)
                .map_err(|why| LabError::Scenario(format!("expect.control: formula \"{formula}\": {why}")))?;
            if self.deviation.is_none() {
                return Err(LabError::Scenario(
                    "expect.control checks a deviation, and there is none".into(),
                ));
            }
        }
        if !(0.0..=10.0).contains(&self.tolerance) {
            return Err(LabError::Scenario(format!(
                "expect.tolerance = {}: a share, such as 0.1",
                self.tolerance
            )));
        }
        Ok(())
    }
}

pub(crate) fn put(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), LabError> {
    match path.split_once('.') {
        // The name of a sysctl has points itself.
        Some((key, rest)) if key != "sysctl" => {
            let inner = table.entry(key).or_insert_with(|| toml::Table::new().into());
            let inner = inner
                .as_table_mut()
                .ok_or_else(|| LabError::Scenario(format!("--set {path}: {key} has no keys")))?;
            put(inner, rest, value)
        }
        Some((key, name)) => {
            let inner = table.entry(key).or_insert_with(|| toml::Table::new().into());
            inner.as_table_mut().map(|t| t.insert(name.to_owned(), value));
            Ok(())
        }
        None => {
            table.insert(path.to_owned(), value);
            Ok(())
        }
    }
}

/// One line: where, what, and the known key that is nearest to an unknown one.
fn wrong(e: &toml::de::Error, text: &str) -> LabError {
    let place =
        e.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    let place = place.map(|line| format!("line {line}: ")).unwrap_or_default();
    let message = e.message().lines().next().unwrap_or_default();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let message = match quoted.next().filter(|_| message.starts_with("unknown ")) {
        None => message.to_owned(),
        Some(word) => {
            let known: Vec<&str> = quoted.collect();
            let small = word.to_lowercase();
            let nearest = known.iter().min_by_key(|k| distance(&small, k));
            match nearest {
                Some(near) if distance(&small, near) <= word.len().max(near.len()).div_ceil(2) => {
                    format!("{word:?} is not known here; did you mean {near:?}?")
                }
                _ => format!("{word:?} is not known here; known are {}", known.join(", ")),
            }
        }
    };
    LabError::Scenario(format!("{place}{message}"))
}

/// Letters to add, take away or change (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(60).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(60).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(0);
            let cost = (diagonal + usize::from(x != y)).min(above + 1).min(left + 1);
            if let Some(cell) = row.get_mut(j) {
                *cell = left;
            }
            diagonal = above;
            left = cost;
        }
        if let Some(cell) = row.last_mut() {
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::{Nanos, Step, What};

    const SMALL: &str =
        "title = 't'\n[workload]\nrequest = [200, { pause_ms = 41 }, 800]\nresponse = [1000]\n";

    /// As it was written, and in JSON as a run keeps it, with all that was left out.
    #[test]
    fn a_kept_scenario_is_the_same() {
        for cell in crate::matrix::cells().unwrap() {
            let kept = serde_json::to_string(&cell.scenario).unwrap();
            let back: Scenario = serde_json::from_str(&kept).unwrap();
            assert_eq!(format!("{back:?}"), format!("{:?}", cell.scenario));
        }
        assert!(serde_json::from_str::<Scenario>("[]").is_err());
        let wrong = serde_json::from_str::<Scenario>(r#"{"title": "t", "nonsense": null, "lnk": 1}"#);
        assert!(wrong.unwrap_err().to_string().contains("\"lnk\" is not known here"));
    }

    #[test]
    fn writes_and_pauses() {
        let s = Scenario::parse(SMALL, &[]).unwrap();
        let pause = Step::Pause(Nanos::millis(41));
        assert_eq!(s.shared.workload.turns[0].request, [Step::Write(200), pause, Step::Write(800)]);
        assert_eq!(s.shared.hosts[0].stack.congestion, "cubic");
        let old = Scenario::parse(&SMALL.replace("{ pause_ms = 41 }", "0.041"), &[]).unwrap_err().to_string();
        assert!(old.contains("line 3: ") && old.contains("{ pause_ms = 41 }"), "{old}");
    }

    #[test]
    fn unknown_keys_are_refused() {
        for text in ["link.rt_ms=5", "client.no_delay=true", "nonsense=1", "link.up.drop=1"] {
            assert!(Scenario::parse(SMALL, &[text.into()]).is_err(), "{text}");
        }
        assert!(Scenario::parse(SMALL, &["link.rtt_ms=5".into(), "client.nodelay=true".into()]).is_ok());
    }

    #[test]
    fn chosen_drops() {
        let text = format!("{SMALL}\n[[link.down.drops]]\nwhat = 'seq'\nat = 5\n");
        let s = Scenario::parse(&text, &[]).unwrap();
        assert!(matches!(
            s.shared.links[1].drops[..],
            [tcpwhy_base::Chosen { what: What::Seq { at: 5, copies: 1 }, connection: 0 }]
        ));
        assert!(Scenario::parse(&text.replace("'seq'", "'sec'"), &[]).is_err());
    }

    #[test]
    fn nobody_knows_the_last_byte_of_a_program() {
        let last = format!("{SMALL}\n[[link.up.drops]]\nwhat = 'last'\n");
        assert!(Scenario::parse(&last, &[]).is_ok());
        let said =
            Scenario::parse(&format!("{last}\n[programs]\nclient = 'true'\n"), &[]).unwrap_err().to_string();
        assert!(said.contains("what = \"last\""), "{said}");
    }

    #[test]
    fn a_sysctl_by_set() {
        let set = ["client.sysctl.net.ipv4.tcp_sack=0".to_owned()];
        let s = Scenario::parse(SMALL, &set).unwrap();
        assert_eq!(s.shared.hosts[0].stack.sysctl["net.ipv4.tcp_sack"].as_integer(), Some(0));
    }

    #[test]
    fn the_nearest_key_is_named() {
        for (wrong, near) in [("rt_ms = 5", "rtt_ms"), ("MTU = 9000", "mtu"), ("rate_mbits = 5", "rate_mbit")]
        {
            let text = format!("{SMALL}[link]\n{wrong}\n");
            let said = Scenario::parse(&text, &[]).unwrap_err().to_string();
            assert!(said.contains("line 6") && said.contains(&format!("did you mean {near:?}")), "{said}");
        }
        assert_eq!((distance("", "abc"), distance("abc", "abd"), distance("kitten", "sitting")), (3, 1, 3));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "link.rtt_ms=-1",
            "link.rate_mbit=0",
            "link.up.loss=1.5",
            "link.down.delay_ms=nan",
            "link.mtu=10",
            "workload.requests=0",
            "expect.measure=nothing",
            "connects.count=0",
            "link.up.hops=[{hops=[{}]}]",
        ] {
            assert!(Scenario::parse(SMALL, &[wrong.into()]).is_err(), "{wrong}");
        }
        let wrong = format!("{SMALL}[expect]\nmeasure = 'elapsed'\nvalue = 'rt + 1'\n");
        assert!(Scenario::parse(&wrong, &[]).unwrap_err().to_string().contains("rt stands for nothing"));
    }
}
