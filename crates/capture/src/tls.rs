//! What the TLS records in a segment say by what is not encrypted.

use tcpwhy_base::Tls;
use tcpwhy_base::protocol::{
    FINISHED_LEN, HELLO_RETRY, MOST_WINDOW_UPDATES, TLS_ADDS, TLS_HEAD, WINDOW_UPDATE_LEN,
};

/// TLS 1.2 allows 2^14 + 2048 bytes in a record (RFC 5246 6.2.3), TLS 1.3 less.
const RECORD: u16 = (1 << 14) + 2048;

/// The types of the TLS records that begin in `payload`, if it begins with one, and what can be told of them.
/// It has `all` bytes, some of which may not have been captured.
pub(crate) fn records(mut payload: &[u8], all: u32) -> Tls {
    let (mut seen, mut grants, mut told) = (0, true, 0);
    // One so long is the last of all, and nothing else is.
    let (mut finished, mut last) = (0_u32, false);
    while let [kind @ 0x14..=0x17, 3, 0..=4, a, b, rest @ ..] = payload {
        let len = u16::from_be_bytes([*a, *b]);
        if len > RECORD {
            break;
        }
        let content = rest.get(..usize::from(len)).unwrap_or(rest);
        seen |= match kind {
            0x14 => Tls::CHANGE_CIPHER,
            0x15 => Tls::ALERT,
            0x16 if offers_h2(content) == Some(false) => Tls::HANDSHAKE | Tls::NO_H2,
            0x16 if asks_again(content) => Tls::HANDSHAKE | Tls::ASKS_AGAIN,
            0x16 => Tls::HANDSHAKE,
            _ => Tls::DATA,
        };
        grants &= *kind == 0x17 && is_credit(u32::from(len));
        last = *kind == 0x17 && FINISHED_LEN.contains(&u32::from(len));
        finished += u32::from(last);
        told += TLS_HEAD + u32::from(len);
        payload = rest.get(usize::from(len)..).unwrap_or_default();
    }
    let whole = told > 0 && told == all;
    seen |= if grants && whole { Tls::CREDIT } else { 0 };
    Tls(seen | if last && finished == 1 && whole { Tls::FINISHED } else { 0 })
}

/// A record of so many bytes may hold nothing but WINDOW_UPDATE.
fn is_credit(len: u32) -> bool {
    TLS_ADDS.iter().filter_map(|added| len.checked_sub(*added)).any(|frames| {
        frames.is_multiple_of(WINDOW_UPDATE_LEN)
            && (1..=MOST_WINDOW_UPDATES).contains(&(frames / WINDOW_UPDATE_LEN))
    })
}

/// A ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.4), as far as it was captured. Eight bytes of a random
/// number are the same by chance once in 2^64.
fn asks_again(hello: &[u8]) -> bool {
    let [2, _, _, _, 3, 3, random @ ..] = hello else { return false };
    let here = &random[..random.len().min(HELLO_RETRY.len())];
    here.len() >= 8 && HELLO_RETRY.starts_with(here)
}

/// Whether a ClientHello has "h2" among the protocols that it offers (RFC 8446, 4.1.2; RFC 7301, 3.1), if
/// enough of it is here.
fn offers_h2(hello: &[u8]) -> Option<bool> {
    let [1, _, a, b, body @ ..] = hello else { return None };
    let is_whole = usize::from(u16::from_be_bytes([*a, *b])) == body.len();
    // The version, and what is drawn.
    let body = body.get(2 + 32..)?;
    let (_session, body) = short_list(body)?;
    let (_ciphers, body) = long_list(body)?;
    let (_compression, body) = short_list(body)?;
    if body.is_empty() {
        return is_whole.then_some(false);
    }
    let (mut extensions, _) = long_list(body)?;
    while let Some((kind, rest)) = extensions.split_first_chunk::<2>() {
        let (extension, others) = long_list(rest)?;
        if *kind == [0, 16] {
            let (mut names, _) = long_list(extension)?;
            while let Some((name, others)) = short_list(names) {
                if name == b"h2" {
                    return Some(true);
                }
                names = others;
            }
            break;
        }
        extensions = others;
    }
    Some(false)
}

