//! The `traceparent` header of a request (W3C Trace Context, 3.2): which span of the application sent it.

use std::str::FromStr;

/// The most bytes of a request in which its headers are looked for.
pub const MOST: usize = 8192;

/// A trace and the span in it that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// Id of the trace.
    pub trace: [u8; 16],
    /// Id of the span that sent the request.
    pub span: [u8; 8],
}

impl FromStr for TraceParent {
    type Err = ();

    /// `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`; later versions may go on behind it.
    fn from_str(text: &str) -> Result<TraceParent, ()> {
        let mut parts = text.split('-');
        let mut part = |n: usize| parts.next().filter(|p| p.len() == n).ok_or(());
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let more = parts.next().is_some();
        let (mut to, mut version_byte) = (TraceParent { trace: [0; 16], span: [0; 8] }, [0]);
        unhex(version, &mut version_byte)?;
        unhex(trace, &mut to.trace)?;
        unhex(span, &mut to.span)?;
        unhex(flags, &mut [0])?;
        let valid = version_byte != [0xff] && to.trace != [0; 16] && to.span != [0; 8];
        (valid && !(more && version_byte == [0])).then_some(to).ok_or(())
    }
}

/// Small letters only, as the recommendation wants them.
fn unhex(text: &str, to: &mut [u8]) -> Result<(), ()> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Ok(b - b'0'),
        b'a'..=b'f' => Ok(b - b'a' + 10),
        _ => Err(()),
    };
    for (to, pair) in to.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *to = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(())
}

impl TraceParent {
    /// From the headers of an HTTP/1 request: there is one, or none. `None`: the headers end later than these bytes.
    pub fn in_headers(request: &[u8]) -> Option<Option<TraceParent>> {
        let mut lines = request.split(|&b| b == b'\n').peekable();
        lines.next();
        while let Some(line) = lines.next() {
            if lines.peek().is_none() {
                break;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return Some(None);
            }
            if let Some((name, value)) = line.split_at_checked(12)
                && name.eq_ignore_ascii_case(b"traceparent:")
            {
                let value = std::str::from_utf8(value.trim_ascii()).unwrap_or_default();
                return Some(value.parse().ok());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn values() {
        let parsed: TraceParent = VALUE.parse().expect("the example of the recommendation");
        assert_eq!((parsed.trace[0], parsed.trace[15], parsed.span[7]), (0x0a, 0x9c, 0x31));
        let later = format!("cc{}-what-comes", &VALUE[2..]);
        assert_eq!(later.parse(), Ok(parsed));
        for bad in [
            "",
            &VALUE[1..],
            &VALUE.to_uppercase(),
            &format!("ff{}", &VALUE[2..]),
            &format!("{VALUE}-more"),
            &VALUE.replace("b7ad6b7169203331", "0000000000000000"),
            &VALUE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        ] {
            assert_eq!(bad.parse::<TraceParent>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn headers() {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nTraceParent:  {VALUE} \r\n\r\n");
        assert_eq!(TraceParent::in_headers(request.as_bytes()), Some(VALUE.parse().ok()));
        let none = b"GET / HTTP/1.1\r\nHost: a\r\n\r\ntraceparent: in the body\r\n";
        assert_eq!(TraceParent::in_headers(none), Some(None));
        for end in 0..request.len() - 2 {
            let found = TraceParent::in_headers(&request.as_bytes()[..end]);
            assert!(found.is_none() || found == Some(VALUE.parse().ok()), "{end}: {found:?}");
        }
    }
}
