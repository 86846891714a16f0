//! The page: what stands in it without a script, what its script finds, and packets as columns.

use crate::{at, coloured, finding, fix, packet, same, sample};
use flate2::read::DeflateDecoder;
use serde_json::{Value, json};
use std::io::Read;
use tcpwhy_analysis::{Analysis, Facts};
use tcpwhy_base::{Cause, End, Ends, FixId, Nanos, Side, TcpFlags};
use tcpwhy_report::html::{Extras, Served, encode_track, write};
use tcpwhy_report::{Answer, Capture, Warning, headline, json};
use tcpwhy_trace::{Packet, Track};

fn page(analysis: &Analysis, capture: &Capture, extras: &Extras<'_>) -> String {
    coloured(|out| write(out, analysis, capture, extras, 1))
}

/// The bytes of the block with this id.
fn block(page: &str, id: &str) -> Option<Vec<u8>> {
    let (_, rest) = page.split_once(&format!("<script type=\"text/plain\" id=\"{id}\">"))?;
    let (text, _) = rest.split_once("</script>")?;
    assert_eq!(text.len() % 4, 0, "base64 is written in fours");
    let digit = |c: u8| match c {
        b'A'..=b'Z' => u32::from(c - b'A'),
        b'a'..=b'z' => u32::from(c - b'a') + 26,
        b'0'..=b'9' => u32::from(c - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => 0,
    };
    let mut bytes = Vec::new();
    for four in text.as_bytes().chunks(4) {
        let bits = four.iter().fold(0, |bits, &c| bits << 6 | digit(c));
        let padded = four.iter().filter(|&&c| c == b'=').count();
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padded]);
    }
    let mut out = Vec::new();
    DeflateDecoder::new(bytes.as_slice()).read_to_end(&mut out).expect("blocks are deflated");
    Some(out)
}

fn page_data(page: &str) -> Value {
    serde_json::from_slice(&block(page, "d-page").expect("the block is there")).expect("it is JSON")
}

/// What stands in the page for those who have no script.
fn static_part(page: &str) -> &str {
    let (_, rest) = page.split_once("<p class=\"files\">").expect("the plain part begins with the files");
    rest.split_once("<script")
        .map_or(rest, |(part, _)| part)
        .split_once("</table>\n</")
        .map_or(rest, |(part, _)| part)
}

#[test]
fn without_a_script() {
    let mut analysis = sample::analysis();
    let mut nagle = finding(Cause::Nagle, Some(Side::Client), 200, 3);
    nagle.fixes = vec![
        fix(FixId::Nodelay, "client", &["one <way>", "another"], Some(200), false),
        fix(FixId::OneWrite, "client", &[], Some(100), false),
        fix(FixId::Quickack, "server", &[], Some(50), true),
    ];
    let mut once = finding(Cause::Unexplained, None, 30, 1);
    once.tail = Nanos::millis(10);
    let mut chatty = finding(Cause::Chatty, Some(Side::Client), 20, 2);
    chatty.facts = Facts::None;
    analysis.findings.extend([nagle, once, chatty, finding(Cause::Cork, None, 50, 0)]);
    let mut second = sample::connection();
    (second.id, second.bytes) = (2, [1024, 1]);
    analysis.connections.push(Box::new(second));
    let capture = Capture {
        files: vec!["dir/a.pcap".into(), "b&c.pcap".into()],
        warnings: vec![Warning { code: "x", text: "cut <short>".into(), count: 2 }],
        ..sample::capture()
    };
    let text = page(&analysis, &capture, &Extras::default());
    same("page.html", static_part(&text));
}

#[test]
fn an_empty_answer_has_no_empty_tables() {
    let text = page(&Analysis::default(), &Capture::default(), &Extras::default());
    let part = static_part(&text);
    let part = part.split_once("</h1>").expect("there is a verdict").1;
    assert!(!part.contains("<h2>") && !part.contains("<table>") && !part.contains("<ul>"), "{part}");
}

#[test]
fn fifty_connections_stand_without_a_script() {
    let rows = |n: u32| {
        let mut analysis = sample::analysis();
        let mut one = sample::connection();
        let numbered = |id| {
            one.id = id;
            Box::new(one.clone())
        };
        analysis.connections = (1..=n).map(numbered).collect();
        let text = page(&analysis, &Capture::default(), &Extras::default());
        let (_, table) = text.split_once("<h2>Connections</h2>").expect("there is a table");
        let (table, after) = table.split_once("</table>").expect("it ends");
        let more = after.trim_start().strip_prefix("<p>and ").and_then(|m| m.split_once("</p>"));
        (table.matches("<tr><td>").count(), more.map(|m| m.0.to_owned()))
    };
    assert_eq!(rows(50), (50, None));
    assert_eq!(rows(52), (50, Some("2 more".into())));
}