/// A list behind its length in one byte, and what follows it.
fn short_list(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

/// A list behind its length in two bytes, and what follows it.
fn long_list(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(payload: &[u8]) -> Tls {
        records(payload, payload.len() as u32)
    }

    #[test]
    fn tls_records_that_begin_here() {
        let mut payload = vec![0x16, 3, 1, 0, 2, 9, 9, 0x14, 3, 3, 0, 1, 1];
        payload.extend([0x17, 3, 3, 0x40, 0]);
        assert_eq!(told(&payload), Tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA));
        assert_eq!(told(&[0x17, 3, 3, 0x48, 1, 0]), Tls(0), "longer than a record may be");
        assert_eq!(told(&[0x17, 3, 9, 0, 1, 0]), Tls(0));
    }

    fn record(kind: u8, content: &[u8]) -> Vec<u8> {
        let len = (content.len() as u16).to_be_bytes();
        [&[kind, 3, 3][..], &len, content].concat()
    }

    /// One WINDOW_UPDATE of 13 bytes takes 29 to 37 with what encrypts it; two of them are in one record or in two.
    #[test]
    fn grants_are_told_by_their_size() {
        let data = |n: usize| record(0x17, &vec![0; n]);
        let grants = |payload: &[u8]| told(payload).has(Tls::CREDIT);
        for added in [16, 17, 24] {
            for updates in 1..=4 {
                assert!(grants(&data(13 * updates + added)), "{updates} and {added}");
            }
            assert!(!grants(&data(added)) && !grants(&data(13 * 5 + added)) && !grants(&data(added + 11)));
        }
        assert!(grants(&[data(37), data(50)].concat()));
        assert!(!grants(&[data(37), data(100)].concat()), "and something else");
        assert!(!grants(&data(37)[..41]), "the rest is in the next segment");
        let two = [data(37), data(50)].concat();
        let cut = |n: usize| records(&two[..n], two.len() as u32).has(Tls::CREDIT);
        assert!(cut(47) && cut(60), "the snap length cut it");
        assert!(!cut(46), "behind what tells how long the second one is");
        assert!(!grants(&[data(37), vec![1]].concat()), "and what is no record");
        assert!(!grants(&record(0x16, &[0; 37])) && !grants(&[]));
    }

    /// Alone, behind a ChangeCipherSpec, or behind a client's certificate; a request behind it may be as long.
    #[test]
    fn the_finished_of_tls_1_3_is_told_by_its_size() {
        let data = |n: usize| record(0x17, &vec![0; n]);
        let ends = |payload: &[u8]| told(payload).has(Tls::FINISHED);
        let change = record(0x14, &[1]);
        for n in [45, 53, 69] {
            assert!(ends(&data(n)) && ends(&[&change[..], &data(n)].concat()));
            assert!(ends(&[data(1_100), data(281), data(n)].concat()));
            for request in [53, 69, 200] {
                assert!(!ends(&[data(n), data(request)].concat()), "{n} {request}");
            }
            assert!(!ends(&record(0x16, &vec![0; n])) && !ends(&data(n)[..n]) && !ends(&data(n + 1)));
        }
        let cut = |n: usize| records(&[&change[..], &data(69)].concat()[..n], 80).has(Tls::FINISHED);
        assert!(cut(11) && cut(40) && !cut(10), "the snap length cut it");
    }

    /// A tap that keeps 96 bytes of each packet has 30 of the payload, and not the ChangeCipherSpec behind it.
    #[test]
    fn a_hello_retry_request_is_told_by_its_random_number() {
        let hello = |kind: u8, random: &[u8]| {
            let body = [&[kind, 0, 0, 84, 3, 3], random, &[0; 52][..]].concat();
            [record(0x16, &body), record(0x14, &[1])].concat()
        };
        let asks = |payload: &[u8]| records(payload, 99).has(Tls::ASKS_AGAIN);
        let whole = hello(2, &HELLO_RETRY);
        assert!(asks(&whole) && asks(&whole[..30]) && asks(&whole[..19]));
        assert!(!asks(&whole[..18]), "too little to tell");
        let mut other = HELLO_RETRY;
        other[31] = 0;
        assert!(!asks(&hello(2, &other)) && !asks(&hello(1, &HELLO_RETRY)));
    }

    fn hello(names: &[&str], others: usize) -> Vec<u8> {
        let list: Vec<u8> = names.iter().flat_map(|n| [&[n.len() as u8], n.as_bytes()].concat()).collect();
        let two = |n: usize| (n as u16).to_be_bytes();
        let before = [&[0, 10][..], &two(others), &vec![0; others]].concat();
        let alpn = [&[0, 16][..], &two(list.len() + 2), &two(list.len()), &list].concat();
        let extensions = [before, alpn].concat();
        let mut body = vec![1, 0, 0, 0, 3, 3];
        body.extend([7; 32]);
        body.extend([2, 5, 5, 0, 2, 0x13, 1, 1, 0]);
        body.extend(two(extensions.len()));
        let len = body.len() - 4 + extensions.len();
        body[2..4].copy_from_slice(&two(len));
        record(0x16, &[body, extensions].concat())
    }

    #[test]
    fn a_client_hello_may_offer_http_2() {
        let refuses = |payload: &[u8]| match told(payload).0 {
            Tls::HANDSHAKE => false,
            both if both == Tls::HANDSHAKE | Tls::NO_H2 => true,
            other => panic!("{other}"),
        };
        assert!(!refuses(&hello(&["h2", "http/1.1"], 0)) && !refuses(&hello(&["http/1.1", "h2"], 300)));
        assert!(
            refuses(&hello(&["http/1.1"], 9)) && refuses(&hello(&["h2c", "h"], 9)) && refuses(&hello(&[], 9))
        );
        let whole = hello(&["http/1.1"], 20);
        assert!((5..whole.len()).all(|n| !refuses(&whole[..n])), "who knows what else");
        let mut none = hello(&[], 0);
        none.truncate(5 + 4 + 34 + 3 + 4 + 2);
        (none[4], none[8]) = ((none.len() - 5) as u8, (none.len() - 9) as u8);
        assert!(refuses(&none), "no extensions");
        let mut server = whole;
        server[5] = 2;
        assert!(!refuses(&server));
    }
}
