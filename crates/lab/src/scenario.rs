//! An experiment as data: the link, the two hosts, the workload, and what is expected of it.

mod bounds;
mod expect;
mod kinds;
mod meant;
mod parse;
mod steps;
mod written;

pub use expect::{Against, Control, Expect, Stated, Sweep};
pub use kinds::{Bind, Connects, Need, Programs};
pub(crate) use parse::put;

use parse::Kept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcpwhy_base::{End, Link, Nanos};
use written::Written;

/// One experiment. Serialised, it is what was written, with all that was left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Kept", into = "Written")]
pub struct Scenario {
    /// What the experiment shows.
    pub title: String,
    /// Article, issue or rule that it comes from.
    pub source: Option<String>,
    /// The path, the hosts and what their applications do: what the model can run too.
    pub shared: tcpwhy_base::Scenario<Kernel>,
    /// Segments of up to 64 KB pass whole, as between a host and a card that cuts them (TSO, GRO).
    pub offload: bool,
    /// What the link has beyond that, client to server, and back.
    pub ways: [Way; 2],
    /// `tcp_info` of every socket is read this often; 0: only at close.
    pub sample: Nanos,
    /// The server reads requests and never answers.
    pub no_answer: bool,
    /// How long the client waits for an answer.
    pub patience: Nanos,
    /// Instead of the workload: connections that are only made.
    pub connects: Option<Connects>,
    /// Instead of the workload: real programs.
    pub programs: Option<Programs>,
    /// What should be measured.
    pub expect: Option<Expect>,
    /// The experiment is made once for each value of a key.
    pub sweep: Option<Sweep>,
    written: Box<Written>,
}

/// One host of the lab.
pub type Host = tcpwhy_base::Host<Kernel>;

/// What only the lab knows of a host: its kernel's settings, and habits of applications that the model does not have.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Congestion control, set by the route: a namespace may not choose every one by sysctl.
    pub congestion: String,
    /// Initial receive window in segments, set by the route.
    pub initrwnd: Option<u32>,
    /// Sysctls of the namespace, such as `"net.ipv4.tcp_slow_start_after_idle" = 0`.
    pub sysctl: BTreeMap<String, toml::Value>,
    /// Bytes that all sockets of this host's application may use together, by a control group; not with programs.
    pub tcp_memory: Option<u64>,
    /// Keep-alive: idle seconds, interval, probes.
    pub keepalive: Option<[i32; 3]>,
    /// Writes by `epoll` on a socket that does not block, as event loops do.
    pub epoll: bool,
    /// The application follows the classic Nagle rule of RFC 896: it writes full segments as they come, and a
    /// partial one only when nothing is unacknowledged (Linux itself has Minshall's variant).
    pub classic_nagle: bool,
    /// The application resets the connection when it has read so much of it.
    pub reset_after_bytes: Option<u64>,
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel {
            congestion: "cubic".into(),
            initrwnd: None,
            sysctl: BTreeMap::new(),
            tcp_memory: None,
            keepalive: None,
            epoll: false,
            classic_nagle: false,
            reset_after_bytes: None,
        }
    }
}

/// What one direction of the lab's link has beyond a [`Link`].
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Packets larger than this are lost, and their sender is told by ICMP "fragmentation needed" (RFC 1191).
    pub path_mtu: Option<u64>,
    /// Further nodes behind the first, in the order in which packets pass them.
    pub hops: Vec<Hop>,
}

/// A further node of the link.
#[derive(Clone, Debug, Default)]
pub struct Hop {
    /// Its delay, rate, queue and losses.
    pub link: Link,
    /// As of a [`Way`].
    pub path_mtu: Option<u64>,
}

impl Scenario {
    /// The path from a sender to its peer.
    pub fn link(&self, sender: End) -> &Link {
        let [up, down] = &self.shared.links;
        match sender {
            End::Client => up,
            End::Server => down,
        }
    }

    /// One of the hosts.
    pub fn host(&self, end: End) -> &Host {
        let [client, server] = &self.shared.hosts;
        match end {
            End::Client => client,
            End::Server => server,
        }
    }
}
