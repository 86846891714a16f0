//! The library on a bundled capture: whole, as connections end, broken off, damaged, and with what a kernel said in it.

use std::ops::ControlFlow;
use std::path::Path;
use tcpwhy_base::{Endpoint, Segment, Seq, SocketChange, SocketEvent, Source};
use tcpwhy_capture::{Dissector, Frame, Verdict, Writer};
use tcpwhy_library::{Connection, Explain, Filter, Nanos, Reader};

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/zeek__smtp_bdat.pcap")
}

/// The capture as pcapng, where the client's kernel says of each write when it was made: just before it passed.
fn with_writes() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut reader = Reader::open(&path())?;
    let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
    let mut writer = Writer::pcapng(Vec::new())?;
    while let Some(frame) = reader.next()? {
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp
            && segment.dst.port == 25
            && segment.len > 0
        {
            let change = SocketChange::Write { from: segment.seq, bytes: segment.len, read: None };
            let time = segment.time - Nanos::micros(1);
            writer.event(&SocketEvent { time, local: segment.src, remote: segment.dst, change })?;
        }
        writer.write(&frame, None)?;
    }
    Ok(writer.finish()?)
}

fn says(connection: &Connection, source: Source) -> usize {
    connection.parts().flat_map(|(_, spans)| spans).filter(|span| span.source == source).count()
}

#[test]
fn a_kernel_in_the_capture_is_heard() {
    let inferred = Explain::new().file(path()).unwrap();
    assert_eq!(says(&inferred.connections[0], Source::Kernel), 0);
    let bytes = with_writes().unwrap();
    let heard = Explain::new().bytes(bytes.clone()).unwrap();
    let connection = &heard.connections[0];
    assert!(says(connection, Source::Kernel) > 10, "{}", says(connection, Source::Kernel));
    // The same as they end; and of another port nothing is heard, and nothing panics.
    let reader = Reader::new(Box::new(std::io::Cursor::new(bytes.clone()))).unwrap();
    let mut found = 0;
    Explain::new().each(reader, |c| {
        found += says(c, Source::Kernel);
        ControlFlow::Continue(())
    });
    assert_eq!(found, says(connection, Source::Kernel));
    let other = Explain::new().filter(Filter::parse("port 26").unwrap()).bytes(bytes).unwrap();
    assert!(other.connections.is_empty());
}

/// A file whose kernel says more between two packets than is kept: what was left out is counted.
#[test]
fn events_that_find_no_room_are_counted() {
    let mut writer = Writer::pcapng(Vec::new()).unwrap();
    let end = |port| Endpoint { ip: [10, 0, 0, 1].into(), port };
    let change = SocketChange::Write { from: Seq(1), bytes: 1, read: None };
    let event = SocketEvent { time: Nanos(1), local: end(1), remote: end(2), change };
    (0..(1 << 16) + 3).for_each(|_| writer.event(&event).unwrap());
    writer.write(&Frame::new(Nanos(5), 1, b"one"), None).unwrap();
    writer.event(&event).unwrap();
    let found = Explain::new().bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(found.input.events_left_out, 3);
}

#[test]
fn each_gives_what_all_gives_and_may_break_off() {
    let all = Explain::new().file(path()).unwrap();
    let mut given = Vec::new();
    let ended = Explain::new().each(Reader::open(&path()).unwrap(), |c| {
        given.push((c.budget.clone(), c.gap_budget.clone(), c.exchanges.len()));
        ControlFlow::Continue(())
    });
    let of = |c: &Connection| (c.budget.clone(), c.gap_budget.clone(), c.exchanges.len());
    assert_eq!(given, all.connections.iter().map(of).collect::<Vec<_>>());
    assert_eq!((ended.input.packets, ended.input.stopped), (all.input.packets, false));
    let broken = Explain::new().each(Reader::open(&path()).unwrap(), |_| ControlFlow::Break(()));
    assert!(broken.input.stopped);
}

/// Asked to stop, it stops soon, also where nothing of the capture becomes a segment: all that was read is
/// filtered away.
#[test]
fn it_stops_soon_whatever_the_capture_holds() {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let filter = Filter::parse("port 26").unwrap();
    let stopped = Explain::new().filter(filter).stopped_by(stop).file(path()).unwrap();
    assert!(stopped.input.stopped && stopped.input.packets <= 64, "{}", stopped.input.packets);
}

#[test]
fn damage_ends_the_reading_and_what_came_before_counts() {
    let mut bytes = std::fs::read(path()).unwrap();
    bytes.truncate(bytes.len() / 2);
    let half = Explain::new().bytes(bytes).unwrap();
    assert!(half.input.damage.is_some() && half.input.packets == 91, "{}", half.input.packets);
    assert_eq!(half.connections.len(), 1);
    assert!(Explain::new().bytes(*b"no capture at all").is_err());
}

#[test]
fn parts_are_the_whole_and_no_two_numbers_are_the_same() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/PcapPlusPlus__pcapng-example.pcapng");
    let of = |c: &Connection| (c.start, c.client, c.server, c.budget.clone(), c.exchanges.len());
    let all = Explain::new().file(&path).unwrap();
    let mut whole: Vec<_> = all.connections.iter().map(of).collect();
    for n in [1, 3] {
        let (mut parts, mut numbers) = (Vec::new(), Vec::new());
        for k in 0..n {
            let explain = Explain::new().part(k, n);
            let mine = explain.file(&path).unwrap();
            let ids: Vec<u32> = mine.connections.iter().map(|c| c.id).collect();
            assert!(mine.findings.iter().all(|f| ids.contains(&f.example.connection)), "{ids:?}");
            let mut given = Vec::new();
            explain.each(Reader::open(&path).unwrap(), |c| {
                given.push(c.id);
                ControlFlow::Continue(())
            });
            given.sort_unstable();
            assert_eq!(given, ids);
            assert_eq!(mine.input.packets, all.input.packets, "each reads all");
            numbers.extend(ids);
            parts.extend(mine.connections.iter().map(of));
        }
        let key = |x: &(Nanos, _, _, _, usize)| (x.0, format!("{:?}", (x.1, x.2)));
        whole.sort_by_key(key);
        parts.sort_by_key(key);
        assert_eq!(parts, whole, "of {n}");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), whole.len());
    }
    assert!(whole.len() > 10);
}
