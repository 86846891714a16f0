//! A scenario in words.

use std::fmt::Write as _;
use tcpwhy_lab::{Cork, Direction, Host, Link, LossOf, Scenario, Stated, Unit, Workload};

/// Title, source, link, hosts, work, expectation: a line each.
pub(super) fn scenario(name: &str, s: &Scenario) -> String {
    let mut text = format!("{}  ({name})\n", s.title);
    let mut line = |label: &str, words: &str| {
        if !words.is_empty() {
            let _ = writeln!(text, "  {label:<10} {words}");
        }
    };
    line("source", s.source.as_deref().unwrap_or_default());
    line("link", &link(&s.link));
    line("client", &host(&s.client));
    line("server", &host(&s.server));
    line("work", &work(s));
    if let Some(sweep) = &s.sweep {
        let values: Vec<String> = sweep.values.iter().map(ToString::to_string).collect();
        line("once for", &format!("{} = {}", sweep.key, values.join(", ")));
    }
    if let Some(expect) = &s.expect {
        let unit = expect.unit();
        line("measured", &expect.measure.to_string());
        line("published", &stated(expect.published.as_ref(), unit));
        line("theory", &stated(expect.theory.as_ref(), unit));
        if let Some(value) = &expect.value {
            line("expected", &format!("{value}{}", if value.is_formula() { "" } else { suffix(unit) }));
        }
        let slack =
            if expect.slack > 0.0 { format!(" + {}", unit.show(expect.slack)) } else { String::new() };
        let reason = expect.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
        line("tolerance", &format!("{:.0} %{slack}{reason}", expect.tolerance * 100.0));
        line("deviation", expect.deviation.as_deref().unwrap_or_default());
    }
    text
}

fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Ms => " ms",
        Unit::Mbit => " Mbit/s",
        Unit::Count => "",
    }
}

fn stated(stated: Option<&Stated>, unit: Unit) -> String {
    let Some(stated) = stated else { return String::new() };
    let value =
        stated.value.as_ref().map(|v| format!("{v}{}", if v.is_formula() { "" } else { suffix(unit) }));
    match (value, &stated.text) {
        (Some(value), Some(text)) => format!("{value}: {text}"),
        (value, text) => value.or_else(|| text.clone()).unwrap_or_default(),
    }
}

/// The path in a few words.
pub(super) fn link(l: &Link) -> String {
    let mut words = vec![format!("RTT {} ms", l.rtt_ms), format!("MTU {}", l.mtu)];
    if let Some(rate) = l.rate_mbit {
        words.push(format!("{rate} Mbit/s"));
    }
    if let Some(bytes) = l.queue_bytes {
        words.push(format!("queue {}", size(bytes as f64)));
    }
    if l.offload {
        words.push("segments of 64 KB".into());
    }
    for (name, d) in [("up", &l.up), ("down", &l.down)] {
        let special = direction(d);
        if !special.is_empty() {
            words.push(format!("{name}: {}", special.join(", ")));
        }
    }
    words.join(", ")
}

fn direction(d: &Direction) -> Vec<String> {
    let mut words = Vec::new();
    let mut say = |text: String| words.push(text);
    if let Some(ms) = d.delay_ms {
        say(format!("delay {ms} ms"));
    }
    if d.jitter_ms > 0.0 {
        say(format!("jitter {} ms", d.jitter_ms));
    }
    if let Some(rate) = d.rate_mbit {
        say(format!("{rate} Mbit/s"));
    }
    if let Some(bytes) = d.queue_bytes {
        say(format!("queue {}", size(bytes as f64)));
    }
    if let Some(packets) = d.queue_packets {
        say(format!("queue {packets} packets"));
    }
    if d.loss > 0.0 {
        let of = match d.loss_of {
            LossOf::All => "packets",
            LossOf::Data => "data segments",
            LossOf::Acks => "ACKs",
        };
        say(format!("{} % of {of} lost", d.loss * 100.0));
    }
    if !d.drops.is_empty() {
        say("chosen packets lost".into());
    }
    if let Some(reorder) = &d.reorder {
        say(format!("segments held {} ms", reorder.hold_ms));
    }
    if d.duplicate > 0.0 {
        say(format!("{} % twice", d.duplicate * 100.0));
    }
    if let Some(bytes) = d.black_hole_over {
        say(format!("packets above {bytes} vanish"));
    }
    if let Some(bytes) = d.path_mtu {
        say(format!("packets above {bytes} lost, with ICMP"));
    }
    for pause in &d.pauses {
        say(format!("stands still for {} ms at {} ms", pause.for_ms, pause.at_ms));
    }
    for cut in &d.cuts {
        say(format!("cut for {} ms at {} ms", cut.for_ms, cut.at_ms));
    }
    for hop in &d.hops {
        say(format!("then a node: {}", direction(hop).join(", ")));
    }
    words
}

