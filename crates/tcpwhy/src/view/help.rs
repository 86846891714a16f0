//! Which keys do what.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use tcpwhy_report::text::wrap;

const KEYS: [(&str, &str); 11] = [
    ("↑ ↓, k j", "one up or down"),
    ("page up, page down, space", "ten rows; what is said of a finding"),
    ("home end, g G", "the first, the last"),
    ("enter, →, l", "open what is chosen"),
    ("esc, ←, h", "back; ends a search first"),
    ("tab, shift-tab", "findings and connections; the next exchange"),
    ("/", "search: words of addresses and causes"),
    ("s", "sort by something else"),
    ("t", "the graph of the connection"),
    ("?", "these keys"),
    ("q, ^C", "quit"),
];

/// Columns of the names of keys: that many where there is room, at least `FEWEST`.
const NAMES: usize = 26;
const FEWEST: usize = 12;

/// Shows them above everything; where it is narrow, they and what they do take several lines.
pub(super) fn show(frame: &mut Frame<'_>, area: Rect) {
    let longest = KEYS.iter().map(|(_, what)| what.chars().count()).max().unwrap_or(0);
    // A blank at both sides of each column, and the frame.
    let columns = (NAMES + longest + 5).min(usize::from(area.width));
    let broken = |names: usize| lines(names, columns.saturating_sub(names + 5).max(8));
    let fewest = (FEWEST..=NAMES).rev().map(broken).min_by_key(Vec::len).unwrap_or_default();
    let rows = (fewest.len() + 2).min(usize::from(area.height));
    let shown: Vec<Line<'_>> = fewest.into_iter().take(rows.saturating_sub(2)).map(Line::from).collect();
    let [row] = Layout::vertical([Constraint::Length(rows as u16)]).flex(Flex::Center).areas(area);
    let [place] = Layout::horizontal([Constraint::Length(columns as u16)]).flex(Flex::Center).areas(row);
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" Keys ").title_bottom(" any key closes this ");
    frame.render_widget(Paragraph::new(shown).block(block), place);
}

/// All of them, with names in so many columns and what they do in so many.
fn lines(names: usize, room: usize) -> Vec<String> {
    KEYS.iter()
        .flat_map(|(key, what)| {
            let (keys, whats) = (wrap(key, names), wrap(what, room));
            let at = |lines: &[String], n: usize| lines.get(n).cloned().unwrap_or_default();
            (0..keys.len().max(whats.len()))
                .map(|n| format!(" {:<names$} {}", at(&keys, n), at(&whats, n)))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Of the hints of the last line (two blanks between them) those that fit into `width`: the last two, which lead to all
/// others and out, and as many of the first.
pub(super) fn that_fit(hints: &str, width: usize) -> String {
    let all: Vec<&str> = hints.split("  ").collect();
    let (first, last) = all.split_at(all.len().saturating_sub(2));
    let with = |n: usize| [&first[..n], last].concat().join("  ");
    (0..=first.len()).rev().map(with).find(|line| line.chars().count() <= width).unwrap_or_else(|| with(0))
}
