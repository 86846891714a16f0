//! Many short connections to one server, and which of them were needed.

use crate::sums::{begun, has, requests, says, together};
use crate::wire::{Tap, Wire, analyze, ms};
use tcpwhy_base::Cause;

#[test]
fn three_connections_with_one_request_each_are_short_and_two_are_not() {
    let one = requests(1, ms(20));
    let analysis = |n: usize| analyze(&together(&vec![one.clone(); n], ms(100)));
    says(
        &analysis(3),
        Cause::ShortConnections,
        "
        short_connections client lost 40.0 ms (0.256) tail 0 ns n 3 of 0 ns to 20.0 ms
        at 1.0 #1 evidence 1 in 3 [1]
        3 connections to 10.0.0.2:80 with one exchange each; their setups took 60.0 ms together.
        reuse_connections at client server 10.0.0.2:80 connection 1 side client saves 40.0 ms",
    );
    assert!(!has(&analysis(2), Cause::ShortConnections));
    // Neither those with more requests than one.
    let several = analyze(&together(&vec![requests(2, ms(20)); 3], ms(100)));
    assert!(!has(&several, Cause::ShortConnections));
    // Nor those without any.
    let mut none = Wire::new(Tap::Client, ms(20));
    none.handshake();
    assert!(!has(&analyze(&together(&vec![none; 3], ms(100))), Cause::ShortConnections));
}

/// Those that run beside others are needed: the first of each, and no setup of theirs is spared.
#[test]
fn short_connections_side_by_side_spare_no_setups() {
    let one = requests(1, ms(20));
    let short = |starts: &[i64]| {
        let analysis = analyze(&begun(&vec![one.clone(); starts.len()], |n| ms(starts[n])));
        let f = analysis.findings.into_iter().find(|f| f.cause == Cause::ShortConnections);
        f.map(|f| (f.lost, f.why().contains(" 3 of them are needed side by side.")))
    };
    // One after the other; three at a time, twice; three at once.
    assert_eq!(short(&[0, 500, 1_000, 1_500, 2_000, 2_500]), Some((ms(100), false)));
    assert_eq!(short(&[0, 1, 2, 1_000, 1_001, 1_002]), Some((ms(60), true)));
    assert_eq!(short(&[0, 1, 2]), None);
    // Of very many by how many there were in the middle.
    let many: Vec<i64> = (0..300).map(|k| k / 3 * 100 + k % 3).collect();
    assert!(short(&many).is_some_and(|(lost, _)| lost > ms(297 * 20 - 60) && lost < ms(300 * 20)));
}
