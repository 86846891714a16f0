//! The state of a connection that has ended becomes that of the next one, in its place.

use super::rate::train_pause;
use super::{Clock, Closed, Copies, Ends, Half, Handshake, Profile, Quality, Segment, Stamps, Tracker};
use tcpwhy_base::Nanos;

impl Tracker {
    /// Becomes what [`Tracker::new`] makes of this segment; the lists of ACKs keep their room.
    pub(crate) fn renew(&mut self, segment: &Segment) {
        self.half.iter_mut().for_each(Half::renew);
        // Each by its name: a new one must not be forgotten.
        let Tracker {
            half: _,
            profile,
            reaction,
            pause,
            handshake,
            copies,
            clock,
            stamps,
            sooner,
            bare,
            scales,
            quality,
            calm,
            closed,
            reset_by,
            not_only_resets,
            silence,
            start,
            now,
            first_frame,
            last_frame,
        } = self;
        *profile = Ends::new(&Profile::UNKNOWN, &Profile::UNKNOWN);
        (*reaction, *sooner, *scales) = (Ends::default(), Ends::default(), None);
        *bare = Ends::default();
        *pause = train_pause(None, Nanos::ZERO);
        *handshake = Handshake::default();
        *copies = Copies::default();
        *clock = Clock::default();
        *stamps = Ends::new(Stamps::default(), Stamps::default());
        *quality = Quality::default();
        if !segment.flags.syn() {
            quality.set(Quality::MIDSTREAM);
        }
        *calm = false;
        (*closed, *reset_by, *not_only_resets, *silence) = (Closed::Open, None, false, None);
        (*start, *now) = (segment.time, segment.time);
        (*first_frame, *last_frame) = (segment.frame, segment.frame);
    }
}
