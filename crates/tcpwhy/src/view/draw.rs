//! What is drawn. Text from a capture reaches the terminal only through cells, which hold no control characters.

use super::state::{Screen, View, budget_of, tcp, times};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, TableState, Wrap};
use tcpwhy_analysis::{Exchange, Finding};
use tcpwhy_base::{Cause, Class, End, Nanos};
use tcpwhy_report::Summary;
use tcpwhy_report::text::{bytes, flag_letters, percent, range, saving, verdict, wrap};
use tcpwhy_report::worst;
use tcpwhy_trace::{Packet, marks};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

fn colour(class: Class) -> Color {
    match class {
        Class::Tcp => Color::Red,
        Class::Application => Color::Cyan,
        Class::Inherent => Color::Blue,
        Class::Unknown => Color::Magenta,
    }
}

/// Draws the screen.
pub(crate) fn all(frame: &mut Frame<'_>, view: &mut View<'_>) {
    let [head, body, keys] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(3), Constraint::Length(1)])
            .areas(frame.area());
    let summary = Summary::new(view.analysis);
    let text = verdict(view.analysis, view.capture, &summary);
    frame.render_widget(Paragraph::new(Text::styled(text, BOLD)).wrap(Wrap { trim: true }), head);
    let hint = match view.screen {
        Screen::Findings => "↑↓ choose  enter: show it  tab: connections  q: quit",
        Screen::Connections => "↑↓ choose  enter: open  tab: findings  esc: back  q: quit",
        Screen::Connection => "↑↓ choose  enter: packets  esc: back  q: quit",
        Screen::Exchange => "↑↓ scroll  tab: next exchange  shift-tab: previous  esc: back  q: quit",
    };
    frame.render_widget(Paragraph::new(Line::styled(hint, DIM)), keys);
    match view.screen {
        Screen::Findings => findings(frame, body, view, &summary),
        Screen::Connections => connections(frame, body, view),
        Screen::Connection => connection(frame, body, view),
        Screen::Exchange => exchange(frame, body, view),
    }
}

fn findings(frame: &mut Frame<'_>, area: Rect, view: &View<'_>, summary: &Summary) {
    let rows = view.findings.len() as u16 + 2;
    let [list, detail] =
        Layout::vertical([Constraint::Length(rows.min(area.height / 2).max(3)), Constraint::Min(1)])
            .areas(area);
    let widths = [Constraint::Length(9), Constraint::Length(6), Constraint::Min(20), Constraint::Length(8)];
    let table = view.findings.iter().map(|f| {
        Row::new(vec![
            Line::from(f.waited().to_string()).right_aligned(),
            Line::from(percent(summary.share(f.waited()))).right_aligned(),
            Line::styled(f.cause.info().title, colour(f.cause.class())),
            Line::from(f.side.map_or("", |s| s.name())),
        ])
    });
    chosen(
        frame,
        list,
        Table::new(table, widths).header(head([">time", ">share", "found", "side"])),
        view.finding,
        "Findings",
    );
    if let Some(f) = view.findings.get(view.finding) {
        frame.render_widget(about(f, usize::from(detail.width)), detail);
    }
}

/// A finding in full, as the text has it.
fn about<'a>(f: &Finding, width: usize) -> Paragraph<'a> {
    let times = match f.occurrences {
        1 => "Once. ".into(),
        n => format!("{n} times, {} each. ", range(f.range)),
    };
    let text = |text: &str, indent: usize| -> Vec<String> {
        wrap(text, width.saturating_sub(indent).max(1)).iter().map(|l| format!("{:indent$}{l}", "")).collect()
    };
    let mut lines: Vec<Line<'_>> =
        text(&format!("{times}{}", f.why()), 0).into_iter().map(Line::raw).collect();
    lines.push(Line::raw(""));
    for (i, fix) in f.fixes.iter().take(3).enumerate() {
        let saves = saving(fix, i == 0).map(|s| format!(", {s}")).unwrap_or_default();
        let lead = if i == 0 { "fix: " } else { " or: " };
        let title = format!("{} ({}){saves}", fix.fix.info().title, fix.place);
        for (n, line) in text(&title, lead.len()).into_iter().enumerate() {
            let line = if n == 0 { format!("{lead}{}", line.trim_start()) } else { line };
            lines.push(Line::styled(line, Color::Green));
        }
        let how = fix.how.first().map(|how| how.strip_prefix("Any: ").unwrap_or(how));
        lines.extend(how.into_iter().flat_map(|how| text(how, lead.len())).map(Line::raw));
    }
    Paragraph::new(lines).block(Block::new().borders(Borders::TOP))
}

