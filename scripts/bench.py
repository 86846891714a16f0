#!/usr/bin/env python3
"""How fast and how large: whole `explain --json` against tcpdump's plain copy, tcptrace, tshark and capinfos on the same
files.

    scripts/bench.py --bin target/release/tcpwhy [--quick] [--rounds 5] [--check]

`explain` writes its default JSON into a pipe; the reader at the other end scans all of it and takes the number of packets
from the totals, which must be the file's. Runs are interleaved (A B C A B C ...), on both cores and on one; a ratio is
the median over rounds of time A / time B in the same round, with the smallest and largest. Files are generated once under
target/bench. tshark reads a cut, because it is slow; rates are compared. Many small files are measured by
scripts/many.py. --check: a missed aim is an exit code of 1.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading

import common

FOLDER = os.path.join(os.path.dirname(os.path.dirname(common.BINARY)), 'bench')
GENERATOR = os.path.join(os.path.dirname(common.BINARY), 'examples', 'gen_capture')
MIB = 1 << 20
TIMEOUT = 600
ONCE_IS_ENOUGH = 20  # seconds; a slower tool is not run again on that file
HTTP2 = os.path.join(common.ROOT, 'captures', 'programs', 'h2_tls.pcap')
# (measure, at most): the aims this project has set itself
AIMS = {
    'both cores: time over tcpdump': 1.0,
    'one core: time over tcpdump': 2.0,
    'time over tcptrace': 0.5,
    'bytes per unanswered SYN': 128,
    'bytes per live connection': 1024,
    'memory, whole file over a quarter of it': 1.1,
}


# ---------------------------------------------------------------- files


def generated(*what):
    """(path, packets) of a generated file."""
    name = '-'.join(os.path.basename(str(part)) for part in what)
    path, count = os.path.join(FOLDER, name + '.pcap'), os.path.join(FOLDER, name + '.count')
    sources = [GENERATOR, *(part for part in map(str, what) if os.path.isfile(part))]
    newest = max(map(os.path.getmtime, sources))
    if not os.path.exists(count) or not os.path.exists(path) or os.path.getmtime(count) < newest:
        done = subprocess.run([GENERATOR, *map(str, what), path], stdout=subprocess.PIPE, check=True)
        with open(count, 'wb') as f:
            f.write(done.stdout)
    with open(count, encoding='ascii') as f:
        return path, int(f.read())


# ---------------------------------------------------------------- runs


class Run:
    """One run: wall seconds, CPU seconds, peak resident bytes."""

    def __init__(self, wall, cpu, memory):
        self.wall, self.cpu, self.memory = wall, cpu, memory


def measured(command, cores, piped):
    """(Run, what the reader of the pipe says), or (None, None) after the time limit."""
    statistics_file = os.path.join(FOLDER, 'run.json')
    process = subprocess.Popen(
        ['taskset', '-c', cores, GENERATOR, 'run', statistics_file, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if piped else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    expired = threading.Event()

    def stop():
        expired.set()
        os.killpg(process.pid, signal.SIGKILL)

    guard = threading.Timer(TIMEOUT, stop)
    guard.start()
    answer, read_well = b'', True
    if piped:
        reader = subprocess.Popen(
            ['taskset', '-c', cores, GENERATOR, 'read-json'], stdin=process.stdout, stdout=subprocess.PIPE
        )
        process.stdout.close()
        answer = reader.communicate()[0]
        read_well = reader.returncode == 0
    code = process.wait()
    guard.cancel()
    if expired.is_set():
        return None, None
    if code not in (0, 1) or not read_well:
        raise common.Failed(f'{" ".join(command)}: exit code {code}')
    with open(statistics_file, encoding='utf8') as f:
        return Run(**json.load(f)), json.loads(answer) if answer else None


class Tool:
    """A program to be timed on a file."""

    def __init__(self, name, command, checked=False):
        self.name, self.command, self.checked = name, command, checked

    def run(self, path, packets, cores):
        """A Run, or None after the time limit. Failed if it did not read the whole file."""
        command = [path if part == '{}' else part for part in self.command]
        result, said = measured(command, cores, self.checked)
        if self.checked and result and said['packets'] != packets:
            raise common.Failed(f'{self.name} says {said["packets"]} packets, {path} holds {packets}')
        return result


def tools(binary):
    """What there is."""
    found = [Tool('tcpwhy', [binary, 'explain', '{}', '--json'], checked=True)]
    if common.have('tcpdump'):
        found.append(Tool('tcpdump', ['tcpdump', '-r', '{}', '-w', '/dev/null']))
    if common.have('tcptrace'):
        found.append(Tool('tcptrace', ['tcptrace', '-l', '-r', '-n', '{}']))
    return found


def interleaved(list_of_tools, path, packets, cores, rounds):
    """{tool: [Run]} of `rounds` rounds after one to warm up; a tool that takes too long is left out."""
    runs = {t.name: [] for t in list_of_tools}
    slow = set()
    for n in range(rounds + 1):
        for tool in list_of_tools:
            if tool.name in slow:
                continue
            run = tool.run(path, packets, cores)
            if run is None:
                slow.add(tool.name)
                runs[tool.name] = []
                print(f'  {tool.name}: not done after {TIMEOUT} s, left out')
            elif n or run.wall > ONCE_IS_ENOUGH:
                runs[tool.name].append(run)
            if run and run.wall > ONCE_IS_ENOUGH:
                slow.add(tool.name)
    return runs


def spread(values):
    """'median (smallest to largest)'."""
    return f'{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})'


# ---------------------------------------------------------------- the table


def compare(title, binary_tools, path, packets, rounds, out):
    """Times on both cores and on one."""
    size = os.path.getsize(path)
    print(f'\n{title}: {packets:,} packets, {size / MIB:,.0f} MiB')
    cores = sorted(os.sched_getaffinity(0))
    ways = [('both cores', ','.join(map(str, cores[:2])))] if len(cores) > 1 else []
    for way, mask in ways + [('one core', str(cores[0]))]:
        runs = interleaved(binary_tools, path, packets, mask, rounds)
        ours = runs['tcpwhy']
        for name, theirs in runs.items():
            if not theirs:
                continue
            wall = [r.wall for r in theirs]
            ratios = [a.wall / b.wall for a, b in zip(ours, theirs)]
            memory = max(r.memory for r in theirs)
            row = {
                'file': title,
                'cores': way,
                'tool': name,
                'packets': packets,
                'seconds': wall,
                'cpu_seconds': [r.cpu for r in theirs],
                'peak_bytes': memory,
                'tcpwhy_over_it': ratios,
            }
            out.append(row)
            said = '' if name == 'tcpwhy' else f'tcpwhy takes {spread(ratios)} of its time'
            print(
                f'  {way:<11} {name:<9} {spread(wall):<26} s {packets / statistics.median(wall) / 1e6:7.2f} M packets/s'
                f' {memory / MIB:8.1f} MiB   {said}'
            )


def against_wireshark(binary, packets, rounds, out):
    """tshark and capinfos on a cut: rates."""
    pair = [tools(binary)[0]]
    for name, words in (('tshark', ['-n', '-r', '{}', '-q', '-z', 'expert']), ('capinfos', ['{}'])):
        if common.have(name):
            pair.append(Tool(name, [name, *words]))
        else:
            print(f'\nSKIP: {name} is not installed')
    path, count = generated('flows', packets, max(packets // 250, 1))
    compare('cut for tshark', pair, path, count, rounds, out)


def small_files(binary, sample):
    """Many small captures against one file of their packets: a script of its own."""
    print('\nsmall files (scripts/many.py)', flush=True)
    many = os.path.join(os.path.dirname(__file__), 'many.py')
    if subprocess.run([sys.executable, many, '--bin', binary, *['--sample'] * sample], check=False).returncode:
        return ['small files: scripts/many.py']
    return []


def memory(binary, packets, connections, rows):
    """Peak memory as the file grows, and for each live connection."""
    document, cores = tools(binary)[0], ','.join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    lines = Tool('tcpwhy --jsonl', [binary, 'explain', '{}', '--jsonl'])

    def peak(*what, tool=document):
        path, count = generated(*what)
        return min(tool.run(path, count, cores).memory for _ in range(2))

    print('\nmemory of tcpwhy')
    short = connections * 50
    for what, tool, whole, quarter in (
        (
            f'{connections:,} connections',
            document,
            ('flows', packets, connections),
            ('flows', packets // 4, connections),
        ),
        ('one elephant', document, ('elephant', packets), ('elephant', packets // 4)),
        (f'{short:,} short connections, --jsonl', lines, ('short', short), ('short', short // 4)),
    ):
        large, small = peak(*whole, tool=tool), peak(*quarter, tool=tool)
        rows[f'memory, whole file over a quarter of it ({what})'] = large / small
        print(
            f'  {what}: {large / MIB:.1f} MiB, with a quarter of the packets {small / MIB:.1f} MiB: '
            f'{large / small:.2f} times'
        )
    many, few = peak('flows', packets, connections), peak('flows', packets, connections // 10)
    each = (many - few) / (connections - connections // 10)
    rows['bytes per live connection'] = each
    print(
        f'  {connections:,} live connections {many / MIB:.1f} MiB, {connections // 10:,} {few / MIB:.1f} MiB: '
        f'{each:,.0f} bytes each'
    )
    # Open and quiet: with a dozen packets, which wait and of which no state was made, and with four exchanges, whose state
    # lies idle as bytes. As many as may be awake are not counted.
    idle = connections * 5
    for what, most, large, few, small in (
        ('a dozen packets', idle, ('flows', idle * 12, idle), connections, ('flows', connections * 12, connections)),
        ('four exchanges', idle * 2, ('idle', idle * 2), idle, ('idle', idle)),
    ):
        large, small = peak(*large), peak(*small)
        each = (large - small) / (most - few)
        rows[f'bytes per idle connection of {what}'] = each
        print(
            f'  {most:,} open connections of {what} {large / MIB:.1f} MiB, {few:,} {small / MIB:.1f} MiB: '
            f'{each:,.0f} bytes each'
        )
    syns = connections * 100
    many, few = peak('scan', syns), peak('scan', syns // 10)
    each = (many - few) / (syns - syns // 10)
    rows['bytes per unanswered SYN'] = each
    print(
        f'  {syns:,} unanswered SYNs {many / MIB:.1f} MiB, {syns // 10:,} {few / MIB:.1f} MiB: {each:,.0f} bytes each'
    )


def aims(rows, measures):
    """[(aim, limit, got)] with the worst figure over the files."""

    def ratio(cores, tool):
        found = [statistics.median(r['tcpwhy_over_it']) for r in rows if r['tool'] == tool and r['cores'] in cores]
        return max(found) if found else None

    got = {
        'both cores: time over tcpdump': ratio(['both cores'], 'tcpdump'),
        'one core: time over tcpdump': ratio(['one core'], 'tcpdump'),
        'time over tcptrace': ratio(['both cores', 'one core'], 'tcptrace'),
        'bytes per unanswered SYN': measures.get('bytes per unanswered SYN'),
        'bytes per live connection': measures.get('bytes per live connection'),
        'memory, whole file over a quarter of it': max(
            (v for k, v in measures.items() if k.startswith('memory')), default=None
        ),
    }
    return [(name, limit, got[name]) for name, limit in AIMS.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--quick', action='store_true', help='a tenth of the packets, three rounds')
    parser.add_argument('--rounds', type=int)
    parser.add_argument(
        '--only',
        default='',
        help='regular expression on flows, elephant, short, echo, copies, scan, tshark, files, memory',
    )
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    scale, rounds = (10, args.rounds or 3) if args.quick else (1, args.rounds or 5)
    os.makedirs(FOLDER, exist_ok=True)
    common.generator()
    packets, connections, rows, measures, failed = 5_000_000 // scale, 20_000 // scale, [], {}, []
    every = tools(args.bin)
    for name in ('tcpdump', 'tcptrace'):
        if not common.have(name):
            print(f'SKIP: {name} is not installed')

    def asked(name):
        return re.search(args.only, name)

    try:
        for name, what in (
            (f'flows: {connections:,} connections side by side', ('flows', packets, connections)),
            ('elephant: one connection', ('elephant', packets)),
            (f'short: {1_000_000 // scale:,} connections, one after the other', ('short', 1_000_000 // scale)),
            (f'echo: {32_000 // scale:,} connections side by side, a byte each way', ('echo', 52, 32_000 // scale)),
            (f'copies: {20_000 // scale:,} of a real capture of HTTP/2 and TLS', ('copies', HTTP2, 20_000 // scale)),
            (f'scan: {2_000_000 // scale:,} SYNs that nothing answers', ('scan', 2_000_000 // scale)),
        ):
            if asked(what[0]):
                # tcptrace looks through all connections for each new one
                tools_for_it = [tool for tool in every if (what[0], tool.name) != ('scan', 'tcptrace')]
                compare(name, tools_for_it, *generated(*what), rounds, rows)
        if asked('tshark'):
            against_wireshark(args.bin, 200_000 // scale, rounds, rows)
        if asked('files'):
            failed += small_files(args.bin, args.quick)
        if asked('memory'):
            memory(args.bin, packets, connections, measures)
    except common.Failed as error:
        sys.exit(f'bench: {error}')
    print('\naims (the worst over all files)')
    missed = 0
    for name, limit, got in aims(rows, measures):
        verdict = 'not measured' if got is None else 'met' if got <= limit else 'MISSED'
        missed += verdict == 'MISSED'
        print(f'  {name:<42} at most {limit:<6} {"" if got is None else format(got, ".3g"):<8} {verdict}')
    with open(os.path.join(FOLDER, 'results.json'), 'w', encoding='utf8') as f:
        json.dump({'runs': rows, 'measures': measures}, f, indent=1)
    for what in failed:
        print(f'  {what} says that something is missed or wrong (above)')
    return 1 if args.check and (missed or failed) else 0


if __name__ == '__main__':
    sys.exit(main())
