//! Bars of causes: how much each took, and when.

use super::palette::{Palette, shade};
use ratatui::text::{Line, Span};
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_library::{Connection, Span as Stretch};

/// A bar of causes; each has at least one cell.
pub(super) fn bar(times: &[(Cause, Nanos)], width: u16, palette: Palette) -> Line<'static> {
    let total = times.iter().map(|t| t.1.0).sum::<i64>().max(1) as f64;
    let cells = |t: Nanos| ((t.0 as f64 / total * f64::from(width)).round() as usize).max(1);
    let parts = times.iter().take(8).map(|t| Span::styled(shade(t.0).repeat(cells(t.1)), palette.of(t.0)));
    Line::from(parts.collect::<Vec<_>>())
}

/// The names of the largest.
pub(super) fn legend(times: &[(Cause, Nanos)], palette: Palette) -> Line<'static> {
    let names = times
        .iter()
        .take(4)
        .flat_map(|t| [Span::styled(t.0.id(), palette.of(t.0)), Span::raw(format!(" {}  ", t.1))]);
    Line::from(names.collect::<Vec<_>>())
}

/// A connection from its begin to its end: in each cell what took most of its time.
pub(super) fn strip(c: &Connection, width: u16, palette: Palette) -> Line<'static> {
    let setup = c.setup.iter().flat_map(|s| &s.spans);
    let exchanges = c.exchanges.iter().flat_map(|x| &x.spans);
    let gaps = c.gaps.iter().flat_map(|g| &g.spans);
    let mut spans: Vec<&Stretch> = setup.chain(exchanges).chain(gaps).collect();
    spans.sort_by_key(|s| (s.start, s.end));
    let (start, length) = (c.start.0, (c.end - c.start).0.max(1));
    let edge = |cell: u16| start + (i128::from(length) * i128::from(cell) / i128::from(width.max(1))) as i64;
    let mut rest = spans.as_slice();
    let cells = (0..width).map(|cell| {
        let (from, to) = (edge(cell), edge(cell + 1));
        rest = &rest[rest.partition_point(|s| s.end.0 <= from)..];
        let here = rest.iter().take_while(|s| s.start.0 < to);
        let most = here.max_by_key(|s| s.end.0.min(to) - s.start.0.max(from));
        most.map_or_else(|| Span::raw(" "), |s| Span::styled(shade(s.cause), palette.of(s.cause)))
    });
    Line::from(cells.collect::<Vec<_>>())
}

/// What the shades stand for.
pub(super) fn shades(palette: Palette) -> Line<'static> {
    let of = [
        (Cause::NagleDelayedAck, "TCP"),
        (Cause::Unexplained, "lost on the path, or not known"),
        (Cause::ServerThink, "applications"),
        (Cause::PathDelay, "path and sizes"),
    ];
    let names = of.map(|(cause, name)| Span::styled(format!("{} {name}  ", shade(cause)), palette.of(cause)));
    let mut line = vec![Span::raw("above, the same from begin to end: ")];
    line.extend(names);
    Line::from(line)
}
