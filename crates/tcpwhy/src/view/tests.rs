use super::palette::Palette;
use super::state::{Screen, Step, View};
use super::{draw, fetch, packets};
use crate::load::{self, Loaded};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::PathBuf;
use std::sync::Arc;
use tcpwhy_library::Detail;

fn smtp() -> Loaded {
    load_capture("zeek__smtp_bdat.pcap")
}

fn load_capture(name: &str) -> Loaded {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures")).join(name);
    load::load(&[path], Detail::All, true, &Arc::default()).unwrap().ok().unwrap()
}

fn shown(view: &mut View<'_>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::all(frame, view)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn from_the_verdict_to_the_packets_at_80_by_24() {
    let loaded = smtp();
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
    let first = shown(&mut view, 80, 24);
    for part in ["of it is Nagle × delayed ACK", "Nagle held a small write", "saves up to 1.16 s", "q: quit"]
    {
        assert!(first.contains(part), "{part:?} is not in\n{first}");
    }
    assert!(view.step(Step::In));
    assert_eq!(view.screen, Screen::Exchange);
    assert!(view.packets_wanted());
    view.packets = Some(packets(&loaded, &view));
    let ladder = shown(&mut view, 80, 24);
    for part in [
        "exchange 19: 49.0 ms",
        "nagle_delayed_ack 48.2 ms",
        "102 client ├",
        "P. 129 B",
        "▶ server",
        "esc: back",
    ] {
        assert!(ladder.contains(part), "{part:?} is not in\n{ladder}");
    }
    assert!(view.step(Step::Tab));
    let next = shown(&mut view, 80, 24);
    assert!(next.contains("exchange 20"), "{next}");
    assert!(view.step(Step::TabBack) && view.step(Step::TabBack));
    assert!(shown(&mut view, 80, 24).contains("exchange 18"));
    for _ in 0..18 {
        view.step(Step::TabBack);
    }
    assert!(shown(&mut view, 80, 24).contains("exchange 32"), "round and round");
    assert!(view.step(Step::Out));
    let list = shown(&mut view, 80, 24);
    assert!(list.contains("127.0.0.1:38718 > 127.0.0.1:25") && list.contains("nagle_delayed_ack"), "{list}");
    assert!(view.step(Step::Out) && view.screen == Screen::Connections);
    assert!(shown(&mut view, 80, 24).contains("Connections (1, by TCP)"));
    assert!(view.step(Step::Tab) && view.screen == Screen::Findings);
    assert!(!view.step(Step::Quit));
}

/// Half a number is another number.
#[test]
fn a_narrow_terminal_shows_no_part_of_a_number() {
    let loaded = smtp();
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
    let findings = shown(&mut view, 40, 24);
    assert!(findings.contains("  1.16 s   93 % Nagle held a small wri…"), "{findings}");
    view.step(Step::In);
    view.packets = Some(packets(&loaded, &view));
    let ladder = shown(&mut view, 40, 24);
    assert!(ladder.contains("48.182 ms     102 client ├ P. 1…"), "{ladder}");
    view.step(Step::Out);
    let list = shown(&mut view, 40, 24);
    for part in ["   19   49.0 ms nagle_delayed_ack 48.2 …", "nagle_delayed_ack …", "25, 2.83 s,…"] {
        assert!(list.contains(part), "{part:?} is not in\n{list}");
    }
}

#[test]
fn no_size_and_no_key_breaks_it() {
    let loaded = smtp();
    for (width, height) in [(1, 1), (5, 3), (20, 6), (80, 24), (250, 80)] {
        let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
        let steps = [
            Step::By(1),
            Step::In,
            Step::By(10),
            Step::Tab,
            Step::TabBack,
            Step::By(-3),
            Step::Out,
            Step::By(isize::MAX / 2),
            Step::Graph,
            Step::Help,
            Step::Out,
            Step::Search,
            Step::Type('n'),
            Step::Sort,
            Step::Page(1),
            Step::Rub,
            Step::Page(-1),
            Step::Graph,
            Step::In,
        ];
        for step in steps.into_iter().cycle().take(120) {
            view.step(step);
            if view.packets_wanted() {
                view.packets = Some(Vec::new());
            }
            shown(&mut view, width, height);
        }
    }
    let nothing = tcpwhy_library::captures::Analysis::default();
    let capture = tcpwhy_report::Capture::default();
    let mut view = View::new(&nothing, &capture, Palette::None);
    for step in
        [Step::In, Step::By(1), Step::Tab, Step::In, Step::Graph, Step::Sort, Step::Page(1), Step::Out]
    {
        view.step(step);
        shown(&mut view, 80, 24);
    }
}

