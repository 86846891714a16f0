//! Looks at all sockets as often as it costs little.

use crate::shown;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tcpwhy_base::Nanos;
use tcpwhy_live::{
    Connection, LiveError, Process, Processes, Rounds, Sample, Snapshot, Stuck, Table, Threads, elsewhere,
    processor_time, stuck,
};
#[cfg(feature = "bpf")]
use tcpwhy_live::{Kernel, Ration};
use tcpwhy_report::count;
use tcpwhy_report::watch::Unseen;

/// How often sockets are looked at where that takes next to nothing: four times in the shortest delayed ACK of Linux.
const OFTEN: Duration = Duration::from_millis(10);
/// How often sockets are looked at where no processor has time to spare: each look makes somebody wait, and
/// of requests that are under way all at once. In a hundred looks a second that is one request in a hundred,
/// and so the 99th percentile. Looks at 90 ms fall on the same quarters of a delayed ACK as those at 10 ms.
const SELDOM: Duration = Duration::from_millis(90);
/// Looking takes at most a hundredth of this machine's processors, and a twentieth of one.
const HUNDREDTH: u32 = 100;
const PART: u32 = 20;

/// So many connections that are gone are kept until somebody takes them: what events say of them is asked for at once.
const MANY: usize = 4096;

/// Of so many sockets the threads of their processes are asked at the end of an interval whose turn it is.
const DOUBTS: usize = 64;

/// Programs that run for each write and read rest after so long without anything that they would tell more of.
#[cfg(feature = "bpf")]
const REST: Duration = Duration::from_secs(5);

/// What kernel events show and samples only estimate.
const HELD: &str =
    "how long each small write is held, who sleeps in send(), and which timer sent a segment again";

/// Attaches to the kernel's events, if that is wanted and possible; with what is missing.
#[cfg(feature = "bpf")]
fn events(sampled: bool) -> (Option<Kernel>, Vec<String>) {
    if sampled {
        return (None, vec!["--sampled".into()]);
    }
    match Kernel::open() {
        Ok(kernel) => {
            let missing = kernel.missing.clone();
            (Some(kernel), missing)
        }
        Err(why) => (None, vec![why]),
    }
}

#[cfg(not(feature = "bpf"))]
fn without(sampled: bool) -> String {
    if sampled { "--sampled" } else { "this program was built without kernel events (feature bpf)" }.into()
}

/// What looks.
pub(super) struct Eye {
    rounds: Rounds,
    /// Looking takes at most this part of the time of a processor: one in so many.
    part: u32,
    sockets: Vec<Sample>,
    table: Table,
    processes: Processes,
    threads: Threads,
    known: HashSet<u32>,
    start: Instant,
    /// When it looked last.
    looked: Instant,
    /// When to look again.
    next: Instant,
    /// The longest time between two looks since that was last asked.
    apart: Duration,
    foreign: bool,
    #[cfg(feature = "bpf")]
    kernel: Option<Kernel>,
    /// When something last waited that kernel events tell more of.
    #[cfg(feature = "bpf")]
    hinted: Instant,
    /// What listening may take; None: as much as it wants.
    #[cfg(feature = "bpf")]
    ration: Option<Ration>,
    /// Since then: how long there was something to listen to, and not allowed.
    unheard: Duration,
    /// Why there are no kernel events, or not all.
    no_events: Vec<String>,
}

impl Eye {
    pub(super) fn open(namespace: Option<&Path>, sampled: bool) -> Result<Eye, LiveError> {
        let now = Instant::now();
        #[cfg(feature = "bpf")]
        let (kernel, no_events) = events(sampled);
        #[cfg(not(feature = "bpf"))]
        let no_events = vec![without(sampled)];
        let processors =
            std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        let part = (HUNDREDTH / processors).max(PART);
        let mut eye = Eye {
            rounds: tcpwhy_live::within(namespace, || Rounds::open(part))?,
            part,
            sockets: Vec::new(),
            table: Table::default(),
            processes: Processes::default(),
            threads: Threads::default(),
            known: HashSet::new(),
            start: now,
            looked: now,
            next: now,
            apart: OFTEN,
            foreign: namespace.is_some(),
            #[cfg(feature = "bpf")]
            kernel,
            #[cfg(feature = "bpf")]
            hinted: now,
            #[cfg(feature = "bpf")]
            ration: Some(Ration::new(processors)),
            unheard: Duration::ZERO,
            no_events,
        };
        eye.look()?;
        Ok(eye)
    }

