//! One exchange as a ladder: its spans with their reasons, and their packets as arrows.

use super::fitted::cut;
use super::palette::{BOLD, DIM, Palette};
use super::state::View;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use tcpwhy_base::End;
use tcpwhy_library::Exchange;
use tcpwhy_report::text::{bytes, flag_letters, percent, wrap};
use tcpwhy_trace::{Packet, marks};

/// Draws it.
pub(super) fn exchange(frame: &mut Frame<'_>, area: Rect, view: &mut View<'_>) {
    let Some((c, x)) = view.exchange() else { return };
    let title = format!(
        " Connection {} exchange {}{}: {}, request {}, response {} ",
        c.id,
        x.id,
        x.name().map(|name| format!(" ({name})")).unwrap_or_default(),
        x.end - x.start,
        bytes(x.bytes[0]),
        bytes(x.bytes[1])
    );
    let title = cut(Line::raw(title), area.width);
    let block = Block::new().borders(Borders::TOP).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let packets = view.packets.as_deref().unwrap_or_default();
    let lines = ladder(x, packets, usize::from(inner.width), view.palette);
    (view.lines, view.page) = (lines.len(), usize::from(inner.height));
    view.scroll = view.scroll.min(lines.len().saturating_sub(view.page));
    let shown = lines.into_iter().skip(view.scroll).take(usize::from(inner.height));
    let shown: Vec<Line<'_>> = shown.map(|line| cut(line, inner.width)).collect();
    frame.render_widget(Paragraph::new(shown), inner);
}

fn ladder(x: &Exchange, packets: &[Packet], width: usize, palette: Palette) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut rest = packets;
    for (i, span) in x.spans.iter().enumerate() {
        let style = palette.of(span.cause);
        let side = span.side.map(|s| format!(", side {}", s.name())).unwrap_or_default();
        let share = percent(span.duration().0 as f64 / (x.end - x.start).0.max(1) as f64);
        lines.push(Line::from(vec![
            Span::styled(format!("█ {} ", span.cause.id()), style.patch(BOLD)),
            Span::raw(format!("{} {share}{side}", span.duration())),
        ]));
        for line in wrap(&span.facts.sentence(), width.saturating_sub(4)) {
            lines.push(Line::from(vec![Span::styled("│   ", style), Span::styled(line, DIM)]));
        }
        let n = if i + 1 == x.spans.len() { rest.len() } else { rest.partition_point(|p| p.time < span.end) };
        let (run, after) = rest.split_at(n);
        rest = after;
        lines.extend(run.iter().map(|p| packet(p, x, width, (style, palette))));
    }
    if x.spans.is_empty() {
        lines.push(Line::styled("Nobody waited: it took no time.", DIM));
        lines.extend(rest.iter().map(|p| packet(p, x, width, (DIM, palette))));
    }
    lines
}

fn packet(p: &Packet, x: &Exchange, width: usize, (style, palette): (Style, Palette)) -> Line<'static> {
    let mut line = vec![Span::styled("│ ", style)];
    line.extend(arrow(p, x, width, palette));
    Line::from(line)
}

/// `+48.182 ms    102 client ──P. 129 B──▶ server`.
fn arrow(p: &Packet, x: &Exchange, width: usize, palette: Palette) -> Vec<Span<'static>> {
    let again = p.marks & (marks::RETRANSMITTED | marks::LATE) != 0;
    let note = if again { " retransmitted" } else { "" };
    let len = if p.len > 0 { format!(" {} B", p.len) } else { String::new() };
    let words = format!(" {}{len}{note} ", flag_letters(p.flags));
    let room = width.saturating_sub(44).clamp(10, 60);
    let dashes = room.saturating_sub(words.chars().count());
    let (a, b) = ("─".repeat(dashes / 2), "─".repeat(dashes - dashes / 2));
    let (left, right) = if p.from == End::Client { ("├", "▶") } else { ("◀", "┤") };
    let style = match (again, p.len) {
        (true, _) => palette.bad(),
        (_, 0) => DIM,
        _ => Style::new(),
    };
    vec![
        Span::styled(format!("{:>+12.3} ms {:>7} ", (p.time - x.start).as_ms(), p.frame), DIM),
        Span::raw("client "),
        Span::styled(format!("{left}{a}{words}{b}{right}"), style),
        Span::raw(" server"),
    ]
}
