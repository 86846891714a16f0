#!/usr/bin/env python3
"""What `explain` says of bare captures of real programs, beside what the kernel says of the same runs.

    scripts/accuracy_programs.py --bin PATH [--rtt 20ms] [--only TEXT] [--write]

Each program runs unmodified in a network of its own (`tcpwhy run`), near and at a distance, with `tcpwhy record` beside it. Its
file is explained twice: as it is, which gives the labels, and without what the kernel said, which is a bare capture of the same
packets. Compared are the parts of the time of requests that the labels have from the kernel, and what the largest causes are;
what the labels only infer proves nothing and is not counted. --write puts the table into docs/accuracy.md. Root; programs
that are missing are named and left out.
"""

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import common
import forecast

PAGE = os.path.join(common.ROOT, 'docs', 'accuracy.md')
BEGIN, END = '<!-- programs:begin -->\n', '<!-- programs:end -->\n'
# block type of what a kernel said (docs/record.md)
EVENT = 0x80000BAD
# shorter differences are the hosts'
LEAST_NS = 1_000_000

# An upstream that takes its time, and writes its answer in two pieces.
SLOW = """
import http.server, time
class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        time.sleep(0.08)
        self.send_response(200)
        self.send_header('Content-Length', '4000')
        self.end_headers()
        self.wfile.write(b'x' * 1000)
        time.sleep(0.02)
        self.wfile.write(b'x' * 3000)
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8080), Slow).serve_forever()
"""

HAPROXY_SLOW = (
    'HAProxy before a slow upstream',
    'haproxy curl python3',
    '/usr/bin/python3 slow.py & up 8080; haproxy -f haproxy.cfg & up 8000; '
    'curl -s -o /dev/null "http://127.0.0.1:8000/?[1-12]"',
)
# of the programs that the forecast is measured on
CHOSEN = (
    'curl: 30 files, one connection',
    'curl: 8 times by TLS',
    'curl: 5 MB',
    'ab: four kept connections',
    'redis-benchmark: one client',
    'redis-benchmark: pipelined',
    'mariadb: 20 statements',
    'pgbench: 10 transactions',
    'psql: 2 MB of rows',
    'Python: bodies of 100 KB',
    'Go: net/rpc',
    'Java: java.net.http',
)
ROWS = [row for row in forecast.ROWS if row[0] in CHOSEN] + [HAPROXY_SLOW]


def bare(path, to):
    """A copy without what the kernel said."""
    with open(path, 'rb') as f:
        data = f.read()
    at = 0
    with open(to, 'wb') as f:
        while at + 12 <= len(data):
            kind, length = struct.unpack_from('<II', data, at)
            if kind != EVENT:
                f.write(data[at : at + length])
            at += length


def spans(document):
    """(connection, cause, from, to, whether the kernel says so) of setups and exchanges."""
    for c in document['connections']:
        for part in ([c['setup']] if c['setup'] else []) + c['exchanges']:
            for s in part['spans']:
                yield c['id'], s['cause'], s['start_ns'], s['end_ns'], s['source'] == 'kernel'


