//! What a person could change, as a change of the question.

use crate::ask::Question;
use crate::profile::Congestion;
use crate::scenario::Host;
use tcpwhy_base::{Cork, FixId, Nanos, Step, Turn, What};

/// A change that can be tried.
#[derive(Clone, Debug)]
pub struct Change {
    /// The fix of the table.
    pub fix: FixId,
    /// Where: `client`, `server`, `both`, `path`.
    pub place: &'static str,
    /// In a few words, with figures.
    pub what: String,
    /// The question with the change.
    pub question: Question,
    /// It only makes the link or the distance better: a comparison, no setting.
    pub comparison: bool,
}

/// A change and what it does.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The change.
    pub change: Change,
    /// Time with it.
    pub predicted: Nanos,
    /// Time without it less time with it: below zero, it harms.
    pub gain: Nanos,
}

impl Change {
    /// Runs the question with the change; none if it does not come to an end within the limits of a run.
    /// `base` is the time without it.
    pub fn ask(self, base: Nanos) -> Option<Tried> {
        let answer = self.question.ask().ok().filter(|a| a.complete)?;
        Some(Tried { predicted: answer.total, gain: base - answer.total, change: self })
    }
}

/// All changes tried, best first, and the best of them together.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// Each alone, best first.
    pub each: Vec<Tried>,
    /// Those that together take the least time, and that time; empty if none helps or one does it all.
    pub together: Option<(Vec<usize>, Nanos)>,
}

const BOTH: [&[usize]; 3] = [&[0], &[1], &[0, 1]];
const PLACES: [&str; 3] = ["client", "server", "both"];

/// A larger MTU that local networks and clouds offer.
const JUMBO: u64 = 9000;
/// Largest initial window that is still reasonable, segments.
pub const MOST_INITCWND: u64 = 100;

fn pieces(steps: &[Step]) -> usize {
    steps.iter().filter(|s| matches!(s, Step::Write(_))).count()
}

fn in_one(steps: &mut Vec<Step>) {
    let bytes = Turn::bytes(steps);
    let pause = steps.iter().fold(Nanos::ZERO, |t, s| if let Step::Pause(p) = s { t + *p } else { t });
    steps.clear();
    if pause > Nanos::ZERO {
        steps.push(Step::Pause(pause));
    }
    if bytes > 0 {
        steps.push(Step::Write(bytes));
    }
}

impl Question {
    /// The changes that make sense here; those that change nothing are left out.
    pub fn changes(&self) -> Vec<Change> {
        let mut out = Vec::new();
        let hosts = &self.scenario.hosts;
        let mut sides = |fix,
                         what: &dyn Fn(usize) -> String,
                         wanted: &dyn Fn(usize) -> bool,
                         change: &dyn Fn(&mut Question, usize)| {
            for (places, name) in BOTH.iter().zip(PLACES) {
                if places.iter().all(|&i| wanted(i)) {
                    let mut question = self.clone();
                    places.iter().for_each(|&i| change(&mut question, i));
                    let what = what(places[places.len() - 1]);
                    out.push(Change { fix, place: name, what, question, comparison: false });
                }
            }
        };
        let says = |text: &str| {
            let text = text.to_owned();
            move |_: usize| text.clone()
        };
        let turns = &self.scenario.workload.turns;
        let split = |i: usize| {
            turns.iter().any(|t| pieces(if i == 0 { &t.request } else { &t.response }) > 1)
                || hosts[i].write_chunk.is_some()
        };
        sides(FixId::Nodelay, &says("TCP_NODELAY"), &|i| !hosts[i].nodelay, &|q, i| {
            q.scenario.hosts[i].nodelay = true
        });
        sides(FixId::OneWrite, &says("each message in one write"), &split, &|q, i| {
            q.scenario.hosts[i].write_chunk = None;
            for t in &mut q.scenario.workload.turns {
                in_one(if i == 0 { &mut t.request } else { &mut t.response });
            }
        });
        sides(FixId::Uncork, &says("no TCP_CORK left set"), &|i| hosts[i].cork == Cork::Always, &|q, i| {
            q.scenario.hosts[i].cork = Cork::Never;
        });
        let bulk = |i: usize, h: &Host| {
            self.most_bytes(i) > u64::from(h.initcwnd.unwrap_or(h.stack.profile.initcwnd)) * self.mss()
        };
        let segments = |i: usize| self.most_segments(i).min(MOST_INITCWND) as u32;
        sides(
            FixId::Initcwnd,
            &|i| format!("initial window of {} segments (ip route … initcwnd)", segments(i)),
            &|i| bulk(i, &hosts[i]),
            &|q, i| q.scenario.hosts[i].initcwnd = Some(segments(i)),
        );
        let restarts = |i: usize| hosts[i].stack.idle_restart.unwrap_or(hosts[i].stack.profile.idle_restart);
        let idles = turns.iter().any(|t| t.before > Nanos::ZERO || t.think > Nanos::ZERO);
        sides(
            FixId::NoIdleRestart,
            &says("tcp_slow_start_after_idle=0"),
            &|i| restarts(i) && idles && bulk(i, &hosts[i]),
            &|q, i| {
                q.scenario.hosts[i].stack.idle_restart = Some(false);
            },
        );
        sides(FixId::UnsetSndbuf, &says("SO_SNDBUF not set"), &|i| hosts[i].sndbuf.is_some(), &|q, i| {
            q.scenario.hosts[i].sndbuf = None;
        });
        sides(FixId::UnsetRcvbuf, &says("SO_RCVBUF not set"), &|i| hosts[i].rcvbuf.is_some(), &|q, i| {
            q.scenario.hosts[i].rcvbuf = None;
        });
        let lossy =
            self.scenario.links.iter().any(|l| l.loss_ppm > 0 || !l.drops.is_empty() || l.rate.is_some());
        let not_bbr = |i: usize| {
            hosts[i].stack.congestion.unwrap_or(hosts[i].stack.profile.congestion) != Congestion::Bbr
        };
        sides(
            FixId::CongestionControl,
            &says("BBR instead of cubic"),
            &|i| lossy && not_bbr(i) && bulk(i, &hosts[i]),
            &|q, i| {
                q.scenario.hosts[i].stack.congestion = Some(Congestion::Bbr);
            },
        );
        self.path_changes(&mut out);
        out
    }

