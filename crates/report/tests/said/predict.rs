//! A prediction as text.

use crate::{plain, same};
use tcpwhy_base::{Cause, Side};
use tcpwhy_report::predict::{
    CauseName, Distribution, Fix, Observed, Pattern, Prediction, SCHEMA, Settings, Share, SideName, Step,
    Together, text,
};

const MS: i64 = 1_000_000;

fn step(start: i64, arrived: Option<i64>, side: Side, segments: u32, what: &str) -> Step {
    Step {
        start_ns: start,
        end_ns: start,
        arrived_ns: arrived,
        side: SideName(side),
        segments,
        bytes: 100,
        cause: None,
        waited_ns: 0,
        what: what.into(),
    }
}

fn waited(step: Step, cause: Cause, ns: i64) -> Step {
    Step { cause: Some(CauseName(cause)), waited_ns: ns, ..step }
}

fn fix(what: &str, place: &'static str, saves: i64) -> Fix {
    Fix {
        id: "nodelay",
        place,
        what: what.into(),
        how: vec!["first way".into(), "second way".into()],
        predicted_ns: 100 * MS - saves,
        saves_ns: saves,
    }
}

fn small() -> Prediction {
    Prediction {
        tool: "tcpwhy",
        version: "0",
        schema: SCHEMA,
        settings: Settings {
            rtt_ns: 10 * MS,
            request_writes: vec![100, 39],
            response_writes: vec![],
            requests: 1,
            connection: "new".into(),
            ..Settings::default()
        },
        assumed: Vec::new(),
        total_ns: 100 * MS,
        distribution: None,
        latencies_ns: vec![100 * MS],
        complete: true,
        given_up: false,
        observed: None,
        diagram: vec![
            step(0, Some(5 * MS), Side::Client, 1, "SYN"),
            step(5 * MS, Some(10 * MS), Side::Server, 1, "SYN-ACK"),
        ],
        diagram_omitted: 0,
        budget: vec![Share::new(Cause::PathDelay, Some(Side::Network), 100 * MS, 100 * MS)],
        fixes: Vec::new(),
        together: None,
        no_help: Vec::new(),
        comparisons: Vec::new(),
    }
}

fn rich() -> Prediction {
    Prediction {
        settings: Settings {
            requests: 3,
            response_writes: vec![1 << 20],
            connection: "warm".into(),
            ..small().settings
        },
        assumed: vec![
            "the link is never busy with other traffic, and no packet is lost, because nothing was said of either".into(),
            "short".into(),
        ],
        observed: Some(Observed { total_ns: 90 * MS, modelled_ns: 100 * MS, error: 0.111_11, trustworthy: true }),
        diagram: vec![
            step(0, Some(5 * MS), Side::Client, 1, "request"),
            step(5 * MS, Some(5 * MS), Side::Server, 0, "works"),
            waited(step(9_994_999, None, Side::Server, 2, "two segments"), Cause::SlowStart, 1),
            waited(step(9_995_001, None, Side::Client, 1, "an ACK"), Cause::DelayedAck, 0),
            waited(step(10 * MS, Some(100 * MS), Side::Server, 1, "a segment that says much of itself"), Cause::Nagle, 40 * MS),
            step(99_960_000, None, Side::Client, 0, "reads"),
        ],
        diagram_omitted: 12,
        budget: vec![
            Share::new(Cause::Nagle, Some(Side::Client), 60 * MS, 100 * MS),
            Share::new(Cause::ServerThink, Some(Side::Server), 30 * MS, 100 * MS),
            Share::new(Cause::PathDelay, None, 10_000, 100 * MS),
            Share::new(Cause::Handshake, None, 9_999, 100 * MS),
            Share::new(Cause::Unexplained, None, 0, 100 * MS),
        ],
        fixes: (1..=9).map(|i| fix(&format!("change {i}"), if i == 2 { "path" } else { "client" }, (10 - i) * MS)).collect(),
        together: Some(Together { fixes: vec![0, 1, 99], predicted_ns: 80 * MS, saves_ns: 20 * MS }),
        no_help: (0..8).map(|i| fix(&format!("in vain {i}"), "both", if i == 1 { -MS } else { 0 })).collect(),
        comparisons: vec![fix("half the distance", "path", 50 * MS)],
        ..small()
    }
}

