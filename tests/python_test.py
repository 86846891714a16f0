#!/usr/bin/env python3
"""The Python package, beside the program: `scripts/python.py test` builds the wheel, installs it and runs this.

tests/python_test.py [--bin PATH] [--quick]      --quick: without what takes time or measures it
"""

import argparse
import ast
import collections
import contextlib
import glob
import importlib.metadata
import inspect
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402
import duckdb  # noqa: E402
import pandas  # noqa: E402
import polars  # noqa: E402
import pyarrow  # noqa: E402
import tcpwhy  # noqa: E402

SMTP = os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap')
OTHER = os.path.join(ROOT, 'captures', 'loopback_write_write_read.pcap')
# what a thousand calls may leave, in KiB: pages that the allocator keeps
LEFT = 8 << 10
# of a capture that takes a second or two
PACKETS = 1_000_000
BINARY = common.BINARY


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        assert type(error) is kind, f'{type(error)}: {error}'
        assert all(w in str(error) for w in words), f'{words} not in: {error}'
        return
    raise AssertionError(f'no {kind.__name__}')


def same_as_the_program():
    """Sums of spans by connection and cause are those of the JSON, on every bundled capture."""
    for path in sorted(glob.glob(os.path.join(ROOT, 'captures', '*.pcap*'))):
        document, code = common.explain(BINARY, path, '--exchanges', 'all')
        if code == 3:
            continue
        expected = collections.Counter()
        for c in document['connections']:
            for name in ('budget', 'gap_budget'):
                expected.update({(c['id'], cause): ns for cause, ns in c[name].items()})
        result = tcpwhy.explain(path)
        table = pyarrow.table(result.spans)
        rows = zip(*(table[name].to_pylist() for name in ('connection', 'cause', 'duration_ns')), strict=True)
        mine = collections.Counter()
        for connection, cause, ns in rows:
            mine[connection, cause] += ns
        assert +mine == +expected, f'{path}: {mine} {expected}'
        assert len(result.connections) == len(document['connections']), path
        assert result.packets == document['capture']['packets'], path


def engines():
    """pandas, Polars, DuckDB and pyarrow take the tables."""
    result = tcpwhy.explain(SMTP)
    exchanges, spans = result.exchanges, result.spans
    # before its version 3 pandas takes nothing by itself
    taken = getattr(pandas.DataFrame, 'from_arrow', lambda table: pyarrow.table(table).to_pandas())
    frame = taken(spans)
    by_pandas = frame.groupby('cause', observed=True)['duration_ns'].sum().to_dict()
    frame = polars.DataFrame(spans)
    by_polars = dict(frame.group_by('cause').agg(polars.col('duration_ns').sum()).iter_rows())
    by_duckdb = dict(duckdb.sql('SELECT cause, sum(duration_ns)::BIGINT FROM spans GROUP BY 1').fetchall())
    assert by_pandas == by_polars == by_duckdb and by_pandas['nagle_delayed_ack'] > 10**9, (
        by_pandas,
        by_polars,
        by_duckdb,
    )
    assert len(exchanges) == 32 == pyarrow.table(exchanges).num_rows == polars.DataFrame(exchanges).height
    schema = pyarrow.table(spans).schema
    assert schema.field('start').type == pyarrow.timestamp('ns', 'UTC'), schema
    assert pyarrow.types.is_dictionary(schema.field('cause').type), schema
    # the same table, once more, and after what it came from has gone
    del result
    assert pyarrow.table(spans).equals(pyarrow.table(spans))


