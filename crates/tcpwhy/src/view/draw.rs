//! What is drawn. Text from a capture reaches the terminal only through cells, which hold no control characters.

use super::bars::{bar, legend, shades, strip};
use super::fitted::{Column, cut, table};
use super::palette::{BOLD, DIM};
use super::state::{Screen, View, budget_of, times};
use super::{graph, help, ladder};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Paragraph, Table, TableState};
use tcpwhy_base::Nanos;
use tcpwhy_library::{Connection, Exchange, Finding};
use tcpwhy_report::text::{bytes, named, percent, range, saving, wrap};
use tcpwhy_report::{Answer, headline, tcp_time, worst};

const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// From this width on there is something beside the lists, and from this height on below them.
const WIDE: u16 = 130;
const HIGH: u16 = 32;

/// Draws the screen.
pub(crate) fn all(frame: &mut Frame<'_>, view: &mut View<'_>) {
    let area = frame.area();
    let text = headline(view.analysis, view.capture, &Answer::new(view.analysis));
    let text = wrap(&text, usize::from(area.width.max(1)));
    let rows = (text.len() as u16).clamp(1, 4).min((area.height / 4).max(1));
    let [head, body, keys] =
        Layout::vertical([Constraint::Length(rows), Constraint::Min(3), Constraint::Length(1)]).areas(area);
    frame.render_widget(Paragraph::new(Text::styled(text.join("\n"), BOLD)), head);
    frame.render_widget(Paragraph::new(last_line(view, usize::from(keys.width))), keys);
    view.roomy = body.height >= HIGH;
    match view.screen {
        Screen::Findings => findings(frame, body, view),
        Screen::Connections => connections(frame, body, view),
        Screen::Connection => connection(frame, body, view),
        Screen::Exchange => ladder::exchange(frame, body, view),
        Screen::Graph => graph::whole(frame, body, view),
    }
    if view.help {
        help::show(frame, area);
    }
}

/// The keys of the screen, as many as there is room for, or the search that is typed.
fn last_line(view: &View<'_>, width: usize) -> Line<'static> {
    if let Some(list) = view.shown(view.screen).filter(|_| view.typing) {
        return Line::from(format!("/{}▏  enter: keep  esc: all again", list.search));
    }
    Line::styled(
        help::that_fit(
            match view.screen {
                Screen::Findings => {
                    "↑↓ choose  enter: show it  space: more  tab: connections  ?: keys  q: quit"
                }
                Screen::Connections => {
                    "↑↓ choose  enter: open  /: search  s: sort  tab: findings  ?: keys  q: quit"
                }
                Screen::Connection => {
                    "↑↓ choose  enter: packets  t: graph  /: search  s: sort  esc: back  q: quit"
                }
                Screen::Exchange => "↑↓ scroll  tab: next exchange  t: graph  esc: back  ?: keys  q: quit",
                Screen::Graph => "t or esc: back  ?: keys  q: quit",
            },
            width,
        ),
        DIM,
    )
}

fn findings(frame: &mut Frame<'_>, area: Rect, view: &mut View<'_>) {
    let rows = view.findings.len() as u16 + 2;
    let [list, detail] = if area.width >= WIDE {
        Layout::horizontal([Constraint::Percentage(45), Constraint::Min(1)]).spacing(2).areas(area)
    } else {
        let list = rows.min(area.height / 2).max(3);
        Layout::vertical([Constraint::Length(list), Constraint::Min(1)]).areas(area)
    };
    let columns = [
        Column::of(">time", 9, 3),
        Column::of(">share", 6, 2),
        Column::rest("found", 20),
        Column::of("side", 8, 1),
    ];
    let rows = view.findings.iter().map(|f| {
        vec![
            Line::from(f.of_requests().to_string()).right_aligned(),
            Line::from(percent(f.share_of_requests)).right_aligned(),
            Line::styled(f.cause.info().title, view.palette.of(f.cause)),
            Line::from(f.side.map_or("", |s| s.name())),
        ]
    });
    let table = table(&columns, rows, list.width);
    chosen(frame, list, table, view.finding, &title(view, "Findings"));
    if let Some(&f) = view.findings.get(view.finding) {
        about(frame, detail, view, f);
    } else {
        let why = if view.of_all(Screen::Findings) > 0 { "No finding matches: esc shows all." } else { "" };
        frame.render_widget(Paragraph::new(why), detail);
    }
}

/// A finding in full: as the text has it, and all that its fixes are called elsewhere.
fn about(frame: &mut Frame<'_>, area: Rect, view: &mut View<'_>, f: &Finding) {
    let lines = said(f, usize::from(area.width), view.palette.good());
    let height = usize::from(area.height.saturating_sub(1));
    let is_cut = lines.len() > height;
    (view.lines, view.page) = (lines.len(), height.saturating_sub(usize::from(is_cut)));
    view.scroll = view.scroll.min(view.lines.saturating_sub(view.page));
    let left = view.lines.saturating_sub(view.scroll + view.page);
    let mut shown: Vec<Line<'_>> = lines.into_iter().skip(view.scroll).take(view.page).collect();
    if is_cut {
        let sign = match left {
            0 => "▲ that was all (page up)".to_owned(),
            n => format!("▼ {n} more lines (space)"),
        };
        shown.push(Line::styled(sign, BOLD));
    }
    frame.render_widget(Paragraph::new(shown).block(Block::new().borders(Borders::TOP)), area);
}

fn said(f: &Finding, width: usize, good: Style) -> Vec<Line<'static>> {
    let times = match f.occurrences {
        1 => "Once. ".into(),
        n => format!("{n} times, {} each. ", range(f.range)),
    };
    let text = |text: &str, indent: usize| -> Vec<String> {
        wrap(text, width.saturating_sub(indent).max(1)).iter().map(|l| format!("{:indent$}{l}", "")).collect()
    };
    let mut lines: Vec<Line<'static>> =
        text(&format!("{times}{}", f.why()), 0).into_iter().map(Line::raw).collect();
    lines.extend(named(f).into_iter().flat_map(|names| text(&names, 0)).map(Line::raw));
    lines.push(Line::raw(""));
    for (i, fix) in f.fixes.iter().enumerate() {
        let saves = saving(f, fix, i == 0).map(|s| format!(", {s}")).unwrap_or_default();
        let lead = if i == 0 { "fix: " } else { " or: " };
        let title = format!("{} ({}){saves}", fix.fix.info().title, fix.place);
        for (n, line) in text(&title, lead.len()).into_iter().enumerate() {
            let line = if n == 0 { format!("{lead}{}", line.trim_start()) } else { line };
            lines.push(Line::styled(line, good));
        }
        lines.extend(fix.how.first().into_iter().flat_map(|how| text(plain(how), lead.len())).map(Line::raw));
    }
    // What is called otherwise elsewhere, after what can be done at all.
    for fix in f.fixes.iter().filter(|fix| fix.how.len() > 1) {
        lines.push(Line::raw(""));
        lines.push(Line::styled(format!("{}, elsewhere:", fix.fix.info().title), DIM));
        lines.extend(fix.how.iter().skip(1).flat_map(|how| text(how, 5)).map(Line::raw));
    }
    let refuted =
        f.refuted.iter().map(|r| format!("Not offered: \"{}\", because {}.", r.fix.info().title, r.because));
    lines.extend(refuted.flat_map(|why| text(&why, 0)).map(|l| Line::styled(l, DIM)));
    lines
}

