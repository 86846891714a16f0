#!/usr/bin/env python3
"""Holds the graphs of the page against those of tcptrace and the figures of tshark, on bundled captures.

    scripts/graphs.py [--bin PATH] [CAPTURE ...]

Every segment, mark, ACK, window edge, SACK block, outstanding byte and round trip that tcptrace draws (-S, -N, -R), and every
sequence number, window, SACK block, number of bytes in flight and round trip that tshark reckons, must be among the points that
the page draws. They are asked of the page in the browser, so that what is compared is what a reader sees; docs/graphs.md lists
where each is. What the others reckon otherwise is named here, in `owin` and `tshark_says`. Exit code 75: this cannot be done
here, the last line says why.
"""

import argparse
import bisect
import calendar
import collections
import copy
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import common

import web

# a loss repaired by SACK; a window that shuts, probes and a needless repeat
CAPTURES = [
    'captures/lab/loss_middle_one/cap.server.pcap.zst',
    'captures/lab/slow_reader_6s_rcvbuf8k/cap.server.pcap.zst',
]
# bits of the page's packets (web/src/packets.ts), written down a second time
FIN, SYN, PSH = 1, 2, 8
AGAIN, ORDER, ZERO, LATE = 1, 2, 8, 32
MICROSECOND = 1000


class Xplot:
    """The marks of one of tcptrace's drawings: (time in ns, ...) by what they are."""

    def __init__(self, path):
        self.lines = collections.defaultdict(list)  # colour: (t0, y0, t1, y1)
        self.dots = collections.defaultdict(list)  # colour: (t, y)
        self.letters = collections.defaultdict(list)  # text: (t, y)
        self.diamonds = []
        with open(path, encoding='utf8', errors='replace') as f:
            colour, rows = '', iter(f.read().splitlines())
        for row in rows:
            words = row.split()
            if len(words) == 1 and words[0].isalpha():
                colour = words[0]
            elif words[:1] == ['line']:
                self.lines[colour].append((when(words[1]), int(words[2]), when(words[3]), int(words[4])))
            elif words[:1] == ['dot']:
                self.dots[words[3] if len(words) > 3 else colour].append((when(words[1]), int(words[2])))
            elif words[:1] == ['atext']:
                self.letters[next(rows)].append((when(words[1]), int(words[2])))
            elif words[:1] == ['diamond'] and words[-1] == 'white':
                self.diamonds.append((when(words[1]), int(words[2])))


def when(text):
    """Seconds with six decimals, as nanoseconds without a float between."""
    seconds, _, micros = text.partition('.')
    return int(seconds) * 10**9 + int(micros.ljust(6, '0')) * 1000


class Held:
    """What the page holds of one direction, with times and sequence numbers as tcptrace writes them."""

    def __init__(self, held, side, start, first):
        self.start, self.first = start, first[side]
        self.packets = held['packets']
        mine = held['directions'][side]
        self.segments = [
            (self.at(s['t']), s['lo'] + self.first, s['hi'] + self.first, self.packets[s['packet']])
            for s in mine['segments']
        ]
        self.sack = [(self.at(t), lo + self.first, hi + self.first) for t, lo, hi in mine['sack']]
        self.lines = {
            name: [(self.at(t), value + (self.first if name in ('ack', 'edge') else 0)) for t, value in mine[name]]
            for name in ('ack', 'edge', 'flight', 'window', 'rtt')
        }

    def at(self, t):
        return round(t) + self.start

    def near(self, rows, t):
        """Those of the same microsecond; tcptrace cuts the rest off."""
        low = bisect.bisect_left(rows, (t,))
        return [row for row in rows[low : low + 64] if row[0] < t + MICROSECOND]

    def values(self, line, t):
        """What a line says in this microsecond: what holds as it begins, and each new value."""
        rows = self.lines[line]
        low = bisect.bisect_left(rows, (t,))
        return [value for _, value in rows[max(0, low - 1) : low] + self.near(rows, t)]


class Report:
    """Counts of what was found, and what is missing."""

    def __init__(self):
        self.found, self.missing = collections.Counter(), []

    def check(self, what, there, where):
        if there:
            self.found[what] += 1
        else:
            self.missing.append(f'{what}: {where}')


