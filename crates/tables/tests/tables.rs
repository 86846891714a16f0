//! Rows written to files and read again, and the page that documents them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, TcpFlags};
use tcpwhy_tables::{Reader, Rows, Table, Values, Writer, page};

/// A request that is written in two pieces and answered, `n` times, a second apart, from this moment on.
fn conversation(from: Nanos, n: i64) -> Analysis {
    let client = Endpoint { ip: [10, 0, 0, 1].into(), port: 40_000 };
    let server = Endpoint { ip: [10, 0, 0, 2].into(), port: 80 };
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    let mut frame = 0;
    let mut say = |ms, up: bool, seq, ack, len, flags| {
        frame += 1;
        let (src, dst) = if up { (client, server) } else { (server, client) };
        let (seq, ack, flags) = (Seq(seq), Seq(ack), TcpFlags(flags));
        let time = from + Nanos::millis(ms);
        analyzer.push(&Segment {
            time,
            frame,
            src,
            dst,
            seq,
            ack,
            len,
            window: 64_000,
            flags,
            ..Segment::EMPTY
        });
    };
    let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
    say(0, true, 100, 0, 0, syn);
    say(20, false, 900, 101, 0, syn | ack);
    say(20, true, 101, 901, 0, ack);
    for i in 0..n {
        let (at, up, down) = (1000 * i, 101 + 104 * i as u32, 901 + 50 * i as u32);
        say(at + 30, true, up, down, 4, ack);
        say(at + 90, false, down, up + 4, 0, ack);
        say(at + 90, true, up + 4, down, 100, ack);
        say(at + 110, false, down, up + 104, 50, ack);
    }
    analyzer.finish()
}

fn rows(analysis: &Analysis) -> Rows {
    let capture: Arc<str> = "a.pcap".into();
    let mut rows = Rows::new();
    analysis.connections.iter().for_each(|c| rows.add(&capture, c));
    rows.add_findings(&capture, analysis.connections[0].start, analysis.findings.clone());
    rows
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tables-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn what_is_written_is_read() {
    // Half a second before midnight of the first day of 1970.
    let analysis = conversation(Nanos::secs(86_400) - Nanos::millis(500), 3);
    let (folder, rows) = (folder("round"), rows(&analysis));
    let lengths = rows.lengths();
    let mut writer = Writer::new(&folder, "set-1".into());
    writer.write(rows).unwrap();
    let written = writer.finish().unwrap();
    let named = |name: &str| folder.join(name).is_file();
    assert!(written.files.iter().all(|name| !named(name)), "no file has its name yet");
    written.publish(&folder).unwrap();
    written.publish(&folder).expect("once more changes nothing");
    let mut found = [0; 4];
    let (mut sum, mut causes) = (0, Vec::new());
    for name in &written.files {
        let at = Table::ALL.iter().position(|t| name.starts_with(t.name())).unwrap();
        let reader = Reader::open(&folder.join(name), Table::ALL[at]).unwrap();
        for group in 0..reader.groups() {
            found[at] += reader.rows(group);
            if Table::ALL[at] == Table::Spans {
                let [cause, time, exchange] =
                    reader.columns(group, ["cause", "duration_ns", "exchange"]).unwrap();
                let (Values::Texts(list, words), Values::Numbers(times)) = (cause.values, time.values) else {
                    panic!("other types")
                };
                causes.extend(list.iter().map(|&word| words.get(word).to_owned()));
                sum += times.iter().sum::<i64>();
                assert_eq!(exchange.present.unwrap().len(), times.len());
            }
        }
    }
    assert_eq!(found, lengths);
    assert_eq!(written.files.iter().filter(|f| f.starts_with("exchanges/day=1970-01-0")).count(), 2);
    let c = &analysis.connections[0];
    assert_eq!(sum, (c.budget.total() + c.gap_budget.total()).0);
    assert!(causes.iter().any(|cause| cause == "nagle_delayed_ack"), "{causes:?}");
}

#[test]
fn what_was_not_finished_leaves_nothing() {
    let folder = folder("dropped");
    let mut writer = Writer::new(&folder, "set-1".into());
    writer.write(rows(&conversation(Nanos::secs(5), 1))).unwrap();
    assert!(!writer.is_empty());
    drop(writer);
    for table in Table::ALL {
        assert_eq!(fs::read_dir(folder.join(table.name()).join("day=1970-01-01")).unwrap().count(), 0);
    }
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = folder("refused");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.parquet");
    for bytes in [&b""[..], b"PAR1", b"PAR1\0\0\0\0PAR1", b"PAR1\xff\xff\xff\x7fPAR1"] {
        fs::write(&path, bytes).unwrap();
        assert!(Reader::open(&path, Table::Spans).is_err());
    }
    let missing = Reader::open(&folder.join("missing"), Table::Spans).unwrap_err();
    assert!(missing.to_string().contains("missing"), "{missing}");
}

/// `UPDATE=1 cargo test -p tcpwhy-tables` writes the page anew.
#[test]
fn the_page_is_committed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/tables-1.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page()).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page(), "UPDATE=1 writes it");
}
