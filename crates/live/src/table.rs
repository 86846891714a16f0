//! All connections of a host, fed with lists of its sockets.

use crate::connection::{Connection, Known, Role};
use crate::facts::Facts;
use crate::hint;
use crate::losses::Ended;
use crate::sample::{Process, Sample, State};
use hashbrown::{HashMap, HashSet};
use std::net::IpAddr;
use tcpwhy_base::{Endpoint, Nanos};

/// A listener.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Where it listens.
    pub local: Endpoint,
    /// Connections that nobody has accepted.
    pub queue: u32,
    /// How many it may keep: the smaller of what `listen()` asked for and `net.core.somaxconn`.
    pub backlog: u32,
    /// SYNs and connections that it dropped, as its socket counts them.
    pub drops: u32,
    /// Which file.
    pub inode: u32,
    /// Whose it is, if that can be seen.
    pub process: Option<Process>,
    /// The most that ever waited since it is looked at.
    pub most: u32,
}

impl Listener {
    /// One more than the backlog fits (`sk_acceptq_is_full`).
    pub fn is_full(&self) -> bool {
        self.queue > self.backlog
    }
}

/// What is known at the end of an interval.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When it ended, on the clock of [`Table::feed`].
    pub time: Nanos,
    /// How long the interval was.
    pub interval: Nanos,
    /// How long sockets have been looked at.
    pub watched: Nanos,
    /// How often, in the interval.
    pub samples: u32,
    /// The worst first: by what they lost in the interval, then in all, then by how long they were busy.
    pub connections: Vec<Connection>,
    /// Those that ended in it, where they were counted.
    pub ended: Ended,
    /// The fullest first.
    pub listeners: Vec<Listener>,
    /// Threads inside a call, where that was looked for.
    pub stuck: Vec<crate::Stuck>,
}

/// All connections of a host.
#[derive(Debug, Default)]
pub struct Table {
    connections: HashMap<u64, Connection>,
    listeners: HashMap<u64, Listener>,
    ended: Vec<Connection>,
    /// Where an accept queue was full at the last look.
    full: Ports,
    last: Option<Nanos>,
    marked: Nanos,
    first: Nanos,
    samples: u32,
    /// Events of single writes and reads are not listened to.
    rests: bool,
    /// Something waited that events would tell more of.
    hint: bool,
}

impl Table {
    /// Takes a list of all sockets, as it was at `time` on any clock that does not jump.
    pub fn feed(&mut self, sockets: &[Sample], time: Nanos) {
        let elapsed = self.last.map(|last| (time - last).floor0());
        if elapsed.is_none() {
            (self.first, self.marked) = (time, time);
        }
        let listening = listening(sockets);
        self.connections.values_mut().for_each(Connection::awaits_look);
        self.keep_listeners(sockets);
        // Two looks: a queue that is full for a moment drops nothing.
        let full = std::mem::replace(&mut self.full, full(sockets));
        let stays_full =
            |s: &Sample| s.state == State::SynReceived && is_at(&full, s.local) && is_at(&self.full, s.local);
        // Here, too, it has to last: what a reader is about to read is no wait.
        let lags = |s: &&Sample| {
            let before = self.connections.get(&s.cookie).is_some_and(|c| has_more_unread(&c.sample));
            before && has_more_unread(s)
        };
        let unread: HashSet<(Endpoint, Endpoint)> =
            sockets.iter().filter(lags).map(|s| (s.local, s.peer)).collect();
        let awaited = self.connections.values().filter(|c| c.is_awaited());
        let awaited: HashSet<_> = awaited.map(|c| (c.sample.local, c.sample.peer)).collect();
        for s in sockets.iter().filter(|s| is_connection(s)) {
            match self.connections.get_mut(&s.cookie) {
                // Listed twice: the list changed while the kernel made it.
                Some(c) if c.is_looked_at() => {}
                Some(c) => {
                    self.hint |= hint::is_worth_listening(&c.sample, s);
                    c.rests = self.rests;
                    let other = (s.peer, s.local);
                    let known = Known {
                        queue_full: stays_full(s),
                        peer_unread: unread.contains(&other),
                        peer_reads: awaited.contains(&other),
                    };
                    c.observe(s, elapsed.unwrap_or_default(), known);
                }
                None => {
                    let role = role(s, &listening);
                    self.connections.insert(s.cookie, Connection::new(s.clone(), role, elapsed.is_some()));
                }
            }
        }
        // What is not listed may be gone, or have been passed over, as its bucket changed.
        let closed: HashSet<u64> = sockets.iter().filter(|s| !is_connection(s)).map(|s| s.cookie).collect();
        let is_over =
            |cookie: &u64, c: &mut Connection| c.is_gone() || !c.is_looked_at() && closed.contains(cookie);
        let over = self.connections.extract_if(is_over).map(|(_, mut c)| {
            c.ended = true;
            c
        });
        self.ended.extend(over);
        let passed_over = self.connections.values_mut().filter(|c| !c.is_looked_at());
        passed_over.for_each(|c| c.is_passed_over(elapsed.unwrap_or_default()));
        self.last = Some(time);
        self.samples += 1;
    }

