//! An exchange as a ladder: time runs down, not to scale; each packet is an arrow, and beside it stands who waited.

use super::{ACK, AGAIN, Drawing, INK, MUTED, SEGMENT, WIDTH, float, heading};
use crate::capture::local;
use crate::text::{bytes, flag_letters};
use tcpwhy_analysis::{Connection, Exchange, Frames, Span};
use tcpwhy_base::End;
use tcpwhy_trace::{Packet, Track, marks};

const CLIENT: f64 = 104.0;
const SERVER: f64 = 640.0;
/// Longer runs of packets within one span are folded, so many are left at both ends.
const RUN: usize = 9;
const ENDS: usize = 3;
/// More rows are no figure.
const ROWS: usize = 120;

/// A packet, or many that were folded.
struct Row<'a> {
    packet: &'a Packet,
    folded: Option<(usize, u64)>,
    y: f64,
}

/// Draws it. `frames_before`: frames in the inputs before each.
pub fn ladder(c: &Connection, x: &Exchange, track: &Track, frames_before: &[u64]) -> String {
    let (mut rows, left) = rows(x, track);
    let mut out = Drawing::new();
    let title = format!("{}, exchange {}: {}", heading(c), x.id, x.end - x.start);
    out.words(16.0, 24.0, "start", "font-size=\"15\" font-weight=\"650\"", &title);
    let mut y = 74.0;
    let mut t = float(x.start);
    let mut places = vec![(t, y)];
    for row in &mut rows {
        let at = float(row.packet.time).max(t);
        y += wait(at - t) + 20.0;
        (row.y, t) = (y, at);
        places.push((t, y));
    }
    y += wait((float(x.end) - t).max(0.0)) + 16.0;
    places.push((float(x.end).max(t), y));
    for span in &x.spans {
        self::span(&mut out, span, place(&places, float(span.start)), place(&places, float(span.end)));
    }
    for (at, name) in [(CLIENT, "client"), (SERVER, "server")] {
        out.words(at, 54.0, "middle", "font-size=\"13\" font-weight=\"650\"", name);
        out.line((at, 62.0), (at, y + 8.0), &format!("stroke=\"{INK}\" stroke-width=\"1.5\""));
    }
    for row in &rows {
        arrow(&mut out, row, x, frames_before);
    }
    if left > 0 {
        out.words(
            (CLIENT + SERVER) / 2.0,
            y + 24.0,
            "middle",
            &format!("fill=\"{MUTED}\""),
            &format!("and {left} more"),
        );
    }
    out.height = y + 40.0;
    out.finish(&title)
}

fn rows<'a>(x: &Exchange, track: &'a Track) -> (Vec<Row<'a>>, usize) {
    let from = track.packets.partition_point(|p| p.time < x.start);
    let to = track.packets.partition_point(|p| p.time <= x.end);
    let mut rest = track.packets.get(from..to).unwrap_or_default();
    let mut rows = Vec::new();
    for (i, span) in x.spans.iter().enumerate() {
        let last = i + 1 == x.spans.len();
        let n = if last { rest.len() } else { rest.partition_point(|p| p.time < span.end) };
        let (run, after) = rest.split_at(n);
        rest = after;
        let plain = |packet| Row { packet, folded: None, y: 0.0 };
        if run.len() <= RUN {
            rows.extend(run.iter().map(plain));
        } else {
            let middle = &run[ENDS..run.len() - ENDS];
            let sum = |from| middle.iter().filter(|p| p.from == from).map(|p| u64::from(p.len)).sum::<u64>();
            let most = sum(End::Client).max(sum(End::Server));
            let main = middle.iter().find(|p| sum(p.from) == most).unwrap_or(&middle[0]);
            rows.extend(run[..ENDS].iter().map(plain));
            rows.push(Row { packet: main, folded: Some((middle.len(), most)), y: 0.0 });
            rows.extend(run[run.len() - ENDS..].iter().map(plain));
        }
    }
    let left = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    (rows, left)
}

/// Extra height for a wait: grows with its logarithm, as a pause of a second would push the rest away.
fn wait(ns: f64) -> f64 {
    if ns < 20_000.0 { 0.0 } else { (9.0 * (1.0 + ns / 50_000.0).log2()).min(70.0) }
}

