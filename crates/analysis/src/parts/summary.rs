//! What is said of a connection as a whole.

use crate::findings::{Basis, Finished};
use crate::parts::ledger::Ledger;
use crate::release::Habits;
use crate::rest::{Protocol, Whose, at_rest};
use crate::result::{self, Connection, Extremes, Path, Quality};
use crate::track::Tracker;
use std::mem::take;
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Program, Told};

/// Who a connection is between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) id: u32,
    pub(crate) ends: Ends<Endpoint>,
    pub(crate) roles_inferred: bool,
    pub(crate) file: u16,
    pub(crate) protocol: Option<&'static str>,
    /// As their first bytes named them.
    pub(crate) programs: Ends<Option<Program>>,
}

at_rest! { Identity { id as Whose, ends, roles_inferred, file, protocol as Protocol, programs } }

impl Identity {
    /// What is spoken.
    pub(crate) fn speaks(&mut self, protocol: &'static str) {
        self.protocol = Some(protocol);
    }

    /// Which program speaks at an end, if that is not known yet.
    pub(crate) fn runs(&mut self, end: End, program: Option<Program>) {
        let known = &mut self.programs[end];
        *known = known.or(program);
    }
}

/// The connection, without the parts that were given away.
pub(crate) fn summary(who: Identity, track: &mut Tracker, habits: &Habits, ledger: &mut Ledger) -> Finished {
    let (setup, last_response, sums) = ledger.close();
    set_limits(track, habits);
    let bandwidth_bps = bandwidth(track);
    let quality = track.quality();
    let count = |of: fn(&crate::track::Counts) -> u64| End::BOTH.map(|s| of(track.counts(s)));
    // Written where it stays: it is large.
    let room = Box::new_uninit();
    let connection = Connection {
        id: who.id,
        client: who.ends.client,
        server: who.ends.server,
        roles_inferred: who.roles_inferred,
        start: track.start(),
        end: track.now(),
        opened_by_handshake: !quality.has(Quality::MIDSTREAM),
        closed: track.closed(),
        vantage: track.vantage(),
        protocol: who.protocol,
        path: Path {
            // What a coarse clock cannot measure is not known.
            rtt: track.rtt().filter(|&rtt| rtt >= track.tick()),
            halves: End::BOTH.map(|s| track.reaction(s)),
            bandwidth_bps,
            offloaded: quality.has(Quality::OFFLOAD),
        },
        ends: End::BOTH.map(|s| end_of(s, track, habits, &who)),
        bytes: count(|c| c.bytes),
        packets: count(|c| c.packets),
        retransmitted: count(|c| c.retransmitted),
        quality,
        setup,
        exchanges: Vec::new(),
        exchanges_omitted: take(&mut sums.exchanges),
        gaps: Vec::new(),
        gaps_omitted: take(&mut sums.gaps),
        budget: sums.budget.clone(),
        gap_budget: sums.gap_budget.clone(),
        closed_after: closed_after(track, last_response),
        server_closed: server_closed(track).is_some(),
        too_late: sums.too_late,
        reset_unheard: sums.reset[0],
        reset_heard: sums.reset[1],
        gave_up: sums.gave_up,
        opening: sums.opening,
        cut_off: sums.cut_off,
        tail: sums.tail,
        findings: Vec::new(),
        findings_omitted: sums.rollups.0.len(),
        frames: track.frames(),
        taps: None,
    };
    let connection = Box::write(room, connection);
    let basis = Basis {
        rollups: take(&mut sums.rollups),
        quick_turns: sums.quick_turns,
        quick: sums.quick,
        requests: take(&mut sums.requests),
        told: false,
        outside: false,
        cut: false,
        file: who.file,
    };
    Finished { connection, basis }
}

/// Who speaks at an end: as the first bytes say, else as the server's port does.
fn program_of(s: End, who: &Identity) -> Option<(Program, Told)> {
    let by_port = || Program::of_port(who.ends.server.port).filter(|_| s == End::Server);
    let said = who.programs[s].map(|p| (p, Told::FirstBytes));
    said.or_else(|| by_port().map(|p| (p, Told::Port)))
}

/// Limits of what can be said that show only at the end.
fn set_limits(track: &mut Tracker, habits: &Habits) {
    let one_sided = track.one_sided();
    let syn_only = track.counts(End::Client).packets == u64::from(track.handshake().syns());
    if one_sided && !syn_only {
        track.limit(Quality::ONE_SIDED);
    }
    if track.tick() > Nanos::ZERO {
        track.limit(Quality::COARSE_CLOCK);
    }
    if track.split(habits.soonest_answer()).is_some() {
        track.limit(Quality::SPLIT);
    }
    if !one_sided && track.misses_bytes() {
        track.limit(Quality::CAPTURE_DROPS);
    }
    if !track.scale_known() && !syn_only {
        // A window that was never half used, even if it had no scale, needs none.
        let known = End::BOTH.iter().all(|&d| {
            let flow = track.flow(d);
            let idle = flow.cwnd.max_flight < u32::from(flow.raw_window) / 2;
            idle || track.window_shift(d.peer()).is_some()
        });
        track.limit(if known { Quality::SCALE_INFERRED } else { Quality::NO_WINDOW_SCALE });
    }
}

/// Of the busier direction, if it carried enough.
fn bandwidth(track: &mut Tracker) -> Option<u64> {
    let bytes = Ends::of(|s| track.counts(s).bytes);
    let busier = if bytes.client >= bytes.server { End::Client } else { End::Server };
    if bytes[busier] < 100_000 {
        return None;
    }
    track.rate(busier).map(|b| b as u64)
}

fn end_of(s: End, track: &Tracker, habits: &Habits, who: &Identity) -> result::End {
    let (flow, counts) = (track.flow(s), track.counts(s));
    result::End {
        mss: track.mss_option(s).map(u32::from),
        wscale: track.scale_of(s),
        window_shift: track.window_shift(s),
        initial_flight: (flow.cwnd.initial > 0).then_some(u64::from(flow.cwnd.initial)),
        max_window: (counts.max_window > 0).then_some(u64::from(counts.max_window)),
        max_flight: u64::from(flow.cwnd.max_flight),
        os: track.profile(s).os,
        delayed_ack: counts.delayed_ack.map(|(shortest, longest)| Extremes { shortest, longest }),
        min_rto: counts.min_timeout,
        nodelay_shown: habits.nodelay_shown(s),
        zero_windows: counts.zero_windows,
        probes: counts.probes,
        keepalives: counts.keepalives,
        reordered: counts.reordered,
        syn_repeats: counts.syn_retransmissions,
        duplicates: counts.duplicates,
        program: program_of(s, who),
    }
}

/// A client that acts only when the server closes: from the end of the response to the server's FIN.
fn closed_after(track: &Tracker, last_response: Option<Nanos>) -> Option<Nanos> {
    let (server, last) = (server_closed(track)?, last_response?);
    (server > last).then(|| server - last)
}

/// When the server closed, if its client had not before.
fn server_closed(track: &Tracker) -> Option<Nanos> {
    let client = track.fin_of(End::Client).unwrap_or(Nanos::MAX);
    track.fin_of(End::Server).filter(|&server| server < client)
}
