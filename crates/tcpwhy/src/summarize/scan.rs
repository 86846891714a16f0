//! A file of a table to sums.

use super::{Group, Part, Server, Slow, Summary};
use std::collections::HashMap;
use std::sync::Arc;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_tables::{Column, Error, Reader, Table, Values, Words};

/// What one worker has summed up.
pub(super) struct Scan {
    pub(super) summary: Summary,
    top: usize,
    names: HashMap<Box<str>, Arc<str>>,
}

/// The number of a row, 0 where there is none.
fn numbers(column: &Column) -> &[i64] {
    match &column.values {
        Values::Numbers(list) => list,
        _ => &[],
    }
}

fn texts(column: &Column) -> Option<(&[u32], &Words)> {
    match &column.values {
        Values::Texts(list, words) => Some((list, words)),
        _ => None,
    }
}

impl Scan {
    pub(super) fn new(top: usize) -> Scan {
        Scan { summary: Summary::default(), top, names: HashMap::new() }
    }

    /// Each text once.
    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(name) = self.names.get(text) {
            return Arc::clone(name);
        }
        let name: Arc<str> = text.into();
        self.names.insert(text.into(), Arc::clone(&name));
        name
    }

    /// Adds a file.
    pub(super) fn file(&mut self, file: &Part) -> Result<(), Error> {
        let reader = Reader::open(&file.path, file.table)?;
        let mut day = Group::default();
        for group in 0..reader.groups() {
            match file.table {
                Table::Connections => self.connections(&reader, group, &mut day)?,
                Table::Exchanges => self.exchanges(&reader, group, &mut day)?,
                _ => self.spans(&reader, group, &mut day)?,
            }
        }
        self.summary.all.add(&day);
        self.summary.days.entry(file.day.clone()).or_default().add(&day);
        Ok(())
    }

    /// For each row the place of its server in the list.
    fn servers(&mut self, ip: &Column, port: &Column) -> (Vec<Server>, Vec<usize>) {
        let Some((list, words)) = texts(ip) else { return Default::default() };
        let names: Vec<Arc<str>> = words.list().iter().map(|w| self.name(w)).collect();
        let (mut servers, mut places) = (Vec::new(), HashMap::new());
        let rows = list.iter().zip(numbers(port)).map(|(&word, &port)| {
            *places.entry((word, port)).or_insert_with(|| {
                servers.push((Arc::clone(&names[word as usize]), port as u16));
                servers.len() - 1
            })
        });
        let rows = rows.collect();
        (servers, rows)
    }

    fn give(&mut self, servers: Vec<Server>, groups: Vec<Group>, day: &mut Group) {
        for (server, group) in servers.into_iter().zip(groups) {
            day.add(&group);
            self.summary.servers.entry(server).or_default().add(&group);
        }
    }

    fn connections(&mut self, reader: &Reader, group: usize, day: &mut Group) -> Result<(), Error> {
        let [capture, ip, port] = reader.columns(group, ["capture", "server_ip", "server_port"])?;
        if let Some((_, words)) = texts(&capture) {
            let names: Vec<Arc<str>> = words.list().iter().map(|w| self.name(w)).collect();
            self.summary.captures.extend(names);
        }
        let (servers, rows) = self.servers(&ip, &port);
        let mut groups = vec![Group::default(); servers.len()];
        rows.iter().for_each(|&at| groups[at].connections += 1);
        self.give(servers, groups, day);
        Ok(())
    }

    fn exchanges(&mut self, reader: &Reader, group: usize, day: &mut Group) -> Result<(), Error> {
        let names = ["start", "duration_ns", "capture", "connection", "exchange", "server_ip", "server_port"];
        let [start, duration, capture, connection, exchange, ip, port] = reader.columns(group, names)?;
        let (servers, rows) = self.servers(&ip, &port);
        let mut groups = vec![Group::default(); servers.len()];
        let Some((captures, words)) = texts(&capture) else { return Ok(()) };
        let (starts, connections, exchanges) = (numbers(&start), numbers(&connection), numbers(&exchange));
        for (row, (&at, &duration)) in rows.iter().zip(numbers(&duration)).enumerate() {
            let duration = Nanos(duration);
            groups[at].times.add(duration, std::iter::empty());
            let worst = &self.summary.worst;
            if worst.len() < self.top || worst.last().is_some_and(|least| duration >= least.duration) {
                let capture = self.name(words.get(captures[row]));
                self.summary.worst.push(Slow {
                    duration,
                    start: Nanos(starts[row]),
                    capture,
                    connection: connections[row],
                    exchange: exchanges[row],
                    server: servers[at].clone(),
                    most: None,
                });
                self.summary.keep(self.top);
            }
        }
        self.give(servers, groups, day);
        Ok(())
    }

    fn spans(&mut self, reader: &Reader, group: usize, day: &mut Group) -> Result<(), Error> {
        let [cause, part, duration, ip, port] =
            reader.columns(group, ["cause", "part", "duration_ns", "server_ip", "server_port"])?;
        let (servers, rows) = self.servers(&ip, &port);
        let mut groups = vec![Group::default(); servers.len()];
        let (Some((causes, cause_words)), Some((parts, part_words))) = (texts(&cause), texts(&part)) else {
            return Ok(());
        };
        // A cause that this program does not know is one of a later version: it counts as not explained.
        let known: Vec<Cause> =
            cause_words.list().iter().map(|id| Cause::from_id(id).unwrap_or(Cause::Unexplained)).collect();
        for (row, (&at, &duration)) in rows.iter().zip(numbers(&duration)).enumerate() {
            let cause = known[causes[row] as usize];
            let to = match part_words.get(parts[row]) {
                "after" => continue,
                "gap" => &mut groups[at].idle,
                _ => &mut groups[at].requests,
            };
            *to.entry(cause).or_default() += Nanos(duration);
        }
        self.give(servers, groups, day);
        Ok(())
    }
}

