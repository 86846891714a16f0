//! What the rules need to know of the connection.

use crate::confidence::Tap;
use crate::release::Habits;
use crate::rest::at_rest;
use crate::result::Quality;
use crate::step::Step;
use crate::track::{NotTaken, Tracker, Trip};
use tcpwhy_base::{End, Ends, Nanos};

/// A snapshot of the connection when its steps become spans.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) file: u16,
    pub(crate) rtt: Nanos,
    /// Both reaction times are known.
    pub(crate) measured: bool,
    pub(crate) reaction: Ends<Nanos>,
    /// What that is known by (rule 125).
    pub(crate) trip: Ends<Trip>,
    /// Shortest time after which each side sends again what was lost, where its stack is known.
    pub(crate) timer: Ends<Option<Nanos>>,
    /// After twice this its sender would have sent again what is unacknowledged, whatever its stack: RFC
    /// 6298's timeout is a second or a round trip and four times its variance.
    pub(crate) timeout: Ends<Nanos>,
    /// Where the tap is, seen from each side.
    pub(crate) tap: Ends<Tap>,
    /// Nanoseconds per byte at the bottleneck, by direction.
    pub(crate) per_byte: Ends<Option<f64>>,
    /// Who spaces its segments itself, and no link does (rule 87).
    pub(crate) paced: Ends<bool>,
    /// Of those whose writes do, by how its message began (rule 116).
    pub(crate) written: Ends<bool>,
    /// Whose segments stand in a queue of its own host before they pass (rule 95).
    pub(crate) stands: Ends<bool>,
    pub(crate) mss: Ends<u32>,
    pub(crate) initial_window: Ends<u32>,
    pub(crate) cork_timers: u32,
    /// The server's answers are as late as the timer of a cork: how often that was on its kernel's clock (rule 115).
    pub(crate) ticks: Option<u16>,
    /// How late the soonest and the latest of those were.
    pub(crate) late_as_timer: (Nanos, Nanos),
    pub(crate) nagle_holds: u32,
    /// Who has shown the classic rule of Nagle, which holds a tail behind full segments (rule 54).
    pub(crate) classic: Ends<bool>,
    /// The server had not taken the handshake's final ACK until then.
    pub(crate) not_taken: Option<NotTaken>,
    /// Perhaps it did not: the client's first data was sent again so often, and nothing of it acknowledged.
    pub(crate) maybe_untaken: Option<u32>,
    pub(crate) one_sided: bool,
    pub(crate) capture_drops: bool,
    /// The server has not answered once as soon as a timer: it cannot have lost each answer (rule 35).
    pub(crate) slow_answers: bool,
    /// The shortest wait for an answer of the server.
    pub(crate) soonest_answer: Option<Nanos>,
    /// The shortest time after which each side sends again what was lost, and that time where the numbers of
    /// its packets would not tell of a loss before the tap.
    pub(crate) shortest_timer: Ends<Nanos>,
    pub(crate) hidden_timer: Ends<Option<Nanos>>,
    /// How many of its segments in a row, each alone in flight, each side has sent again (rule 75).
    pub(crate) alone: Ends<u8>,
    /// A proxy acknowledges for the server: how much farther the server is, by its SYN-ACK (rule 70).
    pub(crate) split: Option<Nanos>,
    /// How long the capture's clock stands still; zero if not for long.
    pub(crate) tick: Nanos,
    /// How long it may stand still, as far as so few packets tell (rule 50).
    pub(crate) may_tick: Nanos,
    /// The largest window of the peer as it stands in the header and the scales that it may have, where that is not
    /// known.
    pub(crate) unscaled_window: Ends<Option<(u16, u8, u8)>>,
}

/// What the attribution of later steps must know of earlier ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    /// Largest flight of the message so far, and round trips since it grew.
    pub(crate) peak: u32,
    pub(crate) rounds: u32,
    /// Transmission time left at the bottleneck, nanoseconds, by direction.
    pub(crate) backlog: Ends<i64>,
    /// Whose message it is.
    pub(crate) message_of: End,
    /// Who had spoken last: what the client says after the server makes a round trip.
    pub(crate) spoke: End,
    /// The server has said something that had not passed before.
    pub(crate) answered: bool,
    /// Payload of the exchange, by direction, that no `bandwidth` has been said for yet (rule 45).
    pub(crate) unpaid: Ends<i64>,
    /// Round trips of the exchange so far, and how much `path_delay` was said for them (rule 45).
    pub(crate) trips: i64,
    pub(crate) travelled: Nanos,
    /// Of the trip that lost data would have taken anyway, what is still to be said (rule 14).
    pub(crate) owed: Nanos,
}

