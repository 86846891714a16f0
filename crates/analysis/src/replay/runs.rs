//! The runs of replays: each example and each change of it is run once, however many findings share it, and
//! several at a time.

use super::extract::{Extract, extract_of};
use super::large::{Rest, Size};
use super::reader::Over;
use super::reuse::Reuse;
use super::spent::Spent;
use crate::result::{Connection, Together};
use std::thread;
use tcpwhy_base::{FixId, Nanos, Turn};
use tcpwhy_model::{Change, Question, combine};

/// Events that one explanation may spend on replays: some tenths of a second.
const EVENTS: u64 = 400_000;
/// Of what is left, one example that is too large for all of it takes one of so many parts at least, and at most.
const LEAST: u64 = 8;
const MOST: u64 = 2;
/// So many times what the path and its buffers hold are replayed at least: slow start takes twice that (each
/// round trip sends twice what the one before did), a window twice as large, which a change may bring, twice
/// as much, and as long again is measured.
const SETTLED: u64 = 8;
/// Beside its changes an example is run as it was seen, up to four times, and some of the changes together.
const OTHERS: u64 = 5;
/// A buffer that does not show exactly is corrected so often.
const FITS: usize = 3;
/// Changes that are tried together.
const TOGETHER: usize = 5;
/// A run takes milliseconds: more threads are not worth their start.
const THREADS: usize = 4;

/// Every replay of an explanation, within the events that it may spend.
pub(super) struct Runs<'a> {
    reuse: Reuse<'a>,
    /// Changes that are not combined with others.
    refuted: Vec<FixId>,
    left: u64,
    examples: Vec<Example>,
}

/// What can be replayed of a connection.
struct Example {
    connection: u32,
    /// The exchanges around the one in question, and that one, where not all of them are replayed.
    around: (u32, u32),
    only: Option<u32>,
    /// None where the model cannot run it within the budget.
    fitted: Option<Fitted>,
}

/// An example as it was seen, and its changes.
pub(super) struct Fitted {
    pub(super) x: Extract,
    rest: Option<Rest>,
    pub(super) before: Spent,
    changes: Vec<Tried>,
    refuted: Vec<FixId>,
    /// The best changes together, once that has been asked.
    together: Option<Option<Together>>,
}

/// A change of an example.
struct Tried {
    change: Change,
    /// What came out, once it was tried.
    found: Option<Option<Spent>>,
}

impl Runs<'_> {
    /// None was run yet; a connection that is kept lies idle as `reuse` says, and what is `refuted` is not
    /// proposed together with others.
    pub(super) fn new(reuse: Reuse<'_>, refuted: Vec<FixId>) -> Runs<'_> {
        Runs { reuse, refuted, left: EVENTS, examples: Vec::new() }
    }

    /// The example around that exchange, and the events that are left; none where it cannot be replayed.
    pub(super) fn example(&mut self, c: &Connection, exchange: u32) -> Option<(&mut Fitted, &mut u64)> {
        let idle = self.reuse.idle(c);
        let of = |size| {
            let (mut x, rest) = extract_of(c, exchange, Over::SamePath, size).ok()?;
            let w = &mut x.question.scenario.workload;
            w.kept = w.turns.get(w.repeat_from).map(|turn| Turn { before: idle, ..turn.clone() });
            Some((x, rest))
        };
        let whole = of(Size::WHOLE)?;
        let around = whole.0.exchanges;
        let is_it = |e: &Example| {
            (e.connection, e.around) == (c.id, around) && e.only.is_none_or(|only| only == exchange)
        };
        let at = self.examples.iter().position(is_it).unwrap_or_else(|| {
            let (extracted, only) = match self.fits(&whole.0) {
                true => (Some(whole), None),
                false => (self.part(c, of), Some(exchange)),
            };
            let mut fitted = extracted.and_then(|(x, rest)| Fitted::new(x, rest, &mut self.left));
            if let Some(fitted) = &mut fitted {
                fitted.refuted.clone_from(&self.refuted);
            }
            self.examples.push(Example { connection: c.id, around, only, fitted });
            self.examples.len() - 1
        });
        Some((self.examples.get_mut(at)?.fitted.as_mut()?, &mut self.left))
    }

    /// All of its changes can be tried.
    fn fits(&self, x: &Extract) -> bool {
        x.question.events_expected().saturating_mul(runs(x)) <= self.left
    }

    /// The exchange in question alone, or its beginning.
    fn part(
        &self,
        c: &Connection,
        of: impl Fn(Size) -> Option<(Extract, Option<Rest>)>,
    ) -> Option<(Extract, Option<Rest>)> {
        let one = of(Size::ONE)?;
        let Extract { question, .. } = &one.0;
        if self.fits(&one.0) {
            return Some(one);
        }
        let share = |part| question.bytes_of(self.left / part / runs(&one.0)) / question.turns().max(1);
        let most = settled(c).clamp(share(LEAST), share(MOST).max(share(LEAST)));
        of(Size::of(most)).filter(|(x, _)| x.question.events_expected() <= self.left)
    }
}

