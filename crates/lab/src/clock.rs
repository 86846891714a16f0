//! One clock for captures, events and samples: it runs as the monotonic clock does, and started at the wall
//! clock's time, so that a capture's times are both dates and exact differences.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tcpwhy_base::Nanos;

static START: OnceLock<(Nanos, Instant)> = OnceLock::new();

/// Now.
pub(crate) fn now() -> Nanos {
    let (epoch, instant) = START.get_or_init(|| {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (nanos(epoch), Instant::now())
    });
    *epoch + nanos(instant.elapsed())
}

/// Sleeps until then.
pub(crate) fn sleep_until(then: Nanos) {
    std::thread::sleep(duration(then - now()));
}

/// Milliseconds of a scenario.
pub(crate) fn from_ms(ms: f64) -> Nanos {
    Nanos((ms * 1e6).round() as i64)
}

/// Nothing if `length` is negative.
pub(crate) fn duration(length: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(length.0).unwrap_or(0))
}

fn nanos(length: Duration) -> Nanos {
    Nanos(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX))
}
