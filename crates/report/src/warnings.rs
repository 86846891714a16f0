use crate::Warning;
use tcpwhy_analysis::{Quality, Totals};

/// One warning for each kind of limit that connections show, with how many show it. The order is that of
/// [`Quality::NAMES`].
pub fn quality_warnings(totals: &Totals) -> Vec<Warning> {
    Quality::NAMES
        .into_iter()
        .zip(totals.quality)
        .filter_map(|((bit, code), count)| {
            let said = if count == 0 { None } else { sentence(bit) };
            said.map(|text| Warning { code, text: text.into(), count })
        })
        .collect()
}

/// What a quality bit means for the reader, and the next step. `None` for what limits nothing.
fn sentence(bit: Quality) -> Option<&'static str> {
    Some(match bit {
        Quality::MIDSTREAM => {
            "the capture begins in the middle of the connection: setup, window scale and who is the client are \
             inferred or missing. Start the capture before the connection"
        }
        Quality::ONE_SIDED => {
            "packets of one end only: waits cannot be split between the two ends. Capture where both directions pass"
        }
        Quality::SNAPLEN => "headers are cut by the snap length. Capture with tcpdump -s 128 or more",
        Quality::CAPTURE_DROPS => {
            "the capture misses packets that were delivered, so some waits may have another cause. Capture with a \
             larger buffer (tcpdump -B 65536) or a shorter snap length (-s 128)"
        }
        Quality::TIME_WENT_BACK => {
            "packets are stamped earlier than the packets before them; such steps were taken as zero. Several \
             capture threads or a clock that was set: sort with reordercap, or capture on one queue"
        }
        Quality::DUPLICATES => {
            "packets appear twice (a mirror port, the any interface, loopback, or both ends of a path in one file) and \
             were counted once. Capture on one interface to avoid it; both ends tell more as two files (`tcpwhy \
             explain CLIENT SERVER`)"
        }
        Quality::NO_WINDOW_SCALE => {
            "the window scale is not known, so window limits are judged from bytes in flight only. Capture the \
             handshake"
        }
        Quality::SCALE_INFERRED => {
            "the window scale was not captured, but read from how the windows moved. Before that was sure, window \
             limits may have been missed"
        }
        Quality::COARSE_CLOCK => {
            "the clock of the capture ticks every 1 or 10 ms, so waits of up to two ticks are not judged. Capture with \
             microseconds, the default of tcpdump and dumpcap"
        }
        Quality::SPLIT => {
            "a proxy, a NAT engine or a balancer acknowledges for the server, so what the server and the way behind it took \
             cannot be told apart. Capture at the server, or between the two"
        }
        _ => return None,
    })
}
