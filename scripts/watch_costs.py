#!/usr/bin/env python3
"""What `tcpwhy watch` costs: a web server with and without it, pair by pair; the kernel's own statistics of its programs; how
long attaching takes, listing many sockets, and whether anything stays behind after kill -9.

    scripts/watch_costs.py --bin PATH [--pairs 30] [--write]   as root; nginx and wrk; some minutes
    scripts/watch_costs.py --bin PATH --left-behind            only the last of these, which asks for no quiet machine

--write puts the table into docs/watch.md.
"""

import argparse
import ctypes
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import common

BEGIN, END = '<!-- costs:begin -->', '<!-- costs:end -->'
STATS = '/proc/sys/kernel/bpf_stats_enabled'
BPF, PROG_GET_NEXT_ID, BTF_GET_NEXT_ID = 321, 11, 23
SOCKETS = 100_000
PATIENCE = 60
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{body}"; }} }} }}
"""
ECHO = """
import socket, sys, threading, time
l = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(l.getsockname()); s = l.accept()[0]
for x in (c, s): x.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def serve():
    while data := s.recv(64): s.sendall(data)
threading.Thread(target=serve, daemon=True).start()
end, n = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    c.sendall(b'x' * 64); c.recv(64, socket.MSG_WAITALL); n += 1
print(n / float(sys.argv[1]))
"""
# pairs of connections over addresses of loopback: one address has 28,000 ports
MANY = """
import socket, sys
kept, n = [], 0
while n < int(sys.argv[1]) // 2:
    l = socket.create_server((f'127.0.1.{1 + len(kept) % 250}', 0), backlog=4096)
    to = l.getsockname()
    kept.append(l)
    for _ in range(20000):
        if n >= int(sys.argv[1]) // 2: break
        kept += [socket.create_connection(to), l.accept()[0]]; n += 1
