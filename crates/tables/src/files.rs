//! Tables to files: a file for each table and day, whole or under a name that no engine reads.

use crate::column::{Column, Values, Words};
use crate::group::Group;
use crate::rows::day_number;
use crate::schema::{Field, Kind, SCHEMA, Table};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tcpwhy_base::Nanos;
use thiserror::Error;

/// Key of the metadata of a file that tells [`SCHEMA`].
pub(crate) const SCHEMA_KEY: &str = "tcpwhy.schema";
/// Middle way: level 9 wins a tenth of the size and takes three times as long.
const LEVEL: i32 = 3;

/// Files that are put on the disk at once.
const SYNCS: usize = 16;

/// Why tables could not be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{path}: {source}")]
    Io {
        /// Of which file or folder.
        path: String,
        /// What it said.
        source: io::Error,
    },
    /// The file is none of ours, or damaged.
    #[error("{path}: {source}")]
    Parquet {
        /// Of which file.
        path: String,
        /// What was wrong.
        source: ParquetError,
    },
    /// Tables of another version, or of another program.
    #[error("{path}: {what}")]
    Schema {
        /// Of which file.
        path: String,
        /// What it is.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error {
        move |source| Error::Io { path: path.display().to_string(), source }
    }

    pub(crate) fn parquet(path: &Path) -> impl Fn(ParquetError) -> Error {
        move |source| match source {
            // What the system said is what helps: that no space is left.
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Error::Io { path: path.display().to_string(), source: *source },
                Err(inner) => {
                    Error::Parquet { path: path.display().to_string(), source: ParquetError::External(inner) }
                }
            },
            source => Error::Parquet { path: path.display().to_string(), source },
        }
    }
}

/// Writes rows to files of its own that have not taken their names yet; dropped unfinished, it removes them.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    stem: String,
    open: BTreeMap<(&'static str, String), Open>,
}

#[derive(Debug)]
struct Open {
    /// `None` once it was closed.
    file: Option<SerializedFileWriter<BufWriter<File>>>,
    part: PathBuf,
    name: String,
}

/// Files that were written whole and wait for their names, relative to the folder of the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Such as `spans/day=2026-11-22/STEM.parquet`.
    pub files: Vec<String>,
    /// Bytes of all.
    pub bytes: u64,
}

impl Writer {
    /// Into the folders of the tables in `folder`; `stem` begins the name of each file, and no other file may have it.
    pub fn new(folder: &Path, stem: String) -> Writer {
        Writer { folder: folder.into(), stem, open: BTreeMap::new() }
    }

    /// Nothing was written.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Writes these rows, [sorted](Group::sort): a group in the file of each table and day.
    pub fn write(&mut self, mut rows: impl Group) -> Result<(), Error> {
        rows.sort();
        for &table in rows.tables() {
            let starts = rows.starts(table);
            let mut from = 0;
            for days in starts.chunk_by(|a, b| day_number(*a) == day_number(*b)) {
                let columns = rows.columns(table, from, from + days.len());
                from += days.len();
                self.file(table, &day(days[0]))?.write(table, &columns)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, table: Table, day: &str) -> Result<&mut Open, Error> {
        let Writer { folder, stem, open } = self;
        match open.entry((table.name(), day.into())) {
            std::collections::btree_map::Entry::Occupied(there) => Ok(there.into_mut()),
            std::collections::btree_map::Entry::Vacant(place) => {
                let name = format!("{}/day={day}/{stem}.parquet", table.name());
                Ok(place.insert(Open::new(folder, table, name)?))
            }
        }
    }

    /// Ends the files. They are on the disk then, and wait for [`publish`](Written::publish).
    pub fn finish(mut self) -> Result<Written, Error> {
        let mut files = Vec::with_capacity(self.open.len());
        for open in self.open.values_mut() {
            let Some(file) = open.file.take() else { continue };
            let buffer = file.into_inner().map_err(Error::parquet(&open.part))?;
            files
                .push((&*open.part, buffer.into_inner().map_err(|e| Error::io(&open.part)(e.into_error()))?));
        }
        let bytes = synced(&files)?;
        drop(files);
        let files = std::mem::take(&mut self.open).into_values();
        Ok(Written { files: files.map(|open| open.name).collect(), bytes })
    }
}

/// Puts files on the disk, several at a time: a file system puts together what is asked of it at once. Gives
/// their bytes.
fn synced(files: &[(&Path, File)]) -> Result<u64, Error> {
    let one = |(path, file): &(&Path, File)| {
        file.sync_all().and_then(|()| Ok(file.metadata()?.len())).map_err(Error::io(path))
    };
    let each = files.len().div_ceil(SYNCS).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(each)
            .map(|part| scope.spawn(move || part.iter().map(one).sum::<Result<u64, Error>>()))
            .collect();
        // What is not known to be on the disk must not be counted on: a panic goes on.
        parts.into_iter().map(|part| part.join().unwrap_or_else(|why| std::panic::resume_unwind(why))).sum()
    })
}

impl Drop for Writer {
    fn drop(&mut self) {
        for open in self.open.values_mut() {
            open.file = None;
            // What stays has a name that no engine reads, and the next run removes it.
            let _ = fs::remove_file(&open.part);
        }
    }
}

impl Written {
    /// Gives each file its name; one that has it already is left alone.
    pub fn publish(&self, folder: &Path) -> Result<(), Error> {
        for name in &self.files {
            let (part, whole) = (part_of(folder, name), folder.join(name));
            match fs::rename(&part, &whole) {
                Err(_) if whole.is_file() => {}
                other => other.map_err(Error::io(&whole))?,
            }
        }
        Ok(())
    }
}