/// After so many bytes a large transfer has found its pace.
fn settled(c: &Connection) -> u64 {
    let flight = c.ends.iter().map(|e| e.max_flight).max().unwrap_or(0);
    let bits = |bps: u64, rtt: Nanos| u128::from(bps) * rtt.0.max(0) as u128 / 1_000_000_000;
    let path = c.path.bandwidth_bps.zip(c.path.rtt).map_or(0, |(bps, rtt)| (bits(bps, rtt) / 8) as u64);
    flight.max(path).saturating_mul(SETTLED)
}

/// So often an example is run.
fn runs(x: &Extract) -> u64 {
    x.question.changes().len() as u64 + OTHERS
}

impl Fitted {
    /// The question, corrected where a buffer that does not show exactly makes the time.
    fn new(mut x: Extract, rest: Option<Rest>, left: &mut u64) -> Option<Fitted> {
        let ask = |question: &Question, left: &mut u64| one(question, x.end, rest.as_ref(), left);
        let mut before = ask(&x.question, left)?;
        let off = |spent: &Spent| (spent.time - x.observed).0.abs();
        let (mut tried, mut time) = (x.question.clone(), before.time);
        for _ in 0..FITS {
            let ratio = time.0 as f64 / x.observed.0.max(1) as f64;
            let fits = tried.scenario.hosts.iter().any(|h| h.sndbuf.is_some() || h.rcvbuf.is_some());
            if !fits || (0.97..1.03).contains(&ratio) || !(0.3..3.0).contains(&ratio) {
                break;
            }
            for h in &mut tried.scenario.hosts {
                for buffer in [&mut h.sndbuf, &mut h.rcvbuf].into_iter().flatten() {
                    *buffer = ((*buffer as f64 * ratio) as u64).max(2304);
                }
            }
            let found = ask(&tried, left)?;
            time = found.time;
            // Buffers are filled by whole packets: a little less may hold as much.
            if off(&found) < off(&before) {
                (x.question, before) = (tried.clone(), found);
            } else if off(&found) > off(&before) + x.observed.0 / 100 {
                break;
            }
        }
        let changes = x.question.changes().into_iter().map(|change| Tried { change, found: None }).collect();
        Some(Fitted { x, rest, before, changes, refuted: Vec::new(), together: None })
    }

    /// Tries every change that is no comparison, or that is wanted, and was not tried before.
    pub(super) fn try_all(&mut self, wanted: impl Fn(&Change) -> bool, left: &mut u64) {
        let new = |t: &&mut Tried| t.found.is_none() && (!t.change.comparison || wanted(&t.change));
        let mut new: Vec<&mut Tried> = self.changes.iter_mut().filter(new).collect();
        let questions: Vec<&Question> = new.iter().map(|t| &t.change.question).collect();
        let found = all(&questions, self.x.end, self.rest.as_ref(), left);
        new.iter_mut().zip(found).for_each(|(tried, found)| tried.found = Some(found));
    }

    /// What came of each that could be run.
    pub(super) fn tried(&self, wanted: impl Fn(&Change) -> bool) -> impl Iterator<Item = (&Change, &Spent)> {
        let asked = move |t: &&Tried| !t.change.comparison || wanted(&t.change);
        self.changes.iter().filter(asked).filter_map(|t| Some((&t.change, t.found.as_ref()?.as_ref()?)))
    }