    fn keep_listeners(&mut self, sockets: &[Sample]) {
        let mut before = std::mem::take(&mut self.listeners);
        for s in sockets.iter().filter(|s| s.state == State::Listen) {
            let old = before.remove(&s.cookie);
            let listener = Listener {
                local: s.local,
                queue: s.rqueue,
                backlog: s.wqueue,
                drops: s.memory.map_or(0, |m| m.drops),
                inode: s.inode,
                most: old.as_ref().map_or(0, |o| o.most).max(s.rqueue),
                process: old.and_then(|o| o.process),
            };
            self.listeners.insert(s.cookie, listener);
        }
    }

    /// Inodes of sockets, to look for their processes.
    pub fn inodes(&self) -> impl Iterator<Item = u32> {
        let connections = self.connections.values().map(|c| c.sample.inode);
        connections.chain(self.listeners.values().map(|l| l.inode))
    }

    /// Says whose sockets they are. What was known stays: a process may be gone before its connection.
    pub fn name(&mut self, of: impl Fn(u32) -> Option<Process>) {
        for c in self.connections.values_mut() {
            c.process = of(c.sample.inode).or(c.process.take());
        }
        for l in self.listeners.values_mut() {
            l.process = of(l.inode).or(l.process.take());
        }
    }

    /// Sockets on which nothing is under way and nothing unread: who reads there waits for the other end.
    pub fn quiet(&self) -> impl Iterator<Item = u32> {
        let quiet = self.connections.values().map(|c| &c.sample).filter(|s| s.wqueue == 0 && s.rqueue == 0);
        quiet.map(|s| s.inode).filter(|&inode| inode != 0)
    }

    /// Takes, before the sockets of a look, which of them threads sit reading from, by inode
    /// ([`crate::Threads::reading`]).
    pub fn readers(&mut self, reading: &HashMap<u32, bool>) {
        if reading.is_empty() {
            return;
        }
        for c in self.connections.values_mut() {
            if let Some(&reads) = reading.get(&c.sample.inode) {
                c.is_read(reads);
            }
        }
    }

    /// Sockets, with their processes, of which nothing but the calls of their threads can tell whose turn it is.
    pub fn in_doubt(&self) -> impl Iterator<Item = (u32, u32)> {
        let unsure = self.connections.values().filter(|c| c.sample.inode != 0 && c.is_unsure());
        unsure.filter_map(|c| Some((c.process.as_ref()?.pid, c.sample.inode)))
    }

    /// Takes, before an interval ends, sockets from which no thread waits for anything ([`crate::elsewhere`]).
    pub fn elsewhere(&mut self, inodes: &HashSet<u32>) {
        let them = self.connections.values_mut().filter(|c| inodes.contains(&c.sample.inode));
        them.for_each(Connection::is_elsewhere);
    }

    /// Whether something waited, since this was last asked, that events of single writes and reads would tell more of.
    pub fn take_hint(&mut self) -> bool {
        std::mem::take(&mut self.hint)
    }

    /// Events of single writes and reads are listened to from now on, or are not: until they are again, samples tell.
    pub fn listen(&mut self, on: bool) {
        self.rests = !on;
        if on {
            self.connections.values_mut().for_each(Connection::hear);
        }
    }

    /// Takes what kernel events say, by the cookies of sockets, before an interval ends. A socket of which
    /// nothing was heard has nothing to wait for that they show.
    pub fn witness(&mut self, facts: &HashMap<u64, Facts>) {
        self.connections
            .values_mut()
            .for_each(|c| c.witness(facts.get(&c.sample.cookie).copied().unwrap_or_default()));
    }

    /// Takes what kernel events say of connections that are gone, by the cookies of sockets, before they are taken.
    pub fn witness_ended(&mut self, facts: &HashMap<u64, Facts>) {
        for c in &mut self.ended {
            c.witness(facts.get(&c.sample.cookie).copied().unwrap_or_default());
        }
    }

