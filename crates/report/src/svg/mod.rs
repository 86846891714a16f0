//! Figures for tickets and documents: the graph of a connection, the ladder of an exchange. Light, without script,
//! with the colours and patterns of the page.

mod graph;
mod ladder;

pub use graph::graph;
pub use ladder::ladder;

use crate::html::Escaped;
use std::fmt::Write as _;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Group, Nanos};

/// Width of a figure in pixels.
const WIDTH: f64 = 960.0;
const INK: &str = "#16202b";
const MUTED: &str = "#566373";
const SEGMENT: &str = "#1f5fa6";
const AGAIN: &str = "#c8320a";
const ACK: &str = "#0a8a5f";
const EDGE: &str = "#b07a00";
const SACK: &str = "#8a3ea8";

/// The colour of a group and the lines of its pattern, as on the page.
const fn look(group: Group) -> (&'static str, &'static str) {
    match group {
        Group::Path => ("#8796a8", ""),
        Group::Applications => ("#4fa8dc", "M3 4h1.5"),
        Group::SmallWrites => ("#e69f00", "M0 8L8 0M-1 1L1 -1M7 9L9 7"),
        Group::Windows => ("#c2679f", "M0 4H8"),
        Group::Congestion => ("#009e73", "M0 0L8 8M-1 7L1 9M7 -1L9 1"),
        Group::Loss => ("#d55e00", "M0 8L8 0M0 0L8 8"),
        Group::Opening => ("#cdb91c", "M4 0V8"),
        Group::Unknown => ("#8f8f8f", "M2 4h3.5"),
    }
}

/// A document that is being drawn.
struct Drawing {
    text: String,
    height: f64,
}

impl Drawing {
    fn new() -> Drawing {
        Drawing { text: String::new(), height: 0.0 }
    }

    fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, style: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" {style}/>"
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let _ = writeln!(
            self.text,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from.0, from.1, to.0, to.1
        );
    }

    fn path(&mut self, d: &str, style: &str) {
        let _ = writeln!(self.text, "<path d=\"{d}\" {style}/>");
    }

    /// `anchor`: `start`, `middle` or `end`.
    fn words(&mut self, x: f64, y: f64, anchor: &str, style: &str, words: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{}</text>",
            Escaped(words)
        );
    }

    /// A stretch of time in the colour and pattern of its cause. `opacity`: less for what lies behind a graph.
    fn band(&mut self, cause: Cause, x: f64, y: f64, w: f64, h: f64, opacity: f64) {
        let group = cause.info().group;
        self.rect(x, y, w, h, &format!("fill=\"{}\" opacity=\"{opacity}\"", look(group).0));
        if opacity >= 0.99 {
            self.rect(x, y, w, h, &format!("fill=\"url(#{})\"", group.id()));
        }
    }

    /// The whole document.
    fn finish(self, title: &str) -> String {
        let (height, body) = (self.height, self.text);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             font-family=\"system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n<title>{}</title>\n<defs>\n",
            Escaped(title)
        );
        for group in Group::ALL {
            let (name, lines) = (group.id(), look(group).1);
            let _ = writeln!(
                out,
                "<pattern id=\"{name}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"{lines}\" \
                 stroke=\"#fff\" stroke-opacity=\".6\" stroke-width=\"1.4\" fill=\"none\"/></pattern>"
            );
        }
        let _ = write!(
            out,
            "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<g fill=\"{INK}\">\n{body}</g>\n</svg>\n"
        );
        out
    }
}

/// Who is named in the title of a figure.
fn heading(c: &Connection) -> String {
    format!("Connection {}: {} > {}", c.id, c.client, c.server)
}

/// A step of 1, 2 or 5 times a power of ten, so that about `n` of them make `range`.
fn step(range: f64, n: f64) -> f64 {
    let raw = (range / n).max(1e-9);
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= raw).unwrap_or(raw)
}

/// A moment in the unit that suits the step: `40 ms`.
fn moment(ns: f64, step: f64) -> String {
    let (per, unit) = if step >= 5e8 {
        (1e9, "s")
    } else if step >= 5e5 {
        (1e6, "ms")
    } else {
        (1e3, "µs")
    };
    let digits = (per / step).log10().ceil().clamp(0.0, 3.0) as usize;
    // What is hardly below zero is zero.
    let value = if ns.abs() < step / 2.0 { 0.0 } else { ns / per };
    format!("{value:.digits$} {unit}")
}

/// `ns` as a float, for drawing only.
fn float(t: Nanos) -> f64 {
    t.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::{End, TcpFlags};
    use tcpwhy_trace::{Packet, Track};

    #[test]
    fn steps_are_round() {
        assert_eq!((step(100.0, 10.0), step(101.0, 10.0), step(0.7, 10.0)), (10.0, 20.0, 0.1));
        assert_eq!((moment(4e7, 2e7), moment(1.5e9, 5e8)), ("40 ms".into(), "1.5 s".into()));
    }

    fn track() -> Track {
        let c = crate::sample::connection();
        let packet = |i: i64| Packet {
            frame: i as u64 + 1,
            time: c.start + Nanos::millis(i),
            from: if i % 2 == 0 { End::Client } else { End::Server },
            flags: TcpFlags(TcpFlags::ACK),
            seq: 1 + i * 50,
            ack: 1 + i * 50,
            len: 100,
            window: 500,
            marks: u8::from(i == 20),
            sack: [(0, 0); 4],
            sacks: 0,
        };
        Track { connection: 1, packets: (0..90).map(packet).collect(), total: 90, ..Track::default() }
    }

    #[test]
    fn figures_name_their_causes_and_balance_their_tags() {
        let c = crate::sample::connection();
        let x = &c.exchanges[0];
        for figure in [graph(&c, &track(), None), graph(&c, &track(), Some(x)), ladder(&c, x, &track(), &[0])]
        {
            for span in &x.spans {
                assert!(figure.contains(span.cause.id()), "{} in {figure}", span.cause.id());
            }
            for tag in ["<text", "<g", "<svg", "<title", "<pattern"] {
                let close = tag.replace('<', "</");
                let open =
                    figure.matches(&format!("{tag} ")).count() + figure.matches(&format!("{tag}>")).count();
                assert_eq!(open, figure.matches(&format!("{close}>")).count(), "{tag}");
            }
            assert!(!figure.contains("NaN") && !figure.contains("inf"));
        }
        let empty = graph(&c, &Track::default(), None);
        assert!(!empty.contains("NaN") && !empty.contains("inf"));
    }
}