#[test]
fn lists_are_searched_and_sorted() {
    let many = load_capture("PcapPlusPlus__pcapng-example.pcapng");
    let mut view = View::new(&many.analysis, &many.capture, Palette::Many);
    view.step(Step::Tab);
    let all = view.order.len();
    assert!(all > 5 && shown(&mut view, 80, 24).contains(&format!("Connections ({all}, by TCP)")));
    let wanted = many.analysis.connections[3].client.to_string();
    view.step(Step::Search);
    for letter in wanted.chars() {
        view.step(Step::Type(letter));
    }
    let found = shown(&mut view, 80, 24);
    assert!(
        found.contains(&format!("/{wanted}▏")) && found.contains(&format!("of {all}, by TCP")),
        "{found}"
    );
    assert!(view.order.contains(&3) && view.order.len() < all);
    let hits = view.order.clone();
    view.step(Step::Type('~'));
    assert!(view.order.is_empty() && view.current().is_none());
    shown(&mut view, 80, 24);
    view.step(Step::Rub);
    assert_eq!(view.order, hits);
    // Enter keeps what was found, escape shows all again, and only then goes back.
    view.step(Step::In);
    assert!(!view.typing && view.screen == Screen::Connections && view.order == hits);
    view.step(Step::Out);
    assert!(view.screen == Screen::Connections && view.order.len() == all);
    let lengths = |view: &View<'_>| -> Vec<i64> {
        let of = |&i: &usize| (many.analysis.connections[i].end - many.analysis.connections[i].start).0;
        view.order.iter().map(of).collect()
    };
    view.step(Step::Sort);
    assert!(lengths(&view).is_sorted_by(|a, b| a >= b) && shown(&mut view, 80, 24).contains("by duration"));
    view.step(Step::Sort);
    view.step(Step::Sort);
    assert_eq!(view.order, (0..all).collect::<Vec<_>>(), "by number");
    view.step(Step::Sort);
    assert!(shown(&mut view, 80, 24).contains("by TCP"), "round and round");
}

#[test]
fn help_lists_the_keys_and_any_key_closes_it() {
    let loaded = smtp();
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
    view.step(Step::Help);
    let help = shown(&mut view, 80, 24);
    for part in
        ["search: words of addresses and causes", "sort by something else", "the graph of the connection"]
    {
        assert!(help.contains(part), "{part:?} is not in\n{help}");
    }
    assert!(
        view.step(Step::In) && view.screen == Screen::Findings,
        "the key closes it and does nothing else"
    );
    assert!(!shown(&mut view, 80, 24).contains("any key closes"));
    // The longest sentence is whole at any width, the line of keys ends with the way out.
    for width in [50, 60, 72, 80, 100, 130] {
        view.step(Step::Help);
        let help = shown(&mut view, width, 30);
        let words = help.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
        let text = words.collect::<Vec<_>>().join(" ");
        for part in ["next exchange", "addresses and causes", "what is said of", "any key closes"] {
            assert!(width < 72 || text.contains(part), "{part:?} at {width}:\n{help}");
        }
        assert!(help.contains("exchange") && help.contains("causes"), "{width}:\n{help}");
        view.step(Step::Help);
        let line = shown(&mut view, width, 30);
        assert!(line.contains("?: keys  q: quit"), "{width}:\n{line}");
    }
    // In forty columns all of it stands on one screen.
    view.step(Step::Help);
    let help = shown(&mut view, 40, 24);
    let words: Vec<&str> = help.split(|c: char| !c.is_alphanumeric()).collect();
    for part in
        ["up", "space", "chosen", "search", "exchange", "causes", "sort", "else", "graph", "quit", "closes"]
    {
        assert!(words.contains(&part), "{part:?}:\n{help}");
    }
    view.step(Step::Help);
}

