//! What others than the packets of this tap tell a connection: kernels, and a second tap.

use super::Conn;
use crate::release::{Freed, Wait, is_beside};
use crate::step::Step;
use crate::taps::{Role, Until};
use crate::track::{NotTaken, Repair};
use tcpwhy_base::{End, Nanos, SocketChange, SocketEvent, SocketState, TooBig};

impl Conn {
    /// A kernel did something to the socket of one end.
    pub(crate) fn hear(&mut self, event: &SocketEvent) {
        let local = if event.local == self.who.ends.client { End::Client } else { End::Server };
        if let SocketChange::State(SocketState { open: true, scales, .. }) = event.change {
            self.track.told_scales(local, scales);
        }
        if let SocketChange::Read { since, .. } = event.change {
            let sender = local.peer();
            self.ex.lay_unread(sender, since, event.time, self.track.reaction_or_zero(sender));
        }
        self.testimony.hear(local, event);
    }

    /// A router said that a segment of one end was too large.
    pub(crate) fn too_big(&mut self, told: &TooBig) {
        let s = if told.src == self.who.ends.client { End::Client } else { End::Server };
        self.track.too_big(s, told);
    }

    /// `s` spoke while it still waited for bytes that never came (rule 106): that is what it had waited for.
    #[inline]
    pub(super) fn still_lacks(&mut self, s: End, step: &mut Step) -> Option<Wait> {
        if s != End::Client || !(step.is_turn() || step.pause().is_some()) {
            return None;
        }
        if let Some(kind) = self.track.repeats_in_vain(End::Server, step.end).filter(|_| step.is_turn()) {
            step.repairs(kind);
            return None;
        }
        self.hears_of_lost();
        let lost = self.track.never_came(End::Server, step.end)?;
        // Its own writing may pause within a request, beside what it waits for.
        let waits = step.is_turn() || self.track.answer_never_came(End::Server, step.duration()).is_some();
        if waits {
            step.goes_on();
        }
        waits.then_some(Wait::NeverCame { whole: lost.whole })
    }

    /// The tap beside the server has seen data that has not come to this one until now.
    #[inline]
    pub(super) fn hears_of_lost(&mut self) {
        if let Some(sent) = self.role.sent_beyond(self.track.flow(End::Server).nxt) {
            self.track.hears_of_lost(sent);
        }
    }

    /// It is one of two taps.
    pub(crate) fn seen_as(self, role: Role) -> Conn {
        Conn { role, ..self }
    }

    /// Which of two taps has seen it, and what they say of each other.
    pub(crate) fn role(&mut self) -> &mut Role {
        &mut self.role
    }

    /// What this tap knows of a handshake whose end the server did not take.
    pub(crate) fn not_taken(&self) -> NotTaken {
        self.track.handshake().not_taken()
    }

    /// The same, of the tap at the server.
    pub(crate) fn told_not_taken(&mut self, there: NotTaken) {
        self.track.told_not_taken(there);
    }

    /// Adds what the kernel of the receiver says of its reader, where the tap is beside it: the segment that
    /// ended the step had been released by what passed the tap one reaction of the sender before.
    #[inline]
    pub(super) fn heed_reader(&self, s: End, step: &mut Step) {
        if self.testimony.is_silent() || step.is_turn() {
            return;
        }
        let path = self.track.path_of(s.peer());
        if !is_beside(&path) {
            return;
        }
        let trip = path.peer();
        step.unread = self.testimony.unread(s.peer(), step.start - trip, step.end - trip);
    }

    /// Corrects a step that is about to be recorded, where there are two taps; steps before it are recorded here.
    pub(super) fn settle(
        &mut self,
        until: &Until<'_>,
        before: Option<Step>,
        step: Step,
        rtt: Nanos,
    ) -> (Option<Step>, Step) {
        let (mut before, mut step) = self.role.settle(until, before, step);
        self.role.cross(&mut step, rtt);
        // What left with the one before it takes the time of its own bytes.
        let waits = !step.is_turn() && !step.is_loss() && step.loss.is_none() && !step.is_burst();
        // Its server had let it go, and it came so much later than what came before it (rule 119).
        if let Some(late) =
            self.role.held_on_its_way(&step, rtt, self.track.tick()).filter(|_| waits && before.is_none())
        {
            let at = (step.end - late).max(step.start);
            let first = step.cut_freed(Freed { at, under_way: late });
            before = Some(first).filter(|first| first.duration() > Nanos::ZERO);
        }
        if let Some(ticks) = self.role.ticks().filter(|_| step.across) {
            self.habits.heed_ticks(ticks);
        }
        self.role.lead().iter().for_each(|lead| self.ex.push(lead, rtt));
        if let Some(kind @ (Repair::BlackHole | Repair::TooBig { .. })) = step.repair() {
            // A full segment of the other host came through after all: the path was gone for all sizes. What
            // passes beside its own sender has not come anywhere; its ACK tells.
            let full = until.sender == End::Server && until.segment.len >= self.track.flow(until.sender).mss;
            let kind = if full && kind == Repair::BlackHole { Repair::Timeout } else { kind };
            step.rename_loss(kind);
            self.ex.rename_losses(until.sender, kind);
        }
        (before, step)
    }
}
