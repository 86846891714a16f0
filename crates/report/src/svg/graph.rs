//! Sequence numbers and bytes in flight over time, with the causes behind them.

use super::{ACK, AGAIN, Drawing, EDGE, MUTED, SACK, SEGMENT, WIDTH, float, heading, moment, step};
use crate::text::bytes;
use std::fmt::Write as _;
use tcpwhy_analysis::{Connection, Exchange, Span};
use tcpwhy_base::{Cause, End, Nanos};
use tcpwhy_trace::{Track, marks};

const LEFT: f64 = 84.0;
const RIGHT: f64 = 16.0;
/// Above this each pixel column shows the least and the greatest value.
const SINGLE: usize = 1500;

/// What is seen of time.
struct View {
    from: f64,
    to: f64,
}

impl View {
    fn x(&self, t: f64) -> f64 {
        LEFT + (t - self.from) / (self.to - self.from).max(1.0) * (WIDTH - LEFT - RIGHT)
    }
    fn holds(&self, t: f64) -> bool {
        t >= self.from && t <= self.to
    }
}

/// A panel and the values in it.
struct Panel {
    top: f64,
    height: f64,
    lo: f64,
    hi: f64,
}

impl Panel {
    fn y(&self, v: f64) -> f64 {
        self.top + self.height - (v - self.lo) / (self.hi - self.lo).max(1.0) * self.height
    }
}

/// Points of the direction that is drawn: the one with more bytes.
#[derive(Default)]
struct Points {
    /// Time, low and high end, marks.
    data: Vec<(f64, f64, f64, u8)>,
    ack: Vec<(f64, f64)>,
    edge: Vec<(f64, f64)>,
    sack: Vec<(f64, f64, f64)>,
    flight: Vec<(f64, f64)>,
    window: Vec<(f64, f64)>,
}

/// The graph of a connection, or of the time of one exchange.
pub fn graph(c: &Connection, track: &Track, exchange: Option<&Exchange>) -> String {
    let (start, end) = exchange.map_or((c.start, c.end), |x| (x.start, x.end));
    let zero = float(c.start);
    let length = (float(end) - float(start)).max(1000.0);
    let view = View { from: float(start) - zero - length * 0.01, to: float(end) - zero + length * 0.02 };
    let from = if c.bytes[1] >= c.bytes[0] { End::Server } else { End::Client };
    let points = points(track, from, zero);
    let mut out = Drawing::new();
    let which = exchange.map(|x| format!(", exchange {}", x.id)).unwrap_or_default();
    out.words(16.0, 24.0, "start", "font-size=\"15\" font-weight=\"650\"", &format!("{}{which}", heading(c)));
    let direction = if from == End::Server { "server to client" } else { "client to server" };
    out.words(WIDTH - RIGHT, 24.0, "end", &format!("fill=\"{MUTED}\""), direction);
    let spans: Vec<&Span> = c.spans().map(|(_, span)| span).collect();
    ribbon(&mut out, &spans, &view, zero, 38.0);
    sequence(&mut out, &points, &spans, &view, zero);
    flight(&mut out, &points, &spans, &view, zero);
    legend(&mut out, 558.0);
    out.height = 580.0;
    out.finish(&heading(c))
}

fn points(track: &Track, from: End, zero: f64) -> Points {
    let mut p = Points::default();
    let (mut high, mut una) = (None::<i64>, None::<i64>);
    // Where the scale is not known, there is no edge to draw.
    let mut right = None;
    for q in &track.packets {
        let t = float(q.time) - zero;
        if q.from == from {
            if q.seq_end() > q.seq {
                p.data.push((t, q.seq as f64, q.seq_end() as f64, q.marks));
                high = Some(high.map_or(q.seq_end(), |h| h.max(q.seq_end())));
            }
        } else if q.flags.ack() && !q.flags.rst() {
            let acked = una.map_or(q.ack, |u| u.max(q.ack));
            una = Some(acked);
            right = q.window_bytes(track.shift).map(|bytes| (q.ack + bytes) as f64);
            p.ack.push((t, acked as f64));
            p.edge.extend(right.map(|edge| (t, edge)));
            p.sack.extend(q.sack.iter().take(usize::from(q.sacks)).map(|s| (t, s.0 as f64, s.1 as f64)));
        }
        if let (Some(high), Some(una)) = (high, una) {
            p.flight.push((t, (high - una).max(0) as f64));
            p.window.extend(right.map(|r| (t, (r - una as f64).max(0.0))));
        }
    }
    p
}

