//! Opening a connection: SYNs, their repeats and refusals, and the TLS handshake where one follows.

use crate::attribute::Context;
use crate::conn::{CLIENT, Conn, SERVER, UNKNOWN};
use crate::facts::Facts;
use crate::output::Output;
use crate::profile::Profile;
use crate::result::{Frames, Quality, Setup, Span};
use tcpwhy_base::{Cause, Nanos, Segment, Side, Tls};

/// What is known of the three-way handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    /// Needed until the setup is built.
    pub(crate) passed: Option<Box<Passed>>,
    /// A SYN, a SYN-ACK was seen.
    pub(crate) syn_seen: bool,
    pub(crate) syn_ack_seen: bool,
    pub(crate) done: bool,
    pub(crate) syns: u32,
    /// SYN-ACKs before the client's final ACK.
    pub(crate) syn_acks: u32,
    /// Payload on the SYN.
    pub(crate) syn_bytes: [u64; 2],
    /// The options of a SYN were cut off.
    pub(crate) options_cut: bool,
    /// What each side has sent within TLS.
    pub(crate) tls_seen: [u8; 2],
}

/// When the packets of a handshake passed, and their frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    /// First and last SYN.
    pub(crate) syn: Option<(Nanos, u64)>,
    pub(crate) last_syn: Option<(Nanos, u64)>,
    /// First and last SYN-ACK.
    pub(crate) syn_ack: Option<(Nanos, u64)>,
    pub(crate) last_syn_ack: Option<(Nanos, u64)>,
    pub(crate) refused: Option<(Nanos, u64)>,
}

impl Handshake {
    /// Changes what is known of the packets' times.
    pub(crate) fn note(&mut self) -> &mut Passed {
        self.passed.get_or_insert_default()
    }
}

impl Conn {
    pub(crate) fn on_syn(&mut self, s: usize, segment: &Segment, t: Nanos) {
        let is_syn_ack = segment.flags.ack();
        if is_syn_ack && s == CLIENT {
            return; // nobody answers a SYN of its own
        }
        let half = &mut self.half[s];
        let first_of_half = half.mss_option.is_none() && half.wscale.is_none();
        if segment.options.damaged || segment.trouble.has(tcpwhy_base::Trouble::CUT_HEADER) {
            self.handshake.options_cut = true;
        }
        if first_of_half {
            half.wscale = segment.options.wscale.map(|w| w.min(14));
            half.mss_option = segment.options.mss;
            self.profile[s] = Profile::from_syn(segment);
        }
        if !half.seen {
            half.start_at(segment.seq + 1);
        }
        let h = &mut self.handshake;
        if is_syn_ack {
            if h.syn_ack_seen {
                self.half[s].counts.syn_repeats += 1;
                self.half[s].counts.retransmitted += 1;
            }
            // Repeated after the handshake (or after data, where the capture began later).
            if self.setup.is_some() || self.half[CLIENT].counts.bytes > h.syn_bytes[CLIENT] {
                self.not_taken.1 += 1;
                return;
            }
            h.syn_acks += 1;
            h.syn_ack_seen = true;
            let once = h.syns == 1 && h.syn_acks == 1;
            let passed = h.note();
            passed.syn_ack.get_or_insert((t, segment.frame));
            passed.last_syn_ack = Some((t, segment.frame));
            // The fastest answer to the latest SYN is the server's reaction; not after repeats (Karn).
            if let Some(syn) = passed.last_syn.filter(|_| once) {
                let reaction = (t - syn.0).max(Nanos(1));
                self.turn[SERVER] = self.turn[SERVER].min(reaction);
            }
            let client = &mut self.half[CLIENT];
            client.start_at(segment.ack);
            client.acked = true;
            if segment.ack.before(client.nxt) && h.syn_bytes[CLIENT] > 0 {
                // The server did not take the data on the SYN; the client sends it again.
                client.counts.bytes -= h.syn_bytes[CLIENT].min(client.counts.bytes);
                h.syn_bytes[CLIENT] = 0;
                client.nxt = segment.ack;
                client.small_end = segment.ack;
            }
            client.una = segment.ack;
            client.edge = segment.ack + u32::from(segment.window);
            client.edge_known = true;
            client.window = u32::from(segment.window);
            self.learn_mss();
        } else {
            if h.syn_seen {
                self.half[s].counts.syn_repeats += 1;
                self.half[s].counts.retransmitted += 1;
            }
            h.syns += 1;
            h.syn_seen = true;
            if self.setup.is_none() {
                let passed = h.note();
                passed.syn.get_or_insert((t, segment.frame));
                passed.last_syn = Some((t, segment.frame));
            }
            if segment.len > 0 && h.syns == 1 {
                let client = &mut self.half[s];
                client.nxt = segment.seq + 1 + segment.len;
                client.counts.bytes += u64::from(segment.len);
                h.syn_bytes[s] = u64::from(segment.len);
            }
        }
        self.half[s].counts.max_window = self.half[s].counts.max_window.max(u32::from(segment.window));
    }

