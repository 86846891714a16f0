#!/usr/bin/env python3
"""Does the program need more instructions per packet than it did? Unlike time, that is the same on a busy machine.

    scripts/instructions.py --bin target/release/tcpwhy [--update]

`explain --json` reads generated captures of 100,000 packets with one thread, and valgrind counts; the single transfer has
a million, so that what is replayed in the model does not hide what each packet costs. More than GROWTH above the
committed figures (scripts/instructions.json) fails; --update writes them anew, with the versions they were counted with.
The figures are those of the profile `release`. Without valgrind: SKIP (exit code 75).
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import common

FIGURES = os.path.join(common.ROOT, 'scripts', 'instructions.json')
GROWTH = 0.05
# name, what gen_capture writes (one long transfer; many that go on side by side; many short ones, 10 packets each)
CAPTURES = {
    'one transfer': ('elephant', '1000000'),
    '400 connections': ('flows', '100000', '400'),
    '10,000 short connections': ('short', '10000'),
}
CANNOT = 75
# a copy of many bytes is one instruction for each byte on processors that have a fast one, which others do not use
PLAIN_COPIES = 'glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824'

# each run has one processor, and so one thread; the next one the next
AT = itertools.cycle(sorted(os.sched_getaffinity(0)))


def per_packet(binary, generator, what):
    """The instructions of one run, for each packet of a capture that the generator makes of `what`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'capture.pcap')
        packets = int(subprocess.run([generator, *what, path], capture_output=True, check=True).stdout)
        return round(counted(binary, path, folder) / packets)


def counted(binary, capture, folder):
    """The instructions of one run."""
    said = os.path.join(folder, 'said')
    counting = ['--tool=cachegrind', '--cache-sim=no', '--cachegrind-out-file=/dev/null', f'--log-file={said}']
    command = ['taskset', '-c', str(next(AT)), 'valgrind', *counting, binary, 'explain', capture, '--json']
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={'PATH': os.environ['PATH'], 'NO_COLOR': '1', 'GLIBC_TUNABLES': PLAIN_COPIES},
        check=False,
    )
    with open(said, encoding='utf8', errors='replace') as f:
        text = f.read()
    found = re.search(r'I\s+refs:\s+([\d,]+)', text)
    if done.returncode != 0 or not found:
        sys.exit(f'valgrind: exit code {done.returncode}: {(done.stderr.decode() + text)[-400:]}')
    return int(found.group(1).replace(',', ''))


def versions():
    """What the figures depend on."""

    def first_line(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split('\n')[0]

    return [first_line('rustc', '--version'), first_line('valgrind', '--version')]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--bin', default=common.BINARY, help='the program, built with the profile release')
    parser.add_argument('--update', action='store_true', help='write the figures of this program')
    o = parser.parse_args()
    if not shutil.which('valgrind'):
        print('SKIP: valgrind is not installed, which counts instructions')
        return CANNOT
    with open(FIGURES, encoding='utf8') as f:
        committed = json.load(f)
    generator = common.generator()
    more = []
    with concurrent.futures.ThreadPoolExecutor(common.overlap(None)) as pool:
        waiting = {name: pool.submit(per_packet, o.bin, generator, what) for name, what in CAPTURES.items()}
        figures = {name: future.result() for name, future in waiting.items()}
    for name, figure in figures.items():
        before = committed['per_packet'].get(name, figure)
        print(f'{name}: {figure} instructions per packet, {figure / before - 1:+.1%} beside {before}')
        if figure > before * (1 + GROWTH):
            more.append(name)
    if o.update:
        with open(FIGURES, 'w', encoding='utf8') as f:
            json.dump({'counted_with': versions(), 'per_packet': figures}, f, indent=2)
            f.write('\n')
        return 0
    if more:
        print(f'more than {GROWTH:.0%} above scripts/instructions.json: {", ".join(more)}')
        if versions() != committed['counted_with']:
            print(f'(counted with {committed["counted_with"]}, here {versions()})')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
