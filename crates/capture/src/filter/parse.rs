//! From words to a program.

use super::{Op, Test, What, Which, prefix};
use std::fmt;
use std::net::IpAddr;

/// Parentheses and negations within each other; `Filter::matches` has room for 64 answers.
const MAX_DEPTH: u32 = 60;

/// Why an expression is not a filter, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    /// Byte offset in the text.
    at: usize,
    message: String,
}

impl FilterError {
    /// Where in the text, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }
}

impl std::error::Error for FilterError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text.get(..self.at).map_or(0, |before| before.chars().count());
        writeln!(f, "filter, character {}: {}", column + 1, self.message)?;
        writeln!(f, "  {}", self.text.replace(char::is_control, " "))?;
        write!(f, "  {:column$}^", "")
    }
}

/// A word and where it stands.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    at: usize,
    text: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Vec<Op>, FilterError> {
    let mut parser = Parser { text, words: words(text), next: 0, program: Vec::new() };
    if parser.words.is_empty() {
        return Ok(vec![Op::Test(Test::Tcp)]);
    }
    parser.expression(0)?;
    match parser.peek() {
        None => Ok(parser.program),
        Some(word) if word.text == ")" => Err(parser.wrong(word, "no parenthesis is open here")),
        Some(word) => {
            let hint = format!("`and` or `or` is missing before `{}`", word.text);
            Err(parser.wrong(word, &hint))
        }
    }
}

/// Splits at white space and around parentheses and operators.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let n = if ["&&", "||"].iter().any(|op| rest.starts_with(op)) {
            2
        } else if first.is_whitespace() || matches!(first, '(' | ')' | '!' | '&' | '|') {
            first.len_utf8()
        } else {
            rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '!' | '&' | '|'))
                .unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(n);
        if !first.is_whitespace() {
            words.push(Word { at: text.len() - rest.len(), text: word });
        }
        rest = after;
    }
    words
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    next: usize,
    program: Vec<Op>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    fn next_is(&mut self, texts: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| texts.contains(&word.text));
        self.next += usize::from(found);
        found
    }

    fn expression(&mut self, depth: u32) -> Result<(), FilterError> {
        self.term(depth)?;
        loop {
            let op = if self.next_is(&["and", "&&"]) {
                Op::And
            } else if self.next_is(&["or", "||"]) {
                Op::Or
            } else {
                return Ok(());
            };
            self.term(depth)?;
            self.program.push(op);
        }
    }

    fn term(&mut self, depth: u32) -> Result<(), FilterError> {
        let mut negated = false;
        while self.next_is(&["not", "!"]) {
            negated = !negated;
        }
        let word = self.peek().ok_or_else(|| self.ends("a condition such as `port 443`"))?;
        if word.text == "(" {
            if depth >= MAX_DEPTH {
                return Err(self.wrong(word, "too many parentheses within each other"));
            }
            self.next += 1;
            self.expression(depth + 1)?;
            if !self.next_is(&[")"]) {
                return match self.peek() {
                    None => Err(self.ends("`)`")),
                    Some(word) => Err(self.wrong(word, "expected `and`, `or` or `)`")),
                };
            }
        } else {
            self.primitive()?;
        }
        if negated {
            self.program.push(Op::Not);
        }
        Ok(())
    }

    /// `[tcp | ip | ip6] [src | dst | src or dst | src and dst] [host | net | port | portrange] value`
    fn primitive(&mut self) -> Result<(), FilterError> {
        let protocol = match self.peek().map(|word| word.text) {
            Some("tcp") => Some(Test::Tcp),
            Some("ip") => Some(Test::Ip4),
            Some("ip6") => Some(Test::Ip6),
            _ => None,
        };
        if let Some(test) = protocol {
            self.next += 1;
            self.program.push(Op::Test(test));
            let more = ["src", "dst", "host", "net", "port", "portrange"];
            if !self.peek().is_some_and(|word| more.contains(&word.text)) {
                return Ok(());
            }
        }
        let which = self.which();
        let what = self.what(which.is_some())?;
        self.program.push(Op::Test(Test::End(which.unwrap_or(Which::Either), what)));
        if protocol.is_some() {
            self.program.push(Op::And);
        }
        Ok(())
    }

    fn which(&mut self) -> Option<Which> {
        let texts = |n: usize| self.words.get(self.next + n).map(|word| word.text);
        let (n, which) = match (texts(0)?, texts(1), texts(2)) {
            ("src", Some("or"), Some("dst")) | ("dst", Some("or"), Some("src")) => (3, Which::Either),
            ("src", Some("and"), Some("dst")) | ("dst", Some("and"), Some("src")) => (3, Which::Both),
            ("src", ..) => (1, Which::Source),
            ("dst", ..) => (1, Which::Destination),
            _ => return None,
        };
        self.next += n;
        Some(which)
    }

    fn what(&mut self, directed: bool) -> Result<What, FilterError> {
        let kind = self.peek().ok_or_else(|| self.ends("`host`, `net`, `port` or `portrange`"))?;
        self.next += 1;
        match kind.text {
            "host" => {
                let ip = self.address("host 192.0.2.7")?;
                Ok(What::Net(ip, bits_of(ip)))
            }
            "net" => self.net(),
            "port" => {
                let port = self.value("port 443")?;
                let number = self.port(port, port.text, "port 443")?;
                Ok(What::Ports(number, number))
            }
            "portrange" => {
                let range = self.value("portrange 8000-8010")?;
                let Some((from, to)) = range.text.split_once('-') else {
                    return Err(self.wrong(range, "a range is two ports, for example `portrange 8000-8010`"));
                };
                let from = self.port(range, from, "portrange 8000-8010")?;
                let to = self.port(range, to, "portrange 8000-8010")?;
                Ok(What::Ports(from.min(to), from.max(to)))
            }
            // `src 10.0.0.1` means `src host 10.0.0.1`, as in tcpdump.
            text if directed && text.parse::<IpAddr>().is_ok() => {
                self.next -= 1;
                let ip = self.address("src host 192.0.2.7")?;
                Ok(What::Net(ip, bits_of(ip)))
            }
            _ => Err(self.stray(kind)),
        }
    }

    fn value(&mut self, example: &str) -> Result<Word<'a>, FilterError> {
        let word = self.peek().ok_or_else(|| self.ends(&format!("a value, for example `{example}`")))?;
        self.next += 1;
        Ok(word)
    }

    fn address(&mut self, example: &str) -> Result<IpAddr, FilterError> {
        let word = self.value(example)?;
        word.text.parse().map_err(|_| {
            let what = if word.text.contains('/') {
                format!("`{}` is a network: write `net {}`", word.text, word.text)
            } else {
                format!(
                    "`{}` is no IP address and names are not looked up; for example `{example}`",
                    word.text
                )
            };
            self.wrong(word, &what)
        })
    }

    fn net(&mut self) -> Result<What, FilterError> {
        let word = self.value("net 10.0.0.0/8")?;
        let wrong = || self.wrong(word, "a network is an address and a length, for example `net 10.0.0.0/8`");
        let (ip, bits) = word.text.split_once('/').ok_or_else(wrong)?;
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let net = prefix(ip, bits).ok_or_else(wrong)?;
        if net != ip {
            let hint = format!("bits are set beyond the length: write `net {net}/{bits}` or `host {ip}`");
            return Err(self.wrong(word, &hint));
        }
        Ok(What::Net(net, bits))
    }

    fn port(&self, word: Word<'_>, text: &str, example: &str) -> Result<u16, FilterError> {
        // The services that people type by name; the list of the host is not read.
        match text {
            "http" => Ok(80),
            "https" => Ok(443),
            "ssh" => Ok(22),
            "domain" => Ok(53),
            _ => text.parse().map_err(|_| {
                self.wrong(word, &format!("`{text}` is no port from 0 to 65535; for example `{example}`"))
            }),
        }
    }

    /// A word that begins no condition: guess what was meant.
    fn stray(&self, word: Word<'_>) -> FilterError {
        let text = word.text;
        let hint = if text.parse::<IpAddr>().is_ok() {
            format!("write `host {text}` for an address")
        } else if text.contains('/') && text.split('/').next().is_some_and(|ip| ip.parse::<IpAddr>().is_ok())
        {
            format!("write `net {text}` for a network")
        } else if text.parse::<u16>().is_ok() {
            format!("write `port {text}` for a port")
        } else if matches!(
            text,
            "udp" | "icmp" | "icmp6" | "arp" | "sctp" | "ether" | "vlan" | "proto" | "mpls"
        ) {
            format!(
                "`{text}` cannot be asked: only TCP is analysed, by `host`, `net`, `port`, `portrange`, `ip`, `ip6`"
            )
        } else {
            format!(
                "`{text}` is not understood and names are not looked up; write for example \
                 `host 10.0.0.1 and port 443`"
            )
        };
        self.wrong(word, &hint)
    }

    fn wrong(&self, word: Word<'_>, message: &str) -> FilterError {
        FilterError { text: self.text.to_owned(), at: word.at, message: message.to_owned() }
    }

    fn ends(&self, missing: &str) -> FilterError {
        let at = self.text.trim_end().len();
        FilterError { text: self.text.to_owned(), at, message: format!("{missing} is missing at the end") }
    }
}

