//! What others than the packets of this tap tell a connection: kernels, and a second tap.

use super::Conn;
use crate::release::{Freed, is_beside};
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

    /// The same, where there are two taps.
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

    /// Adds what the kernel of the receiver says of its reader, where the tap is beside it: the segment that ended the step had been
    /// released by what passed the tap one reaction of the sender before.
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
            // A full segment came through after all: the path was gone for all sizes.
            let full = until.segment.len >= self.track.flow(until.sender).mss;
            let kind = if full && kind == Repair::BlackHole { Repair::Timeout } else { kind };
            step.rename_loss(kind);
            self.ex.rename_losses(until.sender, kind);
        }
        (before, step)
    }
}
