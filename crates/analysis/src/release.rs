//! What released a data segment: the ACKs it may have left with, a timer, or the application.
//!
//! The rules are those of `docs/causes`; each threshold names its source here.

use crate::conn::{CLIENT, Conn, SERVER, UNKNOWN};
use crate::half::{AckEvent, Arrival, Repair};
use crate::profile::delayed_from;
use crate::result::Quality;
use crate::step::{CwndState, Doubt, Step, Wait};
use tcpwhy_base::{Nanos, Segment, Seq};

impl Conn {
    /// Describes the step that ended with this segment.
    pub(crate) fn step(
        &mut self,
        s: usize,
        segment: &Segment,
        t: Nanos,
        arrival: Arrival,
        before: Before,
        missing: u16,
    ) -> Step {
        let start = self.ex.last;
        let last_sender = usize::from(self.ex.last_sender);
        let rtt = self.rtt_or_zero();
        let dt = t - start;
        let mut step = Step {
            start,
            end: t,
            wait: Wait::Burst,
            sender: s as u8,
            cwnd: self.cwnd_state(s),
            burst: Nanos::ZERO,
            bytes: segment.len,
            releases: 1,
            flight: 0,
            peak: 0,
            ack_delay: Nanos::ZERO,
            loss: None,
            split: false,
            full: false,
            drained: false,
            unread: false,
            doubt: Doubt::None,
            rtt: Nanos::ZERO,
            len: segment.len,
            note: 0,
            frames: [self.ex.last_frame, 0, segment.frame],
        };
        // A recovery of whoever spoke last that ended within this step.
        if let Some((kind, until)) = self.half[last_sender].recovered {
            if until > start {
                step.loss = Some((kind, until.min(t)));
            } else {
                self.half[last_sender].recovered = None;
            }
        }
        if last_sender != s {
            self.ex.message = t;
            self.note_idle(s, t);
            step.cwnd = self.cwnd_state(s);
            step.wait = Wait::Turn;
            // A probe or timer repeats one segment: those before it in its flight were lost as well, at the same time.
            let before_it = segment.seq.minus(before.nxt).max(0) as u32;
            let others = before_it.div_ceil(self.half[s].mss.max(1)).min(u32::from(missing)) as u16;
            let copies = if missing > 0 { (missing - others).max(1) } else { 0 };
            step.doubt = self.doubt(s, dt, copies);
            step.ack_delay = self.still_on_its_way(1 - s, start);
            // What was held by Nagle across a turn: a small segment out before, this one small, locked to its ACK.
            if let Some(ack) = self.lock(s, segment, t, start, &before).and_then(|l| l.frees)
                && ack.pure()
                && ack.time > start
            {
                let delay = ack.delay().unwrap_or(Nanos::ZERO) - self.turn_of(1 - s);
                let (frame, delayed) = (ack.frame(), delay > delayed_from(rtt));
                step.wait = Wait::Nagle { delayed };
                step.ack_delay = delay.floor0();
                step.frames[1] = frame;
            }
            return step;
        }
        match arrival {
            Arrival::Repeat => {
                let kind = self.repeat_kind(s, segment, t, &before);
                step.wait = Wait::Loss(kind);
                // The trip that the data would have taken counts once.
                step.note = u32::from(self.half[s].recovery.is_some());
                let half = &self.half[s];
                let mut signs = half.first_sack.filter(|&f| kind == Repair::Fast && f < t);
                if kind == Repair::Fast && segment.seq == half.una && half.last_advance < half.flight_start {
                    // The first segment of the flight is lost: it would have been acknowledged after a round trip.
                    let due = half.flight_start + rtt;
                    signs = signs.map(|f| f.min(due));
                }
                step.loss = signs.map(|f| (kind, f));
                if self.handshake.done && !self.half[s].una.after(self.half[s].base) && s == CLIENT {
                    self.not_taken.0 += 1;
                }
                return step;
            }
            Arrival::Repaired { opened } => {
                let floor = self.profile[s].rto_floor;
                let kind = if dt >= floor { Repair::Timeout } else { Repair::Fast };
                step.wait = Wait::Loss(kind);
                step.loss = Some((kind, opened));
                let half = &mut self.half[s];
                let flight = half.round.1.max(half.round.2);
                half.cwnd.before_loss = half.cwnd.before_loss.max(flight);
                return step;
            }
            _ => {}
        }
        if dt <= burst_within(rtt) {
            // Two partial segments within it: the second did not wait for the first one's ACK, so Nagle is off.
            let half = &mut self.half[s];
            let pair = before.small_end == before.nxt
                && before.small_end.after(half.base)
                && half.is_small(segment.len);
            if pair && half.outstanding() > segment.len && dt < rtt {
                half.nodelay_shown += 1;
            }
            step.bytes = segment.len;
            if self.half[s].recovery.is_some() {
                step.loss = self.half[s].recovery.as_ref().map(|r| (r.kind, t));
            }
            return step;
        }
        if let Some(recovery) = &self.half[s].recovery {
            step.loss = Some((recovery.kind, t));
        }
        if self.half[1 - s].counts.packets == 0 || !self.half[s].edge_known {
            step.wait = Wait::Blind;
            return step;
        }
        // Packets of the sender are missing before this one, which comes when its timer would send it again: once, and
        // after each lost copy twice as late.
        let timer = self.timer(s).times(1 << missing.saturating_sub(1).min(6));
        let timed = dt >= timer - timer.part(16) && dt <= timer + timer.part(2);
        step.note = u32::from(missing);
        if missing > 0 && timed && !self.near(s) && !self.quality.has(Quality::CAPTURE_DROPS) {
            step.wait = Wait::Missing;
            return step;
        }
        let step = self.released_by(s, segment, t, &before, step);
        // The window falls back in the middle of a message as between two, if the writer paused with nothing in flight
        // (`tcp_slow_start_after_idle_check` is asked for what is newly written).
        if step.wait == Wait::Pause && !before.nxt.after(self.half[s].una) {
            self.note_idle(s, t);
        }
        step
    }

