//! What a narrow terminal has no room for: a column is left out whole, a line ends in `…`. Part of a number
//! would be another number.

use super::palette::DIM;
use ratatui::layout::Constraint;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row, Table};

/// A column of a list.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// `>` stands before that of numbers, which end where the name does.
    name: &'static str,
    /// In cells; of the one that takes what is left: at least.
    width: u16,
    /// The least is left out first; none: it takes what is left, and always stays.
    worth: Option<u8>,
}

impl Column {
    pub(super) fn of(name: &'static str, width: u16, worth: u8) -> Column {
        Column { name, width, worth: Some(worth) }
    }

    /// The one that takes what is left.
    pub(super) fn rest(name: &'static str, width: u16) -> Column {
        Column { name, width, worth: None }
    }

    fn head(self) -> Line<'static> {
        match self.name.strip_prefix('>') {
            Some(name) => Line::from(name).right_aligned(),
            None => Line::from(self.name),
        }
    }
}

/// The columns that fit into so many cells, in their order, with a cell between them.
fn that_fit(columns: &[Column], room: u16) -> Vec<bool> {
    let mut shown = vec![true; columns.len()];
    while taken(columns, &shown) > room {
        let all = columns.iter().zip(&mut shown).filter(|(column, is)| **is && column.worth.is_some());
        let Some((_, least)) = all.min_by_key(|(column, _)| column.worth) else { break };
        *least = false;
    }
    shown
}

fn taken(columns: &[Column], shown: &[bool]) -> u16 {
    let widths = columns.iter().zip(shown).filter(|(_, is)| **is).map(|(column, _)| column.width + 1);
    widths.sum::<u16>().saturating_sub(1)
}

/// A list of so many cells: of each row what the columns that fit show.
pub(super) fn table(
    columns: &[Column],
    rows: impl Iterator<Item = Vec<Line<'static>>>,
    room: u16,
) -> Table<'static> {
    let shown = that_fit(columns, room);
    let more = room.saturating_sub(taken(columns, &shown));
    let kept: Vec<&Column> = columns.iter().zip(&shown).filter_map(|(c, is)| is.then_some(c)).collect();
    let widths: Vec<u16> =
        kept.iter().map(|c| if c.worth.is_some() { c.width } else { (c.width + more).min(room) }).collect();
    // Bars are a cell longer than their column at times, which is no loss: only what takes the rest says that
    // it is cut.
    let fitted = |(cell, (column, width)): (_, (&&Column, &u16))| match column.worth {
        Some(_) => cell,
        None => cut(cell, *width),
    };
    let row = |cells: Vec<Line<'static>>| {
        let cells = cells.into_iter().zip(&shown).filter_map(|(cell, is)| is.then_some(cell));
        Row::new(cells.zip(kept.iter().zip(&widths)).map(fitted).collect::<Vec<_>>())
    };
    let rows: Vec<Row<'static>> = rows.map(row).collect();
    let head = Row::new(kept.iter().map(|c| c.head())).style(DIM);
    Table::new(rows, widths.iter().map(|w| Constraint::Length(*w))).header(head)
}

/// The line in so many cells; where it is longer it ends in `…`.
pub(super) fn cut(line: Line<'_>, width: u16) -> Line<'_> {
    let width = usize::from(width);
    if line.width() <= width {
        return line;
    }
    let (style, alignment) = (line.style, line.alignment);
    let mut room = width.saturating_sub(1);
    let mut kept = Vec::new();
    for span in line.spans {
        let style = span.style;
        if span.width() > room {
            let mut text = String::new();
            for c in span.content.chars() {
                text.push(c);
                if Span::raw(text.as_str()).width() > room {
                    text.pop();
                    break;
                }
            }
            text.push('…');
            kept.push(Span::styled(text, style));
            break;
        }
        room -= span.width();
        kept.push(span);
    }
    Line { style, alignment, spans: kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_says_so() {
        let text = |line: &str, width| cut(Line::raw(line.to_owned()), width).to_string();
        assert_eq!((text("129 B", 5).as_str(), text("129 B", 4).as_str()), ("129 B", "129…"));
        assert_eq!((text("ab", 1).as_str(), text("", 0).as_str()), ("…", ""));
        let two = || Line::from(vec![Span::raw("48.1"), Span::raw(" ms")]);
        assert_eq!([7, 6, 5, 4].map(|n| cut(two(), n).to_string()), ["48.1 ms", "48.1 …", "48.1…", "48.…"]);
    }

    #[test]
    fn what_is_worth_least_is_left_out_first() {
        let columns = [Column::of(">time", 9, 2), Column::rest("found", 20), Column::of("side", 8, 1)];
        for (room, shown) in [
            (39, [true, true, true]),
            (38, [true, true, false]),
            (30, [true, true, false]),
            (29, [false, true, false]),
            (3, [false, true, false]),
        ] {
            assert_eq!(that_fit(&columns, room), shown, "{room}");
        }
    }
}
