//! Columns that line up.

use super::style::DIM;
use anstyle::Style;
use std::io::{self, Write};

/// From this width on tables have all their columns.
pub(super) const WIDE: usize = 100;

/// Where the text of a column stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A heading and rows, printed with two spaces before and between the columns.
pub(super) struct Table {
    heads: Vec<(&'static str, Align)>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    pub(super) fn new(heads: &[(&'static str, Align)]) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|c| (c, Style::new())).collect());
    }

    /// Colours the last cell of the last row.
    pub(super) fn colour_last(&mut self, style: Style) {
        if let Some(cell) = self.rows.last_mut().and_then(|r| r.last_mut()) {
            cell.1 = style;
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(i)).map(|c| c.0.chars().count());
            cells.chain([self.heads[i].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let heads = self.heads.iter().map(|h| (h.0.to_owned(), DIM)).collect::<Vec<_>>();
        let headed = self.heads.iter().any(|h| !h.0.is_empty());
        for row in headed.then_some(&heads).into_iter().chain(&self.rows) {
            let last = row.len().saturating_sub(1);
            for (i, (text, style)) in row.iter().enumerate() {
                let space = " ".repeat(widths[i].saturating_sub(text.chars().count()));
                match self.heads[i].1 {
                    Align::Right => write!(out, "  {space}{style}{text}{style:#}")?,
                    Align::Left if i == last => write!(out, "  {style}{text}{style:#}")?,
                    Align::Left => write!(out, "  {style}{text}{style:#}{space}")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
