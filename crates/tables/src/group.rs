//! Rows that become columns.

use crate::column::Column;
use crate::schema::{Get, Table};
use tcpwhy_base::Nanos;

/// Rows of some tables.
pub trait Group {
    /// Which tables they are of.
    fn tables(&self) -> &'static [Table];
    /// Sorts them by day and what they belong to, so that what stands side by side is alike.
    fn sort(&mut self);
    /// When each row of a table begins.
    fn starts(&self, table: Table) -> Vec<Nanos>;
    /// What they hold for a table, from row `from` up to row `to`, a column for each field.
    fn columns(&self, table: Table, from: usize, to: usize) -> Vec<Column>;
}

/// A column for each field, of these rows.
pub(crate) fn columns<R>(fields: &[Get<R>], rows: Option<&[R]>) -> Vec<Column> {
    let column = |(field, get): &Get<R>| {
        let mut column = Column::new(field.kind.empty(), field.nullable);
        rows.unwrap_or_default().iter().for_each(|row| column.push(get(row)));
        column
    };
    fields.iter().map(column).collect()
}