/// Looks up what most of the slowest exchanges went into, in the files that may hold their spans. What cannot
/// be read was said before.
pub(super) fn say_most(slow: &mut [Slow], files: &[Part]) {
    let mut sums: HashMap<(usize, Cause), Nanos> = HashMap::new();
    let (Some(first), Some(last)) =
        (slow.iter().map(|s| s.start).min(), slow.iter().map(|s| s.start + s.duration).max())
    else {
        return;
    };
    for file in files.iter().filter(|f| f.table == Table::Spans) {
        let Ok(reader) = Reader::open(&file.path, file.table) else { continue };
        for group in 0..reader.groups() {
            let Ok([start]) = reader.columns(group, ["start"]) else { continue };
            let range = (numbers(&start).iter().min().copied(), numbers(&start).iter().max().copied());
            if range.0.is_none_or(|t| t > last.0) || range.1.is_none_or(|t| t < first.0) {
                continue;
            }
            let _ = most_of(&reader, group, slow, &mut sums);
        }
    }
    for (i, one) in slow.iter_mut().enumerate() {
        let of = sums.iter().filter(|((at, _), _)| *at == i);
        one.most = of
            .map(|(&(_, cause), &time)| (cause, time))
            .max_by_key(|&(cause, time)| (time, std::cmp::Reverse(cause)));
    }
}

fn most_of(
    reader: &Reader,
    group: usize,
    slow: &[Slow],
    sums: &mut HashMap<(usize, Cause), Nanos>,
) -> Result<(), Error> {
    let names = ["capture", "connection", "exchange", "cause", "duration_ns"];
    let [capture, connection, exchange, cause, duration] = reader.columns(group, names)?;
    let (Some((captures, names)), Some((causes, ids))) = (texts(&capture), texts(&cause)) else {
        return Ok(());
    };
    let wanted: HashMap<(&str, i64, i64), usize> =
        slow.iter().enumerate().map(|(i, s)| ((&*s.capture, s.connection, s.exchange), i)).collect();
    let mut there = numbers(&exchange).iter();
    let present = exchange.present.as_deref().unwrap_or_default();
    for (row, &duration) in numbers(&duration).iter().enumerate() {
        let exchange = if present.get(row).copied().unwrap_or(true) { there.next() } else { None };
        let Some(&exchange) = exchange else { continue };
        let key = (names.get(captures[row]), numbers(&connection)[row], exchange);
        if let Some(&at) = wanted.get(&key) {
            let cause = Cause::from_id(ids.get(causes[row])).unwrap_or(Cause::Unexplained);
            *sums.entry((at, cause)).or_default() += Nanos(duration);
        }
    }
    Ok(())
}
