//! The same in a terminal, made anew after each interval: connections, the worst first, and what is known of
//! the chosen one.

use super::eye::Eye;
use super::{keep_ended, view};
use crate::args::watch::Watch;
use crate::failure::Exit;
use crate::output::Output;
use crate::view::{BOLD, DIM, Keyboard, Palette};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, TableState};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tcpwhy_base::{Class, Nanos};
use tcpwhy_live::{Connection, Ended};
use tcpwhy_report::count;
use tcpwhy_report::text::wrap;
use tcpwhy_report::watch::{View, ends, program, short, state, text, threads};

const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// What is on the screen.
struct Screen {
    view: View,
    /// The cookie of the chosen connection: it stays chosen when the order changes.
    chosen: Option<u64>,
    paused: bool,
    palette: Palette,
}

/// Until `q`, or a signal.
pub(super) fn run(args: &Watch, eye: &mut Eye, stop: &AtomicBool) -> anyhow::Result<Exit> {
    let mut terminal = ratatui::try_init()?;
    let seen = watch(args, eye, stop, &mut terminal);
    ratatui::try_restore()?;
    // The screen is gone; what it showed last stays.
    let mut out = Output::open(None, false)?;
    let layout = super::layout(args, &out);
    let written = text(&mut out, &seen?, &layout);
    out.finish(written.map_err(Into::into))?;
    Ok(if stop.load(Relaxed) { Exit::Interrupted } else { Exit::Done })
}

fn watch(
    args: &Watch,
    eye: &mut Eye,
    stop: &AtomicBool,
    terminal: &mut ratatui::DefaultTerminal,
) -> anyhow::Result<View> {
    let keyboard = Keyboard::open()?;
    let interval = Duration::from_nanos(args.interval.0.unsigned_abs());
    let mut gone = Ended::default();
    let mut screen = Screen {
        view: view(args, eye, Ended::default()),
        chosen: None,
        paused: false,
        palette: Palette::of_terminal(),
    };
    let (mut until, mut stale) = (Instant::now() + interval, true);
    // An interval has passed.
    let mut whole = false;
    while !stop.load(Relaxed) {
        if std::mem::take(&mut stale) {
            terminal.draw(|frame| draw(frame, &screen))?;
        }
        if !keyboard.wait(eye.nap(until)) {
            break;
        }
        eye.look_if_due(until)?;
        eye.hand_over(false, |ended| keep_ended(args, &mut gone, ended));
        if Instant::now() >= until {
            until = Instant::now() + interval;
            if !screen.paused {
                eye.hand_over(true, |ended| keep_ended(args, &mut gone, ended));
                screen.view = view(args, eye, std::mem::take(&mut gone));
                (stale, whole) = (true, true);
            }
        }
        if event::poll(Duration::ZERO)? {
            stale = true;
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
                && !step(key, &mut screen, stop)
            {
                break;
            }
        }
    }
    if !whole {
        eye.hand_over(true, |ended| keep_ended(args, &mut gone, ended));
        screen.view = view(args, eye, gone);
    }
    Ok(screen.view)
}

/// What a key does; false: leave.
fn step(key: KeyEvent, screen: &mut Screen, stop: &AtomicBool) -> bool {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            stop.store(true, Relaxed);
            return false;
        }
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char(' ') => screen.paused = !screen.paused,
        KeyCode::Down | KeyCode::Char('j') => screen.choose(1),
        KeyCode::Up | KeyCode::Char('k') => screen.choose(-1),
        _ => {}
    }
    true
}

impl Screen {
    fn all(&self) -> &[Connection] {
        &self.view.snapshot.connections
    }

    fn at(&self) -> usize {
        let found = self.chosen.and_then(|id| self.all().iter().position(|c| c.sample.cookie == id));
        found.unwrap_or(0)
    }

    fn choose(&mut self, by: isize) {
        let at = self.at().saturating_add_signed(by).min(self.all().len().saturating_sub(1));
        self.chosen = self.all().get(at).map(|c| c.sample.cookie);
    }
}

fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let [head, list, below, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Percentage(45),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let s = &screen.view.snapshot;
    let text = format!(
        "{} in the last {}, estimated from {}{}{}",
        screen.view.heading(),
        s.interval,
        count(u64::from(s.samples), "sample"),
        if screen.view.events { " and measured" } else { "" },
        if screen.paused { "; paused" } else { "" }
    );
    frame.render_widget(Paragraph::new(Line::styled(text, BOLD)), head);
    connections(frame, list, screen);
    let width = usize::from(below.width).max(20);
    let block = Block::new().borders(Borders::TOP);
    frame.render_widget(Paragraph::new(Text::from(about(screen, width))).block(block), below);
    let keys_text = "↑↓ choose  space: pause  q: quit";
    frame.render_widget(Paragraph::new(Line::styled(keys_text, DIM)), keys);
}

fn connections(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    // Only what can be seen is laid out: a host may have a hundred thousand.
    let height = usize::from(area.height).max(1);
    let at = screen.at();
    let from = at.saturating_sub(height / 2).min(screen.all().len().saturating_sub(height));
    let rows = screen.all().iter().skip(from).take(height).map(|c| {
        let worst = c.interval.shares().into_iter().find(|s| s.cause.class() == Class::Tcp);
        let lost = if c.lost() > Nanos::ZERO { c.lost().to_string() } else { "-".into() };
        let style = worst.map_or(DIM, |s| screen.palette.of(s.cause));
        Row::new([
            Line::from(lost).right_aligned(),
            Line::styled(short(&c.interval, 2), style),
            Line::from(program(c.process.as_ref())),
            Line::from(ends(c) + &state(c)),
        ])
    });
    let widths = [Constraint::Length(8), Constraint::Fill(3), Constraint::Fill(2), Constraint::Fill(3)];
    let head = Row::new(["lost", "the last interval", "program", "connection"]).style(DIM);
    let table = Table::new(rows, widths).header(head).row_highlight_style(CHOSEN);
    let mut state = TableState::default().with_selected(at.saturating_sub(from));
    frame.render_stateful_widget(table, area, &mut state);
}

/// The chosen connection, what it loses time to, and what helps; full listeners.
fn about(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for l in screen.view.snapshot.listeners.iter().filter(|l| l.queue > 0).take(3) {
        let text = format!(
            "listener {} {}: {} wait for accept(), {} fit",
            l.local,
            program(l.process.as_ref()),
            l.queue,
            l.backlog.saturating_add(1)
        );
        lines.push(Line::styled(text, if l.is_full() { screen.palette.bad() } else { DIM }));
    }
    let Some(c) = screen.all().get(screen.at()) else { return lines };
    let own = |t: &&tcpwhy_live::Stuck| {
        c.process.as_ref().is_some_and(|p| p.pid == t.process.pid) && t.peer == c.sample.peer
    };
    for t in screen.view.snapshot.stuck.iter().filter(own).filter(|t| t.longest >= Nanos::millis(100)) {
        lines.push(Line::styled(threads(t), DIM));
    }
    let text = |lines: &mut Vec<Line<'static>>, text: &str, style: Style| {
        lines.extend(wrap(text, width).into_iter().map(|l| Line::styled(l, style)));
    };
    // The list may have no room for all of it.
    text(&mut lines, &format!("{}  {}", ends(c), program(c.process.as_ref())), BOLD);
    text(&mut lines, &format!("since {} ago: {}", c.watched, short(&c.total, 4)), Style::new());
    for share in c.interval.shares() {
        let side = share.at.side(c.role == tcpwhy_live::Role::Client);
        let found = |f: &&tcpwhy_live::Finding| (f.cause, f.at, f.side) == (share.cause, share.at, side);
        let Some(f) = screen.view.findings.iter().find(found) else { continue };
        text(&mut lines, f.cause.info().title, screen.palette.of(f.cause));
        text(&mut lines, &f.why, Style::new());
        for (n, fix) in f.fixes.iter().take(2).enumerate() {
            let lead = if n == 0 { "fix" } else { " or" };
            let title = format!("{lead}: {} ({})", fix.fix.info().title, fix.place);
            text(&mut lines, &title, screen.palette.good());
            if let Some(how) = fix.how.first() {
                text(&mut lines, how.strip_prefix("Any: ").unwrap_or(how), Style::new());
            }
        }
    }
    lines
}
