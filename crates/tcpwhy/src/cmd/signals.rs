//! What happens when somebody asks the program to end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set by the first interrupt (^C), so that what was read can be explained. Everything else that asks the
/// program to end, and the second interrupt, ends it at once: nothing temporary stays.
pub(crate) fn stop_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = stopped_by(&[signal_hook::consts::SIGINT])?;
    crate::stdin::ends_at(&stop);
    Ok(stop)
}

/// Set by whatever asks a program to end that has no end of its own, such as one that follows a file which
/// grows: a service manager or `timeout` sends no interrupt, and would get no answer. The second ends it at
/// once.
pub(crate) fn endless_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = stopped_by(&ENDS)?;
    crate::stdin::ends_at(&stop);
    Ok(stop)
}

/// Whatever asks the program to end ends it at once: nothing temporary stays.
pub(crate) fn tidy_up() -> anyhow::Result<()> {
    stopped_by(&[]).map(drop)
}

/// Set by whatever asks a program to end, for those that must put something back first; the second ends it at
/// once. (Signals that come with the first one belong to it.)
pub(crate) fn end_signal() -> anyhow::Result<Arc<AtomicBool>> {
    stopped_by(&ENDS)
}

/// As [`end_signal`], for a program that reads standard input before it puts anything in its place: an
/// interrupt ends the reading alone; the second is set by what asks the program itself to end.
#[cfg(feature = "tui")]
pub(crate) fn end_signals() -> anyhow::Result<(Arc<AtomicBool>, Arc<AtomicBool>)> {
    let gone = Arc::new(AtomicBool::new(false));
    ended_by(&gone)?;
    let stop = stopped_by(&ENDS)?;
    crate::stdin::ends_at(&stop);
    Ok((stop, gone))
}

/// Set by SIGUSR1, each time.
#[cfg(target_os = "linux")]
pub(crate) fn asked_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&asked))?;
    Ok(asked)
}

#[cfg(target_os = "linux")]
pub(crate) use passed_on::PassedOn;
#[cfg(all(unix, feature = "tui"))]
use unix::ended_by;
#[cfg(unix)]
use unix::{ENDS, stopped_by};

#[cfg(unix)]
mod unix {
    use crate::temporary;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::{flag, low_level};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};
    use tcpwhy_base::Asked;

    pub(super) const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

    /// The flag is set by the first of `gentle`.
    pub(super) fn stopped_by(gentle: &[i32]) -> anyhow::Result<Arc<AtomicBool>> {
        let stop = Arc::new(AtomicBool::new(false));
        let ignored = ignored();
        let wanted: Vec<i32> = ENDS.into_iter().filter(|&s| ignored & (1 << (s - 1)) == 0).collect();
        let gentle: Vec<i32> = gentle.iter().copied().filter(|s| wanted.contains(s)).collect();
        for &signal in &gentle {
            flag::register(signal, Arc::clone(&stop))?;
        }
        let mut signals = Signals::new(wanted)?;
        thread::Builder::new().name("signals".into()).spawn(move || {
            let mut asked = Asked::default();
            for signal in signals.forever() {
                let again = asked.again(Instant::now(), Duration::MAX);
                if gentle.contains(&signal) && (!again || signal == SIGHUP) {
                    continue;
                }
                temporary::remove_all();
                // Who waits for this process is to see that the signal ended it.
                let _ = low_level::emulate_default_handler(signal);
            }
        })?;
        Ok(stop)
    }

    /// Sets `gone` at signals that are no interrupt.
    #[cfg(feature = "tui")]
    pub(super) fn ended_by(gone: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let ignored = ignored();
        for signal in [SIGTERM, SIGHUP].into_iter().filter(|s| ignored & (1 << (s - 1)) == 0) {
            flag::register(signal, Arc::clone(gone))?;
        }
        Ok(())
    }

    /// Signals that this process was started to ignore, as `nohup` does, a bit each.
    pub(super) fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
        mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
    }
}

/// What asks for the end of a program that waits for another one.
#[cfg(target_os = "linux")]
mod passed_on {
    use super::unix::{ENDS, ignored, stopped_by};
    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGHUP, SIGTERM};
    use std::io;
    use std::process::{Child, ExitStatus};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Whatever asks for the end first ends nothing here: an interrupt goes to the command as well, from the
    /// terminal, and the others are passed on to it. The second ends this program at once.
    pub(crate) struct PassedOn {
        /// The signal that is to be passed on, or zero.
        signal: Arc<AtomicUsize>,
    }

    impl PassedOn {
        pub(crate) fn new() -> anyhow::Result<PassedOn> {
            let signal = Arc::new(AtomicUsize::new(0));
            let ignored = ignored();
            for n in [SIGTERM, SIGHUP].into_iter().filter(|s| ignored & (1 << (s - 1)) == 0) {
                signal_hook::flag::register_usize(n, Arc::clone(&signal), n.unsigned_abs() as usize)?;
            }
            stopped_by(&ENDS)?;
            Ok(PassedOn { signal })
        }

        /// Whether the command has ended, after it got what came for it.
        pub(crate) fn try_wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
            let signal = i32::try_from(self.signal.swap(0, Relaxed)).ok().and_then(Signal::from_named_raw);
            let ended = child.try_wait()?;
            if let (Some(signal), None) = (signal, ended) {
                // Who may not be told has become somebody else: it is waited for all the same.
                let _ = kill_process(Pid::from_child(child), signal);
            }
            Ok(ended)
        }
    }
}

#[cfg(not(unix))]
const ENDS: [i32; 2] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];

#[cfg(all(not(unix), feature = "tui"))]
fn ended_by(gone: &Arc<AtomicBool>) -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(gone))?;
    Ok(())
}

#[cfg(not(unix))]
fn stopped_by(signals: &[i32]) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        // In this order: what is asked first is whether it was set before.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
