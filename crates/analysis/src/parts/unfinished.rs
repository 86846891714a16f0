//! Exchanges that were open when their connection ended.

use crate::attribute::never_repaired;
use crate::confidence::{Rule, Tap};
use crate::exchange::{ALERT, Recorded};
use crate::facts::{Facts, Over, Witnessed};
use crate::profile::WAKE_UP;
use crate::result::{Closed, Ended, Frames, Quality, Span};
use crate::track::{Moment, Repair, Tracker};
use tcpwhy_base::{Cause, End, Nanos, Side, Source};

/// PostgreSQL's `Terminate`, MySQL's `COM_QUIT`: nobody answers them. TLS wraps them in a record of 31 bytes at most.
const LAST_WORD: u64 = 5;
/// GOAWAY without debug data (RFC 9113, 6.8): the header of a frame and eight bytes.
const GOAWAY: u64 = 17;

/// A client's last words, with its FIN right behind them before an answer could have come, or as soon as a
/// program comes to it, are no request: they ask for nothing (rule 40). With TLS that is a `close_notify`, to
/// which a server's goodbye with its FIN is no answer, however late; `h2`: HTTP/2 may be spoken, whose
/// clients say GOAWAY before that.
pub(crate) fn is_goodbye(ex: &Recorded, track: &Tracker, protocol: Option<&'static str>, h2: bool) -> bool {
    let soon = track.rtt_or_zero().max(WAKE_UP);
    let said = ex.request_end.unwrap_or(ex.last);
    let closes = track.fin_of(End::Client).is_some_and(|fin| fin - said <= soon);
    let silent = ex.bytes.server == 0 && ex.last_sender == End::Client;
    let as_well = ex.bytes.server <= ALERT && ex.turns <= 1 && track.fin_of(End::Server).is_some();
    let tls = protocol == Some("tls");
    let most = if tls { 2 * ALERT + if h2 { GOAWAY } else { 0 } } else { LAST_WORD };
    closes
        && (silent && ex.bytes.client <= most || tls && as_well && ex.bytes.client <= ALERT && ex.may_close)
}

/// How an exchange ended that no response did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    pub(crate) ended: Ended,
    /// So long its capture went on in which no more of the connection passed.
    unheard: Nanos,
    /// Its client still waited for an answer when that ended (rule 150).
    pub(crate) waits_until: Option<Nanos>,
}