    fn path_changes(&self, out: &mut Vec<Change>) {
        let mut path = |fix, what: String, comparison, change: &dyn Fn(&mut Question)| {
            let mut question = self.clone();
            change(&mut question);
            out.push(Change { fix, place: "path", what, question, comparison });
        };
        let s = &self.scenario;
        if s.mtu < JUMBO {
            path(FixId::LargerMtu, format!("an MTU of {JUMBO} instead of {}", s.mtu), false, &|q| {
                q.scenario.mtu = JUMBO
            });
        }
        if s.links.iter().any(|l| l.loss_ppm > 0 || !l.drops.is_empty()) {
            path(FixId::FixLoss, "no losses on the path".into(), false, &|q| {
                for l in &mut q.scenario.links {
                    (l.loss_ppm, l.drops) = (0, Vec::new());
                }
            });
        }
        if s.workload.reconnect_every > 0 && s.workload.requests > 1 {
            path(FixId::ReuseConnections, "one connection for all requests".into(), false, &|q| {
                q.scenario.workload.reconnect_every = 0;
            });
        } else if self.skip == 0 && s.connections == 1 && s.workload.requests == 1 {
            path(FixId::ReuseConnections, "a connection that is kept and in use".into(), false, &|q| {
                q.warm(None)
            });
        }
        if s.workload.requests_each() > 1 && self.skip == 0 && !s.workload.pipeline {
            path(FixId::FewerRoundTrips, "all requests at once (pipelined or batched)".into(), false, &|q| {
                q.scenario.workload.pipeline = true;
                q.scenario.workload.turns.iter_mut().for_each(|t| t.before = Nanos::ZERO);
            });
        }
        if s.rtt() > Nanos::millis(1) {
            path(FixId::CloserServer, "half the round trip".into(), true, &|q| {
                q.scenario.links.iter_mut().for_each(|l| l.delay = l.delay.part(2));
            });
        }
        if s.links.iter().any(|l| l.rate.is_some()) {
            path(FixId::FasterLink, "twice the bandwidth".into(), true, &|q| {
                for l in &mut q.scenario.links {
                    l.rate = l.rate.map(|r| r.saturating_mul(2));
                }
            });
        }
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> u64 {
        self.scenario.mtu.saturating_sub(crate::packet::HEADERS + crate::packet::TIMESTAMPS).max(8)
    }

    fn most_bytes(&self, end: usize) -> u64 {
        self.messages(end).map(Turn::bytes).max().unwrap_or(0)
    }

    /// Segments of the largest message: the window counts each, and a write that ends short does not fill its last.
    fn most_segments(&self, end: usize) -> u64 {
        let mss = self.mss();
        let of = |step: &Step| if let Step::Write(n) = step { n.div_ceil(mss) } else { 0 };
        self.messages(end).map(|steps| steps.iter().map(of).sum()).max().unwrap_or(0)
    }

    fn messages(&self, end: usize) -> impl Iterator<Item = &[Step]> {
        self.scenario.workload.turns.iter().map(move |t| if end == 0 { &t.request[..] } else { &t.response })
    }

    /// Asks for the request on a connection that has served it before, `idle` ago. Three before are enough for the
    /// windows to have opened and for ping-pong mode to be what it will be.
    pub fn warm(&mut self, idle: Option<Nanos>) {
        const BEFORE: u32 = 3;
        let w = &mut self.scenario.workload;
        let fixed = w.repeat_from.min(w.turns.len());
        let Some(turn) = w.kept.clone().or_else(|| w.turns.get(fixed).cloned()) else { return };
        let requests = w.requests;
        // What happens at a place of a stream happens that much later in it: pauses of a reader, and losses.
        let earlier =
            [&turn.request, &turn.response].map(|m| Turn::bytes(m).saturating_mul(u64::from(BEFORE)));
        let opening = [0, 1].map(|end| {
            let part = |t: &Turn| Turn::bytes(if end == 0 { &t.request } else { &t.response });
            w.turns[..fixed].iter().map(part).fold(0, u64::saturating_add)
        });
        for end in 0..2 {
            let later =
                |at: &mut u64| *at = at.saturating_add(if *at >= opening[end] { earlier[end] } else { 0 });
            self.scenario.hosts[1 - end].read_pauses.iter_mut().for_each(|p| later(&mut p.0));
            for drop in &mut self.scenario.links[end].drops {
                if let What::Seq { at, .. } = &mut drop.what {
                    later(at);
                }
            }
        }
        let w = &mut self.scenario.workload;
        let mut turns: Vec<Turn> = w.turns[..fixed].to_vec();
        turns.extend(std::iter::repeat_n(turn.clone(), BEFORE as usize));
        turns.push(Turn { before: idle.unwrap_or(turn.before), ..turn.clone() });
        turns.push(turn);
        // From the measured turn on, the request itself is repeated.
        w.repeat_from = turns.len() - 1;
        w.turns = turns;
        w.requests = requests.saturating_sub(1);
        if w.requests == 0 {
            w.turns.pop();
            w.repeat_from = w.turns.len() - 1;
            w.requests = 1;
        }
        w.reconnect_every = 0;
        self.skip = fixed as u32 + BEFORE;
    }

    /// Ranks changes that were tried, and tries the best together; not where losses are drawn, as one run of
    /// them would be an accident.
    pub fn rank(&self, base: Nanos, mut each: Vec<Tried>) -> Ranking {
        each.sort_by(|a, b| b.gain.cmp(&a.gain).then(a.change.comparison.cmp(&b.change.comparison)));
        let together = if self.is_random() { None } else { together(&each, base) };
        Ranking { each, together }
    }
}

/// No more changes than this are made together.
const MOST_TOGETHER: usize = 6;

/// Makes one change after the other, best first, and keeps each that is worth it. `candidates`: what helps by
/// itself, with the time it leaves; `time`: what a question takes, if that can be told; `worth`: from the
/// time so far and the time with one more. Gives which were kept, and the time with all of them.
pub fn combine(
    candidates: &[(Nanos, &Change)],
    worth: impl Fn(Nanos, Nanos) -> bool,
    mut time: impl FnMut(&Question) -> Option<Nanos>,
) -> Option<(Vec<usize>, Nanos)> {
    let &(mut best, first) = candidates.first()?;
    let (mut chosen, mut question) = (vec![0], first.question.clone());
    for (i, (_, change)) in candidates.iter().enumerate().skip(1) {
        if chosen.len() >= MOST_TOGETHER {
            break;
        }
        let key = (change.fix, change.place);
        let Some(next) = question.changes().into_iter().find(|c| (c.fix, c.place) == key) else { continue };
        let Some(now) = time(&next.question) else { continue };
        if worth(best, now) {
            (question, best) = (next.question, now);
            chosen.push(i);
        }
    }
    Some((chosen, best))
}

/// Of changes that are ranked: which make the best combination, if there is one. Each takes 2 % of the whole off.
fn together(each: &[Tried], base: Nanos) -> Option<(Vec<usize>, Nanos)> {
    let of_a_person = each.iter().enumerate().filter(|(_, t)| !t.change.comparison);
    let ranked: Vec<(usize, &Tried)> = of_a_person.take(2 * MOST_TOGETHER).collect();
    ranked.first().filter(|(_, best)| best.gain.0 > base.0 / 50)?;
    let candidates: Vec<(Nanos, &Change)> = ranked.iter().map(|(_, t)| (t.predicted, &t.change)).collect();
    let total = |q: &Question| q.ask().ok().filter(|a| a.complete).map(|a| a.total);
    let (chosen, time) = combine(&candidates, |best, now| now < best - base.part(50), total)?;
    (chosen.len() > 1).then(|| (chosen.iter().map(|&c| ranked[c].0).collect(), time))
}

/// What is often advised whatever the cause: of these it is said where they do nothing.
pub const POPULAR: [FixId; 8] = [
    FixId::Nodelay,
    FixId::ReuseConnections,
    FixId::UnsetSndbuf,
    FixId::UnsetRcvbuf,
    FixId::Initcwnd,
    FixId::NoIdleRestart,
    FixId::LargerMtu,
    FixId::CongestionControl,
];

/// Changes that are often advised and do nothing here: those tried without a gain of 1 %, and those that could not do
/// anything about such a wait.
pub fn useless(each: &[Tried], base: Nanos) -> impl Iterator<Item = &Tried> {
    each.iter().filter(move |t| t.gain.0 < base.0 / 100 && POPULAR.contains(&t.change.fix))
}
