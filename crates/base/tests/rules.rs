//! The rules that code and scripts cite by number ("rule 9") are those of docs/rules.md, and the files that it names
//! are there.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The numbers of the rules, in the order of the file.
fn numbers(rules: &str) -> Vec<u32> {
    let heads = rules.lines().filter_map(|l| l.strip_prefix("**")?.split_once(". "));
    heads.map(|(number, _)| number.parse().expect("a rule begins with its number")).collect()
}

/// The numbers that a text cites: after `rule` or `rules`, with `, `, ` and ` and ` to ` between them.
fn cited(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for (at, _) in text.to_ascii_lowercase().match_indices("rule") {
        let word = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let mut rest = &text[at + 4..];
        rest = rest.strip_prefix('s').unwrap_or(rest);
        let Some(mut list) = rest.strip_prefix(' ').filter(|_| word) else { continue };
        loop {
            let digits = list.find(|c: char| !c.is_ascii_digit()).unwrap_or(list.len());
            let Ok(number) = list[..digits].parse() else { break };
            found.push(number);
            let after = &list[digits..];
            let Some(next) = [", ", " and ", " to "].iter().find_map(|s| after.strip_prefix(s)) else {
                break;
            };
            list = next;
        }
    }
    found
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != "node_modules" {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|e| ["rs", "py", "ts", "md"].iter().any(|&x| e == x)) {
            into.push(path);
        }
    }
}

#[test]
fn numbers_are_read() {
    assert_eq!(cited("(rule 9), rules 1, 2 and 14 to 16; misrule 5, a rule of 3"), [9, 1, 2, 14, 16]);
    assert_eq!(numbers("**1. A** b\ntext\n**12. C.** d"), [1, 12]);
}

#[test]
fn every_rule_that_is_cited_is_in_the_list() {
    let rules = fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let list = numbers(&rules);
    let known: BTreeSet<u32> = list.iter().copied().collect();
    assert_eq!(known.len(), list.len(), "a number stands for two rules");
    assert_eq!(known.first(), Some(&1), "a rule that goes leaves a hole, but the first is there");
    let mut files = Vec::new();
    for folder in ["crates", "scripts", "fuzz", "docs", "web/src", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    files.retain(|f| !f.ends_with("base/tests/rules.rs"));
    assert!(files.len() > 200);
    let mut citations = 0;
    for file in files {
        for number in cited(&fs::read_to_string(&file).unwrap_or_default()) {
            assert!(
                known.contains(&number),
                "{} cites rule {number}, which docs/rules.md lacks",
                file.display()
            );
            citations += 1;
        }
    }
    assert!(citations >= 10, "{citations} citations");
}

/// Every path that it names is there, from the root, below `crates/` or within the analysis; a function in
/// brackets behind a file is in that file.
#[test]
fn what_the_architecture_names_is_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let prose: String = text.lines().filter(|l| !l.starts_with("    ")).flat_map(|l| [l, "\n"]).collect();
    let place = |name: &str| {
        let from = ["", "crates", "crates/analysis/src", "crates/base/src"];
        let known = from.map(|f| root().join(f).join(name.trim_end_matches('/')));
        known.into_iter().find_map(|p| [p.clone(), p.with_extension("rs")].into_iter().find(|p| p.exists()))
    };
    let (mut paths, mut functions) = (0, 0);
    for line in prose.lines() {
        let mut file = None;
        for (i, word) in line.split('`').enumerate() {
            let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if i % 2 == 0 {
                if word.trim_start() != "(" {
                    file = None;
                }
            } else if word.contains('/') && plain {
                file = place(word);
                assert!(file.is_some(), "ARCHITECTURE.md names {word}");
                paths += 1;
            } else if let Some(path) = file.take().filter(|p| p.is_file()) {
                let source = fs::read_to_string(&path).unwrap();
                assert!(source.contains(word), "ARCHITECTURE.md names {word} in {}", path.display());
                functions += 1;
            }
        }
    }
    assert!(paths > 60 && functions > 1, "{paths} paths, {functions} functions");
}

#[test]
fn every_rule_says_where_it_is_decided() {
    let rules = fs::read_to_string(root().join("docs/rules.md")).unwrap();
    for paragraph in rules.split("\n\n").filter(|p| p.starts_with("**")) {
        let head = paragraph.lines().next().unwrap_or_default();
        let (_, places) = paragraph.split_once("*In*").unwrap_or_else(|| panic!("no file: {head}"));
        let files: Vec<&str> = places.split('`').filter(|p| p.ends_with(".rs")).collect();
        assert!(!files.is_empty(), "no file: {head}");
        for file in files {
            // Of the analysis, or of the crate that the path begins with.
            let there =
                ["crates/analysis/src", "crates"].iter().any(|from| root().join(from).join(file).is_file());
            assert!(there, "{file} is not there: {head}");
        }
    }
}