    /// The best changes together. The first that cannot be replayed within the budget is the last that is tried.
    pub(super) fn together(&mut self, left: &mut u64) -> Option<Together> {
        if let Some(known) = &self.together {
            return known.clone();
        }
        let found = self.combined(left);
        self.together = Some(found.clone());
        found
    }

    fn combined(&self, left: &mut u64) -> Option<Together> {
        // Pipelining changes the application, so it is not combined with settings.
        let setting = |t: &&Tried| {
            let fix = t.change.fix;
            !t.change.comparison && fix != FixId::FewerRoundTrips && !self.refuted.contains(&fix)
        };
        let mut helping: Vec<(Nanos, &Change)> = Vec::new();
        for t in self.changes.iter().filter(setting) {
            if let Some(Some(spent)) = &t.found
                && self.helps(spent)
            {
                helping.push((spent.time, &t.change));
            }
        }
        helping.sort_by_key(|h| h.0);
        helping.truncate(TOGETHER);
        // An example is a small part of a finding: what takes 2 % of what is left counts.
        let worth = |best: Nanos, now: Nanos| now.times(50) < best.times(49);
        let mut spent = false;
        let time = |question: &Question| {
            let found = if spent { None } else { one(question, self.x.end, self.rest.as_ref(), left) };
            spent = found.is_none();
            Some(found?.time)
        };
        let (chosen, predicted) = combine(&helping, worth, time)?;
        let changes: Vec<_> = chosen.iter().map(|&i| (helping[i].1.fix, helping[i].1.place)).collect();
        // One change at both ends is a combination, too: fixes are listed by end.
        let several = changes.len() > 1 || changes.first().is_some_and(|c| c.1 == "both");
        several.then_some(Together { changes, predicted })
    }

    /// It gains a fiftieth of the whole.
    pub(super) fn helps(&self, with: &Spent) -> bool {
        (self.before.time - with.time).times(50) >= self.before.time
    }
}

/// One run. None if it costs too much.
fn one(question: &Question, end: u8, rest: Option<&Rest>, left: &mut u64) -> Option<Spent> {
    let (found, events) = run(question, end, rest, *left);
    *left = left.saturating_sub(events);
    found
}

/// Several, as if one were run after the other.
fn all(questions: &[&Question], end: u8, rest: Option<&Rest>, left: &mut u64) -> Vec<Option<Spent>> {
    let threads = match questions.len() {
        0 | 1 => 1,
        _ => thread::available_parallelism().map_or(1, |n| n.get().min(THREADS)),
    };
    let mut out = Vec::with_capacity(questions.len());
    for some in questions.chunks(threads) {
        let most = *left;
        let found: Vec<(Option<Spent>, u64)> = thread::scope(|scope| {
            let (first, others) = some.split_first()?;
            let others: Vec<_> =
                others.iter().map(|q| scope.spawn(move || run(q, end, rest, most))).collect();
            let first = run(first, end, rest, most);
            // One that panicked has found nothing.
            let others = others.into_iter().map(|other| other.join().unwrap_or((None, 0)));
            Some([first].into_iter().chain(others).collect())
        })
        .unwrap_or_default();
        for (found, events) in found {
            // What the others before it took is no more there for it.
            out.push(found.filter(|_| events <= *left));
            *left = left.saturating_sub(events);
        }
    }
    out
}

/// Runs it within so many events, and says how many it took.
fn run(question: &Question, end: u8, rest: Option<&Rest>, most: u64) -> (Option<Spent>, u64) {
    let question = Question { max_events: most, ..question.clone() };
    let Ok(answer) = question.ask() else { return (None, 0) };
    let events = answer.outcome.events;
    if !answer.complete {
        return (None, events);
    }
    let stories = question.stories(&answer, end);
    let mut spent = Spent::of(&stories);
    let whole = rest.is_none_or(|rest| rest.goes_on(&answer.outcome, &stories, &mut spent).is_some());
    (whole.then_some(spent), events)
}
