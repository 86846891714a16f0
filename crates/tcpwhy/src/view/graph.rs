//! The sequence numbers of a connection over its time, in dots of braille.

use super::palette::DIM;
use super::state::View;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, GraphType, LegendPosition, Paragraph};
use tcpwhy_base::{End, Nanos};
use tcpwhy_library::Connection;
use tcpwhy_report::text::bytes;
use tcpwhy_trace::{Packet, marks};

/// Points of a line: time and sequence number.
type Points = Vec<(f64, f64)>;

/// Draws that of the chosen connection, in the direction that carries more.
pub(super) fn whole(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let Some(c) = view.current() else { return };
    let from = if c.bytes[0] > c.bytes[1] { End::Client } else { End::Server };
    let (packets, more) = view.graph.as_ref().map_or((&[][..], false), |g| (g.0.as_slice(), g.1));
    let way = if from == End::Client { "client → server" } else { "server → client" };
    let first = if more { format!(", the first {} packets", packets.len()) } else { String::new() };
    let block = Block::new().borders(Borders::TOP).title(format!(" Sequence numbers, {way}{first} "));
    if packets.is_empty() {
        let why = if view.graph.is_some() { "No packets: the capture cannot be read again." } else { "" };
        frame.render_widget(Paragraph::new(why).block(block), area);
        return;
    }
    let lines = Lines::of(packets, c, from);
    let end = packets.last().map_or(c.end, |p| if more { p.time } else { c.end });
    frame.render_widget(lines.chart(c, end, view).block(block), area);
}

struct Lines {
    sent: Points,
    again: Points,
    acked: Points,
    /// The highest sequence number.
    top: f64,
}

impl Lines {
    fn of(packets: &[Packet], c: &Connection, from: End) -> Lines {
        let mut lines = Lines { sent: Vec::new(), again: Vec::new(), acked: Vec::new(), top: 1.0 };
        for p in packets {
            let at = (p.time - c.start).as_ms();
            if p.from == from {
                if p.len > 0 {
                    let is_again = p.marks & (marks::RETRANSMITTED | marks::LATE) != 0;
                    if is_again { &mut lines.again } else { &mut lines.sent }.push((at, p.seq_end() as f64));
                }
                lines.top = lines.top.max(p.seq_end() as f64);
            } else if p.ack > 0 {
                lines.acked.push((at, p.ack as f64));
            }
        }
        lines
    }

    fn chart(&self, c: &Connection, end: Nanos, view: &View<'_>) -> Chart<'_> {
        let palette = view.palette;
        let set = |name: &'static str, kind, style: Style, data| {
            Dataset::default().name(name).marker(Marker::Braille).graph_type(kind).style(style).data(data)
        };
        let length = (end - c.start).max(Nanos(1));
        let times = [0, 1, 2].map(|i| Line::from(Nanos(length.0 * i / 2).to_string()));
        let numbers = [0.0, 0.5, 1.0].map(|part| Line::from(bytes((self.top * part) as u64)));
        // What is drawn last lies above: a retransmission is never hidden.
        Chart::new(vec![
            set("acknowledged", GraphType::Line, palette.acks(), &self.acked),
            set("sent", GraphType::Scatter, palette.data(), &self.sent),
            set("retransmitted", GraphType::Scatter, palette.bad(), &self.again),
        ])
        // Numbers grow to the right: below there it is free.
        .legend_position(Some(LegendPosition::BottomRight))
        .x_axis(Axis::default().bounds([0.0, length.as_ms()]).labels(times).style(DIM))
        .y_axis(Axis::default().bounds([0.0, self.top]).labels(numbers).style(DIM))
    }
}
