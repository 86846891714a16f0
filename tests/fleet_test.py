#!/usr/bin/env python3
"""The examples of examples/fleet on clusters of the engines themselves, all on this machine: Spark with two workers, Ray with two
nodes. Half way one worker is killed; the tables must be those that one process writes, row by row. And Spark reads those that the
program writes as DuckDB does.

    tests/fleet_test.py [--bin PATH] [--only reads|spark|ray]      (scripts/fleet.py sets up what it needs: make test-fleet)
"""

import argparse
import glob
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, 'scripts'), os.path.join(ROOT, 'examples', 'fleet')]
import common  # noqa: E402
import duckdb  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.dataset  # noqa: E402
import tcpwhy  # noqa: E402
import tcpwhy.fleet  # noqa: E402

# Captures of a cluster's work: so many that the worker dies half way.
CAPTURES, PACKETS, CONNECTIONS = 24, 20_000, 40
PARTS = 4
LOOPBACK = '127.0.0.1'


def captures(folder):
    """Bundled ones, larger ones, one that is split, one that is damaged, and a file that is none."""
    os.makedirs(folder)
    for path in glob.glob(os.path.join(ROOT, 'captures', '*.pcap*')):
        shutil.copy(path, folder)
    large = os.path.join(folder, 'large.pcap')
    flows = [common.generator(), 'flows']
    subprocess.run([*flows, str(PARTS * PACKETS), '160', large], check=True, stdout=subprocess.DEVNULL)
    first = os.path.join(folder, 'flows-00.pcap')
    subprocess.run([*flows, str(PACKETS), str(CONNECTIONS), first], check=True, stdout=subprocess.DEVNULL)
    for n in range(1, CAPTURES):
        shutil.copy(first, os.path.join(folder, f'flows-{n:02}.pcap'))
    with open(first, 'rb') as f:
        data = f.read()
    with open(os.path.join(folder, 'damaged.pcap'), 'wb') as f:
        f.write(data[: len(data) // 2])
    with open(os.path.join(folder, 'notes.txt'), 'w', encoding='utf8') as f:
        f.write('no capture\n')
    return -(-os.path.getsize(large) // PARTS)


def differences(expected, tables):
    """Sentences about rows that only one of the two folders has. A capture in parts numbers its connections in another way, and
    has findings of each part.
    """
    for table in tcpwhy.fleet.TABLES:
        schema = pyarrow.dataset.dataset(f'{expected}/{table}', format='parquet').schema
        chosen = []
        for name in schema.names:
            if name == 'connection':
                name = "CASE WHEN capture LIKE '%/large.pcap' THEN 0 ELSE connection END"
            chosen.append(name)
        which = "WHERE capture NOT LIKE '%/large.pcap'" if table == 'findings' else ''
        queries = []
        for folder in (expected, tables):
            # the latest moment, of packets with impossible times, is no moment for DuckDB
            start = f'coalesce(epoch_ns(start), {2**63 - 1})' if folder == expected else 'start'
            columns = ', '.join(start if name == 'start' else name for name in chosen)
            queries.append(f"SELECT {columns} FROM '{folder}/{table}/**/*.parquet' {which}")
        rows = duckdb.sql(f'SELECT count(*) FROM ({queries[0]})').fetchall()[0][0]
        for a, b, what in ((*queries, 'missing'), (*reversed(queries), 'too many')):
            n = duckdb.sql(f'SELECT count(*) FROM ({a} EXCEPT ALL {b})').fetchall()[0][0]
            if n or not rows:
                yield f'{table}: {n} rows {what}, of {rows}'
    said = duckdb.sql(f"SELECT capture FROM '{tables}/problems/*.parquet'").fetchall()
    named = sorted(os.path.basename(row[0]) for row in said)
    if 'damaged.pcap' not in named or 'notes.txt' not in named or any(n.startswith('flows') for n in named):
        yield f'problems: {named}'


class Killer(threading.Thread):
    """Waits until a third of the tasks have ended, and then kills."""

    def __init__(self, marks, tasks, kill):
        super().__init__(daemon=True)
        self.marks, self.tasks, self.kill, self.at = marks, tasks, kill, None

    def run(self):
        while len(os.listdir(self.marks)) < self.tasks // 3:
            time.sleep(0.05)
        self.at = len(os.listdir(self.marks))
        self.kill()


def marked(function, marks):
    """The function of an engine, leaving a mark for each batch of rows or tasks that it has ended."""

    def over(batches):
        if isinstance(batches, pyarrow.Table):
            rows = function(batches)
        else:
            rows = function(batches)
            return leave(rows)
        open(os.path.join(marks, str(uuid.uuid4())), 'w').close()
        return rows

    def leave(rows):
        yield from rows
        open(os.path.join(marks, str(uuid.uuid4())), 'w').close()

    return over


def below(pid):
    """The processes that descend from this one: pid and command line."""
    parents = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/stat', encoding='utf8') as f:
                parents.setdefault(int(f.read().rsplit(')', 1)[1].split()[1]), []).append(int(name))
        except OSError:
            continue
    todo = [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            todo.append(child)
            try:
                with open(f'/proc/{child}/cmdline', 'rb') as f:
                    yield child, f.read().replace(b'\0', b' ').decode(errors='replace')
            except OSError:
                continue


def quiet_spark(master, folder):
    """A builder of a session that talks to this machine alone and says little."""
    from pyspark.sql import SparkSession

    os.environ.update(SPARK_LOCAL_IP=LOOPBACK, PYSPARK_PYTHON=sys.executable)
    builder = SparkSession.builder.master(master).appName('tcpwhy')
    for key, value in (
        ('spark.ui.enabled', 'false'),
        ('spark.ui.showConsoleProgress', 'false'),
        ('spark.driver.host', LOOPBACK),
        ('spark.driver.bindAddress', LOOPBACK),
        ('spark.sql.shuffle.partitions', '8'),
        ('spark.local.dir', os.path.join(folder, 'spark')),
    ):
        builder = builder.config(key, value)
    return builder


def spark_reads(expected):
    """Sentences about what Spark reads otherwise than DuckDB of the tables of `explain --parquet`: rows; how many values a column
    has, the least and the greatest; sums by cause, with a filter that lets row groups be skipped.
    """
    spark = quiet_spark('local[2]', os.path.dirname(expected)).getOrCreate()
    spark.sparkContext.setLogLevel('ERROR')
    # Spark's timestamps are microseconds; so it gives nanoseconds as numbers
    spark.conf.set('spark.sql.legacy.parquet.nanosAsLong', 'true')
    # 17 and 1e-5 are written in other ways by the two
    plain = 'CAST({} AS DOUBLE)'
    for table in tcpwhy.fleet.TABLES:
        spark.read.parquet(f'{expected}/{table}').createOrReplaceTempView(table)
        mine, theirs = ['count(*)'], ['count(*)']
        for name, kind in spark.table(table).dtypes:
            if name in ('day', 'why'):
                continue
            number = kind in ('bigint', 'int', 'float', 'double')
            mine += [f'count({name})', *(f'{f}({plain.format(name) if number else name})' for f in ('min', 'max'))]
            other = f'coalesce(epoch_ns({name}), {2**63 - 1})' if name == 'start' else name
            theirs += [f'count({other})', *(f'{f}({plain.format(other) if number else other})' for f in ('min', 'max'))]
        read = tuple(spark.sql(f'SELECT {", ".join(mine)} FROM {table}').collect()[0])
        told = duckdb.sql(f"SELECT {', '.join(theirs)} FROM '{expected}/{table}/**/*.parquet'").fetchall()[0]
        if read != told or not read[0]:
            yield f'{table}: Spark reads {read}, DuckDB {told}'
    ask = 'SELECT cause, sum(duration_ns) FROM {} WHERE part <> {} AND connection < 50 GROUP BY cause'
    read = dict(map(tuple, spark.sql(ask.format('spans', "'after'")).collect()))
    told = dict(duckdb.sql(ask.format(f"'{expected}/spans/**/*.parquet'", "'after'")).fetchall())
    if not read or read != told:
        yield f'by cause: Spark says {read}, DuckDB {told}'
    spark.stop()


def on_spark(folder, tables, largest, marks):
    """Two workers, each a process with an executor; one executor is killed. Spark starts another one in its place."""
    import on_spark

    builder = quiet_spark('local-cluster[2,1,1024]', os.path.dirname(tables))
    builder = builder.config('spark.executorEnv.PYTHONPATH', os.pathsep.join(sys.path))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel('ERROR')
    tasks = len(tcpwhy.fleet.tasks(folder, largest))

    def kill():
        executors = [pid for pid, command in below(os.getpid()) if 'CoarseGrainedExecutorBackend' in command]
        assert len(executors) == 2, executors
        os.kill(executors[0], signal.SIGKILL)

    plain = tcpwhy.fleet.explain
    tcpwhy.fleet.explain = marked(plain, marks)
    killer = Killer(marks, tasks, kill)
    killer.start()
    try:
        on_spark.write(spark, folder, tables, largest)
    finally:
        tcpwhy.fleet.explain = plain
        spark.stop()
    return killer, tasks


def on_ray(folder, tables, largest, marks):
    """Two nodes, each with a raylet and an object store; one is killed, with the rows that it held."""
    # workers find the modules of this process
    os.environ.update(RAY_USAGE_STATS_ENABLED='0', PYTHONPATH=os.pathsep.join(sys.path))
    os.environ['RAY_TMPDIR'] = os.path.dirname(tables)
    import on_ray
    import ray
    from ray.cluster_utils import Cluster

    node = {'num_cpus': 1, 'object_store_memory': 1 << 28, 'include_dashboard': False, 'node_ip_address': LOOPBACK}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(**{**node, 'include_dashboard': None})
    ray.init(address=cluster.address, log_to_driver=False, logging_level='ERROR', _node_ip_address=LOOPBACK)
    logging.disable(logging.WARNING)
    ray.data.DataContext.get_current().enable_progress_bars = False
    tasks = len(tcpwhy.fleet.tasks(folder, largest))
    plain = tcpwhy.fleet.explain_batch
    tcpwhy.fleet.explain_batch = marked(plain, marks)
    killer = Killer(marks, tasks, lambda: cluster.remove_node(second, allow_graceful=False))
    killer.start()
    try:
        assert ray.cluster_resources()['CPU'] == 2
        on_ray.write(folder, tables, largest)
        assert ray.cluster_resources()['CPU'] == 1, 'the node is still there'
    finally:
        tcpwhy.fleet.explain_batch = plain
        ray.shutdown()
        cluster.shutdown()
    return killer, tasks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--only', choices=('reads', 'spark', 'ray'))
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        folder, expected = os.path.join(work, 'captures'), os.path.join(work, 'expected')
        largest = captures(folder)
        began = time.monotonic()
        command = [args.bin, 'explain', folder, '--parquet', expected, '--quiet']
        assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 1
        print(f'one process: {time.monotonic() - began:.1f} s', flush=True)
        if args.only in (None, 'reads'):
            wrong = list(spark_reads(expected))
            failed += bool(wrong)
            print('\n'.join(wrong) or "Spark reads the program's tables as DuckDB does", flush=True)
        for name, engine in (('spark', on_spark), ('ray', on_ray)):
            if args.only not in (None, name):
                continue
            tables, marks = os.path.join(work, name), os.path.join(work, f'{name}.marks')
            os.mkdir(marks)
            began = time.monotonic()
            killer, tasks = engine(folder, tables, largest, marks)
            took, ended = time.monotonic() - began, len(os.listdir(marks))
            wrong = list(differences(expected, tables))
            if killer.at is None or killer.at >= tasks:
                wrong.append(f'no worker was killed half way: {killer.at}')
            failed += bool(wrong)
            print('\n'.join(wrong), end='\n' if wrong else '')
            print(
                f'{name}: {tasks} tasks, a worker killed after {killer.at}, {ended} ended in all, {took:.1f} s; '
                f'{"FAIL" if wrong else "the tables of one process"}',
                flush=True,
            )
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
