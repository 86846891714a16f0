use super::*;
use crate::sample;
use crate::schema::tests::{faults, is_committed};
use serde_json::Value;
use tcpwhy_base::Nanos;

fn document() -> Value {
    let mut text = Vec::new();
    write(&mut text, &sample::analysis(), &sample::capture(), 1).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    is_committed("explain-1.json", &schema());
}

#[test]
fn a_document_keeps_to_the_schema() {
    let wrong = faults(&schema(), &document());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_document_of_some_connections_counts_the_others() {
    let mut analysis = sample::analysis();
    let first = analysis.connections.remove(0);
    analysis.connections = (1..=4)
        .map(|id| {
            let mut c = first.clone();
            c.id = id;
            c
        })
        .collect();
    let of = |places: &[usize]| -> Value {
        let mut text = Vec::new();
        write_of(&mut text, &analysis, &sample::capture(), places).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let whole = of(&[0, 1, 2, 3]);
    let before = whole["summary"]["connections_omitted"].as_u64().unwrap();
    for (places, ids) in [(&[0, 2][..], &[1, 3][..]), (&[3], &[4]), (&[], &[])] {
        let mut some = of(places);
        assert!(faults(&schema(), &some).is_empty());
        let listed: Vec<u64> =
            some["connections"].as_array().unwrap().iter().map(|c| c["id"].as_u64().unwrap()).collect();
        assert_eq!(listed, ids);
        assert_eq!(some["summary"]["connections_omitted"], before + 4 - ids.len() as u64);
        // All else is that of the whole capture.
        some["summary"]["connections_omitted"] = before.into();
        some["connections"] = whole["connections"].clone();
        assert_eq!(some, whole);
    }
}

#[test]
fn the_check_finds_faults() {
    let schema = schema();
    for break_it in [
        |d: &mut Value| d["connections"][0]["exchanges"][0]["spans"][0]["cause"] = "gremlins".into(),
        |d: &mut Value| d["connections"][0]["start_ns"] = 1.5.into(),
        |d: &mut Value| drop(d["connections"][0].as_object_mut().unwrap().remove("gaps_omitted")),
        |d: &mut Value| d["findings"][0]["fixes"][0]["saves_ns"] = "much".into(),
    ] {
        let mut document = document();
        break_it(&mut document);
        let wrong = faults(&schema, &document);
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
    }
}

#[test]
fn times_count_from_the_start_and_findings_keep_their_order() {
    let d = document();
    let c = &d["connections"][0];
    assert_eq!(c["start_ns"], 0);
    assert_eq!(c["end_ns"], 90_000_000);
    assert_eq!(c["client"], "10.0.0.1:40000");
    assert_eq!(c["tshark_stream"], Value::Null, "tshark does not tell VLANs apart");
    assert_eq!(c["exchanges_omitted"], Value::Null);
    assert_eq!(c["exchanges"][0]["spans"][0]["id"], "1.1.1");
    assert_eq!(c["setup"]["spans"][0]["id"], "1.s.1");
    assert_eq!(c["gaps"][0]["spans"][0]["id"], "1.g1.1");
    assert_eq!(c["exchanges"][0]["spans"][1]["alternatives"][0]["cause"], "delayed_ack");
    assert_eq!(c["endpoints"]["client"]["stack"]["os"], "Linux");
    assert_eq!(c["endpoints"]["server"]["stack"], Value::Null);
    let f = &d["findings"][0];
    assert_eq!(f["cause"], "nagle_delayed_ack");
    assert_eq!(f["class"], "T");
    assert_eq!(f["example"]["display_filter"], "frame.number in {4,5,6}");
    assert_eq!(f["fixes"][0]["applies_to"]["option"], "TCP_NODELAY");
    assert_eq!(f["fixes"][0]["predicted_ns"], Value::Null);
    assert_eq!(d["capture"]["start"], "2023-11-14T22:13:20.000000000Z");
    assert_eq!(d["capture"]["duration_ns"], 95_000_000);
}

#[test]
fn spans_come_in_the_order_of_time_under_the_ids_of_the_document() {
    let c = sample::connection();
    let ids: Vec<String> = c.spans().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["1.s.1", "1.1.1", "1.1.2", "1.g1.1", "1.2.1"]);
    assert!(c.spans().is_sorted_by_key(|(_, span)| span.start));
}

#[test]
fn a_cause_of_both_sides_has_two_ids() {
    let mut findings = sample::analysis().findings;
    let mut of_server = findings[0].clone();
    (of_server.side, of_server.lost) = (Some(Side::Server), Nanos::millis(30));
    assert_eq!(of_server.cause, Cause::NagleDelayedAck);
    findings.insert(1, of_server);
    let ids = finding_ids(&findings);
    assert_eq!(ids[&(Cause::NagleDelayedAck, Some(Side::Client))], "f1");
    assert_eq!(ids[&(Cause::NagleDelayedAck, Some(Side::Server))], "f2");
    assert_eq!(ids[&(Cause::ServerThink, Some(Side::Server))], "f3");
}

#[test]
fn stream_numbers_are_those_of_tshark() {
    let capture = crate::Capture { encapsulations: Vec::new(), ..sample::capture() };
    let mut text = Vec::new();
    write(&mut text, &sample::analysis(), &capture, 1).unwrap();
    let d: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(d["connections"][0]["tshark_stream"], 0);
}

#[test]
fn several_inputs_number_their_frames_by_file() {
    let mut capture = sample::capture();
    assert_eq!(document()["connections"][0]["setup"]["spans"][0]["frames"].get("file"), None);
    capture.files.push("more.pcap".into());
    capture.frames_before = vec![0, 7];
    let mut text = Vec::new();
    write(&mut text, &sample::analysis(), &capture, 1).unwrap();
    let d: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(d["connections"][0]["setup"]["spans"][0]["frames"]["file"], 0);
    let late = &d["connections"][0]["exchanges"][1]["spans"][0]["frames"];
    assert_eq!((&late["first"], &late["last"], &late["file"]), (&2.into(), &3.into(), &1.into()));
    let frames = &d["connections"][0]["frames"];
    assert_eq!((&frames["file"], &frames["last_file"], &frames["last"]), (&0.into(), &1.into(), &3.into()));
    assert_eq!(d["connections"][0]["tshark_stream"], Value::Null);
}

#[test]
fn threads_keep_the_order_and_stop_when_nobody_reads() {
    let mut analysis = sample::analysis();
    let numbered = |id| {
        let mut c = sample::connection();
        c.id = id;
        Box::new(c)
    };
    analysis.connections = (1..=2000).map(numbered).collect();
    let mut one = Vec::new();
    write(&mut one, &analysis, &sample::capture(), 1).unwrap();
    let mut three = Vec::new();
    write(&mut three, &analysis, &sample::capture(), 3).unwrap();
    assert!(one == three);
    let d: Value = serde_json::from_slice(&three).unwrap();
    let ids: Vec<u64> =
        d["connections"].as_array().unwrap().iter().map(|c| c["id"].as_u64().unwrap()).collect();
    assert!(ids.iter().copied().eq(1..=2000));
    let mut little = [0u8; 1000];
    assert!(write(&mut &mut little[..], &analysis, &sample::capture(), 3).is_err());
}

/// The page makes a word of the confidence that stands here, the text of the one in the analysis.
#[test]
fn a_confidence_is_called_the_same_from_here_and_in_the_text() {
    let mut analysis = sample::analysis();
    analysis.findings[0].confidence = 0.899_96;
    let mut text = Vec::new();
    write(&mut text, &analysis, &sample::capture(), 1).unwrap();
    let d: Value = serde_json::from_slice(&text).unwrap();
    let told = d["findings"][0]["confidence"].as_f64().unwrap();
    assert_eq!(crate::sureness(told), crate::sureness(analysis.findings[0].confidence));
}

#[test]
fn lines_hold_the_same_objects() {
    let mut text = Vec::new();
    write_lines(&mut text, &sample::analysis(), &sample::capture()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let kinds: Vec<Value> =
        lines.iter_mut().map(|l| l.as_object_mut().unwrap().remove("type").unwrap()).collect();
    assert_eq!(kinds, ["connection", "finding", "finding", "summary", "capture"]);
    let d = document();
    assert_eq!(lines[0], d["connections"][0]);
    assert_eq!(lines[1], d["findings"][0]);
    assert_eq!(lines[3], d["summary"]);
    assert_eq!(lines[4], d["capture"]);
}

#[test]
fn threads_write_what_one_alone_does() {
    let mut analysis = sample::analysis();
    let first = analysis.connections.remove(0);
    for many in [3, 300, 16 * CHUNK + 300] {
        let number = |id: usize| {
            let mut c = first.clone();
            c.id = id as u32;
            c
        };
        analysis.connections = (1..=many).map(number).collect();
        let written = |threads| {
            let mut text = Vec::new();
            write(&mut text, &analysis, &sample::capture(), threads).unwrap();
            text
        };
        let alone = written(1);
        assert!((2..5).all(|threads| written(threads) == alone), "{many} connections");
    }
}
