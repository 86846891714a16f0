//! What the example of a finding tells: who waited for what, where its cause alone does not say.

use super::{Brief, TIMEOUT};
use crate::result::{Connection, Finding, Span};
use tcpwhy_base::{Cause, How, Nanos, Program, Side};

/// How long curl waits for `100 Continue`, as late as its timers and a busy host make it; a round trip may be
/// taken off.
const CURL_CONTINUES: std::ops::RangeInclusive<Nanos> = Nanos::millis(950)..=Nanos::millis(1_100);

/// The example is the wait for what a server says first (rule 9).
pub(super) fn waits_for_greeting(f: &Finding, c: &Brief) -> bool {
    let first = f.example.connection == c.id && f.example.exchange == 1;
    c.greeted && first && f.cause == Cause::ServerThink
}

/// A resolver asks the next name server, or the same one again, after 5 s (`RES_TIMEOUT`, twice for each by
/// `RES_DFLRETRY`: resolv.conf(5)).
const RESOLVER: Nanos = Nanos::secs(5);

/// The longest wait for the server took as long as a resolver needs to give up, to a hundredth.
pub(super) fn waits_for_names(f: &Finding) -> bool {
    let wait = f.example.end - f.example.start;
    let over = Nanos(wait.0 % RESOLVER.0);
    let times = wait.0 / RESOLVER.0;
    f.cause == Cause::ServerThink && (1..=6).contains(&times) && over <= wait.part(100)
}

/// The example is what Nagle's algorithm held behind the first words of the last flight of TLS.
pub(super) fn is_held_within_tls(f: &Finding, c: &Brief) -> bool {
    let first = f.example.connection == c.id && f.example.exchange <= 1;
    let nagle = matches!(f.cause, Cause::Nagle | Cause::NagleDelayedAck) && f.side == Some(Side::Client);
    c.held_within_tls && first && nagle
}

/// curl has sent the head of an upload with `Expect: 100-continue`, and no `100 Continue` came: it sends the
/// body after 1 s (`CURLOPT_EXPECT_100_TIMEOUT_MS`), which nothing but that wait takes so exactly.
pub(super) fn waits_to_continue(f: &Finding, c: &Brief) -> bool {
    let curl = c.programs[0].is_some_and(|(program, _)| program == Program::Libcurl);
    let wait = f.example.end - f.example.start;
    curl && f.cause == Cause::SenderPause && f.side == Some(Side::Client) && CURL_CONTINUES.contains(&wait)
}

/// The row for who had nothing to say.
pub(super) static EVENTS: How = How {
    system: "Events",
    text: "Few bytes, far apart, each of them gone at once: so come events, lines of a log, answers to a long poll. If there was nothing to say until then, nothing is wrong and nothing to gain; else ask why the program had it late",
};
/// Segments that may leave at once, whatever was before, and bytes where segments are large (RFC 6928, 2).
const INITIAL_WINDOW: u64 = 10;
const INITIAL_BYTES: u64 = 14_600;
/// The MSS of who named none (RFC 9293, 3.7.1).
const DEFAULT_MSS: u32 = 536;

/// So much of a segment options may take (RFC 9293, 3.1).
const MOST_OPTIONS: u64 = 40;

/// A pause as long as an idle time is for TCP: a timeout (RFC 5681, 4.1).
pub(super) fn idle(c: &Brief) -> Nanos {
    c.rtt.unwrap_or(Nanos::ZERO) + TIMEOUT
}

/// A writer that had nothing to say: never was more in flight than an initial window, so that each message
/// left as it was written; pauses were as long as idle times for TCP (a timeout, RFC 5681, 4.1), and less
/// than that window was sent for each such time (rule 110). Or no round trip had a segment of it, though
/// nothing held what was written: no buffer is filled with what comes so.
pub(super) fn is_stream_of_events(f: &Finding, c: &Brief) -> bool {
    let sender = match f.side {
        Some(Side::Client) => 0,
        Some(Side::Server) => 1,
        _ => return false,
    };
    let mss = u64::from(c.mss.unwrap_or(DEFAULT_MSS));
    let window = (INITIAL_WINDOW * mss).min(INITIAL_BYTES);
    let idle = idle(c);
    let waits = f.of_requests().0.max(0) as u64 / idle.0 as u64;
    f.cause == Cause::SenderPause
        && f.occurrences >= PATTERN
        && (f.range.longest >= idle || c.flights[sender] + MOST_OPTIONS < mss)
        && c.flights[sender] <= window
        && c.messages[sender] <= window.saturating_mul(waits)
}

/// The row for who keeps to a rate, or a clock.
pub(super) static RATE_LIMIT: How = How {
    system: "Rate limit",
    text: "The pauses of a message were alike ({pause} each, to a tenth): so sends who keeps to a rate (nginx `limit_rate`, HAProxy `bwlim-out`, Apache mod_ratelimit, `--limit-rate` of curl, `--bwlimit` of rsync) or to a clock of its own. If that is meant, nothing is wrong; else raise it",
};
/// Fewer pauses of one message may be alike by chance.
const RHYTHM: u32 = 10;
/// Shorter pauses may be the work on a piece, which takes equally long as well.
const SHORTEST: Nanos = Nanos::millis(10);

/// How long the pauses of client and server were within a message, where they were as alike as only a clock
/// makes them: ten or more, four of five within a tenth of the one in the middle (none of these figures is
/// derived).
pub(super) fn rhythms(c: &Connection) -> [Option<Nanos>; 2] {
    if c.budget.get(Cause::SenderPause) == Nanos::ZERO {
        return [None; 2];
    }
    [Side::Client, Side::Server].map(|side| c.exchanges.iter().find_map(|x| rhythm(&x.spans, side)))
}

