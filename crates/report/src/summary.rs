use tcpwhy_analysis::{Analysis, Budget, Connection, Finding};
use tcpwhy_base::{Cause, Class, Kind, Nanos};

/// Below this share of TCP the verdict is that nothing is wrong with it.
pub(crate) const NOTHING_WRONG: f64 = 0.05;

/// How the time of a capture divides, for verdicts and thresholds.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Setup, exchanges, and gaps before the last byte, over all connections.
    pub total: Nanos,
    /// The part of it that is TCP or the host, and avoidable.
    pub tcp: Nanos,
    /// The largest part that is not, if there is any.
    pub dominant: Option<(Cause, Nanos)>,
}

impl Summary {
    /// Of a whole analysis.
    pub fn new(analysis: &Analysis) -> Summary {
        let total = analysis.totals.measured;
        let times = span_times(analysis);
        let tcp = times.iter().filter(|t| t.0.class() == Class::Tcp).fold(Nanos::ZERO, |sum, t| sum + t.1);
        let rest = times.iter().filter(|t| t.0.class() != Class::Tcp);
        let dominant = rest.copied().max_by_key(|t| t.1).filter(|t| t.1 > Nanos::ZERO);
        Summary { total, tcp, dominant }
    }

    /// `time` as a share of the total, 0 to 1.
    pub fn share(&self, time: Nanos) -> f64 {
        if self.total.0 <= 0 { 0.0 } else { (time.0 as f64 / self.total.0 as f64).clamp(0.0, 1.0) }
    }

    /// The time of one cause; for a finding without spans, its cost.
    pub fn time(&self, analysis: &Analysis, cause: Cause) -> Nanos {
        match analysis.findings.iter().filter(|f| f.cause == cause).map(Finding::waited).reduce(|a, b| a + b)
        {
            Some(lost) => lost,
            None if cause.info().kind == Kind::Finding => Nanos::ZERO,
            None => analysis.totals.budget.get(cause),
        }
    }
}

/// Time by cause, the longest first; causes without time are absent.
pub(crate) fn by_cause(analysis: &Analysis) -> Vec<(Cause, Nanos)> {
    let mut times = span_times(analysis);
    times.retain(|t| t.1 > Nanos::ZERO);
    times.sort_by_key(|t| (std::cmp::Reverse(t.1), t.0));
    times
}

/// Time by cause: what the findings say where there is one, else setup and exchanges.
fn span_times(analysis: &Analysis) -> Vec<(Cause, Nanos)> {
    let spans = analysis.findings.iter().filter(|f| f.cause.info().kind == Kind::Span);
    let mut times: Vec<(Cause, Nanos)> = Vec::new();
    for f in spans {
        match times.iter_mut().find(|t| t.0 == f.cause) {
            Some(t) => t.1 += f.waited(),
            None => times.push((f.cause, f.waited())),
        }
    }
    for &(cause, time) in &analysis.totals.budget.0 {
        if !times.iter().any(|t| t.0 == cause) {
            times.push((cause, time));
        }
    }
    times
}

/// Time of class T in setup, exchanges and gaps.
pub(crate) fn tcp_time(c: &Connection) -> Nanos {
    c.budget.of_class(Class::Tcp) + c.gap_budget.of_class(Class::Tcp)
}

/// The cause to name: the worst of TCP if it holds 5 %, else the largest.
pub fn worst(budget: &Budget) -> Option<(Cause, Nanos)> {
    let total = budget.total();
    let tcp = budget.0.iter().filter(|e| e.0.class() == Class::Tcp).max_by_key(|e| e.1);
    let any = budget.0.iter().max_by_key(|e| e.1);
    tcp.filter(|e| e.1.0 as f64 >= NOTHING_WRONG * total.0 as f64).or(any).copied()
}
