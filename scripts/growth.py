#!/usr/bin/env python3
"""Time for a packet by the number of connections that live at once, and time by the number of packets: measured, and drawn.

    scripts/growth.py measure --bin target/release/tcpwhy   writes docs/growth.json (minutes; the machine should be quiet)
    scripts/growth.py draw                                  docs/growth.svg from it
    scripts/growth.py check                                 the drawing is that of the rows

Each capture is explained on one core, with its JSON into a pipe, and its CPU time is the median of three runs; beside it
stands tcpdump's copy of the same file.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import common

ROWS = os.path.join(common.ROOT, 'docs', 'growth.json')
DRAWING = os.path.join(common.ROOT, 'docs', 'growth.svg')
# packets, connections side by side
SIDE_BY_SIDE = (
    (1_000_000, 1_000),
    (1_000_000, 4_000),
    (1_000_000, 16_000),
    (1_000_000, 64_000),
    (1_200_000, 256_000),
    (3_000_000, 1_000_000),
)
ONE = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
ROUNDS = 3
WIDTH, HEIGHT, LEFT, TOP, SIDE = 430, 250, 62, 34, 330


# ---------------------------------------------------------------- measuring


def cpu_of(generator, command, folder):
    """CPU seconds and peak bytes of one run on one core."""
    said = os.path.join(folder, 'run.json')
    one = str(min(os.sched_getaffinity(0)))
    command = ['taskset', '-c', one, generator, 'run', said, *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        while run.stdout.read(1 << 20):
            pass
    if run.returncode not in (0, 1):
        raise common.Failed(f'{" ".join(command)}: exit code {run.returncode}')
    with open(said, encoding='utf8') as f:
        return json.load(f)


def measured(binary, generator, what, folder):
    """A row: the packets of a generated capture, and what it costs both programs."""
    path = os.path.join(folder, 'capture.pcap')
    made = subprocess.run([generator, *map(str, what), path], capture_output=True, check=True)
    ours, copies = [], []
    for _ in range(ROUNDS):
        ours.append(cpu_of(generator, [binary, 'explain', path, '--json'], folder))
        copies.append(cpu_of(generator, ['tcpdump', '-r', path, '-w', '/dev/null'], folder))
    os.remove(path)
    row = {
        'packets': int(made.stdout),
        'connections': what[2] if len(what) > 2 else 1,
        'seconds': round(statistics.median(r['cpu'] for r in ours), 3),
        'tcpdump_seconds': round(statistics.median(r['cpu'] for r in copies), 3),
        'peak_mb': round(max(r['memory'] for r in ours) / 1e6),
    }
    print(row, flush=True)
    return row


def measure(binary):
    """All rows."""
    if not common.have('tcpdump'):
        print('SKIP: tcpdump is not installed')
        return 75
    generator = common.generator()
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            'side_by_side': [measured(binary, generator, ('flows', *what), folder) for what in SIDE_BY_SIDE],
            'one': [measured(binary, generator, ('elephant', packets), folder) for packets in ONE],
        }
    with open(ROWS, 'w', encoding='utf8') as f:
        json.dump(rows, f, indent=1)
        f.write('\n')
    return 0


# ---------------------------------------------------------------- drawing


class Axes:
    """Both logarithmic."""

    def __init__(self, left, xs, ys):
        self.left = left
        self.x = tuple(map(math.log10, xs))
        self.y = tuple(map(math.log10, ys))

    def at(self, x, y):
        """Where a point is drawn."""
        across = (math.log10(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(y) - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + LEFT + across * SIDE, TOP + (1 - up) * (HEIGHT - TOP - 50)


def text(x, y, said, anchor='middle', css=''):
    """A text."""
    kind = f' class="{css}"' if css else ''
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{said}</text>'


def short(n):
    """1k, 10M."""
    for unit, letter in ((1_000_000, 'M'), (1_000, 'k')):
        if n >= unit:
            return f'{n // unit}{letter}'
    return f'{n:g}'


def grid(axes, title, below, xs, ys, unit):
    """Lines with numbers."""
    out = [text(axes.left + LEFT, 18, title, 'start', 'title')]
    (left, low), (right, _) = axes.at(10 ** axes.x[0], 10 ** axes.y[0]), axes.at(10 ** axes.x[1], 10 ** axes.y[0])
    for x in xs:
        at = axes.at(x, 10 ** axes.y[0])[0]
        out.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{low:.1f}"/>')
        out.append(text(at, low + 16, short(x)))
    for y in ys:
        at = axes.at(10 ** axes.x[0], y)[1]
        out.append(f'<line x1="{left:.1f}" y1="{at:.1f}" x2="{right:.1f}" y2="{at:.1f}"/>')
        out.append(text(left - 6, at + 4, f'{y:g} {unit}', 'end'))
    out.append(text((left + right) / 2, low + 36, below))
    return out


def line(axes, points, css, name):
    """Points joined, with a name: ours at the last, the other's at the first, so that they do not meet."""
    places = [axes.at(x, y) for x, y in points]
    joined = ' '.join(f'{x:.1f},{y:.1f}' for x, y in places)
    dots = ''.join(f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
    (x, y), anchor = (places[-1], 'end') if css == 'us' else (places[0], 'start')
    return [f'<polyline class="{css}" points="{joined}"/>', dots, text(x, y - 8, name, anchor, css)]


def drawn(rows):
    """The drawing."""
    many, one = rows['side_by_side'], rows['one']
    width = 2 * WIDTH
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img">',
        '<title>CPU time by connections that live at once, and by packets</title>',
        '<style>text{font:12px sans-serif;fill:#555}.title{font-weight:bold}line{stroke:#ccc}polyline{fill:none;stroke-width:2}'
        'polyline.us{stroke:#0a6ebd}circle.us{fill:#0a6ebd}text.us{fill:#0a6ebd}'
        'polyline.copy{stroke:#888}circle.copy{fill:#888}text.copy{fill:#777}</style>',
        f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>',
    ]
    axes = Axes(0, (1_000, 1_000_000), (0.03, 10))
    out += grid(
        axes, 'CPU time for a packet', 'connections side by side', [10**n for n in range(3, 7)], (0.1, 1, 10), 'µs'
    )
    for css, key, name in (('us', 'seconds', 'explain'), ('copy', 'tcpdump_seconds', 'tcpdump -w')):
        out += line(axes, [(r['connections'], r[key] / r['packets'] * 1e6) for r in many], css, name)
    axes = Axes(WIDTH, (100_000, 10_000_000), (0.003, 3))
    out += grid(axes, 'CPU time for one transfer', 'packets', [10**n for n in range(5, 8)], (0.01, 0.1, 1), 's')
    for css, key, name in (('us', 'seconds', 'explain'), ('copy', 'tcpdump_seconds', 'tcpdump -w')):
        out += line(axes, [(r['packets'], r[key]) for r in one], css, name)
    return '\n'.join([*out, '</svg>', ''])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('measure', 'draw', 'check'))
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    if args.what == 'measure':
        return measure(args.bin)
    with open(ROWS, encoding='utf8') as f:
        svg = drawn(json.load(f))
    if args.what == 'draw':
        with open(DRAWING, 'w', encoding='utf8') as f:
            f.write(svg)
        return 0
    with open(DRAWING, encoding='utf8') as f:
        same = f.read() == svg
    print(
        'growth: the drawing is that of the rows'
        if same
        else 'growth: docs/growth.svg is stale: scripts/growth.py draw'
    )
    return 0 if same else 1


if __name__ == '__main__':
    sys.exit(main())
