//! The model knows why it waited: its packets, seen at the end that sends most, must give its causes back. Scenarios are
//! drawn from a printed seed; `ORACLE_SEED` and `ORACLE_CASES` set others.
//!
//! Left out by rule: gaps between exchanges (no cause of TCP); exchanges in which both ends sent as much (no end sends
//! most); the link's share where the capture does not show its rate (it is the limit's then).

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail};
use tcpwhy_base::{Cause, Endpoint, Nanos, Segment, Seq, Step, TcpFlags, Turn, Workload};
use tcpwhy_model::{Chosen, Outcome, Passage, Random, Scenario, What, run, stories};

const EPOCH: i64 = 1_700_000_000_000_000_000;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
}

/// A scenario drawn from `r`.
fn draw(r: &mut Random) -> Scenario {
    let rtt = Nanos::micros(
        [500, 2_000, 10_000, 40_000, 100_000, 200_000][r.below(6) as usize] + r.below(500) as i64,
    );
    let rate = [None, Some(1_000_000_000), Some(100_000_000), Some(20_000_000)][r.below(4) as usize];
    let mtu = if r.below(5) == 0 { 9000 } else { 1500 };
    let mut s = Scenario::with_path(rtt, rate, rate.map(|_| 2_000_000), mtu);
    s.seed = r.draw();
    s.phase = [0, 1].map(|_| Nanos(r.below(4_000_000) as i64));
    for host in &mut s.hosts {
        host.nodelay = r.below(3) > 0;
        host.wake = Nanos::micros(20 + r.below(60) as i64);
    }
    let message = |r: &mut Random| {
        let bytes = match r.below(4) {
            0 => 1 + r.below(1_000),
            1 => 1_000 + r.below(20_000),
            2 => 20_000 + r.below(200_000),
            _ => 200_000 + r.below(1_500_000),
        };
        let mut steps = vec![Step::Write(bytes)];
        if r.below(3) == 0 {
            steps.insert(0, Step::Write(1 + r.below(300)));
        }
        if r.below(8) == 0 {
            steps.insert(1, Step::Pause(Nanos::millis(5 + r.below(300) as i64)));
            steps.push(Step::Write(1 + r.below(3_000)));
        }
        steps
    };
    let download = r.below(2) == 0;
    let (long, short) = (message(r), vec![Step::Write(50 + r.below(900))]);
    let (request, response) = if download { (short, long) } else { (long, short) };
    let before = if r.below(2) == 0 { Nanos::ZERO } else { Nanos::millis(r.below(3_000) as i64) };
    let think = if r.below(2) == 0 { Nanos::ZERO } else { Nanos::millis(r.below(300) as i64) };
    s.workload = Workload::serial(Turn { before, request, think, response }, 1 + r.below(6) as u32);
    let sender = usize::from(download);
    match r.below(8) {
        0 => {
            s.hosts[sender].sndbuf = Some(16_384 << r.below(4));
            (s.hosts[sender].nodelay, s.hosts[sender].write_chunk) = (true, Some(1_024 << r.below(5)));
        }
        1 => s.hosts[1 - sender].rcvbuf = Some(8_192 << r.below(4)),
        2 => {
            let what = What::Data(1 + r.below(60));
            s.links[sender].drops = vec![Chosen { what, connection: 0 }];
        }
        3 => s.links[0].drops = vec![Chosen { what: What::Syn(1), connection: 0 }],
        _ => {}
    }
    s
}

/// A packet as a capture at `end` would hold it.
fn segment(p: &Passage, at: Nanos, end: u8, frame: u64) -> Segment {
    let hosts =
        [(1, 40_000), (2, 80)].map(|(n, port)| Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), port });
    let k = &p.packet;
    let (from, to) = (usize::from(k.from), usize::from(1 - k.from));
    // Sequence numbers of both ends begin somewhere.
    let base = [0x1000_u32, 0x8000_0000];
    let seq = |side: usize, n: u64| Seq(base[side].wrapping_add(n as u32));
    let mut flags = 0;
    for (on, bit) in [
        (k.syn, TcpFlags::SYN),
        (k.fin, TcpFlags::FIN),
        (k.rst, TcpFlags::RST),
        (k.psh, TcpFlags::PSH),
        (k.has_ack, TcpFlags::ACK),
    ] {
        flags |= if on { bit } else { 0 };
    }
    let mut segment = Segment {
        time: Nanos(EPOCH) + at,
        frame,
        src: hosts[from],
        dst: hosts[to],
        seq: seq(from, k.seq),
        ack: seq(to, k.ack),
        flags: TcpFlags(flags),
        window: if k.syn { k.window as u16 } else { (k.window >> k.wscale) as u16 },
        len: k.len,
        ip_id: Some(frame as u16),
        ttl: if end == k.from { 64 } else { 57 },
        ..Segment::EMPTY
    };
    let o = &mut segment.options;
    o.timestamps = k.stamps.map(|(a, b)| {
        ((a.0 / 1_000_000 + 77) as u32, if b.0 == 0 { 0 } else { (b.0 / 1_000_000 + 77) as u32 })
    });
    if k.syn {
        (o.mss, o.wscale, o.sack_permitted, o.order) = (Some(k.mss), Some(k.wscale), true, 0x342);
    }
    for (slot, block) in o.sack.iter_mut().zip(k.sack.iter().take(usize::from(k.sacks))) {
        *slot = (seq(to, block.0), seq(to, block.1));
    }
    o.sack_len = k.sacks;
    segment
}

