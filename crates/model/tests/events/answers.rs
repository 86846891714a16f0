//! Questions: what could be changed, what it gains, which changes go together; many runs; what cannot be.

use crate::script::*;
use tcpwhy_base::{Chosen, Cork, FixId, Nanos, Step, Turn, What, Workload};
use tcpwhy_model::{Change, Congestion, MAX_EVENTS, Question, Scenario, Spread, Tried, check, run, useless};

fn question(scenario: Scenario) -> Question {
    Question { scenario, skip: 0, max_events: MAX_EVENTS }
}

fn said(c: &Change) -> String {
    let comparison = if c.comparison { " (comparison)" } else { "" };
    format!("{:?} {}: {}{comparison}", c.fix, c.place, c.what)
}

fn offered(s: &Scenario) -> Vec<String> {
    question(s.clone()).changes().iter().map(said).collect()
}

/// Nothing is offered that is set already or could not matter.
#[test]
fn changes_are_offered_where_they_change_something() {
    let small = request(path(40), &[100], &[200]);
    same(
        &offered(&small),
        "LargerMtu path: an MTU of 9000 instead of 1500
        ReuseConnections path: a connection that is kept and in use
        CloserServer path: half the round trip (comparison)",
    );
    let nagle = host(request(path(40), &[100, 100], &[200]), 0, |h| h.nodelay = false);
    same(
        &offered(&nagle),
        "Nodelay client: TCP_NODELAY
        OneWrite client: each message in one write
        LargerMtu path: an MTU of 9000 instead of 1500
        ReuseConnections path: a connection that is kept and in use
        CloserServer path: half the round trip (comparison)",
    );
    let mut all = both(request(path(40), &[30_000], &[40_000]), |h| {
        (h.nodelay, h.cork) = (false, Cork::Always);
        (h.sndbuf, h.rcvbuf, h.write_chunk) = (Some(10_000), Some(20_000), Some(1000));
    });
    (all.workload.requests, all.workload.turns[0].before) = (3, ms(500));
    all.links[0].rate = Some(12_000_000);
    same(
        &offered(&all),
        "Nodelay client: TCP_NODELAY
        Nodelay server: TCP_NODELAY
        Nodelay both: TCP_NODELAY
        OneWrite client: each message in one write
        OneWrite server: each message in one write
        OneWrite both: each message in one write
        Uncork client: no TCP_CORK left set
        Uncork server: no TCP_CORK left set
        Uncork both: no TCP_CORK left set
        Initcwnd client: initial window of 21 segments (ip route … initcwnd)
        Initcwnd server: initial window of 28 segments (ip route … initcwnd)
        Initcwnd both: initial window of 28 segments (ip route … initcwnd)
        NoIdleRestart client: tcp_slow_start_after_idle=0
        NoIdleRestart server: tcp_slow_start_after_idle=0
        NoIdleRestart both: tcp_slow_start_after_idle=0
        UnsetSndbuf client: SO_SNDBUF not set
        UnsetSndbuf server: SO_SNDBUF not set
        UnsetSndbuf both: SO_SNDBUF not set
        UnsetRcvbuf client: SO_RCVBUF not set
        UnsetRcvbuf server: SO_RCVBUF not set
        UnsetRcvbuf both: SO_RCVBUF not set
        CongestionControl client: BBR instead of cubic
        CongestionControl server: BBR instead of cubic
        CongestionControl both: BBR instead of cubic
        LargerMtu path: an MTU of 9000 instead of 1500
        FewerRoundTrips path: all requests at once (pipelined or batched)
        CloserServer path: half the round trip (comparison)
        FasterLink path: twice the bandwidth (comparison)",
    );
}

