//! A connection at the client's tap, with what the tap beside the server has seen of it.

use super::way::Way;
use crate::attribute::{HOSTS, least_beyond};
use crate::release::Wait;
use crate::rest::{Near, at_rest};
use crate::result::{Lost, TwoTaps};
use crate::step::Step;
use crate::track::{CwndState, Left, Repair, Since, SynsThere};
use std::collections::VecDeque;
use tcpwhy_base::{End, Ends, Nanos, Segment, Seq};

/// Of IPv4 and TCP, without options, bytes (RFC 791, 3.1; RFC 9293, 3.1).
const HEADER: u32 = 40;

/// Steps whose segment has not arrived yet; of more than these the oldest are forgotten.
const MOST_TOLD: usize = 4_096;

/// The segment that ends a step, and since when it lasts.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    pub(crate) sender: End,
    pub(crate) segment: &'a Segment,
    pub(crate) time: Nanos,
    pub(crate) since: Since,
    /// The frame of the segment before.
    pub(crate) frame: u64,
    /// This tap's word on answers of the server that may be corked (rule 115).
    pub(crate) ticks: Option<u16>,
}

/// A step of the server as its own tap judged it.
#[derive(Clone, Debug)]
pub(crate) struct ToldStep {
    /// The segment that ended it.
    seq: Seq,
    stamp: Option<u32>,
    at: Nanos,
    step: Step,
    /// The step before it, where the wait had two reasons.
    before: Option<Step>,
    /// The server repaired a loss by then that was none: all of it had arrived.
    needless: bool,
    /// Its tap's word on answers that may be corked by then.
    ticks: Option<u16>,
}

at_rest! { ToldStep { seq, stamp as Near, at, step, before, needless, ticks } }

impl ToldStep {
    /// The step that a segment of the server ended.
    pub(crate) fn new(ended: &Until<'_>, step: Step, before: Option<Step>) -> ToldStep {
        let &Until { segment, time: at, ticks, .. } = ended;
        ToldStep { seq: segment.seq, stamp: stamp(segment), at, step, before, needless: false, ticks }
    }

    /// It ended what the client had waited for an answer.
    fn answers(&self) -> bool {
        self.step.is_turn() || self.before.is_some_and(|b| b.is_turn())
    }
}

fn stamp(segment: &Segment) -> Option<u32> {
    segment.options.timestamps.map(|t| t.0)
}

/// What the tap at the server has seen of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Across {
    told: VecDeque<ToldStep>,
    /// The steps before the last one that [`Across::steps_until`] gave.
    lead: Vec<Step>,
    ways: Ends<Way>,
    /// The other tap has seen something of it.
    heard: bool,
    /// What the server repairs was lost indeed; and so was something before.
    repairs: bool,
    repaired: bool,
    /// How the server repaired what the last of its steps belongs to.
    kind: Option<Repair>,
    /// SYNs and SYN-ACKs that passed the server's tap.
    syns: u32,
    syn_acks: u32,
    /// Payload that the client sent since the server last spoke; and the server has spoken since.
    asked: u32,
    answered: bool,
    /// The turn that was late the least for each of its bytes: for how long, and how many.
    least: Option<(Nanos, u32)>,
    /// What the server's tap says of answers that may be corked (rule 115).
    ticks: Option<u16>,
}

at_rest! {
    Across { told, lead, ways, heard, repairs, repaired, kind, syns, syn_acks, asked, answered, least, ticks }
}

impl Default for Across {
    fn default() -> Across {
        Across {
            told: VecDeque::new(),
            lead: Vec::new(),
            ways: Ends::of(Way::new),
            heard: false,
            repairs: false,
            repaired: false,
            kind: None,
            syns: 0,
            syn_acks: 0,
            asked: 0,
            answered: false,
            least: None,
            ticks: None,
        }
    }
}

impl Across {
    /// A packet of `s` passed the client's tap. Gives when it left, if it is data of the server.
    pub(crate) fn passes_here(&mut self, s: End, segment: &Segment) -> Option<Left> {
        match s {
            End::Client => self.ways.client.leaves(segment, self.heard),
            End::Server => self.ways.server.arrives(segment),
        }
        match s {
            _ if segment.len == 0 => {}
            End::Client => {
                self.asked = if self.answered { segment.len } else { self.asked.saturating_add(segment.len) };
                self.answered = false;
            }
            End::Server => self.answered = true,
        }
        let (at, queued) =
            self.ways.server.left_at(segment.time).filter(|_| s == End::Server && segment.len > 0)?;
        Some(Left { at, queued, tick: Nanos::ZERO })
    }

