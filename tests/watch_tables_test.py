#!/usr/bin/env python3
"""The tables of `tcpwhy watch --parquet`, read by pyarrow, DuckDB and Polars: of programs that wait in a network of
their own, beside the lines of the same run. Then what may go wrong: an end by force, a full disk, a second run.

    tests/watch_tables_test.py [--bin PATH]

Needs pyarrow, duckdb and polars of scripts/tools.txt, and a network namespace; without them it ends with code 75 and says so.
"""

import argparse
import collections
import fcntl
import glob
import ipaddress
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
import common  # noqa: E402
import metrics_test  # noqa: E402

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.dataset
    import pyarrow.parquet
except ImportError as error:
    print(f'SKIP: {error}; scripts/setup.sh test installs it from scripts/tools.txt')
    sys.exit(75)

# long enough for a machine that does everything else first
PATIENCE = 90
TABLES = ('watch_connections', 'watch_shares', 'watch_findings')
# connections that come and go, beside those that stay
SHORT = """
def echo(listener):
    while True:
        c = listener.accept()[0]
        c.sendall(c.recv(100))
        c.close()
def come_and_go():
    listener = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=echo, args=[listener], daemon=True).start()
    while True:
        c = socket.create_connection(listener.getsockname())
        time.sleep(0.2)
        c.sendall(b'x' * 100)
        c.recv(100)
        c.close()
threading.Thread(target=come_and_go, daemon=True).start()
"""
BEGINS = 'threading.Thread(target=push'
WORKLOAD = metrics_test.LOAD.replace(BEGINS, SHORT + BEGINS, 1)


class Network:
    """A network of its own, with programs that wait in it."""

    def __enter__(self):
        # the first process has the network; what is entered later shares it
        inside = ['unshare', '--map-root-user', '--net', '--mount'] if os.geteuid() else ['unshare', '--net', '--mount']
        script = 'ip link set lo up && echo up && exec python3 -c "$0"'
        self.load = subprocess.Popen([*inside, 'sh', '-c', script, WORKLOAD], stdout=subprocess.PIPE)
        if self.load.stdout.readline() != b'up\n':
            print('SKIP: no network namespace can be made here')
            sys.exit(75)
        return self

    def __exit__(self, *_):
        self.load.kill()
        self.load.wait()
        self.load.stdout.close()

    def command(self, *command):
        user = ['--user', '--preserve-credentials'] if os.geteuid() else []
        return ['nsenter', '--target', str(self.load.pid), *user, '--net', '--mount', *command]

    def start(self, binary, folder, *arguments):
        # the lines of a run are a few thousand: no pipe that could be full
        streams = [tempfile.TemporaryFile('w+') for _ in range(2)]  # noqa: SIM115, closed by ended()
        arguments = [binary, 'watch', '--parquet', folder, *arguments]
        out, said = streams
        watch = subprocess.Popen(self.command(*arguments), stdin=subprocess.DEVNULL, stdout=out, stderr=said)
        watch.streams = streams
        return watch

    def run(self, binary, folder, *arguments):
        return ended(self.start(binary, folder, *arguments))


def ended(watch):
    """Exit code, standard output and standard error."""
    code = watch.wait(PATIENCE)
    texts = []
    for stream in watch.streams:
        stream.seek(0)
        texts.append(stream.read())
        stream.close()
    return (code, *texts)


def fail(text):
    sys.exit(f'FAIL {text}')


def expect(got, code, *words):
    if got[0] != code or any(word not in got[2] for word in words):
        fail(f'code {got[0]} instead of {code}, or without {words}: {got[2]}')