#[test]
fn a_title_names_three_files_without_their_folders() {
    let title = |files: &[&str]| {
        let capture = Capture { files: files.iter().map(|f| (*f).into()).collect(), ..Capture::default() };
        let text = page(&Analysis::default(), &capture, &Extras::default());
        let (_, title) = text.split_once("<title>").expect("a page has a title");
        title.split_once("</title>").map_or(String::new(), |(t, _)| t.to_owned())
    };
    assert_eq!(title(&["/a/b/one.pcap"]), "one.pcap · tcpwhy");
    assert_eq!(title(&["c:\\a\\one.pcap", "x/two", "three", "four"]), "one.pcap, two, three · tcpwhy");
}

#[test]
fn the_script_finds_the_answer_and_the_pages() {
    let (analysis, capture) = (sample::analysis(), sample::capture());
    let extras = Extras {
        pages: &[("nagle", "# Nagle"), ("cork", "# Cork")],
        served: Some(Served { name: "smtp.pcap" }),
        ..Extras::default()
    };
    let text = page(&analysis, &capture, &extras);
    assert!(text.contains("connect-src 'self'"));
    let report = coloured(|out| json::write(out, &analysis, &capture, 1));
    assert!(block(&text, "d-report") == Some(report.into_bytes()));
    let report: Value = serde_json::from_slice(&block(&text, "d-report").unwrap()).unwrap();
    assert_eq!(report["summary"]["headline"], json!(headline(&analysis, &capture, &Answer::new(&analysis))));
    let mut data = page_data(&text);
    let causes = data["causes"].take();
    assert_eq!(
        data,
        json!({
            "frames_before": [0],
            "exchanges": analysis.totals.exchanges,
            "causes": null,
            "tracks": [],
            "served": { "name": "smtp.pcap" },
            "fixes": {},
            // Of the first finding, of its one fix: the row of the sample is not of the table.
            "general": [[[]], []]
        })
    );
    let row = |id: &str| causes.as_array().and_then(|c| c.iter().find(|c| c["id"] == id)).cloned();
    let info = Cause::Nagle.info();
    assert_eq!(
        row("nagle"),
        Some(json!({
            "id": "nagle", "class": "T", "owner": "tcp", "group": "small_writes", "span": true,
            "title": info.title, "what": info.what, "page": "# Nagle"
        }))
    );
    let chatty = row("chatty").expect("every cause is there");
    assert_eq!((&chatty["span"], &chatty["page"]), (&json!(false), &json!("")));
    assert_eq!(block(&text, "d-packets-0"), None);
}

#[test]
fn small_tracks_share_a_block() {
    let one = |connection, n: u64| Track {
        connection,
        packets: (0..n).map(|i| varied(i, connection)).collect(),
        total: 2 * n,
        ..Track::default()
    };
    // Twelve thousand and more bytes a thousand packets: the third track begins a new block.
    let tracks = [one(1, 3), one(2, 30_000), one(3, 2)];
    let capture = sample::capture();
    let extras = Extras { tracks: &tracks, ..Extras::default() };
    let text = page(&sample::analysis(), &capture, &extras);
    let sizes: Vec<usize> = tracks.iter().map(|t| encode_track(t, capture.start()).len()).collect();
    assert!(sizes[1] > 256 << 10, "{sizes:?}");
    assert_eq!(
        page_data(&text)["tracks"],
        json!([
            { "connection": 1, "chunk": 0, "at": 0, "kept": 3, "total": 6 },
            { "connection": 2, "chunk": 0, "at": sizes[0], "kept": 30_000, "total": 60_000 },
            { "connection": 3, "chunk": 1, "at": 0, "kept": 2, "total": 4 }
        ])
    );
    let blocks = ["d-packets-0", "d-packets-1"].map(|id| block(&text, id).expect("both blocks are there"));
    assert_eq!(blocks.map(|b| b.len()), [sizes[0] + sizes[1], sizes[2]]);
    assert_eq!(block(&text, "d-packets-2"), None);
}