#[test]
fn what_does_not_fit_has_a_sign_and_is_scrolled_to() {
    let loaded = smtp();
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
    let first = shown(&mut view, 80, 24);
    assert!(first.contains("more lines (space)"), "{first}");
    let last = "Netty: EpollChannelOption.TCP_CORK";
    assert!(!first.contains(last));
    let mut seen = first;
    for _ in 0..20 {
        view.step(Step::Page(1));
        seen.push_str(&shown(&mut view, 80, 24));
    }
    assert!(seen.contains(last) && shown(&mut view, 80, 24).contains("that was all"), "{seen}");
    view.step(Step::By(1));
    assert_eq!(view.scroll, 0, "another finding is read from its first line");
}

#[test]
fn a_graph_where_there_is_room_and_by_its_key() {
    let loaded = smtp();
    let braille = |text: &str| text.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count();
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
    let wide = shown(&mut view, 200, 50);
    let beside = wide.lines().any(|l| l.contains("found") && l.contains("27 times"));
    assert!(beside, "what is said of a finding stands beside the list\n{wide}");
    view.step(Step::Tab);
    assert!(shown(&mut view, 200, 50).contains("where the time went"));
    view.step(Step::In);
    shown(&mut view, 200, 50);
    assert!(fetch(&loaded, &mut view));
    let large = shown(&mut view, 200, 50);
    assert!(braille(&large) > 100 && large.contains("Sequence numbers, client → server"), "{large}");
    assert!(large.contains("Exchanges (32"), "{large}");
    let small = shown(&mut view, 80, 24);
    assert!(braille(&small) == 0 && small.contains("above, the same from begin to end"), "{small}");
    view.step(Step::Graph);
    let graph = shown(&mut view, 80, 24);
    assert!(braille(&graph) > 60 && graph.contains("2.83 s") && graph.contains("3.72 KiB"), "{graph}");
    view.step(Step::Out);
    assert_eq!(view.screen, Screen::Connection);
}

#[test]
fn the_strip_has_each_cell_of_its_cause() {
    let loaded = smtp();
    let c = &loaded.analysis.connections[0];
    let line = super::bars::strip(c, 60, Palette::None).to_string();
    assert_eq!(line.chars().count(), 60);
    let cell = |ns: i64| (i128::from(ns) * 60 / i128::from((c.end - c.start).0)) as usize;
    let x = &c.exchanges[18];
    let middle = cell((x.start.0 + x.end.0) / 2 - c.start.0);
    assert_eq!(line.chars().nth(middle), Some('█'), "exchange 19 is TCP's: {line}");
    let gap = c.gaps.iter().max_by_key(|g| g.end - g.start).unwrap();
    let middle = cell((gap.start.0 + gap.end.0) / 2 - c.start.0);
    assert_eq!(line.chars().nth(middle), Some('▒'), "an application's pause: {line}");
}

#[test]
fn exchanges_are_called_by_their_requests() {
    let mut loaded = load_capture("PcapPlusPlus__raw_ip.pcap");
    loaded.name().unwrap();
    let mut view = View::new(&loaded.analysis, &loaded.capture, Palette::Many);
    let all: Vec<String> = (0..view.findings.len())
        .map(|_| {
            let screen = shown(&mut view, 80, 60);
            view.step(Step::By(1));
            screen
        })
        .collect();
    assert!(all.iter().any(|screen| screen.contains(" x GET /")), "{all:?}");
    let at = loaded.analysis.connections.iter().find(|c| c.exchanges.iter().any(|x| x.name().is_some()));
    let id = at.unwrap().id;
    view.step(Step::Tab);
    for _ in 0..view.order.len() {
        if view.current().is_some_and(|c| c.id == id) {
            break;
        }
        view.step(Step::By(1));
    }
    view.step(Step::In);
    let list = shown(&mut view, 100, 40);
    assert!(list.contains("name") && list.contains("GET /"), "{list}");
    view.step(Step::In);
    assert!(shown(&mut view, 100, 40).contains("(GET /"));
}