    /// How many connections were gone, of those that [`Table::take_ended`] gives.
    pub fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Connections that were gone from the last lists, each once; their last interval ended with them.
    pub fn take_ended(&mut self) -> Vec<Connection> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.iter_mut().for_each(Connection::mark);
        ended
    }

    /// Ends an interval.
    pub fn interval(&mut self) -> Snapshot {
        self.connections.values_mut().for_each(Connection::mark);
        let now = self.last.unwrap_or_default();
        let mut connections: Vec<Connection> = self.connections.values().cloned().collect();
        worst_first(&mut connections);
        let mut listeners: Vec<Listener> = self.listeners.values().cloned().collect();
        listeners.sort_by_key(|l| (std::cmp::Reverse((l.is_full(), l.queue)), l.local));
        Snapshot {
            time: now,
            interval: now - std::mem::replace(&mut self.marked, now),
            watched: now - self.first,
            samples: std::mem::take(&mut self.samples),
            connections,
            ended: Ended::default(),
            listeners,
            stuck: Vec::new(),
        }
    }
}

/// By what they lost in the interval, then in all, then by how long they were busy.
pub fn worst_first(connections: &mut [Connection]) {
    let all_lost = |c: &Connection| c.total.time(|cause| cause.class() == tcpwhy_base::Class::Tcp);
    connections.sort_by_cached_key(|c| {
        let busy = c.interval.time(|cause| cause.owner() != tcpwhy_base::Owner::Application);
        (std::cmp::Reverse((c.lost(), all_lost(c), busy)), c.sample.local, c.sample.peer)
    });
}

/// Neither a listener, nor a connection that its program has closed and the other end has not: nobody waits for that.
fn is_connection(s: &Sample) -> bool {
    !matches!(s.state, State::Listen | State::TimeWait | State::Closed | State::FinWait2)
}

/// More lies unread than may still come.
fn has_more_unread(s: &Sample) -> bool {
    s.rqueue > 0 && s.info.and_then(|i| i.rcv_wnd).is_some_and(|window| s.rqueue >= window)
}

/// Ports of addresses; an unspecified address stands for all.
type Ports = HashSet<(Option<IpAddr>, u16)>;

/// Where somebody listens.
fn listening(sockets: &[Sample]) -> Ports {
    ports(sockets.iter().filter(|s| s.state == State::Listen))
}

/// Where somebody listens whose accept queue is full.
fn full(sockets: &[Sample]) -> Ports {
    ports(sockets.iter().filter(|s| s.state == State::Listen && s.rqueue > s.wqueue))
}

fn ports<'a>(listeners: impl Iterator<Item = &'a Sample>) -> Ports {
    listeners.map(|s| (Some(s.local.ip).filter(|ip| !ip.is_unspecified()), s.local.port)).collect()
}

fn is_at(ports: &Ports, e: Endpoint) -> bool {
    ports.contains(&(None, e.port)) || ports.contains(&(Some(e.ip), e.port))
}