fn said(p: &Prediction, width: usize, verbose: bool) -> String {
    plain(|out| text(out, p, width, verbose))
}

#[test]
fn in_short() {
    same("predict.txt", &said(&small(), 80, false));
}

#[test]
fn with_all_that_can_be_said() {
    same("predict_rich.txt", &said(&rich(), 80, false));
}

#[test]
fn in_full_and_broken_at_60_columns() {
    let mut p = rich();
    p.observed =
        Some(Observed { total_ns: 70 * MS, modelled_ns: 61_600_000, error: -0.12, trustworthy: true });
    p.settings.connection = "idle".into();
    same("predict_verbose.txt", &said(&p, 60, true));
}

/// What is compared is said on both sides: without the pauses, which are in the time above.
#[test]
fn like_is_compared_with_like() {
    let mut p = rich();
    p.observed = Some(Observed { total_ns: 90 * MS, modelled_ns: 81 * MS, error: -0.1, trustworthy: true });
    let text = said(&p, 100, false);
    let line =
        "81.0 ms without the pauses between requests; the capture shows 90.0 ms of that: the model is off by";
    assert!(text.contains(&format!("\n{line}\n-10.0 %.\n")), "{text}");
    p.settings.requests = 1;
    assert!(
        said(&p, 120, false).contains("\n81.0 ms as seen where the capture was taken; the capture shows")
    );
}