print('ready', flush=True)
sys.stdin.readline()
"""


def programs():
    """Numbers of all BPF programs of this machine."""
    libc = ctypes.CDLL(None, use_errno=True)
    found, last = set(), 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack('=III', last, 0, 0), 128)
        if libc.syscall(BPF, PROG_GET_NEXT_ID, attr, 128) != 0:
            return found
        last = struct.unpack_from('=I', attr.raw, 4)[0]
        found.add(last)


def run_statistics(pid):
    """Nanoseconds in, and runs of, the BPF programs that a process holds."""
    nanos = runs = 0
    for fd in os.listdir(f'/proc/{pid}/fdinfo'):
        try:
            with open(f'/proc/{pid}/fdinfo/{fd}', encoding='ascii') as f:
                text = f.read()
        except OSError:
            continue
        if found := re.search(r'run_time_ns:\s*(\d+)\nrun_cnt:\s*(\d+)', text):
            nanos, runs = nanos + int(found[1]), runs + int(found[2])
    return nanos, runs


def processor_time(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        words = f.read().rpartition(')')[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')


def memory(pid):
    with open(f'/proc/{pid}/statm', encoding='ascii') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGESIZE')


class Watch:
    """`tcpwhy watch` beside, once it looks; nothing of it afterwards."""

    def __init__(self, binary, *options):
        command = [binary, 'watch', '--jsonl', *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.pid, end = self.process.pid, time.monotonic() + PATIENCE
        # the socket to the kernel comes after the kernel events
        while not any(link.startswith('socket:') for link in self.links()):
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit('watch does not begin')
            time.sleep(0.005)

    def links(self):
        try:
            return [os.readlink(f'/proc/{self.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{self.pid}/fd')]
        except OSError:
            return []

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


def left_behind(binary):
    """kill -9 while it watches: the kernel lets go of all of its programs. What was there before stays."""
    before = programs()
    watch = Watch(binary)
    own = programs() - before
    watch.end()
    end = time.monotonic() + PATIENCE
    while own & programs() and time.monotonic() < end:
        time.sleep(0.1)
    left = own & programs()
    if not own:
        print('kernel events cannot be had here')
        return None
    if left:
        sys.exit(f'{len(left)} of {len(own)} programs are still there {PATIENCE} s after kill -9')
    print(f'{len(own)} programs were attached, none is left after kill -9')
    return len(own)


def interval(values):
    """Mean and half of a 95 % interval of it."""
    if len(values) < 2:
        return values[0], float('inf')
    return statistics.mean(values), 1.96 * statistics.stdev(values) / len(values) ** 0.5


def said(values, aim):
    """A paired difference in percent against its aim."""
    mean, half = interval(values)
    if mean + half <= aim:
        verdict = f'within {aim} %'
    elif mean - half > aim:
        verdict = f'**more than {aim} %**'
    else:
        verdict = f'undecided (aim {aim} %)'
    return f'{mean:+.1f} % ± {half:.1f}: {verdict}'


def wrk(port):
    """Requests a second, 99th percentile in ms, and requests of two seconds."""
    command = ['wrk', '-t1', '-c8', '-d2s', '--latency', f'http://127.0.0.1:{port}/']
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r'Requests/sec:\s*([\d.]+)', text)[1])
    number, unit = re.search(r'99%\s+([\d.]+)(us|ms|s)', text).groups()
    requests = int(re.search(r'(\d+) requests in', text)[1])
    return rate, float(number) * {'us': 1e-3, 'ms': 1, 's': 1e3}[unit], requests


def web(binary, pairs):
    """nginx and wrk over loopback: rows of the table."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
        s.close()
        with open(f'{folder}/nginx.conf', 'w', encoding='utf8') as f:
            f.write(NGINX.format(folder=folder, port=port, body='x' * 512))
        nginx = subprocess.Popen(['nginx', '-c', f'{folder}/nginx.conf', '-p', folder], stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + PATIENCE
            while socket.socket().connect_ex(('127.0.0.1', port)) != 0:
                if time.monotonic() > end:
                    sys.exit('nginx does not listen')
                time.sleep(0.05)
            wrk(port)
            out = []
            for name, options in (('with kernel events', ()), ('with `--sampled`', ('--sampled',))):
                rate, late = [], []
                for _ in range(pairs):
                    measured = {}
                    for beside in random.sample((False, True), 2):
                        watch = Watch(binary, *options) if beside else None
                        measured[beside] = wrk(port)
                        if watch:
                            watch.end()
                    rate.append(100 * (1 - measured[True][0] / measured[False][0]))
                    late.append(100 * (measured[True][1] / measured[False][1] - 1))
                out.append(
                    f'| nginx and wrk over loopback, {name}: requests/s lost ({pairs} pairs) | {said(rate, 1)} |'
                )
                out.append(f'| the same: 99th percentile | {said(late, 3)} |')
            return [*out, *of_programs(binary, nginx.pid, port)]
        finally:
            nginx.kill()
            nginx.wait()


def of_programs(binary, server, port):
    """The kernel's statistics of the programs, for each request; they are off else, as they cost something themselves."""
    with open(STATS, 'r+', encoding='ascii') as f:
        f.write('1')
    try:
        watch = Watch(binary)
        before, used = run_statistics(watch.pid), processor_time(server)
        first = memory(watch.pid)
        requests = sum(wrk(port)[2] for _ in range(5))
        after, last = run_statistics(watch.pid), memory(watch.pid)
        nanos, runs, of = after[0] - before[0], after[1] - before[1], processor_time(server) - used
        watch.end()
    finally:
        with open(STATS, 'r+', encoding='ascii') as f:
            f.write('0')
    each, own = nanos / requests, of / requests * 1e9
    return [
        f'| BPF time of one request (client and server on this host; {runs / requests:.1f} runs of {nanos / runs:.0f} ns) | '
        f'{each / 1000:.2f} µs, {100 * each / own:.1f} % of the {own / 1000:.0f} µs that nginx alone takes for it |',
        f'| memory, before and after {requests:,} requests | {first / 1e6:.1f} and {last / 1e6:.1f} MB |',
    ]


def echo(binary, pairs):
    def rate():
        done = subprocess.run([sys.executable, '-c', ECHO, '2'], capture_output=True, text=True, check=True)
        return float(done.stdout)

    lost = []
    for _ in range(pairs):
        measured = {}
        for beside in random.sample((False, True), 2):
            watch = Watch(binary) if beside else None
            measured[beside] = rate()
            if watch:
                watch.end()
        lost.append(100 * (1 - measured[True] / measured[False]))
    mean, half = interval(lost)
    return [
        f'| echo of 64 bytes over loopback (Python): round trips/s lost ({pairs} pairs) | {mean:+.1f} % ± {half:.1f} |'
    ]


def attaching(binary):
    """Wall time until it looks, with and without kernel events, in turns."""
    times = {True: [], False: []}
    for _ in range(10):
        for events in times:
            began = time.monotonic()
            Watch(binary, *([] if events else ['--sampled'])).end()
            times[events].append(time.monotonic() - began)
    both = {events: statistics.median(of) for events, of in times.items()}
    return [f'| until it looks (median of 10) | {both[True]:.2f} s with kernel events, {both[False]:.2f} s without |']


def many_sockets(binary):
    """Processor time of one list of very many sockets, in a network namespace of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = SOCKETS + 1000
    if hard != resource.RLIM_INFINITY and hard < need:
        return [f'| {SOCKETS:,} sockets | not measured: this machine lets a process open {hard:,} files |']
    resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
    start = ['unshare', '--net', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh']
    many = subprocess.Popen(
        [*start, sys.executable, '-c', MANY, str(SOCKETS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        if many.stdout.readline() != b'ready\n':
            return [f'| {SOCKETS:,} sockets | not measured: they could not be opened |']
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            binary,
            'watch',
            '--once',
            '--json',
            '--sampled',
            '--interval',
            '10s',
            '--netns',
            f'/proc/{many.pid}/ns/net',
        ]
        done = subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        document = json.loads(done.stdout)
        spent = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        looks = document['samples']
        return [
            f'| {len(document["connections"]):,} connections, for 10 s | {spent:.2f} s of processor time, {looks} looks, the '
            f'answer and its JSON ({len(done.stdout) / 1e6:.0f} MB) included; {spent / looks:.2f} s for each look at most |'
        ]
    finally:
        many.kill()
        many.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--pairs', type=int, default=30)
    parser.add_argument('--left-behind', action='store_true')
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    binary = os.path.abspath(args.bin)
    if os.geteuid() != 0:
        print('kernel events need root')
        return 75
    count = left_behind(binary)
    if args.left_behind or count is None:
        return 0 if count else 75
    for tool in ('nginx', 'wrk'):
        if not shutil.which(tool):
            print(f'{tool} is not installed')
            return 75
    rows = [*attaching(binary), *many_sockets(binary), *web(binary, args.pairs), *echo(binary, max(args.pairs // 3, 2))]
    rows.append(f'| after `kill -9` | none of {count} programs is left |')
    text = '\n'.join(['| | |', '|---|---|', *rows])
    print(text)
    if args.write:
        path = os.path.join(common.ROOT, 'docs', 'watch.md')
        with open(path, encoding='utf8') as f:
            old = f.read()
        with open(path, 'w', encoding='utf8') as f:
            f.write(re.sub(f'{BEGIN}.*{END}', lambda _: f'{BEGIN}\n{text}\n{END}', old, flags=re.DOTALL))
    return 0


if __name__ == '__main__':
    sys.exit(main())
