use super::state::{Screen, Step, View};
use super::{draw, packets};
use crate::load::{self, Loaded};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::PathBuf;
use std::sync::Arc;
use tcpwhy_analysis::Detail;

fn smtp() -> Loaded {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap"));
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
    let mut view = View::new(&loaded.analysis, &loaded.capture);
    let first = shown(&mut view, 80, 24);
    for part in ["1.16 s (41 %) is TCP", "Nagle held a small write", "saves up to 1.16 s", "q: quit"] {
        assert!(first.contains(part), "{part:?} is not in\n{first}");
    }
    assert!(view.step(Step::In));
    assert_eq!(view.screen, Screen::Exchange);
    assert!(view.packets_wanted());
    let found = packets(&loaded, &view);
    view.take_packets(found);
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
    assert!(shown(&mut view, 80, 24).contains("Connections (1)"));
    assert!(view.step(Step::Tab) && view.screen == Screen::Findings);
    assert!(!view.step(Step::Quit));
}

#[test]
fn no_size_and_no_key_breaks_it() {
    let loaded = smtp();
    for (width, height) in [(1, 1), (5, 3), (20, 6), (80, 24), (250, 80)] {
        let mut view = View::new(&loaded.analysis, &loaded.capture);
        let steps = [
            Step::By(1),
            Step::In,
            Step::By(10),
            Step::Tab,
            Step::TabBack,
            Step::By(-3),
            Step::Out,
            Step::By(isize::MAX / 2),
            Step::In,
        ];
        for step in steps.into_iter().cycle().take(60) {
            view.step(step);
            if view.packets_wanted() {
                view.take_packets(Vec::new());
            }
            shown(&mut view, width, height);
        }
    }
    let nothing = tcpwhy_analysis::Analysis::default();
    let capture = tcpwhy_report::Capture::default();
    let mut view = View::new(&nothing, &capture);
    for step in [Step::In, Step::By(1), Step::Tab, Step::In, Step::Out] {
        view.step(step);
        shown(&mut view, 80, 24);
    }
}