fn connections(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let widths = [
        Constraint::Length(5),
        Constraint::Min(34),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(20),
    ];
    // Only what is near is made: there may be a hundred thousand.
    let (from, list) = near(&view.order, view.connection, area);
    let rows = list.iter().map(|&i| {
        let c = &view.analysis.connections[i];
        let worst = worst(&c.budget).or_else(|| worst(&c.gap_budget));
        let name = worst.map_or_else(|| Line::raw("-"), |w| Line::styled(w.0.id(), colour(w.0.class())));
        Row::new(vec![
            Line::from(c.id.to_string()).right_aligned(),
            Line::from(format!("{} > {}", c.client, c.server)),
            Line::from((c.end - c.start).to_string()).right_aligned(),
            Line::from(tcp(c).to_string()).right_aligned(),
            name,
        ])
    });
    let table =
        Table::new(rows, widths).header(head([">id", "client > server", ">duration", ">TCP", "worst cause"]));
    chosen(frame, area, table, view.connection - from, &format!("Connections ({})", view.order.len()));
}

fn connection(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let Some(c) = view.current() else { return };
    let [about, list] = Layout::vertical([Constraint::Length(4), Constraint::Min(3)]).areas(area);
    let rtt = c.path.rtt.map(|r| format!(", round trip {r}")).unwrap_or_default();
    let line = format!(
        "{} > {}, {}, {} and {}{rtt}",
        c.client,
        c.server,
        c.end - c.start,
        bytes(c.bytes[0]),
        bytes(c.bytes[1])
    );
    let bar = bar(&times(c), about.width.saturating_sub(2));
    let text = vec![Line::raw(line), bar, legend(&times(c))];
    frame.render_widget(
        Paragraph::new(text)
            .block(Block::new().borders(Borders::TOP).title(format!(" Connection {} ", c.id))),
        about,
    );
    let widths = [
        Constraint::Length(5),
        Constraint::Length(12),
        Constraint::Length(9),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Min(20),
    ];
    let (from, exchanges) = near(&c.exchanges, view.exchange, list);
    let rows = exchanges.iter().map(|x| {
        let worst = worst(&budget_of(x));
        Row::new(vec![
            Line::from(x.id.to_string()).right_aligned(),
            Line::from(format!("{:.6} s", (x.start - view.capture.start()).0 as f64 / 1e9)).right_aligned(),
            Line::from((x.end - x.start).to_string()).right_aligned(),
            Line::from(bytes(x.bytes[0])).right_aligned(),
            Line::from(bytes(x.bytes[1])).right_aligned(),
            worst.map_or_else(
                || Line::raw("-"),
                |w| Line::styled(format!("{} {}", w.0.id(), w.1), colour(w.0.class())),
            ),
        ])
    });
    let left = c.exchanges_omitted.count;
    let title = if left > 0 { format!("Exchanges ({} more are summed)", left) } else { "Exchanges".into() };
    let table = Table::new(rows, widths).header(head([
        ">id",
        ">start",
        ">duration",
        ">request",
        ">response",
        "worst cause",
    ]));
    chosen(frame, list, table, view.exchange.saturating_sub(from), &title);
}

