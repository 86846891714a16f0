//! The run: events in order of time, hosts and links between them.

use crate::agenda::{Agenda, Event};
use crate::app::{App, Blocked, Note};
use crate::link::Pipe;
use crate::packet::{HEADERS, Packet, Passage};
use crate::scenario::{Impossible, Scenario, check};
use crate::socket::{Socket, State};
use tcpwhy_base::{Nanos, Random};

/// Events of a run without another limit: enough for the largest message. What is kept of a run grows with them, about
/// 0.1 KB each.
pub const MAX_EVENTS: u64 = 4_000_000;

/// A run starts here, so that no time stamp is zero.
const START: Nanos = Nanos(1);

/// A turn as the client's application saw it (one-way up: as the server's did).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Which connection, from 0.
    pub conn: u32,
    /// Which turn of it, from 0, setup turns included.
    pub turn: u32,
    /// The first write was called (the server speaks first: the first read).
    pub start: Nanos,
    /// The last read returned; none: the run ended before.
    pub end: Option<Nanos>,
}

/// One connection of a run.
#[derive(Clone, Debug)]
pub struct Connected {
    /// `connect` was called.
    pub start: Nanos,
    /// `connect` returned; none: never, or with an error.
    pub connected: Option<Nanos>,
    /// Bytes of payload per segment.
    pub mss: u64,
    /// Window scales of client and server.
    pub wscale: [u8; 2],
    /// Client and server gave up, or were reset.
    pub dead: bool,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Connections in the order of their SYNs.
    pub connections: Vec<Connected>,
    /// Every turn, in the order of their beginnings.
    pub turns: Vec<Served>,
    /// Every packet, in the order in which they left their hosts.
    pub passages: Vec<Passage>,
    /// From the first `connect` to the last byte that an application read.
    pub elapsed: Nanos,
    /// The limit of time or events ended the run.
    pub cut_off: bool,
    /// Events it took.
    pub events: u64,
}

impl Outcome {
    /// Every turn was completed.
    pub fn complete(&self) -> bool {
        !self.cut_off && !self.turns.is_empty() && self.turns.iter().all(|t| t.end.is_some())
    }
}

struct Conn {
    sockets: [Socket; 2],
    apps: [App; 2],
    armed: [Option<Nanos>; 2],
    app_at: [Option<Nanos>; 2],
    process: u32,
    start: Nanos,
    connected: Option<Nanos>,
    over: [bool; 2],
}

struct Process {
    left: u32,
}

struct Sim<'a> {
    scenario: &'a Scenario,
    now: Nanos,
    agenda: Agenda,
    conns: Vec<Conn>,
    processes: Vec<Process>,
    pipes: [Pipe; 2],
    /// Connections that wait for `accept`, and whether the server is about to accept.
    accept_queue: Vec<u32>,
    /// Connections that wait for the last packet of the handshake, those with a cookie left out.
    half_open: u32,
    accepting: bool,
    accept_from: Nanos,
    passages: Vec<Passage>,
    turns: Vec<Served>,
    notes: Vec<Note>,
    last_read: Nanos,
    open: u32,
    /// Where each host's wake-ups are drawn from.
    chances: [Option<Random>; 2],
}

/// Runs a scenario to its end.
pub fn run(scenario: &Scenario) -> Result<Outcome, Impossible> {
    run_within(scenario, MAX_EVENTS)
}

/// Runs a scenario to its end, or to the last of so many events.
pub(crate) fn run_within(scenario: &Scenario, max_events: u64) -> Result<Outcome, Impossible> {
    check(scenario)?;
    let mut sim = Sim::new(scenario);
    sim.passages.reserve(packets_expected(scenario, max_events));
    let mut events = 0;
    let mut cut_off = false;
    while let Some((at, event)) = sim.agenda.next() {
        if at > scenario.limit + START || events >= max_events {
            cut_off = true;
            break;
        }
        events += 1;
        sim.now = at;
        sim.handle(event);
        if sim.open == 0 && sim.processes.iter().all(|p| p.left == 0) {
            break;
        }
    }
    Ok(sim.outcome(cut_off, events))
}