/// A packet whose numbers do not follow from the one before.
fn varied(i: u64, seed: u32) -> Packet {
    let n = (i * 7919 + u64::from(seed) * 104_729) as i64;
    let from = if n % 3 == 0 { End::Client } else { End::Server };
    let mut p = packet(
        i * 3 + 1,
        0.0,
        from,
        (n % 256) as u16,
        [n * 31 % 99_991, n * 17 % 65_537, n % 1461],
        (n % 4001) as u16,
    );
    p.time = at(1.0) + Nanos(n);
    p.marks = (n % 64) as u8;
    p.sacks = (n % 5) as u8;
    for (k, block) in p.sack.iter_mut().take(usize::from(p.sacks)).enumerate() {
        *block = (n % 1000 + k as i64, n % 2000 - k as i64);
    }
    p
}

/// Reads columns as the script of the page does.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn unsigned(&mut self) -> u64 {
        let (mut n, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.0.split_first().expect("a number ends");
            self.0 = rest;
            n |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return n;
            }
            shift += 7;
        }
    }

    fn signed(&mut self) -> i64 {
        let n = self.unsigned();
        (n >> 1) as i64 ^ -((n & 1) as i64)
    }
}

/// The packets in `bytes`, their times in nanoseconds from the start, and both shifts.
fn decode(bytes: &[u8], start: Nanos) -> (Vec<Packet>, [u64; 2]) {
    let mut head = Reader(bytes);
    let (n, unit, mut time) = (head.unsigned(), head.unsigned() as i64, head.signed());
    let shifts = [head.unsigned(), head.unsigned()];
    let mut rest = head;
    let columns: [&[u8]; 9] = std::array::from_fn(|_| {
        let length = rest.unsigned() as usize;
        let (column, after) = rest.0.split_at(length);
        rest.0 = after;
        column
    });
    assert!(rest.0.is_empty());
    let [mut t, mut frame, mut flags, marks, mut seq, mut len, mut ack, mut window, mut sack] =
        columns.map(Reader);
    let mut packets: Vec<Packet> = Vec::new();
    let mut number = 0;
    let mut before: Ends<Option<Packet>> = Ends::default();
    for _ in 0..n {
        time += t.signed();
        number += frame.signed();
        let bits = flags.unsigned();
        let from = if bits & 1 == 1 { End::Server } else { End::Client };
        let last = before[from];
        let (base, acked, wide) = last.map_or((0, 0, 0), |l| (l.seq_end(), l.ack, i64::from(l.window)));
        let length = len.unsigned() as i64;
        let numbers = [base + seq.signed(), acked + ack.signed(), length];
        let mut p =
            packet(number as u64, 0.0, from, (bits >> 1) as u16, numbers, (wide + window.signed()) as u16);
        p.time = start + Nanos(time * unit);
        p.marks = marks.0[packets.len()];
        let (&sacks, after) = sack.0.split_first().expect("the number of blocks is there");
        (sack.0, p.sacks) = (after, sacks);
        for block in p.sack.iter_mut().take(usize::from(sacks)) {
            block.0 = p.ack + sack.signed();
            block.1 = block.0 + sack.signed();
        }
        before[from] = Some(p);
        packets.push(p);
    }
    (packets, shifts)
}

#[test]
fn what_is_packed_can_be_read_again() {
    let packets: Vec<Packet> = (0..50).map(|i| varied(i, 1)).collect();
    let track = Track { connection: 1, packets, total: 50, shift: Ends::new(Some(3), None) };
    for start in [at(0.0), at(1.0), at(2.0)] {
        let (read, shifts) = decode(&encode_track(&track, start), start);
        assert_eq!(format!("{read:?}"), format!("{:?}", track.packets));
        // One more than each, 0 where it is not known.
        assert_eq!(shifts, [4, 0]);
    }
    assert_eq!(decode(&encode_track(&Track::default(), at(5.0)), at(5.0)).0.len(), 0);
}

#[test]
fn microseconds_are_the_step_where_they_lose_nothing() {
    let unit = |ns: i64| {
        let mut packets = vec![packet(1, 1.0, End::Client, TcpFlags::ACK, [1, 1, 1], 1); 2];
        packets[1].time = at(1.0) + Nanos(ns);
        let bytes = encode_track(&Track { packets, ..Track::default() }, at(0.0));
        let mut head = Reader(&bytes);
        (head.unsigned(), head.unsigned(), head.signed())
    };
    assert_eq!(unit(5000), (2, 1000, 1000));
    assert_eq!(unit(5001), (2, 1, 1_000_000));
}
