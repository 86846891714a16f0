//! `tcpwhy view`: findings, connections, the exchanges of one with its graph, and the ladder of one exchange,
//! in a terminal of 80 by 24 and more. Keys are shown in the last line, and all of them by `?`.

mod bars;
mod draw;
mod fitted;
mod graph;
mod help;
mod keyboard;
mod ladder;
mod palette;
mod state;
#[cfg(test)]
mod tests;

use crate::load::Loaded;
pub(crate) use keyboard::Keyboard;
pub(crate) use palette::{BOLD, DIM, Palette};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use state::{Step, View};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tcpwhy_trace::Packet;

/// More packets of an exchange than anybody scrolls through.
const MOST: usize = 20_000;
/// Packets of a graph.
const GRAPH: usize = 200_000;

/// Shows it until the user leaves. The terminal is put back whatever happens: `try_init` installs a panic
/// hook that does it before the message is printed, and signals that end the program set `stop`.
pub(crate) fn run(loaded: &Loaded, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let done = browse(&mut terminal, loaded, stop);
    ratatui::try_restore()?;
    done
}

fn browse(terminal: &mut ratatui::DefaultTerminal, loaded: &Loaded, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::of_terminal());
    let keyboard = Keyboard::open()?;
    let mut stale = true;
    while !stop.load(Ordering::Relaxed) {
        if std::mem::take(&mut stale) {
            fetch(loaded, &mut view);
            terminal.draw(|frame| draw::all(frame, &mut view))?;
            // Whether a graph has room shows only now.
            if fetch(loaded, &mut view) {
                terminal.draw(|frame| draw::all(frame, &mut view))?;
            }
        }
        // Nothing is drawn until something is pressed or the window changes: nothing flickers, and nothing costs.
        if !keyboard.wait(Duration::from_millis(250)) {
            break;
        }
        if !event::poll(Duration::ZERO)? {
            continue;
        }
        stale = true;
        assert!(!fails_on_purpose(), "on purpose, for a test of the terminal");
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && step(key, view.typing).is_some_and(|step| !view.step(step))
        {
            break;
        }
    }
    Ok(())
}

/// Tests of what a panic leaves behind (tests/view_test.py) ask for one by the environment; a release build
/// knows of none.
fn fails_on_purpose() -> bool {
    cfg!(debug_assertions) && std::env::var_os("TCPWHY_TEST_PANIC").is_some()
}

/// What a key means; `typing`: letters go into a search.
fn step(key: KeyEvent, typing: bool) -> Option<Step> {
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Step::Quit,
        KeyCode::Char(letter) if typing && !key.modifiers.contains(KeyModifiers::CONTROL) => {
            Step::Type(letter)
        }
        KeyCode::Backspace if typing => Step::Rub,
        KeyCode::Char('/') => Step::Search,
        KeyCode::Char('s') => Step::Sort,
        KeyCode::Char('t') => Step::Graph,
        KeyCode::Char('?') | KeyCode::F(1) => Step::Help,
        KeyCode::Char('q') => Step::Quit,
        KeyCode::Up | KeyCode::Char('k') => Step::By(-1),
        KeyCode::Down | KeyCode::Char('j') => Step::By(1),
        KeyCode::PageUp => Step::Page(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => Step::Page(1),
        KeyCode::Home | KeyCode::Char('g') => Step::By(isize::MIN / 2),
        KeyCode::End | KeyCode::Char('G') => Step::By(isize::MAX / 2),
        KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => Step::In,
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace | KeyCode::Char('h') => Step::Out,
        KeyCode::Tab => Step::Tab,
        KeyCode::BackTab => Step::TabBack,
        _ => return None,
    })
}

/// Reads what is in sight and was not read yet; whether there was anything.
fn fetch(loaded: &Loaded, view: &mut View<'_>) -> bool {
    let (ladder, graph) = (view.packets_wanted(), view.graph_wanted());
    if ladder {
        view.packets = Some(packets(loaded, view));
    }
    if graph && let Some(c) = view.current() {
        let read = loaded.source().stretch(&loaded.analysis, c.id, (c.start, c.end), GRAPH);
        let packets = read.map(|track| track.packets).unwrap_or_default();
        let more = packets.len() >= GRAPH;
        view.graph = Some((packets, more));
    }
    ladder || graph
}

/// The packets of the exchange in sight, from a second look at the files.
fn packets(loaded: &Loaded, view: &View<'_>) -> Vec<Packet> {
    let Some((c, x)) = view.exchange() else { return Vec::new() };
    // A file that has gone meanwhile leaves the spans without packets.
    let read = loaded.source().stretch(&loaded.analysis, c.id, (x.start, x.end), MOST);
    read.map(|track| track.packets).unwrap_or_default()
}
