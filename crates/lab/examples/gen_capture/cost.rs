//! One run of a command: time and memory.

use std::io;

#[expect(unsafe_code, reason = "the standard library does not say what a child has cost")]
unsafe extern "C" {
    fn getrusage(who: i32, usage: *mut [i64; 18]) -> i32;
}

/// Runs a command and writes wall and CPU seconds and the peak of its memory in bytes.
pub(crate) fn run(statistics: &str, command: &[String]) -> io::Result<()> {
    let started = std::time::Instant::now();
    let status = std::process::Command::new(&command[0]).args(&command[1..]).status()?;
    let wall = started.elapsed().as_secs_f64();
    // struct rusage on 64-bit Linux: user and system time as (s, us), peak memory in KiB, 13 more
    let mut usage = [0i64; 18];
    #[expect(unsafe_code, reason = "see above")]
    // SAFETY: the array has the size of struct rusage; -1 is RUSAGE_CHILDREN
    unsafe {
        getrusage(-1, &mut usage)
    };
    let cpu = (usage[0] + usage[2]) as f64 + (usage[1] + usage[3]) as f64 / 1e6;
    let peak = usage[4] * 1024;
    std::fs::write(statistics, format!("{{\"wall\": {wall}, \"cpu\": {cpu}, \"memory\": {peak}}}\n"))?;
    std::process::exit(status.code().unwrap_or(128))
}
