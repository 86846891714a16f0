//! What exchanges are called: from the first bytes of their requests, of which nothing else is kept.

use crate::{Met, Packet, marks};
use tcpwhy_analysis::{Analysis, Connection, Named};
use tcpwhy_base::name::{self, Naming};
use tcpwhy_base::{End, MOST_HEADERS, TraceParent};
use tcpwhy_capture::payload;

/// Looks at the packets of a second pass.
#[derive(Debug)]
pub struct Names<'a> {
    connections: &'a [Box<Connection>],
    states: Vec<State>,
    parents: bool,
}

/// Names that were found, for the analysis whose connections were looked at.
#[derive(Debug)]
pub struct Found(Vec<Vec<(usize, Named)>>);

/// Where a connection stands.
#[derive(Debug, Default)]
struct State {
    /// Place of the exchange that is now, or comes next.
    at: usize,
    /// Its request was looked at, or its response has begun.
    done: bool,
    request: Option<Box<Run>>,
    hello: Hello,
    found: Vec<(usize, Named)>,
}

#[derive(Debug, Default)]
enum Hello {
    #[default]
    Awaited,
    Begun(Box<Run>),
    None,
    Name(Box<str>),
}

/// Bytes in a row.
#[derive(Debug)]
struct Run {
    bytes: Vec<u8>,
    /// The sequence number after them.
    next: i64,
    /// No more were captured.
    cut: bool,
    named: Option<String>,
}

impl Run {
    fn new(packet: &Packet) -> Run {
        Run { bytes: Vec::new(), next: packet.seq, cut: false, named: None }
    }

    /// Takes what follows; `false` if something else does.
    fn take(&mut self, packet: &Packet, payload: &[u8]) -> bool {
        let follows = packet.seq == self.next && !self.cut;
        if follows {
            let room = MOST_HEADERS - self.bytes.len().min(MOST_HEADERS);
            let kept = payload.len().min(room);
            self.bytes.extend_from_slice(&payload[..kept]);
            self.cut = payload.len() < packet.len as usize || kept < payload.len();
            self.next = packet.seq + i64::from(packet.len);
        }
        follows
    }
}

impl<'a> Names<'a> {
    /// Among these; `parents`: look for `traceparent`, too.
    pub fn new(connections: &'a [Box<Connection>], parents: bool) -> Names<'a> {
        let states = connections.iter().map(|_| State::default()).collect();
        Names { connections, states, parents }
    }

    /// Looks at a packet.
    pub fn take(&mut self, met: &Met<'_>) {
        let Some((i, packet)) = &met.packet else { return };
        let (Some(c), Some(state)) = (self.connections.get(*i), self.states.get_mut(*i)) else { return };
        if packet.len == 0 || packet.marks & (marks::COPY | marks::RETRANSMITTED | marks::PROBE) != 0 {
            return;
        }
        let payload = payload(&met.frame).unwrap_or_default();
        if packet.from == End::Client {
            state.greet(packet, payload);
        }
        state.take(c, packet, payload, self.parents);
    }

    /// What was found. Below TLS exchanges are called as the server.
    pub fn finish(self) -> Found {
        let all = self.connections.iter().zip(self.states).map(|(c, mut state)| {
            if let Hello::Name(host) = state.hello {
                let name: Box<str> = format!("TLS {host}").into();
                let whole = Named { name, ..Named::default() };
                state.found = (0..c.exchanges.len()).map(|x| (x, whole.clone())).collect();
            }
            state.found
        });
        Found(all.collect())
    }
}

impl Found {
    /// Says it of the exchanges and the findings; without `names` only which spans of the application they belong to.
    pub fn tell(self, analysis: &mut Analysis, names: bool) {
        for (c, found) in analysis.connections.iter_mut().zip(self.0) {
            for (place, mut named) in found {
                if !names {
                    named = Named { parent: named.parent, ..Named::default() };
                }
                if let Some(x) = c.exchanges.get_mut(place) {
                    x.named = Some(Box::new(named));
                }
            }
        }
        analysis.name_findings();
    }
}

impl State {
    /// The first bytes of a client may be a ClientHello.
    fn greet(&mut self, packet: &Packet, payload: &[u8]) {
        let run = match &mut self.hello {
            hello @ Hello::Awaited => {
                *hello = Hello::Begun(Box::new(Run::new(packet)));
                let Hello::Begun(run) = hello else { return };
                run
            }
            Hello::Begun(run) => run,
            Hello::None | Hello::Name(_) => return,
        };
        if !run.take(packet, payload) {
            return;
        }
        match name::server_name(&run.bytes) {
            Naming::Name(name) => self.hello = Hello::Name(name.into()),
            Naming::More if !run.cut => {}
            Naming::More | Naming::None => self.hello = Hello::None,
        }
    }

    fn take(&mut self, c: &Connection, packet: &Packet, payload: &[u8], parents: bool) {
        while c.exchanges.get(self.at).is_some_and(|x| x.end < packet.time) {
            (self.at, self.done, self.request) = (self.at + 1, false, None);
        }
        let Some(x) = c.exchanges.get(self.at).filter(|x| x.start <= packet.time) else { return };
        if packet.from == End::Server {
            // What has no name by now gets none.
            if let Some(run) = self.request.take() {
                self.keep(*run, None);
            }
            self.done = true;
            let http = self.found.last().filter(|(at, _)| *at == self.at).is_some();
            if http && x.response_start.is_some_and(|t| t <= packet.time) {
                self.status(payload);
            }
            return;
        }
        if self.request.is_none() && !self.done && packet.time == x.start {
            self.request = Some(Box::new(Run::new(packet)));
        }
        let Some(run) = &mut self.request else { return };
        if !run.take(packet, payload) {
            return;
        }
        let program = c.ends[1].program.map(|p| p.0);
        if run.named.is_none() {
            run.named = match name::of_request(&run.bytes, program) {
                Naming::Name(name) => Some(name),
                Naming::More if run.cut => name::of_cut(&run.bytes),
                Naming::More => return,
                Naming::None => None,
            };
        }
        let headers = parents && run.named.as_ref().is_some_and(|n| !n.starts_with("Redis "));
        let parent = if headers { TraceParent::in_headers(&run.bytes) } else { Some(None) };
        if parent.is_none() && !run.cut {
            return;
        }
        if let Some(run) = self.request.take() {
            self.keep(*run, parent.flatten());
        }
        self.done = true;
    }

    /// What is known of the request that is over.
    fn keep(&mut self, run: Run, parent: Option<TraceParent>) {
        if let Some(name) = run.named {
            self.found.push((self.at, Named { name: name.into(), status: None, parent }));
        }
    }

    fn status(&mut self, payload: &[u8]) {
        if let Some((_, named)) = self.found.last_mut()
            && named.status.is_none()
        {
            named.status = name::status_of(payload);
        }
    }
}
