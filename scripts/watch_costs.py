#!/usr/bin/env python3
"""What `tcpwhy watch` costs: a web server beside nothing, `watch` and `tcpdump -w`, in turns; the kernel's own statistics of its
programs; how long attaching takes, listing many sockets, and whether anything stays behind after kill -9.

    scripts/watch_costs.py --bin PATH [--pairs 30] [--write]   as root; nginx, wrk, tcpdump and openssl; half an hour
    scripts/watch_costs.py --bin PATH --site loopback|link|tls the rows of one site (loopback, 30 pairs: nine minutes)
    scripts/watch_costs.py --bin PATH --minutes 10             memory at full rate, for so long (make watch-memory)
    scripts/watch_costs.py --bin PATH --left-behind            only the last of these, which asks for no quiet machine

--write puts the table into docs/watch.md.
"""

import argparse
import ctypes
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import common
import web_site

BEGIN, END = '<!-- costs:begin -->', '<!-- costs:end -->'
STATS = '/proc/sys/kernel/bpf_stats_enabled'
BPF, PROG_LOAD, PROG_GET_NEXT_ID, RAW_TRACEPOINT_OPEN = 321, 5, 11, 17
RAW_TRACEPOINT = 17
SOCKETS = 100_000
# of one process: files are limited
OF_ONE = 16_000
# of the time in which memory is looked at
PARTS = 10
PATIENCE = 60
# where the server is, and what a request is
SITES = {
    'loopback': 'over loopback',
    'link': 'over a link (veth)',
    'tls': 'over loopback, TLS and 16 KB',
}
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
import os, socket, sys, time
kept, n = [], 0
while n < int(sys.argv[1]) // 2:
    l = socket.create_server((f'127.0.{1 + int(sys.argv[2])}.{1 + len(kept) % 250}', 0), backlog=4096)
    to = l.getsockname()
    kept.append(l)
    for _ in range(20000):
        if n >= int(sys.argv[1]) // 2: break
        kept += [socket.create_connection(to), l.accept()[0]]; n += 1
os.write(1, b'ready\\n')
time.sleep(1000)
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
    return f'{mean:+.1f} % ± {half:.1f}: {verdict}; median {middle(values)}'


def middle(values):
    """The median, which a few odd runs do not move, with a 95 % interval of it (of the sign test)."""
    values, n = sorted(values), len(values)
    # as many below as a fair coin falls so seldom that often
    below, chance = 0, 2**-n
    while below < n // 2 and chance <= 0.025:
        below += 1
        chance += 2**-n * math.comb(n, below)
    text = f'{statistics.median(values):+.1f} %'
    return f'{text} ({values[below - 1]:+.1f} to {values[n - below]:+.1f})' if below else text


def wrk(site, seconds=1, *options):
    """Requests a second, 99th percentile in ms, and requests."""
    command = ['wrk', '-t1', '-c8', f'-d{seconds}s', '--latency', *options, site.url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r'Requests/sec:\s*([\d.]+)', text)[1])
    number, unit = re.search(r'99%\s+([\d.]+)(us|ms|s)', text).groups()
    requests = int(re.search(r'(\d+) requests in', text)[1])
    return rate, float(number) * {'us': 1e-3, 'ms': 1, 's': 1e3}[unit], requests


