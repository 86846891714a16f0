//! Pages of documentation for a terminal: what they are written in (headings, lists, tables, code, emphasis), set to a
//! width. Figures are left out: a terminal cannot show them.

use super::style::{BOLD, wrap};
use std::fmt::Write as _;

/// `text` in lines of at most `width` columns, but for code and for words that are longer.
pub fn render(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            for code in lines.by_ref().take_while(|l| !l.trim_start().starts_with("```")) {
                let _ = writeln!(out, "    {code}");
            }
        } else if trimmed.is_empty() {
            blank(&mut out);
        } else if let Some(heading) = heading(trimmed) {
            blank(&mut out);
            let _ = writeln!(out, "{BOLD}{}{BOLD:#}", plain(heading));
        } else if trimmed.starts_with('|') {
            let mut rows = vec![cells(trimmed)];
            while let Some(next) = lines.next_if(|l| l.trim_start().starts_with('|')) {
                rows.push(cells(next.trim_start()));
            }
            table(&mut out, &rows, width);
        } else {
            let indent = line.len() - trimmed.len();
            let mut paragraph = trimmed.to_owned();
            while let Some(next) = lines.next_if(|l| goes_on(l)) {
                paragraph.push(' ');
                paragraph.push_str(next.trim());
            }
            item(&mut out, &plain(&paragraph), indent, width);
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn blank(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then(|| text.trim())
}

/// How long the mark of a list item is: `- `, `12. `; 0: it is none.
fn mark(line: &str) -> usize {
    if line.starts_with("- ") || line.starts_with("* ") {
        return 2;
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && line.get(digits..).is_some_and(|rest| rest.starts_with(". ")) { digits + 2 } else { 0 }
}

/// The line is more of the paragraph before it.
fn goes_on(line: &str) -> bool {
    let line = line.trim_start();
    let begins = ["```", "#", "|"].iter().any(|b| line.starts_with(b));
    !line.is_empty() && mark(line) == 0 && !begins
}

/// A paragraph, or an item of a list whose lines hang below its text.
fn item(out: &mut String, text: &str, indent: usize, width: usize) {
    if text.trim().is_empty() {
        return;
    }
    let mark = mark(text);
    let (mark, rest) = text.split_at(mark);
    let hang = indent + mark.len();
    for (i, line) in wrap(rest, width.saturating_sub(hang).max(20)).iter().enumerate() {
        let _ = if i == 0 {
            writeln!(out, "{:indent$}{mark}{line}", "")
        } else {
            writeln!(out, "{:hang$}{line}", "")
        };
    }
}

fn cells(row: &str) -> Vec<String> {
    row.trim().trim_matches('|').split('|').map(|c| plain(c.trim())).collect()
}

/// Columns as wide as they need to be; where that is too much, the last one is broken.
fn table(out: &mut String, rows: &[Vec<String>], width: usize) {
    let is_rule = |row: &&Vec<String>| !row.iter().all(|c| c.chars().all(|c| matches!(c, '-' | ':' | ' ')));
    let rows: Vec<&Vec<String>> = rows.iter().filter(is_rule).collect();
    let columns = rows.iter().map(|r| r.len()).max().unwrap_or(0);
    let wide = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(wide).collect();
    let gaps = 2 * columns.saturating_sub(1);
    // What is too wide shrinks to an equal part of the room.
    while widths.iter().sum::<usize>() + gaps > width.max(20 * columns) {
        let Some(widest) = widths.iter_mut().max() else { return };
        *widest -= 1;
    }
    for row in rows {
        let broken: Vec<Vec<String>> =
            std::iter::zip(row, &widths).map(|(cell, &w)| wrap(cell, w.max(1))).collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = String::new();
            for (cell, &w) in std::iter::zip(&broken, &widths) {
                let part = cell.get(line).map_or("", String::as_str);
                let space = w.saturating_sub(part.chars().count()) + 2;
                let _ = write!(text, "{part}{:space$}", "");
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
    }
}

/// A text without marks of emphasis and code; of a link its words; of a figure nothing.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if c == '`' {
            // Within code a star is a star.
            let (code, end) = after.split_once('`').unwrap_or((after, ""));
            out.push_str(code);
            rest = end;
        } else if let Some((_, end)) = rest.strip_prefix("![").and_then(link) {
            rest = end;
        } else if let Some((words, end)) = rest.strip_prefix('[').and_then(link) {
            out.push_str(&plain(words));
            rest = end;
        } else if let Some(end) = rest.strip_prefix("**") {
            rest = end;
        } else {
            out.push(c);
            rest = after;
        }
    }
    out
}

/// `words](address)rest`: the words and the rest.
fn link(text: &str) -> Option<(&str, &str)> {
    let (words, rest) = text.split_once("](")?;
    let (_, rest) = rest.split_once(')')?;
    (!words.contains(['[', '\n'])).then_some((words, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> String {
        anstream::adapter::strip_str(&render(text, width)).to_string()
    }

    #[test]
    fn nothing_of_the_markup_is_left() {
        let page = "# A page\n\nIt is **many** words with `code*` and a [link](x.md) that go on and on.\n\
                    ![figure](../f.svg)\n\n- one item that is longer than a line\n  of its text\n1. two\n\n\
                    ```\nas  it is, however long the line may be\n```\n";
        assert_eq!(
            shown(page, 30),
            "A page\n\nIt is many words with code*\nand a link that go on and on.\n\n- one item that is longer than\n  a \
             line of its text\n1. two\n\n    as  it is, however long the line may be\n"
        );
    }

    #[test]
    fn tables_stand_in_columns() {
        let table =
            "| looks like | what decides |\n|---|---|\n| `nagle` | the ACK came at once, as it should |\n";
        assert_eq!(
            shown(table, 80),
            "looks like  what decides\nnagle       the ACK came at once, as it should\n"
        );
        assert_eq!(
            shown(table, 40),
            "looks like  what decides\nnagle       the ACK came at once, as it\n            should\n"
        );
    }

    /// Each column may have 20, however narrow the screen is.
    #[test]
    fn a_table_is_broken_at_20_a_column() {
        let row = |third: &str| format!("| nineteen characters | eighteen character | {third} |\n");
        let fits = row("nineteen characters");
        assert_eq!(shown(&fits, 30), "nineteen characters  eighteen character  nineteen characters\n");
        let broken = row("twenty characters it");
        assert_eq!(shown(&broken, 30).lines().count(), 2);
        assert_eq!(shown(&broken, 61).lines().count(), 1);
    }

    #[test]
    fn marks_that_do_not_end_are_characters() {
        assert_eq!(shown("a [b] and `c", 80), "a [b] and c\n");
        assert_eq!(shown("", 80), "\n");
    }
}