    /// The shortest time after which a stack sends again what nobody acknowledged: a round trip and the floor of the
    /// timeout (RFC 6298; a tail loss probe of a single segment waits as long, RFC 8985, 7.2).
    pub(crate) fn timer(&self, s: usize) -> Nanos {
        self.rtt_or_zero() + self.profile[s].rto_floor
    }

    /// Whether the answer of `s` that came `dt` after the last segment of the other side was lost once; so many copies of
    /// it are missing.
    fn doubt(&self, s: usize, dt: Nanos, missing: u16) -> Doubt {
        let think = dt - self.turn_of(s);
        let timer = self.timer(s);
        if self.near(s) || self.turn[s] == UNKNOWN || think < timer - timer.part(16) {
            return Doubt::None;
        }
        // Each repeat doubles the timer: after n losses it has run 1 + 2 + ... + 2^(n-1) times.
        let lost = |n: u16| timer.times((1 << n.min(7)) - 1);
        if missing > 0 {
            let enough = think >= lost(missing) - lost(missing).part(16);
            let blind = self.quality.has(Quality::CAPTURE_DROPS);
            return if enough && !blind { Doubt::Missing(missing) } else { Doubt::Possible };
        }
        if self.half[s].counts_packets() {
            return Doubt::None;
        }
        let at_timer = |n: u16| think >= lost(n) - lost(n).part(16) && think <= lost(n) + timer.part(2);
        if (1..=4).any(at_timer) { Doubt::Timed } else { Doubt::Possible }
    }