/// Ten segments of 1448 bytes are the initial window: one byte more is an occasion to raise it. 100 segments
/// are the most.
#[test]
fn the_initial_window_is_raised_to_what_is_sent() {
    let of = |n: u64| {
        let rows = offered(&request(path(40), &[100], &[n]));
        rows.into_iter().filter(|r| r.starts_with("Initcwnd")).collect::<Vec<_>>()
    };
    same(&of(14_480), "");
    same(&of(14_481), "Initcwnd server: initial window of 11 segments (ip route … initcwnd)");
    same(&of(144_801), "Initcwnd server: initial window of 100 segments (ip route … initcwnd)");
    // A write that ends short does not fill its last segment.
    same(
        &offered(&request(path(40), &[150, 20_480], &[100]))[1..2],
        "Initcwnd client: initial window of 16 segments (ip route … initcwnd)",
    );
    let q = question(request(path(40), &[100], &[144_801]));
    let c = q.changes().into_iter().find(|c| c.fix == FixId::Initcwnd).unwrap();
    assert_eq!(c.question.scenario.hosts[1].initcwnd, Some(100));
    assert_eq!((q.mss(), c.question.scenario.hosts[0].initcwnd), (1448, None));
}

/// BBR is offered to what is long where something is lost or slow: any of three is reason enough.
#[test]
fn bbr_is_offered_where_packets_are_lost_or_wait() {
    let offers =
        |s: &Scenario| question(s.clone()).changes().iter().any(|c| c.fix == FixId::CongestionControl);
    let bulk = request(path(40), &[100], &[30_000]);
    assert!(!offers(&bulk));
    assert!(offers(&link(bulk.clone(), 1, |l| l.loss_ppm = 1)));
    assert!(offers(&link(bulk.clone(), 0, |l| l.rate = Some(1_000_000))));
    assert!(offers(&lose(bulk.clone(), 1, &[What::Data(1)])));
    let short = link(request(path(40), &[100], &[300]), 1, |l| l.loss_ppm = 1);
    assert!(!offers(&short));
    let bbr = both(link(bulk, 1, |l| l.loss_ppm = 1), |h| h.stack.congestion = Some(Congestion::Bbr));
    assert!(!offers(&bbr));
}

/// Half the round trip is a comparison from more than a millisecond on.
#[test]
fn a_closer_server_is_no_comparison_on_a_short_path() {
    let closer = |rtt: Nanos| {
        let s = Scenario::with_path(rtt, None, None, 9000);
        let s = request(s, &[100], &[200]);
        question(s).changes().into_iter().find(|c| c.fix == FixId::CloserServer)
    };
    assert!(closer(Nanos::millis(1)).is_none());
    let c = closer(Nanos::millis(1) + Nanos(2)).expect("more than 1 ms");
    assert!(c.comparison && c.place == "path");
    assert_eq!(c.question.scenario.rtt(), Nanos(500_000), "each way to half, rounded down");
}

/// What each change does to the scenario.
#[test]
fn changes_do_what_they_say() {
    let mut s = both(request(path(40), &[10, 20], &[30_000]), |h| {
        (h.nodelay, h.cork) = (false, Cork::Always);
        (h.sndbuf, h.rcvbuf) = (Some(10_000), Some(20_000));
    });
    (s.workload.requests, s.workload.turns[0].before, s.workload.reconnect_every) = (3, ms(500), 1);
    s.workload.turns[0].request.insert(1, Step::Pause(ms(3)));
    s.links[0].rate = Some(12_000_000);
    s.links[1].drops = vec![Chosen { what: What::Data(1), connection: 0 }];
    s.links[1].loss_ppm = 5;
    let q = question(s);
    let with = |fix: FixId, place: &str| {
        let found = q.changes().into_iter().find(|c| c.fix == fix && c.place == place);
        found.unwrap_or_else(|| panic!("{fix:?} {place} is not offered")).question.scenario
    };
    let both = with(FixId::Nodelay, "both");
    assert!(both.hosts[0].nodelay && both.hosts[1].nodelay);
    let one = with(FixId::Nodelay, "client");
    assert!(one.hosts[0].nodelay && !one.hosts[1].nodelay);
    // The pause stands before the one write.
    assert_eq!(
        with(FixId::OneWrite, "client").workload.turns[0].request,
        [Step::Pause(ms(3)), Step::Write(30)]
    );
    assert_eq!(with(FixId::Uncork, "server").hosts[1].cork, Cork::Never);
    assert_eq!(with(FixId::NoIdleRestart, "server").hosts[1].stack.idle_restart, Some(false));
    assert_eq!(with(FixId::UnsetSndbuf, "client").hosts[0].sndbuf, None);
    assert_eq!(with(FixId::UnsetRcvbuf, "client").hosts[0].rcvbuf, None);
    assert_eq!(with(FixId::LargerMtu, "path").mtu, 9000);
    let clean = with(FixId::FixLoss, "path");
    assert!(clean.links[1].drops.is_empty() && clean.links[1].loss_ppm == 0);
    assert_eq!(with(FixId::ReuseConnections, "path").workload.reconnect_every, 0);
    assert_eq!(with(FixId::FasterLink, "path").links[0].rate, Some(24_000_000));
    assert_eq!(with(FixId::CloserServer, "path").rtt(), ms(20));
}

