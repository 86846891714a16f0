//! Files back to columns: those that are asked for, a group of rows at a time.

use crate::column::{Column, Values, Words};
use crate::files::{Error, SCHEMA_KEY};
use crate::schema::{SCHEMA, Table};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A file of a table.
pub struct Reader {
    file: SerializedFileReader<File>,
    path: PathBuf,
    table: Table,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file of this table. One of another version is refused.
    pub fn open(path: &Path, table: Table) -> Result<Reader, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let file = SerializedFileReader::new(file).map_err(Error::parquet(path))?;
        let facts = file.metadata().file_metadata().key_value_metadata();
        let fact = |key: &str| {
            facts.into_iter().flatten().find(|fact| fact.key == key).and_then(|fact| fact.value.as_deref())
        };
        let wrong = |what: String| Error::Schema { path: path.display().to_string(), what };
        match fact(SCHEMA_KEY) {
            None => Err(wrong("not written by tcpwhy".into())),
            Some(version) if version != SCHEMA.to_string() => Err(wrong(format!(
                "tables of schema {version}; this program reads schema {SCHEMA}: make them anew"
            ))),
            Some(_) => Ok(Reader { file, path: path.into(), table }),
        }
    }

    /// How many groups of rows.
    pub fn groups(&self) -> usize {
        self.file.metadata().num_row_groups()
    }

    /// How many rows this group has.
    pub fn rows(&self, group: usize) -> usize {
        self.file.metadata().row_groups().get(group).map_or(0, |g| usize::try_from(g.num_rows()).unwrap_or(0))
    }

    /// The columns of these names in a group; an error if one is not there or of another type.
    pub fn columns<const N: usize>(&self, group: usize, names: [&str; N]) -> Result<[Column; N], Error> {
        let failed = Error::parquet(&self.path);
        let rows = self.file.get_row_group(group).map_err(&failed)?;
        let schema = self.file.metadata().file_metadata().schema_descr();
        let fields = self.table.fields();
        let mut out = Vec::with_capacity(N);
        for name in names {
            let field = fields.iter().find(|f| f.name == name);
            let place = schema.columns().iter().position(|c| c.name() == name);
            let missing = || ParquetError::General(format!("there is no column {name}"));
            let (field, place) = field.zip(place).ok_or_else(missing).map_err(&failed)?;
            let mut column = Column::new(field.kind.empty(), field.nullable);
            let reader = rows.get_column_reader(place).map_err(&failed)?;
            read(reader, self.rows(group), &mut column).map_err(&failed)?;
            out.push(column);
        }
        out.try_into().map_err(|_| failed(ParquetError::General("columns are missing".into())))
    }
}

fn read(reader: ColumnReader, rows: usize, to: &mut Column) -> Result<(), ParquetError> {
    let Column { values, present } = to;
    match (reader, values) {
        (ColumnReader::Int64ColumnReader(reader), Values::Numbers(list)) => {
            *list = all(reader, rows, present)?;
        }
        (ColumnReader::Int32ColumnReader(reader), Values::Numbers(list)) => {
            *list = all(reader, rows, present)?.into_iter().map(i64::from).collect();
        }
        (ColumnReader::FloatColumnReader(reader), Values::Fractions(list)) => {
            *list = all(reader, rows, present)?;
        }
        (ColumnReader::BoolColumnReader(reader), Values::Flags(list)) => {
            *list = all(reader, rows, present)?;
        }
        (ColumnReader::ByteArrayColumnReader(reader), Values::Texts(list, words)) => {
            for text in all(reader, rows, present)? {
                list.push(number(words, text.data()));
            }
        }
        _ => return Err(ParquetError::General("a column has another type".into())),
    }
    Ok(())
}

fn number(words: &mut Words, text: &[u8]) -> u32 {
    words.number(&String::from_utf8_lossy(text))
}

/// All values of a column; whether each row has one goes to `present`.
fn all<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    present: &mut Option<Vec<bool>>,
) -> Result<Vec<T::T>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let wanted = present.is_some().then_some(&mut levels);
        let (records, ..) = reader.read_records(rows - read, wanted, None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!("{rows} rows are promised, {read} are there")));
        }
        read += records;
    }
    if let Some(present) = present {
        *present = levels.iter().map(|&level| level > 0).collect();
    }
    Ok(values)
}