/// What the file is called while it is written: hidden, and no `.parquet`.
fn part_of(folder: &Path, name: &str) -> PathBuf {
    let (within, file) = name.rsplit_once('/').unwrap_or(("", name));
    folder.join(within).join(format!(".{file}.part"))
}

impl Open {
    fn new(folder: &Path, table: Table, name: String) -> Result<Open, Error> {
        let part = part_of(folder, &name);
        if let Some(parent) = part.parent() {
            fs::create_dir_all(parent).map_err(Error::io(parent))?;
        }
        let file = File::create(&part).map_err(Error::io(&part))?;
        let schema = schema(table).map_err(Error::parquet(&part))?;
        let writer =
            SerializedFileWriter::new(BufWriter::with_capacity(1 << 18, file), schema, properties(table));
        let mut open = Open { file: None, part, name };
        open.file = Some(writer.map_err(Error::parquet(&open.part))?);
        Ok(open)
    }

    fn write(&mut self, table: Table, columns: &[Column]) -> Result<(), Error> {
        let failed = Error::parquet(&self.part);
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut group = file.next_row_group().map_err(&failed)?;
        for (field, column) in table.fields().iter().zip(columns) {
            let Some(mut to) = group.next_column().map_err(&failed)? else { break };
            put(&mut to, field.kind, column).map_err(&failed)?;
            to.close().map_err(&failed)?;
        }
        group.close().map_err(&failed)?;
        Ok(())
    }
}

fn put(to: &mut SerializedColumnWriter<'_>, kind: Kind, column: &Column) -> Result<(), ParquetError> {
    let levels: Option<Vec<i16>> =
        column.present.as_ref().map(|present| present.iter().map(|&there| i16::from(there)).collect());
    let levels = levels.as_deref();
    match &column.values {
        Values::Numbers(list) if kind == Kind::Small => {
            let small: Vec<i32> = list.iter().map(|&n| i32::try_from(n).unwrap_or(i32::MAX)).collect();
            batch::<Int32Type>(to, &small, levels)
        }
        Values::Numbers(list) => batch::<Int64Type>(to, list, levels),
        Values::Fractions(list) => batch::<FloatType>(to, list, levels),
        Values::Flags(list) => batch::<BoolType>(to, list, levels),
        Values::Texts(list, words) => {
            let all = bytes(words);
            let texts: Vec<ByteArray> = list.iter().filter_map(|&w| all.get(w as usize).cloned()).collect();
            batch::<ByteArrayType>(to, &texts, levels)
        }
    }
}

fn bytes(words: &Words) -> Vec<ByteArray> {
    words.list().iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect()
}

fn batch<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    to.typed::<T>().write_batch(values, levels, None).map(drop)
}

/// The columns in the words of Parquet.
pub(crate) fn message(table: Table) -> String {
    let column = |f: &Field| {
        let needed = if f.nullable { "optional" } else { "required" };
        let (before, after) = parquet_type(f.kind);
        format!("  {needed} {before} {}{after};\n", f.name)
    };
    let columns: String = table.fields().iter().map(column).collect();
    format!("message {} {{\n{columns}}}\n", table.name())
}

pub(crate) const fn parquet_type(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Time => ("int64", " (TIMESTAMP(NANOS,true))"),
        Kind::Duration | Kind::Number | Kind::Place => ("int64", ""),
        Kind::Small => ("int32", ""),
        Kind::Fraction => ("float", ""),
        Kind::Flag => ("boolean", ""),
        Kind::Word | Kind::Text => ("binary", " (STRING)"),
    }
}

fn schema(table: Table) -> Result<TypePtr, ParquetError> {
    Ok(Arc::new(parse_message_type(&message(table))?))
}

fn properties(table: Table) -> WriterPropertiesPtr {
    let level = ZstdLevel::try_new(LEVEL).unwrap_or_default();
    let facts = [("tcpwhy.table", table.name().to_owned()), (SCHEMA_KEY, SCHEMA.to_string())];
    let facts = facts.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("tcpwhy version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_key_value_metadata(Some(facts.to_vec()))
        .set_sorting_columns(Some(sorting(table)));
    for field in table.fields() {
        let path = ColumnPath::from(field.name);
        match field.kind {
            // Nearly every value is another one, and near the one before it: a dictionary would be in the way.
            Kind::Time | Kind::Place => {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            // Not near the one before it, but seen a while ago, round trips above all: whole bytes let
            // Zstandard find them again.
            Kind::Duration => {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::PLAIN);
            }
            Kind::Number | Kind::Small => {
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            Kind::Text => {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_statistics_enabled(path, EnabledStatistics::None);
            }
            Kind::Fraction | Kind::Flag | Kind::Word => {}
        }
    }
    Arc::new(properties.build())
}

/// What the rows of a group are sorted by.
fn sorting(table: Table) -> Vec<SortingColumn> {
    let fields = table.fields();
    let place = |name: &&str| fields.iter().position(|f| f.name == *name);
    let of_all = matches!(table, Table::Findings | Table::WatchFindings);
    ["capture", "connection", "socket", "start"]
        .iter()
        .filter(|name| !(of_all && ["connection", "socket"].contains(name)))
        .filter_map(|name| i32::try_from(place(name)?).ok())
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: false })
        .collect()
}

/// The day of a moment in UTC, such as `2026-11-22`.
fn day(at: Nanos) -> String {
    let begins = jiff::Timestamp::from_second(day_number(at) * 86_400);
    begins.map_or_else(|_| "unknown".into(), |t| t.strftime("%F").to_string())
}
