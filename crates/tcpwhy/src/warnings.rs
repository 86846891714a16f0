//! What reading showed that limits the answer, as sentences with the next step.

use std::cmp::Reverse;
use tcpwhy_base::Endpoint;
use tcpwhy_library::captures::Read;
use tcpwhy_report::Warning;

/// In a fixed order, the gravest first.
pub(crate) fn of_reading(read: &Read) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    let mut say = |code, count: u64, text: String| {
        if count > 0 {
            all.push(Warning { code, text, count });
        }
    };
    for problem in &read.unreadable {
        say("unreadable", 1, problem.clone());
    }
    for problem in &read.damaged {
        say("damaged", 1, problem.clone());
    }
    say(
        "interrupted",
        read.interrupted.into(),
        "reading was interrupted: this is about the packets before".into(),
    );
    let counts = &read.counts;
    for &(link, n) in &counts.unknown_links {
        say("unknown_link_type", n, unknown_link(link));
    }
    if counts.tcp == 0 && read.packets > 0 && counts.unknown_links.is_empty() {
        say("no_tcp", 1, "no TCP packet was found: capture where the TCP traffic passes".into());
    }
    let refused = counts.unreachable.iter().map(|of| of.1).sum::<u64>() + counts.unreachable_elsewhere;
    say("unreachable", refused, unreachable(&counts.unreachable, counts.unreachable_elsewhere > 0));
    say(
        "capture_drops_reported",
        read.drops,
        "packets were lost by the capture program, as it says itself: capture with a larger buffer (tcpdump -B \
         65536) or fewer bytes of each packet (-s 128)"
            .into(),
    );
    say(
        "events_left_out",
        read.events_left_out,
        "events of a kernel were left out, as more than 65,536 stand between two packets: what it said there is not known; record \
         fewer connections (tcpwhy record -o FILE port 443)"
            .into(),
    );
    say(
        "clock_step",
        read.steps,
        "packets are stamped over a second before earlier ones, as when a clock is set: waits across the step are \
         wrong; stop time synchronisation from stepping the clock, or capture again"
            .into(),
    );
    say(
        "bad_time",
        read.bad_times,
        "packets have no time stamp, an impossible one, or one seconds to years away from those of the packets around them, \
         and were taken as if at the time of their neighbours; record them with tcpdump or dumpcap, and with the host's \
         time stamps if those were the adapter's (tcpdump -j host)"
            .into(),
    );
    say(
        "overlapping_inputs",
        read.overlapping,
        "inputs overlap an earlier one in time: their connections are kept apart, and one that is in two of them counts twice. \
         Captures of both ends: name those two alone (tcpwhy explain CLIENT SERVER); parts of one interface: mergecap first"
            .into(),
    );
    say(
        "fragments_missing",
        read.incomplete,
        "IP packets lack some of their fragments and were left out: capture without a filter on ports, which \
         later fragments do not match"
            .into(),
    );
    say(
        "encrypted",
        counts.encrypted,
        "packets are encrypted on the link (Wi-Fi), so that TCP cannot be seen: capture on the host, or decrypt \
         with airdecap-ng first"
            .into(),
    );
    say(
        "unusable",
        counts.unusable,
        "packets are cut before the TCP flags or contradict themselves, and were left out: capture with \
         tcpdump -s 128 or more"
            .into(),
    );
    all
}

/// What is said where ICMP answers for servers: three of them, by how many packets it refused.
fn unreachable(all: &[(Endpoint, u64)], elsewhere: bool) -> String {
    let mut most = all.to_vec();
    most.sort_by_key(|of| (Reverse(of.1), of.0));
    let mut named: Vec<String> = most.iter().take(3).map(|of| of.0.to_string()).collect();
    if elsewhere || most.len() > named.len() {
        named.push("others".into());
    }
    let last = named.pop().unwrap_or_default();
    let to = if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) };
    format!(
        "packets to {to} were answered by ICMP (destination unreachable): connect() fails at once (\"No route to host\"), data is \
         repeated; a packet filter rejects them, there or on the way (iptables -vnL, nft list ruleset), or nothing leads there"
    )
}

/// What is said of a link type that is not known.
pub(crate) fn unknown_link(link: u32) -> String {
    format!(
        "packets have link type {link}, which is not known here: capture on an Ethernet or the any interface, or \
         convert with editcap -T ether if the bytes are Ethernet frames"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_that_were_refused_most_are_named() {
        let of = |ports: &[(u16, u64)], elsewhere| {
            let to = |port| Endpoint { ip: [10, 0, 0, 1].into(), port };
            let all: Vec<_> = ports.iter().map(|&(port, n)| (to(port), n)).collect();
            let said = unreachable(&all, elsewhere);
            said.split(" were answered").next().map(|s| s.replace("10.0.0.1", "")).unwrap_or_default()
        };
        assert_eq!(of(&[(1, 1)], false), "packets to :1");
        assert_eq!(of(&[(1, 1)], true), "packets to :1 and others");
        assert_eq!(of(&[(4, 1), (3, 2), (2, 1)], false), "packets to :3, :2 and :4");
        assert_eq!(of(&[(4, 1), (3, 2), (2, 1), (1, 1)], false), "packets to :3, :1, :2 and others");
    }
}