def sequence(plot, held, report):
    """The time-sequence graph."""
    segments = sorted(held.segments, key=lambda s: s[:3])
    # each segment is drawn from its first to its last byte: white, red where it was sent again, orange with SYN and FIN
    for colour, what in (('white', 'segments'), ('red', 'segments sent again'), ('orange', 'SYN and FIN')):
        for t0, lo, t1, hi in plot.lines[colour]:
            if t0 == t1 and lo != hi:
                report.check(what, any(s[1:3] == (lo, hi) for s in held.near(segments, t0)), (t0, lo, hi))
    for t, y in plot.diamonds:
        report.check('PSH', any(s[2] == y and s[3]['flags'] & PSH for s in held.near(segments, t)), (t, y))
    for letter, of in (
        ('R', lambda p: p['marks'] & (AGAIN | LATE)),
        ('O', lambda p: p['marks'] & ORDER),
        ('SYN', lambda p: p['flags'] & SYN),
        ('FIN', lambda p: p['flags'] & FIN),
    ):
        for t, y in plot.letters[letter]:
            report.check(letter, any(s[2] == y and of(s[3]) for s in held.near(segments, t)), (t, y))
    # ACK line and window edge: steps to the right, then up
    for colour, line in (('green', 'ack'), ('yellow', 'edge')):
        for _, _, t, y in plot.lines[colour]:
            report.check({'ack': 'ACK line', 'edge': 'window edge'}[line], y in held.values(line, t), (t, y))
    sack = sorted(held.sack)
    for t0, lo, t1, hi in plot.lines['purple']:
        report.check('SACK blocks', any(s[1:] == (lo, hi) for s in held.near(sack, t0)) and t0 == t1, (t0, lo, hi))
    for t, _ in plot.letters['Z']:
        shut = [p for p in held.packets if p['marks'] & ZERO and 0 <= held.at(p['t']) - t < MICROSECOND]
        report.check('Z', shut, t)


def owin(plot, held, report):
    """Outstanding bytes. tcptrace adds one: it reckons from the byte before the next one that is expected."""
    for t, y in plot.dots['red']:
        report.check('outstanding bytes', max(0, y - 1) in held.values('flight', t), (t, y, held.values('flight', t)))
    for t, y in plot.dots['yellow']:
        report.check('window', y in held.values('window', t), (t, y, held.values('window', t)))


def trips(plot, held, report):
    """Round trips, in whole milliseconds."""
    for t, y in plot.dots['red']:
        report.check('round trips', any(int(v / 1e6) == y for _, v in held.near(held.lines['rtt'], t)), (t, y))


FIELDS = [
    'frame.number',
    'tcp.seq',
    'tcp.len',
    'tcp.ack',
    'tcp.window_size',
    'tcp.analysis.bytes_in_flight',
    'tcp.analysis.ack_rtt',
    'tcp.options.sack_le',
    'tcp.options.sack_re',
    'tcp.analysis.duplicate_ack_num',
    'tcp.analysis.zero_window',
    'tcp.flags.ack',
]