fn host(h: &Host) -> String {
    let mut words = vec![h.congestion.clone()];
    let mut say = |text: String| words.push(text);
    for (name, on) in [
        ("NODELAY", h.nodelay),
        ("MSG_MORE", h.more),
        ("QUICKACK", h.quickack),
        ("epoll", h.epoll),
        ("classic Nagle rule", h.classic_nagle),
    ] {
        if on {
            say(name.into());
        }
    }
    match h.cork {
        Cork::Never => {}
        Cork::Message => say("CORK around messages".into()),
        Cork::Always => say("CORK for good".into()),
    }
    for (name, value) in
        [("SO_SNDBUF", h.sndbuf), ("SO_RCVBUF", h.rcvbuf), ("NOTSENT_LOWAT", h.notsent_lowat)]
    {
        if let Some(value) = value {
            say(format!("{name} {value}"));
        }
    }
    for (name, value) in [("initcwnd", h.initcwnd), ("initrwnd", h.initrwnd)] {
        if let Some(value) = value {
            say(format!("{name} {value}"));
        }
    }
    if let Some(bytes) = h.tcp_memory {
        say(format!("{} for all its sockets", size(bytes as f64)));
    }
    if let Some(bytes) = h.write_chunk {
        say(format!("writes of {}", size(bytes as f64)));
    }
    for pause in &h.read_pauses {
        say(format!("stops reading for {} ms after {}", pause.ms, size(pause.at_bytes as f64)));
    }
    if let Some(rate) = h.read_rate {
        say(format!("reads {}/s", size(rate)));
    }
    if h.accept_start_ms > 0.0 || h.accept_delay_ms > 0.0 || h.backlog != 128 {
        say(format!(
            "backlog {}, accepts after {} ms, then every {} ms",
            h.backlog, h.accept_start_ms, h.accept_delay_ms
        ));
    }
    for (name, value) in &h.sysctl {
        say(format!("{name}={value}"));
    }
    words.join(", ")
}

fn work(s: &Scenario) -> String {
    if let Some(c) = &s.connects {
        let place = if c.loopback { " over loopback" } else { "" };
        let end = if c.keep { "kept" } else { "closed at once" };
        let open =
            if c.half_open > 0 { format!(", after {} SYNs of nobody", c.half_open) } else { String::new() };
        return format!("{} connections{place}, one after the other, {end}{open}", c.count);
    }
    if let Some(p) = &s.programs {
        let server = p.server.as_deref().unwrap_or("nothing");
        let first = |command: &str| command.lines().next().unwrap_or_default().to_owned();
        return format!("server: {}; client: {}", first(server), first(&p.client));
    }
    workload(&s.workload)
}

fn workload(w: &Workload) -> String {
    let message = |steps: &[f64]| {
        let parts: Vec<String> = steps
            .iter()
            .map(|&s| if s < 1.0 { format!("pause {} ms", s * 1000.0) } else { size(s) })
            .collect();
        if parts.is_empty() { "nothing".into() } else { parts.join(" + ") }
    };
    let mut text = if w.turns.is_empty() {
        format!("{} x {} up, {} down", w.requests, message(&w.request), message(&w.response))
    } else {
        format!("{} requests of {} kinds", w.requests, w.turns.len())
    };
    for (value, words) in [(w.think_ms, "the server works"), (w.gap_ms, "the client pauses")] {
        if value > 0.0 {
            let _ = write!(text, ", {words} {value} ms");
        }
    }
    if w.connections > 1 {
        let _ = write!(text, ", {} connections at once", w.connections);
    }
    if w.reconnect_every > 0 {
        let _ = write!(text, ", a new connection for every {}", w.reconnect_every);
    }
    text
}

fn size(bytes: f64) -> String {
    match bytes {
        b if b >= 1e6 => format!("{} MB", b / 1e6),
        b if b >= 10_000.0 => format!("{} KB", b / 1e3),
        b => format!("{b} bytes"),
    }
}