/// Without the word that says that it holds for all.
fn plain(how: &str) -> &str {
    how.strip_prefix("Any: ").unwrap_or(how)
}

fn connections(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    // Only what is near is made: there may be a hundred thousand.
    let (from, list) = near(&view.order, view.connection, area);
    let wide = area.width >= WIDE;
    let rows = list.iter().map(|&i| connection_row(view, &view.analysis.connections[i], wide));
    let mut columns =
        vec![Column::of(">id", 5, 9), Column::rest("client > server", 33), Column::of(">duration", 9, 7)];
    let (tcp, worst) = (Column::of(">TCP", 9, 6), Column::of("worst cause", 20, 8));
    if wide {
        columns.insert(2, Column::of(">start", 12, 1));
        let more = [(">exchanges", 4), (">bytes", 3), (">RTT", 5)];
        columns.extend(more.map(|(name, worth)| Column::of(name, 9, worth)));
        columns.extend([tcp, Column::of("where the time went", 24, 2), worst]);
    } else {
        columns.extend([tcp, worst]);
    }
    let table = table(&columns, rows, area.width);
    chosen(frame, area, table, view.connection - from, &title(view, "Connections"));
}

fn connection_row(view: &View<'_>, c: &Connection, wide: bool) -> Vec<Line<'static>> {
    let worst = worst(&c.budget).or_else(|| worst(&c.gap_budget));
    let name = worst.map_or_else(|| Line::raw("-"), |w| Line::styled(w.0.id(), view.palette.of(w.0)));
    let right = |text: String| Line::from(text).right_aligned();
    let lost = right(if tcp_time(c) > Nanos::ZERO { tcp_time(c).to_string() } else { "-".into() });
    let ends = Line::from(format!("{} > {}", c.client, c.server));
    let (id, length) = (right(c.id.to_string()), right((c.end - c.start).to_string()));
    if !wide {
        return vec![id, ends, length, lost, name];
    }
    let exchanges = c.exchanges.len() as u64 + c.exchanges_omitted.count;
    vec![
        id,
        ends,
        right(moment(c.start - view.capture.start())),
        length,
        right(exchanges.to_string()),
        right(bytes(c.bytes[0] + c.bytes[1])),
        right(c.path.rtt.map_or_else(|| "-".into(), |r| r.to_string())),
        lost,
        bar(&times(c), 24, view.palette),
        name,
    ]
}

fn connection(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let Some(c) = view.current() else { return };
    let graph = if view.roomy { area.height / 2 - 3 } else { 0 };
    let [about, picture, list] =
        Layout::vertical([Constraint::Length(6), Constraint::Length(graph), Constraint::Min(3)]).areas(area);
    let rtt = c.path.rtt.map(|r| format!(", round trip {r}")).unwrap_or_default();
    let line = format!(
        "{} > {}, {}, {} and {}{rtt}",
        c.client,
        c.server,
        c.end - c.start,
        bytes(c.bytes[0]),
        bytes(c.bytes[1])
    );
    let width = about.width;
    let text = vec![
        cut(Line::raw(line), width),
        bar(&times(c), width, view.palette),
        cut(legend(&times(c), view.palette), width),
        strip(c, width, view.palette),
        cut(shades(view.palette), width),
    ];
    frame.render_widget(
        Paragraph::new(text)
            .block(Block::new().borders(Borders::TOP).title(format!(" Connection {} ", c.id))),
        about,
    );
    if graph > 0 {
        graph::whole(frame, picture, view);
    }
    exchanges(frame, list, view, c);
}

fn exchanges(frame: &mut Frame<'_>, area: Rect, view: &View<'_>, c: &Connection) {
    let (from, list) = near(&view.exchanges, view.exchange, area);
    let wide = area.width >= WIDE;
    let has_names = called(c).is_some();
    let rows = list.iter().map(|&i| exchange_row(view, &c.exchanges[i], has_names, wide));
    let numbers =
        [(">id", 5, 9), (">start", 12, 3), (">duration", 9, 8), (">request", 10, 5), (">response", 10, 6)];
    let mut columns = numbers.map(|(name, width, worth)| Column::of(name, width, worth)).to_vec();
    columns.extend(called(c).map(|width| Column::of("name", width, 7)));
    columns.extend(wide.then(|| Column::of("where the time went", 40, 1)));
    columns.push(Column::rest("worst cause", 20));
    let left = c.exchanges_omitted.count;
    let more = if left > 0 { format!("; {left} more are summed") } else { String::new() };
    let table = table(&columns, rows, area.width);
    chosen(
        frame,
        area,
        table,
        view.exchange.saturating_sub(from),
        &format!("{}{more}", title(view, "Exchanges")),
    );
}

/// Columns for what the exchanges of a connection are called, if any is.
fn called(c: &Connection) -> Option<u16> {
    let longest = c.exchanges.iter().filter_map(|x| x.name()).map(|n| n.chars().count()).max();
    longest.map(|n| n.clamp(4, 24) as u16)
}

fn exchange_row(view: &View<'_>, x: &Exchange, has_name: bool, wide: bool) -> Vec<Line<'static>> {
    let budget = budget_of(x);
    let right = |text: String| Line::from(text).right_aligned();
    let mut row = vec![
        right(x.id.to_string()),
        right(moment(x.start - view.capture.start())),
        right((x.end - x.start).to_string()),
        right(bytes(x.bytes[0])),
        right(bytes(x.bytes[1])),
    ];
    if has_name {
        row.push(Line::raw(x.name().unwrap_or("-").to_owned()));
    }
    if wide {
        let mut times = budget.0.clone();
        times.sort_by_key(|e| std::cmp::Reverse(e.1));
        row.push(bar(&times, 40, view.palette));
    }
    row.push(worst(&budget).map_or_else(
        || Line::raw("-"),
        |w| Line::styled(format!("{} {}", w.0.id(), w.1), view.palette.of(w.0)),
    ));
    row
}

/// `1.543989 s`.
fn moment(since: Nanos) -> String {
    format!("{:.6} s", since.0 as f64 / 1e9)
}

/// `Connections (3 of 14, by TCP, /nagle)`.
fn title(view: &View<'_>, name: &str) -> String {
    let shown = match view.screen {
        Screen::Findings => view.findings.len(),
        Screen::Connections => view.order.len(),
        _ => view.exchanges.len(),
    };
    let search = view.shown(view.screen).map_or("", |list| list.search.as_str());
    let order = view.sorted_by(view.screen);
    if search.is_empty() {
        format!("{name} ({shown}, by {order})")
    } else {
        format!("{name} ({shown} of {}, by {order}, /{search})", view.of_all(view.screen))
    }
}

fn chosen(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, at: usize, title: &str) {
    let title = cut(Line::raw(format!(" {title} ")), area.width);
    let block = Block::new().borders(Borders::TOP).title(title);
    let mut state = TableState::default().with_selected(at);
    frame.render_stateful_widget(table.block(block).row_highlight_style(CHOSEN), area, &mut state);
}

/// The rows around the chosen one, and where they begin.
fn near<T>(all: &[T], at: usize, area: Rect) -> (usize, &[T]) {
    let height = usize::from(area.height).max(1);
    let from = at.saturating_sub(height / 2).min(all.len().saturating_sub(height));
    (from, all.get(from..(from + height).min(all.len())).unwrap_or_default())
}