    /// Whether the window scales are known: both SYNs were seen whole, or the SYN-ACK refused scaling (it may only
    /// carry the option if the SYN did, RFC 7323, 2.2).
    pub(crate) fn scale_known(&self) -> bool {
        let h = &self.handshake;
        let refused = h.syn_ack_seen && self.half[SERVER].wscale.is_none();
        !h.options_cut && h.syn_ack_seen && (h.syn_seen || refused)
    }

    /// The scale of the windows that `s` offers: from the SYNs (0 if either end did not offer scaling), or read from how
    /// the windows move.
    pub(crate) fn window_shift(&self, s: usize) -> Option<u8> {
        if !self.scale_known() {
            return self.half[1 - s].scale.as_ref()?.known();
        }
        match (self.half[s].wscale, self.half[1 - s].wscale) {
            (Some(mine), Some(_)) => Some(mine),
            _ => Some(0),
        }
    }

    /// The payload of a full segment: the smaller of both MSS options, less the timestamp option (RFC 6691, 7323).
    fn learn_mss(&mut self) {
        let options = [self.half[0].mss_option, self.half[1].mss_option];
        let (Some(a), Some(b)) = (options[0], options[1]) else { return };
        let mss = u32::from(a.min(b));
        for half in &mut self.half {
            if half.mss == 0 {
                half.mss = mss.saturating_sub(12).max(1);
                half.mss_from_handshake = true;
            }
        }
    }

    /// Whether timestamps are on shows with the first segment after the SYNs.
    pub(crate) fn correct_mss(&mut self, segment: &Segment) {
        if segment.options.timestamps.is_none() && !segment.options.damaged {
            for half in &mut self.half {
                if half.mss_from_handshake && half.max_payload == 0 {
                    // May be a capture whose options were blanked: the sizes seen settle it (learn_size).
                    half.mss = half.mss.max(1);
                }
            }
        }
    }

    /// The client's first ACK of the SYN-ACK.
    pub(crate) fn finish_handshake(&mut self, segment: &Segment, t: Nanos) {
        let Some(syn_ack) = self.handshake.note().last_syn_ack else { return };
        if self.handshake.syn_acks == 1 {
            self.turn[CLIENT] = self.turn[CLIENT].min((t - syn_ack.0).max(Nanos(1)));
        }
        self.correct_mss(segment);
        self.handshake.done = true;
        self.build_setup(t, segment.frame);
    }

    /// Data without a SYN-ACK in the capture: what there is of a setup ends here.
    pub(crate) fn close_silent_setup(&mut self, t: Nanos) {
        if self.handshake.syn_seen || self.handshake.syn_ack_seen {
            self.build_setup(t, self.last_frame);
        }
    }