    /// Decides what released new data of the side that had spoken last.
    fn released_by(
        &mut self,
        s: usize,
        segment: &Segment,
        t: Nanos,
        before: &Before,
        mut step: Step,
    ) -> Step {
        let rtt = self.rtt_or_zero();
        let mss = self.half[s].mss.max(1);
        let dt = step.duration();
        if let Some(lock) = self.lock(s, segment, t, step.start, before) {
            step.flight = before.nxt.minus(lock.una_before).max(0) as u32;
            // Both ended by one ACK: the kernel asks for the congestion window first, then the window, then Nagle
            // (`tcp_write_xmit`).
            let cwnd = lock.opens.or(lock.frees).map_or(0, |a| a.cwnd);
            // After an idle time only the first flight has a window that is known.
            let known = match step.cwnd {
                CwndState::Growing => cwnd > 0,
                CwndState::Restarted => cwnd > 0 && cwnd <= self.profile[s].initial_window * mss,
                CwndState::AfterLoss => false,
            };
            let by_cwnd = known && step.flight + mss >= cwnd;
            let ack = match (lock.opens, lock.frees) {
                (Some(ack), _) if !by_cwnd || ack.window_before < mss => {
                    // A window update after everything was acknowledged: the reader made room only then. A small
                    // buffer's window opens with the ACK or at once after it.
                    let update = ack.ack == ack.una_before;
                    let covered =
                        self.half[s].newest_first().find(|a| a.ack == ack.ack && a.una_before.before(a.ack));
                    let held = covered.map_or(Nanos::ZERO, |a| ack.time - a.time);
                    let slow = update && (ack.window_before < mss || held.times(4) >= dt);
                    // Two full segments are acknowledged at once (RFC 9293, 3.8.6.3) unless the window would have to
                    // shrink (`__tcp_ack_snd_check`): a late ACK for more waited for the reader.
                    let late =
                        ack.delay().map_or(Nanos::ZERO, |d| d - self.turn_of(1 - s)) > delayed_from(rtt);
                    let many = ack.ack.minus(ack.una_before) >= 2 * mss as i32;
                    // A window that never holds a full segment: silly-window avoidance on both sides.
                    let tiny = self.largest_window(s).is_some_and(|w| w < mss);
                    step.unread = !slow && self.is_unread(s, &ack);
                    step.wait = match () {
                        () if tiny => Wait::Silly,
                        () if slow || step.unread || !ack.at_a_hole() && late && many => Wait::Closed,
                        () => Wait::Window,
                    };
                    step.note = ack.window_before;
                    ack
                }
                (_, Some(ack)) if !by_cwnd => {
                    let delay = ack.delay().map_or(Nanos::ZERO, |d| (d - self.turn_of(1 - s)).floor0());
                    step.wait = Wait::Nagle { delayed: delay > delayed_from(rtt) };
                    step.note = self.half[s].last_len;
                    self.nagle_locks += 1;
                    ack
                }
                // With nothing in flight there was nothing to wait for.
                _ if step.flight == 0 => {
                    step.wait = Wait::Pause;
                    lock.ack
                }
                _ => {
                    step.wait = Wait::Acked;
                    step.unread = self.is_unread(s, &lock.ack);
                    if self.near(s) {
                        (step.drained, step.peak) = self.drained(s, &lock, before.nxt);
                    }
                    if self.half[s].last_rtt_at > step.start {
                        step.rtt = Nanos(self.half[s].last_rtt);
                    }
                    step.note = lock.ack.edge_before.minus(before.nxt).max(0) as u32;
                    let cwnd = &mut self.half[s].cwnd;
                    if cwnd.initial == 0 {
                        cwnd.initial = step.flight;
                    }
                    lock.ack
                }
            };
            step.frames[1] = ack.frame();
            step.ack_delay = ack.delay().map_or(Nanos::ZERO, |d| (d - self.turn_of(1 - s)).floor0());
            return step;
        }
        // A writer that has Nagle on cannot have sent this before the ACK came, however late it was written after.
        if self.nagle_locks >= 2 {
            let from = step.start - self.turn_of(s);
            let frees = self.half[s].newest_first().take_while(|a| a.time > from).find(|a| {
                !a.is_later_than(segment)
                    && a.time + self.turn_of(s) <= t
                    && self.nagle_shape(s, segment, before, a.una_before, a.ack)
            });
            if let Some(&ack) = frees.filter(|a| (t - self.turn_of(s) - a.time).times(4) <= dt) {
                let delay = ack.delay().map_or(Nanos::ZERO, |d| (d - self.turn_of(1 - s)).floor0());
                step.wait = Wait::Nagle { delayed: delay > delayed_from(rtt) };
                step.note = self.half[s].last_len;
                step.frames[1] = ack.frame();
                step.ack_delay = delay;
                return step;
            }
        }
        let turn = self.turn_of(s);
        let half = &self.half[s];
        let flow_round = half.round.1.max(half.round.2);
        let blind_ring = !half.acks_known_since(t - turn - turn.part(4) - Nanos::millis(1));
        // Away from the sender a queue on the path hides which ACK it was. A run of full segments goes on: no write
        // ended before it, for its last segment would be partial, so some ACK released it if no timer did.
        let mid_run = !self.near(s)
            && !half.is_small(half.last_len)
            && !half.is_small(segment.len)
            && dt < rtt + self.profile[s].rto_floor;
        // Within the first round trip of a message no ACK of it has come round: they were sent together, and the link
        // took its time (an eighth less, as both times come with jitter).
        if mid_run && t - self.ex.message < rtt - rtt.part(8) {
            step.bytes = segment.len;
            return step;
        }
        if mid_run || blind_ring && dt <= rtt + rtt.part(4) {
            step.wait = Wait::Acked;
            step.flight = flow_round;
            step.note = u32::MAX;
            return step;
        }
        let room = half.edge.minus(before.nxt);
        let outstanding = before.nxt.minus(half.una).max(0) as u32;
        let timer = half.rto(rtt, &self.profile[s]).max(Nanos::millis(200));
        // The timer of a closed window or a cork: max(RTO, 200 ms), up to an eighth late (timer wheel; tcp_probe0_base).
        let at_timer =
            |wait: Nanos| wait >= Nanos::millis(190) && wait <= timer + timer.part(4) + Nanos::millis(16);
        step.note = outstanding;
        let small_window = room > 0 && room < mss as i32 && segment.len as i32 == room;
        let since_ack = half.newest_first().next().map_or(dt, |a| t - turn - a.time);
        step.full = !half.is_small(half.last_len) && !half.is_small(segment.len);
        if small_window && dt >= Nanos::millis(190) {
            // A receiver that offered more before has a reader that stopped; else the buffer is that small.
            let buffer = self.largest_window(s).is_some_and(|w| w < 4 * mss);
            step.wait = if buffer { Wait::Silly } else { Wait::Closed };
            step.note = room as u32;
        } else if outstanding == 0
            && half.is_small(segment.len)
            && at_timer(since_ack)
            && self.profile[s].os == Some("Linux")
            && self.corks.is_none_or(|(_, w)| (since_ack - w).0.abs() <= w.part(8).0)
        {
            // A timer fires after the same time again and again; applications do not write so.
            step.wait = Wait::CorkTimer;
            self.corks = Some((self.corks.map_or(1, |c| c.0 + 1), since_ack));
        } else {
            step.wait = Wait::Pause;
            // Writers that wait for buffer space wake a moment after the ACK; the flight tells.
            step.flight = self.recent_flight(s, t, dt, before);
        }
        step.split = s == CLIENT && self.ex.bytes[SERVER] == 0 && dt > self.long_pause(s);
        step
    }

