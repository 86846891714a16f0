//! A scenario of the lab as a question for the model.

use super::question::Asked;
use crate::failure::Usage;
use anyhow::{Context, bail};
use std::path::Path;
use tcpwhy_base::{Nanos, Step, Turn, Workload};
use tcpwhy_lab as lab;
use tcpwhy_lab::Scenario as Lab;
use tcpwhy_model::{Acks, Chosen, Congestion, Cork, Host, Link, LossOf, Question, Reorder, Scenario, What};

/// Delay of the lab's path beyond what is asked for, each way: two crossings of a TUN device (docs/model.md).
const CROSSING: Nanos = Nanos::micros(50);

/// Reads the file.
pub(crate) fn asked(file: &Path) -> anyhow::Result<Asked> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let found = Lab::parse(&text, &[]).map_err(|e| Usage(format!("{}: {e}", file.display())))?;
    if found.connects.is_some() || found.programs.is_some() {
        let why = "it has no [workload] of requests and responses, which is what the model runs";
        bail!(Usage(format!("{}: {why}", file.display())));
    }
    let (scenario, assumed) = scenario(&found);
    if let Err(e) = scenario.check() {
        bail!(Usage(format!("{}: {e}", file.display())));
    }
    Ok(Asked { question: Question { scenario, skip: 0 }, assumed, connection: "new" })
}

fn ms(t: f64) -> Nanos {
    Nanos((t * 1e6).clamp(-9e18, 9e18) as i64)
}

/// The same path, hosts and workload, and what the model leaves out of them.
pub(crate) fn scenario(s: &Lab) -> (Scenario, Vec<String>) {
    let mut assumed = Vec::new();
    let w = &s.workload;
    let turns = if w.turns.is_empty() {
        vec![turn(&w.request, &w.response, w.think_ms, w.gap_ms)]
    } else {
        w.turns.iter().map(|t| turn(&t.request, &t.response, w.think_ms + t.think_ms, w.gap_ms)).collect()
    };
    if !s.link.up.hops.is_empty() || !s.link.down.hops.is_empty() {
        assumed.push("Further nodes of the link are not modelled.".into());
    }
    if w.no_answer {
        assumed.push("A server that never answers is not modelled: it answers.".into());
    }
    let scenario = Scenario {
        links: [link(&s.link, &s.link.up), link(&s.link, &s.link.down)],
        mtu: u64::from(s.link.mtu),
        hosts: [host(&s.client, &mut assumed), host(&s.server, &mut assumed)],
        workload: Workload {
            turns,
            requests: w.requests,
            reconnect_every: w.reconnect_every,
            pipeline: w.pipeline,
            server_closes: w.server_closes,
            ..Workload::default()
        },
        connections: w.connections,
        stagger: ms(w.stagger_ms),
        seed: s.seed,
        limit: ms(s.limit_s * 1000.0),
        ..Scenario::default()
    };
    (scenario, assumed)
}

fn turn(request: &[f64], response: &[f64], think_ms: f64, gap_ms: f64) -> Turn {
    let steps = |all: &[f64]| {
        let step = |&s: &f64| if s < 1.0 { Step::Pause(ms(s * 1000.0)) } else { Step::Write(s as u64) };
        all.iter().map(step).collect()
    };
    Turn { before: ms(gap_ms), request: steps(request), think: ms(think_ms), response: steps(response) }
}

