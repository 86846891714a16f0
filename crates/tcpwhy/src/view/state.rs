//! Where the user is, and where a key leads.

use super::palette::Palette;
use std::cmp::Reverse;
use tcpwhy_base::{Cause, Nanos, Owner};
use tcpwhy_library::{Budget, Connection, Exchange, Finding, captures::Analysis, parts::Example};
use tcpwhy_report::text::listed;
use tcpwhy_report::{Capture, tcp_time, worst};
use tcpwhy_trace::Packet;

/// A key's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    By(isize),
    /// What scrolls beside a list; else ten rows of it.
    Page(isize),
    In,
    Out,
    /// The other list, or the next exchange.
    Tab,
    /// The previous one.
    TabBack,
    /// Another order.
    Sort,
    /// A search begins.
    Search,
    /// A letter of it; the last one taken back.
    Type(char),
    Rub,
    /// The graph of the connection, or back from it.
    Graph,
    Help,
    Quit,
}

/// What is in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    Findings,
    Connections,
    /// The exchanges of one connection.
    Connection,
    /// The ladder of one exchange.
    Exchange,
    /// The sequence numbers of one connection over its time.
    Graph,
}

/// The lists that can be searched and sorted.
const LISTS: [Screen; 3] = [Screen::Findings, Screen::Connections, Screen::Connection];
/// The orders of each, the first as it comes.
const ORDERS: [&[&str]; 3] =
    [&["time", "what is saved"], &["TCP", "duration", "bytes", "id"], &["id", "duration", "TCP", "response"]];

/// How a list is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Words that must all be in a row.
    pub(crate) search: String,
    order: usize,
}

/// The whole state.
pub(crate) struct View<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) capture: &'a Capture,
    pub(crate) palette: Palette,
    pub(crate) screen: Screen,
    pub(crate) help: bool,
    /// Letters go into the search.
    pub(crate) typing: bool,
    lists: [Shown; 3],
    pub(crate) findings: Vec<&'a Finding>,
    /// Connections in their order.
    pub(crate) order: Vec<usize>,
    /// Exchanges of the chosen connection in their order.
    pub(crate) exchanges: Vec<usize>,
    pub(crate) finding: usize,
    pub(crate) connection: usize,
    pub(crate) exchange: usize,
    /// First line in sight of what scrolls: the ladder, or what is said of a finding.
    pub(crate) scroll: usize,
    /// Lines of it, and how many of them are in sight, known once it was drawn.
    pub(crate) lines: usize,
    pub(crate) page: usize,
    /// There is room for a graph beside a list, as was seen when it was drawn.
    pub(crate) roomy: bool,
    pub(crate) packets: Option<Vec<Packet>>,
    /// Those of the whole connection, and whether there are more.
    pub(crate) graph: Option<(Vec<Packet>, bool)>,
}