def tshark(path):
    """A row of fields for each packet."""
    command = ['tshark', '-n', '-r', path, '-T', 'fields', '-E', 'aggregator=,']
    return subprocess.run(
        command + [w for f in FIELDS for w in ('-e', f)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout.splitlines()


def tshark_says(rows, held, report):
    """The figures that Wireshark's graphs are made of. Its bytes in flight leave out what was reported by SACK and count from
    the last ACK of any packet. It also takes a round trip from an ACK that waited for a repeat: the page, as tcptrace, does not
    (Karn), so the ACKs of what was in flight when something was sent again are left out."""
    packets = {p['frame']: p for p in held['packets']}
    lines = [{name: dict(map(tuple, d[name])) for name in ('flight', 'rtt')} for d in held['directions']]
    sacked, acked, reached = [{}, {}], [0, 0], [0, 0]
    again = [(0, 0), (0, 0)]  # what was in flight when something was sent again: from, to
    for row in rows:
        frame, seq, length, ack, win, flight, trip, left, right, copies, shut, has_ack = row.split('\t')
        p = packets.get(int(frame))
        report.check('frames', p, frame)
        if not p:
            continue
        report.check('sequence numbers', (p['seq'], p['len']) == (int(seq), int(length)), row)
        d, other = p['from'], 1 - p['from']
        if p['len'] and p['seq'] < reached[d]:
            again[d] = (p['seq'], reached[d])
        reached[d] = max(reached[d], p['seq'] + p['len'])
        if has_ack in ('1', 'True'):
            report.check('ACKs and windows', (p['ack'], p['win']) == (int(ack), int(win)), row)
            acked[other] = max(acked[other], p['ack'])
        blocks = [(int(a), int(b)) for a, b in zip(left.split(','), right.split(',')) if a]
        report.check('SACK of each packet', blocks == [tuple(b) for b in p['sack']], row)
        for lo, hi in blocks:
            for byte in range(max(lo, acked[other]), hi):
                sacked[other][byte] = True
        if copies:
            report.check('duplicate ACKs', p['marks'] & 4, row)
        if shut:
            report.check('zero windows', p['marks'] & ZERO, row)
        if flight:
            gone = sum(1 for byte in sacked[d] if acked[d] <= byte < reached[d])
            report.check(
                'bytes in flight', lines[d]['flight'].get(p['t']) == int(flight) + gone, f'{row} and {gone} reported'
            )
        if trip and not again[other][0] < p['ack'] <= again[other][1]:
            # the trip of what this packet acknowledges: of the other direction
            ours = lines[other]['rtt'].get(p['t'])
            report.check(
                'round trips of ACKs', ours is not None and abs(ours - float(trip) * 1e9) < 2, f'{row}: {ours}'
            )


def compare(binary, capture, folder):
    """One capture; says what was found, and gives what is missing."""
    bare = os.path.join(folder, 'capture.pcap')
    if capture.endswith('.zst'):
        subprocess.run(['zstd', '-qdf', capture, '-o', bare], check=True)
    else:
        shutil.copyfile(capture, bare)
    page = os.path.join(folder, 'page.html')
    subprocess.run([binary, 'explain', bare, '--quiet', '--html', page], stdout=subprocess.DEVNULL, check=True)
    answer, _ = common.explain(binary, bare)
    done = web.run('node', 'tests/points.mjs', page, '1', stdout=subprocess.PIPE)
    if done.returncode:
        return [f'the page gave no points (exit code {done.returncode})']
    held = json.loads(done.stdout)
    drawings = tempfile.mkdtemp(dir=folder)
    subprocess.run(
        ['tcptrace', '-S', '-N', '-R', f'--output_dir={drawings}', bare],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    plots = {tuple(os.path.basename(p)[:-4].split('_')): Xplot(p) for p in glob.glob(os.path.join(drawings, '*.xpl'))}
    if len(plots) != 6:
        return [f'tcptrace drew {len(plots)} graphs instead of 6']
    start = epoch(answer['capture']['start'])
    report = hold(held, plots, tshark(bare), start)
    print(', '.join(f'{n} {what}' for what, n in report.found.items()))
    print(f'{common.shown(capture)}: {sum(report.found.values())} points of {len(report.found)} kinds are on the page')
    return report.missing + toothless(held, plots, tshark(bare), start)


def hold(held, plots, rows, start):
    """All that the others draw, against what the page holds."""
    report = Report()
    # tcptrace writes sequence numbers as they are on the wire: its SYN tells how far ours are from them
    way = {0: 'a2b', 1: 'b2a'}
    first = [
        plots[way[d], 'tsg'].letters['SYN'][0][1] - 1 - min(s['lo'] for s in held['directions'][d]['segments'])
        for d in way
    ]
    for d in way:
        mine = Held(held, d, start, first)
        sequence(plots[way[d], 'tsg'], mine, report)
        owin(plots[way[d], 'owin'], mine, report)
        trips(plots[way[d], 'rtt'], mine, report)
    tshark_says(rows, held, report)
    return report


def toothless(held, plots, rows, start):
    """What could be taken from the page without this check finding it: nothing may."""
    lost = []
    for name in ('segments', 'ack', 'edge', 'flight', 'window', 'rtt', 'sack'):
        less = copy.deepcopy(held)
        # the direction with data: the other one's lines hardly move; several points, as a line may keep its value
        points = max(
            (d[name] for d in less['directions']),
            key=lambda rows: len({str(row[1:] if isinstance(row, list) else row) for row in rows}),
        )
        if points:
            del points[len(points) // 3 : max(len(points) // 3 + 1, 2 * len(points) // 3)]
            if not hold(less, plots, rows, start).missing:
                lost.append(f'a third of "{name}" is taken away, and nobody says so')
    return lost


def epoch(text):
    """`2023-11-14T22:13:20.000000000Z` as nanoseconds."""
    whole, _, rest = text.rstrip('Z').partition('.')
    return calendar.timegm(time.strptime(whole, '%Y-%m-%dT%H:%M:%S')) * 10**9 + int(rest.ljust(9, '0') or 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('captures', nargs='*', default=[os.path.join(common.ROOT, c) for c in CAPTURES])
    args = parser.parse_args()
    for need in ('tcptrace', 'tshark', 'zstd', 'node'):
        if not common.have(need):
            web.cannot(f'{need} is not installed')
    if not os.path.exists(web.CHROMIUM):
        web.cannot(f'{web.CHROMIUM} is not there: apt-get install chromium')
    web.packages()
    bad = 0
    for capture in args.captures:
        with tempfile.TemporaryDirectory() as folder:
            missing = compare(args.bin, capture, folder)
        bad += len(missing)
        for line in missing[:10]:
            print(f'FAIL not on the page: {line}')
        if len(missing) > 10:
            print(f'FAIL and {len(missing) - 10} more')
    sys.exit(1 if bad else 0)


if __name__ == '__main__':
    main()
