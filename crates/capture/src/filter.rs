//! Choosing segments with the words of tcpdump: a small part of pcap-filter(7), asked of the innermost
//! addresses and ports. As there, `and` and `or` bind equally, from left to right; `not` binds tighter.
//! Names are never resolved: a filter must not depend on a name server or send packets.

mod parse;

pub use parse::FilterError;

use std::net::IpAddr;
use tcpwhy_base::{Endpoint, Segment};

/// A compiled filter: tests and operators in postfix order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    program: Vec<Op>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Test(Test),
    Not,
    And,
    Or,
}

/// One question about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// True for every segment.
    Tcp,
    Ip4,
    Ip6,
    End(Which, What),
}

/// Of which end it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Source,
    Destination,
    Either,
    Both,
}

/// What is asked of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The first so many bits of the address.
    Net(IpAddr, u8),
    /// From one port to another.
    Ports(u16, u16),
}

impl Filter {
    /// Compiles an expression such as `host 10.0.0.1 and (port 80 or port 443)`. An empty one takes all.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        Ok(Filter { program: parse::parse(text)? })
    }

    /// Whether a segment is chosen.
    #[inline]
    pub fn matches(&self, segment: &Segment) -> bool {
        // The parser keeps the stack within 64 answers.
        let mut stack: u64 = 1;
        for op in &self.program {
            let top = stack & 1;
            stack = match op {
                Op::Test(test) => stack << 1 | u64::from(test.holds(segment)),
                Op::Not => stack ^ 1,
                Op::And => stack >> 1 & (top | !1),
                Op::Or => stack >> 1 | top,
            };
        }
        stack & 1 == 1
    }
}

impl Test {
    #[inline]
    fn holds(&self, segment: &Segment) -> bool {
        match self {
            Test::Tcp => true,
            Test::Ip4 => segment.src.ip.is_ipv4(),
            Test::Ip6 => segment.src.ip.is_ipv6(),
            Test::End(Which::Source, what) => what.holds(&segment.src),
            Test::End(Which::Destination, what) => what.holds(&segment.dst),
            Test::End(Which::Either, what) => what.holds(&segment.src) || what.holds(&segment.dst),
            Test::End(Which::Both, what) => what.holds(&segment.src) && what.holds(&segment.dst),
        }
    }
}

impl What {
    #[inline]
    fn holds(&self, end: &Endpoint) -> bool {
        match *self {
            What::Net(net, bits) => prefix(end.ip, bits) == Some(net),
            What::Ports(from, to) => (from..=to).contains(&end.port),
        }
    }
}

/// The address with all but its first `bits` bits cleared; nothing if it has not so many.
fn prefix(ip: IpAddr, bits: u8) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(ip) => {
            let keep = u32::MAX.checked_shl(32u32.checked_sub(bits.into())?).unwrap_or(0);
            Some(IpAddr::V4((ip.to_bits() & keep).into()))
        }
        IpAddr::V6(ip) => {
            let keep = u128::MAX.checked_shl(128u32.checked_sub(bits.into())?).unwrap_or(0);
            Some(IpAddr::V6((ip.to_bits() & keep).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(filter: &str) -> bool {
        let end = |ip: &str, port| Endpoint { ip: ip.parse().expect("an address"), port };
        let segment = Segment { src: end("10.1.2.3", 40_000), dst: end("192.0.2.7", 443), ..Segment::EMPTY };
        Filter::parse(filter).unwrap_or_else(|e| panic!("{e}")).matches(&segment)
    }

    #[test]
    fn primitives() {
        for yes in [
            "",
            "tcp",
            "ip",
            "host 10.1.2.3",
            "host 192.0.2.7",
            "src host 10.1.2.3",
            "src 10.1.2.3",
            "dst host 192.0.2.7",
            "net 10.0.0.0/8",
            "src net 10.1.2.0/24",
            "net 0.0.0.0/0",
            "port 443",
            "dst port https",
            "portrange 400-500",
            "src portrange 40000-40000",
            "tcp port 443",
            "ip host 10.1.2.3",
            "src or dst port 443",
            "src and dst net 0.0.0.0/0",
        ] {
            assert!(takes(yes), "{yes}");
        }
        for no in [
            "ip6",
            "dst host 10.1.2.3",
            "host 10.1.2.4",
            "net 10.2.0.0/16",
            "net ::/0",
            "host ::1",
            "src port 443",
            "port 80",
            "src and dst port 443",
            "ip6 port 443",
        ] {
            assert!(!takes(no), "{no}");
        }
    }

    #[test]
    fn operators() {
        assert!(takes("host 10.1.2.3 and port 443"));
        assert!(takes("host 10.9.9.9 || port 443"));
        assert!(takes("not port 80 && !ip6"));
        assert!(!takes("not (port 80 or port 443)"));
        assert!(takes("port 80 or (port 443 and not ip6)"));
        assert!(takes("not not tcp"));
    }

    #[test]
    fn and_and_or_bind_equally() {
        // As in tcpdump: (tcp or tcp) and ip6, not tcp or (tcp and ip6).
        assert!(!takes("tcp or tcp and ip6"));
        assert!(takes("tcp or (tcp and ip6)"));
    }
}
