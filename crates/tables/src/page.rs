//! The page that documents the tables, made from their lists of columns.

use crate::files::parquet_type;
use crate::schema::{Kind, SCHEMA, Table};
use std::fmt::Write as _;
use tcpwhy_analysis::Quality;

/// `docs/schema/tables-1.md`.
pub fn page() -> String {
    let mut out = format!("{}\n", HEAD.replace("{schema}", &SCHEMA.to_string()));
    for table in Table::ALL.into_iter().chain(Table::WATCH) {
        if table == Table::WatchConnections {
            let _ = writeln!(out, "\n{WATCH}");
        }
        let _ = write!(out, "\n## {}\n\n| column | type | |\n|---|---|---|\n", table.name());
        for f in table.fields() {
            let kind = if f.kind == Kind::Time { "timestamp[ns, UTC]" } else { parquet_type(f.kind).0 };
            let kind = if kind == "binary" { "string" } else { kind };
            let null = if f.nullable { ", may be null" } else { "" };
            let _ = writeln!(out, "| `{}` | {kind}{null} | {} |", f.name, f.about);
        }
        if table == Table::Connections {
            out.push_str("\nBits of `quality`:");
            for (n, (bit, name)) in Quality::NAMES.into_iter().enumerate() {
                let _ = write!(out, "{} {} `{name}`", if n == 0 { "" } else { "," }, bit.0);
            }
            out.push_str(".\n");
        }
    }
    out
}

const HEAD: &str = "\
# Tables of `tcpwhy explain --parquet DIR`, schema {schema}

    DIR/connections/day=2026-11-22/….parquet      a row for each connection
    DIR/exchanges/day=2026-11-22/….parquet        a row for each request and its response
    DIR/spans/day=2026-11-22/….parquet            a row for each stretch of time with one cause
    DIR/findings/day=2026-11-22/….parquet         a row for each cause and side of a capture
    DIR/_manifest.jsonl                           which inputs are done, and which files hold them

Within a schema columns are only added. Its number is in the metadata of each file, `tcpwhy.schema`, and in the first line of
the manifest.

- Moments are nanoseconds in UTC, durations integer nanoseconds; the sums of `spans.duration_ns` are those of the JSON to the
  nanosecond. A row lies in the day in which it begins (a finding: in which its capture begins).
- `capture`, `connection` and `exchange` join the tables. Numbers are signed and addresses are texts, because every engine reads
  those (DuckDB: `server_ip::INET`). Texts of few values are kept as dictionaries; pyarrow gives them as such with
  `read_dictionary=['cause']`.
- Each row stands for its own connection. Behind a proxy that was captured on both sides what it waited for another server is in the rows
  of both, and sums over all servers count that time twice (`explain CAPTURE` counts it once): sum by `server_ip` and `server_port`, or
  leave out the server that is asked.
- Rows of a group are sorted by `capture`, `connection`, `start`; each column but sentences has its least and greatest value, by
  group and by page.
- Zstandard; no nested types. Which frames within a span prove it, in which words, and what it would win to change it, says
  `tcpwhy explain CAPTURE --connection N --exchange M`: they would take as much room as all else.

    DuckDB:   SELECT cause, sum(duration_ns)/1e9 FROM 'DIR/spans/**/*.parquet' WHERE part <> 'after' GROUP BY cause ORDER BY 2 DESC
    Polars:   pl.scan_parquet('DIR/spans/**/*.parquet').group_by('cause').agg(pl.col('duration_ns').sum())
    pyarrow:  pyarrow.dataset.dataset('DIR/spans', partitioning='hive')
    Spark:    spark.conf.set('spark.sql.legacy.parquet.nanosAsLong', True); spark.read.parquet('DIR/spans')

The manifest holds a JSON object a line: first `{\"tool\": \"tcpwhy\", \"tables\": {schema}}`, then one for each set of files that was
finished, with `files` and `inputs` (`path`, `bytes`, `modified_ns`, rows of each table, `problem` where the capture is damaged, and
`aside` where it was left aside for its clock, without rows). As long as damaged captures are among those that are named the exit code is 1.
A line is on the disk before its files take their names, and a run that finds files without their names gives them
to them: a set is there as a whole or not at all.";

const WATCH: &str = "\
# Tables of `tcpwhy watch --parquet DIR`, of the same schema

    DIR/watch_connections/day=2026-11-22/….parquet   a row for each connection that ended, or was left open
    DIR/watch_shares/day=2026-11-22/….parquet        a row for each interval of a connection and cause of its time
    DIR/watch_findings/day=2026-11-22/….parquet      a row for each interval and cause that connections lost time to
    DIR/_manifest.jsonl                              which files are whole

Columns of a name that the tables above have mean the same. The tables have names of their own, for a kernel that is asked now and then
knows no requests, and not at which moment of an interval a cause held: there are no exchanges, and a share is a sum within its
interval. Rows are sorted by `socket` and `start`; `host` and `socket` join the tables. `tcpwhy record`, then `explain --parquet`, gives the
tables above of a running host, too.

    DuckDB:   SELECT cause, process, sum(time_ns)/1e9 FROM 'DIR/watch_shares/**/*.parquet' WHERE class = 'T' GROUP BY ALL ORDER BY 3 DESC";
