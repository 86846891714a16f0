//! Which protocol is spoken above TCP, from the first bytes of payload.

/// First bytes of payload by which a protocol is told, and its name. They say nothing of what is spoken.
pub const BEGINNINGS: [(&[u8], &str); 11] = [
    (b"PRI * HT", "http/2"),
    (b"GET ", "http/1"),
    (b"POST ", "http/1"),
    (b"PUT ", "http/1"),
    (b"HEAD ", "http/1"),
    (b"DELETE ", "http/1"),
    (b"OPTIONS ", "http/1"),
    (b"PATCH ", "http/1"),
    (b"HTTP/1.", "http/1"),
    (b"CONNECT ", "http/1"),
    (b"SSH-", "ssh"),
];

/// The row of [`BEGINNINGS`] that these first bytes of payload (eight are enough) begin with.
pub fn beginning(head: &[u8]) -> Option<(&'static [u8], &'static str)> {
    let first = head.first();
    // The first byte decides nearly always, without a call.
    BEGINNINGS.iter().find(|(b, _)| b.first() == first && head.starts_with(b)).copied()
}

/// WINDOW_UPDATE of HTTP/2 begins so: four bytes of the type 8, without flags (RFC 9113, 4.1 and 6.9).
pub const WINDOW_UPDATE: [u8; 5] = [0, 0, 4, 8, 0];

/// All of it, bytes.
pub const WINDOW_UPDATE_LEN: u32 = 13;

/// A record of TLS has one for a stream and one for all of them, or a few more.
pub const MOST_WINDOW_UPDATES: u32 = 4;

/// Bytes before the content of a TLS record (RFC 8446, 5.1).
pub const TLS_HEAD: u32 = 5;

/// What ciphers add to its content: 16 bytes that authenticate it (RFC 7905), the type of the content as well
/// (RFC 8446, 5.2), or 8 of its number (RFC 5288). HTTP/2 allows no others (RFC 9113, 9.2.2).
pub const TLS_ADDS: [u32; 3] = [16, 17, 24];

/// A frame of HTTP/2 that a server may begin with: SETTINGS, PING or WINDOW_UPDATE, of fewer than 256 bytes
/// (RFC 9113, 4.1).
pub fn is_settings(head: &[u8]) -> bool {
    matches!(head, [0, 0, _, 4 | 6 | 8, ..])
}

/// SETTINGS with the flag ACK begins so (RFC 9113, 6.5).
pub const SETTINGS_ACK: [u8; 5] = [0, 0, 0, 4, 1];

/// SETTINGS of HTTP/2 that acknowledges the other end's, bytes (RFC 9113, 4.1 and 6.5).
pub const SETTINGS_ACK_LEN: u32 = 9;

/// What a server of HTTP/2 says at most before it answers anything: SETTINGS (nine bytes, and six for each of
/// the seven of RFC 9113, 6.5.2, and RFC 8441), WINDOW_UPDATE and the ACK of the client's SETTINGS, each
/// within a record of its own (3.4 and 6.9).
pub const H2_PREFACE_LEN: u32 = 9 + 7 * 6 + WINDOW_UPDATE_LEN + SETTINGS_ACK_LEN + 3 * (TLS_HEAD + 24);

/// What a HelloRetryRequest has in the place of a random number: SHA-256 of its name (RFC 8446, 4.1.3).
pub const HELLO_RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, //
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// What a record with the Finished of TLS 1.3 holds, encrypted: a message of a hash (32 or 48 bytes) behind
/// its head of four, the type of the content and what authenticates it, 16 or 8 bytes (RFC 8446, 4, 4.4.4,
/// 5.2 and B.4; RFC 6655).
pub const FINISHED_LEN: [u32; 3] = [45, 53, 69];

/// Ports at which a server speaks first within TLS: mail, news and files (RFC 8314, 7; RFC 4642, 1; RFC 4217,
/// 2; the registry of IANA).
pub const GREET_WITHIN_TLS: [u16; 5] = [465, 563, 990, 993, 995];

/// PostgreSQL's SSLRequest or GSSENCRequest: its length, then a version that no protocol has (1234.5679,
/// 1234.5680). The server answers with one byte, and TLS begins after an `S` (PostgreSQL 17, 54.2.10 and
/// 54.7).
pub fn asks_for_encryption(head: &[u8]) -> bool {
    matches!(head, [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f | 0x30, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_told_by_eight_bytes() {
        assert!(BEGINNINGS.iter().all(|(b, _)| b.len() <= 8), "a segment keeps no more");
        assert_eq!(beginning(b"GET /ind"), Some((&b"GET "[..], "http/1")));
        assert_eq!(beginning(b"SSH-2.0-").map(|b| b.1), Some("ssh"));
        assert_eq!((beginning(b"GE"), beginning(b""), beginning(b"220 mail")), (None, None, None));
    }

    #[test]
    fn encryption_is_asked_for_in_eight_bytes() {
        for last in [0x2e, 0x2f, 0x30, 0x31] {
            let asked = asks_for_encryption(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, last]);
            assert_eq!(asked, [0x2f, 0x30].contains(&last), "{last:#x}");
        }
        // A startup message of protocol 3.0, and half of a request.
        assert!(
            !asks_for_encryption(&[0, 0, 0, 8, 0, 3, 0, 0])
                && !asks_for_encryption(&[0, 0, 0, 8, 0x04, 0xd2, 0x16])
        );
    }
}
