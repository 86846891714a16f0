//! What an analysis says as four tables of typed columns: connections, exchanges, spans, findings; to Parquet
//! files and back.
//!
//! Takes [connections](tcpwhy_analysis::Connection) as they end and [findings](tcpwhy_analysis::Finding);
//! gives [`Rows`], which a [`Writer`] turns into files by day, and a [`Reader`] back into columns.
//! [`WatchRows`] are those of a running host, in three tables of their own. Knows no captures, and nothing of
//! who asks: which inputs are done, and when a file takes its name, is decided by the caller.
//!
//! The columns are in one list for each table ([`Table::fields`]), from which files, the page `docs/schema/tables-1.md`
//! and readers are made.

mod captures;
mod column;
mod fields;
mod files;
mod group;
mod page;
mod read;
mod rows;
mod schema;
mod watch;

pub use column::{Column, Values, Word, Words};
pub use files::{Error, Writer, Written};
pub use group::Group;
pub use page::page;
pub use read::Reader;
pub use rows::{Of, Rows};
pub use schema::{Field, Kind, SCHEMA, Table};
pub use watch::WatchRows;
