//! Segments whose connections are looked up before others have had their turn.

use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::{Endpoint, Nanos, Segment, TcpFlags};

fn all_detail() -> Analyzer {
    Analyzer::new(Config { detail: Detail::All })
}

/// A connection that has gone while its next packet was on the way: whoever has its place then does not get that packet.
#[test]
fn a_place_that_another_one_got_meanwhile_is_not_used() {
    let packet = |port: u16, second: i64, flags: u16| {
        let end = |last: u8, port| Endpoint { ip: [192, 0, 2, last].into(), port };
        Segment {
            time: Nanos::secs(second),
            frame: second as u64 + 1,
            src: end(1, port),
            dst: end(2, 80),
            flags: TcpFlags(flags),
            ..Segment::EMPTY
        }
    };
    let (ack, rst) = (TcpFlags::ACK, TcpFlags::RST);
    let before = [packet(1, 0, ack), packet(1, 1, rst | ack), packet(2, 2, ack), packet(2, 3, ack)];
    // The first goes after 240 s, the third gets its place, and then one more of the first comes.
    let then = [packet(2, 300, ack), packet(3, 301, ack), packet(3, 302, ack), packet(1, 303, ack)];
    let mut analyzer = all_detail().crowded_from(0);
    analyzer.push_all(&before);
    analyzer.push_all(&then);
    let all: Vec<Segment> = before.into_iter().chain(then).collect();
    let mut one = all_detail();
    all.iter().for_each(|segment| one.push(segment));
    assert_eq!(format!("{:?}", analyzer.finish()), format!("{:?}", one.finish()));
}