fn bits_of(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    fn error(text: &str) -> String {
        Filter::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn errors_show_where_and_what_to_write() {
        assert_eq!(
            error("tcp and 10.0.0.1"),
            "filter, character 9: write `host 10.0.0.1` for an address\n  tcp and 10.0.0.1\n          ^"
        );
        for (text, part) in [
            ("443", "write `port 443`"),
            ("10.0.0.0/8", "write `net 10.0.0.0/8`"),
            ("host example.org", "names are not looked up"),
            ("host 10.0.0.0/8", "write `net 10.0.0.0/8`"),
            ("example.org", "names are not looked up"),
            ("net 10.1.0.0/8", "write `net 10.0.0.0/8`"),
            ("net 10", "for example `net 10.0.0.0/8`"),
            ("net 10.0.0.0/33", "for example"),
            ("port 70000", "no port from 0 to 65535"),
            ("portrange 5", "for example `portrange 8000-8010`"),
            ("udp port 53", "only TCP"),
            ("vlan 5", "only TCP"),
            ("port 80 port 81", "`and` or `or` is missing"),
            ("(port 80", "`)` is missing at the end"),
            ("port 80)", "no parenthesis is open"),
            ("port", "for example `port 443`"),
            ("tcp and", "is missing at the end"),
            ("host 10.0.0.1 or 10.0.0.2", "write `host 10.0.0.2`"),
            ("tcp & ip", "is missing"),
            ("é", "not understood"),
        ] {
            let message = error(text);
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(error(&"(".repeat(100)).contains("too many parentheses"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "[ a-z0-9./:()!&|-]{0,40}", any in ".{0,20}") {
            let _ = (Filter::parse(&text), Filter::parse(&any));
        }
    }
}