fn rhythm(spans: &[Span], side: Side) -> Option<Nanos> {
    let pauses = || spans.iter().filter(|s| s.cause == Cause::SenderPause && s.side == Some(side));
    let count: u32 = pauses().map(|s| s.folded.max(1)).sum();
    if count < RHYTHM {
        return None;
    }
    let mean = |s: &Span| s.duration().part(i64::from(s.folded.max(1)));
    // Of spans that were folded into one the longest is known.
    let mut each: Vec<(Nanos, u32)> =
        pauses().filter(|s| is_alike(s.longest(), mean(s))).map(|s| (mean(s), s.folded.max(1))).collect();
    each.sort_unstable();
    let (mut before, half) = (0, each.iter().map(|p| p.1).sum::<u32>().div_ceil(2));
    let middle = each.iter().find(|p| {
        before += p.1;
        before >= half
    })?;
    let alike: u32 = each.iter().filter(|p| is_alike(p.0, middle.0)).map(|p| p.1).sum();
    (middle.0 >= SHORTEST && alike * 5 >= count * 4).then_some(middle.0)
}

fn is_alike(a: Nanos, b: Nanos) -> bool {
    Nanos((a - b).0.abs()).times(10) <= b
}

/// The limit of a buffer for so many bytes in flight: with its overhead it takes twice as many, here in whole MiB.
pub(super) fn buffer_for(need: u64) -> u64 {
    need.saturating_mul(2).div_ceil(1 << 20) << 20
}

/// How long each of its pauses was, where they were alike.
pub(super) fn rhythm_of(f: &Finding, c: &Brief) -> Option<Nanos> {
    let side = match f.side? {
        Side::Client => 0,
        Side::Server => 1,
        Side::Network => return None,
    };
    c.rhythms[side].filter(|_| f.cause == Cause::SenderPause && !is_stream_of_events(f, c))
}

/// Two pauses may be a header, its body and its end.
const PATTERN: u64 = 3;

/// What to raise where the limit is raised already, and the window stayed small.
pub(super) static BEGINS_SMALL: How = How {
    system: "Linux",
    text: "The limit is 32 MiB or more already, as the window scale says, and the window did not grow to it: raise what it begins with, `sysctl -w net.ipv4.tcp_rmem=\"4096 8388608 33554432\"` (the second value), for new connections; it does nothing where the program sets SO_RCVBUF",
};

/// What to raise where the window grew by itself, later than it was needed.
pub(super) static GROWS_LATE: How = How {
    system: "Linux",
    text: "The window grew by itself, but later than it was needed: raise what it begins with, `sysctl -w net.ipv4.tcp_rmem=\"4096 8388608 33554432\"` (the second value), for new connections; it does nothing where the program sets SO_RCVBUF",
};

/// What to look for where answers may have been corked.
pub(super) static CORKED: How = How {
    system: "Any",
    text: "Look in its log, trace or profile for {at} to {until} (UTC), connection {ends}. Had it written its answer long before, that was corked (meanwhile `ss -tino 'sport = :{own_port}'` shows `timer:(persist`): send the end of it without MSG_MORE, or clear TCP_CORK behind it",
};

/// More was in flight at another time than the buffer seemed to hold.
pub(super) static SET_AT_ALL: How = How {
    system: "Any",
    text: "First see whether one is set: meanwhile `ss -tmi 'sport = :{own_port}'` shows `sndbuf_limited`, and a `tb` that stays as it is. More was in flight at another time, which small buffers let through where a program writes much at once; if none is set, the program wrote no faster",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Frames;

    #[test]
    fn a_limit_that_is_needed_is_twice_the_window_in_whole_mib() {
        let mib = |need| buffer_for(need) >> 20;
        assert_eq!([1, 524_288, 524_289, 20_000_000].map(mib), [1, 1, 2, 39]);
        let how = tcpwhy_base::FixId::Rmem.info().how;
        let has = |what: &str| how.iter().filter(|row| row.text.contains(what)).count();
        assert_eq!((has("{need_buffer}"), has("from Linux 6.16 on that is the default")), (1, 1));
    }

    #[test]
    fn a_rhythm_is_ten_pauses_of_ten_milliseconds_four_of_five_of_them_alike() {
        let of = |us: &[i64]| {
            let pause = |&us: &i64| {
                let (cause, side) = (Cause::SenderPause, Some(Side::Server));
                Span::new(cause, side, Nanos::ZERO, Nanos::micros(us), Frames::new(0, 1, 2, &[1]))
            };
            let spans: Vec<Span> = us.iter().map(pause).collect();
            assert_eq!(rhythm(&spans, Side::Client), None);
            rhythm(&spans, Side::Server)
        };
        let ms = |n| Some(Nanos::millis(n));
        assert_eq!([of(&[10_000; 10]), of(&[10_000; 9]), of(&[9_999; 10])], [ms(10), None, None]);
        assert_eq!(of(&[50_000, 45_000, 55_000, 50_000, 50_000, 50_000, 50_000, 50_000, 1, 90_000]), ms(50));
        assert_eq!(of(&[50_000, 44_999, 55_000, 50_000, 50_000, 50_000, 50_000, 50_000, 1, 90_000]), None);
        let folded = |longest| {
            let end = Nanos::millis(200);
            let span = Span::new(
                Cause::SenderPause,
                Some(Side::Server),
                Nanos::ZERO,
                end,
                Frames::new(0, 1, 2, &[1]),
            );
            rhythm(&[Span { folded: 10, longest_folded: Nanos::millis(longest), ..span }], Side::Server)
        };
        assert_eq!((folded(22), folded(23)), (ms(20), None));
    }
}