def sources():
    """Paths, bytes, lists; and what is neither."""
    whole = pyarrow.table(tcpwhy.explain(SMTP).spans).drop(['capture'])
    with open(SMTP, 'rb') as f:
        data = f.read()
    for source in (pathlib.Path(SMTP), data, bytearray(data)):
        assert pyarrow.table(tcpwhy.explain(source).spans).drop(['capture']).equals(whole)
    several = tcpwhy.explain([SMTP, os.path.join(ROOT, 'missing.pcap'), OTHER, data[: len(data) // 2]], threads=2)
    assert [name for name, _ in several.problems] == ['bytes', os.path.join(ROOT, 'missing.pcap')], several.problems
    assert set(pyarrow.table(several.connections)['capture'].to_pylist()) == {SMTP, OTHER, 'bytes'}
    assert len(tcpwhy.explain(SMTP, filter='port 1').connections) == 0
    raises(FileNotFoundError, lambda: tcpwhy.explain('missing.pcap'), 'missing.pcap')
    raises(IsADirectoryError, lambda: tcpwhy.explain(ROOT))
    raises(tcpwhy.CaptureError, lambda: tcpwhy.explain(b'some text that is no capture'), 'it is text')
    raises(tcpwhy.CaptureError, lambda: tcpwhy.explain(b''))
    raises(TypeError, lambda: tcpwhy.explain(42), 'path, bytes', 'int')
    raises(ValueError, lambda: tcpwhy.explain([]))
    for threads in (-1, 1 << 70):
        raises(ValueError, lambda n=threads: tcpwhy.explain([SMTP], threads=n), 'threads is', str(threads))
    raises(TypeError, lambda: tcpwhy.explain([SMTP], threads='two'))
    raises(ValueError, lambda: tcpwhy.explain(SMTP, filter='port of call'))
    assert issubclass(tcpwhy.CaptureError, tcpwhy.TcpwhyError)


def pages():
    result = tcpwhy.explain(SMTP)
    page = result.to_html()
    assert page.startswith('<!') and 'zeek__smtp_bdat.pcap' in page and 'nagle_delayed_ack' in page
    assert result._repr_html_().startswith('<iframe srcdoc="')
    several = tcpwhy.explain([SMTP, OTHER])
    raises(ValueError, several.to_html, 'one capture')
    assert several._repr_html_().startswith('<pre>')


def of_program(*arguments):
    done = subprocess.run([BINARY, *arguments], capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return json.loads(done.stdout)


def other_functions():
    """compare and predict say what the program says."""
    assert tcpwhy.compare(SMTP, SMTP) == of_program('compare', SMTP, SMTP, '--json')
    raises(tcpwhy.TcpwhyError, lambda: tcpwhy.compare(SMTP, OTHER), 'share no server')
    for keywords, arguments in (
        ({'rtt': 0.08, 'response': 30_000}, '--rtt 80ms --response 30000B'),
        (
            {'rtt': 0.02, 'request': 16_000, 'response': 10**6, 'bandwidth': 10**8, 'server_time': 0.1},
            '--rtt 20ms --request 16000B --response 1000000B --bandwidth 100mbit --server-time 100ms',
        ),
        (
            {'rtt': 0.04, 'request': [4, 2048], 'response': [4, 256], 'requests': 5, 'nodelay': 'none'},
            '--rtt 40ms --writes 4,2048 --response-writes 4,256 --requests 5',
        ),
    ):
        mine, theirs = tcpwhy.predict(**keywords), of_program('predict', *arguments.split(), '--json')
        assert mine['total_ns'] == theirs['total_ns'] and mine['complete'], (keywords, mine, theirs['total_ns'])
    raises(ValueError, lambda: tcpwhy.predict(-1, response=1))
    raises(ValueError, lambda: tcpwhy.predict(0.1, response=1, nodelay='perhaps'))


def other_threads_go_on():
    """While a call works, another thread of Python does."""
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    other = threading.Thread(target=count)
    other.start()
    before = counted[0]
    tcpwhy.explain([SMTP] * 2000, threads=1)
    during = counted[0] - before
    done.set()
    other.join()
    assert during > 1000, during


def an_interrupt_ends_it():
    """KeyboardInterrupt, raised from within a call that would take long; the next call works."""
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    raises(KeyboardInterrupt, lambda: [tcpwhy.explain([SMTP] * 5000, threads=1) for _ in range(1000)])
    assert len(tcpwhy.explain(SMTP).exchanges) == 32


def resident():
    with open('/proc/self/status', encoding='utf8') as f:
        return int(next(line for line in f if line.startswith('VmRSS')).split()[1])


def nothing_leaks():
    """A thousand calls after two hundred to warm up."""
    with open(SMTP, 'rb') as f:
        data = f.read()

    def calls(n):
        for _ in range(n):
            result = tcpwhy.explain(data)
            pyarrow.table(result.spans)
            with contextlib.suppress(tcpwhy.CaptureError):
                tcpwhy.explain(b'nothing')

    calls(200)
    before = resident()
    calls(1000)
    grown = resident() - before
    assert grown < LEFT, f'{grown} KiB more after 1,000 calls'


def flows(folder, packets):
    path = os.path.join(folder, 'flows.pcap')
    command = [common.generator(), 'flows', str(packets), str(packets // 2000), path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def no_slower_than_the_program():
    """CPU time for tables in memory, beside the program that writes them to files: the least of three, at most 5 % more."""
    with tempfile.TemporaryDirectory() as folder:
        path = flows(folder, PACKETS)
        mine, theirs = [], []
        for n in range(3):
            before = time.process_time()
            tcpwhy.explain(path, threads=1)
            mine.append(time.process_time() - before)
            before = os.times()
            command = [BINARY, 'explain', path, '--parquet', os.path.join(folder, str(n)), '--quiet']
            subprocess.run(command, check=True)
            after = os.times()
            theirs.append(after.children_user + after.children_system - before.children_user - before.children_system)
        size = os.path.getsize(path) >> 20
        print(f'{size} MiB: {min(mine):.2f} s of CPU in Python, {min(theirs):.2f} s by the program')
        assert min(mine) <= 1.05 * min(theirs), (mine, theirs)


def two_files_in_two_threads():
    """They take at most 1.2 times as long as one, unless the machine had something else to do: then nothing is said."""
    with tempfile.TemporaryDirectory() as folder:
        path = flows(folder, PACKETS)
        said = []
        for _ in range(3):
            began, cpu = time.monotonic(), time.process_time()
            tcpwhy.explain(path, threads=1)
            one, busy = time.monotonic() - began, time.process_time() - cpu
            both = [threading.Thread(target=lambda: tcpwhy.explain(path, threads=1)) for _ in range(2)]
            began, cpu = time.monotonic(), time.process_time()
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
            two, busy_too = time.monotonic() - began, time.process_time() - cpu
            disturbed = busy < 0.9 * one or busy_too < 1.6 * two
            said.append((round(two / one, 2), disturbed))
            if two <= 1.2 * one:
                print(f'two files in two threads: {two / one:.2f} times one')
                return
        if (os.cpu_count() or 1) < 2 or any(disturbed for _, disturbed in said):
            print(f'SKIP: two files in two threads: the machine is disturbed or has one core: {said}')
            return
        raise AssertionError(said)


def notices():
    """The wheel has the licences, its own and those of what is in it."""
    files = importlib.metadata.files('tcpwhy')
    names = {file.name for file in files}
    assert {'LICENSE-MIT', 'LICENSE-APACHE', 'THIRD-PARTY.txt'} <= names, names
    text = next(file for file in files if file.name == 'THIRD-PARTY.txt').read_text()
    assert 'pyo3' in text and 'arrow-array' in text


def open_files_and_parts():
    """An open file gives what its path gives, a broken one its error; parts are the whole."""
    with open(SMTP, 'rb') as f:
        result = tcpwhy.explain(f)
    assert len(result.exchanges) == 32
    raises(tcpwhy.TcpwhyError, result.to_html, 'can be read once')
    with open(SMTP, encoding='latin-1') as f:
        raises(tcpwhy.TcpwhyError, lambda: tcpwhy.explain(f), 'binary mode')
    path = os.path.join(ROOT, 'captures', 'PcapPlusPlus__pcapng-example.pcapng')
    whole = sorted(pyarrow.table(tcpwhy.explain(path).connections)['duration_ns'].to_pylist())
    parts = [pyarrow.table(tcpwhy.explain(path, part=(k, 3)).connections) for k in range(3)]
    both = pyarrow.concat_tables([part.select(['duration_ns', 'connection']) for part in parts])
    assert sorted(both['duration_ns'].to_pylist()) == whole
    assert len(set(both['connection'].to_pylist())) == len(whole) > 10
    for part in ((3, 3), (-1, 2), (0, -2), (0, 1 << 70)):
        raises(ValueError, lambda of=part: tcpwhy.explain(path, part=of), 'below n', str(part))
    raises(TypeError, lambda: tcpwhy.explain(path, part=('one', 2)))


def stubs():
    """The stub names what there is, with the same parameters, and all has a docstring."""
    with open(os.path.join(ROOT, 'python', 'tcpwhy', '_tcpwhy.pyi'), encoding='utf8') as f:
        tree = ast.parse(f.read())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            real = inspect.signature(getattr(tcpwhy, node.name))
            assert [a.arg for a in node.args.args + node.args.kwonlyargs] == list(real.parameters), node.name
            assert getattr(tcpwhy, node.name).__doc__, node.name
        if isinstance(node, ast.ClassDef) and node.name in ('Table', 'Result'):
            said = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
            there = {n for n in vars(getattr(tcpwhy, node.name)) if not n.startswith('__')}
            assert there <= said, (node.name, there - said)
    assert set(tcpwhy.__all__) <= set(dir(tcpwhy))


TESTS = (
    same_as_the_program,
    engines,
    sources,
    pages,
    other_functions,
    other_threads_go_on,
    an_interrupt_ends_it,
    nothing_leaks,
    no_slower_than_the_program,
    two_files_in_two_threads,
    notices,
    open_files_and_parts,
    stubs,
)
# what measures time or memory, or takes long
LONG = (nothing_leaks, no_slower_than_the_program, two_files_in_two_threads)


def main():
    global BINARY
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    BINARY = os.path.abspath(args.bin)
    failed = 0
    tests = [test for test in TESTS if not (args.quick and test in LONG)]
    for test in tests:
        try:
            test()
        except AssertionError as error:
            failed += 1
            print(f'FAIL {test.__name__}: {str(error)[:600]}')
    print(f'Python {sys.version.split()[0]}: {len(tests) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