/// The causes by name.
fn ribbon(out: &mut Drawing, spans: &[&Span], view: &View, zero: f64, top: f64) {
    // Neighbours of one cause share a name.
    let mut runs: Vec<(Cause, Nanos, f64, f64)> = Vec::new();
    for (span, x0, x1) in seen(spans, view, zero) {
        match runs.last_mut() {
            Some(run) if run.0 == span.cause && x0 - run.3 < 1.0 => {
                (run.1, run.3) = (run.1 + span.duration(), x1)
            }
            _ => runs.push((span.cause, span.duration(), x0, x1)),
        }
    }
    for (cause, time, x0, x1) in runs {
        out.band(cause, x0, top, x1 - x0, 26.0, 1.0);
        let label = format!("{} {time}", cause.id());
        for text in [label.as_str(), cause.id()] {
            // Some 6.3 pixels a letter at this size.
            let wide = text.chars().count() as f64 * 6.3 + 10.0;
            if wide < x1 - x0 {
                out.rect(
                    (x0 + x1 - wide) / 2.0,
                    top + 5.0,
                    wide,
                    16.0,
                    "rx=\"3\" fill=\"#fff\" opacity=\".88\"",
                );
                out.words((x0 + x1) / 2.0, top + 17.0, "middle", "font-size=\"11\"", text);
                break;
            }
        }
    }
}

/// The spans in sight, at most one a pixel.
fn seen<'a>(spans: &[&'a Span], view: &View, zero: f64) -> Vec<(&'a Span, f64, f64)> {
    let mut out: Vec<(&Span, f64, f64)> = Vec::new();
    for span in spans {
        let (a, b) = (float(span.start) - zero, float(span.end) - zero);
        if b < view.from || a > view.to {
            continue;
        }
        let last = out.last().map_or(LEFT, |o| o.2);
        let (x0, x1) = (view.x(a.max(view.from)).max(last), view.x(b.min(view.to)));
        if x1 - x0 >= 0.7 {
            out.push((span, x0, x1));
        }
    }
    out
}

fn axes(out: &mut Drawing, p: &Panel, view: &View, name: &str) {
    out.words(LEFT, p.top - 8.0, "start", "font-weight=\"650\"", name);
    // Whole powers of two: bytes read best so.
    let mut by = 1.0;
    while (p.hi - p.lo) / by > 6.0 {
        by *= 2.0;
    }
    let mut v = (p.lo / by).ceil() * by;
    while v <= p.hi {
        let y = p.y(v);
        out.line((LEFT, y), (WIDTH - RIGHT, y), "stroke=\"#16202b\" stroke-opacity=\".1\"");
        out.words(
            LEFT - 8.0,
            y + 4.0,
            "end",
            &format!("fill=\"{MUTED}\" font-size=\"11\""),
            &bytes(v.max(0.0) as u64),
        );
        v += by;
    }
    let by = step(view.to - view.from, 8.0);
    let mut t = (view.from / by).ceil() * by;
    while t <= view.to {
        out.line(
            (view.x(t), p.top + p.height),
            (view.x(t), p.top + p.height + 4.0),
            &format!("stroke=\"{MUTED}\""),
        );
        let label = moment(t, by);
        out.words(
            view.x(t),
            p.top + p.height + 17.0,
            "middle",
            &format!("fill=\"{MUTED}\" font-size=\"11\""),
            &label,
        );
        t += by;
    }
}

fn bands(out: &mut Drawing, spans: &[&Span], view: &View, zero: f64, p: &Panel) {
    for (span, x0, x1) in seen(spans, view, zero) {
        out.band(span.cause, x0, p.top, x1 - x0, p.height, 0.14);
    }
}

fn sequence(out: &mut Drawing, points: &Points, spans: &[&Span], view: &View, zero: f64) {
    let data = points.data.iter().filter(|d| view.holds(d.0));
    let (mut lo, mut hi) = data.clone().fold((f64::MAX, f64::MIN), |(a, b), d| (a.min(d.1), b.max(d.2)));
    if lo > hi {
        (lo, hi) = (0.0, 1.0);
    }
    let range = (hi - lo).max(100.0);
    let edge = points.edge.iter().filter(|e| view.holds(e.0)).fold(hi, |m, e| m.max(e.1));
    if edge - lo < 3.0 * range {
        hi = edge;
    }
    let pad = (hi - lo).max(10.0) * 0.05;
    let p = Panel { top: 92.0, height: 250.0, lo: lo - pad, hi: hi + pad };
    bands(out, spans, view, zero, &p);
    axes(out, &p, view, "Sequence numbers");
    let clip = |v: f64| v.clamp(p.lo, p.hi);
    stepped(
        out,
        &points.edge,
        view,
        &p,
        &format!("stroke=\"{EDGE}\" stroke-width=\"1.3\" stroke-dasharray=\"5 3\" fill=\"none\""),
    );
    stepped(out, &points.ack, view, &p, &format!("stroke=\"{ACK}\" stroke-width=\"1.5\" fill=\"none\""));
    let mut d = String::new();
    if data.clone().count() <= SINGLE {
        for &(t, a, b, _) in data.clone() {
            let (x, y0, y1) = (view.x(t), p.y(clip(a)), p.y(clip(b)));
            let _ = write!(d, "M{x:.1} {y0:.1}V{y1:.1}M{:.1} {y0:.1}h5M{:.1} {y1:.1}h5", x - 2.5, x - 2.5);
        }
    } else {
        for (x, (a, b)) in columns(data.clone().map(|&(t, a, b, _)| (view.x(t), a, b))) {
            let _ = write!(d, "M{x:.0} {:.1}V{:.1}", p.y(clip(a)) + 0.5, p.y(clip(b)));
        }
    }
    out.path(&d, &format!("stroke=\"{SEGMENT}\" stroke-width=\"1.4\" fill=\"none\""));
    let mut d = String::new();
    for &(t, a, b) in points.sack.iter().filter(|s| view.holds(s.0)).take(SINGLE) {
        let _ = write!(d, "M{:.1} {:.1}V{:.1}", view.x(t), p.y(clip(a)), p.y(clip(b)));
    }
    out.path(&d, &format!("stroke=\"{SACK}\" stroke-width=\"1.5\" fill=\"none\""));
    let odd = data.filter(|d| d.3 & (marks::RETRANSMITTED | marks::LATE) != 0);
    for &(t, _, b, _) in odd.take(SINGLE) {
        let (x, y) = (view.x(t), p.y(clip(b)));
        out.path(&format!("M{:.1} {:.1}h8l-4 6z", x - 4.0, y - 6.0), &format!("fill=\"{AGAIN}\""));
    }
}

