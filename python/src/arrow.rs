//! Columns to Arrow, handed over by the PyCapsule interface: pandas, Polars, DuckDB and pyarrow take them without a copy.

use crate::TcpwhyError;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, TimestampNanosecondArray,
};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;
use tcpwhy_tables::{Column, Group as _, Kind, Rows, Table as Which, Values};

/// A table: what has `__arrow_c_stream__` can be given to `pandas.DataFrame.from_arrow`, `polars.DataFrame`, `pyarrow.table`, or named
/// in a query of DuckDB.
#[pyclass(module = "tcpwhy", frozen)]
pub(crate) struct Table {
    batch: RecordBatch,
    name: &'static str,
}

impl Table {
    pub(crate) fn of(which: Which, rows: &Rows) -> PyResult<Table> {
        let at = Which::ALL.iter().position(|w| *w == which).unwrap_or(0);
        let batch =
            batch(which, rows, rows.lengths()[at]).map_err(|e| TcpwhyError::new_err(e.to_string()))?;
        Ok(Table { batch, name: which.name() })
    }

    pub(crate) fn rows(&self) -> usize {
        self.batch.num_rows()
    }
}

#[pymethods]
impl Table {
    /// The rows as an Arrow stream. Another schema is not made: who asks for one casts.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|f| f.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        format!("<tcpwhy.Table {}: {} rows, {} columns>", self.name, self.rows(), self.batch.num_columns())
    }
}

fn batch(which: Which, rows: &Rows, n: usize) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (field, column) in which.fields().into_iter().zip(rows.columns(which, 0, n)) {
        let array = array(field.kind, column)?;
        fields.push(Field::new(field.name, array.data_type().clone(), field.nullable));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// A value for each row, where it is there.
fn spread<T: Copy>(values: &[T], present: Option<Vec<bool>>) -> Vec<Option<T>> {
    let mut values = values.iter().copied();
    match present {
        None => values.map(Some).collect(),
        Some(present) => present.into_iter().map(|there| if there { values.next() } else { None }).collect(),
    }
}

fn array(kind: Kind, Column { values, present, .. }: Column) -> Result<ArrayRef, ArrowError> {
    Ok(match values {
        Values::Numbers(list) => match (kind, present) {
            (Kind::Time, _) => Arc::new(TimestampNanosecondArray::from(list).with_timezone("UTC")),
            (Kind::Small, present) => {
                let small: Vec<i32> = list.iter().map(|&n| i32::try_from(n).unwrap_or(i32::MAX)).collect();
                Arc::new(Int32Array::from(spread(&small, present)))
            }
            (_, None) => Arc::new(Int64Array::from(list)),
            (_, present) => Arc::new(Int64Array::from(spread(&list, present))),
        },
        Values::Fractions(list) => Arc::new(Float32Array::from(spread(&list, present))),
        Values::Flags(list) => Arc::new(BooleanArray::from(spread(&list, present))),
        Values::Texts(list, words) => {
            let texts = StringArray::from_iter_values(words.list());
            let keys: Vec<i32> = list.iter().map(|&w| w as i32).collect();
            let keys = Int32Array::from(spread(&keys, present));
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts))?)
        }
        _ => return Err(ArrowError::SchemaError("a column of an unknown kind".into())),
    })
}