    /// A packet of `s` passed the server's tap, and this is what that tap made of it.
    pub(crate) fn passes_there(&mut self, s: End, segment: &Segment, told: Vec<ToldStep>) {
        self.heard = true;
        if told.iter().any(|t| t.step.is_loss()) {
            self.repairs = self.ways.server.lacks(segment);
            self.repaired |= self.repairs;
        }
        match s {
            End::Client => self.ways.client.arrives(segment),
            End::Server => self.ways.server.leaves(segment, true),
        }
        if segment.flags.syn() {
            match s {
                End::Client => self.syns += 1,
                End::Server => self.syn_acks += 1,
            }
        }
        for mut step in told {
            step.needless = !self.repairs && (step.step.is_loss() || step.step.loss.is_some());
            if self.told.len() >= MOST_TOLD {
                self.told.pop_front();
            }
            self.told.push_back(step);
        }
    }

    /// What the server's tap saw of the handshake until now.
    pub(crate) fn syns_there(&self) -> Option<SynsThere> {
        self.heard.then_some(SynsThere { arrived: self.syns, answered: self.syn_acks })
    }

    /// The same, but what the client's tap sees itself of a loss stands: from the hole to its repair it is
    /// the loss's. `own` is that tap's word.
    pub(crate) fn settle(&mut self, until: &Until<'_>, own: &Step) -> Option<Step> {
        let mut told = self.steps_until(until)?;
        if !self.repaired {
            // A window that a needless repair made smaller is made as large as it was (RFC 3708, `tcp_try_undo_dsack`).
            for step in self.lead.iter_mut().chain([&mut told]).filter(|s| is_after_loss(s)) {
                step.goes_by(own);
            }
        }
        let hole = !own.is_turn() && (own.is_loss() || own.loss.is_some());
        if !hole && self.is_within_recovery(&told) {
            self.lead.clear();
            return Some(*own);
        }
        if !hole {
            if let Some(turn) = self.lead.iter_mut().find(|s| s.is_turn()) {
                turn.loses_as(own);
                return Some(told);
            }
            if told.is_turn() {
                told.loses_as(own);
            }
            return Some(told);
        }
        self.lead.clear();
        let mut own = *own;
        if let (true, Some(kind)) = (own.is_loss(), self.kind) {
            own.rename_loss(kind);
        }
        Some(own)
    }

    /// While a loss is repaired its sender lets segments go by what is lost and acknowledged (RFC 6937), of
    /// which its tap knows no more than that: what is no wait for an ACK there need not be one for the
    /// application. The hole is filled by now, and the client's tap sees which ACKs they came with.
    fn is_within_recovery(&self, told: &Step) -> bool {
        let pauses = told.pause().is_some() && self.lead.iter().all(|s| !s.is_turn());
        self.kind.is_some() && pauses
    }

    /// The steps of the server up to this segment, which came at `t`, as they show at the client: each ends
    /// when what ended it would have arrived on the same way. Gives the last of them; [`Across::take_lead`]
    /// has those before. `None`: the server's tap does not know.
    fn steps_until(&mut self, ended: &Until<'_>) -> Option<Step> {
        let Until { segment, since, time: t, frame, .. } = *ended;
        self.lead.clear();
        let sent = |w: &ToldStep| w.seq == segment.seq && w.stamp == stamp(segment) && w.at <= t;
        let last = self.told.iter().rposition(sent)?;
        let (shift, by) = (t - self.told[last].at, &self.told[last].step);
        self.kind = by.repair().or(by.loss.map(|loss| loss.0));
        self.ticks = self.told[last].ticks;
        let answers = since.speaker == End::Client;
        let first = if answers { self.told.range(..=last).rposition(ToldStep::answers)? } else { 0 };
        let mut at = since.time;
        let needless = self.told.range(first..=last).any(|w| w.needless);
        let turns = self.told.range(first..=last).filter(|w| w.answers()).count();
        for (i, told) in self.told.drain(..=last).enumerate() {
            if i < first || needless || turns != usize::from(answers) {
                continue;
            }
            for step in told.before.into_iter().chain([told.step]) {
                let until = (step.end + shift).min(t);
                if until > at || i == last {
                    self.lead.push(moved(&step, (at, until.max(at)), shift, (frame, segment.frame)));
                    at = until.max(at);
                }
            }
        }
        let mut step = self.lead.pop()?;
        step.ends_with(segment, t);
        Some(step)
    }