fn place(places: &[(f64, f64)], t: f64) -> f64 {
    for pair in places.windows(2) {
        let ((t0, y0), (t1, y1)) = (pair[0], pair[1]);
        if t <= t1 {
            return if t1 > t0 { y0 + (y1 - y0) * ((t - t0) / (t1 - t0)).clamp(0.0, 1.0) } else { y0 };
        }
    }
    places.last().map_or(0.0, |p| p.1)
}

fn span(out: &mut Drawing, span: &Span, y0: f64, y1: f64) {
    let tall = (y1 - y0).max(2.0);
    out.band(span.cause, CLIENT, y0, SERVER - CLIENT, tall, 0.14);
    out.band(span.cause, SERVER + 14.0, y0, 16.0, tall, 1.0);
    match span.side.map(|s| s.name()) {
        Some("client") => out.band(span.cause, CLIENT - 4.0, y0, 8.0, tall, 1.0),
        Some("server") => out.band(span.cause, SERVER - 4.0, y0, 8.0, tall, 1.0),
        _ => {}
    }
    let middle = (y0 + y1) / 2.0 + 4.0;
    if tall >= 9.0 {
        out.words(SERVER + 38.0, middle, "start", "font-weight=\"600\"", span.cause.id());
        let side = span.side.map(|s| format!(" · {}", s.name())).unwrap_or_default();
        let text = format!("{}{side}", span.duration());
        out.words(WIDTH - 12.0, middle, "end", &format!("fill=\"{MUTED}\" font-size=\"11\""), &text);
    } else {
        // Too low for a line of text: a name for those who point at it.
        out.text.push_str(&format!(
            "<rect x=\"{CLIENT}\" y=\"{y0:.1}\" width=\"{:.0}\" height=\"{tall:.1}\" fill-opacity=\"0\"><title>{} {}</title></rect>\n",
            SERVER + 30.0 - CLIENT,
            span.cause.id(),
            span.duration()
        ));
    }
}

fn arrow(out: &mut Drawing, row: &Row<'_>, x: &Exchange, frames_before: &[u64]) {
    let p = row.packet;
    let (a, b) = if p.from == End::Client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let back = if a < b { -8.0 } else { 8.0 };
    let again = p.marks & (marks::RETRANSMITTED | marks::LATE) != 0;
    let colour = match (again, p.len) {
        (true, _) => AGAIN,
        (false, 0) => ACK,
        _ => SEGMENT,
    };
    let width = if row.folded.is_some() { 4.0 } else { 1.6 };
    let dash = if p.len == 0 && row.folded.is_none() { " stroke-dasharray=\"5 3\"" } else { "" };
    let style = format!("stroke=\"{colour}\" stroke-width=\"{width}\"{dash}");
    out.line((a, row.y - 3.5), (b + back * 0.7, row.y + 3.5), &style);
    out.path(&format!("M{b:.1} {:.1}l{back} -4v8z", row.y + 3.5), &format!("fill=\"{colour}\""));
    let words = match row.folded {
        Some((n, sum)) => format!("… {n} packets, {}", bytes(sum)),
        None => {
            let frame = local(&Frames::new(0, p.frame, p.frame, &[]), frames_before).0.first();
            let len = if p.len > 0 { format!(" {} B", p.len) } else { String::new() };
            let note = if again { " retransmission" } else { "" };
            format!("{frame} {}{len}{note}", flag_letters(p.flags))
        }
    };
    let style = "font-family=\"ui-monospace, Menlo, 'DejaVu Sans Mono', monospace\" font-size=\"11\" paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\"";
    out.words((CLIENT + SERVER) / 2.0, row.y - 5.0, "middle", style, &words);
    let since = (p.time - x.start).as_ms();
    let digits = if since < 100.0 { 3 } else { 1 };
    out.words(
        CLIENT - 12.0,
        row.y + 2.0,
        "end",
        &format!("fill=\"{MUTED}\" font-size=\"11\""),
        &format!("+{since:.digits$} ms"),
    );
}