impl<'a> View<'a> {
    pub(crate) fn new(analysis: &'a Analysis, capture: &'a Capture, palette: Palette) -> View<'a> {
        let mut view = View {
            analysis,
            capture,
            palette,
            screen: Screen::Findings,
            help: false,
            typing: false,
            lists: Default::default(),
            findings: Vec::new(),
            order: Vec::new(),
            exchanges: Vec::new(),
            finding: 0,
            connection: 0,
            exchange: 0,
            scroll: 0,
            lines: 0,
            page: 0,
            roomy: false,
            packets: None,
            graph: None,
        };
        view.list_findings();
        view.list_connections();
        view.list_exchanges();
        view
    }

    /// How the list of a screen is shown; none if it has none.
    pub(crate) fn shown(&self, screen: Screen) -> Option<&Shown> {
        LISTS.iter().position(|&s| s == screen).map(|i| &self.lists[i])
    }

    /// What a list is sorted by.
    pub(crate) fn sorted_by(&self, screen: Screen) -> &'static str {
        let Some(i) = LISTS.iter().position(|&s| s == screen) else { return "" };
        ORDERS[i][self.lists[i].order]
    }

    /// Of how many rows those in sight were picked.
    pub(crate) fn of_all(&self, screen: Screen) -> usize {
        match screen {
            Screen::Findings => listed(&self.analysis.findings).len(),
            Screen::Connections => self.analysis.connections.len(),
            _ => self.current().map_or(0, |c| c.exchanges.len()),
        }
    }

    pub(crate) fn current(&self) -> Option<&'a Connection> {
        self.order.get(self.connection).map(|&i| &*self.analysis.connections[i])
    }

    pub(crate) fn exchange(&self) -> Option<(&'a Connection, &'a Exchange)> {
        let c = self.current()?;
        Some((c, c.exchanges.get(*self.exchanges.get(self.exchange)?)?))
    }

    /// The ladder is in sight and its packets have not been read.
    pub(crate) fn packets_wanted(&self) -> bool {
        self.screen == Screen::Exchange && self.packets.is_none()
    }

    /// The graph is in sight and has not been made.
    pub(crate) fn graph_wanted(&self) -> bool {
        let in_sight = self.screen == Screen::Graph || self.screen == Screen::Connection && self.roomy;
        in_sight && self.graph.is_none() && self.current().is_some()
    }

    /// Does what a key means; `false`: the user leaves.
    pub(crate) fn step(&mut self, step: Step) -> bool {
        if std::mem::take(&mut self.help) {
            return step != Step::Quit;
        }
        match step {
            Step::Quit => return false,
            Step::Help => self.help = true,
            Step::By(n) => self.by(n),
            Step::Page(n) if self.screen == Screen::Findings => {
                self.scroll_by(n * self.page.max(2).cast_signed() / 2)
            }
            Step::Page(n) => self.by(n * 10),
            Step::Tab => self.tab(1),
            Step::TabBack => self.tab(-1),
            Step::In if self.typing => self.typing = false,
            Step::In => self.enter(),
            Step::Out => self.out(),
            Step::Graph => self.graph(),
            Step::Sort => self.change(|list, orders| list.order = (list.order + 1) % orders),
            Step::Search => self.typing = self.shown(self.screen).is_some(),
            Step::Type(letter) => self.change(|list, _| list.search.push(letter)),
            Step::Rub => self.change(|list, _| {
                list.search.pop();
            }),
        }
        true
    }

    /// Changes how the list in sight is shown; the first row of it is chosen.
    fn change(&mut self, how: impl FnOnce(&mut Shown, usize)) {
        let Some(i) = LISTS.iter().position(|&s| s == self.screen) else { return };
        how(&mut self.lists[i], ORDERS[i].len());
        match self.screen {
            Screen::Findings => {
                self.list_findings();
                (self.finding, self.scroll) = (0, 0);
            }
            Screen::Connections => {
                self.list_connections();
                self.connection = 0;
                self.list_exchanges();
            }
            _ => {
                self.list_exchanges();
                self.exchange = 0;
            }
        }
    }

    fn out(&mut self) {
        let searched = self.shown(self.screen).is_some_and(|l| !l.search.is_empty());
        if self.typing || searched {
            self.typing = false;
            return self.change(|list, _| list.search.clear());
        }
        self.screen = match self.screen {
            Screen::Exchange | Screen::Graph => Screen::Connection,
            Screen::Connection => Screen::Connections,
            Screen::Connections | Screen::Findings => Screen::Findings,
        };
        (self.scroll, self.packets) = (0, None);
    }

    fn graph(&mut self) {
        self.screen = match self.screen {
            Screen::Connection | Screen::Connections | Screen::Exchange if self.current().is_some() => {
                Screen::Graph
            }
            Screen::Graph => Screen::Connection,
            other => other,
        };
    }

    fn tab(&mut self, way: isize) {
        self.screen = match self.screen {
            Screen::Findings => Screen::Connections,
            Screen::Connections => Screen::Findings,
            other => {
                // The next exchange, round and round.
                let n = self.exchanges.len();
                if other == Screen::Exchange && n > 0 {
                    self.exchange = (self.exchange + n).saturating_add_signed(way) % n;
                    (self.scroll, self.packets) = (0, None);
                }
                return;
            }
        };
        self.scroll = 0;
    }

    fn scroll_by(&mut self, n: isize) {
        self.scroll = self.scroll.saturating_add_signed(n).min(self.lines.saturating_sub(self.page));
    }

    fn by(&mut self, n: isize) {
        let (at, of) = match self.screen {
            Screen::Findings => (&mut self.finding, self.findings.len()),
            Screen::Connections => (&mut self.connection, self.order.len()),
            Screen::Connection => (&mut self.exchange, self.exchanges.len()),
            Screen::Exchange => return self.scroll_by(n),
            Screen::Graph => return,
        };
        *at = at.saturating_add_signed(n).min(of.saturating_sub(1));
        if self.screen == Screen::Findings {
            self.scroll = 0;
        }
        if self.screen == Screen::Connections {
            self.chosen_connection();
        }
    }

    /// Another connection was chosen.
    fn chosen_connection(&mut self) {
        self.lists[2].search.clear();
        self.exchange = 0;
        self.graph = None;
        self.list_exchanges();
    }

    fn enter(&mut self) {
        match self.screen {
            Screen::Findings => {
                // To the example of the finding.
                let Some(f) = self.findings.get(self.finding) else { return };
                let Example { connection, exchange, .. } = f.example;
                let found = |view: &View<'_>| {
                    view.order.iter().position(|&i| view.analysis.connections[i].id == connection)
                };
                if found(self).is_none() {
                    self.lists[1].search.clear();
                    self.list_connections();
                }
                self.connection = found(self).unwrap_or(0);
                self.chosen_connection();
                let c = self.current();
                let at = c.and_then(|c| self.exchanges.iter().position(|&i| c.exchanges[i].id == exchange));
                self.exchange = at.unwrap_or(0);
                self.screen = match (c, at) {
                    (None, _) => Screen::Findings,
                    (_, Some(_)) => Screen::Exchange,
                    _ => Screen::Connection,
                };
            }
            Screen::Connections if self.current().is_some() => self.screen = Screen::Connection,
            Screen::Connection if self.exchange().is_some() => self.screen = Screen::Exchange,
            _ => return,
        }
        (self.scroll, self.packets) = (0, None);
    }

    fn list_findings(&mut self) {
        let analysis = self.analysis;
        self.findings = listed(&analysis.findings);
        if self.lists[0].order == 1 {
            let saves = |f: &Finding| f.fixes.iter().filter_map(|fix| fix.saves).max();
            self.findings.sort_by_key(|f| Reverse(saves(f)));
        }
        let search = &self.lists[0].search;
        self.findings.retain(|f| {
            let side = f.side.map_or("", |s| s.name());
            is_meant(search, &format!("{} {} {side}", f.cause.id(), f.cause.info().title))
        });
    }

    fn list_connections(&mut self) {
        let all = &self.analysis.connections;
        self.graph = None;
        self.order = (0..all.len()).filter(|&i| is_meant(&self.lists[1].search, &words(&all[i]))).collect();
        match self.lists[1].order {
            0 => self.order.sort_by_cached_key(|&i| (Reverse(tcp_time(&all[i])), i)),
            1 => self.order.sort_by_cached_key(|&i| (Reverse(all[i].end - all[i].start), i)),
            2 => self.order.sort_by_cached_key(|&i| (Reverse(all[i].bytes[0] + all[i].bytes[1]), i)),
            _ => {}
        }
    }

    fn list_exchanges(&mut self) {
        let Some(c) = self.current() else { return self.exchanges.clear() };
        let all = &c.exchanges;
        let search = &self.lists[2].search;
        self.exchanges = (0..all.len())
            .filter(|&i| {
                let causes: Vec<&str> = budget_of(&all[i]).0.iter().map(|e| e.0.id()).collect();
                let name = all[i].name().unwrap_or_default();
                is_meant(search, &format!("{} {name} {}", all[i].id, causes.join(" ")))
            })
            .collect();
        let tcp = |i: usize| {
            let budget = budget_of(&all[i]);
            let of_tcp = budget.0.iter().filter(|e| e.0.owner() == Owner::Tcp);
            of_tcp.fold(Nanos::ZERO, |sum, e| sum + e.1)
        };
        match self.lists[2].order {
            0 => {}
            1 => self.exchanges.sort_by_cached_key(|&i| (Reverse(all[i].end - all[i].start), i)),
            2 => self.exchanges.sort_by_cached_key(|&i| (Reverse(tcp(i)), i)),
            _ => self.exchanges.sort_by_cached_key(|&i| (Reverse(all[i].bytes[1]), i)),
        }
    }
}

/// What a search finds a connection by.
fn words(c: &Connection) -> String {
    let mut causes: Vec<&str> = times(c).iter().map(|t| t.0.id()).collect();
    causes.extend(worst(&c.budget).map(|w| w.0.info().title));
    format!("{} {} {} {}", c.id, c.client, c.server, causes.join(" "))
}

/// Whether all words of a search are in a text, whatever their case.
fn is_meant(search: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    search.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// Time of a connection by cause, the longest first.
pub(crate) fn times(c: &Connection) -> Vec<(Cause, Nanos)> {
    let mut all = c.budget.clone();
    all.add_all(&c.gap_budget);
    sorted(all)
}

/// Time of an exchange by cause.
pub(crate) fn budget_of(x: &Exchange) -> Budget {
    let mut all = Budget::default();
    for span in &x.spans {
        all.add(span.cause, span.duration());
    }
    all
}

fn sorted(budget: Budget) -> Vec<(Cause, Nanos)> {
    let mut list = budget.0;
    list.sort_by_key(|e| Reverse(e.1));
    list
}
