//! Which exchanges a finding is about, by name.

use crate::wire::{Tap, Wire, ms};
use tcpwhy_analysis::Named;
use tcpwhy_base::Cause;

#[test]
fn findings_name_the_exchanges_that_show_them_by_time() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    // The server works 10, 20, ... 70 ms.
    for k in 0..7 {
        w.at(ms(30 + 200 * k)).client().data(100);
        // Its kernel acknowledges meanwhile.
        w.after(ms(20)).server().ack();
        w.after(ms(10 * k)).server().data(50);
        w.after(ms(10)).client().ack();
    }
    let mut analysis = w.analysis();
    let names = ["a", "b", "a", "c", "d", "e", "f"];
    for (x, name) in analysis.connections[0].exchanges.iter_mut().zip(names) {
        x.named = Some(Box::new(Named { name: name.into(), ..Named::default() }));
    }
    let told = |analysis: &tcpwhy_analysis::Analysis| {
        let think = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).unwrap();
        let names: Vec<String> = think.names.iter().map(|(name, n)| format!("{name} {n}")).collect();
        (names.join(", "), think.more_names)
    };
    analysis.name_findings();
    assert_eq!(told(&analysis), ("f 1, e 1, d 1, a 2, c 1".into(), true), "a: 10 and 30 ms; b is the sixth");
    analysis.connections[0].exchanges[1].named = None;
    analysis.connections[0].exchanges[6].named = None;
    analysis.name_findings();
    assert_eq!(told(&analysis), ("e 1, d 1, a 2, c 1".into(), true), "some have no name");
}

/// Who was asked to wait until something comes is not told to look for slow commands.
#[test]
fn commands_that_block_wait_on_purpose() {
    let told = |names: [&str; 2]| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        for k in 0..8 {
            w.at(ms(30 + 1_000 * k)).client().data(33);
            w.after(ms(20)).server().ack();
            w.after(ms(if k % 2 == 0 { 600 } else { 1 })).server().data(50);
            w.after(ms(10)).client().ack();
        }
        let mut analysis = w.analysis();
        for (n, x) in analysis.connections[0].exchanges.iter_mut().enumerate() {
            x.named = Some(Box::new(Named { name: names[n % 2].into(), ..Named::default() }));
        }
        // Whoever asks twice is told the same.
        analysis.name_findings();
        analysis.name_findings();
        let think = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).unwrap();
        let how = &think.fixes[0].how;
        let count = |start: &str| how.iter().filter(|line| line.starts_with(start)).count();
        (count("Blocking commands: "), count("Redis: "), how[0].starts_with("Blocking commands: "))
    };
    assert_eq!(told(["Redis BLPOP", "Redis RPUSH"]), (1, 0, true));
    assert_eq!(told(["Redis KEYS", "Redis BLPOP"]), (0, 1, false));
}
