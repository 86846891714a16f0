"""Why is this TCP transfer or request slow, what would fix it, and by how much?

>>> import tcpwhy
>>> result = tcpwhy.explain('slow.pcapng')
>>> polars.DataFrame(result.spans).group_by('cause').agg(polars.col('duration_ns').sum())

Tables have the Arrow PyCapsule interface: pandas, Polars, DuckDB and pyarrow take them without a copy. Their columns are those of
docs/schema/tables-1.md.
"""

from ._tcpwhy import CaptureError, Result, Table, TcpwhyError, __version__, compare, explain, predict

__all__ = ['CaptureError', 'Result', 'Table', 'TcpwhyError', '__version__', 'compare', 'explain', 'predict']
