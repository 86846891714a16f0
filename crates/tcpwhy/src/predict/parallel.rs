//! The same work many times, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each number below `n`, in order.
pub(super) fn map<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let one = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                return done;
            }
            done.push((i, work(i)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(16).min(n.max(1));
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let done = running.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        done.flatten().collect()
    });
    all.sort_by_key(|a| a.0);
    all.into_iter().map(|a| a.1).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn in_order_and_each_once() {
        assert_eq!(super::map(1000, |i| i * 2), (0..1000).map(|i| i * 2).collect::<Vec<_>>());
        assert!(super::map(0, |i| i).is_empty());
    }
}
