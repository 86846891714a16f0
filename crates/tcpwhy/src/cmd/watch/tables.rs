//! `tcpwhy watch --parquet`: what is known after each interval, as tables. A set of files takes its names at
//! each full hour (UTC), when it is large, and at the end; until then what is written has names that no
//! engine reads.

use crate::failure::say;
use crate::fleet::manifest::Manifest;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tcpwhy_base::Nanos;
use tcpwhy_live::{Connection, Snapshot, proc_text};
use tcpwhy_tables::{WatchRows, Writer};

/// Rows that are held at once, some 10 MB; a group of rows has so many.
const ROWS: usize = 1 << 16;
/// Groups in a set of files.
const GROUPS: usize = 16;
const HOUR: i64 = 3_600_000_000_000;

/// What was looked at and has not been made known, and what was.
pub(super) struct Tables {
    folder: PathBuf,
    manifest: Manifest,
    rows: WatchRows,
    writer: Option<Writer>,
    groups: usize,
    /// Full hours since 1970 when the set was begun.
    hour: i64,
    /// The time of day when the clock of snapshots was zero. Asked for once a set, so that intervals neither
    /// overlap nor leave holes.
    zero: Option<Nanos>,
    /// The time of day at the end of the last interval.
    end: Nanos,
    /// Connections that lived then.
    live: Vec<Connection>,
    sets: usize,
    bytes: u64,
}

impl Tables {
    /// Into this folder, in which no other run may write.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Tables> {
        crate::fleet::make(folder)?;
        let host = proc_text("sys/kernel/hostname").unwrap_or_default();
        let now = time_of_day();
        Ok(Tables {
            folder: folder.into(),
            manifest: Manifest::open(folder)?,
            rows: WatchRows::new(host.trim()),
            writer: None,
            groups: 0,
            hour: now.0 / HOUR,
            zero: None,
            end: now,
            live: Vec::new(),
            sets: 0,
            bytes: 0,
        })
    }

    /// Takes an interval: connections that ended in it, and what lives at its end; `now` on the clock of snapshots.
    pub(super) fn add(&mut self, ended: &[Connection], snapshot: Snapshot, now: Nanos) -> anyhow::Result<()> {
        let zero = *self.zero.get_or_insert_with(|| time_of_day() - now);
        let end = zero + snapshot.time;
        self.add_at(ended, snapshot, end)
    }

    fn add_at(&mut self, ended: &[Connection], snapshot: Snapshot, end: Nanos) -> anyhow::Result<()> {
        self.rows.add(end - snapshot.interval, end, ended, &snapshot.connections);
        self.end = end;
        self.live = snapshot.connections;
        let hour = end.0 / HOUR;
        if hour != self.hour || self.groups >= GROUPS {
            self.hour = hour;
            self.commit()
        } else if self.rows.len() >= ROWS {
            self.write(false)
        } else {
            Ok(())
        }
    }

    /// The end: connections that live are rows, too.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.rows.leave(&self.live, self.end);
        self.commit()?;
        say(&format!(
            "{} in {} sets of files written to {}",
            tcpwhy_report::bytes(self.bytes),
            self.sets,
            self.folder.display()
        ));
        Ok(())
    }

    /// Writes a group of rows; `all`: those that go on, too.
    fn write(&mut self, all: bool) -> anyhow::Result<()> {
        let rows = self.rows.take(all);
        if rows.is_empty() {
            return Ok(());
        }
        let Tables { manifest, folder, writer, .. } = self;
        let new = || Writer::new(folder, format!("set-{:06}", manifest.next_set()));
        writer.get_or_insert_with(new).write(rows)?;
        self.groups += 1;
        Ok(())
    }

    /// The set is on the disk, the manifest says so, and its files have their names.
    fn commit(&mut self) -> anyhow::Result<()> {
        self.write(true)?;
        (self.groups, self.zero) = (0, None);
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let written = writer.finish()?;
        self.manifest.commit(&written, &[])?;
        written.publish(&self.folder)?;
        self.bytes += written.bytes;
        self.sets += 1;
        Ok(())
    }
}

fn time_of_day() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tcpwhy_live::{Congestion, Info, Sample, Table as Live};
    use tcpwhy_tables::{Reader, Table, Values};

    fn socket(cookie: u64) -> Sample {
        Sample {
            cookie,
            info: Some(Info::default()),
            congestion: Congestion::new(b"cubic"),
            ..Sample::open(40_000, 443)
        }
    }

    /// Starts and lengths of the rows of a file's shares.
    fn shares(path: &Path) -> Vec<(i64, i64)> {
        let reader = Reader::open(path, Table::WatchShares).unwrap();
        let rows = |group| {
            let [start, time] = reader.columns(group, ["start", "time_ns"]).unwrap();
            let (Values::Numbers(start), Values::Numbers(time)) = (start.values, time.values) else {
                panic!("other types")
            };
            start.into_iter().zip(time).collect::<Vec<_>>()
        };
        (0..reader.groups()).flat_map(rows).collect()
    }

    /// A connection that idles from two seconds before noon to two seconds after it, looked at each second.
    #[test]
    fn each_hour_has_its_files() {
        let folder = std::env::temp_dir().join(format!("tcpwhy-watch-tables-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let mut tables = Tables::open(&folder).unwrap();
        assert!(Tables::open(&folder).is_err_and(|e| e.to_string().contains("another run writes to it")));
        let noon = Nanos::secs(12 * 3600);
        tables.hour = 11;
        let mut live = Live::default();
        live.feed(&[socket(7)], Nanos::ZERO);
        for n in 1..=4 {
            live.feed(&[socket(7)], Nanos::secs(n));
            tables.add_at(&[], live.interval(), noon + Nanos::secs(n - 2)).unwrap();
        }
        let day = folder.join("watch_shares/day=1970-01-01");
        let second = Nanos::secs(1).0;
        let from = (noon - Nanos::secs(2)).0;
        assert_eq!(shares(&day.join("set-000001.parquet")), [(from, 2 * second)], "one row of two intervals");
        assert!(!day.join("set-000002.parquet").exists(), "it is not whole yet");
        tables.finish().unwrap();
        assert_eq!(shares(&day.join("set-000002.parquet")), [(noon.0, 2 * second)]);
        let open = folder.join("watch_connections/day=1970-01-01/set-000002.parquet");
        let reader = Reader::open(&open, Table::WatchConnections).unwrap();
        let [socket, start, time, open] =
            reader.columns(0, ["socket", "start", "duration_ns", "open"]).unwrap();
        let number = |values: Values| if let Values::Numbers(list) = values { list } else { Vec::new() };
        assert_eq!((number(socket.values), number(start.values)), (vec![7], vec![from]));
        assert_eq!(number(time.values), [4 * second]);
        assert!(matches!(open.values, Values::Flags(flags) if flags == [true]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