/// A model that misses the present gives no advice, though there are changes that it takes for good.
#[test]
fn without_trust_no_advice() {
    let mut p = rich();
    p.observed = Some(Observed { total_ns: 70 * MS, modelled_ns: 49 * MS, error: -0.3, trustworthy: false });
    let text = said(&p, 60, true).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["off by -30.0 %; not trustworthy", "no advice: the model misses what the capture shows"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    for part in ["would help", "would not help", "together", "comparison", "no change of settings helps"] {
        assert!(!text.contains(part), "{part:?} is in\n{text}");
    }
}

/// A run that did not come to its end has no result, and what would change that is not known.
#[test]
fn what_was_not_finished_is_not_concluded() {
    let mut p = small();
    p.complete = false;
    (p.fixes, p.settings.requests) = (rich().fixes, 3);
    let limit = said(&p, 100, false);
    assert!(limit.starts_with("more than 100 ms for 3 requests, not finished: 139 B up"), "{limit}");
    assert!(limit.contains("\nThe run met its limit before everything was transferred.\n"), "{limit}");
    assert!(limit.contains("\nwhere the time goes, of what was finished\n"), "{limit}");
    (p.given_up, p.budget) = (true, Vec::new());
    let given_up = said(&p, 100, false);
    assert!(given_up.starts_with("never for 3 requests, given up after 100 ms or more: "), "{given_up}");
    assert!(given_up.contains("\nA connection was given up before everything"), "{given_up}");
    assert!(!given_up.contains("where the time goes"), "{given_up}");
    for text in [limit, given_up] {
        assert!(text.contains("\nno advice: what a change saves of a run that is not finished"), "{text}");
        assert!(!text.contains("would help") && !text.contains("no change of settings helps"), "{text}");
        assert!(!text.contains("between the requests"), "{text}");
    }
}

/// What does harm is not among what only does not help.
#[test]
fn what_harms_has_a_heading_of_its_own() {
    let mut p = rich();
    p.no_help =
        vec![fix("for nothing", "both", 0), fix("a little worse", "both", 1 - MS), fix("worse", "both", -MS)];
    let text = said(&p, 80, false);
    let (_, text) =
        text.split_once("\nwould not help: less than 1 %, or nothing\n").expect("what is in vain");
    let (vain, harm) = text.split_once("\nwould make it slower\n").expect("what harms");
    assert!(vain.contains("for nothing") && vain.contains("a little worse"), "{vain}");
    assert!(harm.contains("+1.00 ms -> 101 ms    worse (both)") && !harm.contains("little"), "{harm}");
    p.no_help.truncate(2);
    assert!(!said(&p, 80, false).contains("slower"));
}

/// Where applications take most of the time, it is not the price of the path.
#[test]
fn whose_price_it_is() {
    let price = |cause| {
        let mut p = small();
        p.fixes.clear();
        p.budget = vec![Share::new(cause, Some(Side::Client), p.total_ns * 9 / 10, p.total_ns)];
        said(&p, 80, false)
    };
    assert!(price(Cause::SlowReader).contains("this is the price of what the applications do"));
    assert!(price(Cause::PathDelay).contains("this is the price of the path and the sizes"));
}

/// Sizes are said as they were typed.
#[test]
fn sizes_as_they_were_typed() {
    let mut p = small();
    p.settings.typed = [None, Some("30 KB".into())];
    p.settings.response_writes = vec![30_000];
    let text = said(&p, 80, false);
    assert!(text.contains("30 KB down") && !text.contains("29.3 KiB down"), "{text}");
}

#[test]
fn no_round_trip_is_known_to_the_nanosecond() {
    let mut p = small();
    for (rtt, said_so) in
        [(2, "less than 1.00 µs away"), (999, "less than 1.00 µs away"), (1_000, "1.00 µs away")]
    {
        p.settings.rtt_ns = rtt;
        let text = said(&p, 80, false);
        assert!(text.contains(said_so), "{text}");
        assert_eq!(text.contains("less than"), rtt < 1_000, "{text}");
    }
}

#[test]
fn chance_is_said_before_the_diagram() {
    let pattern = |share: f64, cause: Option<Cause>, side: Option<Side>, more_ns| Pattern {
        count: (share * 100.0).round() as u64,
        share,
        median_ns: 90 * MS,
        cause: cause.map(CauseName),
        side: side.map(SideName),
        more_ns,
    };
    let mut p = small();
    p.settings.connection = "capture".into();
    p.distribution = Some(Distribution {
        runs: 50,
        median_ns: 90 * MS,
        p95_ns: 200 * MS,
        least_ns: 80 * MS,
        most_ns: 300 * MS,
        losses_drawn: true,
        patterns: Vec::new(),
        requests: Vec::new(),
    });
    let mut text = said(&p, 60, false);
    if let Some(d) = &mut p.distribution {
        d.losses_drawn = false;
        d.patterns = vec![
            pattern(0.7, Some(Cause::Nagle), Some(Side::Client), 1),
            pattern(0.2, Some(Cause::DelayedAck), Some(Side::Server), 40 * MS),
            pattern(0.09, Some(Cause::Nagle), None, -10 * MS),
            pattern(0.01, None, None, 0),
        ];
    }
    text.push_str("---\n");
    text.push_str(&said(&p, 60, false));
    if let Some(d) = &mut p.distribution {
        d.requests = d.patterns.clone();
        d.requests.truncate(2);
    }
    text.push_str("---\n");
    text.push_str(&said(&p, 60, false));
    same("predict_chance.txt", &text);
}

#[test]
fn what_the_budget_leaves_is_said_above_a_200th() {
    let rest = |spent: i64| {
        let mut p = small();
        p.budget = vec![Share::new(Cause::PathDelay, None, spent, 100 * MS)];
        said(&p, 80, false).contains("until the applications ran")
    };
    assert!(!rest(100 * MS - 500_000));
    assert!(rest(100 * MS - 500_001));
}

#[test]
fn an_arrow_and_its_wait_share_a_line_as_long_as_they_fit() {
    let mut p = small();
    let why = "; waited 40.0 ms: nagle";
    p.diagram = vec![waited(step(0, None, Side::Client, 0, "0123456789"), Cause::Nagle, 40 * MS)];
    let room = 10 + why.len();
    let lines = |width| {
        let text = said(&p, width, false);
        let rows = text.lines().filter(|l| l.contains("waited") || l.contains("0123"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(28 + room), [format!("    0.00   o      |   0123456789{why}")]);
    assert_eq!(
        lines(27 + room),
        [
            "    0.00   o      |   0123456789".to_owned(),
            "           |      |     waited 40.0 ms: nagle".into()
        ]
    );
}
