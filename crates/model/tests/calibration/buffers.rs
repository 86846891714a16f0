use crate::common::*;
use tcpwhy_model::{Host, Scenario};

/// 22 MB down at 100 Mbit/s, RTT 20 ms.
fn download(sndbuf: Option<u64>, chunk: Option<u64>, nodelay: bool) -> Scenario {
    let s = serial(path(20.0, 100.0, 500_000, 1500), turn(&[100], 0.0, &[22_000_000]), 1);
    with(s, 1, |h| {
        h.sndbuf = sndbuf;
        h.write_chunk = chunk;
        h.nodelay = nodelay;
        h.stack.wake = ms(0.05);
    })
}

/// SO_SNDBUF 16K: what is in flight depends on the size of the writes, because memory is counted by packet buffer.
#[test]
fn a_small_send_buffer_by_the_size_of_the_writes() {
    let writes = [
        (1024, "A2 SNDBUF 16K, 1 KB writes, NODELAY, 22 MB"),
        (4096, "A2 SNDBUF 16K, 4 KB writes, NODELAY"),
        (16384, "A2 SNDBUF 16K, 16 KB writes, NODELAY"),
        (65536, "A2 SNDBUF 16K, 64 KB writes, NODELAY"),
    ];
    for (chunk, id) in writes {
        near(total(&go(&download(Some(16384), Some(chunk), true))), measured(id), 12.0, id);
    }
    let buffers = [
        (65536, "A2 SNDBUF 64K, 16 KB writes, NODELAY"),
        (133_120, "A2 SNDBUF 130K, 16 KB writes, NODELAY"),
        (262_144, "A2 SNDBUF 256K, 16 KB writes, NODELAY"),
    ];
    for (sndbuf, id) in buffers {
        near(total(&go(&download(Some(sndbuf), Some(16384), true))), measured(id), 10.0, id);
    }
    near(total(&go(&download(None, None, false))), measured("A2 automatic"), 10.0, "automatic");
}

/// 6 MB with SO_SNDBUF 16384 (32768 after doubling): what is in flight each round trip makes the time.
#[test]
fn the_table_of_flights() {
    for write in [512, 1448, 4096, 8192, 16384, 65536] {
        // Without a bottleneck, but for the largest writes, which were measured over 100 Mbit/s.
        let mbit = if write > 16384 { 100.0 } else { 0.0 };
        let s = serial(path(20.0, mbit, 0, 1500), turn(&[6_000_000], 0.0, &[]), 1);
        let s = with(s, 0, |h| {
            (h.sndbuf, h.write_chunk, h.nodelay) = (Some(16384), Some(write), true);
        });
        let id = format!("SNDBUF 16K, 6 MB up, writes of {write}");
        near(latencies(&go(&s))[0], measured(&id), 12.0, &id);
    }
}

#[test]
fn nagle_or_one_write_make_a_small_buffer_harmless() {
    let nagle = "A2 SNDBUF 16K, 16 KB writes, Nagle on";
    near(total(&go(&download(Some(16384), Some(16384), false))), measured(nagle), 15.0, nagle);
    let one = "A2 SNDBUF 16K, one write";
    near(total(&go(&download(Some(16384), None, false))), measured(one), 15.0, one);
}

/// 13 MB with SO_SNDBUF 16K at a loopback MTU: the buffer is smaller than a segment. With Nagle on, this path
/// falls into one of two patterns by microseconds (7.5 to 9.4 s, or 1.2 s), so that only the settings with
/// one pattern are targets.
#[test]
fn a_send_buffer_below_the_segment() {
    let base = |rtt: f64, mtu, chunk, nodelay| {
        let s = serial(path(rtt, 0.0, 0, mtu), turn(&[100], 0.0, &[13_000_000]), 1);
        with(s, 1, |h: &mut Host| {
            (h.sndbuf, h.write_chunk, h.nodelay, h.stack.wake) = (Some(16384), chunk, nodelay, ms(0.05));
        })
    };
    let check = |s: &Scenario, percent, id| near(latencies(&go(s))[0], measured(id), percent, id);
    check(&base(5.1, 65_500, Some(16384), true), 10.0, "A2 13 MB, SNDBUF 16K, RTT 5, large MTU, NODELAY");
    check(&base(1.1, 65_500, Some(16384), true), 12.0, "A2 the same, RTT 1");
    check(&base(5.1, 1500, None, false), 10.0, "A2 13 MB, SNDBUF 16K, RTT 5, MTU 1500, one write");
    check(&base(1.1, 1500, None, false), 15.0, "13 MB, SNDBUF 16K, RTT 1, MTU 1500, one write");
}

/// A receive buffer of 8 KiB: windows of 7,240 and then 8,688 bytes.
#[test]
fn a_small_receive_buffer() {
    let mut s = serial(path(40.0, 1000.0, 2_000_000, 1500), turn(&[385_024], 500.0, &[100]), 1);
    (s.hosts[1].rcvbuf, s.hosts[1].read_chunk) = (Some(8192), 4096);
    let out = go(&s);
    let small = "A2 376 KB into SO_RCVBUF 8K, RTT 40";
    // Without the 500 ms of work, as the bound was stated.
    near(latencies(&out)[0] - 500.0, measured(small) - 500.0, 10.0, small);
    let windows: Vec<u64> =
        out.passages.iter().filter(|p| p.packet.from == 1).map(|p| p.packet.window).collect();
    assert_eq!(windows[0], 7240);
    assert_eq!(out.connections[0].wscale[1], 0);
    assert_eq!(windows[windows.len() / 2], 8688, "{:?}", &windows[..20]);
    let s = serial(path(40.0, 0.0, 0, 1500), turn(&[5_000_000], 0.0, &[]), 1);
    let out = go(&with(s, 1, |h| h.rcvbuf = Some(65536)));
    let large = "A2 SO_RCVBUF 64K, RTT 40, 5 MB";
    near(latencies(&out)[0], measured(large), 10.0, large);
    near(
        out.passages.iter().map(|p| p.packet.window).max().unwrap_or(0) as f64,
        80_480.0,
        10.0,
        "its window",
    );
}

/// The reader stops for 6 s: the closed window is probed, each time twice as late.
#[test]
fn a_reader_that_stops() {
    let mut s = serial(path(20.0, 0.0, 0, 1500), turn(&[385_024], 0.0, &[]), 1);
    s.hosts[1].rcvbuf = Some(8192);
    s.hosts[1].read_pauses = vec![(50_000, ms(12_000.0))];
    let out = go(&s);
    let probes: Vec<f64> = out.passages.iter().filter(|p| p.packet.probe).map(|p| p.sent.as_ms()).collect();
    let gaps: Vec<f64> = probes.windows(2).map(|w| w[1] - w[0]).collect();
    for (got, want) in gaps.iter().zip([492.0, 928.0, 1857.0, 3743.0]) {
        near(*got, want, 15.0, "between probes");
    }
    assert!(gaps.len() >= 4, "{gaps:?}");
}
