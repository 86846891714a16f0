//! Every place that lists causes lists those of the table. `UPDATE=1 cargo test -p tcpwhy-base` rewrites the lists that
//! are generated; `scripts/planted_cause.py` shows that a cause which is forgotten fails these tests.

#![cfg(test)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tcpwhy_base::{CAUSES, Cause, CauseInfo, Class, Group, Kind, Likeness};

fn path(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)
}

fn text(of: &str) -> String {
    fs::read_to_string(path(of)).unwrap_or_else(|e| panic!("{of}: {e}"))
}

/// Causes that a capture can give time to.
fn shown() -> impl Iterator<Item = &'static CauseInfo> {
    CAUSES.iter().filter(|c| c.kind == Kind::Span && !c.live_only)
}

/// What stands between the markers in `file` is `block`.
#[track_caller]
fn holds(file: &str, block: &str) {
    const BEGIN: &str = "<!-- causes:begin -->\n";
    const END: &str = "<!-- causes:end -->\n";
    let old = text(file);
    let (before, rest) = old.split_once(BEGIN).expect("a begin marker");
    let (_, after) = rest.split_once(END).expect("an end marker");
    let new = [before, BEGIN, block, END, after].concat();
    if env::var_os("UPDATE").is_some() {
        fs::write(path(file), &new).unwrap();
    }
    assert!(text(file) == new, "{file} is old: UPDATE=1 cargo test -p tcpwhy-base");
}

#[test]
fn rows_are_complete() {
    for (i, row) in CAUSES.iter().enumerate() {
        let id = row.id;
        assert_eq!(row.cause as usize, i, "{id}");
        assert_eq!(Cause::from_id(id), Some(row.cause), "{id} stands for two causes");
        assert_eq!(row.group == Group::Unknown, row.class == Class::Unknown, "{id}");
        assert_eq!(row.made_of.is_empty(), row.kind == Kind::Span, "{id}: what a finding's cost is made of");
        assert!(row.family.is_empty() || row.family.contains(&row.cause), "{id} is none of its family");
        for (n, alike) in row.alike.iter().enumerate() {
            assert!(alike.cause != row.cause, "{id} is confused with itself");
            assert!(
                row.alike[..n].iter().all(|a| a.cause != alike.cause),
                "{id}: {} twice",
                alike.cause.id()
            );
        }
        if row.class == Class::Tcp {
            assert!(!row.fixes.is_empty(), "{id} has no fix");
            assert!(row.live_only || !row.evidence.is_empty(), "nothing is said to speak for {id}");
        }
    }
}