    /// Makes the setup's spans up to `end`.
    pub(crate) fn build_setup(&mut self, end: Nanos, end_frame: u64) {
        let passed = self.handshake.passed.take();
        let h = passed.as_deref().cloned().unwrap_or_default();
        let (syns, syn_acks) = (self.handshake.syns, self.handshake.syn_acks);
        let first = match (h.syn, h.syn_ack) {
            (Some(a), Some(b)) => a.min(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        let file = self.file;
        let repeated = syns > 1 && self.server_tap_saw_syns(&h);
        // Mostly it is one.
        let mut spans: Vec<Span> = Vec::with_capacity(1);
        let mut at = first;
        let mut span = |cause, side, upto: (Nanos, u64), key: &[u64], confidence, alternatives, facts| {
            let upto = (upto.0.min(end), upto.1);
            if upto.0 > at.0 {
                spans.push(Span {
                    cause,
                    detail: None,
                    side,
                    start: at.0,
                    end: upto.0,
                    frames: Frames::new(file, at.1, upto.1, key),
                    confidence,
                    alternatives,
                    facts,
                    folded: 1,
                });
                at = upto;
            }
        };
        if let (Some(syn), Some(last)) = (h.syn, h.last_syn)
            && syns > 1
        {
            let unanswered = h.syn_ack.is_none();
            // Answered each time: the SYN-ACK (or the ACK of it) was lost on its way.
            let answered = h.syn_ack.is_some_and(|(t, _)| t < last.0);
            let at_server = !answered && repeated;
            let cause = Cause::SynRetransmit;
            let over = last.0 - syn.0;
            let facts = if unanswered {
                Facts::Unanswered { syns, over }
            } else {
                Facts::SynRepeats { repeats: syns - 1, over, syn_ack: false, at_server, answered }
            };
            // Which of them it was shows only at the server (its counters, or this tap).
            let (side, alternatives) = if answered {
                (Some(Side::Network), [None, None])
            } else if at_server {
                (Some(Side::Server), [Some((Cause::AcceptQueueFull, 0.4)), Some((Cause::SynQueueFull, 0.2))])
            } else {
                (None, [Some((Cause::AcceptQueueFull, 0.25)), Some((Cause::SynQueueFull, 0.1))])
            };
            span(cause, side, last, &[syn.1, last.1], 0.85, alternatives, facts);
        }
        if let (Some(one), Some(last)) = (h.syn_ack, h.last_syn_ack)
            && syn_acks > 1
            && last.0 > one.0
        {
            let rtt = self.rtt().unwrap_or(Nanos::ZERO);
            let facts = Facts::SynRepeats {
                repeats: syn_acks - 1,
                over: last.0 - one.0,
                syn_ack: true,
                at_server: false,
                answered: false,
            };
            span(
                Cause::Handshake,
                Some(Side::Network),
                one,
                &[one.1],
                0.9,
                [None, None],
                Facts::RoundTrip { rtt },
            );
            span(
                Cause::SynRetransmit,
                None,
                last,
                &[one.1, last.1],
                0.8,
                [Some((Cause::AcceptQueueFull, 0.2)), None],
                facts,
            );
        }
        let rtt = self.rtt().unwrap_or(Nanos::ZERO);
        match h.refused {
            Some(rst) => span(
                Cause::Refused,
                Some(Side::Server),
                (end, end_frame.max(rst.1)),
                &[rst.1],
                0.95,
                [None, None],
                Facts::Refused,
            ),
            None if h.syn_ack.is_some() || self.handshake.done => span(
                Cause::Handshake,
                Some(Side::Network),
                (end, end_frame),
                &[h.last_syn.map_or(0, |s| s.1), h.last_syn_ack.map_or(0, |s| s.1), end_frame],
                0.97,
                [None, None],
                Facts::RoundTrip { rtt },
            ),
            None if syns > 1 => span(
                Cause::SynRetransmit,
                None,
                (end, end_frame),
                &[h.last_syn.map_or(0, |s| s.1)],
                0.7,
                [None, None],
                Facts::Unanswered { syns, over: end - first.0 },
            ),
            // One SYN and no answer in the capture, yet the connection went on.
            None => {
                span(
                    Cause::Unexplained,
                    None,
                    (end, end_frame),
                    &[first.1],
                    0.5,
                    [None, None],
                    Facts::OneSided,
                );
            }
        }
        self.setup = Some(Setup { start: first.0, end, bytes: self.handshake.syn_bytes, spans });
        self.mark = end;
        self.mark_frame = end_frame;
    }

    /// Repeated SYNs that passed a tap at the server, which answered only the last: it dropped them.
    fn server_tap_saw_syns(&self, h: &Passed) -> bool {
        self.turn[SERVER] != UNKNOWN
            && self.turn[CLIENT] != UNKNOWN
            && self.turn[SERVER].times(4) < self.turn[CLIENT]
            || self.handshake.syns > 1
                && h.syn_ack.zip(h.last_syn).is_some_and(|(sa, syn)| {
                    let reaction = sa.0 - syn.0;
                    self.now - sa.0 > reaction.times(4)
                })
    }

    /// TLS begins with this segment of the client.
    pub(crate) fn open_tls(&mut self, t: Nanos, segment: &Segment) {
        self.protocol = Some("tls");
        let (mark, mark_frame, file) = (self.mark, self.mark_frame, self.file);
        let near = self.near(CLIENT);
        let path = if near { Nanos::ZERO } else { self.turn_of(CLIENT) };
        if let Some(setup) = self.setup.as_mut().filter(|_| t > mark) {
            setup.spans.push(Span {
                cause: Cause::ClientThink,
                detail: None,
                side: Some(Side::Client),
                start: mark,
                end: t,
                frames: Frames::new(file, mark_frame, segment.frame, &[segment.frame]),
                confidence: 0.9,
                alternatives: [None, None],
                facts: Facts::Think { seen: t - mark, path },
                folded: 1,
            });
            setup.end = t;
        }
        self.mark = t;
        self.mark_frame = segment.frame;
    }

    /// This segment is the first with application data: the handshake is over. In TLS 1.3 the server's first
    /// flight holds records of that type too (RFC 8446, 5.2), before the client has answered.
    pub(crate) fn tls_ends(&mut self, s: usize, segment: &Segment) -> bool {
        self.handshake.tls_seen[s] |= segment.tls.0;
        let client_flights = self.ex.turns;
        if !segment.tls.has(Tls::DATA) {
            return false;
        }
        s == CLIENT || (client_flights > 1 && self.handshake.tls_seen[SERVER] & Tls::CHANGE_CIPHER != 0)
    }

    /// Moves what was recorded since the TLS handshake began into the setup.
    pub(crate) fn end_tls(&mut self, t: Nanos, segment: &Segment, parts: &mut Output) {
        // The trip to the segment that ends it belongs to the handshake.
        let s = self.side_of(segment);
        let before = crate::release::Before { nxt: self.half[s].nxt, small_end: self.half[s].small_end };
        let step = self.last_tls_step(s, segment, t, before);
        self.ex.push(step, self.rtt_or_zero());
        self.ex.last = t;
        self.ex.last_frame = segment.frame;
        self.flush_tls(parts);
    }

    /// Turns the recorded TLS steps into spans of the setup.
    pub(crate) fn flush_tls(&mut self, parts: &mut Output) {
        let mut spans = std::mem::take(&mut self.ex.done);
        let context = Context::of(self);
        context.attribute(&mut self.ex.steps, &mut self.ex.carry, &mut spans, &mut parts.limits);
        for span in &mut spans {
            if matches!(span.cause, Cause::PathDelay | Cause::Bandwidth) {
                span.cause = Cause::TlsHandshake;
            }
        }
        crate::attribute::join_neighbours(&mut spans);
        let (end, bytes, last_frame) = (self.ex.last, self.ex.bytes, self.ex.last_frame);
        if let Some(setup) = self.setup.as_mut() {
            setup.end = end;
            setup.bytes[0] += bytes[0];
            setup.bytes[1] += bytes[1];
            setup.spans.append(&mut spans);
        }
        self.mark = end;
        self.mark_frame = last_frame;
        self.ex.reset();
    }

    /// Nothing but SYNs (and perhaps a reset) was seen: the setup is all there is.
    pub(crate) fn finish_silent_setup(&mut self) {
        if self.setup.is_none() {
            let h = self.handshake.passed.as_deref();
            let last = h.and_then(|h| h.refused.or(h.last_syn_ack).or(h.last_syn));
            let (end, frame) = last.unwrap_or((self.now, self.last_frame));
            self.build_setup(end, frame);
        }
        if self.setup.is_some() && self.half[CLIENT].counts.packets == 0 {
            self.quality.set(Quality::ONE_SIDED);
        }
    }
}
