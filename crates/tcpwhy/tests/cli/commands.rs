//! Help, and the commands beside `explain`.

use crate::common::{Dir, Pcap, program, smtp, snapshot, tcpwhy, tcpwhy_with};
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
        assert!(
            ran.out.starts_with(cause.title) && !ran.out.contains("**") && !ran.out.contains("|---"),
            "{}",
            ran.out
        );
    }
    assert!(tcpwhy(&["causes", "window"]).err.contains("did you mean"));
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(tcpwhy(&["completions", shell]).out.contains("slower-than"), "{shell}");
    }
    let page = tcpwhy(&["man"]).out;
    assert!(page.contains(".TH tcpwhy") && page.contains("EXIT STATUS"), "{page}");
    let dir = Dir::new();
    assert_eq!(tcpwhy(&["man", "--dir", dir.0.to_str().unwrap()]).code, 0);
    let page = std::fs::read_to_string(dir.0.join("tcpwhy-explain.1")).unwrap();
    assert!(page.contains("why\\-not"), "{page}");
    tcpwhy(&["man", "--dir", "/proc/nowhere"]).fails(3, &["cannot write manual pages to /proc/nowhere"]);
}

#[test]
fn what_was_mistyped_is_offered() {
    let said = |args: &[&str]| {
        let ran = tcpwhy(args);
        assert_eq!(ran.code, 2, "{}", ran.err);
        ran.err
    };
    assert!(said(&["predcit", "--rtt", "5ms"]).contains("'predict'"));
    assert!(said(&["causes", "nagel"]).contains("did you mean nagle?"));
    assert!(said(&["x.pcap", "--why-not", "nagel"]).contains("did you mean nagle?"));
    assert!(said(&["x.pcap", "--fail-if", "nagel>5%"]).contains("did you mean nagle?"));
    assert!(said(&["x.pcap", "--fail-if", "tcp<5%"]).contains("tcp>5%"));
    assert!(said(&["predict", "--rtt", "1ms", "--request", "1XB"]).contains("1TB"));
}

/// Shells complete causes, and the options of explain without that word.
/// Those of faults that are not said to be known may be any.
#[test]
fn completions_know_faults() {
    let script = tcpwhy(&["completions", "bash"]).out;
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let after = |option: &str| {
        let mut pairs = lines.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1]);
        pairs.find(|words| words.contains("listener-behind")).unwrap_or_else(|| panic!("{option}: {script}"))
    };
    let (fails, known) = (after("--fail-if)"), after("--acknowledge)"));
    assert!(fails.contains("listener-behind") && fails.contains(" any\""), "{fails}");
    assert!(known.contains("listener-behind") && !known.contains(" any\""), "{known}");
}

#[test]
fn completions_know_causes_and_the_short_form() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = tcpwhy(&["completions", shell]).out;
        assert!(script.contains("nagle_delayed_ack"), "{shell}");
    }
    let fish = tcpwhy(&["completions", "fish"]).out;
    let short = fish.lines().find(|l| l.contains("__fish_tcpwhy_needs_command") && l.contains("-l jsonl"));
    assert!(short.is_some(), "{fish}");
}

#[test]
fn manual_pages_have_their_sections() {
    let dir = Dir::new();
    let new = dir.0.join("new/dir");
    let ran = tcpwhy(&["man", "--dir", new.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let page = std::fs::read_to_string(new.join("tcpwhy-explain.1")).unwrap();
    for section in [".SH SYNOPSIS", ".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
        assert!(page.contains(section), "{section} is missing");
    }
    assert!(new.join("tcpwhy-lab-run.1").exists() && new.join("tcpwhy.1").exists());
}

/// `captures` is two slips from `causes`, which is what is proposed where no such file or folder is there.
#[test]
fn a_folder_called_nearly_as_a_command_is_explained() {
    let dir = Dir::new();
    let captures = || program().arg("captures").current_dir(&dir.0).output().unwrap();
    let said = String::from_utf8(captures().stderr).unwrap();
    assert!(said.contains("unrecognized subcommand 'captures'") && said.contains("causes"), "{said}");
    std::fs::create_dir(dir.0.join("captures")).unwrap();
    dir.file("captures/a.pcap", &Pcap::new().conversation(0, 3).bytes);
    let done = captures();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(String::from_utf8(done.stdout).unwrap().contains("3 requests"));
}

#[test]
fn a_negative_number_is_the_value_of_its_option() {
    for wrong in
        [&["a.pcap", "--top", "-1"][..], &["serve", "--port", "-1"], &["predict", "--requests", "-3"]]
            .into_iter()
            // With a unit as well.
            .chain([&["a.pcap", "--slower-than", "-40ms"][..], &["run", "--rtt", "-5ms", "--", "true"]])
    {
        let ran = tcpwhy(wrong);
        assert_eq!(ran.code, 2, "{wrong:?}: {}", ran.err);
        assert!(ran.err.contains("invalid value '-") && !ran.err.contains("tip:"), "{wrong:?}: {}", ran.err);
    }
    // Without an option before it, it may be a file.
    assert!(tcpwhy(&["-1"]).err.contains("'-- -1'"));
}

#[test]
fn who_wants_the_version_is_told_how() {
    tcpwhy(&["version"]).fails(3, &["version: no such file", "tcpwhy --version"]);
    assert_eq!(tcpwhy(&["--version"]).code, 0);
}

/// One of each is not said as several.
#[cfg(feature = "parquet")]
#[test]
fn one_capture_is_one() {
    let dir = Dir::new();
    let tables = dir.0.join("tables");
    let tables = tables.to_str().unwrap();
    let done = tcpwhy(&["explain", &smtp(), "--parquet", tables]);
    assert!(
        done.out.starts_with("1 capture in ") && done.out.contains(": 1 connection, 32 exchanges, "),
        "{}",
        done.out
    );
    let sums = tcpwhy(&["summarize", tables]);
    assert!(sums.out.starts_with("32 exchanges on 1 connection in 1 capture of "), "{}", sums.out);
}
