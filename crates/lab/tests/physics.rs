//! The link against what was asked of it, measured by TCP over the real kernel. One test, because two runs at once
//! would disturb each other. Needs root, /dev/net/tun and iproute2; says SKIP without.

#[path = "../../../tests/skips.rs"]
mod skips;

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tcpwhy_base::End;
use tcpwhy_lab::{LabError, Network, Reason, Run, Scenario, calibrate, run};

/// None after saying why the machine cannot. A run that the link calls disturbed, because it saw itself late, is made
/// three times; whether the machine was to blame is asked of a witness that is not the link.
#[expect(clippy::panic, reason = "a test")]
fn lab(text: &str) -> Option<Run> {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let witness = Witness::start();
        let made = run(&Scenario::parse(text, &[]).expect("a scenario of this file"));
        let machine = witness.end();
        match made {
            Ok(run) if run.traffic.disturbed => seen.push((run, machine)),
            Ok(run) => return Some(run),
            Err(e @ LabError::Missing { .. }) => {
                skip(&e.to_string());
                return None;
            }
            Err(e) => panic!("{e}"),
        }
    }
    let figures: Vec<String> =
        seen.iter().map(|(run, machine)| format!("{machine:?}, {}", run.summary())).collect();
    let figures = figures.join("\n");
    let blame = |(run, machine): &(Run, Lateness)| {
        let link = u64::try_from(run.traffic.lateness.p99_ns).unwrap_or(0);
        machine.explains(Duration::from_nanos(link)) || run.traffic.machine.steal > 0.05
    };
    assert!(seen.iter().any(blame), "three times the link was late, and the machine was not:\n{figures}");
    skip(&format!("the machine was busy in all of three runs: {figures}"));
    None
}

fn skip(why: &str) {
    skips::skip("link", why, env!("CARGO_TARGET_TMPDIR"));
}

/// How late a thread wakes up that has the link's kind of priority and nothing to do: the machine, seen
/// without the link.
struct Witness {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Lateness>,
}

#[derive(Debug)]
struct Lateness {
    /// It got its priority; without, it cannot tell.
    real_time: bool,
    p99: Duration,
    /// Wake-ups late by more than a millisecond, as a share of the time.
    stalled: f64,
}

impl Witness {
    fn start() -> Witness {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Witness { stop, thread: std::thread::spawn(move || watch(&seen)) }
    }

    fn end(self) -> Lateness {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("the witness")
    }
}

fn watch(stop: &AtomicBool) -> Lateness {
    const STEP: Duration = Duration::from_millis(1);
    let real_time = raise(20);
    let begin = Instant::now();
    let mut late = Vec::new();
    while !stop.load(Relaxed) {
        let start = Instant::now();
        std::thread::sleep(STEP);
        late.push(start.elapsed().saturating_sub(STEP));
    }
    let stalled: Duration = late.iter().filter(|&&late| late > STEP).sum();
    late.sort_unstable();
    let p99 = late.get(late.len() * 99 / 100).copied().unwrap_or_default();
    Lateness { real_time, p99, stalled: stalled.as_secs_f64() / begin.elapsed().as_secs_f64().max(1e-9) }
}

impl Lateness {
    /// By the measures that the link applies to itself (`Traffic::disturbed`): a link that is more than twice
    /// as late as the machine makes a thread is late by itself.
    fn explains(&self, link: Duration) -> bool {
        let late = self.p99 > Duration::from_micros(200) && self.p99 * 2 > link;
        !self.real_time || late || self.stalled > 0.02
    }
}

/// Gives the calling thread a real-time priority, if this machine can.
fn raise(priority: u32) -> bool {
    let own = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let own = own.file_name().unwrap_or_default().to_owned();
    let mut chrt = Command::new("chrt");
    chrt.args(["-f", "-p", &priority.to_string()]).arg(own).status().is_ok_and(|s| s.success())
}