/// A warm connection serves the request three times before the one that counts.
#[test]
fn a_warm_connection_has_served_before() {
    let mut q = question(request(path(40), &[100], &[30_000]));
    q.warm(Some(ms(100)));
    let w = &q.scenario.workload;
    assert_eq!((q.skip, w.turns.len(), w.repeat_from, w.requests), (3, 4, 3, 1));
    assert_eq!(w.turns[3].before, ms(100));
    let a = q.ask().unwrap();
    // The first answer takes two trips, the others one: 40 + 80 + 40 + 40, and 100 ms.
    assert_eq!((time(a.total), a.turns.len()), ("40".into(), 1));
    assert_eq!(time(a.start), "300");
    let stories = q.stories(&a, 0);
    assert!(stories[0].setup.is_empty());
    assert_eq!(stories[0].exchanges.iter().map(|x| x.turn).collect::<Vec<_>>(), [3]);
    let budget: Vec<_> = q.budget(&a).iter().map(|b| (b.0.id(), time(b.2))).collect();
    assert_eq!(budget, [("path_delay", "40".to_owned())]);
}

/// Several requests on a warm connection: the repeated turn is the request itself.
#[test]
fn a_warm_series_repeats_the_request() {
    let mut s = request(path(40), &[100], &[200]);
    s.workload.requests = 3;
    let mut q = question(s);
    q.warm(Some(ms(100)));
    let w = &q.scenario.workload;
    assert_eq!((q.skip, w.turns.len(), w.repeat_from, w.requests), (3, 5, 4, 2));
    let a = q.ask().unwrap();
    assert_eq!((time(a.total), a.turns.len()), ("120".into(), 3));
    // From the first connect, what is not warm.
    let cold = question(request(path(40), &[100], &[200])).ask().unwrap();
    assert_eq!(
        (time(cold.start), time(cold.total), cold.turns.clone()),
        ("0".into(), "80".into(), vec![ms(40)])
    );
    let budget: Vec<_> = question(request(path(40), &[100], &[200]))
        .budget(&cold)
        .iter()
        .map(|b| (b.0.id(), time(b.2)))
        .collect();
    assert_eq!(budget, [("handshake", "40".to_owned()), ("path_delay", "40".to_owned())]);
}

fn ranked(s: &Scenario) -> (Vec<String>, Option<(Vec<usize>, String)>) {
    let q = question(s.clone());
    let base = q.ask().expect("possible").total;
    let each: Vec<Tried> = q.changes().into_iter().filter_map(|c| c.ask(base)).collect();
    let r = q.rank(base, each);
    let rows = r
        .each
        .iter()
        .map(|t| format!("{:?} {} {} {}", t.change.fix, t.change.place, time(t.predicted), time(t.gain)));
    (rows.collect(), r.together.map(|(rows, best)| (rows, time(best))))
}

