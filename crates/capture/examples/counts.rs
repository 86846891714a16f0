//! What is in a capture, in one line: `cargo run -p tcpwhy-capture --example counts -- FILE...`.

use std::path::Path;
use tcpwhy_base::Segment;
use tcpwhy_capture::{Dissector, Reader};

fn main() {
    for file in std::env::args().skip(1) {
        let mut dissector = Dissector::new();
        let mut segment = Segment::EMPTY;
        let mut reader = match Reader::open(Path::new(&file)) {
            Ok(reader) => reader,
            Err(e) => {
                println!("{file}: {e}");
                continue;
            }
        };
        let end = loop {
            match reader.next() {
                Ok(Some(frame)) => _ = dissector.dissect(&frame, 0, &mut segment),
                Ok(None) => break String::new(),
                Err(e) => break format!("; {e}"),
            }
        };
        let around: Vec<_> = dissector.encapsulations().collect();
        println!("{file}: {} frames, {:?}, {around:?}{end}", reader.frames(), dissector.counts());
    }
}
