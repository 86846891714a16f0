//! Prints the packets of a small run.
use tcpwhy_base::{Nanos, Step, Turn, Workload};
use tcpwhy_model::*;

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let ms = |t: f64| Nanos((t * 1e6) as i64);
    let mk = |rtt: f64, rate: f64, q: u64, mtu: u64, up: &[u64], think: f64, down: &[u64]| {
        let mut s = Scenario::with_path(
            ms(rtt),
            (rate > 0.).then_some((rate * 1e6) as u64),
            (q > 0).then_some(q),
            mtu,
        );
        let w = |x: &[u64]| x.iter().map(|&n| Step::Write(n)).collect();
        s.workload = Workload::serial(
            Turn { before: Nanos::ZERO, request: w(up), think: ms(think), response: w(down) },
            1,
        );
        s
    };
    let mut s = match which.as_str() {
        "cork" => {
            let mut s = mk(0.1, 0., 0, 1500, &[500], 0., &[1]);
            s.hosts[0].cork = Cork::Always;
            s
        }
        "auto376" => {
            let mut s = mk(40., 1000., 2_000_000, 1500, &[385_024], 500., &[100]);
            s.hosts[1].read_chunk = 4096;
            s
        }
        "rcv8k" => {
            let mut s = mk(40., 1000., 2_000_000, 1500, &[385_024], 500., &[100]);
            s.hosts[1].read_chunk = 4096;
            s.hosts[1].rcvbuf = Some(8192);
            s
        }
        "nagle16" => {
            let mut s = mk(5., 0., 0, 65500, &[100], 0., &[13_000_000]);
            (s.hosts[1].sndbuf, s.hosts[1].write_chunk) = (Some(16384), Some(16384));
            s
        }
        "one64" => {
            let mut s = mk(1.1, 0., 0, 65500, &[100], 0., &[13_000_000]);
            s.hosts[1].sndbuf = Some(16384);
            s
        }
        "w64k" => {
            let mut s = mk(20., 100., 300_000, 1500, &[6_000_000], 0., &[]);
            (s.hosts[0].sndbuf, s.hosts[0].write_chunk) = (Some(16384), Some(65536));
            s
        }
        "loss" => {
            let mut s = mk(100., 50., 600_000, 1500, &[300], 0., &[100_000]);
            s.links[1].drops = vec![Chosen { what: What::Seq { at: 50_000, copies: 1 }, connection: 0 }];
            s
        }
        _ => mk(200., 1000., 3_000_000, 1500, &[180, 16384], 100., &[150, 20480]),
    };
    if std::env::args().nth(2).is_some() {
        s.hosts.iter_mut().for_each(|h| h.nodelay = true);
    }
    let out = run(&s).unwrap();
    for p in &out.passages {
        let k = &p.packet;
        println!(
            "{:9.3} {:>9} {} seq {:7} len {:5} ack {:7} win {:7} {}{}{}{}{} {:?} {:?}",
            p.sent.as_ms(),
            p.arrived.map_or("lost".into(), |a| format!("{:.3}", a.as_ms())),
            ["C>", "<S"][usize::from(k.from)],
            k.seq,
            k.len,
            k.ack,
            k.window,
            if k.syn { "S" } else { "" },
            if k.psh { "P" } else { "" },
            if k.fin { "F" } else { "" },
            if k.repeat { "R" } else { "" },
            if k.delayed { "D" } else { "" },
            k.cause,
            &k.sack[..usize::from(k.sacks)]
        );
    }
    println!("{:?} {:?}", out.turns, out.elapsed);
}
