#!/usr/bin/env python3
"""The tables of `explain --parquet`, read by pyarrow, DuckDB and Polars.

On every bundled capture: what spans hold by connection and cause is what the JSON says, to the nanosecond, and so are counts of
connections and exchanges; the three engines agree. Then what may go wrong: damage, other files, an end by force at any moment, a
full disk, tables of another version, a second run beside the first.

    tests/tables_test.py [--bin PATH]

Needs pyarrow, duckdb and polars of scripts/tools.txt; without them it ends with code 75 and says so.
"""

import argparse
import collections
import fcntl
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.parquet
except ImportError as error:
    print(f'SKIP: {error}; scripts/setup.sh test installs it from scripts/tools.txt')
    sys.exit(75)

TABLES = ('connections', 'exchanges', 'spans', 'findings')
SUMS = """
    SELECT capture, connection, part, cause, sum(duration_ns)::BIGINT FROM '{}/spans/**/*.parquet' GROUP BY ALL
"""


def run(binary, *arguments, **options):
    """Exit code, standard output and standard error."""
    done = subprocess.run(
        [binary, 'explain', *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
        **options,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def captures():
    folder = os.path.join(ROOT, 'captures')
    return sorted(glob.glob(os.path.join(folder, '*.pcap*')) + glob.glob(os.path.join(folder, 'lab', '*', '*client*')))


def sums(folder):
    """{(capture, connection, part, cause): ns} of a folder of tables."""
    rows = duckdb.sql(SUMS.format(folder)).fetchall()
    return {tuple(row[:4]): row[4] for row in rows}


def counts(folder):
    return tuple(
        duckdb.sql(f"SELECT count(*) FROM '{folder}/{table}/**/*.parquet'").fetchall()[0][0] for table in TABLES
    )


def of_json(document):
    """The same sums of a JSON answer without the capture: {(connection, 'gap' or 'request', cause): ns}; and its counts."""
    out = collections.Counter()
    for c in document['connections']:
        for name, part in (('budget', 'request'), ('gap_budget', 'gap')):
            out.update({(c['id'], part, cause): ns for cause, ns in c[name].items()})
    return +out, (len(document['connections']), sum(len(c['exchanges']) for c in document['connections']))


def same_as_json(binary, folder, paths):
    """Sentences about captures whose rows are not what their JSON says."""
    rows = collections.defaultdict(collections.Counter)
    for (capture, connection, part, cause), ns in sums(folder).items():
        rows[capture][connection, 'gap' if part in ('gap', 'after') else 'request', cause] += ns
    number = "SELECT capture, count(*) FROM '{}/{}/**/*.parquet' GROUP BY 1"
    connections, exchanges = (dict(duckdb.sql(number.format(folder, t)).fetchall()) for t in TABLES[:2])
    lost = "SELECT capture, cause, side, lost_ns FROM '{}/findings/**/*.parquet'"
    findings = collections.defaultdict(dict)
    for capture, cause, side, ns in duckdb.sql(lost.format(folder)).fetchall():
        findings[capture][cause, side] = ns
    for path in paths:
        document, code = common.explain(binary, path, '--exchanges', 'all')
        # of several captures one whose clock nobody had set has no rows
        refused = code == 3 or any(w['code'] == 'clock_step' for w in document['capture']['warnings'])
        if refused:
            if rows[path] or path in connections or path in findings:
                yield f'{path}: has rows, and the JSON is refused or its clock jumps'
            continue
        expected, (n, m) = of_json(document)
        if +rows[path] != expected:
            differ = {k: (rows[path][k], expected[k]) for k in rows[path] | expected if rows[path][k] != expected[k]}
            yield f'{path}: sums differ: {differ}'
        if (connections.get(path, 0), exchanges.get(path, 0)) != (n, m):
            yield f'{path}: {connections.get(path, 0)} connections, {exchanges.get(path, 0)} exchanges; JSON: {n}, {m}'
        told = {(f['cause'], f['side']): f['lost_ns'] for f in document['findings'] if f['cause'] in common.SPAN_CAUSES}
        mine = {k: ns for k, ns in findings[path].items() if k[0] in common.SPAN_CAUSES}
        if told != mine:
            yield f'{path}: findings differ: {told} {mine}'


def engines_agree(folder):
    """Sentences about what an engine reads otherwise than the others."""
    by_duckdb = dict(
        duckdb.sql(f"SELECT cause, sum(duration_ns)::BIGINT FROM '{folder}/spans/**/*.parquet' GROUP BY 1").fetchall()
    )
    frame = polars.scan_parquet(f'{folder}/spans/**/*.parquet').group_by('cause').agg(polars.col('duration_ns').sum())
    by_polars = dict(frame.collect().iter_rows())
    table = pyarrow.parquet.read_table(f'{folder}/spans', partitioning=None, read_dictionary=['cause'])
    grouped = table.unify_dictionaries().group_by('cause').aggregate([('duration_ns', 'sum')]).to_pydict()
    by_pyarrow = dict(zip(grouped['cause'], grouped['duration_ns_sum'], strict=True))
    if not by_duckdb or not by_duckdb == by_polars == by_pyarrow:
        yield f'engines differ: {by_duckdb} {by_polars} {by_pyarrow}'
    if not pyarrow.types.is_dictionary(table.schema.field('cause').type):
        yield 'cause is no dictionary for pyarrow'
    kind = table.schema.field('start').type
    if (kind.unit, kind.tz) != ('ns', 'UTC'):
        yield f'start is {kind}'
    if polars.read_parquet_schema(glob.glob(f'{folder}/spans/*/*.parquet')[0])['start'] != polars.Datetime('ns', 'UTC'):
        yield 'start is something else for Polars'


def well_made(folder):
    """Sentences about files that are not sorted, not of their day, without statistics or without a version."""
    for path in glob.glob(f'{folder}/*/*/*.parquet'):
        file = pyarrow.parquet.ParquetFile(path)
        meta = file.metadata.metadata
        if meta[b'tcpwhy.schema'] != b'1' or meta[b'tcpwhy.table'].decode() not in path:
            yield f'{path}: metadata {meta}'
        day = path.split('day=')[1].split('/')[0]
        for n in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(n)
            start = group.column(0)
            starts = file.read_row_group(n, columns=['start'])['start'].cast('int64').to_pylist()
            names = [
                name
                for name in ('capture', 'connection', 'start')
                if (name, '/findings/' in path) != ('connection', True)
            ]
            by = file.read_row_group(n, columns=names).select(names)
            order = list(
                zip(*(by[name].cast('int64' if name == 'start' else by[name].type).to_pylist() for name in names))
            )
            told = [file.schema_arrow.names[s.column_index] for s in group.sorting_columns]
            if order != sorted(order) or told != names:
                yield f'{path}: not sorted by {names}: {told}'
            days = {time.strftime('%Y-%m-%d', time.gmtime(s // 10**9)) for s in starts}
            if days != {day}:
                yield f'{path}: holds {days}'
            for i in range(group.num_columns):
                column = group.column(i)
                if not column.is_stats_set and column.path_in_schema != 'why':
                    yield f'{path}: no statistics of {column.path_in_schema}'
            if not start.encodings or 'DELTA_BINARY_PACKED' not in start.encodings:
                yield f'{path}: start is {start.encodings}'


def many(source, folder, n):
    """n copies of captures, by other names."""
    paths = sorted(os.path.join(source, name) for name in ('zeek__smtp_bdat.pcap', 'loopback_write_write_read.pcap'))
    for i in range(n):
        shutil.copy(paths[i % 2], os.path.join(folder, f'{i:05}.pcap'))


def ended_by_force(binary, work):
    """A run that is killed, at a moment that differs each time: the next one completes it, and nothing is there twice."""
    inputs, whole = os.path.join(work, 'in'), os.path.join(work, 'whole')
    os.mkdir(inputs)
    many(os.path.join(ROOT, 'captures'), inputs, 400)
    code, _, said = run(binary, inputs, '--parquet', whole)
    if code:
        return f'exit code {code}: {said}'
    expected = sums(whole), counts(whole)
    for n, how in enumerate((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)):
        out = os.path.join(work, f'killed-{n}')
        child = subprocess.Popen(
            [binary, 'explain', inputs, '--parquet', out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # as soon as there is a manifest, or files without names, or when it has ended by itself
        sight = ('_manifest.jsonl', '*/*/.*.part')[n % 2]
        while child.poll() is None and not glob.glob(os.path.join(out, sight), include_hidden=True):
            time.sleep(0.001)
        child.send_signal(how)
        child.wait()
        code, _, said = run(binary, inputs, '--parquet', out)
        if code or (sums(out), counts(out)) != expected:
            return f'after {how.name}: exit code {code}, {counts(out)} rows, expected {expected[1]}: {said}'
        if glob.glob(os.path.join(out, '*/*/.*.part'), include_hidden=True):
            return f'after {how.name}: files without names stayed'
    # ended between the line of the manifest and the names of the files; and in the middle of a line
    for path in glob.glob(os.path.join(whole, 'spans/*/*.parquet')):
        os.rename(path, os.path.join(os.path.dirname(path), f'.{os.path.basename(path)}.part'))
    stray = os.path.join(whole, os.path.dirname(os.path.relpath(path, whole)), '.set-999999.parquet.part')
    with open(stray, 'wb') as f:
        f.write(b'PAR1')
    with open(os.path.join(whole, '_manifest.jsonl'), 'ab') as f:
        f.write(b'{"set":7,"files":["spans')
    code, said, _ = run(binary, inputs, '--parquet', whole)
    if code or '400 were done before' not in said or (sums(whole), counts(whole)) != expected or os.path.exists(stray):
        return f'after a torn line: exit code {code}, {said}'
    return None


def summary(binary, folder):
    """What `summarize --json` says otherwise than DuckDB does of the same files."""
    done = subprocess.run(
        [binary, 'summarize', folder, '--json', '--top', '1000000', '--split', '2020-01-01'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        yield f'summarize: exit code {done.returncode}: {done.stderr.decode()}'
        return
    told = json.loads(done.stdout)

    def ask(what, table, where='true'):
        return duckdb.sql(f"SELECT {what} FROM '{folder}/{table}/**/*.parquet' WHERE {where} GROUP BY ALL").fetchall()

    for name, parts in (('budget', "part IN ('setup', 'exchange')"), ('idle_budget', "part = 'gap'")):
        sums = 'cause, sum(duration_ns)::BIGINT'
        if told[name] != dict(ask(sums, 'spans', parts)):
            yield f'summarize: {name}: {told[name]}'
        rows = ask(f"server_ip || ' ' || server_port, {sums}", 'spans', f'{parts} AND NOT contains(server_ip, chr(58))')
        by_server = {s['server'].replace(':', ' '): s[name] for s in told['servers'] if '[' not in s['server']}
        if sorted(rows) != sorted((s, c, ns) for s, times in by_server.items() for c, ns in times.items()):
            yield f'summarize: {name} by server: {by_server}'
        rows = ask(f'day::VARCHAR, {sums}', 'spans', parts)
        by_day = sorted((d['day'], c, ns) for d in told['days'] for c, ns in d[name].items())
        if sorted(rows) != by_day:
            yield f'summarize: {name} by day: {by_day}'
        rows = dict(ask(sums, 'spans', f"{parts} AND day < '2020-01-01'"))
        if told['split']['before'][name] != rows:
            yield f'summarize: {name} before: {told["split"]["before"][name]}'
    if told['exchanges'] != sum(n for _, n in ask('capture, count(*)', 'exchanges')):
        yield f'summarize: {told["exchanges"]} exchanges'
    if told['captures'] != len(ask('capture', 'connections')):
        yield f'summarize: {told["captures"]} captures'
    times = sorted(
        row[0] for row in duckdb.sql(f"SELECT duration_ns FROM '{folder}/exchanges/**/*.parquet'").fetchall()
    )
    timed = [t for t in times if t > 0]
    for name, p in (('median_ns', 50), ('p95_ns', 95)):
        exact = timed[max(0, -(-p * len(timed) // 100) - 1)]
        if abs(told[name] - exact) > exact / 500:
            yield f'summarize: {name} {told[name]}, not {exact}'
    if [w['duration_ns'] for w in told['worst']] != sorted(times, reverse=True):
        yield 'summarize: the slowest are others'
    key = ('capture', 'connection', 'exchange')
    by_cause = ask('capture, connection, exchange, cause, sum(duration_ns)::BIGINT AS ns', 'spans', "part = 'exchange'")
    rows = {}
    for *of, _, ns in by_cause:
        rows[tuple(of)] = max(ns, rows.get(tuple(of), 0))
    if {tuple(w[k] for k in key): w['cause_ns'] for w in told['worst'] if w['cause']} != rows:
        yield 'summarize: most of the slowest is something else'


def expect(got, code, *words):
    """What is wrong with an exit code and what was said."""
    text = got[1] + got[2]
    missing = [w for w in words if w not in text]
    return (
        f'exit code {got[0]}, not {code}: {text}'
        if got[0] != code
        else f'{missing} not in: {text}'
        if missing
        else None
    )


def no_space(binary, work):
    """Sentences about a disk that is full before the tables are whole. The rest is done once there is room."""
    disk, inputs = os.path.join(work, 'disk'), os.path.join(work, 'much')
    os.mkdir(disk)
    os.mkdir(inputs)
    many(os.path.join(ROOT, 'captures'), inputs, 40)
    script = 'mount -t tmpfs -o size=64k none "$0" || exit 99; "$@"; echo "code $?"; '
    script += 'mount -o remount,size=64m "$0" && "$@"; echo "code $?"'
    command = ['unshare', '--map-root-user', '--mount', 'sh', '-c', script, disk]
    command += [binary, 'explain', inputs, '--parquet', os.path.join(disk, 'tables')]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300)
    text = done.stdout.decode() + done.stderr.decode()
    if done.returncode == 99 or 'unshare' in text:
        print(f'SKIP: a full disk: no file system can be mounted here: {text.strip()[:200]}')
        return
    for word in ('code 3', 'No space left on device', disk, 'put that right, and the same command goes on', 'code 0'):
        if word not in text:
            yield f'no space: {word!r} is not in: {text}'


def being_written(binary, work):
    """A sentence about a capture that grows while it is read: nothing of it may be kept, and the next run has all of it."""
    path, out = os.path.join(work, 'grows.pcap'), os.path.join(work, 'grows')
    with open(os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap'), 'rb') as f:
        data = f.read()
    # a second of work or so, and a packet that repeats the last of it
    head, packet = data[:24], data[24 : 24 + 16 + int.from_bytes(data[32:36], 'little')]
    for attempt in range(20):
        with open(path, 'wb') as f:
            f.write(head + data[24:] * (200 << min(attempt, 4)))
        with open(path, 'ab') as f:
            tables = f'{out}-{attempt}'
            child = subprocess.Popen(
                [binary, 'explain', path, '--parquet', tables],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            while child.poll() is None:
                f.write(packet)
                f.flush()
                time.sleep(0.001)
        said = child.stdout.read().decode() + child.stderr.read().decode()
        if 'still being written' not in said:
            continue
        if glob.glob(f'{tables}/*/*/*.parquet'):
            return f'a capture that grows left tables: {said}'
        return expect(run(binary, path, '--parquet', tables), 0, '1 capture in')
    return f'a capture that grows was never seen to: {said}'


def two_runs(binary, work):
    """A sentence about a second run into the same folder while a first has it."""
    out = os.path.join(work, 'two')
    os.mkdir(out)
    with open(os.path.join(out, '_manifest.jsonl'), 'a', encoding='utf8') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        got = run(binary, os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap'), '--parquet', out)
    return expect(got, 3, 'another run writes to it')


def bad_input(binary, work):
    """Sentences about what is not said or not done where inputs are bad."""
    smtp = os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap')
    mixed, out = os.path.join(work, 'mixed'), os.path.join(work, 'mixed.tables')
    os.mkdir(mixed)
    shutil.copy(smtp, os.path.join(mixed, 'a.pcap'))
    with open(smtp, 'rb') as f:
        data = f.read()
    with open(os.path.join(mixed, 'b.pcap'), 'wb') as f:
        f.write(data[: len(data) // 2])
    with open(os.path.join(mixed, 'notes.txt'), 'w', encoding='utf8') as f:
        f.write('not a capture\n')
    missing = os.path.join(work, 'missing.pcap')
    yield expect(
        run(binary, mixed, missing, '--parquet', out), 1, 'b.pcap', 'is cut', 'no such file', '1 are no captures'
    )
    rows = duckdb.sql(f"SELECT capture, count(*) FROM '{out}/exchanges/**/*.parquet' GROUP BY 1 ORDER BY 1").fetchall()
    if len(rows) != 2 or rows[0][1] != 32 or not 0 < rows[1][1] < 32:
        yield f'rows beside damage: {rows}'
    with open(os.path.join(mixed, 'b.pcap'), 'wb') as f:
        f.write(data)
    yield expect(run(binary, mixed, '--parquet', out), 1, 'has changed since', '1 were done before')
    empty = os.path.join(work, 'empty')
    os.mkdir(empty)
    yield expect(run(binary, empty, '--parquet', os.path.join(work, 'none')), 2, 'no file is in the folders')
    yield expect(run(binary, smtp, '--parquet', out, '--json'), 2, 'cannot be used with')
    foreign = os.path.join(work, 'foreign')
    os.makedirs(os.path.join(foreign, 'spans'))
    yield expect(run(binary, smtp, '--parquet', foreign), 2, 'holds spans and no _manifest.jsonl')
    old = os.path.join(work, 'old')
    os.mkdir(old)
    with open(os.path.join(old, '_manifest.jsonl'), 'w', encoding='utf8') as f:
        f.write('{"tool":"tcpwhy","tables":0}\n')
    yield expect(run(binary, smtp, '--parquet', old), 2, 'schema 0')

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    def summarize(*arguments):
        command = [binary, 'summarize', *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    page = os.path.join(work, 'page.html')
    yield expect(summarize(out, '--html', page, '--split', '2015-01-01'), 0, 'exchanges on 2 connections')
    with open(page, encoding='utf8') as f:
        text = f.read()
    wanted = ('in 2 captures', 'Nagle held a small write', '--connection 1 --exchange', 'and from then on', 'By server')
    if not text.startswith('<!doctype html>') or '<script' in text or not all(word in text for word in wanted):
        yield f'the page of summarize: {[word for word in wanted if word not in text]}'
    yield expect(summarize(out, '--html', page, '-o', page), 2, 'two outputs')
    yield expect(summarize(out, '--html', '-'), 2, 'name a file')
    yield expect(summarize(empty), 2, 'no tables are in it')
    yield expect(summarize(out, '--split', 'yesterday'), 2, 'such as 2026-11-22')
    day = glob.glob(os.path.join(out, 'spans', 'day=*'))[0]
    with open(os.path.join(day, 'other.parquet'), 'wb') as f:
        f.write(b'PAR1 and no table')
    yield expect(summarize(out), 1, 'other.parquet', 'exchanges on 2 connections in 2 captures')
    pyarrow.parquet.write_table(pyarrow.table({'start': [1]}), os.path.join(day, 'other.parquet'))
    yield expect(summarize(out), 1, 'other.parquet', 'not written by tcpwhy')
    os.remove(os.path.join(day, 'other.parquet'))
    older = pyarrow.table({'start': [1]}).replace_schema_metadata({'tcpwhy.schema': '0', 'tcpwhy.table': 'spans'})
    pyarrow.parquet.write_table(older, os.path.join(day, 'older.parquet'))
    yield expect(summarize(out), 1, 'older.parquet', 'schema 0', 'exchanges on 2 connections in 2 captures')
    full = os.path.join(work, 'full')
    yield expect(run(binary, smtp, '--parquet', full, preexec_fn=small_files), 3, 'File too large')
    if glob.glob(os.path.join(full, '*/*/*.parquet')):
        yield 'a file was named that is not whole'
    yield expect(run(binary, smtp, '--parquet', full), 0, '32 exchanges')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    binary = os.path.abspath(parser.parse_args().bin)
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        paths, folder = captures(), os.path.join(work, 'tables')
        code, said, errors = run(binary, *paths, '--parquet', folder)
        if code not in (0, 1) or not said:
            wrong.append(f'exit code {code}: {said}{errors}')
        wrong += [*same_as_json(binary, folder, paths), *engines_agree(folder), *well_made(folder)]
        wrong += summary(binary, folder)
        faults = (ended_by_force(binary, work), being_written(binary, work), two_runs(binary, work))
        wrong += [w for w in (*faults, *bad_input(binary, work), *no_space(binary, work)) if w]
        with open(os.path.join(folder, '_manifest.jsonl'), encoding='utf8') as f:
            lines = [json.loads(line) for line in f]
        files = sum(len(line['files']) for line in lines[1:])
        if files != len(glob.glob(os.path.join(folder, '*/*/*.parquet'))):
            wrong.append('the manifest names other files than there are')
    print('\n'.join(wrong))
    print(f'{len(paths)} captures, {files} files, {len(wrong)} wrong')
    return 1 if wrong else 0


if __name__ == '__main__':
    common.leave(main())