    /// More than half of the receiver's buffer was full of what its application had not read (`__tcp_select_window`): a larger
    /// one would fill up as well. Small windows are used up by what has just come.
    fn is_unread(&self, s: usize, ack: &AckEvent) -> bool {
        let mss = self.half[s].mss.max(1);
        let offered = ack.edge.minus(ack.ack).max(0) as u32;
        !ack.at_a_hole() && self.largest_window(s).is_some_and(|most| most >= 8 * mss && offered <= most / 2)
    }

    /// The largest window that was offered to `s`, bytes, where its scale is known.
    fn largest_window(&self, s: usize) -> Option<u32> {
        self.window_shift(1 - s).map(|_| self.half[1 - s].counts.max_window)
    }

    /// Whether ACKs of this wait, before those that may have released the segment, made room that was not used. A window
    /// that is full is used at each ACK, or when a third of it is free (`tcp_tso_should_defer`). And how much was in flight
    /// when the segment before had left.
    fn drained(&self, s: usize, lock: &Lock, nxt: Seq) -> (bool, u32) {
        let half = &self.half[s];
        let (flight, acked) = (nxt.minus(half.last_una), lock.una_before.minus(half.last_una));
        let drained = half.recovery.is_none() && acked > (flight / 3).max(2 * half.mss as i32);
        (drained, flight.max(0) as u32)
    }

    /// Bytes that were in flight when the last ACK before `t` came in, if that was in the last quarter of the wait.
    fn recent_flight(&self, s: usize, t: Nanos, dt: Nanos, before: &Before) -> u32 {
        let half = &self.half[s];
        let Some(ack) = half.newest_first().find(|a| a.time <= t - self.turn_of(s)) else { return 0 };
        if (t - self.turn_of(s) - ack.time).times(4) > dt {
            return 0;
        }
        before.nxt.minus(ack.una_before).max(0) as u32
    }

    /// The ACKs that this segment may have left with: they passed the tap one reaction time before it, after the
    /// sender had sent its segment before. At the sender's own tap that is within 1 ms (rule 5), or half a round
    /// trip where that is less; elsewhere an eighth of the trip is allowed for jitter.
    fn lock(&self, s: usize, segment: &Segment, t: Nanos, start: Nanos, before: &Before) -> Option<Lock> {
        let turn = self.turn_of(s);
        // Beside the sender the shortest reaction seen may be that of a host that had to wake up first: whatever came
        // before the segment may have released it.
        let beside = self.near(s) && turn <= Nanos::millis(1);
        let early = if beside { turn } else { turn.part(8).max(Nanos::micros(50)).min(turn) };
        let near = self.rtt_or_zero().part(2).max(Nanos::micros(100)).min(Nanos::millis(1));
        // After a long wait a busy host may be later; a sixteenth of it is met by chance once in sixteen.
        let late = turn.part(8).max(near).max((t - start).part(16));
        let from = (t - turn - late).max(start - turn + Nanos(1));
        let to = t - turn + early;
        let mss = self.half[s].mss.max(1);
        let needed = segment.len.min(mss) as i32;
        let mut lock: Option<Lock> = None;
        let acks = self.half[s].newest_first().skip_while(|a| a.time > to).take_while(|a| a.time >= from);
        for ack in acks.filter(|a| !a.is_later_than(segment)) {
            let room = ack.edge_before.minus(before.nxt);
            let opens = room < needed && ack.edge.minus(before.nxt) >= needed;
            let frees = self.nagle_shape(s, segment, before, ack.una_before, ack.ack);
            let found =
                lock.get_or_insert(Lock { ack: *ack, opens: None, frees: None, una_before: ack.una_before });
            found.una_before = ack.una_before;
            if opens {
                found.opens = Some(*ack);
            }
            if frees {
                found.frees = Some(*ack);
            }
        }
        lock
    }

