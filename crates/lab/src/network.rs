//! Both hosts and the link between them, as long as something runs on them: our own endpoints, or any program.

use crate::host::{self, CLIENT, Namespace, SERVER};
use crate::link::{Forwarder, LINK_TYPE, Lateness, Lost, Passage, Pipe, Record, Tally};
use crate::machine::{self, Burners, Jiffies, Machine};
use crate::scenario::Scenario;
use crate::{LabError, clock, new_file};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tcpwhy_base::{End, Ends, Nanos};
use tcpwhy_capture::{Frame, Writer};

/// Two hosts that can reach each other and nothing else. Dropped, they are gone.
#[derive(Debug)]
pub struct Network {
    hosts: Ends<Namespace>,
    stop: Arc<AtomicBool>,
    forwarder: Option<JoinHandle<io::Result<Passage>>>,
    burners: Option<Burners>,
    processors: usize,
    before: Ends<BTreeMap<String, i64>>,
    jiffies: Jiffies,
    drain: Duration,
    /// The 99th percentile of lateness that still leaves figures exact.
    allowed_ns: i64,
}

/// What passed and what is known of it. Times are nanoseconds since the Unix epoch, on the captures' clock.
#[derive(Debug, Serialize)]
pub struct Traffic {
    /// At client and server.
    #[serde(skip)]
    pub captures: Ends<Vec<Record>>,
    /// What the link lost, in order.
    pub lost: Vec<Lost>,
    /// How late the link delivered.
    pub lateness: Lateness,
    /// Lateness beyond 5 % of the round trip time at the 99th percentile (and 0.2 ms), stalls of the link for more
    /// than 2 % of the time, or stolen time above 5 %: figures of this run are not exact.
    pub disturbed: bool,
    /// What the link did from client to server.
    pub up: Tally,
    /// What the link did from server to client.
    pub down: Tally,
    /// Packets that a host's kernel refused.
    pub refused: u64,
    /// The machine.
    pub machine: Machine,
    /// Settings of the client's host.
    pub client_sysctls: BTreeMap<String, String>,
    /// Settings of the server's host that differ from the client's.
    pub server_sysctls: BTreeMap<String, String>,
    /// Counters of the client's host that moved.
    pub client_counters: BTreeMap<String, i64>,
    /// Counters of the server's host that moved.
    pub server_counters: BTreeMap<String, i64>,
}

impl Network {
    /// The client's address.
    pub const CLIENT: Ipv4Addr = CLIENT;
    /// The server's address.
    pub const SERVER: Ipv4Addr = SERVER;

    /// The hosts and the link of a scenario; its workload says which segment is the last.
    pub fn new(scenario: &Scenario) -> Result<Network, LabError> {
        clock::now();
        let host = |address, end| Namespace::new(address, scenario.host(end), scenario);
        let hosts = Ends::new(host(CLIENT, End::Client)?, host(SERVER, End::Server)?);
        let pipes = Pipe::both(scenario);
        let rtt = scenario.shared.rtt();
        let share = |f: &File| f.try_clone().map_err(LabError::failed("share a device"));
        let forwarder =
            Forwarder::new(Ends::new(share(&hosts.client.tun)?, share(&hosts.server.tun)?), pipes, scenario);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let burners = machine::is_virtual().then(|| Burners::start(processors));
        let before = Ends::new(hosts.client.counters()?, hosts.server.counters()?);
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("lab-link".into());
        let (ready, is_ready) = mpsc::channel();
        let forwarder = {
            let stop = Arc::clone(&stop);
            let work = move || forwarder.run(&stop, &ready);
            thread.spawn(work).map_err(LabError::failed("start a thread"))?
        };
        // On a busy machine a new thread waits for a processor until it has its priority; packets must not.
        let _ = is_ready.recv();
        Ok(Network {
            hosts,
            stop,
            forwarder: Some(forwarder),
            burners,
            processors,
            before,
            jiffies: Jiffies::now(),
            // What is on its way when the applications are done: the last ACKs and FINs.
            drain: Duration::from_millis(300) + clock::duration(rtt.times(4)),
            allowed_ns: rtt.part(20).max(Nanos::micros(200)).0,
        })
    }

    pub(crate) fn host(&self, end: End) -> &Namespace {
        &self.hosts[end]
    }

    /// Moves the calling thread to a host; threads and processes that it starts are there too.
    pub fn enter(&self, side: End) -> Result<(), LabError> {
        self.host(side).enter()
    }

    /// The TCP ports on which something listens on a host.
    pub fn listening(&self, side: End) -> Result<Vec<u16>, LabError> {
        host::in_thread(|| {
            self.enter(side)?;
            let tables = ["tcp", "tcp6"].map(|t| fs::read_to_string(format!("/proc/thread-self/net/{t}")));
            let lines = tables.iter().flatten().flat_map(|text| text.lines().skip(1));
            let port = |line: &str| {
                let mut words = line.split_whitespace().skip(1);
                let (_, port) = words.next()?.rsplit_once(':')?;
                // Local address, remote address, state: 0A is LISTEN.
                if words.nth(1)? == "0A" { u16::from_str_radix(port, 16).ok() } else { None }
            };
            Ok(lines.filter_map(port).collect())
        })
    }

    /// Lets the last packets arrive and ends the link.
    pub fn finish(mut self) -> Result<Traffic, LabError> {
        thread::sleep(self.drain);
        self.stop.store(true, Relaxed);
        let passage = self.forwarder.take().map_or_else(|| Ok(Ok(Passage::default())), JoinHandle::join);
        let passage = passage.unwrap_or_else(|_| Err(io::Error::other("panicked")));
        let passage = passage.map_err(LabError::failed("forward packets"))?;
        let (steal, busy) = Jiffies::now().since(self.jiffies);
        let burners = self.burners.take().map_or(0, |b| b.count());
        let Ends { client, server } = &self.hosts;
        let differs = |(name, value): &(&String, &String)| client.sysctls.get(*name) != Some(*value);
        let own = |(name, value): (&String, &String)| (name.clone(), value.clone());
        let Passage {
            captures,
            lost,
            lateness,
            tallies: Ends { client: up, server: down },
            real_time,
            refused,
        } = passage;
        Ok(Traffic {
            captures,
            lost,
            disturbed: lateness.p99_ns > self.allowed_ns
                || lateness.stalled_ns as f64 > lateness.span_ns as f64 * 0.02
                || steal > 0.05,
            lateness,
            up,
            down,
            refused,
            machine: Machine {
                kernel: machine::kernel(),
                processors: self.processors,
                virtual_machine: machine::is_virtual(),
                real_time,
                burners,
                steal,
                busy,
            },
            client_sysctls: client.sysctls.clone(),
            server_sysctls: server.sysctls.iter().filter(differs).map(own).collect(),
            client_counters: host::moved(&self.before.client, &client.counters()?),
            server_counters: host::moved(&self.before.server, &server.counters()?),
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(forwarder) = self.forwarder.take() {
            // What it says is of no use any more.
            let _ = forwarder.join();
        }
    }
}

impl Traffic {
    /// Writes `cap.client.pcap` and `cap.server.pcap` into a directory, made if need be.
    pub fn write_captures(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        for (name, capture) in ["cap.client.pcap", "cap.server.pcap"].iter().zip(self.captures.iter()) {
            let mut writer = Writer::pcap(BufWriter::new(new_file(&directory.join(name))?), LINK_TYPE)?;
            for record in capture {
                let frame = Frame { len: record.len, ..Frame::new(record.time, LINK_TYPE, &record.data) };
                writer.write(&frame, None)?;
            }
            writer.finish()?;
        }
        Ok(())
    }
}
