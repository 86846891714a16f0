//! Which keys do what.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

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

/// Shows them above everything.
pub(super) fn show(frame: &mut Frame<'_>, area: Rect) {
    let [row] = Layout::vertical([Constraint::Length(KEYS.len() as u16 + 2)]).flex(Flex::Center).areas(area);
    let [place] = Layout::horizontal([Constraint::Length(72)]).flex(Flex::Center).areas(row);
    let lines = KEYS.map(|(key, what)| Line::from(format!(" {key:<26} {what}")));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines.to_vec()).block(Block::bordered().title(" Keys ")), place);
}
