use crate::common::*;
use tcpwhy_base::Nanos;
use tcpwhy_model::Congestion;

fn puzzle(mtu: u64) -> tcpwhy_model::Scenario {
    serial(path(200.0, 500.0, 3_000_000, mtu), turn(&[180, 16384], 100.0, &[150, 20480]), 1)
}

/// 16 KiB up, 20 KiB down, 200 ms away, 100 ms of work; connecting included.
#[test]
fn the_published_puzzle() {
    let mut closes = with(puzzle(1500), 0, |h| h.nodelay = true);
    closes.workload.server_closes = true;
    let id = "A4 fresh, MTU 1500, the server closes";
    near(total(&go(&closes)), measured(id), 2.0, id);
    let mut closes = with(puzzle(8500), 0, |h| h.nodelay = true);
    closes.workload.server_closes = true;
    let id = "A4 fresh, MTU 8500, the server closes";
    near(total(&go(&closes)), measured(id), 3.0, id);
    near(
        total(&go(&with(puzzle(8500), 0, |h| h.nodelay = true))),
        measured("A4 fresh, MTU 8500, kept open, Nagle on"),
        2.0,
        "MTU 8500, Nagle at the server",
    );
    let id = "puzzle, MTU 8500, no Nagle";
    near(total(&go(&nodelay(puzzle(8500)))), measured(id), 2.0, id);
    let wide = |h: &mut tcpwhy_model::Host| h.initcwnd = Some(20);
    near(
        total(&go(&with(with(nodelay(puzzle(1500)), 0, wide), 1, wide))),
        measured("A4 initcwnd 20"),
        2.0,
        "initcwnd 20",
    );
    let bbr = |h: &mut tcpwhy_model::Host| h.stack.congestion = Some(Congestion::Bbr);
    near(
        total(&go(&with(with(nodelay(puzzle(1500)), 0, bbr), 1, bbr))),
        measured("A4 bbr, fresh"),
        10.0,
        "bbr",
    );
}

/// What the application limited says nothing about bandwidth: a kept connection with small answers is not
/// paced to a crawl, and of larger ones all but the first flight counts.
#[test]
fn bbr_on_a_kept_connection() {
    let answers = |bytes: u64, requests: u32| {
        let s = nodelay(serial(path(40.0, 0.0, 0, 1500), turn(&[100], 0.0, &[bytes]), requests));
        let bbr = |h: &mut tcpwhy_model::Host| h.stack.congestion = Some(Congestion::Bbr);
        total(&go(&with(with(s, 0, bbr), 1, bbr)))
    };
    for (bytes, requests, id) in [
        (200_000, 10, "bbr, 10 answers of 200 KB, 40 ms"),
        (60_000, 12, "bbr, 12 answers of 60 KB, 40 ms"),
        (4_200, 13, "bbr, 13 answers of 4200 bytes, 40 ms"),
    ] {
        near(answers(bytes, requests), measured(id), 3.0, id);
    }
}

fn keep_alive(gap: f64) -> tcpwhy_model::Scenario {
    let mut s = nodelay(puzzle(1500));
    s.workload.requests = 5;
    s.workload.turns[0].before = ms(gap);
    s
}

#[test]
fn a_kept_connection() {
    near(latencies(&go(&keep_alive(0.0)))[3], measured("A4 kept, back to back"), 2.0, "back to back");
    near(
        latencies(&go(&with(keep_alive(0.0), 1, |h| h.nodelay = false)))[3],
        measured("A4 kept, back to back, server Nagle on"),
        2.0,
        "Nagle at the server",
    );
    near(latencies(&go(&keep_alive(1000.0)))[3], measured("A4 kept, 1 s gap"), 2.0, "1 s between");
    near(
        latencies(&go(&keep_alive(150.0)))[3],
        measured("A4 kept, 150 ms gap"),
        2.0,
        "150 ms between: counted from the last sent data",
    );
    near(latencies(&go(&keep_alive(6000.0)))[3], measured("puzzle kept, 6 s gap"), 2.0, "6 s between");
    let off = |h: &mut tcpwhy_model::Host| h.stack.idle_restart = Some(false);
    near(
        latencies(&go(&with(with(keep_alive(6000.0), 0, off), 1, off)))[3],
        measured("A4 kept, 6 s gap, ssai=0"),
        2.0,
        "ssai=0",
    );
}

#[test]
fn flights_are_ten_twenty_forty() {
    let s = nodelay(serial(path(200.0, 0.0, 0, 1500), turn(&[100], 0.0, &[200_000]), 1));
    let out = go(&s);
    let mut flights: Vec<(Nanos, u32)> = Vec::new();
    for p in out.passages.iter().filter(|p| p.packet.from == 1 && p.packet.len > 0) {
        match flights.last_mut() {
            Some((at, n)) if p.sent - *at < Nanos::millis(50) => *n += 1,
            _ => flights.push((p.sent, 1)),
        }
    }
    let sizes: Vec<u32> = flights.iter().map(|f| f.1).collect();
    assert_eq!(sizes[..3], [10, 20, 40], "{sizes:?}");
    // Each a round trip after the one before: connect 200, request half a trip later.
    for (n, f) in flights.iter().take(4).enumerate() {
        near(f.0.as_ms(), 300.0 + 200.0 * n as f64, 1.0, "release of a flight");
    }
}

#[test]
fn a_376_kb_upload_with_default_buffers() {
    let mut s = serial(path(40.0, 1000.0, 2_000_000, 1500), turn(&[385_024], 500.0, &[100]), 1);
    s.hosts[1].read_chunk = 4096;
    // Of five runs four took 703 to 706 ms and one a round trip more.
    near(usual(&s), measured("A2 default receive buffer, RTT 40"), 5.0, "376 KB up, RTT 40, 500 ms of work");
}
