//! The table of causes as JSON: for scripts that judge answers, and for programs that show them.

use serde::Serialize;
use std::io::{self, Write};
use tcpwhy_base::{CAUSES, Cause, CauseInfo, FixId, Group, Kind};

#[derive(Serialize)]
struct Document {
    tool: &'static str,
    schema: u32,
    groups: Vec<Named>,
    causes: Vec<Row>,
}

#[derive(Serialize)]
struct Named {
    id: &'static str,
    title: &'static str,
}

#[derive(Serialize)]
struct Row {
    id: &'static str,
    class: &'static str,
    owner: &'static str,
    group: &'static str,
    kind: &'static str,
    live_only: bool,
    title: &'static str,
    name: &'static str,
    what: &'static str,
    at_reader: bool,
    evidence: Vec<&'static str>,
    flagged: Option<&'static str>,
    made_of: Vec<&'static str>,
    family: Vec<&'static str>,
    alike: Vec<Alike>,
    fixes: Vec<&'static str>,
}

#[derive(Serialize)]
struct Alike {
    cause: &'static str,
    how: &'static str,
}

impl From<&CauseInfo> for Row {
    fn from(c: &CauseInfo) -> Row {
        let ids = |causes: &[Cause]| causes.iter().map(|c| c.id()).collect();
        Row {
            id: c.id,
            class: c.class.letter(),
            owner: c.owner.id(),
            group: c.group.id(),
            kind: match c.kind {
                Kind::Span => "span",
                Kind::Finding => "finding",
            },
            live_only: c.live_only,
            title: c.title,
            name: c.name,
            what: c.what,
            at_reader: c.at_reader,
            evidence: c.evidence.iter().map(|e| e.id()).collect(),
            flagged: c.flagged.map(|f| f.id()),
            made_of: ids(c.made_of),
            family: ids(c.family),
            alike: c.alike.iter().map(|a| Alike { cause: a.cause.id(), how: a.how.id() }).collect(),
            fixes: c.fixes.iter().map(|f: &FixId| f.info().id).collect(),
        }
    }
}

/// Writes the table; `docs/schema/causes.md` says what its columns mean.
pub fn json(out: &mut impl Write) -> io::Result<()> {
    let groups = Group::ALL.iter().map(|g| Named { id: g.id(), title: g.title() }).collect();
    let causes = CAUSES.iter().map(Row::from).collect();
    serde_json::to_writer_pretty(&mut *out, &Document { tool: "tcpwhy", schema: 1, groups, causes })?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use crate::schema::tests::is_committed;

    #[test]
    fn the_committed_table_is_the_generated_one() {
        let mut text = Vec::new();
        super::json(&mut text).unwrap();
        is_committed("causes.json", &String::from_utf8(text).unwrap());
    }
}