fn link(all: &lab::Link, own: &lab::Direction) -> Link {
    let ppm = |share: f64| (share * 1e6).round().clamp(0.0, 1e6) as u32;
    let rate = own.rate_mbit.or(all.rate_mbit).map(|mbit| (mbit * 1e6) as u64);
    let chosen = |c: &lab::Chosen| -> Vec<Chosen> {
        let one = |what, connection: u32| Chosen { what, connection: connection.saturating_sub(1) };
        match c {
            lab::Chosen::Syn { n, connection } => {
                n.iter().map(|&n| one(What::Syn(u64::from(n)), *connection)).collect()
            }
            lab::Chosen::Data { n, connection } => {
                n.iter().map(|&n| one(What::Data(u64::from(n)), *connection)).collect()
            }
            lab::Chosen::Ack { n, connection } => {
                n.iter().map(|&n| one(What::Ack(u64::from(n)), *connection)).collect()
            }
            lab::Chosen::Seq { at, copies, connection } => {
                vec![one(What::Seq { at: *at, copies: *copies }, *connection)]
            }
            lab::Chosen::Last { back, copies, connection } => {
                vec![one(What::Last { back: u64::from(*back), copies: *copies }, *connection)]
            }
        }
    };
    let stretches = |all: &[lab::Stretch]| all.iter().map(|s| (ms(s.at_ms), ms(s.for_ms))).collect();
    Link {
        delay: own.delay_ms.map_or(ms(all.rtt_ms / 2.0), ms) + CROSSING,
        rate,
        queue_bytes: own.queue_bytes.or(all.queue_bytes),
        queue_packets: own.queue_packets,
        overhead: own.overhead_bytes,
        loss_ppm: ppm(own.loss),
        loss_of: match own.loss_of {
            lab::LossOf::All => LossOf::All,
            lab::LossOf::Data => LossOf::Data,
            lab::LossOf::Acks => LossOf::Acks,
        },
        drops: own.drops.iter().flat_map(chosen).collect(),
        reorder: own.reorder.as_ref().map(|r| Reorder {
            every: u64::from(r.every),
            nth: r.n.iter().map(|&n| u64::from(n)).collect(),
            hold: ms(r.hold_ms),
        }),
        duplicate_ppm: ppm(own.duplicate),
        jitter: ms(own.jitter_ms),
        black_hole_over: own.black_hole_over.map(u64::from),
        pauses: stretches(&own.pauses),
        cuts: stretches(&own.cuts),
    }
}

fn host(h: &lab::Host, assumed: &mut Vec<String>) -> Host {
    let positive = |n: Option<i32>| n.and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
    let mut host = Host {
        nodelay: h.nodelay,
        cork: match h.cork {
            lab::Cork::Never => Cork::Never,
            lab::Cork::Message => Cork::Message,
            lab::Cork::Always => Cork::Always,
        },
        more: h.more,
        quickack: h.quickack,
        sndbuf: positive(h.sndbuf),
        rcvbuf: positive(h.rcvbuf),
        notsent_lowat: positive(h.notsent_lowat),
        initcwnd: h.initcwnd,
        congestion: match h.congestion.as_str() {
            "bbr" => Some(Congestion::Bbr),
            "reno" => Some(Congestion::Reno),
            _ => Some(Congestion::Cubic),
        },
        write_chunk: h.write_chunk.map(|n| n as u64),
        read_chunk: h.read_chunk as u64,
        read_pauses: h.read_pauses.iter().map(|p| (p.at_bytes, ms(p.ms))).collect(),
        read_rate: h.read_rate.map(|r| r as u64),
        backlog: u32::try_from(h.backlog).unwrap_or(0),
        accept_start: ms(h.accept_start_ms),
        accept_delay: ms(h.accept_delay_ms),
        ..Host::default()
    };
    for (key, value) in &h.sysctl {
        let number = value.as_integer();
        match (key.strip_prefix("net.ipv4."), number) {
            (Some("tcp_slow_start_after_idle"), Some(n)) => host.idle_restart = Some(n != 0),
            (Some("tcp_mtu_probing"), Some(n)) => host.mtu_probing = n != 0,
            (Some("tcp_pingpong_thresh"), Some(n)) => {
                host.profile.acks = Acks::Adaptive { pingpong: n.clamp(1, 255) as u8 };
            }
            (Some("tcp_syncookies"), Some(n)) => host.profile.syncookies = n != 0,
            (Some("tcp_abort_on_overflow"), Some(n)) => host.profile.abort_on_overflow = n != 0,
            (Some("tcp_syn_linear_timeouts"), Some(n)) => host.profile.syn_linear = n.clamp(0, 32) as u32,
            (Some("tcp_syn_retries"), Some(n)) => host.profile.syn_retries = n.clamp(1, 32) as u32,
            _ => assumed.push(format!("{key} is not modelled.")),
        }
    }
    if h.keepalive.is_some() || h.reset_after_bytes.is_some() || h.initrwnd.is_some() {
        assumed.push("Keep-alives, resets and initrwnd are not modelled.".into());
    }
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every scenario of the lab can be asked about, or is refused with a reason.
    #[test]
    fn the_scenarios_of_the_lab_are_questions() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut n = 0;
        for file in std::fs::read_dir(dir).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                match asked(&path) {
                    Ok(asked) => assert!(asked.question.scenario.rtt() >= Nanos::ZERO),
                    Err(e) => assert!(e.to_string().contains("no [workload]"), "{}: {e}", path.display()),
                }
                n += 1;
            }
        }
        assert!(n > 60, "{n}");
    }
}
