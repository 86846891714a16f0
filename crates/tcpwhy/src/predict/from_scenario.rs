//! A scenario of the lab as a question for the model.

use super::question::Asked;
use crate::failure::Usage;
use anyhow::bail;
use std::path::Path;
use tcpwhy_base::{Link, Nanos};
use tcpwhy_lab::{Kernel, Scenario as Lab};
use tcpwhy_library::model::{Acks, Congestion, MAX_EVENTS, Question, Scenario, Stack, check};

/// Delay of the lab's path beyond what is asked for, each way: two crossings of a TUN device (docs/model.md).
const CROSSING: Nanos = Nanos::micros(50);

/// Reads the file.
pub(crate) fn asked(file: &Path) -> anyhow::Result<Asked> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        let name = crate::shown::name(&file.display().to_string()).into_owned();
        match e.kind() {
            std::io::ErrorKind::NotFound => anyhow::anyhow!("{name}: no such file. Check the name"),
            _ => anyhow::anyhow!("{name}: {e}"),
        }
    })?;
    let found = Lab::parse(&text, &[]).map_err(|e| Usage(format!("{}: {e}", file.display())))?;
    if found.connects.is_some() || found.programs.is_some() {
        let why = "it has no [workload] of requests and responses, which is what the model runs";
        bail!(Usage(format!("{}: {why}", file.display())));
    }
    let (scenario, assumed) = scenario(&found);
    if let Err(e) = check(&scenario) {
        bail!(Usage(format!("{}: {e}", file.display())));
    }
    let question = Question { scenario, skip: 0, max_events: MAX_EVENTS };
    Ok(Asked { question, assumed, connection: "new", sizes: [None, None] })
}

/// A scenario of the lab with modelled stacks, and what the model leaves out of it.
pub(crate) fn scenario(s: &Lab) -> (Scenario, Vec<String>) {
    let mut assumed = Vec::new();
    if s.ways.iter().any(|way| !way.hops.is_empty()) {
        assumed.push("Further nodes of the link are not modelled.".into());
    }
    if s.ways.iter().any(|way| way.path_mtu.is_some()) {
        assumed.push("ICMP about packets that are too large is not modelled: they pass.".into());
    }
    if s.no_answer {
        assumed.push("A server that never answers is not modelled: it answers.".into());
    }
    let shared = &s.shared;
    let scenario = Scenario {
        links: shared.links.clone().map(|link| Link { delay: link.delay + CROSSING, ..link }),
        hosts: [0, 1].map(|n| shared.hosts[n].with_stack(stack(&shared.hosts[n].stack, &mut assumed))),
        mtu: shared.mtu,
        workload: shared.workload.clone(),
        connections: shared.connections,
        stagger: shared.stagger,
        seed: shared.seed,
        limit: shared.limit,
    };
    (scenario, assumed)
}

/// What the model knows of the settings of a kernel.
fn stack(k: &Kernel, assumed: &mut Vec<String>) -> Stack {
    let congestion = match k.congestion.as_str() {
        "bbr" => Congestion::Bbr,
        "reno" => Congestion::Reno,
        _ => Congestion::Cubic,
    };
    let mut stack = Stack { congestion: Some(congestion), ..Stack::default() };
    for (key, value) in &k.sysctl {
        let number = value.as_integer();
        match (key.strip_prefix("net.ipv4."), number) {
            (Some("tcp_slow_start_after_idle"), Some(n)) => stack.idle_restart = Some(n != 0),
            (Some("tcp_mtu_probing"), Some(n)) => stack.mtu_probing = n != 0,
            (Some("tcp_pingpong_thresh"), Some(n)) => {
                stack.profile.acks = Acks::Adaptive { pingpong: n.clamp(1, 255) as u8 };
            }
            (Some("tcp_syncookies"), Some(n)) => stack.profile.syncookies = n != 0,
            (Some("tcp_abort_on_overflow"), Some(n)) => stack.profile.abort_on_overflow = n != 0,
            (Some("tcp_syn_linear_timeouts"), Some(n)) => stack.profile.syn_linear = n.clamp(0, 32) as u32,
            (Some("tcp_syn_retries"), Some(n)) => stack.profile.syn_retries = n.clamp(1, 32) as u32,
            _ => assumed.push(format!("{key} is not modelled.")),
        }
    }
    if k.keepalive.is_some() || k.reset_after_bytes.is_some() || k.initrwnd.is_some() {
        assumed.push("Keep-alives, resets and initrwnd are not modelled.".into());
    }
    stack
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
