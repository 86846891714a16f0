//! Answers that are put together by hand: by what shows them, to be tried. Their structs grow, so that only
//! this crate can build them; what is not asked for here has the value of an answer that knows nothing of it,
//! and can be set.

use super::{
    Closed, Connection, End, Ended, Example, Exchange, Extremes, Finding, Fix, Frames, Gap, Omitted, Path,
    Quality, Refuted, Server, Setup, Span, Vantage,
};
use crate::login::Opening;
use crate::{Budget, Distribution, Facts};
use tcpwhy_base::{Cause, Endpoint, FixId, Nanos, Side, Source};

impl Span {
    /// A span that is sure, without facts.
    pub fn new(cause: Cause, side: Option<Side>, start: Nanos, end: Nanos, frames: Frames) -> Span {
        Span {
            cause,
            detail: None,
            side,
            start,
            end,
            frames,
            confidence: 1.0,
            alternatives: [None, None],
            facts: Facts::None,
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        }
    }
}

impl Setup {
    /// Of a connection without TLS.
    pub fn new(start: Nanos, end: Nanos, spans: Vec<Span>) -> Setup {
        Setup { start, end, bytes: [0, 0], tls_trips: 0, tls_asked_again: false, spans }
    }
}

impl Exchange {
    /// A complete one of one turn.
    pub fn new(id: u32, start: Nanos, end: Nanos, spans: Vec<Span>) -> Exchange {
        Exchange {
            id,
            start,
            request_end: None,
            response_start: None,
            end,
            with_setup: None,
            bytes: [0, 0],
            turns: 1,
            duplex: false,
            ended: Ended::Complete,
            cut: false,
            spans,
            named: None,
        }
    }
}

impl Gap {
    /// A stretch between exchanges.
    pub fn new(start: Nanos, end: Nanos, spans: Vec<Span>) -> Gap {
        Gap { start, end, spans }
    }
}

impl Connection {
    /// One without packets, of which nothing is known but who and when.
    pub fn new(id: u32, [client, server]: [Endpoint; 2], start: Nanos, end: Nanos) -> Connection {
        Connection {
            id,
            client,
            server,
            roles_inferred: false,
            start,
            end,
            opened_by_handshake: false,
            closed: Closed::Open,
            vantage: Vantage::Unknown,
            protocol: None,
            path: Path::default(),
            ends: [End::default(), End::default()],
            bytes: [0, 0],
            packets: [0, 0],
            retransmitted: [0, 0],
            quality: Quality::default(),
            setup: None,
            exchanges: Vec::new(),
            exchanges_omitted: Omitted::default(),
            gaps: Vec::new(),
            gaps_omitted: Omitted::default(),
            budget: Budget::default(),
            gap_budget: Budget::default(),
            closed_after: None,
            server_closed: false,
            too_late: false,
            reset_unheard: false,
            reset_heard: false,
            gave_up: None,
            opening: Opening::default(),
            cut_off: false,
            findings: Vec::new(),
            tail: None,
            findings_omitted: 0,
            frames: (0, 0),
            taps: None,
        }
    }
}

impl Example {
    /// A span of this exchange.
    pub fn new(connection: u32, exchange: u32, frames: Frames, start: Nanos, end: Nanos) -> Example {
        Example { connection, exchange, frames, start, end }
    }
}

impl Finding {
    /// So much time by one span, without a sentence, evidence or fixes.
    pub fn new(cause: Cause, side: Option<Side>, lost: Nanos, example: Example) -> Finding {
        Finding {
            cause,
            side,
            lost,
            share: 0.0,
            share_of_requests: 0.0,
            tail: Nanos::ZERO,
            idle: Nanos::ZERO,
            counted_elsewhere: Nanos::ZERO,
            link_full: None,
            in_turn: None,
            confidence: 1.0,
            unsure: Nanos::ZERO,
            occurrences: 1,
            range: Extremes { shortest: lost, longest: lost },
            connections: vec![example.connection],
            connection_count: 1,
            example,
            facts: Facts::None,
            text: None,
            evidence: Vec::new(),
            names: Vec::new(),
            more_names: false,
            fixes: Vec::new(),
            refuted: Vec::new(),
            replay: None,
        }
    }
}

impl Fix {
    /// A fix that nothing is known of but what it is.
    pub fn new(fix: FixId, place: &'static str) -> Fix {
        Fix {
            fix,
            place,
            how: Vec::new(),
            parameters: Vec::new(),
            guess: None,
            saves: None,
            predicted: None,
            replayed: false,
        }
    }
}

impl Refuted {
    /// What the capture says against a fix.
    pub fn new(fix: FixId, because: impl Into<String>) -> Refuted {
        Refuted { fix, because: because.into() }
    }
}

impl Server {
    /// One with the time of these exchanges.
    pub fn new(server: Endpoint, budget: Budget, times: Distribution) -> Server {
        Server {
            server,
            connections: 1,
            refused: 0,
            budget,
            idle: Nanos::ZERO,
            times,
            range: None,
            at_once: false,
            asks: Vec::new(),
            in_series: 0,
            pauses: Nanos::ZERO,
            within: None,
        }
    }
}