fn median_exchange(rtt_ms: f64, requests: u32) -> Option<i64> {
    let text = format!(
        "title = 'ping'\nlink.rtt_ms = {rtt_ms}\nclient.nodelay = true\nserver.nodelay = true\n\
         [workload]\nrequests = {requests}\nrequest = [1]\nresponse = [1]\n"
    );
    let run = lab(&text)?;
    let mut times: Vec<i64> = run.exchanges.iter().map(|e| e.end_ns - e.start_ns).collect();
    assert_eq!(times.len(), requests as usize);
    times.sort_unstable();
    Some(times[times.len() / 2])
}

#[test]
fn link_does_what_was_asked() {
    calibration();
    round_trips();
    rate_and_queue();
    losses();
    random_losses();
    busy_machine();
    programs();
}

/// With segments of 64 KB that pass whole, the same processor carries more.
fn calibration() {
    match calibrate(&AtomicBool::new(false)) {
        Ok(found) => {
            let _ = writeln!(std::io::stderr(), "link: {found:?}");
            if !found.disturbed {
                assert!(found.path_ms > 0.0 && found.path_ms < 0.4, "{found:?}");
                assert!(found.rate_offload_mbit > found.rate_mbit, "{found:?}");
            }
        }
        Err(e) => skip(&e.to_string()),
    }
}

/// What the dice take lies within four standard deviations of a binomial (one in 16,000 would not).
fn random_losses() {
    let Some(run) = lab(
        "title = 'random'\nsample_ms = 0\n[link]\nrtt_ms = 2\n[link.down]\nloss = 0.02\nloss_of = 'data'\n\
         [server]\ncongestion = 'cubic'\n[workload]\nrequest = [100]\nresponse = [10000000]\n",
    ) else {
        return;
    };
    let data = run.traffic.captures.server.iter().filter(|r| r.data[15] == 2 && r.len > 60).count() as f64;
    let lost = run.traffic.down.lost.get(&Reason::Random).copied().unwrap_or(0) as f64;
    let spread = 4.0 * (data * 0.02 * 0.98).sqrt();
    assert!((lost - data * 0.02).abs() <= spread, "{lost} of {data} lost");
    assert!(run.exchanges.iter().all(|e| e.complete));
}

/// Somebody takes the processors from the link for 0.3 s: the run is marked, not passed off as exact.
fn busy_machine() {
    let over = Arc::new(AtomicBool::new(false));
    let burners: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from))
        .map(|_| Arc::clone(&over))
        .map(|over| std::thread::spawn(move || burn(&over)))
        .collect();
    let text = "title = 'busy'\nlink.rtt_ms = 2\nclient.nodelay = true\nserver.nodelay = true\n\
                [workload]\nrequests = 400\nrequest = [1]\nresponse = [1]\n";
    let run = run(&Scenario::parse(text, &[]).expect("a scenario of this file"));
    over.store(true, Relaxed);
    let burnt = burners.into_iter().all(|b| b.join().unwrap_or(false));
    match run {
        Ok(run) if burnt => {
            let worst = run.traffic.lateness.max_ns;
            assert!(worst > 20_000_000, "late by {worst} ns at most");
            assert!(run.traffic.disturbed, "{:?}", run.traffic.lateness);
            assert!(run.summary().contains("DISTURBED"));
        }
        Ok(_) => skip("chrt does not work here: no busy machine"),
        Err(e) => skip(&e.to_string()),
    }
}

fn round_trips() {
    // What two crossings and four wake-ups cost without any delay.
    let Some(offset) = median_exchange(0.0, 200) else { return };
    assert!(offset < 400_000, "{offset} ns without delay");
    for (rtt_ms, requests, tolerance_ns) in
        [(0.1, 200, 100_000), (1.0, 200, 100_000), (20.0, 40, 300_000), (200.0, 8, 300_000)]
    {
        let Some(measured) = median_exchange(rtt_ms, requests) else { return };
        let error = measured - offset - (rtt_ms * 1e6) as i64;
        assert!(error.abs() <= tolerance_ns, "RTT {rtt_ms} ms: {error} ns off, offset {offset} ns");
    }
}

