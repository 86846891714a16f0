//! Where each table has its list of columns.

use crate::schema::{Field, Table};
use crate::{captures, watch};

impl Table {
    /// Its columns.
    pub fn fields(self) -> Vec<Field> {
        match self {
            Table::Connections | Table::Exchanges | Table::Spans | Table::Findings => captures::fields(self),
            Table::WatchConnections | Table::WatchShares | Table::WatchFindings => watch::fields(self),
        }
    }
}