/// About so many packets pass: a segment for each MSS and an ACK for every second one, and some more. A list
/// that doubles would be moved again and again, both times in memory.
fn packets_expected(scenario: &Scenario, max_events: u64) -> usize {
    /// A hundred megabytes, of which only what is written to is taken.
    const MOST: u64 = 600_000;
    let bytes = scenario.workload.totals().iter().fold(0_u64, |sum, &bytes| sum.saturating_add(bytes));
    let segments =
        bytes.saturating_mul(scenario.connections.into()) / scenario.mtu.saturating_sub(HEADERS).max(1);
    (segments.saturating_mul(13) / 8).min(max_events).min(MOST) as usize
}

impl<'a> Sim<'a> {
    fn new(scenario: &'a Scenario) -> Sim<'a> {
        let w = &scenario.workload;
        let totals = w.totals();
        let shared = scenario.connections > 1;
        let pipe = |i: usize, salt: u64| {
            Pipe::new(&scenario.links[i], scenario.mtu, scenario.seed ^ salt, totals[i], shared)
        };
        let mut sim = Sim {
            scenario,
            now: START,
            agenda: Agenda::default(),
            conns: Vec::new(),
            processes: (0..scenario.connections).map(|_| Process { left: w.requests }).collect(),
            pipes: [pipe(0, 0x5555), pipe(1, 0xaaaa_aaaa)],
            accept_queue: Vec::new(),
            half_open: 0,
            accepting: false,
            accept_from: START + scenario.hosts[1].accept_start,
            passages: Vec::new(),
            turns: Vec::new(),
            notes: Vec::new(),
            last_read: START,
            open: 0,
            chances: [0, 1].map(|i| scenario.hosts[i].stack.chance.map(Random)),
        };
        for n in 0..scenario.connections {
            sim.at(START + scenario.stagger.times(i64::from(n)), Event::Connect { process: n });
        }
        sim
    }

    fn at(&mut self, time: Nanos, event: Event) {
        self.agenda.put(time.max(self.now), event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Connect { process } => self.connect(process),
            Event::Accept => self.accept(),
            Event::Arrive { passage, to } => {
                let Some(&Passage { packet, .. }) = self.passages.get(passage as usize) else { return };
                self.arrive(&packet, usize::from(to));
            }
            Event::Timer { conn, side } => {
                let side = usize::from(side);
                let now = self.now;
                let Some(c) = self.conns.get_mut(conn as usize) else { return };
                if c.armed[side].is_some_and(|t| t <= now) {
                    c.armed[side] = None;
                }
                let s = &mut c.sockets[side];
                let waited = s.state == State::SynReceived;
                if s.deadline().is_some_and(|t| t <= now) {
                    s.on_timer(now);
                }
                self.half_open -= u32::from(waited && s.state == State::Dead);
                self.settle(conn, side);
            }
            Event::App { conn, side } => {
                let side = usize::from(side);
                let now = self.now;
                let Some(c) = self.conns.get_mut(conn as usize) else { return };
                if c.app_at[side].is_some_and(|t| t <= now) {
                    c.app_at[side] = None;
                    self.run_app(conn, side);
                }
            }
        }
    }

    fn connect(&mut self, process: u32) {
        let s = self.scenario;
        let Some(p) = self.processes.get_mut(process as usize) else { return };
        let each = s.workload.requests_each().max(1);
        let requests = p.left.min(each);
        if requests == 0 {
            return;
        }
        p.left -= requests;
        let conn = self.conns.len() as u32;
        let socket = |side: usize| Socket::new(&s.hosts[side], conn, side as u8, s.mtu);
        let app = |server| App::new(&s.workload, server, requests);
        let mut c = Conn {
            sockets: [socket(0), socket(1)],
            apps: [app(false), app(true)],
            armed: [None; 2],
            app_at: [None; 2],
            process,
            start: self.now,
            connected: None,
            over: [false; 2],
        };
        c.sockets[0].connect(self.now);
        self.conns.push(c);
        self.open += 1;
        self.settle(conn, 0);
    }

    fn accept_limit(&self) -> u32 {
        let host = &self.scenario.hosts[1];
        host.backlog.min(host.stack.profile.somaxconn)
    }

    /// The queue holds one more than its limit (`sk_acceptq_is_full`).
    fn queue_full(&self) -> bool {
        self.accept_queue.len() as u32 > self.accept_limit()
    }

    fn arrive(&mut self, packet: &Packet, to: usize) {
        let now = self.now;
        let id = packet.conn;
        let server = &self.scenario.hosts[1].stack.profile;
        let (drops_syn, abort) = (server.drops_syn_when_full, server.abort_on_overflow);
        let full = self.queue_full();
        // The SYN queue has the same limit (`inet_csk_reqsk_queue_is_full`).
        let cookie = self.half_open > self.accept_limit();
        let no_answer = cookie && !server.syncookies;
        let Some(c) = self.conns.get_mut(id as usize) else { return };
        let s = &mut c.sockets[to];
        match (s.state, to) {
            (State::Closed, 1) if packet.syn => {
                if full && drops_syn || no_answer {
                    return;
                }
                s.accept_syn(now, packet, cookie);
                self.half_open += u32::from(!cookie);
            }
            (State::SynReceived, 1) if packet.syn => s.accept_syn(now, packet, cookie),
            (State::SynReceived, 1) if packet.has_ack && packet.ack >= 1 => {
                let known = !s.cookie;
                if full {
                    if abort && known {
                        self.half_open -= 1;
                        s.die();
                        let reset = Packet { conn: id, from: 1, seq: 1, rst: true, ..Packet::default() };
                        s.out.push(reset);
                        self.settle(id, to);
                    }
                    return;
                }
                s.on_third(now, packet);
                self.half_open -= u32::from(known);
                self.accept_queue.push(id);
                self.start_accepting();
                if let Some(c) = self.conns.get_mut(id as usize) {
                    c.sockets[to].input(now, packet);
                }
            }
            (State::SynSent, 0) if packet.rst => s.die(),
            (State::SynSent, 0) if packet.syn && packet.has_ack => {
                s.on_synack(now, packet);
                c.connected = Some(now);
                c.apps[0].started = true;
                self.wake_app(id, 0, Nanos::ZERO);
            }
            (State::Established, 0) if packet.syn => s.on_synack(now, packet),
            (State::Established, _) => s.input(now, packet),
            _ => return,
        }
        self.settle(id, to);
    }

    fn start_accepting(&mut self) {
        if !self.accepting && !self.accept_queue.is_empty() {
            self.accepting = true;
            let host = &self.scenario.hosts[1];
            let at = (self.now + host.stack.wake).max(self.accept_from);
            self.at(at, Event::Accept);
        }
    }

    fn accept(&mut self) {
        self.accepting = false;
        if self.accept_queue.is_empty() {
            return;
        }
        let id = self.accept_queue.remove(0);
        self.accept_from = self.now + self.scenario.hosts[1].accept_delay;
        if let Some(c) = self.conns.get_mut(id as usize) {
            c.apps[1].started = true;
        }
        self.run_app(id, 1);
        self.start_accepting();
    }

    fn wake_app(&mut self, conn: u32, side: usize, after: Nanos) {
        let at = self.now + after;
        let Some(c) = self.conns.get_mut(conn as usize) else { return };
        if c.app_at[side].is_none_or(|t| t > at) {
            c.app_at[side] = Some(at);
            self.at(at, Event::App { conn, side: side as u8 });
        }
    }

    fn run_app(&mut self, conn: u32, side: usize) {
        let now = self.now;
        let s = self.scenario;
        let mut notes = std::mem::take(&mut self.notes);
        let Some(c) = self.conns.get_mut(conn as usize) else { return };
        let before = c.sockets[side].copied();
        c.apps[side].run(now, &mut c.sockets[side], &s.hosts[side], &s.workload, &mut notes);
        if c.sockets[side].copied() > before {
            self.last_read = now;
        }
        if let Blocked::Until(at) = c.apps[side].blocked {
            c.app_at[side] = Some(at);
            self.at(at, Event::App { conn, side: side as u8 });
        }
        for note in notes.drain(..) {
            match note {
                Note::Begin(turn) => self.turns.push(Served { conn, turn, start: now - START, end: None }),
                Note::End(turn) => {
                    let ended = |t: &&mut Served| t.conn == conn && t.turn == turn;
                    if let Some(t) = self.turns.iter_mut().rev().find(ended) {
                        t.end = t.end.or(Some(now - START));
                    }
                }
                Note::Done => {}
            }
        }
        self.notes = notes;
        self.settle(conn, side);
    }

    /// After a socket was touched: its packets go out, its timer is set, its application wakes.
    fn settle(&mut self, conn: u32, side: usize) {
        let now = self.now;
        let Some(c) = self.conns.get_mut(conn as usize) else { return };
        let mut out = std::mem::take(&mut c.sockets[side].out);
        for packet in out.drain(..) {
            let (passage, twice) = self.pipes[side].take(packet, now);
            let arrival = Event::Arrive { passage: self.passages.len() as u32, to: 1 - side as u8 };
            for at in passage.arrived.into_iter().cycle().take(1 + usize::from(twice)) {
                self.at(at, arrival);
            }
            let zero = |t: Nanos| t - START;
            self.passages.push(Passage {
                sent: zero(passage.sent),
                arrived: passage.arrived.map(zero),
                drained: zero(passage.drained),
                ..passage
            });
        }
        let Some(c) = self.conns.get_mut(conn as usize) else { return };
        let s = &mut c.sockets[side];
        s.out = out;
        if let Some(at) = s.deadline()
            && c.armed[side].is_none_or(|t| t > at)
        {
            c.armed[side] = Some(at);
            self.at(at, Event::Timer { conn, side: side as u8 });
        }
        self.rouse(conn, side);
    }

    /// How long this wake-up takes.
    fn wake(&mut self, side: usize) -> Nanos {
        let wake = self.scenario.hosts[side].stack.wake;
        match &mut self.chances[side] {
            Some(random) => wake.part(2) + Nanos(random.below(wake.0.max(0) as u64 + 1) as i64),
            None => wake,
        }
    }

    /// Wakes an application whose socket is ready, and notices ends.
    fn rouse(&mut self, conn: u32, side: usize) {
        let Some(c) = self.conns.get_mut(conn as usize) else { return };
        let s = &c.sockets[side];
        let app = &c.apps[side];
        let ready = match app.blocked {
            Blocked::Reading => {
                let (bytes, fin) = s.readable();
                bytes > 0 || fin
            }
            Blocked::Writing => s.writer_woken,
            Blocked::No | Blocked::Until(_) | Blocked::Over => false,
        };
        let ready = ready && app.started && s.state != State::Dead;
        let over = app.blocked == Blocked::Over || s.state == State::Dead;
        if over && !c.over[side] {
            c.over[side] = true;
            if side == 0 {
                self.open -= 1;
                let process = c.process;
                let more = self.processes.get(process as usize).is_some_and(|p| p.left > 0);
                let dead = self.conns.get(conn as usize).is_some_and(|c| c.sockets[0].state == State::Dead);
                if more && !dead {
                    let before = self.scenario.workload.turn(self.scenario.workload.repeat_from);
                    let gap = before.map_or(Nanos::ZERO, |t| t.before);
                    self.at(self.now + gap, Event::Connect { process });
                } else if let Some(p) = self.processes.get_mut(process as usize) {
                    p.left = 0;
                }
            }
        }
        // One that is about to run is not woken again.
        if ready && self.conns.get(conn as usize).is_some_and(|c| c.app_at[side].is_none()) {
            let wake = self.wake(side);
            self.wake_app(conn, side, wake);
        }
    }

    fn outcome(self, cut_off: bool, events: u64) -> Outcome {
        let connections = self
            .conns
            .iter()
            .map(|c| Connected {
                start: c.start - START,
                connected: c.connected.map(|t| t - START),
                mss: c.sockets[0].mtu_mss.min(c.sockets[1].mtu_mss),
                wscale: [c.sockets[0].wscale(), c.sockets[1].wscale()],
                dead: c.sockets.iter().any(|s| s.state == State::Dead),
            })
            .collect();
        Outcome {
            connections,
            turns: self.turns,
            passages: self.passages,
            elapsed: self.last_read - START,
            cut_off,
            events,
        }
    }
}