/// Somebody listens where a server is. A listener may be gone; then the larger port is the client's, as the
/// kernel gives large ones to those who do not choose.
fn role(s: &Sample, listening: &Ports) -> Role {
    let listens = |e: Endpoint| is_at(listening, e);
    match s.state {
        State::SynSent => Role::Client,
        State::SynReceived => Role::Server,
        _ if listens(s.local) => Role::Server,
        _ if listens(s.peer) || s.local.port > s.peer.port => Role::Client,
        _ => Role::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Info;

    fn socket(cookie: u64, local: u16, peer: u16, state: State) -> Sample {
        Sample { cookie, state, inode: 1, info: Some(Info::default()), ..Sample::open(local, peer) }
    }

    #[test]
    fn connections_come_and_go() {
        let mut table = Table::default();
        let listener = socket(1, 80, 0, State::Listen);
        let (server, client) = (socket(2, 80, 9, State::Established), socket(3, 9, 80, State::Established));
        table.feed(&[listener.clone(), server.clone()], Nanos::ZERO);
        table.feed(&[listener.clone(), server, client], Nanos::millis(10));
        table.feed(std::slice::from_ref(&listener), Nanos::millis(20));
        table.feed(&[listener], Nanos::millis(30));
        let mut ended = table.take_ended();
        ended.sort_by_key(|c| c.sample.cookie);
        let what: Vec<_> = ended.iter().map(|c| (c.role, c.from_start, c.watched.0 / 1_000_000)).collect();
        assert_eq!(what, [(Role::Server, false, 10), (Role::Client, true, 0)]);
        let snapshot = table.interval();
        assert_eq!((snapshot.connections.len(), snapshot.listeners.len(), snapshot.samples), (0, 1, 4));
        assert_eq!((snapshot.interval, table.interval().interval), (Nanos::millis(30), Nanos::ZERO));
        assert!(table.take_ended().is_empty());
    }

    /// A process that dies between two looks: its connection, which the kernel still closes, keeps its name;
    /// one that was never seen has none.
    #[test]
    fn the_name_of_a_process_outlives_it() {
        let mut table = Table::default();
        let named = |inode| Sample { inode, ..socket(u64::from(inode), 9, 80, State::Established) };
        table.feed(&[named(5)], Nanos::ZERO);
        let process = Process { pid: 812, name: "client".into(), ..Process::default() };
        table.name(|inode| (inode == 5).then(|| process.clone()));
        // Nobody's any more.
        let left = Sample { inode: 0, state: State::LastAck, ..named(5) };
        table.feed(&[left, named(6)], Nanos::millis(10));
        table.name(|_| None);
        let names = |all: &[Connection]| -> Vec<_> {
            let mut all: Vec<_> = all.iter().map(|c| (c.sample.cookie, c.process.clone())).collect();
            all.sort_unstable();
            all
        };
        let expected = [(5, Some(process.clone())), (6, None)];
        assert_eq!(names(&table.interval().connections), expected);
        table.feed(&[], Nanos::millis(20));
        table.feed(&[], Nanos::millis(30));
        assert_eq!(names(&table.take_ended()), expected);
    }

    /// The kernel's list changes while it is made: a socket may stand in it twice, or not at all. What it had
    /// done before is not done again.
    #[test]
    fn a_list_may_name_a_socket_twice_or_pass_over_it() {
        let mut table = Table::default();
        let of = |total_retrans, state| Sample {
            info: Some(Info { total_retrans, ..Info::default() }),
            ..socket(2, 80, 9, state)
        };
        let open = |n| of(n, State::Established);
        table.feed(&[open(7)], Nanos::ZERO);
        table.feed(&[open(7), open(7)], Nanos::millis(10));
        table.feed(&[], Nanos::millis(20));
        assert!(table.take_ended().is_empty());
        table.feed(&[open(8)], Nanos::millis(30));
        let seen = table.interval().connections;
        assert_eq!((seen.len(), seen[0].watched, seen[0].sent_again), (1, Nanos::millis(30), 1));
        // Closed, it is listed as that.
        table.feed(&[of(8, State::FinWait2)], Nanos::millis(40));
        let ended = table.take_ended();
        assert_eq!((ended.len(), ended[0].watched), (1, Nanos::millis(30)));
    }

    #[test]
    fn one_more_than_the_backlog_fits() {
        let mut table = Table::default();
        let full = |queue| Sample { rqueue: queue, wqueue: 4, ..socket(1, 80, 0, State::Listen) };
        table.feed(&[full(5)], Nanos::ZERO);
        assert!(table.interval().listeners[0].is_full());
        table.feed(&[full(4)], Nanos::ZERO);
        let l = &table.interval().listeners[0];
        assert_eq!((l.is_full(), l.most), (false, 5));
    }

    /// Both ends are here: what one has not read is why the other one's window is closed, however small it
    /// was from the beginning.
    #[test]
    fn a_reader_on_this_host_is_asked_itself() {
        let causes = |unread: u32| {
            let mut table = Table::default();
            for n in 0..5 {
                let info = |rwnd, rcv_wnd| {
                    let time = Nanos::millis(20 * n);
                    let busy = if rwnd { time } else { Nanos::ZERO };
                    let windows = (Some(if rwnd { 2000 } else { 65_536 }), Some(rcv_wnd));
                    let (snd_wnd, rcv_wnd) = windows;
                    Some(Info {
                        busy,
                        rwnd_limited: busy,
                        snd_wnd,
                        rcv_wnd,
                        notsent: 9000,
                        ..Info::default()
                    })
                };
                let writer = Sample { info: info(true, 65_536), ..socket(1, 80, 4000, State::Established) };
                let reader = Sample {
                    info: info(false, 2000),
                    rqueue: unread,
                    ..socket(2, 4000, 80, State::Established)
                };
                table.feed(&[writer, reader], Nanos::millis(20 * n));
            }
            let all = table.interval().connections;
            let writer = all.iter().find(|c| c.sample.cookie == 1).unwrap();
            writer.interval.shares().iter().map(|s| (s.cause, s.time)).collect::<Vec<_>>()
        };
        let ms = Nanos::millis;
        // What lies there at the first of two looks is about to be read.
        assert_eq!(causes(5000), [(tcpwhy_base::Cause::SlowReader, ms(80))]);
        assert_eq!(causes(0), [(tcpwhy_base::Cause::ReceiveWindow, ms(80))]);
    }
}
