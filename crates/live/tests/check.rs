//! Faults that cannot be planted on a host that others use, too: from the counters and sockets that prove them.

use tcpwhy_base::{Endpoint, Nanos};
use tcpwhy_live::check::{Audit, Counters, Fault, Settings};
use tcpwhy_live::{Congestion, Info, Sample, State};

fn counters(values: &[(&str, u64)]) -> Counters {
    let names: Vec<&str> = values.iter().map(|v| v.0).collect();
    let numbers: Vec<String> = values.iter().map(|v| v.1.to_string()).collect();
    let mut out = Counters::default();
    out.add(&format!("TcpExt: {}\nTcpExt: {}\n", names.join(" "), numbers.join(" ")));
    out
}

/// What is found when counters grow from 5 to 8 in a second, while TCP holds so many pages.
fn grown(names: &[&str], pages: u64, tcp_mem: Option<[u64; 3]>) -> Vec<Fault> {
    let settings = Settings { tcp_mem, ..Settings::default() };
    let at = |value| counters(&names.iter().map(|n| (*n, value)).collect::<Vec<_>>());
    let mut audit = Audit::new(settings, at(5), Nanos::ZERO);
    audit.sockets(&[], Nanos::ZERO);
    audit.counted(at(8), pages, Nanos::secs(1));
    audit.sockets(&[], Nanos::secs(2));
    audit.finish().0
}

#[test]
fn counters_that_grow_are_evidence() {
    for (names, id, words) in [
        (&["ListenOverflows"][..], "listen-drops", "3 SYNs or handshakes"),
        (&["TCPBacklogDrop"], "backlog-drops", "TCPBacklogDrop grew by 3"),
        (&["PAWSTimewait"], "timestamps-rejected", "PAWSTimewait grew by 3"),
        (&["PAWSEstab"], "timestamps-rejected", "PAWSEstab grew by 3"),
        (&["TCPMemoryPressures", "TCPAbortOnMemory"], "memory-pressure", "3 connections were ended for it"),
        (&["TCPTimeWaitOverflow"], "time-wait-limit", "tcp_max_tw_buckets"),
        (&["InCsumErrors"], "bad-checksums", "grew by 3"),
    ] {
        for tcp_mem in [None, Some([100, 200, 300])] {
            let found = grown(names, 50, tcp_mem);
            let ids: Vec<&str> = found.iter().map(|f| f.id).collect();
            assert_eq!(ids, [id], "{names:?}");
            assert!(found[0].evidence.contains(words), "{}", found[0].evidence);
            assert_eq!((found[0].when.0, found[0].when.1), (Nanos::secs(1), Nanos::secs(1)));
        }
    }
    assert!(grown(&["Nothing"], 50, Some([100, 200, 300])).is_empty());
}

#[test]
fn pages_are_held_against_the_limit_where_it_is_known() {
    let found = grown(&[], 250, Some([100, 200, 300]));
    assert_eq!(found.len(), 1);
    assert!(found[0].id == "memory-pressure" && found[0].evidence.contains("above 200"), "{found:?}");
    assert!(grown(&[], 250, None).is_empty());
}

/// Two seconds of thinking, then bytes that wait for a window that was larger before, again and again.
#[test]
fn a_window_that_shrinks_while_idle_is_a_fault_however_long_it_is_idle() {
    let sample = |n: i64| {
        let at = |port| Endpoint { ip: [10, 0, 0, 1].into(), port };
        // Of each 2.5 s the last half is busy: its window is full, of two packets where ten had been.
        let (turn, within) = (n / 25, n % 25);
        let busy = turn * 500 + (within - 20).max(0) * 100;
        let waits = within >= 20;
        let info = Info {
            snd_mss: 1448,
            cwnd: if n == 0 { 10 } else { 2 },
            ssthresh: 10,
            rtt: Nanos::millis(100),
            min_rtt: Nanos::millis(100),
            rto: Nanos::millis(300),
            unacked: if waits { 2 } else { 0 },
            notsent: if waits { 50_000 } else { 0 },
            snd_wnd: Some(1 << 20),
            bytes_acked: 100_000,
            bytes_received: 100,
            max_pacing_rate: u64::MAX,
            busy: Nanos::millis(busy),
            ..Info::default()
        };
        Sample {
            cookie: 1,
            local: at(40_000),
            peer: at(80),
            device: 0,
            state: State::Established,
            inode: 5,
            rqueue: 0,
            wqueue: if waits { 52_896 } else { 0 },
            retransmits: 0,
            expires: None,
            info: Some(info),
            memory: None,
            congestion: Congestion::new(b"cubic"),
        }
    };
    let found = |slow_start_after_idle| {
        let settings = Settings { slow_start_after_idle, ..Settings::default() };
        let mut audit = Audit::new(settings, Counters::default(), Nanos::ZERO);
        (0..100).for_each(|n| audit.sockets(&[sample(n)], Nanos::millis(100 * n)));
        audit.finish().0
    };
    let faults = found(Some(1));
    assert_eq!(faults.iter().map(|f| f.id).collect::<Vec<_>>(), ["idle-restart"]);
    assert!(faults[0].evidence.contains("in which anything was under way"), "{}", faults[0].evidence);
    assert!(found(Some(0)).is_empty());
}