/// How the exchange that is open when the connection ends has ended; `None`: it was complete. `watched`: its capture
/// ended before it, and when that was; `is_asked`: its client is known to be the end that asks.
pub(crate) fn how_unfinished(
    ex: &Recorded,
    track: &Tracker,
    (protocol, is_asked): (Option<&'static str>, bool),
    watched: Option<Nanos>,
) -> Option<Unfinished> {
    let ended = is_unfinished(ex, track, protocol, watched.is_some())?;
    let open = watched.filter(|&until| ended == Ended::CaptureEnd && until > track.now());
    let unheard = open.map_or(Nanos::ZERO, |until| until - track.now());
    let waits_until = open.filter(|&until| waits_on(ex, track, (protocol, is_asked), until));
    Some(Unfinished { ended, unheard, waits_until })
}

/// Its client waits for an answer until then (rule 150): all that it asked has come, so that neither end had anything
/// to send, and it asks for something: whoever only tells is silent as well.
fn waits_on(
    ex: &Recorded,
    track: &Tracker,
    (protocol, is_asked): (Option<&'static str>, bool),
    until: Nanos,
) -> bool {
    let asked = ex.last_sender == End::Client && ex.bytes.server == 0 && is_delivered(track, End::Client);
    let open = End::BOTH.iter().all(|&s| track.fin_of(s).is_none() && !track.flow(s).is_shut());
    let lost = End::BOTH.iter().any(|&s| track.answer_never_came(s, until - ex.last).is_some());
    // HTTP has an answer to each request (RFC 9110, 3.4); elsewhere what the server said so far tells that it answers,
    // unless it spoke first: then the client may be who answers.
    let answers = match protocol {
        Some("http/1") => true,
        Some("ssh") => false,
        Some(_) => track.counts(End::Server).bytes > 0,
        None => track.counts(End::Server).bytes > 0 && is_asked,
    };
    // Grants and acknowledgements of HTTP/2 and `close_notify` are no requests, nor are the shortest of last words.
    let least = match protocol {
        Some("tls") => 2 * ALERT + GOAWAY,
        Some("http/2") => 2 * GOAWAY,
        _ => LAST_WORD,
    };
    let asks = ex.bytes.client > least && u64::from(ex.credit.client) < ex.bytes.client && !ex.splits();
    asked && open && !lost && answers && asks && !track.one_sided()
}

/// How it ended; `None`: it was complete.
fn is_unfinished(
    ex: &Recorded,
    track: &Tracker,
    protocol: Option<&'static str>,
    capture_end: bool,
) -> Option<Ended> {
    let sender = ex.last_sender;
    let flow = track.flow(sender);
    let closed = track.closed();
    let ended = match closed {
        Closed::Rst => Ended::Rst,
        Closed::Open if capture_end => Ended::CaptureEnd,
        Closed::Fin | Closed::Open => Ended::Silent,
    };
    if flow.is_shut() && track.now() - ex.last > track.rto(sender) {
        // Probed, or at least waited for: more was to come.
        return Some(ended);
    }
    let delivered = is_delivered(track, sender);
    if is_cut_off(ex, track, delivered) {
        return Some(Ended::Rst);
    }
    if track.never_came(sender, track.now()).is_some() {
        return Some(ended);
    }
    if ex.bytes.server > 0 && (delivered || sender == End::Server && closed != Closed::Open) {
        return None;
    }
    // A transfer in one direction that was acknowledged is complete; a request that others like it got an
    // answer to is not. A client that waited longer than a long pause before it closed had expected an
    // answer; of HTTP, where there is one to each request (RFC 9110, 3.4), one that did not close as soon as
    // it had asked.
    let closed_at = track.fin_of(End::Client).unwrap_or(track.now());
    let asks = protocol.is_some_and(|p| p.starts_with("http/"));
    let soon = track.rtt_or_zero().max(WAKE_UP);
    let waited = closed_at - ex.last > if asks { soon } else { track.long_pause(End::Client) };
    let one_way = ex.bytes.server == 0 && track.counts(End::Server).bytes == 0;
    if one_way && delivered && closed == Closed::Fin && !waited {
        return None;
    }
    if track.one_sided() || is_farewell(ex, track) {
        return None;
    }
    Some(ended)
}

/// All that `s` sent was acknowledged, but for its FIN.
fn is_delivered(track: &Tracker, s: End) -> bool {
    let (flow, fin_space) = (track.flow(s), u32::from(track.fin_of(s).is_some()));
    flow.acked && flow.outstanding() <= fin_space
}

/// A reset ended the answer, which its sender had not ended (rule 10). A server that resets a connection
/// after a long pause is rid of an idle one; a client that has all of what was sent may do without a FIN.
fn is_cut_off(ex: &Recorded, track: &Tracker, delivered: bool) -> bool {
    // A client that has closed, and resets what goes on coming, has not waited for all of it (RFC 9293,
    // 3.10.7.1): a segment of it or more, for last words of TLS and HTTP/2 come so as well.
    let flow = track.flow(End::Server);
    let more = flow.outstanding() >= flow.mss;
    let by_client = track.reset_by() == Some(End::Client) && more;
    let open = End::BOTH.iter().all(|&s| track.fin_of(s).is_none() || s == End::Client && by_client);
    let answering = ex.bytes.server > 0 && ex.last_sender == End::Server;
    let soon = track.now() - ex.last <= track.long_pause(End::Server);
    let reset = match track.reset_by() {
        Some(End::Server) => soon,
        Some(End::Client) => !delivered,
        None => false,
    };
    reset && open && answering && !track.one_sided()
}

/// The client's last words to a server that has closed (rule 40): its FIN acknowledges none of them, and its
/// kernel answers such late data with a reset (RFC 9293, 3.10.7; `tcp_rcv_state_process`). Nobody waits for
/// an answer if the client closes behind them, or if they are no more than a `close_notify`.
fn is_farewell(ex: &Recorded, track: &Tracker) -> bool {
    let too_late = track.came_too_late(End::Client, ex.bytes.client);
    let closes = track.fin_of(End::Client).is_some_and(|fin| fin - ex.last <= track.rtt_or_zero());
    let answered = track.closed() == Closed::Fin || track.reset_by() == Some(End::Server);
    ex.bytes.server == 0 && too_late && answered && (closes || ex.bytes.client <= ALERT && ex.may_close)
}

/// Of a request that a reset of its server ended, which nobody will answer: whether the server had closed before it came; else
/// whether that, which had given the connection up otherwise, had acknowledged nothing of it, or something (rule 162). A request
/// is what HTTP says in the clear, or no `close_notify`, and no other last word, behind which its client closes.
pub(super) fn resets(ex: &Recorded, track: &Tracker, protocol: Option<&'static str>) -> (bool, [bool; 2]) {
    let closes = track.fin_of(End::Client).is_some_and(|fin| fin - ex.last <= WAKE_UP);
    let asks = ex.bytes.client > ALERT || !ex.may_close || protocol == Some("http/1");
    if ex.bytes.server > 0 || !asks || closes || track.reset_by() != Some(End::Server) {
        return (false, [false; 2]);
    }
    let unheard = u64::from(track.flow(End::Client).outstanding()) >= ex.bytes.client;
    let open = track.fin_of(End::Server).is_none();
    (track.came_too_late(End::Client, ex.bytes.client), [open && unheard, open && !unheard])
}

/// Where it ends: at the last packet, or where a client gave up that had asked. With its FIN as soon as it
/// has asked it says that it asks no more, and waits.
pub(super) fn ends_at(ex: &Recorded, track: &Tracker) -> Moment {
    let asked = ex.last_sender == End::Client && ex.bytes.server == 0 && is_delivered(track, End::Client);
    let soon = track.rtt_or_zero().max(WAKE_UP);
    // Nor does it wait for the rest of an answer that it breaks off, or that never came.
    if let Some(fin) = track.fin_of(End::Client)
        && ex.bytes.server > 0
        && (track.reset_by() == Some(End::Client)
            || track.answer_never_came(End::Server, fin - ex.last).is_some())
    {
        return (fin.max(ex.last), ex.last_frame);
    }
    match track.fin_of(End::Client).filter(|&fin| asked && fin - ex.last > soon) {
        Some(gave_up) => (gave_up, ex.last_frame),
        None => (track.now(), track.last_frame()),
    }
}

/// When the client gave up a request, and how long it had waited (rule 163): it closed, or reset the connection, later than as soon as
/// it had asked, and the answer never came; or came to a client that resets what comes, as nobody reads it any more
/// (`tcp_rcv_state_process`; one that closed its side alone takes the answer).
pub(super) fn given_up(ex: &Recorded, track: &Tracker, is_unfinished: bool) -> Option<(Nanos, Nanos)> {
    let soon = track.rtt_or_zero().max(WAKE_UP);
    let by_client = track.reset_by() == Some(End::Client);
    let closed = track.fin_of(End::Client);
    let (asked, at) = match ex.response_start {
        Some(answered) => (ex.request_end?, closed.filter(|&at| by_client && at < answered)?),
        None if is_unfinished && ex.last_sender == End::Client => {
            (ex.last, closed.or(by_client.then_some(track.now()))?)
        }
        None => return None,
    };
    (at - asked > soon && track.fin_of(End::Server).is_none_or(|fin| fin > at)).then_some((at, at - asked))
}

/// Nobody waited for what came later. How the exchange ended, if it had its answer.
pub(super) fn give_up(spans: &mut Vec<Span>, gave_up: Option<(Nanos, Nanos)>, end: &mut Nanos) -> Ended {
    let Some((at, waited)) = gave_up.filter(|gave_up| gave_up.0 < *end) else { return Ended::Complete };
    *end = at;
    spans.retain(|s| s.start < at);
    if let Some(last) = spans.last_mut() {
        last.end = at;
        if last.cause == Cause::ServerThink {
            last.facts = Facts::NoAnswer { wait: waited, end: Over::GaveUp };
        }
    }
    Ended::Silent
}

/// What was repeated beside its receiver was needed where that acknowledged none of it: its host has dropped,
/// behind the tap, all that came (a packet filter, a connection that it or a balancer no longer knows).
pub(super) fn name_the_silent(ex: &Recorded, track: &Tracker, spans: &mut [Span]) {
    let flow = track.flow(End::Client);
    let unheard = ex.bytes.server == 0 && u64::from(flow.outstanding()) >= ex.bytes.client;
    if !unheard || track.one_sided() {
        return;
    }
    let tries = flow.recovery.as_ref().map_or(1, |r| r.retransmissions);
    let sure = Rule::DeadPeer.at(Tap::Near);
    let beside = !track.near(End::Client);
    let repeated = |s: &&mut Span| match s.facts {
        Facts::LostBehind { .. } => true,
        Facts::Loss { .. } | Facts::InRecovery { .. } => beside || s.cause == Cause::SpuriousRecovery,
        _ => false,
    };
    for span in spans.iter_mut().filter(repeated) {
        let wait = span.end - span.start;
        (span.cause, span.side) = (Cause::KeepaliveOrDeadPeer, Some(Side::Server));
        (span.confidence, span.alternatives) = (sure.confidence, sure.alternatives);
        span.facts = Facts::Silent { wait, tries };
    }
}

/// The spans from `ex.last` until then.
pub(super) fn tail(
    ex: &Recorded,
    (track, how): (&Tracker, Unfinished),
    (until, last_frame): Moment,
    file: u16,
    spans: &mut Vec<Span>,
) {
    let end = ex.last;
    let sender = ex.last_sender;
    let wait = until - end;
    // Half of the trip lies before the peer's work and half after it, as before a response that came.
    let near = track.near(sender.peer());
    let path = if near { Nanos::ZERO } else { track.reaction_or_zero(sender.peer()).min(wait) };
    let (rule, cause, side, facts) = what_for((track, how), sender, end, wait);
    // What was lost shows in the last packet, behind a FIN.
    let last_frame = if matches!(facts, Facts::Missing { .. }) { track.last_frame() } else { last_frame };
    let frames = Frames::new(file, ex.last_frame.min(last_frame), last_frame, &[ex.last_frame, last_frame]);
    let trip = Facts::RoundTrip { rtt: track.rtt_or_zero() };
    // What is on its way longer than a trip (rule 45) was delayed, lost, or not captured: nothing tells which.
    let rtt = track.rtt_or_zero();
    let known = if rtt > Nanos::ZERO { wait.min(rtt + rtt.part(64) + Nanos::micros(100)) } else { wait };
    let (path, late) = match facts {
        Facts::NoAnswer { .. } => (path, Nanos::ZERO),
        Facts::Missing { .. } if rule == Rule::AnswerNeverCame => (path, Nanos::ZERO),
        _ if rule == Rule::LastDataOnItsWay => (Nanos::ZERO, wait - known),
        _ => (Nanos::ZERO, Nanos::ZERO),
    };
    let outstanding = track.flow(sender).outstanding();
    let delayed =
        (Rule::Unrepeated, Cause::Unexplained, None, Facts::Wait { wait, outstanding, empty: wait });
    let travel = (Rule::RoundTripUnfinished, Cause::PathDelay, Some(Side::Network), trip);
    let mut start = end;
    for ((rule, cause, side, facts), upto) in [
        (travel, end + path.part(2)),
        ((rule, cause, side, facts), until - late - (path - path.part(2))),
        (if late > Nanos::ZERO { delayed } else { travel }, until),
    ] {
        if upto <= start {
            continue;
        }
        let sure = rule.at(Tap::Near);
        let drops = track.quality().has(Quality::CAPTURE_DROPS);
        let sure = if drops { sure.beside_drops(cause) } else { sure };
        spans.push(Span {
            cause,
            detail: None,
            side,
            start,
            end: upto,
            frames,
            confidence: sure.confidence,
            alternatives: sure.alternatives,
            facts,
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        });
        start = upto;
    }
}

/// What the exchange waited for when it was cut off.
fn what_for(
    (track, how): (&Tracker, Unfinished),
    sender: End,
    began: Nanos,
    wait: Nanos,
) -> (Rule, Cause, Option<Side>, Facts) {
    let flow = track.flow(sender);
    let peer = Some(Side::from(sender.peer()));
    let stuck = flow.outstanding() > 0 && !is_delivered(track, sender);
    let shut = flow.is_shut();
    let both_shut = shut && track.flow(sender.peer()).is_shut() && track.counts(sender.peer()).bytes > 0;
    let window = Facts::Closed { window: flow.window };
    // A reset that comes before a timer would run is an answer: the peer was neither silent nor gone.
    let reset = track.reset_by() == Some(sender.peer()) && wait < track.rto(sender);
    let answering = sender == End::Server && track.closed() == Closed::Rst;
    let on_its_way = (track.closed() == Closed::Open || answering) && wait < track.rto(sender);
    if stuck && on_its_way && !shut {
        // The capture, or a reset, ended while the data was on its way.
        let facts = Facts::RoundTrip { rtt: track.rtt_or_zero() };
        return (Rule::LastDataOnItsWay, Cause::PathDelay, Some(Side::Network), facts);
    }
    if let Some((rule, cause)) = name_the_lost(track, sender, began + wait, wait) {
        return (rule, cause, Some(Side::Network), Facts::Missing { packets: 0, wait });
    }
    if both_shut {
        let windows = End::BOTH.map(|end| track.flow(end.peer()).window);
        return (Rule::BothWindowsShut, Cause::MutualBlock, None, Facts::BothClosed { windows });
    }
    if shut && !stuck {
        return (Rule::NeverRead, Cause::SlowReader, peer, window);
    }
    if stuck && !reset {
        let retransmissions = flow.recovery.as_ref().map_or(0, |r| r.retransmissions);
        let tries = track.counts(sender).probes + retransmissions;
        // Who closes is there, and still waited for what was repeated in vain; and so is who gets what is smaller.
        let closed = track.fin_of(sender.peer()).is_some_and(|fin| fin > began);
        let whole = |kind| matches!(kind, Repair::BlackHole | Repair::TooBig { .. });
        let kind = track.repeats_in_vain(sender, began + wait).filter(|&kind| closed || whole(kind));
        if let Some(kind) = kind {
            let (rule, cause) = never_repaired(whole(kind));
            return (rule, cause, Some(Side::Network), Facts::Silent { wait, tries });
        }
        return (Rule::DeadPeer, Cause::KeepaliveOrDeadPeer, peer, Facts::Silent { wait, tries });
    }
    if answering && track.reset_by() == Some(sender) {
        // It had begun to answer, wrote no more, and gave up.
        let facts = Facts::Wait { wait, outstanding: 0, empty: wait };
        return (Rule::ThinkUnfinished, Cause::SenderPause, Some(Side::from(sender)), facts);
    }
    let cause = if sender == End::Client { Cause::ServerThink } else { Cause::ClientThink };
    // What TCP itself repeats would have passed again within a timeout.
    let quiet = how.waits_until.is_some() && how.unheard > track.rto(sender.peer());
    let rule = if quiet { Rule::QuietToTheEnd } else { Rule::ThinkUnfinished };
    (rule, cause, peer, no_answer((track, how), sender, began, wait))
}

/// What `sender` sent never came, or what should have answered it (rule 106): full segments where smaller
/// ones passed, or anything.
fn name_the_lost(track: &Tracker, sender: End, until: Nanos, wait: Nanos) -> Option<(Rule, Cause)> {
    if let Some(lost) = track.never_came(sender, until) {
        return Some(never_repaired(lost.whole));
    }
    let rest = track.answer_never_came(sender, wait).map(|lost| (Rule::RestNeverCame, lost));
    let all = || Some((Rule::AnswerNeverCame, track.answer_never_came(sender.peer(), wait)?));
    let (rule, lost) = rest.or_else(all)?;
    Some((rule, if lost.whole { Cause::PathMtu } else { Cause::RetransmissionTimeout }))
}

/// How long `sender` waited for an answer, and what ended that.
fn no_answer((track, how): (&Tracker, Unfinished), sender: End, began: Nanos, wait: Nanos) -> Facts {
    let peer = sender.peer();
    // A FIN before the request was none of its answer.
    let fin = |s: End| track.fin_of(s).filter(|&fin| fin >= began);
    if let Some(fin) = fin(peer).filter(|&at| fin(sender).is_none_or(|own| at < own)) {
        return Facts::NoAnswer { wait: fin - began, end: Over::PeerClosed };
    }
    if let Some(fin) = fin(sender) {
        return Facts::NoAnswer { wait: fin - began, end: Over::GaveUp };
    }
    let end = match track.reset_by() {
        Some(who) if who == peer => Over::PeerReset,
        Some(_) => Over::GaveUp,
        None if how.unheard > Nanos::ZERO && how.waits_until.is_none() => Over::Unheard,
        None => Over::CaptureEnded,
    };
    Facts::NoAnswer { wait, end }
}

/// From the last byte of a response until the client read it.
pub(super) fn late_read(ex: &Recorded, file: u16, read: Nanos) -> Span {
    let sure = Rule::Witnessed.at(Tap::Near);
    Span {
        cause: Cause::ReaderLate,
        detail: None,
        side: Some(Side::Client),
        start: ex.last,
        end: read,
        frames: Frames::new(file, ex.last_frame, ex.last_frame, &[ex.last_frame]),
        confidence: sure.confidence,
        alternatives: sure.alternatives,
        facts: Facts::Told(Witnessed::Late { wait: read - ex.last }),
        folded: 1,
        longest_folded: Nanos::ZERO,
        source: Source::Kernel,
    }
}