fn rate_and_queue() {
    let Some(run) = lab("title = 'bulk'\n[link]\nrtt_ms = 10\nrate_mbit = 50\nqueue_bytes = 60000\n\
         [workload]\nrequest = [100]\nresponse = [6000000]\n")
    else {
        return;
    };
    // The busiest second half: what arrived at the client over the time it took.
    let arrived: Vec<_> = run
        .traffic
        .captures
        .client
        .iter()
        .filter(|r| r.len > 1000)
        .map(|r| (r.time.0, f64::from(r.len)))
        .collect();
    let half = &arrived[arrived.len() / 2..arrived.len() * 9 / 10];
    let bytes: f64 = half[1..].iter().map(|r| r.1).sum();
    let mbit = bytes * 8e3 / (half[half.len() - 1].0 - half[0].0) as f64;
    assert!((49.5..=50.5).contains(&mbit), "{mbit} Mbit/s");
    let down = &run.traffic.down;
    assert!(down.queue_max_bytes <= 60_000 && down.queue_max_bytes > 58_500, "{down:?}");
    // Dropped and delivered are all that was sent.
    let sent = run.traffic.captures.server.iter().filter(|r| r.data[15] == 2).count() as u64;
    let got = run.traffic.captures.client.iter().filter(|r| r.data[15] == 2).count() as u64;
    let lost = down.lost.get(&Reason::Queue).copied().unwrap_or(0);
    assert!(lost > 0);
    assert_eq!(sent, got + lost);
    assert_eq!(lost, run.traffic.lost.len() as u64);
}

fn losses() {
    let Some(run) = lab("title = 'chosen'\n[link]\nrtt_ms = 10\n[link.down]\n\
         drops = [{ what = 'seq', at = 50000, copies = 2 }, { what = 'last' }]\n\
         [workload]\nrequest = [100]\nresponse = [100000]\n")
    else {
        return;
    };
    let places: Vec<_> = run.traffic.lost.iter().map(|l| (l.up, l.reason, l.relative)).collect();
    assert_eq!(places.len(), 3, "{places:?}");
    assert!(places.iter().all(|p| !p.0 && p.1 == Reason::Chosen));
    assert_eq!(places.iter().filter(|p| p.2.is_some_and(|r| r <= 50_000 && r + 1448 > 50_000)).count(), 2);
    assert!(run.exchanges.iter().all(|e| e.complete));
}

/// Takes one processor for 0.3 s out of 0.8 s, above the link's priority, until the run is over: how long the
/// machine takes to set it up does not matter. By its own clock and at most twenty times, so that it ends
/// whatever happens.
fn burn(over: &AtomicBool) -> bool {
    let raised = raise(50);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(500));
        let start = Instant::now();
        while raised && start.elapsed() < Duration::from_millis(300) {
            std::hint::spin_loop();
        }
        if over.load(Relaxed) {
            break;
        }
    }
    raised
}

/// Any program can run on the hosts, and sees their addresses only.
#[expect(clippy::unwrap_used, reason = "a test")]
fn programs() {
    let nothing = Scenario::parse("title = 'programs'\nworkload.request = [1]\n", &[]).unwrap();
    let network = match Network::new(&nothing) {
        Ok(network) => network,
        Err(e) => return skip(&e.to_string()),
    };
    for (side, own, other) in
        [(End::Client, Network::CLIENT, Network::SERVER), (End::Server, Network::SERVER, Network::CLIENT)]
    {
        let mut ip = Command::new("ip");
        let (mut reader, writer) = std::io::pipe().unwrap();
        ip.args(["-4", "address"]).stdout(writer);
        // The command has the other end of the pipe; it must be closed here before the reading.
        let child = network.spawn_alone(side, ip).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(text.contains(&own.to_string()) && !text.contains(&other.to_string()), "{text}");
    }
    assert!(network.finish().unwrap().lost.is_empty());
}