/// Best first; together go those that take a fiftieth more off: an MTU of 9000 would save headers alone.
#[test]
fn changes_are_ranked_and_added_up() {
    let s = link(request(path(40), &[100, 100], &[30_000]), 1, |l| l.rate = Some(100_000_000));
    let s = both(s, |h| h.nodelay = false);
    let (rows, together) = ranked(&s);
    same(
        &rows,
        "CloserServer path 81.42048 80
        OneWrite client 121.41632 40.00416
        Nodelay client 121.42048 40
        Nodelay both 121.42048 40
        LargerMtu path 122.42976 38.99072
        Initcwnd server 122.50048 38.92
        ReuseConnections path 124 37.42048
        FasterLink path 160.71024 0.71024
        Nodelay server 161.42048 0
        CongestionControl server 174.078725 -12.658245",
    );
    assert_eq!(together, Some((vec![1, 4, 6], "42.41664".into())));
    // 2 Mbit/s: on a connection in use larger packets save 2.3 of 163 ms, less than a fiftieth.
    let slow = link(request(path(40), &[100], &[20_000]), 1, |l| l.rate = Some(2_000_000));
    let (rows, together) = ranked(&slow);
    same(
        &rows,
        "ReuseConnections path 122.912 40.448
        CloserServer path 123.36 40
        FasterLink path 134.68 28.68
        LargerMtu path 161.072 2.288
        Initcwnd server 163.36 0
        CongestionControl server 163.36 0",
    );
    assert_eq!(together, None);
    // Where losses are drawn one run of them together would be an accident.
    let (_, together) = ranked(&link(s, 0, |l| l.loss_ppm = 1));
    assert_eq!(together, None);
}

/// Useless is what gains less than a hundredth, of what is often advised.
#[test]
fn a_gain_of_a_hundredth_is_not_useless() {
    let change = question(request(path(40), &[100, 100], &[200])).changes();
    let base = ms(100);
    let tried = |fix: FixId, gain: Nanos| {
        let change = Change { fix, ..change[0].clone() };
        Tried { change, predicted: base - gain, gain }
    };
    let each = [
        tried(FixId::Nodelay, ms(1)),
        tried(FixId::Nodelay, ms(1) - Nanos(1)),
        tried(FixId::OneWrite, Nanos::ZERO),
        tried(FixId::LargerMtu, Nanos(-5)),
    ];
    let found: Vec<_> = useless(&each, base).map(|t| (t.change.fix, t.gain.0)).collect();
    assert_eq!(found, [(FixId::Nodelay, 999_999), (FixId::LargerMtu, -5)]);
}

/// Run 0 is the question; others draw losses anew, move the ticks, and draw each wake-up from a half to one and a half.
#[test]
fn varied_runs_differ_in_their_chances_alone() {
    let mut s = request(path(40), &[100], &[200]);
    s.hosts.iter_mut().for_each(|h| h.stack.wake = Nanos::micros(50));
    s.workload = Workload::serial(s.workload.turns[0].clone(), 300);
    let q = question(s);
    let zero = q.varied(0);
    assert_eq!((zero.scenario.seed, zero.scenario.hosts[1].stack.phase), (1, Nanos(1)));
    // From the arrival of a request until its answer leaves.
    let wakes = |n: u32| {
        let passages = q.varied(n).ask().unwrap().outcome.passages;
        let with_data = passages.into_iter().filter(|p| p.packet.len > 0).collect::<Vec<_>>();
        let pairs = with_data.chunks_exact(2).filter_map(|p| Some(p[1].sent - p[0].arrived?));
        pairs.map(|t| t.0 / 1000).collect::<Vec<_>>()
    };
    // The first is that of the thread that accepts.
    assert!(wakes(0)[1..].iter().all(|&w| w == 50));
    let drawn = wakes(1)[1..].to_vec();
    assert!(drawn.iter().all(|w| (25..=75).contains(w)), "{drawn:?}");
    assert!(drawn.iter().any(|w| *w < 28) && drawn.iter().any(|w| *w > 72));
    assert_eq!(drawn, wakes(1)[1..]);
    assert_ne!(drawn, wakes(2)[1..]);
    let phases: Vec<Nanos> =
        (1..200).flat_map(|n| q.varied(n).scenario.hosts.map(|h| h.stack.phase)).collect();
    assert!(phases.iter().all(|p| (Nanos::ZERO..ms(4)).contains(p)));
    assert!(
        phases.iter().any(|p| *p > Nanos::micros(3900)) && phases.iter().any(|p| *p < Nanos::micros(100))
    );
    assert!((1..200).all(|n| q.varied(n).scenario.seed != 1));
    assert_eq!(q.varied(7).scenario.seed, q.varied(7).scenario.seed);
    assert_ne!(q.varied(7).scenario.seed, q.varied(8).scenario.seed);
    assert!(!q.is_random());
    for change in [
        (|l: &mut tcpwhy_base::Link| l.loss_ppm = 1) as fn(&mut tcpwhy_base::Link),
        |l| l.duplicate_ppm = 1,
        |l| l.jitter = Nanos(1),
    ] {
        assert!(question(link(q.scenario.clone(), 1, change)).is_random());
    }
}

