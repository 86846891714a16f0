use super::*;
use crate::json::Buffer;
use crate::json::values::InBrief;
use std::collections::BTreeMap;
use tcpwhy_base::Endpoint;

fn same(value: &impl Serialize) {
    let mut ours = Buffer::default();
    ours.append(value).unwrap();
    let theirs = serde_json::to_vec(value).unwrap();
    assert_eq!(str::from_utf8(ours.as_slice()), str::from_utf8(&theirs));
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
fn what_the_contract_does_not_have_is_left_to_others() {
    same(&Kinds::Unit);
    same(&New(7));
    same(&[(1, "a"), (2, "b")]);
    same(&Kinds::New(1));
    same(&Kinds::Tuple(1, 2));
    same(&Kinds::Struct { field: 1 });
    same(&Nothing);
    same(&Two(1, 2));
}

/// Something of everything, as it is written into so many bytes of room.
fn into_room(room: &mut [u8], value: &impl Serialize) -> Option<usize> {
    let whole = room.len();
    write(room, value).ok().map(|rest| whole - rest.len())
}

#[test]
fn what_finds_no_room_is_begun_anew() {
    let map =
        BTreeMap::from([("a", u64::MAX), ("b\n", 12), ("a name that is longer than most names are", 1234)]);
    let list = [0.5, 0.0, 1e-9];
    let value = (
        Everything { none: None, some: Some(-123_456), yes: true, list: &list, left_out: Some(2), map },
        InBrief(Endpoint { ip: [10, 0, 0, 1].into(), port: 443 }),
        [
            "",
            "a",
            "word",
            "some words",
            "some more words of it",
            "µs \" and what goes on for more than 32 bytes",
        ],
    );
    let theirs = serde_json::to_vec(&value).unwrap();
    let mut room = vec![0; theirs.len() + 20];
    for len in 0..room.len() {
        match into_room(&mut room[..len], &value) {
            Some(written) => assert_eq!(&room[..written], theirs),
            // A number asks for some bytes more than it fills.
            None => assert!(len < theirs.len() + 8, "{len} bytes are enough"),
        }
    }
    let mut many = Buffer::default();
    for _ in 0..2_000 {
        many.append(&value).unwrap();
        many.extend(b"\n");
    }
    let lines: Vec<&[u8]> = many.as_slice().split(|&b| b == b'\n').collect();
    assert_eq!(lines.len(), 2_001);
    assert!(lines[..2_000].iter().all(|line| *line == theirs));
    assert_eq!(many.len(), 2_000 * (theirs.len() + 1));
    many.clear();
    assert!(many.is_empty());
    same(&vec!["x".repeat(1 << 20); 17]);
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