at_rest! { Carry { peak, rounds, backlog, message_of, spoke, answered, unpaid, trips, travelled, owed } }

/// A segment is as far as a rate can be off in one exchange: half of it for each direction.
pub(super) const HALF_SEGMENT: i64 = 730;

impl Carry {
    /// The step begins another message, or goes on with the one before.
    #[inline]
    pub(super) fn turns_to(&mut self, step: &Step) {
        if step.is_turn() || self.message_of != step.sender {
            (self.peak, self.rounds, self.message_of) = (0, 0, step.sender);
        }
    }

    /// Payload of `sender` passed.
    pub(crate) fn pass(&mut self, sender: End, bytes: u32) {
        self.unpaid[sender] += i64::from(bytes);
    }
}

impl Default for Carry {
    fn default() -> Carry {
        Carry {
            peak: 0,
            rounds: 0,
            backlog: Ends::default(),
            message_of: End::Client,
            spoke: End::Client,
            answered: false,
            unpaid: Ends::of(|_| HALF_SEGMENT),
            trips: 1,
            travelled: Nanos::ZERO,
            owed: Nanos::ZERO,
        }
    }
}

impl Context {
    /// Of a connection as it is now; `first`: no exchange has ended.
    pub(crate) fn of(track: &mut Tracker, habits: &Habits, first: bool, file: u16) -> Context {
        let per_byte = Ends::of(|d| track.rate(d).map(|bps| 8e9 / bps));
        let track = &*track;
        let tap = Ends::of(|s| if track.near(s) { Tap::Near } else { Tap::Far });
        let client = track.flow(End::Client);
        let may_be_untaken = (first || client.una == client.base) && track.handshake().is_done();
        let untaken = track.handshake().not_taken();
        // Others than Linux do not leave the last ACK of a handshake without an answer.
        let is_linux = Ends::of(|s| track.profile(s).os == Some("Linux"));
        let linux = is_linux.server;
        let at_server = linux && tap.server == Tap::Near && tap.client == Tap::Far;
        // Every one of them came to the server.
        let came = linux && untaken.arrived >= untaken.retransmissions;
        let known = untaken.syn_acks > 0 || at_server || came;
        let not_taken = may_be_untaken && untaken.retransmissions > 0 && known;
        let timer = Ends::of(|s| track.timer(s));
        Context {
            file,
            rtt: track.rtt_or_zero(),
            measured: track.rtt().is_some(),
            reaction: Ends::of(|s| track.reaction_or_zero(s)),
            trip: Ends::of(|s| track.trip_to(s)),
            timer: Ends::of(|s| is_linux[s].then_some(timer[s])),
            timeout: Ends::of(|s| track.rto(s).max(Nanos::secs(1)).max(track.rtt_or_zero().times(3))),
            tap,
            per_byte,
            paced: Ends::of(|s| track.flow(s).paced),
            written: Ends::of(|s| track.flow(s).paced && track.flow(s).beginning.written),
            stands: Ends::of(|s| track.near(s) && track.stands(s)),
            mss: Ends::of(|s| track.flow(s).mss.max(1)),
            initial_window: Ends::of(|s| track.profile(s).initial_window),
            cork_timers: habits.cork_timers(),
            ticks: habits.ticks(tap.server == Tap::Near),
            late_as_timer: habits.late_as_timer(),
            nagle_holds: habits.nagle_holds(),
            classic: Ends::of(|s| habits.is_classic(s)),
            not_taken: not_taken.then_some(untaken),
            // Once may be one lost packet; what stays unacknowledged again and again may wait for the listener.
            maybe_untaken: (may_be_untaken && linux && untaken.retransmissions > 1 && tap.server == Tap::Far)
                .then_some(untaken.retransmissions),
            one_sided: track.one_sided(),
            capture_drops: track.quality().has(Quality::CAPTURE_DROPS),
            slow_answers: habits.answers() >= 3 && habits.soonest_answer().is_some_and(|a| a >= timer.server),
            soonest_answer: habits.soonest_answer(),
            shortest_timer: Ends::of(|s| timer[s]),
            hidden_timer: Ends::of(|s| (!track.flow(s).numbering.is_steady()).then_some(timer[s])),
            alone: Ends::of(|s| track.alone(s)),
            split: track.split(habits.soonest_answer()),
            tick: track.tick(),
            may_tick: track.may_tick(),
            unscaled_window: Ends::of(|s| track.unscaled_window(s)),
        }
    }

    /// The tap is nearer to this side.
    pub(crate) fn near(&self, s: End) -> bool {
        self.tap[s] == Tap::Near
    }
}
