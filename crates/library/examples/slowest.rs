//! The slowest exchanges of captures, with what most of their time went into.
//!
//! ```console
//! $ cargo run --example slowest -- captures/zeek__smtp_bdat.pcap
//! ```

use std::ops::ControlFlow;
use tcpwhy_library::{Explain, Nanos, ReadError, Reader};

fn main() -> Result<(), ReadError> {
    let mut slow: Vec<(Nanos, String)> = Vec::new();
    for path in std::env::args_os().skip(1) {
        let ended = Explain::new().each(Reader::open(path.as_ref())?, |c| {
            for x in &c.exchanges {
                let Some(worst) = x.spans.iter().max_by_key(|s| s.duration()) else { continue };
                let text =
                    format!("{} > {}  exchange {}: {}", c.client, c.server, x.id, worst.facts.sentence());
                slow.push((x.end - x.start, text));
            }
            slow.sort_by_key(|s| std::cmp::Reverse(s.0));
            slow.truncate(10);
            ControlFlow::Continue(())
        });
        if let Some(damage) = ended.input.damage {
            eprintln!("{}: {damage}", path.display());
        }
    }
    for (time, text) in slow {
        println!("{:>9}  {text}", time.to_string());
    }
    Ok(())
}