    /// A partial segment was out, its ACK came, and this one is partial: what Nagle's rule holds. Stacks with the
    /// classic rule hold it for any unacknowledged data.
    fn nagle_shape(&self, s: usize, segment: &Segment, before: &Before, una_before: Seq, ack: Seq) -> bool {
        let mss = self.half[s].mss;
        if mss == 0 || segment.len >= mss || self.half[s].nodelay_shown > 0 {
            return false;
        }
        let out = before.nxt.after(una_before) && ack.after(una_before);
        if self.profile[s].minshall {
            out && before.small_end.after(una_before) && !before.small_end.after(ack)
        } else {
            out && !before.nxt.after(ack)
        }
    }

    /// How long after `start` an ACK still did not cover all that this side had sent: it left before the last of it
    /// arrived, so nobody could have worked on the message by then.
    fn still_on_its_way(&self, s: usize, start: Nanos) -> Nanos {
        let half = &self.half[s];
        let late = half.newest_first().take_while(|a| a.time > start).find(|a| a.ack.before(half.nxt));
        late.map_or(Nanos::ZERO, |a| a.time - start)
    }

    fn cwnd_state(&self, s: usize) -> CwndState {
        let cwnd = &self.half[s].cwnd;
        // An idle time after a loss takes the window that the loss had left.
        if cwnd.before_idle > 0 {
            CwndState::Restarted
        } else if cwnd.before_loss > 0 {
            CwndState::AfterLoss
        } else {
            CwndState::Growing
        }
    }

    /// Which mechanism repeats unacknowledged data.
    fn repeat_kind(&self, s: usize, segment: &Segment, t: Nanos, before: &Before) -> Repair {
        let half = &self.half[s];
        let rtt = self.rtt_or_zero();
        let end = segment.seq + segment.len;
        let quiet = t - half.last_data;
        let long = quiet >= rtt + self.profile[s].rto_floor.times(7).part(8);
        if let Some(recovery) = &half.recovery {
            let kept = recovery.kind == Repair::BlackHole || !long;
            return if kept { recovery.kind } else { Repair::Timeout };
        }
        // A probe sends the last segment again (RFC 8985, 7.3); signs of a later arrival make it a fast repair.
        match half.first_sack {
            Some(_) if !long => Repair::Fast,
            // Never later than the timeout (RFC 8985, 7.2), which here may seem shorter than it was.
            _ if end == before.nxt && quiet <= half.rto(rtt, &self.profile[s]).times(3).part(2) => {
                Repair::Probe
            }
            _ if quiet >= Nanos::millis(190) => Repair::Timeout,
            _ if half.first_sack.is_none() && half.dup_acks == 0 && quiet > rtt.part(2) => Repair::Timeout,
            _ => Repair::Fast,
        }
    }
}

/// Less than this between two segments is no wait: system calls, interrupts and a virtual CPU's wake-up take that
/// (measured: 50 to 130 µs for an empty path), and a 64th of a long round trip.
fn burst_within(rtt: Nanos) -> Nanos {
    rtt.part(64).max(Nanos::micros(50))
}

/// The ACKs a segment may have left with, and what they did for it.
#[derive(Clone, Copy, Debug)]
struct Lock {
    /// The latest.
    ack: AckEvent,
    /// The earliest that made the window large enough.
    opens: Option<AckEvent>,
    /// The earliest that covered the small segment that Nagle's rule waits for.
    frees: Option<AckEvent>,
    /// Acknowledged before the earliest of them.
    una_before: Seq,
}

/// What was known of a half before its segment was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) nxt: Seq,
    pub(crate) small_end: Seq,
}
