//! The distance that was asked for, as a scenario of the lab.

use crate::args::run::Run;
use tcpwhy_base::Nanos;
use tcpwhy_lab::Scenario;

/// What every machine's link has given so far, with a wide margin.
const CERTAIN_MBIT: f64 = 1000.0;
/// The least queue in front of a rate: as many packets as a burst of a new connection has, several times.
const LEAST_QUEUE: f64 = 65_536.0;

/// None where loopback stays as it is.
pub(super) fn scenario(args: &Run) -> Result<Option<Scenario>, String> {
    if !args.has_link() {
        return Ok(None);
    }
    let ms = |n: Nanos| n.0 as f64 / 1e6;
    let rtt = args.rtt.map_or(0.0, ms);
    let mut set = vec![format!("link.rtt_ms={rtt}")];
    if let Some(rate) = args.rate {
        if rate > CERTAIN_MBIT {
            return Err(format!(
                "--rate {rate}mbit: the link gives {CERTAIN_MBIT} Mbit/s at most; choose a lower one, or leave it out"
            ));
        }
        // A megabit in a millisecond is 125 bytes.
        let queue = args.queue.map_or_else(|| (rate * rtt * 125.0).max(LEAST_QUEUE), |q| q as f64);
        set.push(format!("link.rate_mbit={rate}"));
        set.push(format!("link.queue_bytes={queue:.0}"));
    }
    if let Some(mtu) = args.mtu {
        set.push(format!("link.mtu={mtu}"));
    }
    if let Some(seed) = args.seed {
        set.push(format!("seed={seed}"));
    }
    if let Some(loss) = args.loss {
        set.extend(["up", "down"].map(|way| format!("link.{way}.loss={loss}")));
    }
    Scenario::parse("title = 'link'\n[workload]\nrequest = [1]\n", &set).map(Some).map_err(|e| e.to_string())
}
