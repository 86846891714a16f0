use super::*;
use std::fmt::Debug;
use tcpwhy_base::{Cause, Endpoint, Ends, Held, Program, Random, Seq, Witness};

/// Takes these about a moment, and gives how many bytes they are.
fn kept<T: Rest>(values: &[T]) -> Vec<u8> {
    let mut to = Packer::default();
    to.begin(Nanos::secs(1_700_000_000));
    values.iter().for_each(|value| value.put(&mut to));
    to.end().to_vec()
}

/// They come back as they were.
fn come_back<T: Rest + Debug>(values: &[T]) {
    let bytes = kept(values);
    let mut from = Unpacker::of(&bytes);
    for value in values {
        assert_eq!(format!("{:?}", T::get(&mut from)), format!("{value:?}"));
    }
    assert!(from.left() < 64, "{from:?}");
}

fn come_back_as<T: Debug + Clone, F: Form<T>>(values: &[T]) {
    let mut to = Packer::default();
    to.begin(Nanos::ZERO);
    values.iter().for_each(|value| F::write(value, &mut to));
    let mut from = Unpacker::of(to.end());
    for value in values {
        assert_eq!(format!("{:?}", F::read(&mut from)), format!("{value:?}"));
    }
    assert!(from.left() < 64, "{from:?}");
}

/// Each number of so many bits that stands beside a power of two, its negative, and what lies about a moment.
fn numbers() -> Vec<i64> {
    let powers = (0..64).map(|n| 1_i64.wrapping_shl(n));
    let about = [0, 1_700_000_000_000_000_000, i64::MIN, i64::MAX];
    let all = powers.flat_map(move |power| about.map(|zero| power.wrapping_add(zero)));
    all.flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_neg(), n.wrapping_mul(1_000)]).collect()
}

#[test]
fn numbers_come_back() {
    let numbers = numbers();
    come_back(&numbers);
    come_back(&numbers.iter().map(|&n| n as u64).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| n as u32).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| n as i32).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| n as u16).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| n as u8).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| n & 1 == 1).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| Nanos(n)).collect::<Vec<_>>());
    come_back(&numbers.iter().map(|&n| Seq(n as u32)).collect::<Vec<_>>());
    come_back_as::<_, Frame>(&numbers.iter().map(|&n| n as u64).collect::<Vec<_>>());
    come_back_as::<_, Edge>(&numbers.iter().map(|&n| Seq(n as u32)).collect::<Vec<_>>());
    come_back_as::<_, Time>(&numbers);
    come_back_as::<_, Near>(&numbers.iter().map(|&n| n as u32).collect::<Vec<_>>());
    come_back_as::<_, Mixed>(&numbers.iter().map(|&n| n as u32).collect::<Vec<_>>());
    come_back_as::<_, Mixed>(&numbers.iter().map(|&n| n as u16).collect::<Vec<_>>());
    come_back_as::<[u32; 3], InRow>(&numbers.iter().map(|&n| [0, n as u32, !n as u32]).collect::<Vec<_>>());
    come_back_as::<_, Frame>(
        &numbers.iter().map(|&n| std::num::NonZeroU64::new(n as u64)).collect::<Vec<_>>(),
    );
    come_back_as::<_, Frame>(&numbers.iter().map(|&n| (Nanos(n), n as u64)).collect::<Vec<_>>());
}

#[test]
fn drawn_moments_come_back() {
    let mut random = Random(1);
    let mut drawn = || (random.below(u64::MAX) >> random.below(64)) as i64;
    let times: Vec<Nanos> = (0..5_000).map(|n| Nanos(drawn().wrapping_mul(n % 3 - 1))).collect();
    come_back(&times);
}

#[test]
fn floats_come_back_with_all_their_bits() {
    let floats =
        [0.0, -0.0, 1.0, -1.5, 0.95, f64::NAN, f64::INFINITY, f64::MIN, f64::MIN_POSITIVE, f64::EPSILON];
    let bytes = kept(&floats);
    let mut from = Unpacker::of(&bytes);
    floats.iter().for_each(|float| assert_eq!(f64::get(&mut from).to_bits(), float.to_bits()));
    let small = floats.map(|float| float as f32);
    let bytes = kept(&small);
    let mut from = Unpacker::of(&bytes);
    small.iter().for_each(|float| assert_eq!(f32::get(&mut from).to_bits(), float.to_bits()));
}