/// The ladder: spans, and their packets as arrows.
fn exchange(frame: &mut Frame<'_>, area: Rect, view: &mut View<'_>) {
    let Some((c, x)) = view.exchange() else { return };
    let block = Block::new().borders(Borders::TOP).title(format!(
        " Connection {} exchange {}: {}, request {}, response {} ",
        c.id,
        x.id,
        x.end - x.start,
        bytes(x.bytes[0]),
        bytes(x.bytes[1])
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let lines = ladder(x, view.packets.as_deref().unwrap_or_default(), usize::from(inner.width));
    view.lines = lines.len();
    view.scroll = view.scroll.min(lines.len().saturating_sub(usize::from(inner.height)));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(view.scroll).take(usize::from(inner.height)).collect();
    frame.render_widget(Paragraph::new(shown), inner);
}

fn ladder(x: &Exchange, packets: &[Packet], width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut rest = packets;
    for (i, span) in x.spans.iter().enumerate() {
        let style = Style::new().fg(colour(span.cause.class()));
        let side = span.side.map(|s| format!(", side {}", s.name())).unwrap_or_default();
        let share = percent(span.duration().0 as f64 / (x.end - x.start).0.max(1) as f64);
        lines.push(Line::from(vec![
            Span::styled(format!("█ {} ", span.cause.id()), style.add_modifier(Modifier::BOLD)),
            Span::raw(format!("{} {share}{side}", span.duration())),
        ]));
        for line in wrap(&span.facts.sentence(), width.saturating_sub(4)) {
            lines.push(Line::from(vec![Span::styled("│   ", style), Span::styled(line, DIM)]));
        }
        let n = if i + 1 == x.spans.len() { rest.len() } else { rest.partition_point(|p| p.time < span.end) };
        let (run, after) = rest.split_at(n);
        rest = after;
        lines.extend(run.iter().map(|p| packet(p, x, width, style)));
    }
    if x.spans.is_empty() {
        lines.push(Line::styled("Nobody waited: it took no time.", DIM));
        lines.extend(rest.iter().map(|p| packet(p, x, width, DIM)));
    }
    lines
}

fn packet(p: &Packet, x: &Exchange, width: usize, style: Style) -> Line<'static> {
    let mut line = vec![Span::styled("│ ", style)];
    line.extend(arrow(p, x, width));
    Line::from(line)
}

/// `+48.182 ms    102 client ──P. 129 B──▶ server`.
fn arrow(p: &Packet, x: &Exchange, width: usize) -> Vec<Span<'static>> {
    let again = p.marks & (marks::RETRANSMITTED | marks::LATE) != 0;
    let note = if again { " sent again" } else { "" };
    let len = if p.len > 0 { format!(" {} B", p.len) } else { String::new() };
    let words = format!(" {}{len}{note} ", flag_letters(p.flags));
    let room = width.saturating_sub(44).clamp(10, 60);
    let dashes = room.saturating_sub(words.chars().count());
    let (a, b) = ("─".repeat(dashes / 2), "─".repeat(dashes - dashes / 2));
    let (left, right) = if p.from == End::Client { ("├", "▶") } else { ("◀", "┤") };
    let style = match (again, p.len) {
        (true, _) => Style::new().fg(Color::Red),
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

/// The names of columns; `>` stands before those of numbers, which end where the numbers do.
fn head<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    let cell = |name: &'static str| match name.strip_prefix('>') {
        Some(name) => Line::from(name).right_aligned(),
        None => Line::from(name),
    };
    Row::new(names.map(cell)).style(DIM)
}

fn chosen(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, at: usize, title: &str) {
    let block = Block::new().borders(Borders::TOP).title(format!(" {title} "));
    let mut state = TableState::default().with_selected(at);
    frame.render_stateful_widget(table.block(block).row_highlight_style(CHOSEN), area, &mut state);
}

/// The rows around the chosen one, and where they begin.
fn near<T>(all: &[T], at: usize, area: Rect) -> (usize, &[T]) {
    let height = usize::from(area.height).max(1);
    let from = at.saturating_sub(height / 2).min(all.len().saturating_sub(height));
    (from, all.get(from..(from + height).min(all.len())).unwrap_or_default())
}

/// A bar of causes; each has at least one cell.
fn bar(times: &[(Cause, Nanos)], width: u16) -> Line<'static> {
    let total = times.iter().map(|t| t.1.0).sum::<i64>().max(1) as f64;
    let cells = |t: Nanos| ((t.0 as f64 / total * f64::from(width)).round() as usize).max(1);
    const SHADES: [&str; 4] = ["█", "▓", "▒", "░"];
    let parts = times
        .iter()
        .take(8)
        .enumerate()
        .map(|(i, t)| Span::styled(SHADES[i % 4].repeat(cells(t.1)), colour(t.0.class())));
    Line::from(parts.collect::<Vec<_>>())
}

fn legend(times: &[(Cause, Nanos)]) -> Line<'static> {
    let names = times
        .iter()
        .take(4)
        .flat_map(|t| [Span::styled(t.0.id(), colour(t.0.class())), Span::raw(format!(" {}  ", t.1))]);
    Line::from(names.collect::<Vec<_>>())
}
