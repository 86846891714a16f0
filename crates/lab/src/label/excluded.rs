//! Runs of real programs: nobody wrote down what they called, so that their time has no causes here. What the
//! kernels counted and the link lost excludes causes all the same.

use super::checks::Check;
use super::truth::Truth;
use tcpwhy_base::Cause;

/// What may not be claimed. `repeated`: a SYN passed more than once.
pub(super) fn check(truth: &Truth, repeated: bool) -> Check {
    let counted = |name: &str| {
        [&truth.client_counters, &truth.server_counters]
            .iter()
            .any(|side| side.get(name).is_some_and(|&n| n > 0))
    };
    let restarts = |host: &crate::Host| {
        host.stack.sysctl.get("net.ipv4.tcp_slow_start_after_idle").is_none_or(|v| v.to_string() != "0")
    };
    let idle = truth.scenario.shared.hosts.iter().any(restarts);
    let zero = counted("TcpExtTCPToZeroWindowAdv") || counted("TcpExtTCPWantZeroWindowAdv");
    let rules: [(bool, &[Cause]); 6] = [
        (
            !truth.lost.is_empty() || counted("TcpRetransSegs"),
            &[
                Cause::FastRecovery,
                Cause::TailLossProbe,
                Cause::RetransmissionTimeout,
                Cause::SpuriousRecovery,
                Cause::PathMtu,
            ],
        ),
        (
            repeated || counted("TcpExtListenDrops") || counted("TcpExtTCPReqQFullDrop"),
            &[Cause::SynRetransmit, Cause::AcceptQueueFull, Cause::SynQueueFull],
        ),
        (counted("TcpAttemptFails"), &[Cause::Refused]),
        (counted("TcpExtDelayedACKs"), &[Cause::NagleDelayedAck, Cause::DelayedAck]),
        (zero, &[Cause::MutualBlock, Cause::SillyWindow]),
        (idle, &[Cause::IdleRestart]),
    ];
    let forbidden: Vec<&str> = rules.iter().filter(|r| !r.0).flat_map(|r| r.1).map(|c| c.info().id).collect();
    let basis = format!(
        "counters and the link's log exclude {}",
        if forbidden.is_empty() { "nothing".into() } else { forbidden.join(", ") }
    );
    Check {
        connections: "all",
        kind: "any",
        dominant: Vec::new(),
        weak: Vec::new(),
        parts: Vec::new(),
        forbidden,
        inherent: Vec::new(),
        exempt: Vec::new(),
        side: None,
        observable: "partly",
        basis,
        weight_ms: 0.0,
    }
}
