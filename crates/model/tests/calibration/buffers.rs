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
    for (chunk, seconds) in [(1024, 28.0), (4096, 18.9), (16384, 14.5), (65536, 8.1)] {
        let out = go(&download(Some(16384), Some(chunk), true));
        // Writes of 1 KB: 28.0 s measured once, 30.5 s in a run on a quieter machine.
        near(total(&out) / 1000.0, seconds, 12.0, &format!("SO_SNDBUF 16K, writes of {chunk}"));
    }
    for (sndbuf, seconds) in [(65536, 4.85), (133_120, 2.62), (262_144, 1.91)] {
        let out = go(&download(Some(sndbuf), Some(16384), true));
        near(total(&out) / 1000.0, seconds, 10.0, &format!("SO_SNDBUF {sndbuf}"));
    }
    near(total(&go(&download(None, None, false))) / 1000.0, 1.92, 10.0, "automatic");
}

/// KiB in flight per round trip with SO_SNDBUF 16384 (32768 after doubling).
#[test]
fn the_table_of_flights() {
    for (write, kib) in [(512, 12.4), (1448, 20.8), (4096, 26.7), (8192, 29.9), (16384, 30.8), (65536, 55.0)]
    {
        // Without a bottleneck, but for the largest writes, which were measured over 100 Mbit/s.
        let mbit = if write > 16384 { 100.0 } else { 0.0 };
        let s = serial(path(20.0, mbit, 0, 1500), turn(&[6_000_000], 0.0, &[]), 1);
        let s = with(s, 0, |h| {
            (h.sndbuf, h.write_chunk, h.nodelay) = (Some(16384), Some(write), true);
        });
        let out = go(&s);
        let took = latencies(&out)[0];
        near(6_000_000.0 / 1024.0 / (took / 20.0), kib, 12.0, &format!("writes of {write}"));
    }
}

#[test]
fn nagle_or_one_write_make_a_small_buffer_harmless() {
    near(
        total(&go(&download(Some(16384), Some(16384), false))) / 1000.0,
        2.8,
        15.0,
        "16 KB writes, Nagle on",
    );
    near(total(&go(&download(Some(16384), None, false))) / 1000.0, 2.9, 15.0, "one write");
}

/// 13 MB with SO_SNDBUF 16K at a loopback MTU: the buffer is smaller than a segment. With Nagle on, this path falls into
/// one of two patterns by microseconds (9.4 or 1.2 s), so that only the settings with one pattern are targets.
#[test]
fn a_send_buffer_below_the_segment() {
    let base = |rtt: f64, mtu, chunk, nodelay| {
        let s = serial(path(rtt, 0.0, 0, mtu), turn(&[100], 0.0, &[13_000_000]), 1);
        with(s, 1, |h: &mut Host| {
            (h.sndbuf, h.write_chunk, h.nodelay, h.stack.wake) = (Some(16384), chunk, nodelay, ms(0.05));
        })
    };
    let seconds = |s: &Scenario| latencies(&go(s))[0] / 1000.0;
    near(seconds(&base(5.1, 65_500, Some(16384), true)), 2.10, 10.0, "RTT 5, 16 KB writes, NODELAY");
    near(seconds(&base(1.1, 65_500, Some(16384), true)), 0.47, 12.0, "RTT 1");
    near(seconds(&base(5.1, 1500, None, false)), 1.14, 10.0, "RTT 5, MTU 1500, one write");
    near(seconds(&base(1.1, 1500, None, false)), 0.28, 15.0, "RTT 1, MTU 1500, one write");
}

/// A receive buffer of 8 KiB: windows of 7,240 and then 8,688 bytes.
#[test]
fn a_small_receive_buffer() {
    let mut s = serial(path(40.0, 1000.0, 2_000_000, 1500), turn(&[385_024], 500.0, &[100]), 1);
    (s.hosts[1].rcvbuf, s.hosts[1].read_chunk) = (Some(8192), 4096);
    let out = go(&s);
    // 1.77 s on a quiet machine (376,000 bytes), 2.19 s on a loaded one, where the reader came late.
    near(latencies(&out)[0] - 500.0, 1770.0 * 385_024.0 / 376_000.0, 10.0, "376 KB into SO_RCVBUF 8K");
    let windows: Vec<u64> =
        out.passages.iter().filter(|p| p.packet.from == 1).map(|p| p.packet.window).collect();
    assert_eq!(windows[0], 7240);
    assert_eq!(out.connections[0].wscale[1], 0);
    assert_eq!(windows[windows.len() / 2], 8688, "{:?}", &windows[..20]);
    let s = serial(path(40.0, 0.0, 0, 1500), turn(&[5_000_000], 0.0, &[]), 1);
    let out = go(&with(s, 1, |h| h.rcvbuf = Some(65536)));
    near(latencies(&out)[0], 2650.0, 10.0, "5 MB into SO_RCVBUF 64K");
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