def sums(folder):
    """Time by cause, by three engines."""
    query = f"SELECT cause, sum(time_ns)::BIGINT FROM '{folder}/watch_shares/**/*.parquet' GROUP BY cause"
    by_duckdb = dict(duckdb.sql(query).fetchall())
    by_polars = (
        polars.scan_parquet(f'{folder}/watch_shares/**/*.parquet').group_by('cause').agg(polars.col('time_ns').sum())
    )
    by_polars = dict(by_polars.collect().iter_rows())
    table = pyarrow.dataset.dataset(f'{folder}/watch_shares', partitioning='hive').to_table(['cause', 'time_ns'])
    by_pyarrow = collections.Counter()
    for row in table.to_pylist():
        by_pyarrow[row['cause']] += row['time_ns']
    if not by_duckdb == by_polars == dict(by_pyarrow):
        fail(f'engines disagree: {by_duckdb} {by_polars} {by_pyarrow}')
    return by_duckdb


def well_made(folder):
    """Files are sorted, in their day, of schema 1, and every name in the manifest is there."""
    named = set()
    with open(f'{folder}/_manifest.jsonl', encoding='utf8') as f:
        head, *sets = [json.loads(line) for line in f]
    if head != {'tool': 'tcpwhy', 'tables': 1}:
        fail(f'the manifest begins with {head}')
    for one in sets:
        named.update(one['files'])
    there = {os.path.relpath(p, folder) for p in glob.glob(f'{folder}/*/*/*.parquet')}
    if named != there or glob.glob(f'{folder}/*/*/.*.part'):
        fail(f'files {there}, in the manifest {named}')
    for name in there:
        file = pyarrow.parquet.ParquetFile(f'{folder}/{name}')
        facts = file.schema_arrow.metadata
        table, day, _ = name.split('/')
        if table not in TABLES or facts[b'tcpwhy.schema'] != b'1' or facts[b'tcpwhy.table'] != table.encode():
            fail(f'{name}: {facts}')
        rows = plain(file.read())
        if any(time.strftime('day=%Y-%m-%d', time.gmtime(row['start'] // 1_000_000_000)) != day for row in rows):
            fail(f'{name}: rows of another day')
        order = [(row['socket'], row['start']) if table == 'watch_shares' else row['start'] for row in rows]
        if table != 'watch_connections' and file.num_row_groups == 1 and order != sorted(order):
            fail(f'{name}: not sorted')


def plain(table):
    """Its rows, times in nanoseconds: those of Python's own types are microseconds, and pandas is not needed here."""
    for i, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pyarrow.int64()))
    return table.to_pylist()


def ends(text):
    """As the columns say it: address and port."""
    address, port = text.rsplit(':', 1)
    return str(ipaddress.ip_address(address.strip('[]'))), int(port)


def same_as_lines(folder, lines):
    """Each line is a row, and the sum of its time over all intervals is the sum of its rows to the nanosecond."""
    said = collections.Counter()
    count = collections.Counter()
    for line in lines:
        row = json.loads(line)
        client, server = (row['local'], row['peer']) if row['role'] == 'client' else (row['peer'], row['local'])
        key = (*ends(client), *ends(server), row['role'])
        said[key] += sum(part['time_ns'] for part in row['total'])
        count[key] += 1
    key = 'client_ip, client_port, server_ip, server_port, vantage'
    shares = f"SELECT {key}, sum(time_ns)::BIGINT FROM '{folder}/watch_shares/**/*.parquet' GROUP BY {key}"
    shares = {tuple(row[:5]): row[5] for row in duckdb.sql(shares).fetchall()}
    rows = f"SELECT {key}, count(*) FROM '{folder}/watch_connections/**/*.parquet' GROUP BY {key}"
    rows = {tuple(row[:5]): row[5] for row in duckdb.sql(rows).fetchall()}
    if rows != dict(count):
        fail(f'lines {count}, rows {rows}')
    said = {k: v for k, v in said.items() if v}
    if shares != said:
        differ = [(k, shares.get(k), said.get(k)) for k in shares.keys() | said.keys() if shares.get(k) != said.get(k)]
        fail(f'rows and lines differ: {differ[:5]}')
    lives = duckdb.sql(f"SELECT count(*), sum(open::INT) FROM '{folder}/watch_connections/**/*.parquet'").fetchall()[0]
    if not 0 < lives[1] < lives[0]:
        fail(f'{lives[1]} of {lives[0]} connections open at the end: some end, some do not')
    over = duckdb.sql(
        f"SELECT epoch_ns(start), interval_ns, time_ns, counted_ns, cause, socket FROM '{folder}/watch_shares/**/*.parquet'"
        ' WHERE time_ns > interval_ns AND counted_ns < time_ns OR counted_ns > time_ns'
    )
    if rows := over.fetchall():
        fail(f'a share is longer than its interval, and was not measured: {rows}')
    return len(said)


def seen(network, binary, work):
    """A run until ^C: once the causes of both programs are in the lines."""
    folder = f'{work}/seen'
    watch = network.start(binary, folder, '--interval', '400ms', '--jsonl')
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and watch.poll() is None:
        time.sleep(1)
        # a short connection that was seen for long enough to have ended
        with open(f'/proc/{watch.pid}/fd/1', encoding='utf8') as f:
            if sum(1 for _ in f) > 8:
                break
    watch.send_signal(signal.SIGTERM)
    done = ended(watch)
    expect(done, 130, 'written to')
    well_made(folder)
    by_cause = sums(folder)
    missing = {'nagle_delayed_ack', 'slow_reader'} - by_cause.keys()
    if missing:
        fail(f'not seen: {missing} in {by_cause}')
    found = duckdb.sql(
        f"SELECT DISTINCT cause FROM '{folder}/watch_findings/**/*.parquet' WHERE fix IS NOT NULL AND why <> ''"
    )
    if not {'nagle_delayed_ack', 'slow_reader'} <= {row[0] for row in found.fetchall()}:
        fail('findings without what was found')
    return same_as_lines(folder, done[1].splitlines())


def is_locked(path):
    with open(path, encoding='utf8') as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def whole_files(network, binary, work):
    """Runs that end by themselves and by force in one folder: what was finished stays, and the next run goes on."""
    folder = f'{work}/forced'
    expect(network.run(binary, folder, '--once', '--interval', '300ms'), 0, 'written to')
    before = sums(folder)
    killed = network.start(binary, folder, '--interval', '300ms')
    end = time.monotonic() + PATIENCE
    while not is_locked(f'{folder}/_manifest.jsonl'):
        if time.monotonic() > end:
            fail('a run does not lock its folder')
        time.sleep(0.1)
    expect(network.run(binary, folder, '--once', '--interval', '100ms'), 3, 'another run writes to it')
    killed.kill()
    ended(killed)
    well_made(folder)
    expect(network.run(binary, folder, '--once', '--interval', '300ms'), 0)
    well_made(folder)
    after = sums(folder)
    if not all(after.get(cause, 0) >= time for cause, time in before.items()) or after == before:
        fail(f'rows are gone: {before} {after}')
    done = subprocess.run([binary, 'summarize', folder], capture_output=True, text=True, check=False)
    expect((done.returncode, '', done.stderr), 2, 'tables of `tcpwhy watch`')


def no_space(network, binary, work):
    """A disk of three pages: the manifest has room, the tables have none."""
    disk = f'{work}/disk'
    os.mkdir(disk)
    mount = ['sh', '-c', f'mount -t tmpfs -o size=12k none {disk} && exec "$@"', 'sh']
    command = [*mount, binary, 'watch', '--parquet', f'{disk}/t', '--once', '--interval', '300ms']
    done = subprocess.run(
        network.command(*command),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if 'mount:' in done.stderr:
        print(f'SKIP a full disk: {done.stderr.strip()}')
        return
    expect((done.returncode, '', done.stderr), 3, 'No space left', 'put that right')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--bin', default=common.BINARY)
    binary = os.path.abspath(parser.parse_args().bin)
    with tempfile.TemporaryDirectory() as work, Network() as network:
        connections = seen(network, binary, work)
        whole_files(network, binary, work)
        no_space(network, binary, work)
    print(
        f'PASS {connections} connections in the tables as in the lines, to the nanosecond; three engines agree; whole files only'
    )


if __name__ == '__main__':
    main()
    common.leave(0)