    /// How long its own payload can have kept an answer on its way, question and answer together, where no
    /// rate of the link is known: no longer for each byte than the turns before it were late, beyond a round
    /// trip; in the first, than the SYN and its answer took, which have a header each at least (rule 114).
    pub(crate) fn cross(&mut self, step: &mut Step, rtt: Nanos) {
        let len = step.len;
        let turn = if step.is_turn() { Some(step) } else { self.lead.iter_mut().find(|s| s.is_turn()) };
        let Some(turn) = turn else { return };
        let Wait::Turn { seen: Some(seen), .. } = turn.wait else { return };
        let bytes = self.asked.saturating_add(len).max(1);
        let (time, of) = self.least.unwrap_or((rtt, 2 * HEADER));
        let longest = Nanos(time.0.saturating_mul(i64::from(bytes)) / i64::from(of));
        turn.can_have_crossed_for(longest);
        if turn.loss.is_none() && self.asked > 0 {
            // What hosts need to wake up is of none of them.
            let late = (turn.duration() - seen - rtt).max(HOSTS);
            if self.least.is_none() || late < longest {
                self.least = Some((late, bytes));
            }
        }
    }

    /// The server's last data was held on its way by so much, beyond what tells a queue (rule 38).
    pub(crate) fn held_on_its_way(&self, rtt: Nanos, tick: Nanos) -> Option<Nanos> {
        self.ways.server.later().filter(|&late| late > least_beyond(rtt, tick))
    }

    /// Up to where the server has sent, if that is beyond `nxt` and has not come, and since when.
    pub(super) fn sent_beyond(&self, nxt: Seq) -> Option<(Seq, Nanos)> {
        self.ways.server.beyond(nxt)
    }

    /// What the server's tap said last of answers that may be corked.
    pub(crate) fn ticks(&self) -> Option<u16> {
        self.ticks
    }

    /// The steps before the last.
    pub(crate) fn take_lead(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.lead)
    }

    /// What is said of the connection; the captures end at `end`.
    pub(crate) fn finish(&mut self, end: Nanos) -> Option<Box<TwoTaps>> {
        if !self.heard {
            return None;
        }
        End::BOTH.into_iter().for_each(|s| self.ways[s].end(end));
        let count = |of: fn(&Way) -> u64| End::BOTH.map(|s| of(&self.ways[s]));
        let mut losses: Vec<Lost> = End::BOTH.iter().flat_map(|&s| self.ways[s].named.clone()).collect();
        losses.sort_by_key(|l| (l.time, l.frame));
        Some(Box::new(TwoTaps {
            sent: count(|w| w.left),
            lost: count(|w| w.lost),
            lost_data: count(|w| w.lost_data),
            losses,
            comparable: End::BOTH.map(|s| self.ways[s].is_comparable()),
        }))
    }
}

/// A step of the server's tap, as it lies at the client's.
fn moved(step: &Step, (start, end): (Nanos, Nanos), shift: Nanos, frames: (u64, u64)) -> Step {
    let seen = step.duration();
    let wait = match step.wait {
        Wait::Turn { .. } => match Wait::ANSWER {
            Wait::Turn { on_the_way, unheard, doubt, .. } => {
                Wait::Turn { on_the_way, unheard, doubt, seen: Some(seen) }
            }
            wait => wait,
        },
        wait => wait,
    };
    Step {
        start,
        end,
        wait,
        bytes: 0,
        burst: Nanos::ZERO,
        // Between a hole and its repair it is the client's tap that sees what waited for it.
        loss: step.loss.filter(|_| step.is_loss()).map(|(kind, at)| (kind, at + shift)),
        split: false,
        ack_frame: None,
        first_frame: frames.0,
        last_frame: frames.1,
        across: true,
        unread: step.unread.filter(|_| step.is_turn()),
        ..*step
    }
}

/// Its sender had a smaller window after a loss.
fn is_after_loss(step: &Step) -> bool {
    matches!(step.cwnd, CwndState::AfterLoss | CwndState::Avoiding)
}