#[test]
fn lists_and_what_may_be_missing_come_back() {
    come_back(&[vec![], vec![7_u32], (0..5_000).collect(), vec![0; 5_000]]);
    come_back(&[VecDeque::from([(1_u8, Nanos(5)), (0, Nanos(-5))]), VecDeque::new()]);
    come_back(&[[0_u16; 168], [3; 168]]);
    let mut few = Box::new([0_u16; 168]);
    (few[3], few[4], few[167]) = (1, u16::MAX, 9);
    come_back_as::<_, Place>(&[few, Box::new([0; 168]), Box::new([7; 168])]);
    come_back_as::<_, Place>(&[vec![(7_u16, 1_u32), (9, 0), (u16::MAX, u32::MAX)], vec![]]);
    come_back(&[None, Some(Box::new(0_u64)), Some(Box::new(5))]);
    come_back(&[(None::<u8>, Some(None::<u8>), Some(Some(1_u8)))]);
    let ends = ["192.0.2.1:80", "[2001:db8::1]:443"].map(|end| {
        let end: std::net::SocketAddr = end.parse().unwrap();
        Endpoint { ip: end.ip(), port: end.port() }
    });
    come_back(&[Ends::from(ends)]);
}

#[test]
fn what_is_of_a_few_kinds_comes_back() {
    come_back(&tcpwhy_base::CAUSES.iter().map(|row| row.cause).collect::<Vec<Cause>>());
    come_back(&Program::ALL);
    come_back(&[Held::Nothing, Held::CongestionWindow { slow_start: true }, Held::Window, Held::Other]);
    come_back(&[Witness::default(), Witness { room: Some((Nanos(1), Nanos::MAX)), ..Witness::default() }]);
    come_back_as::<_, Protocol>(&[Some("tls"), None, Some("http/1"), Some("ssh"), Some("http/2")]);
}

#[test]
fn what_is_zero_or_the_same_again_takes_a_bit() {
    let empty = kept::<u8>(&[]).len();
    assert_eq!(kept(&[[None::<Nanos>; 800]]).len(), empty + 100);
    assert!(kept(&[Seq(500_000_000); 81]).len() <= empty + 5 + 10);
    // So many µs after each other: 14 bits, how many those are, and four more; then each of them again.
    let times: Vec<Nanos> = (1..=80).map(|n| Nanos::secs(1_700_000_000) + Nanos::micros(n * 8_000)).collect();
    assert!(kept(&times).len() <= empty + 80 * (14 + 6 + 4) / 8);
    assert!(kept(&[&times[..8], &times[..8]].concat()).len() <= empty + 8 * (14 + 6 + 4 + 8) / 8);
}

/// Whatever is missing is zero, and what has no number is the first.
#[test]
fn bytes_that_end_too_soon_are_read_to_their_end() {
    let whole = kept(&[vec![Nanos::MAX; 40], vec![Nanos(1); 40]]);
    for cut in 0..whole.len() {
        let mut from = Unpacker::of(&whole[..cut]);
        let list = Vec::<Nanos>::get(&mut from);
        assert!(list.len() <= 8 * whole.len() + 64);
    }
    let mut from = Unpacker::of(&[]);
    assert_eq!((u64::get(&mut from), bool::get(&mut from)), (0, false));
    assert_eq!(Vec::<Endpoint>::get(&mut from).len(), 0);
    let unknown = kept(&[250_u8]);
    assert_eq!(Held::get(&mut Unpacker::of(&unknown)), Held::Nothing);
    assert_eq!(Cause::get(&mut Unpacker::of(&unknown)), tcpwhy_base::CAUSES[0].cause);
    let protocol: &str = Protocol::read(&mut Unpacker::of(&kept(&[250_usize])));
    assert_eq!(protocol, "tls");
}
