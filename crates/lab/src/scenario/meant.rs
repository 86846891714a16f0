//! From what is written in a scenario to what is meant: times in nanoseconds, rates in bits a second, each direction by
//! itself.

use super::written::{self, Written};
use super::{Hop, Host, Kernel, Scenario, Way};
use crate::LabError;
use crate::clock::from_ms;
use tcpwhy_base::{Chosen, Link, Reorder, Step, Turn, What, Workload};

impl TryFrom<Written> for Scenario {
    type Error = LabError;

    fn try_from(w: Written) -> Result<Scenario, LabError> {
        w.check()?;
        let work = &w.workload;
        Ok(Scenario {
            title: w.title.clone(),
            source: w.source.clone(),
            shared: tcpwhy_base::Scenario {
                links: [link(&w.link, &w.link.up), link(&w.link, &w.link.down)],
                mtu: u64::from(w.link.mtu),
                hosts: [host(&w.client), host(&w.server)],
                workload: workload(work),
                connections: work.connections,
                stagger: from_ms(work.stagger_ms),
                seed: w.seed,
                limit: from_ms(w.limit_s * 1000.0),
            },
            offload: w.link.offload,
            ways: [way(&w.link.up), way(&w.link.down)],
            sample: from_ms(w.sample_ms),
            no_answer: work.no_answer,
            patience: from_ms(work.patience_ms),
            connects: w.connects.clone(),
            programs: w.programs.clone(),
            expect: w.expect.clone(),
            sweep: w.sweep.clone(),
            written: Box::new(w),
        })
    }
}

impl From<Scenario> for Written {
    fn from(scenario: Scenario) -> Written {
        *scenario.written
    }
}

pub(super) fn workload(w: &written::Workload) -> Workload {
    let turn = |request: &[Step], response: &[Step], think_ms| Turn {
        before: from_ms(w.gap_ms),
        request: request.to_vec(),
        think: from_ms(think_ms),
        response: response.to_vec(),
    };
    let turns = if w.turns.is_empty() {
        vec![turn(&w.request, &w.response, w.think_ms)]
    } else {
        w.turns.iter().map(|t| turn(&t.request, &t.response, w.think_ms + t.think_ms)).collect()
    };
    Workload {
        turns,
        requests: w.requests,
        reconnect_every: w.reconnect_every,
        pipeline: w.pipeline,
        server_closes: w.server_closes,
        ..Workload::default()
    }
}

/// What stands for both directions holds where the direction says nothing.
fn link(both: &written::Link, own: &written::Direction) -> Link {
    let delay_ms = own.delay_ms.unwrap_or(both.rtt_ms / 2.0);
    node(own, delay_ms, own.rate_mbit.or(both.rate_mbit), own.queue_bytes.or(both.queue_bytes))
}

fn node(d: &written::Direction, delay_ms: f64, rate_mbit: Option<f64>, queue_bytes: Option<u64>) -> Link {
    let ppm = |share: f64| (share * 1e6).round() as u32;
    let stretches =
        |all: &[written::Stretch]| all.iter().map(|s| (from_ms(s.at_ms), from_ms(s.for_ms))).collect();
    Link {
        delay: from_ms(delay_ms),
        rate: rate_mbit.map(|mbit| (mbit * 1e6).round() as u64),
        queue_bytes,
        queue_packets: d.queue_packets,
        overhead: d.overhead_bytes,
        loss_ppm: ppm(d.loss),
        loss_of: d.loss_of,
        drops: d.drops.iter().flat_map(chosen).collect(),
        reorder: d.reorder.as_ref().map(|r| Reorder {
            every: u64::from(r.every),
            nth: r.n.iter().map(|&n| u64::from(n)).collect(),
            hold: from_ms(r.hold_ms),
        }),
        duplicate_ppm: ppm(d.duplicate),
        jitter: from_ms(d.jitter_ms),
        black_hole_over: d.black_hole_over.map(u64::from),
        pauses: stretches(&d.pauses),
        cuts: stretches(&d.cuts),
    }
}

fn chosen(written: &written::Chosen) -> Vec<Chosen> {
    use written::Chosen as W;
    // Connections are counted from 1 where they are written, from 0 where they are meant.
    let one = |what, connection: u32| Chosen { what, connection: connection.saturating_sub(1) };
    let each = |n: &[u32], connection, what: fn(u64) -> What| {
        n.iter().map(|&n| one(what(u64::from(n)), connection)).collect()
    };
    match written {
        W::Syn { n, connection } => each(n, *connection, What::Syn),
        W::Data { n, connection } => each(n, *connection, What::Data),
        W::Ack { n, connection } => each(n, *connection, What::Ack),
        W::Seq { at, copies, connection } => vec![one(What::Seq { at: *at, copies: *copies }, *connection)],
        W::Last { back, copies, connection } => {
            vec![one(What::Last { back: u64::from(*back), copies: *copies }, *connection)]
        }
    }
}

fn way(d: &written::Direction) -> Way {
    let hop = |h: &written::Direction| Hop {
        link: node(h, h.delay_ms.unwrap_or(0.0), h.rate_mbit, h.queue_bytes),
        path_mtu: h.path_mtu.map(u64::from),
    };
    Way { path_mtu: d.path_mtu.map(u64::from), hops: d.hops.iter().map(hop).collect() }
}

fn host(h: &written::Host) -> Host {
    Host {
        nodelay: h.nodelay,
        cork: h.cork,
        more: h.more,
        quickack: h.quickack,
        sndbuf: h.sndbuf.map(u64::from),
        rcvbuf: h.rcvbuf.map(u64::from),
        notsent_lowat: h.notsent_lowat.map(u64::from),
        initcwnd: h.initcwnd,
        write_chunk: h.write_chunk,
        read_chunk: h.read_chunk,
        read_pauses: h.read_pauses.iter().map(|p| (p.at_bytes, from_ms(p.ms))).collect(),
        read_rate: h.read_rate.map(|r| r as u64),
        backlog: h.backlog,
        accept_start: from_ms(h.accept_start_ms),
        accept_delay: from_ms(h.accept_delay_ms),
        stack: Kernel {
            congestion: h.congestion.clone(),
            initrwnd: h.initrwnd,
            sysctl: h.sysctl.clone(),
            tcp_memory: h.tcp_memory,
            keepalive: h.keepalive,
            epoll: h.epoll,
            classic_nagle: h.classic_nagle,
            reset_after_bytes: h.reset_after_bytes,
        },
    }
}
