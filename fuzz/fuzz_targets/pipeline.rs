//! Any bytes as a capture, through the whole program short of the report. Whatever they are, time and bytes are accounted for.
#![no_main]

#[path = "../../crates/analysis/tests/accounted/mod.rs"]
mod accounted;

use libfuzzer_sys::fuzz_target;
use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::Segment;
use tcpwhy_capture::{Dissector, Reader, Verdict};

/// A few packed bytes unpack to very many; more frames teach nothing.
const FRAMES: u64 = 10_000;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(Box::new(std::io::Cursor::new(data.to_vec()))) else { return };
    let mut dissector = Dissector::new();
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    let mut segment = Segment::EMPTY;
    while let Ok(Some(frame)) = reader.next() {
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
            // A bug to be found, to show that the fuzzer finds bugs (`fuzz/run.sh --planted`): RFC 7323 2.3
            // limits the shift to 14, and whoever forgets it overflows.
            #[cfg(planted_bug)]
            if let (true, Some(shift)) = (segment.flags.syn(), segment.options.wscale) {
                std::hint::black_box(u32::from(segment.window) << shift);
            }
            analyzer.push(&segment);
        }
        if reader.frames() >= FRAMES {
            break;
        }
    }
    let analysis = analyzer.finish();
    if let Err(why) = accounted::accounted_for(&analysis) {
        panic!("{why}");
    }
});
