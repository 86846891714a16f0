use super::*;
use crate::json::values::InBrief;
use std::collections::BTreeMap;
use tcpwhy_base::Endpoint;

fn same(value: &impl Serialize) {
    let mut ours = Vec::new();
    append(&mut ours, value).unwrap();
    let theirs = serde_json::to_vec(value).unwrap();
    assert_eq!(String::from_utf8(ours), String::from_utf8(theirs));
}

#[derive(Serialize)]
struct Everything<'a> {
    none: Option<u8>,
    some: Option<i64>,
    yes: bool,
    list: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u8>,
    map: BTreeMap<&'a str, u64>,
}

#[test]
fn numbers() {
    for n in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 12_345, u64::MAX, u64::from(u32::MAX)] {
        same(&n);
    }
    for n in [i64::MIN, -1, 0, 7, i64::MAX] {
        same(&n);
    }
    for n in 0..=1000 {
        same(&(f64::from(n) / 1e3));
    }
    for n in (0..=2000).chain((0..=1_000_000).step_by(97)) {
        same(&(f64::from(n) / 1e6));
    }
    for x in [-0.0, 1e-5, 9.999_999e-6, 0.999_999_9, 0.333_333, 1e-9, 1.0, 2.5, -0.5, f64::NAN, f64::INFINITY]
    {
        same(&x);
    }
}

#[test]
fn texts() {
    for c in 0..300 {
        let c = char::from_u32(c).unwrap();
        for before in 0..10 {
            same(&format!("{}{c}and then some more", "x".repeat(before)));
        }
    }
    for t in ["", "10.0.0.1:80", "µs and µs and µs", "\"\\\u{7f}\u{1f}", "𝄞"] {
        same(&t);
    }
}

#[test]
fn every_width_of_number_is_written_alike() {
    same(&(i8::MIN));
    same(&(i16::MIN));
    same(&(i32::MIN));
    same(&(u8::MAX));
    same(&(u16::MAX));
    same(&0.25_f32);
    same(&'\u{1}');
    same(&'µ');
    same(&());
}

#[test]
fn words_and_addresses_in_one_copy() {
    #[derive(Clone, Copy)]
    struct Word(&'static str);
    impl Serialize for Word {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            s.serialize_unit_variant("", 0, self.0)
        }
    }
    let letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    for len in 0..=letters.len() {
        same(&Word(&letters[..len]));
        same(&&letters[..len]);
    }
    for ip in ["1.2.3.4", "255.255.255.255", "::", "2001:db8::1", "::ffff:10.0.0.1"] {
        for port in [1, 80, 65_535] {
            same(&InBrief(Endpoint { ip: ip.parse().unwrap(), port }));
        }
    }
}

#[derive(Serialize)]
enum Kinds {
    Unit,
    New(u8),
    Tuple(u8, u8),
    Struct { field: u8 },
}

#[derive(Serialize)]
struct New(u8);

#[derive(Serialize)]
struct Nothing;

#[derive(Serialize)]
struct Two(u8, u8);

#[test]
fn what_the_contract_does_not_have_is_refused() {
    same(&Kinds::Unit);
    same(&New(7));
    same(&[(1, "a"), (2, "b")]);
    let refused = |done: io::Result<()>| done.is_err_and(|e| e.to_string().contains("contract"));
    let mut out = Vec::new();
    assert!(refused(append(&mut out, &Kinds::New(1))));
    assert!(refused(append(&mut out, &Kinds::Tuple(1, 2))));
    assert!(refused(append(&mut out, &Kinds::Struct { field: 1 })));
    assert!(refused(append(&mut out, &Nothing)));
    assert!(refused(append(&mut out, &Two(1, 2))));
    assert!(out.is_empty());
}

#[test]
fn objects() {
    let map = BTreeMap::from([("a", 1), ("b\n", 2)]);
    let list = [0.5, 0.25];
    same(&Everything { none: None, some: Some(-3), yes: true, list: &list, left_out: None, map });
    same(&Everything {
        none: Some(1),
        some: None,
        yes: false,
        list: &[],
        left_out: Some(2),
        map: BTreeMap::new(),
    });
}
