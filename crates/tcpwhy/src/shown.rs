//! Names that somebody else chose, on their way to a terminal or into a command that is printed for copying.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;

/// Acts on a terminal instead of being shown: a control character, or one that turns the direction of what follows.
fn acts(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// A name in one line, with what would act on a terminal written out: `\u{1b}`.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    written_out(text, acts)
}

/// A text of several lines, with what would act on a terminal, but for line breaks and tabs, written out.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    written_out(text, |c| acts(c) && c != '\n' && c != '\t')
}

fn written_out(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out.into()
}

/// An argument that names a file, as a POSIX shell has to be told it.
pub(crate) fn argument(file: &OsStr) -> String {
    // A name that begins with a dash is no option if it begins with its directory.
    let dash = file.as_encoded_bytes().first() == Some(&b'-') && file != "-";
    quoted(file, if dash { "./" } else { "" })
}

/// A word of a command, as a POSIX shell has to be told it.
pub(crate) fn word(word: &OsStr) -> String {
    quoted(word, "")
}

fn quoted(file: &OsStr, directory: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"._/-:=,@%+".contains(b);
    match file.to_str() {
        Some(name) if !name.is_empty() && name.bytes().all(|b| plain(&b)) => format!("{directory}{name}"),
        Some(name) if !name.contains(acts) => format!("'{directory}{}'", name.replace('\'', r"'\''")),
        // Dollar-single-quotes (POSIX.1-2024, 2.2.4).
        _ => {
            let mut out = format!("$'{directory}");
            for b in file.as_encoded_bytes() {
                // Writing into a string cannot fail.
                let _ = if plain(b) { write!(out, "{}", char::from(*b)) } else { write!(out, "\\{b:03o}") };
            }
            out + "'"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(name("a b/ä-名.pcap"), "a b/ä-名.pcap");
        assert_eq!(name("\u{1b}]0;pwned\u{7}.pcap"), "\\u{1b}]0;pwned\\u{7}.pcap");
        assert_eq!(name("a\nb\u{9b}2J\u{202e}\u{7f}"), "a\\u{a}b\\u{9b}2J\\u{202e}\\u{7f}");
        assert_eq!(text("a\n\tb\r"), "a\n\tb\\u{d}");
        for c in (0..0xffff).filter_map(char::from_u32) {
            assert!(!name(&c.to_string()).contains(acts), "{c:?}");
        }
    }

    #[test]
    fn a_shell_reads_back_the_name() {
        assert_eq!(argument("captures/a-b.c.pcap".as_ref()), "captures/a-b.c.pcap");
        assert_eq!(argument("a.pcap".as_ref()), "a.pcap");
        assert_eq!(argument("-".as_ref()), "-");
        assert_eq!(argument("-x.pcap".as_ref()), "./-x.pcap");
        for name in [
            "a b; touch P.pcap",
            "./$(touch PWNED).pcap",
            "it's",
            "`x`",
            "\"",
            "a\nb",
            "\u{1b}]0;x\u{7}",
            "-$x",
            "ä b",
            "~x",
            "*",
            "",
        ] {
            let line = format!("printf %s {}", argument(name.as_ref()));
            assert!(!line.contains(acts), "{line}");
            // bash has dollar-single-quotes, older plain shells have not.
            let done = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
            let read = String::from_utf8(done.stdout).unwrap();
            assert_eq!(
                read.strip_prefix("./").filter(|_| name.starts_with('-')).unwrap_or(&read),
                name,
                "{line}"
            );
        }
    }
}
