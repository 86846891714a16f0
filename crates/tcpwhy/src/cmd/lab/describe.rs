//! A scenario in words.

use std::fmt::Write as _;
use tcpwhy_base::{Cork, Link, LossOf, Nanos, Step};
use tcpwhy_lab::{Host, Scenario, Stated, Unit};

/// Title, source, link, hosts, work, expectation: a line each.
pub(super) fn scenario(name: &str, s: &Scenario) -> String {
    let mut text = format!("{}  ({name})\n", s.title);
    let mut line = |label: &str, words: &str| {
        if !words.is_empty() {
            let _ = writeln!(text, "  {label:<10} {words}");
        }
    };
    line("source", s.source.as_deref().unwrap_or_default());
    let [client, server] = &s.shared.hosts;
    line("link", &link(s));
    line("client", &host(client));
    line("server", &host(server));
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
        line("against", &expect.against.as_ref().map(tcpwhy_lab::Against::words).unwrap_or_default());
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
pub(super) fn link(s: &Scenario) -> String {
    let shared = &s.shared;
    let [up, down] = &shared.links;
    let mut words = vec![format!("RTT {} ms", shared.rtt().as_ms()), format!("MTU {}", shared.mtu)];
    // What holds for both directions is said once.
    let rate = up.rate.filter(|_| up.rate == down.rate);
    let queue = up.queue_bytes.filter(|_| up.queue_bytes == down.queue_bytes);
    words.extend(rate.map(mbit));
    words.extend(queue.map(|bytes| format!("queue {}", size(bytes as f64))));
    if s.offload {
        words.push("segments of 64 KB".into());
    }
    for (name, own, way) in [("up", up, &s.ways[0]), ("down", down, &s.ways[1])] {
        let mut special = Vec::new();
        if up.delay != down.delay {
            special.push(delay(own));
        }
        special.extend(own.rate.filter(|_| rate.is_none()).map(mbit));
        special
            .extend(own.queue_bytes.filter(|_| queue.is_none()).map(|b| format!("queue {}", size(b as f64))));
        special.extend(node(own, way.path_mtu));
        for hop in &way.hops {
            let link = &hop.link;
            let mut words = vec![delay(link)];
            words.extend(link.rate.map(mbit));
            words.extend(link.queue_bytes.map(|bytes| format!("queue {}", size(bytes as f64))));
            words.extend(node(link, hop.path_mtu));
            special.push(format!("then a node: {}", words.join(", ")));
        }
        if !special.is_empty() {
            words.push(format!("{name}: {}", special.join(", ")));
        }
    }
    let hops = s.ways.iter().flat_map(|way| &way.hops).map(|hop| &hop.link);
    if shared.links.iter().chain(hops).any(rolls_dice) {
        words.push(format!("seed {}", shared.seed));
    }
    words.join(", ")
}

/// What it does depends on the seed.
fn rolls_dice(link: &Link) -> bool {
    link.loss_ppm > 0 || link.duplicate_ppm > 0 || link.jitter > Nanos::ZERO
}

fn mbit(rate: u64) -> String {
    format!("{} Mbit/s", rate as f64 / 1e6)
}

fn delay(link: &Link) -> String {
    format!("delay {} ms", link.delay.as_ms())
}

/// What a node has beyond delay, rate and bytes in its queue.
fn node(link: &Link, path_mtu: Option<u64>) -> Vec<String> {
    let mut words = Vec::new();
    let mut say = |text: String| words.push(text);
    let percent = |ppm: u32| f64::from(ppm) / 1e4;
    if link.jitter > Nanos::ZERO {
        say(format!("jitter {} ms", link.jitter.as_ms()));
    }
    if let Some(packets) = link.queue_packets {
        say(format!("queue {packets} packets"));
    }
    if link.loss_ppm > 0 {
        let of = match link.loss_of {
            LossOf::All => "packets",
            LossOf::Data => "data segments",
            LossOf::Acks => "ACKs",
        };
        say(format!("{} % of {of} lost", percent(link.loss_ppm)));
    }
    if !link.drops.is_empty() {
        say("chosen packets lost".into());
    }
    if let Some(reorder) = &link.reorder {
        say(format!("segments held {} ms", reorder.hold.as_ms()));
    }
    if link.duplicate_ppm > 0 {
        say(format!("{} % twice", percent(link.duplicate_ppm)));
    }
    if let Some(bytes) = link.black_hole_over {
        say(format!("packets above {bytes} vanish"));
    }
    if let Some(bytes) = path_mtu {
        say(format!("packets above {bytes} lost, with ICMP"));
    }
    for (at, length) in &link.pauses {
        say(format!("stands still for {} ms at {} ms", length.as_ms(), at.as_ms()));
    }
    for (at, length) in &link.cuts {
        say(format!("cut for {} ms at {} ms", length.as_ms(), at.as_ms()));
    }
    words
}

fn host(h: &Host) -> String {
    let mut words = vec![h.stack.congestion.clone()];
    let mut say = |text: String| words.push(text);
    for (name, on) in [
        ("NODELAY", h.nodelay),
        ("MSG_MORE", h.more),
        ("QUICKACK", h.quickack),
        ("epoll", h.stack.epoll),
        ("classic Nagle rule", h.stack.classic_nagle),
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
    for (name, value) in [("initcwnd", h.initcwnd), ("initrwnd", h.stack.initrwnd)] {
        if let Some(value) = value {
            say(format!("{name} {value}"));
        }
    }
    if let Some(bytes) = h.stack.tcp_memory {
        say(format!("{} for all its sockets", size(bytes as f64)));
    }
    if let Some(bytes) = h.write_chunk {
        say(format!("writes of {}", size(bytes as f64)));
    }
    for (at, length) in &h.read_pauses {
        say(format!("stops reading for {} ms after {}", length.as_ms(), size(*at as f64)));
    }
    if let Some(rate) = h.read_rate {
        say(format!("reads {}/s", size(rate as f64)));
    }
    if h.accept_start > Nanos::ZERO || h.accept_delay > Nanos::ZERO || h.backlog != 128 {
        say(format!(
            "backlog {}, accepts after {} ms, then every {} ms",
            h.backlog,
            h.accept_start.as_ms(),
            h.accept_delay.as_ms()
        ));
    }
    for (name, value) in &h.stack.sysctl {
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
    workload(s)
}

fn workload(s: &Scenario) -> String {
    let message = |steps: &[Step]| {
        let word = |step: &Step| match step {
            Step::Pause(length) => format!("pause {} ms", length.as_ms()),
            Step::Write(bytes) => size(*bytes as f64),
        };
        let parts: Vec<String> = steps.iter().map(word).collect();
        if parts.is_empty() { "nothing".into() } else { parts.join(" + ") }
    };
    let w = &s.shared.workload;
    let mut text = match &w.turns[..] {
        [one] => format!("{} x {} up, {} down", w.requests, message(&one.request), message(&one.response)),
        several => format!("{} requests of {} kinds", w.requests, several.len()),
    };
    // Each kind has its own work; what the client does in between is the same.
    let think = w.turns.iter().map(|turn| turn.think).min().unwrap_or_default();
    let gap = w.turns.first().map_or(Nanos::ZERO, |turn| turn.before);
    for (value, words) in [(think, "the server works"), (gap, "the client pauses")] {
        if value > Nanos::ZERO {
            let _ = write!(text, ", {words} {} ms", value.as_ms());
        }
    }
    if s.shared.connections > 1 {
        let _ = write!(text, ", {} connections at once", s.shared.connections);
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