/// A gap of a millisecond, or of a twentieth, does not part two patterns; the more frequent comes first, then
/// the shorter.
#[test]
fn patterns_are_parted_by_gaps() {
    let patterns = |us: &[i64]| {
        let runs = us.iter().zip(0..).map(|(&t, n)| (n, Nanos::micros(t))).collect();
        Spread::new(runs, ms(1))
            .unwrap()
            .patterns()
            .iter()
            .map(|p| (p.runs, p.typical, p.median.0 / 1000))
            .collect::<Vec<_>>()
    };
    assert_eq!(patterns(&[10_000, 11_000]), [(2, 0, 10_000)]);
    assert_eq!(patterns(&[10_000, 11_001]), [(1, 0, 10_000), (1, 1, 11_001)]);
    assert_eq!(patterns(&[100_000, 105_000]), [(2, 0, 100_000)]);
    assert_eq!(patterns(&[100_000, 105_001]), [(1, 0, 100_000), (1, 1, 105_001)]);
    let s = Spread::new((0..100).map(|n| (n, Nanos(i64::from(n)))).collect(), ms(1)).unwrap();
    assert_eq!((s.runs(), s.percentile(0).0, s.percentile(1).0, s.percentile(50).0), (100, 0, 0, 49));
    assert_eq!((s.percentile(99).0, s.percentile(100).0, s.range()), (98, 99, (Nanos(0), Nanos(99))));
}

/// Each limit of a scenario, from both sides.
#[test]
fn what_cannot_be_is_refused() {
    let base = request(path(40), &[100], &[200]);
    let fine = |change: &dyn Fn(&mut Scenario)| {
        let mut s = base.clone();
        change(&mut s);
        check(&s).is_ok()
    };
    type Set<'a> = &'a dyn Fn(&mut Scenario);
    let cases: [(Set<'_>, Set<'_>); 16] = [
        (&|s| s.mtu = 68, &|s| s.mtu = 67),
        (&|s| s.mtu = 65_535, &|s| s.mtu = 65_536),
        (&|s| s.links[1].delay = Nanos::ZERO, &|s| s.links[1].delay = Nanos(-1)),
        (&|s| s.links[0].jitter = Nanos::ZERO, &|s| s.links[0].jitter = Nanos(-1)),
        (&|s| s.links[0].rate = Some(1), &|s| s.links[0].rate = Some(0)),
        (&|s| s.links[0].queue_bytes = Some(1500), &|s| s.links[0].queue_bytes = Some(1499)),
        (&|s| s.links[1].queue_packets = Some(1), &|s| s.links[1].queue_packets = Some(0)),
        (&|s| s.links[1].black_hole_over = Some(68), &|s| s.links[1].black_hole_over = Some(67)),
        (&|s| s.hosts[0].sndbuf = Some(1), &|s| s.hosts[0].sndbuf = Some(0)),
        (&|s| s.hosts[1].rcvbuf = Some(1), &|s| s.hosts[1].rcvbuf = Some(0)),
        (&|s| s.hosts[1].initcwnd = Some(1), &|s| s.hosts[1].initcwnd = Some(0)),
        (&|s| s.hosts[1].read_chunk = 1, &|s| s.hosts[1].read_chunk = 0),
        (&|s| s.hosts[0].write_chunk = Some(1), &|s| s.hosts[0].write_chunk = Some(0)),
        (&|s| s.hosts[0].read_rate = Some(1), &|s| s.hosts[0].read_rate = Some(0)),
        (&|s| s.limit = Nanos(1), &|s| s.limit = Nanos::ZERO),
        (&|s| s.workload.requests = 1, &|s| s.workload.requests = 0),
    ];
    for (n, (good, bad)) in cases.iter().enumerate() {
        assert!(fine(*good), "case {n}");
        assert!(!fine(*bad), "case {n}");
    }
    assert!(!fine(&|s| s.connections = 0) && !fine(&|s| s.workload.turns.clear()));
    let turn = |change: &dyn Fn(&mut Turn)| fine(&|s| change(&mut s.workload.turns[0]));
    assert!(turn(&|t| t.think = Nanos::ZERO) && !turn(&|t| t.think = Nanos(-1)));
    assert!(turn(&|t| t.before = Nanos::ZERO) && !turn(&|t| t.before = Nanos(-1)));
    assert!(
        turn(&|t| t.request.push(Step::Pause(Nanos::ZERO)))
            && !turn(&|t| t.response.push(Step::Pause(Nanos(-1))))
    );
    assert!(turn(&|t| t.request.clear()) && turn(&|t| t.response.clear()));
    assert!(!turn(&|t| (t.request, t.response) = (vec![], vec![])));
    let most = |n| vec![Step::Write(n)];
    assert!(turn(&|t| t.request = most(1 << 30)) && !turn(&|t| t.request = most((1 << 30) + 1)));
    assert!(turn(&|t| t.response = most(1 << 30)) && !turn(&|t| t.response = most((1 << 30) + 1)));
}

