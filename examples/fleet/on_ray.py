#!/usr/bin/env python3
"""A folder of captures to tables, by Ray Data: every task is a capture, or a part of a large one.

    python on_ray.py CAPTURES TABLES [--address auto]

Every machine needs the packages tcpwhy and pyarrow and must see CAPTURES, a path or a URI that pyarrow.fs knows. Ray gives a task
that is lost with its machine to another one.
"""

import argparse

import pyarrow
import pyarrow.compute
import ray
import tcpwhy.fleet


def only(batch, table):
    """The rows of one table, as its own columns."""
    rows = batch.filter(pyarrow.compute.is_valid(batch[table]))
    flat = rows.select([table]).flatten()
    return flat.rename_columns([name.split('.', 1)[1] for name in flat.column_names])


def write(captures, tables, largest=tcpwhy.fleet.LARGEST):
    """Writes the tables, by day."""
    tasks = tcpwhy.fleet.tasks(captures, largest)
    rows = ray.data.from_items(tasks, override_num_blocks=len(tasks))
    rows = rows.map_batches(tcpwhy.fleet.explain_batch, batch_format='pyarrow', batch_size=1)
    # Each capture is read once; Ray moves what is more than memory to disk.
    rows = rows.materialize()
    for table in (*tcpwhy.fleet.TABLES, 'problems'):
        chosen = rows.map_batches(only, batch_format='pyarrow', batch_size=None, fn_kwargs={'table': table})
        days = None if table == 'problems' else ['day']
        chosen.write_parquet(
            f'{tables}/{table}', partition_cols=days, compression='zstd', mode=ray.data.SaveMode.OVERWRITE
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('captures')
    parser.add_argument('tables')
    parser.add_argument('--address', help='of the cluster; without it: this machine')
    parser.add_argument('--largest', type=int, default=tcpwhy.fleet.LARGEST, help='bytes from which a capture is split')
    args = parser.parse_args()
    ray.init(address=args.address)
    write(args.captures, args.tables, args.largest)


if __name__ == '__main__':
    main()