fn analyze(out: &Outcome, end: u8) -> Analysis {
    let mut seen: Vec<(Nanos, &Passage)> = out
        .passages
        .iter()
        .filter_map(|p| Some((if p.packet.from == end { p.sent } else { p.arrived? }, p)))
        .collect();
    seen.sort_by_key(|x| x.0);
    let mut a = Analyzer::new(Config { detail: Detail::All });
    for (i, (at, p)) in seen.iter().enumerate() {
        a.push(&segment(p, *at, end, i as u64 + 1));
    }
    a.finish()
}

/// Times that both name, by (model's cause, analysis' cause).
type Confusion = BTreeMap<(Cause, Cause), i64>;

fn compare(s: &Scenario, out: &Outcome, end: u8, sums: &mut Confusion) {
    let found = analyze(out, end);
    let Some(c) = found.connections.first() else { return };
    let Some(story) = stories(s, out, end).into_iter().next() else { return };
    let known: Vec<_> =
        story.setup.iter().chain(story.exchanges.iter().flat_map(|x| &x.spans)).copied().collect();
    let setup = c.setup.iter().flat_map(|x| &x.spans);
    let said: Vec<_> = setup.chain(c.exchanges.iter().flat_map(|x| &x.spans)).collect();
    for k in &known {
        for a in &said {
            let (from, to) = (a.start - Nanos(EPOCH), a.end - Nanos(EPOCH));
            let both = k.end.min(to) - k.start.max(from);
            // The link's share is taken out of a limit only where its rate showed (design rule 3).
            let unknown = k.cause == Cause::Bandwidth && c.path.bandwidth_bps.is_none();
            if both > Nanos::ZERO && !unknown {
                *sums.entry((k.cause, a.cause)).or_default() += both.0;
            }
        }
    }
}

fn oracle(cases: u64) -> (f64, Confusion, u64) {
    let seed = number("ORACLE_SEED", RandomState::new().hash_one(0) % 1_000_000);
    println!("ORACLE_SEED={seed} ORACLE_CASES={cases}");
    let (mut sums, mut done) = (Confusion::new(), 0);
    for n in 0..cases {
        let s = draw(&mut Random(seed.wrapping_mul(1_000_003).wrapping_add(n)));
        let out = run(&s).expect("what is drawn is possible");
        assert!(out.complete(), "case {n} of seed {seed} does not end");
        let turn = &s.workload.turns[0];
        let (up, down) = (Turn::bytes(&turn.request), Turn::bytes(&turn.response));
        if up == down {
            continue;
        }
        let mut own = Confusion::new();
        compare(&s, &out, u8::from(down > up), &mut own);
        let total: i64 = own.values().sum();
        let same: i64 = own.iter().filter(|e| e.0.0 == e.0.1).map(|e| e.1).sum();
        if same * 10 < total * 9 && std::env::var_os("ORACLE_SHOW").is_some() {
            let worst: Vec<_> = own
                .iter()
                .filter(|e| e.0.0 != e.0.1)
                .map(|e| (e.0.0.id(), e.0.1.id(), e.1 / 1_000_000))
                .collect();
            println!("case {n}: {:.0} % the same: {worst:?}", same as f64 * 100.0 / total as f64);
        }
        // Each case counts the same, however long it took.
        for (pair, time) in own {
            *sums.entry(pair).or_default() +=
                (i128::from(time) * 1_000_000_000 / i128::from(total.max(1))) as i64;
        }
        done += 1;
    }
    let total: i64 = sums.values().sum();
    let same: i64 = sums.iter().filter(|e| e.0.0 == e.0.1).map(|e| e.1).sum();
    (same as f64 / total.max(1) as f64, sums, done)
}

#[test]
fn the_analysis_returns_what_the_model_knows() {
    let (share, sums, done) = oracle(number("ORACLE_CASES", 300));
    let mut wrong: Vec<_> = sums.iter().filter(|e| e.0.0 != e.0.1).collect();
    wrong.sort_by_key(|e| -e.1);
    for ((model, analysis), time) in wrong.iter().take(12) {
        let share = **time as f64 / 1e9 / done as f64 * 100.0;
        println!("{:<24} called {:<24} {share:.2} %", model.id(), analysis.id());
    }
    println!("{:.2} % of the time is labelled the same, over {done} scenarios", share * 100.0);
    assert!(share >= 0.90, "{:.2} %", share * 100.0);
}
