"""Captures in a folder of any file system, as tasks for engines of many machines: PySpark's mapInArrow, Ray Data's map_batches.

A task is a capture, or a part of a large one: each part reads all of the capture and explains the connections that fall to it.
`explain` takes batches of tasks and gives batches of rows; each row belongs to one of the tables and stands in the column of
that table's name, the others are null there:

    rows = spark.createDataFrame(tasks(folder)).mapInArrow(explain, schema)
    rows.where('spans IS NOT NULL').select('spans.*')

examples/fleet has both engines as a whole. The columns are those of docs/schema/tables-1.md, with `day` in front, `start` as
integer nanoseconds (Spark keeps microseconds in its timestamps), and texts as texts. Needs pyarrow.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow
import pyarrow.fs

from . import CaptureError
from . import explain as explain_one

__all__ = ['TABLES', 'LARGEST', 'explain', 'explain_batch', 'schema', 'tasks']

TABLES = ('connections', 'exchanges', 'spans', 'findings')
#: bytes of a capture from which on it becomes several tasks
LARGEST = 1 << 30
#: rows of a batch that goes to the engine
BATCH = 1 << 16
#: where it is damaged, or why nothing of it could be read
PROBLEMS = pyarrow.struct([pyarrow.field('capture', pyarrow.string()), pyarrow.field('problem', pyarrow.string())])


class _Watched:
    """A stream that remembers why it could not be read: the engine has to do the task again, the capture is not damaged."""

    def __init__(self, stream: Any, name: str) -> None:
        self.stream, self.name, self.error = stream, name, None

    def read(self, size: int) -> bytes:
        try:
            return self.stream.read(size)
        except Exception as error:
            self.error = error
            raise


def tasks(folder: str, largest: int = LARGEST) -> list[dict[str, Any]]:
    """A task for each file in the folder and those below, hidden ones left out: `path`, `part`, `parts`. `folder` is a path, or
    the URI of a file system that pyarrow knows (s3://, gs://, hdfs://).
    """
    system, path = _file_system(folder)
    # What a task names has to be found as the folder was: with its scheme and host, and what is asked of it (?region=...).
    name, question, options = folder.partition('?') if '://' in folder else (folder, '', '')
    name = name.rstrip('/') if '://' in folder else name
    prefix = name[: len(name) - len(path)] if name.endswith(path) else ''
    found = system.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    out = []
    for info in sorted(found, key=lambda i: i.path):
        below = info.path[len(path) :].strip('/').split('/')
        if info.type == pyarrow.fs.FileType.File and not any(name.startswith(('.', '_')) for name in below):
            parts = max(1, -(-info.size // largest))
            out += [
                {'path': prefix + info.path + question + options, 'part': part, 'parts': parts} for part in range(parts)
            ]
    return out


@functools.cache
def schema() -> pyarrow.Schema:
    """Of the batches that `explain` gives: a column for each table, and `problems`."""
    fields = [pyarrow.field(name, pyarrow.struct(_plain(_empty(), name, 0).schema)) for name in TABLES]
    return pyarrow.schema([*fields, pyarrow.field('problems', PROBLEMS)])


def explain(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """For mapInArrow: batches of tasks to batches of rows."""
    for batch in batches:
        for task in batch.to_pylist():
            yield from _rows(task)


def explain_batch(batch: pyarrow.Table) -> pyarrow.Table:
    """For Ray's map_batches with batch_format='pyarrow': a batch of tasks to its rows."""
    return pyarrow.Table.from_batches(explain(batch.to_batches()), schema())


def _file_system(place: str) -> tuple[pyarrow.fs.FileSystem, str]:
    if '://' in place:
        return pyarrow.fs.FileSystem.from_uri(place)
    return pyarrow.fs.LocalFileSystem(), place


def _rows(task: dict[str, Any]) -> Iterator[pyarrow.RecordBatch]:
    path, part = task['path'], (task['part'], task['parts'])
    system, place = _file_system(path)
    with contextlib.ExitStack() as stack:
        # A local file is read by the library itself, without the interpreter.
        source: Any = place
        if not isinstance(system, pyarrow.fs.LocalFileSystem):
            source = _Watched(stack.enter_context(system.open_input_stream(place, buffer_size=1 << 20)), path)
        try:
            result = explain_one(source, threads=1, part=part)
        except CaptureError as error:
            if part[0] == 0:
                yield _batch('problems', pyarrow.array([{'capture': path, 'problem': str(error)}], PROBLEMS))
            return
        if isinstance(source, _Watched) and source.error is not None:
            raise source.error
    for name in TABLES:
        table = _plain(result, name, part[0], path)
        for batch in table.to_batches(max_chunksize=BATCH):
            yield _batch(name, batch.to_struct_array())
    if result.problems and part[0] == 0:
        said = [{'capture': path, 'problem': problem} for _, problem in result.problems]
        yield _batch('problems', pyarrow.array(said, PROBLEMS))


def _plain(result: Any, name: str, part: int, path: str | None = None) -> pyarrow.Table:
    """A table as every engine takes it: without dictionaries and time stamps, with its day; findings with their part."""
    table = pyarrow.table(getattr(result, name))
    # without its zone, which is UTC: engines' machines need no data base of zones
    moments = table['start'].cast(pyarrow.int64()).cast(pyarrow.timestamp('ns'))
    columns = {'day': moments.cast(pyarrow.date32(), safe=False)}
    for field in table.schema:
        column = table[field.name]
        if pyarrow.types.is_dictionary(field.type):
            column = column.cast(pyarrow.string())
        elif pyarrow.types.is_timestamp(field.type):
            column = column.cast(pyarrow.int64())
        columns[field.name] = column
    if path is not None:
        columns['capture'] = pyarrow.repeat(pyarrow.scalar(path), table.num_rows)
    if name == 'findings':
        columns['part'] = pyarrow.repeat(pyarrow.scalar(part, pyarrow.int32()), table.num_rows)
    return pyarrow.table(columns).combine_chunks()


def _empty() -> Any:
    """A capture without packets: its tables have columns and no rows."""
    return explain_one(b'\xd4\xc3\xb2\xa1\x02\x00\x04\x00' + bytes(8) + b'\x00\x00\x04\x00\x01\x00\x00\x00')


def _batch(name: str, values: pyarrow.StructArray) -> pyarrow.RecordBatch:
    """These values in the column of their table, nothing in the others."""
    columns = [values.cast(f.type) if f.name == name else pyarrow.nulls(len(values), f.type) for f in schema()]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema())
