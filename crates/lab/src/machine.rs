//! What of the machine may disturb a run, and what is done against it.

use crate::sys;
use serde::Serialize;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// The machine during a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: String,
    /// Processors.
    pub processors: usize,
    /// A hypervisor is below.
    pub virtual_machine: bool,
    /// The link's thread and the applications had real-time priority.
    pub real_time: bool,
    /// Idle-priority threads kept the processors awake.
    pub burners: usize,
    /// Share of the processors' time that the hypervisor gave to others.
    pub steal: f64,
    /// Share of the processors' time that was neither idle nor spent at idle priority.
    pub busy: f64,
}

/// Jiffies of all processors, from `/proc/stat`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jiffies {
    total: u64,
    steal: u64,
    idle: u64,
}

impl Jiffies {
    pub(crate) fn now() -> Jiffies {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let values: Vec<u64> = first.split_whitespace().skip(1).map(|v| v.parse().unwrap_or(0)).collect();
        let at = |i: usize| values.get(i).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; SCHED_IDLE counts as nice.
        Jiffies { total: (0..8).map(at).sum(), steal: at(7), idle: at(3) + at(4) + at(1) }
    }

    /// Shares since `before`: stolen, busy.
    pub(crate) fn since(self, before: Jiffies) -> (f64, f64) {
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        let steal = self.steal.saturating_sub(before.steal) as f64 / total;
        let idle = self.idle.saturating_sub(before.idle) as f64 / total;
        (steal, (1.0 - idle - steal).max(0.0))
    }
}

pub(crate) fn is_virtual() -> bool {
    fs::read_to_string("/proc/cpuinfo").unwrap_or_default().contains(" hypervisor")
}

pub(crate) fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// A thread on each processor that runs only when nothing else wants to: a halted virtual processor needs 50 to
/// 400 us to wake, which a delivery would be late by.
#[derive(Debug)]
pub(crate) struct Burners {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Burners {
    pub(crate) fn start(processors: usize) -> Burners {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..processors).filter_map(|cpu| {
            let stop = Arc::clone(&stop);
            let burn = move || {
                // Without the idle class it would take time from others.
                if sys::idle_on(cpu).is_ok() {
                    while !stop.load(Relaxed) {
                        for _ in 0..1000 {
                            std::hint::spin_loop();
                        }
                    }
                }
            };
            std::thread::Builder::new().name("lab-burner".into()).spawn(burn).ok()
        });
        let threads = threads.collect();
        Burners { stop, threads }
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