class Row:
    """One run: what the kernel told, and how much of it the bare capture says as well."""

    def __init__(self, told, alone):
        self.connections = len(told['connections'])
        self.requests = sum(len(c['exchanges']) for c in told['connections'])
        same = {
            (c['id'], x['start_ns'] // LEAST_NS, x['end_ns'] // LEAST_NS)
            for c in alone['connections']
            for x in c['exchanges']
        }
        # of a rounded edge either side is the same
        near = lambda c, x: any(  # noqa: E731
            (c['id'], x['start_ns'] // LEAST_NS + a, x['end_ns'] // LEAST_NS + b) in same
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
        )
        self.same_requests = sum(near(c, x) for c in told['connections'] for x in c['exchanges'])
        by_connection = {}
        for c, cause, start, end, _ in spans(alone):
            by_connection.setdefault(c, []).append((start, end, cause))
        self.total = self.kernel = self.agreed = 0
        self.missed = {}
        for c, cause, start, end, kernel in spans(told):
            self.total += end - start
            if not kernel:
                continue
            self.kernel += end - start
            for a, b, said in by_connection.get(c, []):
                both = min(b, end) - max(a, start)
                if both <= 0:
                    continue
                if said == cause:
                    self.agreed += both
                else:
                    self.missed[cause, said] = self.missed.get((cause, said), 0) + both
        self.largest = [self.most(told), self.most(alone)]

    @staticmethod
    def most(document):
        """The cause with the most time that is not the price of the distance."""
        times = {}
        for _, cause, start, end, _ in spans(document):
            if cause not in common.INHERENT:
                times[cause] = times.get(cause, 0) + end - start
        time, cause = max(((t, c) for c, t in times.items()), default=(0, '-'))
        return cause if time > LEAST_NS else '-'

    def cells(self, name):
        share = lambda part, whole: f'{100 * part / whole:.0f} %' if whole else '-'  # noqa: E731
        told, alone = self.largest
        missed = max(((t, k) for k, t in self.missed.items()), default=None)
        worst = (
            f'{missed[1][0]} as {missed[1][1]}, {missed[0] / 1e6:.1f} ms' if missed and missed[0] >= LEAST_NS else ''
        )
        return (
            f'| {name} | {self.same_requests} of {self.requests} | {self.total / 1e6:.0f} | {share(self.kernel, self.total)} | '
            f'{share(self.agreed, self.kernel)} | {told} | {"same" if told == alone else alone} | {worst} |'
        )


def one(binary, folder, commands, rtt):
    """The file of one run in a fresh copy of the folder, and its copy without what the kernel said."""
    work = tempfile.mkdtemp(dir=os.path.dirname(folder))
    subprocess.run(['cp', '-a', f'{folder}/.', work], check=True)
    # The program runs without privileges; what records it does not.
    inner = ['setpriv', f'--reuid={forecast.NOBODY}', f'--regid={forecast.NOBODY}', '--clear-groups']
    inner += ['bash', '-c', forecast.PRELUDE + commands]
    record = [binary, 'record', '-o', 'told.pcapng', '--', *inner]
    command = [binary, 'run', '--quiet', *(['--rtt', rtt] if rtt else []), '--', *record]
    done = subprocess.run(
        command,
        cwd=work,
        env=forecast.home(work),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=180,
        check=False,
    )
    told, alone = (os.path.join(work, name) for name in ('told.pcapng', 'bare.pcapng'))
    if done.returncode or not os.path.exists(told):
        raise common.Failed(f'{done.returncode}: {done.stderr.decode("utf8", "replace")[-300:]}')
    without = re.search(rb'without .*kernel events.*', done.stderr)
    if without:
        raise common.Failed(without[0].decode('utf8', 'replace'))
    bare(told, alone)
    documents = [common.explain(binary, path, '--exchanges', 'all')[0] for path in (told, alone)]
    shutil.rmtree(work)
    return Row(*documents)


HEADING = (
    '| program | requests alike | time, ms | of it by the kernel | of that alike | largest cause, by the record '
    '| by the bare capture | most that differs |\n|---|---|---|---|---|---|---|---|'
)


def table(args):
    """The lines of the table, and what could not be run."""
    lines, missing, sums = [], [], [0, 0, 0, 0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, binary = os.path.join(top, 'all'), os.path.join(top, 'tcpwhy')
        os.makedirs(folder)
        shutil.copy(args.bin, binary)
        forecast.prepare(folder)
        with open(os.path.join(folder, 'slow.py'), 'w', encoding='utf8') as f:
            f.write(SLOW)
        for name, needs, commands in ROWS:
            if args.only not in name:
                continue
            lacking = [n for n in needs.split() if not shutil.which(n)]
            if lacking:
                missing.append(f'{name} ({", ".join(lacking)})')
                continue
            for rtt in ('', args.rtt):
                called = f'{name}, {rtt} away' if rtt else name
                try:
                    row = one(binary, folder, commands, rtt)
                except (common.Failed, subprocess.TimeoutExpired) as e:
                    missing.append(f'{called}: {e}')
                    continue
                print(row.cells(called), flush=True)
                lines.append(row.cells(called))
                same = row.largest[0] == row.largest[1]
                for i, n in enumerate((1, same, row.requests, row.same_requests, row.total, row.kernel, row.agreed)):
                    sums[i] += n
    return lines, missing, sums


def write(lines, words):
    with open(PAGE, encoding='utf8') as f:
        page = f.read()
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    with open(PAGE, 'w', encoding='utf8') as f:
        f.write('\n'.join((head + BEGIN + HEADING, *lines, '', words)) + '\n' + END + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--rtt', default='20ms', help='of the runs at a distance')
    parser.add_argument('--only', default='', help='programs with this in their names')
    parser.add_argument('--write', action='store_true', help='the table into docs/accuracy.md')
    args = parser.parse_args()
    if os.geteuid() != 0:
        print('SKIP: root is needed for kernel events')
        return 0
    print(HEADING)
    lines, missing, (runs, same, requests, alike, total, kernel, agreed) = table(args)
    for what in missing:
        print(re.sub(r'\s+', ' ', f'not compared: {what}'))
    if not lines:
        return 1
    told, same_told = 100 * kernel / total, 100 * agreed / max(kernel, 1)
    words = (
        f'{same} of {runs} runs have the same largest cause; {alike} of {requests} requests begin and end alike. '
        f'The kernel tells {told:.0f} % of their time; of that the bare capture says {same_told:.0f} % alike.'
    )
    print(words)
    if args.write:
        write(lines, words)
    return 0


if __name__ == '__main__':
    sys.exit(main())
