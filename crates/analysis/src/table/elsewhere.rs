//! Packets that passed a second tap: an analyzer of its own follows them there, and tells what the servers waited for.

use super::Analyzer;
use super::index::Key;
use crate::taps::{Across, Role};
use crate::{Config, Detail};
use tcpwhy_base::{Observation, Segment, SocketEvent, TooBig};

/// Which tap this analyzer stands at.
#[derive(Debug, Default)]
pub(super) enum Taps {
    /// There is no other.
    #[default]
    One,
    /// Beside the clients; the other one follows what passes beside the servers.
    Two(Box<Analyzer>),
    /// It is that other one.
    Other,
}

impl Taps {
    /// There is no other.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Taps::One)
    }

    /// What its connections are.
    pub(super) fn role(&self) -> Role {
        match self {
            Taps::One => Role::Only,
            Taps::Two(_) => Role::Explained(Box::<Across>::default()),
            Taps::Other => Role::Tells(Box::default()),
        }
    }
}

impl Analyzer {
    /// The same, where packets that passed a second tap come as well ([`Observation::Elsewhere`]): segments
    /// are those of the taps beside the clients, the others those beside the servers, each on one clock and
    /// in the order of time.
    #[must_use]
    pub fn with_second_tap(mut self) -> Analyzer {
        let other = Analyzer::streaming(Config { detail: Detail::None });
        self.taps = Taps::Two(Box::new(Analyzer { taps: Taps::Other, ..other }));
        self
    }

    /// The kernel beside the second tap said something.
    pub(super) fn heard_elsewhere(&mut self, event: &SocketEvent) {
        if let Taps::Two(other) = &mut self.taps {
            other.observe(Observation::Socket(event));
        }
    }

    /// A router said that a segment was too large. Its word may come under other tags than the segment went.
    pub(super) fn too_big(&mut self, told: &TooBig) {
        if let Taps::Two(other) = &mut self.taps {
            other.too_big(told);
        }
        let TooBig { src, dst, link, .. } = *told;
        let known = self.find(&Key::new(&src, &dst, link)).map(|known| known.slot);
        let any = || self.links.get(&if src <= dst { (src, dst) } else { (dst, src) }).copied();
        if let Some(conn) = known.or_else(any).and_then(|slot| self.conn_at(slot)) {
            conn.too_big(told);
        }
    }

    /// A packet passed the second tap.
    pub(super) fn elsewhere(&mut self, segment: &Segment) {
        let Taps::Two(other) = &mut self.taps else { return };
        other.push(segment);
        other.done.clear();
        let known = other.find_of(segment);
        let told = known.and_then(|known| other.conn_at(known.slot)).and_then(|conn| {
            let (end, not_taken) = (conn.end_of(segment), conn.not_taken());
            match conn.role() {
                Role::Tells(teller) => teller.tell().map(|steps| (end, steps, not_taken)),
                _ => None,
            }
        });
        let (Some((end, steps, not_taken)), Some(known)) = (told, self.find_of(segment)) else { return };
        if let Some(conn) = self.conn_at(known.slot)
            && let Role::Explained(across) = conn.role()
        {
            across.passes_there(end, segment, steps);
            conn.told_not_taken(not_taken);
        }
    }
}
