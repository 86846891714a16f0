//! A flow-control window above TCP that runs out and is refilled, again and again: the one who sends stops
//! until a few bytes of the other end come, and goes on at once (rule 98).

use crate::confidence::{Rule, Tap};
use crate::exchange::Recorded;
use crate::facts::Facts;
use crate::rest::at_rest;
use crate::result::Span;
use crate::track::Tracker;
use tcpwhy_base::protocol::{TLS_ADDS, TLS_HEAD, WINDOW_UPDATE_LEN};
use tcpwhy_base::{Cause, End, Ends, Nanos, Side};

/// A message of SSH that grants has no more bytes: 36 to 68 with what encrypts it (RFC 4254, 5.2; RFC 4253,
/// 6), and may stand beside another one.
const CREDIT: u64 = 128;

/// What is granted is no less: two segments and more.
const GRANTED: u32 = 4_096;

/// The same within TLS, where a request may be as short as what grants (repeated headers of HTTP/2 take a
/// byte each, RFC 7541): the largest frame that all must take (RFC 9113, 4.2), while windows begin at four of
/// them.
pub(crate) const GRANTED_WITHIN_TLS: u32 = 16_384;

/// A WINDOW_UPDATE has no less, with what encrypts it.
const ENCRYPTED: u32 = TLS_HEAD + TLS_ADDS[0] + WINDOW_UPDATE_LEN;

/// What else is said beside grants in an exchange: a request, and settings (RFC 9113, 3.4), with room for cookies.
const REQUEST: u64 = 4_096;

/// How often in a row that has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refills {
    /// Bytes that were sent, the most of the times in a row.
    bytes: u32,
    /// Bytes that went the other way.
    few: u16,
    count: u16,
    /// The server granted it.
    by_server: bool,
    /// Within TLS the client may have offered HTTP/2: credit is told by its size.
    pub(super) may_be_h2: bool,
    /// As many bytes come each time, of which no more is known.
    alike: bool,
    /// It is no chance.
    pub(super) seen: bool,
}

at_rest! { Refills { bytes, few, count, by_server, may_be_h2, alike, seen } }

/// Who goes on by then does so at once.
pub(super) fn soon(track: &Tracker) -> Nanos {
    track.reaction_or_zero(End::Client) + track.rtt_or_zero().part(8).max(Nanos::millis(1))
}

impl Refills {
    /// The same after this exchange, where the one before ended then. It is no chance the second time in a
    /// row: in HTTP/2 if nothing but grants was said for what came, in SSH if as much came as the time
    /// before. Afar from who sends, an ACK beside a grant may have let it go: no more than before may come
    /// then, and has to leave room in TCP's window.
    #[inline]
    pub(super) fn after(
        self,
        ex: &Recorded,
        protocol: Option<&'static str>,
        track: &Tracker,
        before: Option<Nanos>,
    ) -> Refills {
        let Ends { client, server } = ex.bytes;
        let bytes = u32::try_from(client.max(server)).unwrap_or(u32::MAX);
        let by_server = server < client;
        let grantor = if by_server { End::Server } else { End::Client };
        let few = ex.bytes[grantor];
        let none = Refills { bytes, by_server, may_be_h2: self.may_be_h2, ..Refills::default() };
        let turned = by_server != self.by_server && self.bytes > 0;
        let least = if self.may_be_h2 { GRANTED_WITHIN_TLS } else { GRANTED };
        if bytes < least || turned {
            return none;
        }
        let granted = few > 0 && few == u64::from(ex.credit[grantor]);
        let same = u64::from(bytes.abs_diff(self.bytes)) <= u64::from(bytes) / 16;
        let has_room = || bytes <= track.counts(grantor).max_window / 4 * 3;
        let grows = bytes > self.bytes.saturating_add(self.bytes / 16);
        let told = || granted && (track.near(grantor.peer()) || !grows && has_room());
        let looks_so = match protocol {
            Some("http/2") => told(),
            Some("ssh") => same && few <= CREDIT && ex.turns <= 1,
            _ => self.may_be_h2 && told(),
        };
        // Who had more to send does so at once: what an application made meanwhile was no more. A client's
        // next bytes are the next exchange.
        let late = |from: Nanos, to: Nanos, trip: Nanos| to - from > trip + soon(track);
        let server_was_late =
            || !by_server && ex.response_start.is_none_or(|first| late(ex.start, first, track.rtt_or_zero()));
        if !looks_so || before.is_none_or(|before| late(before, ex.start, Nanos::ZERO)) || server_was_late() {
            return none;
        }
        let few = u16::try_from(few).unwrap_or(u16::MAX);
        let count = self.count.saturating_add(1);
        Refills {
            bytes: self.bytes.max(bytes),
            few,
            count,
            alike: protocol == Some("ssh"),
            seen: count >= 2,
            ..none
        }
    }

    /// Beside who sends, grants of the other end are turns within one exchange, where data is still on its
    /// way when they come: what they let go again and again, but for the request.
    pub(super) fn within(self, ex: &Recorded, track: &Tracker) -> Option<Refills> {
        let Ends { client, server } = ex.bytes;
        let by_server = server < client;
        let grantor = if by_server { End::Server } else { End::Client };
        let credit = u32::from(ex.credit[grantor]);
        let rest = ex.bytes[grantor].saturating_sub(u64::from(credit));
        let granted = (client.max(server) / u64::from(ex.turns.max(1))).try_into().unwrap_or(u32::MAX);
        let each = credit / ex.turns.max(1);
        let few = u16::try_from(each).unwrap_or(u16::MAX);
        // The first turn is the request, and the last flight what is left: of four turns or more half as much
        // for each is granted as often.
        let again = self.may_be_h2 && ex.turns >= 4 && each >= ENCRYPTED && granted >= GRANTED_WITHIN_TLS / 2;
        (again && rest <= REQUEST && track.near(grantor.peer())).then_some(Refills {
            bytes: granted,
            few,
            by_server,
            ..self
        })
    }

    /// The trips of a refilled window are those of the application that grants it.
    pub(super) fn rename(self, spans: &mut [Span], bytes: Option<u64>, track: &Tracker) {
        let rule = if self.alike { Rule::Refill } else { Rule::Granted };
        let sure = rule.at(Tap::Near);
        let facts = Facts::Refilled {
            bytes: bytes.unwrap_or(u64::from(self.bytes)),
            credit: u32::from(self.few),
            rtt: track.rtt_or_zero(),
        };
        for span in spans.iter_mut().filter(|s| s.cause == Cause::PathDelay) {
            span.cause = Cause::ApplicationWindow;
            span.side = Some(if self.by_server { Side::Server } else { Side::Client });
            span.confidence = sure.confidence;
            span.alternatives = sure.alternatives;
            span.facts = facts;
        }
    }
}