fn flight(out: &mut Drawing, points: &Points, spans: &[&Span], view: &View, zero: f64) {
    let most = |list: &[(f64, f64)]| list.iter().filter(|f| view.holds(f.0)).fold(1.0f64, |m, f| m.max(f.1));
    let (flight, window) = (most(&points.flight), most(&points.window));
    let hi = if window < 4.0 * flight { window.max(flight) } else { flight * 1.25 };
    let p = Panel { top: 400.0, height: 120.0, lo: 0.0, hi: hi * 1.06 };
    bands(out, spans, view, zero, &p);
    axes(out, &p, view, "In flight, and the window");
    stepped(
        out,
        &points.flight,
        view,
        &p,
        &format!("stroke=\"{SEGMENT}\" stroke-width=\"1.2\" fill=\"none\""),
    );
    if window < 4.0 * flight {
        stepped(
            out,
            &points.window,
            view,
            &p,
            &format!("stroke=\"{EDGE}\" stroke-width=\"1.3\" stroke-dasharray=\"5 3\" fill=\"none\""),
        );
    }
}

/// A line that keeps its value until the next point; where points are many, the extremes of each pixel.
fn stepped(out: &mut Drawing, list: &[(f64, f64)], view: &View, p: &Panel, style: &str) {
    let before = list.iter().rev().find(|l| l.0 < view.from).map(|l| l.1);
    let inside: Vec<&(f64, f64)> = list.iter().filter(|l| view.holds(l.0)).collect();
    let clip = |v: f64| p.y(v.clamp(p.lo, p.hi));
    let mut d = before.map(|v| format!("M{LEFT} {:.1}", clip(v))).unwrap_or_default();
    if inside.len() <= SINGLE {
        for l in &inside {
            let move_to = if d.is_empty() { "M" } else { "H" };
            let x = view.x(l.0);
            let _ = if move_to == "M" {
                write!(d, "M{x:.1} {:.1}", clip(l.1))
            } else {
                write!(d, "H{x:.1}V{:.1}", clip(l.1))
            };
        }
    } else {
        for (x, (a, b)) in columns(inside.iter().map(|l| (view.x(l.0), l.1, l.1))) {
            let _ = if d.is_empty() {
                write!(d, "M{x:.0} {:.1}V{:.1}", clip(a), clip(b))
            } else {
                write!(d, "H{x:.0}V{:.1}V{:.1}", clip(a), clip(b))
            };
        }
    }
    if !d.is_empty() {
        out.path(&d, style);
    }
}

/// The least and the greatest value of each pixel.
fn columns(points: impl Iterator<Item = (f64, f64, f64)>) -> Vec<(f64, (f64, f64))> {
    let mut out: Vec<(f64, (f64, f64))> = Vec::new();
    for (x, a, b) in points {
        match out.last_mut() {
            Some((column, (lo, hi))) if *column == x.floor() => (*lo, *hi) = (lo.min(a), hi.max(b)),
            _ => out.push((x.floor(), (a, b))),
        }
    }
    out
}

fn legend(out: &mut Drawing, y: f64) {
    let keys = [
        (SEGMENT, "segments, in flight"),
        (AGAIN, "retransmission"),
        (SACK, "SACK"),
        (ACK, "acknowledged"),
        (EDGE, "window edge"),
    ];
    let mut x = LEFT;
    for (colour, name) in keys {
        out.line((x, y), (x + 18.0, y), &format!("stroke=\"{colour}\" stroke-width=\"3\""));
        out.words(x + 24.0, y + 4.0, "start", &format!("fill=\"{MUTED}\" font-size=\"11\""), name);
        x += 50.0 + name.chars().count() as f64 * 6.2;
    }
}
