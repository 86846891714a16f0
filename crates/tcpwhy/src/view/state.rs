//! Where the user is, and where a key leads.

use tcpwhy_analysis::{Analysis, Budget, Connection, Example, Exchange, Finding};
use tcpwhy_base::{Cause, Class, Nanos};
use tcpwhy_report::Capture;
use tcpwhy_trace::Packet;

/// A key's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    By(isize),
    In,
    Out,
    /// The other list, or the next exchange.
    Tab,
    /// The previous one.
    TabBack,
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
}

/// The whole state.
pub(crate) struct View<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) capture: &'a Capture,
    pub(crate) screen: Screen,
    pub(crate) findings: Vec<&'a Finding>,
    /// Connections, those that lost most to TCP first.
    pub(crate) order: Vec<usize>,
    pub(crate) finding: usize,
    pub(crate) connection: usize,
    pub(crate) exchange: usize,
    /// First line of the ladder in sight.
    pub(crate) scroll: usize,
    /// Lines of the ladder, known once it was drawn.
    pub(crate) lines: usize,
    pub(crate) packets: Option<Vec<Packet>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(analysis: &'a Analysis, capture: &'a Capture) -> View<'a> {
        let mut findings: Vec<&Finding> = analysis.findings.iter().filter(|f| f.occurrences > 0).collect();
        findings.sort_by_key(|f| tcpwhy_report::text::rank(f));
        let mut order: Vec<usize> = (0..analysis.connections.len()).collect();
        order.sort_by_cached_key(|&i| (std::cmp::Reverse(tcp(&analysis.connections[i])), i));
        View {
            analysis,
            capture,
            screen: Screen::Findings,
            findings,
            order,
            finding: 0,
            connection: 0,
            exchange: 0,
            scroll: 0,
            lines: 0,
            packets: None,
        }
    }

    pub(crate) fn current(&self) -> Option<&'a Connection> {
        self.order.get(self.connection).map(|&i| &self.analysis.connections[i])
    }

    pub(crate) fn exchange(&self) -> Option<(&'a Connection, &'a Exchange)> {
        let c = self.current()?;
        Some((c, c.exchanges.get(self.exchange)?))
    }

    /// The ladder is in sight and its packets have not been read.
    pub(crate) fn packets_wanted(&self) -> bool {
        self.screen == Screen::Exchange && self.packets.is_none()
    }

    pub(crate) fn take_packets(&mut self, packets: Vec<Packet>) {
        self.packets = Some(packets);
    }

    /// Does what a key means; `false`: the user leaves.
    pub(crate) fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Quit => return false,
            Step::By(n) => self.by(n),
            Step::Tab => self.tab(1),
            Step::TabBack => self.tab(-1),
            Step::In => self.enter(),
            Step::Out => {
                self.screen = match self.screen {
                    Screen::Exchange => Screen::Connection,
                    Screen::Connection => Screen::Connections,
                    Screen::Connections | Screen::Findings => Screen::Findings,
                };
                self.packets = None;
            }
        }
        true
    }

    fn tab(&mut self, way: isize) {
        self.screen = match self.screen {
            Screen::Findings => Screen::Connections,
            Screen::Connections => Screen::Findings,
            other => {
                // The next exchange, round and round.
                let n = self.current().map_or(0, |c| c.exchanges.len());
                if other == Screen::Exchange && n > 0 {
                    self.exchange = (self.exchange + n).saturating_add_signed(way) % n;
                    (self.scroll, self.packets) = (0, None);
                }
                other
            }
        };
    }

    fn by(&mut self, n: isize) {
        let exchanges = self.current().map_or(0, |c| c.exchanges.len());
        let (at, of) = match self.screen {
            Screen::Findings => (&mut self.finding, self.findings.len()),
            Screen::Connections => (&mut self.connection, self.order.len()),
            Screen::Connection => (&mut self.exchange, exchanges),
            Screen::Exchange => (&mut self.scroll, self.lines),
        };
        *at = at.saturating_add_signed(n).min(of.saturating_sub(1));
        if self.screen == Screen::Connections {
            self.exchange = 0;
        }
    }

    fn enter(&mut self) {
        match self.screen {
            Screen::Findings => {
                // To the example of the finding.
                let Some(f) = self.findings.get(self.finding) else { return };
                let Example { connection, exchange, .. } = f.example;
                let found = self.order.iter().position(|&i| self.analysis.connections[i].id == connection);
                self.connection = found.unwrap_or(0);
                let c = self.current();
                let at = c.and_then(|c| c.exchanges.iter().position(|x| x.id == exchange));
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
    list.sort_by_key(|e| std::cmp::Reverse(e.1));
    list
}

/// The part that is TCP's.
pub(crate) fn tcp(c: &Connection) -> Nanos {
    c.budget.of_class(Class::Tcp) + c.gap_budget.of_class(Class::Tcp)
}