#[test]
fn every_cause_has_a_page_that_says_what_decides() {
    const PARTS: [&str; 6] = [
        "## What it is\n",
        "## How tcpwhy recognises it\n",
        "## What it looks like\n",
        "## What to do\n",
        "## What it is confused with\n",
        "## Sources\n",
    ];
    let mut wrong = String::new();
    for row in CAUSES {
        let Ok(page) = fs::read_to_string(path("docs/causes").join(row.id).with_extension("md")) else {
            let _ = writeln!(wrong, "docs/causes/{}.md is missing", row.id);
            continue;
        };
        if !page.starts_with(&format!("# {}\n", row.title)) {
            let _ = writeln!(wrong, "docs/causes/{}.md is not headed: {}", row.id, row.title);
        }
        for part in PARTS.iter().filter(|p| !page.contains(**p)) {
            let _ = writeln!(wrong, "docs/causes/{}.md lacks: {}", row.id, part.trim_end());
        }
        let confused = page.split("## What it is confused with").nth(1).unwrap_or_default();
        let rows: Vec<&str> = confused.lines().filter_map(|l| l.split('|').nth(1)).collect();
        for alike in row.alike {
            let name = format!("`{}`", alike.cause.id());
            if !rows.iter().any(|r| r.contains(&name)) {
                let _ = writeln!(wrong, "docs/causes/{}.md does not say what decides against {name}", row.id);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    for file in fs::read_dir(path("docs/causes")).unwrap().flatten() {
        let file = file.path();
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if file.extension().is_some_and(|e| e == "md") && name != "README" {
            assert!(Cause::from_id(&name).is_some(), "docs/causes/{name}.md is about no cause");
        }
    }
}

#[test]
fn the_readme_lists_what_a_capture_can_show() {
    let mut block = String::from("\n| | causes |\n|---|---|\n");
    for group in Group::ALL {
        let ids: Vec<String> = shown().filter(|c| c.group == group).map(|c| format!("`{}`", c.id)).collect();
        let _ = writeln!(block, "| {} | {} |", group.title(), ids.join(" "));
    }
    block.push('\n');
    holds("README.md", &block);
}

#[test]
fn the_index_of_the_pages_is_the_table() {
    let mut block = String::from("\n| id | class | what happened in that time |\n|---|---|---|\n");
    for row in CAUSES {
        let class = match row.class {
            Class::Inherent => "inherent",
            Class::Application => "application",
            Class::Tcp => "TCP or host",
            Class::Unknown => "unknown",
        };
        let live = if row.live_only { ", *live*" } else { "" };
        let finding = if row.kind == Kind::Finding { ", *finding*" } else { "" };
        let _ = writeln!(block, "| [{0}]({0}.md) | {class}{live}{finding} | {1} |", row.id, row.what);
    }
    block.push('\n');
    holds("docs/causes/README.md", &block);
}

/// Whether they are right in every other respect is asked where they are made: in the tests of tcpwhy-report.
#[test]
fn schemas_and_the_list_for_programs_name_every_cause() {
    let files = ["causes.json", "explain-1.json", "predict-1.json", "compare-1.json"];
    for file in files.map(|f| format!("docs/schema/{f}")) {
        let committed = text(&file);
        // What is compared is the time of spans.
        let spans = file.contains("compare");
        for row in CAUSES.iter().filter(|c| !spans || c.kind == Kind::Span) {
            let named = committed.contains(&format!("\"{}\"", row.id));
            assert!(named, "{file} does not know {}: UPDATE=1 cargo test -p tcpwhy-report", row.id);
        }
    }
}

#[test]
fn the_page_has_a_name_and_a_colour_for_each_group() {
    let (names, style) = (text("web/src/causes.ts"), text("web/src/style.css"));
    for group in Group::ALL {
        let id = group.id();
        let name = format!("  {id}: {{ name: '{}' }},\n", group.title());
        assert!(names.contains(&name), "web/src/causes.ts lacks: {name}");
        // Light, dark, and dark by the system's choice.
        assert_eq!(style.matches(&format!("--g-{id}: #")).count(), 3, "web/src/style.css: --g-{id}");
        assert!(style.contains(&format!(".g-{id} {{")), "web/src/style.css: .g-{id}");
        assert!(style.contains(&format!(".s-{id} {{")), "web/src/style.css: .s-{id}");
    }
}

/// The test of tcpwhy-analysis asks more: it knows a line of a story from an excuse.
#[test]
fn every_cause_that_a_capture_can_show_has_a_rule_test_or_a_reason() {
    let tests: String = fs::read_dir(path("crates/analysis/tests/rules"))
        .unwrap()
        .flatten()
        .filter_map(|f| fs::read_to_string(f.path()).ok())
        .collect();
    for row in shown() {
        let told = tests.lines().any(|l| l.trim_start().split(' ').next() == Some(row.id));
        let name = format!("Cause::{:?}", row.cause);
        let named = tests.split(|c: char| !c.is_alphanumeric() && c != ':').any(|word| word == name);
        assert!(told || named, "crates/analysis/tests/rules has no test of {}", row.id);
    }
}

#[test]
fn look_alikes_can_be_asked_for_by_how_alike_they_are() {
    let row = Cause::SendBuffer.info();
    let near: Vec<Cause> = row.looks_like(&[Likeness::Close]).collect();
    let far: Vec<Cause> = row.looks_like(&[Likeness::Close, Likeness::FromAfar]).collect();
    assert_eq!(near, [Cause::CongestionWindow]);
    assert_eq!(far, [Cause::CongestionWindow, Cause::SlowStart]);
}
