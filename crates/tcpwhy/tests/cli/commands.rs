//! Help, and the commands beside `explain`.

use crate::common::{Dir, snapshot, tcpwhy, tcpwhy_with};
use tcpwhy_base::CAUSES;

#[test]
fn help() {
    let text = |args: &[&str]| {
        let ran = tcpwhy(args);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    snapshot("help.txt", &text(&["--help"]));
    snapshot("explain.txt", &text(&["explain", "--help"]));
}

#[test]
fn usage_errors() {
    assert_eq!(tcpwhy(&[]).code, 2);
    for wrong in [
        &["a.pcap", "--nonsense"][..],
        &["a.pcap", "--slower-than", "fast"],
        &["a.pcap", "--from", "yesterday"],
        &["a.pcap", "--exchanges", "best=3"],
        &["a.pcap", "--exchange", "3"],
        &["a.pcap", "--json", "--jsonl"],
        &["a.pcap", "--why-not", "gremlins"],
        &["explain"],
        &["causes", "gremlins"],
    ] {
        let ran = tcpwhy(wrong);
        assert_eq!(ran.code, 2, "{wrong:?}: {}", ran.err);
        assert!(!ran.err.is_empty());
    }
    tcpwhy_with(&["-", "a.pcap"], b"").fails(2, &["standard input"]);
}

#[test]
fn every_cause_has_its_page() {
    let list = tcpwhy(&["causes"]).out;
    for cause in CAUSES {
        assert!(list.contains(cause.id), "{}", cause.id);
        let ran = tcpwhy(&["causes", cause.id]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.starts_with("# ") && ran.out.contains(cause.title), "{}", ran.out);
    }
    assert!(tcpwhy(&["causes", "window"]).err.contains("did you mean"));
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(tcpwhy(&["completions", shell]).out.contains("slower-than"), "{shell}");
    }
    let page = tcpwhy(&["man"]).out;
    assert!(page.contains(".TH tcpwhy") && page.contains("Exit codes"), "{page}");
    let dir = Dir::new();
    assert_eq!(tcpwhy(&["man", "--dir", dir.0.to_str().unwrap()]).code, 0);
    let page = std::fs::read_to_string(dir.0.join("tcpwhy-explain.1")).unwrap();
    assert!(page.contains("why\\-not"), "{page}");
    tcpwhy(&["man", "--dir", "/nowhere"]).fails(3, &["does the directory exist"]);
}
