//! Which keys do what.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use tcpwhy_report::text::wrap;

const KEYS: [(&str, &str); 13] = [
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
    ("", ""),
    ("", "any key closes this"),
];

/// Columns of the names of keys.
const NAMES: usize = 26;

/// Shows them above everything; where it is narrow, what they do takes several lines.
pub(super) fn show(frame: &mut Frame<'_>, area: Rect) {
    let longest = KEYS.iter().map(|(_, what)| what.chars().count()).max().unwrap_or(0);
    // A blank at both sides of each column, and the frame.
    let columns = (NAMES + longest + 5).min(usize::from(area.width));
    let room = columns.saturating_sub(NAMES + 5).max(8);
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .flat_map(|(key, what)| {
            let broken = wrap(what, room);
            let first = broken.first().cloned().unwrap_or_default();
            let more = broken.into_iter().skip(1).map(|l| format!(" {:<NAMES$} {l}", ""));
            std::iter::once(format!(" {key:<NAMES$} {first}")).chain(more).map(Line::from).collect::<Vec<_>>()
        })
        .collect();
    let [row] = Layout::vertical([Constraint::Length(lines.len() as u16 + 2)]).flex(Flex::Center).areas(area);
    let [place] = Layout::horizontal([Constraint::Length(columns as u16)]).flex(Flex::Center).areas(row);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Keys ")), place);
}

/// Of the hints of the last line (two blanks between them) those that fit into `width`: the last two, which lead to all
/// others and out, and as many of the first.
pub(super) fn that_fit(hints: &str, width: usize) -> String {
    let all: Vec<&str> = hints.split("  ").collect();
    let (first, last) = all.split_at(all.len().saturating_sub(2));
    let with = |n: usize| [&first[..n], last].concat().join("  ");
    (0..=first.len()).rev().map(with).find(|line| line.chars().count() <= width).unwrap_or_else(|| with(0))
}