class Tcpdump:
    """`tcpdump -w` of the port, once it captures."""

    def __init__(self, site):
        command = ['tcpdump', '-i', site.device, '-w', f'{site.folder}/all.pcap', 'port', str(site.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while 'listening on' not in self.process.stderr.readline():
            if self.process.poll() is not None:
                sys.exit('tcpdump does not begin')

    def end(self):
        self.process.kill()
        self.process.wait()


def resting(binary):
    """`watch` that has found nothing to listen to: only the program for retransmissions is attached, unless the
    machine is so busy that something always waits."""
    watch, end, quiet = Watch(binary), time.monotonic() + PATIENCE, 0
    # a second of it: one that listens in turns rests for less
    while quiet < 10 and time.monotonic() < end:
        time.sleep(0.1)
        quiet = quiet + 1 if sum('bpf_link' in link for link in watch.links()) <= 1 else 0
    return watch


def web(binary, pairs, kind):
    """nginx and wrk: rows of the table. In each round all are beside it once, in an order of its own."""
    site, where = web_site.Site(kind), SITES[kind]
    beside = {
        'nothing': lambda: None,
        '`watch`': lambda: resting(binary),
        '`watch` that listens': lambda: Watch(binary),
        '`watch --sampled`': lambda: Watch(binary, '--sampled'),
        '`tcpdump -w`': lambda: Tcpdump(site),
    }
    try:
        wrk(site)
        rate, late = {name: [] for name in beside}, {name: [] for name in beside}
        for _ in range(pairs):
            for name in random.sample(list(beside), len(beside)):
                other = beside[name]()
                # not counted: some had to be waited for, and processors slept meanwhile
                wrk(site)
                measured = wrk(site)
                if other:
                    other.end()
                rate[name].append(measured[0])
                late[name].append(measured[1])
        out = []
        for name in list(beside)[1:]:
            lost = [100 * (1 - b / a) for a, b in zip(rate['nothing'], rate[name], strict=True)]
            more = [100 * (b / a - 1) for a, b in zip(late['nothing'], late[name], strict=True)]
            out.append(f'| nginx and wrk {where}, {name} beside: requests/s lost ({pairs} pairs) | {said(lost, 1)} |')
            out.append(f'| the same: 99th percentile | {said(more, 3)} |')
        return [*out, *of_programs(binary, site, where, True), *of_programs(binary, site, where, False)]
    finally:
        site.end()


def empty():
    """What the statistics themselves take: nanoseconds of a program that does nothing, at one of the tracepoints."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(struct.pack('=BBhiBBhi', 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    licence, name = ctypes.create_string_buffer(b'GPL'), ctypes.create_string_buffer(b'sock_send_length')
    attr = struct.pack(
        '=IIQQIIQII', RAW_TRACEPOINT, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 0
    )
    program = libc.syscall(BPF, PROG_LOAD, ctypes.create_string_buffer(attr, 128), 128)
    attr = struct.pack('=QI', ctypes.addressof(name), program)
    link = libc.syscall(BPF, RAW_TRACEPOINT_OPEN, ctypes.create_string_buffer(attr, 128), 128)
    if program < 0 or link < 0:
        return None, None
    return program, link


def busy():
    """Processor time of the whole machine, in seconds: that of softirqs belongs to no process."""
    with open('/proc/stat', encoding='ascii') as f:
        words = [int(word) for word in f.readline().split()[1:]]
    # user, nice, system, idle, iowait, irq, softirq
    return (words[0] + words[1] + words[2] + words[5] + words[6]) / os.sysconf('SC_CLK_TCK')


def of_programs(binary, site, where, rests):
    """The kernel's statistics of the programs, for each request; they are off else, as they cost something themselves."""
    before = busy()
    own = sum(wrk(site, 2)[2] for _ in range(3))
    each = (busy() - before) / own * 1e9
    with open(STATS, 'r+', encoding='ascii') as f:
        f.write('1')
    program, link = empty()
    try:
        watch = resting(binary) if rests else Watch(binary)
        first, nothing = run_statistics(watch.pid), run_statistics(os.getpid())
        memory_before, used = memory(watch.pid), processor_time(watch.pid)
        began = time.monotonic()
        requests = sum(wrk(site)[2] for _ in range(4))
        after, nothing_after, last = run_statistics(watch.pid), run_statistics(os.getpid()), memory(watch.pid)
        used = (processor_time(watch.pid) - used) / (time.monotonic() - began)
        watch.end()
    finally:
        with open(STATS, 'r+', encoding='ascii') as f:
            f.write('0')
        for fd in (link, program):
            if fd is not None and fd >= 0:
                os.close(fd)
    nanos, runs = after[0] - first[0], after[1] - first[1]
    floor = (nothing_after[0] - nothing[0]) / max(nothing_after[1] - nothing[1], 1)
    net = max(nanos - runs * floor, 0) / requests
    aim = 'within' if nanos / requests <= each / 100 else 'above'
    state = 'while it rests' if rests else 'while it listens'
    return [
        f'| BPF time of one request {where}, {state}, both ends here ({runs / requests:.1f} runs of '
        f'{nanos / max(runs, 1):.0f} ns) | {nanos / requests / 1000:.2f} µs, {100 * nanos / requests / each:.1f} % of the '
        f'{each / 1000:.0f} µs of processor time that a request takes: {aim} the aim of 1 %. Of each run {floor:.0f} ns are '
        f'what the statistics count of an empty program: without those {net / 1000:.2f} µs, {100 * net / each:.1f} % |',
        f'| the looks, and the rest of `watch` itself | {100 * used:.1f} % of one processor; memory before and after '
        f'{requests:,} requests {memory_before / 1e6:.1f} and {last / 1e6:.1f} MB |',
    ]


def steady(binary, minutes):
    """Memory at full rate, after the first and the last of ten equal parts.

    Connections are kept, and for a third of the time each request has one of its own.
    """
    site = web_site.Site('loopback')
    part = minutes * 60 // PARTS
    try:
        watch, seen, requests, fresh = Watch(binary), [], 0, 0
        for _ in range(PARTS):
            requests += wrk(site, part - part // 3)[2]
            fresh += wrk(site, part // 3, '-H', 'Connection: close')[2]
            seen.append(memory(watch.pid))
        watch.end()
    finally:
        site.end()
    row = (
        f'| memory over {minutes} minute{"s" * (minutes > 1)} at full rate ({requests:,} requests of 8 connections, '
        f'{fresh:,} of one each), after the first and the last tenth | {seen[0] / 1e6:.1f} and {seen[-1] / 1e6:.1f} MB |'
    )
    print(row)
    # the allocator may keep a little more or less
    return 0 if seen[-1] <= 1.1 * seen[0] + 1e6 else 1


def echo(binary, pairs):
    def rate():
        done = subprocess.run([sys.executable, '-c', ECHO, '1'], capture_output=True, text=True, check=True)
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
    script = ['ip link set lo up', 'ulimit -n $(ulimit -Hn)']
    count = -(-SOCKETS // OF_ONE)
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/many.py', 'w', encoding='utf8') as f:
            f.write(MANY)
        script += [f'{sys.executable} {folder}/many.py {SOCKETS // count} {n} & ' for n in range(count)]
        many = subprocess.Popen(
            ['unshare', '--net', 'sh', '-c', '\n'.join([*script, 'wait'])],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            for _ in range(count):
                if many.stdout.readline() != 'ready\n':
                    return [f'| {SOCKETS:,} sockets | not measured: they could not be opened |']
            return listed(binary, many.pid)
        finally:
            os.killpg(many.pid, signal.SIGKILL)
            many.wait()


def listed(binary, pid):
    """What watching that namespace takes: from the difference of a short and a long time, the looks alone."""
    used, looks, seconds = [], [], (2, 12)
    for time_of in seconds:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        options = ['--once', '--json', '--sampled', '--interval', f'{time_of}s', '--netns', f'/proc/{pid}/ns/net']
        done = subprocess.run([binary, 'watch', *options], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        document = json.loads(done.stdout)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        looks.append(document['samples'])
    each = (used[1] - used[0]) / max(looks[1] - looks[0], 1)
    return [
        f'| {len(document["connections"]):,} connections | {each:.2f} s of processor time for a look; {used[1]:.1f} s for '
        f'{looks[1]} looks in {seconds[1]} s with the answer and its JSON ({len(done.stdout) / 1e6:.0f} MB) |'
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--pairs', type=int, default=30)
    parser.add_argument('--left-behind', action='store_true')
    parser.add_argument('--minutes', type=int)
    parser.add_argument('--site', choices=SITES)
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    binary = os.path.abspath(args.bin)
    if os.geteuid() != 0:
        print('kernel events need root')
        return 75
    if args.minutes:
        return steady(binary, args.minutes)
    if args.site:
        rows = web(binary, args.pairs, args.site)
        print('\n'.join(rows))
        if args.write:
            write(lambda old: '\n'.join(instead(old.split('\n'), SITES[args.site], rows)))
        return 0
    count = left_behind(binary)
    if args.left_behind or count is None:
        return 0 if count else 75
    for tool in ('nginx', 'wrk', 'tcpdump', 'openssl'):
        if not shutil.which(tool):
            print(f'{tool} is not installed')
            return 75
    rows = [*attaching(binary), *many_sockets(binary)]
    for kind in SITES:
        rows += web(binary, args.pairs, kind)
    rows += echo(binary, max(args.pairs // 3, 2))
    rows.append(f'| after `kill -9` | none of {count} programs is left |')
    text = '\n'.join(['| | |', '|---|---|', *rows])
    print(text)
    if args.write:
        write(lambda _: text)
    return 0


def write(change):
    """Puts another table into docs/watch.md."""
    path = os.path.join(common.ROOT, 'docs', 'watch.md')
    with open(path, encoding='utf8') as f:
        before, rest = f.read().split(BEGIN + '\n')
    table, after = rest.split('\n' + END)
    with open(path, 'w', encoding='utf8') as f:
        f.write(f'{before}{BEGIN}\n{change(table)}\n{END}{after}')


def instead(lines, where, rows):
    """The lines of a table with other rows of one site, in the place of those of before."""
    out, own = [], False
    for line in lines:
        # what belongs to the line before it
        if not line.startswith(('| the same', '| the looks')):
            own = line.startswith((f'| nginx and wrk {where}, `', f'| BPF time of one request {where}, while'))
        if own:
            rows, line = [], rows
            out += line
        else:
            out.append(line)
    # a site that was not there
    return out[:-1] + rows + out[-1:]


if __name__ == '__main__':
    sys.exit(main())