/// A run is cut off after so many events, not before.
#[test]
fn events_are_counted() {
    let s = request(path(40), &[100], &[200]);
    let events = run(&s).unwrap().events;
    let within = |max_events| Question { scenario: s.clone(), skip: 0, max_events }.ask().unwrap();
    assert!(within(events).complete && !within(events).outcome.cut_off);
    assert!(!within(events - 1).complete && within(events - 1).outcome.cut_off);
}

/// What did not come to its end took as long as it went on, not as long as what was done by then.
#[test]
fn a_run_without_an_end_took_at_least_as_long_as_it_went_on() {
    let mut s = request(path(40), &[100], &[100_000]);
    let asked = |s: &Scenario, max_events| {
        let answer = Question { scenario: s.clone(), skip: 0, max_events }.ask().unwrap();
        (answer.complete, time(answer.total))
    };
    assert_eq!(asked(&s, 1_000), (true, "160".into()));
    assert_eq!(asked(&s, 12), (false, "80".into()), "the last packet that left");
    s.limit = ms(70);
    assert_eq!(asked(&s, 1_000), (false, "70".into()), "the limit of time");
}

/// A capture at either end: numbers, times, TTL, identifiers, options.
#[test]
fn a_tap_shows_what_passes_its_end() {
    let s = lose(request(path(40), &[100], &[3000]), 1, &[What::Data(2)]);
    let out = run(&s).unwrap();
    for end in [0, 1] {
        let rows: Vec<String> = tcpwhy_model::tap(&out, end)
            .iter()
            .map(|t| {
                let x = &t.segment;
                format!(
                    "{} {} id {} ttl {} {}>{} seq {} ack {} len {} flags {} win {} ts {:?} opt {:?} {:?} {:x} sack {:?}",
                    x.frame,
                    time(x.time - tcpwhy_model::EPOCH),
                    x.ip_id.unwrap(),
                    x.ttl,
                    x.src.port,
                    x.dst.port,
                    x.seq.0,
                    x.ack.0,
                    x.len,
                    x.flags.0,
                    x.window,
                    x.options.timestamps,
                    x.options.mss,
                    x.options.wscale,
                    x.options.order,
                    x.options.sack.iter().take(usize::from(x.options.sack_len)).map(|b| (b.0.0, b.1.0)).collect::<Vec<_>>(),
                )
            })
            .collect();
        if end == 0 {
            // Sequence numbers begin at 0x1000 and 0x7fff_0000; the identifier 4 of the server is missing: lost.
            same(&rows, "1 0 id 1 ttl 64 40000>80 seq 4096 ack 0 len 0 flags 2 win 64240 ts Some((77, 0)) opt Some(1460) Some(10) 342 sack []
        2 40 id 1 ttl 57 80>40000 seq 2147418112 ack 4097 len 0 flags 18 win 65160 ts Some((97, 77)) opt Some(1460) Some(10) 342 sack []
        3 40 id 2 ttl 64 40000>80 seq 4097 ack 2147418113 len 0 flags 16 win 63 ts Some((117, 97)) opt None None 0 sack []
        4 40 id 3 ttl 64 40000>80 seq 4097 ack 2147418113 len 100 flags 24 win 63 ts Some((117, 97)) opt None None 0 sack []
        5 80 id 2 ttl 57 80>40000 seq 2147418113 ack 4197 len 0 flags 16 win 64 ts Some((137, 117)) opt None None 0 sack []
        6 80 id 3 ttl 57 80>40000 seq 2147418113 ack 4197 len 1448 flags 16 win 64 ts Some((137, 117)) opt None None 0 sack []
        7 80 id 5 ttl 57 80>40000 seq 2147421009 ack 4197 len 104 flags 24 win 64 ts Some((137, 117)) opt None None 0 sack []
        8 80 id 4 ttl 64 40000>80 seq 4197 ack 2147419561 len 0 flags 16 win 66 ts Some((157, 137)) opt None None 0 sack []
        9 80 id 5 ttl 64 40000>80 seq 4197 ack 2147419561 len 0 flags 16 win 66 ts Some((157, 137)) opt None None 5 sack [(2147421009, 2147421113)]
        10 136 id 6 ttl 57 80>40000 seq 2147419561 ack 4197 len 1448 flags 16 win 64 ts Some((193, 157)) opt None None 0 sack []
        11 136 id 6 ttl 64 40000>80 seq 4197 ack 2147421113 len 0 flags 16 win 69 ts Some((213, 193)) opt None None 0 sack []
        12 136 id 7 ttl 64 40000>80 seq 4197 ack 2147421113 len 0 flags 17 win 69 ts Some((213, 193)) opt None None 0 sack []
        13 176 id 7 ttl 57 80>40000 seq 2147421113 ack 4198 len 0 flags 17 win 64 ts Some((233, 213)) opt None None 0 sack []");
        } else {
            same(&rows, "1 20 id 1 ttl 57 40000>80 seq 4096 ack 0 len 0 flags 2 win 64240 ts Some((77, 0)) opt Some(1460) Some(10) 342 sack []
        2 20 id 1 ttl 64 80>40000 seq 2147418112 ack 4097 len 0 flags 18 win 65160 ts Some((97, 77)) opt Some(1460) Some(10) 342 sack []
        3 60 id 2 ttl 57 40000>80 seq 4097 ack 2147418113 len 0 flags 16 win 63 ts Some((117, 97)) opt None None 0 sack []
        4 60 id 3 ttl 57 40000>80 seq 4097 ack 2147418113 len 100 flags 24 win 63 ts Some((117, 97)) opt None None 0 sack []
        5 60 id 2 ttl 64 80>40000 seq 2147418113 ack 4197 len 0 flags 16 win 64 ts Some((137, 117)) opt None None 0 sack []
        6 60 id 3 ttl 64 80>40000 seq 2147418113 ack 4197 len 1448 flags 16 win 64 ts Some((137, 117)) opt None None 0 sack []
        7 60 id 4 ttl 64 80>40000 seq 2147419561 ack 4197 len 1448 flags 16 win 64 ts Some((137, 117)) opt None None 0 sack []
        8 60 id 5 ttl 64 80>40000 seq 2147421009 ack 4197 len 104 flags 24 win 64 ts Some((137, 117)) opt None None 0 sack []
        9 100 id 4 ttl 57 40000>80 seq 4197 ack 2147419561 len 0 flags 16 win 66 ts Some((157, 137)) opt None None 0 sack []
        10 100 id 5 ttl 57 40000>80 seq 4197 ack 2147419561 len 0 flags 16 win 66 ts Some((157, 137)) opt None None 5 sack [(2147421009, 2147421113)]
        11 116 id 6 ttl 64 80>40000 seq 2147419561 ack 4197 len 1448 flags 16 win 64 ts Some((193, 157)) opt None None 0 sack []
        12 156 id 6 ttl 57 40000>80 seq 4197 ack 2147421113 len 0 flags 16 win 69 ts Some((213, 193)) opt None None 0 sack []
        13 156 id 7 ttl 57 40000>80 seq 4197 ack 2147421113 len 0 flags 17 win 69 ts Some((213, 193)) opt None None 0 sack []
        14 156 id 7 ttl 64 80>40000 seq 2147421113 ack 4198 len 0 flags 17 win 64 ts Some((233, 213)) opt None None 0 sack []");
        }
    }
}