    /// Looks until the interval is over, or somebody wants an end; `ended` gets each connection that is gone.
    pub(super) fn watch(
        &mut self,
        interval: Nanos,
        stop: &AtomicBool,
        mut ended: impl FnMut(&Connection),
    ) -> Result<(), LiveError> {
        let until = Instant::now() + Duration::from_nanos(interval.0.unsigned_abs());
        // So that a single interval, too, knows how long they have been inside.
        let pids: HashSet<u32> = self.known.iter().filter_map(|&i| Some(self.processes.of(i)?.pid)).collect();
        self.threads.look(pids, self.now());
        while Instant::now() < until && !stop.load(Relaxed) {
            std::thread::sleep(self.nap(until));
            self.look_if_due(until)?;
            self.hand_over(false, &mut ended);
        }
        self.hand_over(true, &mut ended);
        Ok(())
    }

    /// Gives each connection that is gone, once it is many that are, or `all`.
    pub(super) fn hand_over(&mut self, all: bool, ended: impl FnMut(&Connection)) {
        if self.table.ended() < if all { 1 } else { MANY } {
            return;
        }
        #[cfg(feature = "bpf")]
        self.witness_ended();
        self.table.take_ended().iter().for_each(ended);
    }

    /// How long to wait before the next look, or `until`. A signal is to be noticed soon, however seldom one looks.
    pub(super) fn nap(&self, until: Instant) -> Duration {
        let next = self.next.min(until);
        next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50))
    }

    /// Looks, if it is time to.
    pub(super) fn look_if_due(&mut self, until: Instant) -> Result<(), LiveError> {
        if Instant::now() >= self.next.min(until) { self.look() } else { Ok(()) }
    }

    /// Takes what events say of connections that are gone.
    #[cfg(feature = "bpf")]
    fn witness_ended(&mut self) {
        if let Some(kernel) = &self.kernel {
            self.table.witness_ended(&kernel.facts());
        }
    }

    /// Listens while something waits, and for a while after: where nothing does, events of single writes and
    /// reads cost more than they tell. And no more than may be spent on that. `passed`: since the last look.
    #[cfg(feature = "bpf")]
    fn listen_as_wanted(&mut self, passed: Duration) {
        let now = self.now();
        let Some(kernel) = &mut self.kernel else { return };
        if self.table.take_hint() {
            self.hinted = Instant::now();
        }
        let listens = kernel.is_listening();
        let wanted = self.hinted.elapsed() < REST;
        let allowed = self.ration.as_mut().is_none_or(|ration| {
            let runs = ration.count(now, kernel.runs());
            if listens && let Some(each) = kernel.cost(runs) {
                ration.costs(each);
            }
            ration.allows(listens)
        });
        if wanted && !listens && !allowed {
            self.unheard += passed;
        }
        if (wanted && allowed) != listens && kernel.listen(!listens) {
            self.table.listen(!listens);
        }
    }

    /// Listens whatever it costs.
    #[cfg(feature = "bpf")]
    pub(super) fn listen_to_all(&mut self) {
        self.ration = None;
    }

    /// Whether kernel events are seen.
    pub(super) fn has_events(&self) -> bool {
        #[cfg(feature = "bpf")]
        return self.kernel.is_some();
        #[cfg(not(feature = "bpf"))]
        false
    }

    /// Since it was opened.
    pub(super) fn now(&self) -> Nanos {
        nanos(self.start.elapsed())
    }

    fn look(&mut self) -> Result<(), LiveError> {
        let (began, used) = (Instant::now(), processor_time());
        let rationed = self.rounds.look(&mut self.sockets)?;
        self.table.readers(&self.threads.reading(self.table.quiet()));
        self.table.feed(&self.sockets, self.now());
        #[cfg(feature = "bpf")]
        self.listen_as_wanted(began - self.looked);
        let took = (processor_time() - used).saturating_sub(rationed);
        let least = if self.rounds.disturbs() { SELDOM } else { OFTEN };
        let wait = (took * self.part).max(least);
        self.name();
        // What has passed, which is more than what was meant to where the machine is busy.
        self.apart = self.apart.max(began - self.looked);
        self.looked = began;
        self.next = Instant::now().max(began + wait);
        Ok(())
    }

    /// Finds out whose the new sockets are: a connection may be gone before the interval ends.
    fn name(&mut self) {
        let inodes: HashSet<u32> = self.table.inodes().filter(|&i| i != 0).collect();
        if inodes.is_subset(&self.known) {
            return;
        }
        self.processes.look_for(inodes.iter().copied());
        self.table.name(|inode| {
            let process = self.processes.of(inode)?;
            Some(Process { name: shown::name(&process.name).into_owned(), ..process.clone() })
        });
        // Those that are nobody's that one may see are looked for again with the next new one.
        self.known = inodes;
    }

    /// Ends the interval.
    pub(super) fn all(&mut self) -> Snapshot {
        #[cfg(feature = "bpf")]
        if let Some(kernel) = &self.kernel {
            self.table.witness(&kernel.facts());
        }
        self.known.clear();
        self.name();
        self.settle();
        let mut snapshot = self.table.interval();
        snapshot.stuck = self.stuck(&snapshot);
        snapshot
    }

    /// Where stamps and ACKs do not tell whose turn it is: a program that waits for nothing has its own.
    fn settle(&mut self) {
        let mut doubts: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pid, inode) in self.table.in_doubt().take(DOUBTS) {
            doubts.entry(pid).or_default().push(inode);
        }
        // Twice: a loop that waits is elsewhere for a moment, too.
        for pause in [Duration::ZERO, Duration::from_millis(2)] {
            if !doubts.is_empty() {
                std::thread::sleep(pause);
                doubts.iter_mut().for_each(|(&pid, inodes)| *inodes = elsewhere(pid, inodes));
                doubts.retain(|_, inodes| !inodes.is_empty());
            }
        }
        self.table.elsewhere(&doubts.into_values().flatten().collect());
    }

    /// Threads inside a call on one of the connections.
    fn stuck(&mut self, snapshot: &Snapshot) -> Vec<Stuck> {
        let pids = snapshot.connections.iter().filter_map(|c| c.process.as_ref());
        let pids: HashSet<u32> = pids.map(|p| p.pid).collect();
        let waiting = self.threads.look(pids, self.now());
        stuck(&waiting, &self.threads.counts, &snapshot.connections)
    }

    /// What did not show since it was last asked.
    pub(super) fn unseen(&mut self) -> Vec<Unseen> {
        let [apart, unheard] =
            [std::mem::replace(&mut self.apart, OFTEN), std::mem::take(&mut self.unheard)].map(nanos);
        let mut out = vec![Unseen {
            what: format!("connections and waits shorter than {apart}"),
            needs: "the time between two samples; more sockets take longer to list".into(),
        }];
        let lost = if self.has_events() { "some kernel events" } else { HELD };
        if unheard > Nanos::ZERO {
            out.push(Unseen {
                what: format!("kernel events in {unheard} of the interval, where samples tell"),
                needs:
                    "fewer of them: to listen to all would take more than a two-hundredth of the processors"
                        .into(),
            });
        }
        out.extend(self.no_events.iter().map(|why| Unseen { what: lost.into(), needs: why.clone() }));
        if self.threads.hidden > 0 {
            out.push(Unseen {
                what: format!(
                    "in which calls the threads of {} are",
                    count(self.threads.hidden.into(), "process")
                ),
                needs: "CAP_SYS_PTRACE or root".into(),
            });
        }
        if self.processes.hidden > 0 {
            out.push(Unseen {
                what: super::which_sockets(self.processes.hidden),
                needs: "CAP_SYS_PTRACE or root".into(),
            });
        }
        if !self.foreign {
            out.push(Unseen {
                what: "other network namespaces, such as those of containers".into(),
                needs: "--netns, with CAP_SYS_ADMIN".into(),
            });
        }
        out
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
