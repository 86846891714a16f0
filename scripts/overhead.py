#!/usr/bin/env python3
"""What `tcpwhy run` adds to a command, and how true its distance is.

Three figures, each from pairs that are run one after the other in turns, so that what else the machine does meets both alike:

- start: `tcpwhy run -- true` against `true` (bound 150 ms);
- a suite of 30 s that talks over loopback and mostly waits, as suites do, against itself under `run` (bound 5 %), and, told
  beside it, one that does nothing but talk;
- the same exchanges over `run --rtt 40ms --server` and, as root, over the link of the lab (`lab link`), which has real-time
  priority: median of the requests (bound 3 %).

    scripts/overhead.py [--bin PATH] [--pairs N] [--seconds S]

Medians of the pairs are compared: a machine that is busy now and then does not count, one that is busy all the time is told
apart by its own scatter, which is printed. `make overhead`
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import common

START_MS, SUITE, DISTANCE = 150, 0.05, 0.03
NOBODY = 65534

# a test suite in small: connections, requests, and time in which it waits for something else
SUITE_PROGRAM = """
import socket, sys, threading, time
seconds, pause = float(sys.argv[1]), float(sys.argv[2])
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    while True:
        c = listener.accept()[0]
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while c.recv(200, socket.MSG_WAITALL):
            c.sendall(bytes(2000))
        c.close()
threading.Thread(target=serve, daemon=True).start()
# so many tests as fill the time with pauses alone: what work takes is on top, and is what is compared
for _ in range(round(seconds / pause)):
    with socket.create_connection(listener.getsockname()) as c:
        for _ in range(20):
            c.sendall(bytes(200))
            c.recv(2000, socket.MSG_WAITALL)
    time.sleep(pause)
"""

TALK_PROGRAM = """
import socket, sys, threading
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    c = listener.accept()[0]
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while c.recv(200, socket.MSG_WAITALL):
        c.sendall(bytes(2000))
threading.Thread(target=serve, daemon=True).start()
with socket.create_connection(listener.getsockname()) as c:
    for _ in range(int(sys.argv[1])):
        c.sendall(bytes(200))
        c.recv(2000, socket.MSG_WAITALL)
"""

SERVER_PROGRAM = """
import socket
listener = socket.create_server(('0.0.0.0', 8000))
# the lab's hosts have a congestion control of their own, those of run that of this host: here both have the same
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno')
while True:
    c = listener.accept()[0]
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while c.recv(200, socket.MSG_WAITALL):
        c.sendall(bytes(20000))
    c.close()
"""

CLIENT_PROGRAM = """
import os, socket, time
took = []
for _ in range(10):
    with socket.create_connection((os.environ.get('TCPWHY_SERVER', '10.77.0.2'), 8000)) as c:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(5):
            start = time.monotonic()
            c.sendall(bytes(200))
            c.recv(20000, socket.MSG_WAITALL)
            took.append(time.monotonic() - start)
print(sorted(took)[len(took) // 2])
"""


def unprivileged(command):
    """This command as somebody who may do nothing."""
    if os.geteuid() == 0:
        return ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', *command]
    return command


def timed(command, folder):
    """Seconds, and what it printed."""
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = time.monotonic() - start
    if done.returncode:
        raise common.Failed(f'{shlex.join(command)}: {done.returncode}: {done.stderr[-300:]}')
    return took, done.stdout


def pairs(folder, bare, under, count):
    """Seconds of both, in turns; which is first changes, too."""
    times = ([], [])
    for turn in range(count):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            times[which].append(timed((bare, under)[which], folder)[0])
    return times


def scatter(values):
    """The middle half, as a share of the median."""
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / statistics.median(values)


def compared(name, folder, binary, program, count):
    """The share that `run` adds to a program."""
    bare = unprivileged(program)
    under = unprivileged([binary, 'run', '-q', '-o', '/dev/null', '--', *program])
    without, within = pairs(folder, bare, under, count)
    before, after = statistics.median(without), statistics.median(within)
    share = after / before - 1
    print(
        f'{name:28} bare {before:7.3f} s (±{scatter(without) / 2:.1%}), under run {after:7.3f} s (±{scatter(within) / 2:.1%}): '
        f'{share:+.1%}',
        flush=True,
    )
    return share


def start(folder, binary, count):
    """Milliseconds until a command runs and after it has ended, together."""
    without, within = pairs(folder, unprivileged(['true']), unprivileged([binary, 'run', '-q', '--', 'true']), count)
    more = [1000 * (b - a) for a, b in zip(without, within)]
    print(
        f'{"start and end":28} {statistics.median(more):.0f} ms more than `true` alone '
        f'({count} pairs, the middle half {statistics.quantiles(more, n=4)[0]:.0f} to {statistics.quantiles(more, n=4)[2]:.0f})',
        flush=True,
    )
    return statistics.median(more)


def distance(folder, binary, count):
    """The share by which a request under `run --rtt 40ms` is longer than over the lab's link; None where there is no root, or
    where each run says of itself that it was disturbed.
    """
    if os.geteuid() != 0:
        print('distance: the link of the lab needs root')
        return None
    server, client = (f'{sys.executable} {name}.py' for name in ('server', 'client'))
    ours, theirs, disturbed = [], [], 0
    while len(ours) < count and disturbed < 4 * count:
        answer = os.path.join(folder, 'answer.json')
        command = [binary, 'run', '--rtt', '40ms', '--server', server, '--json', '-o', answer, '--', *client.split()]
        took = float(timed(command, folder)[1])
        with open(answer, encoding='utf8') as f:
            if json.load(f)['run']['link']['disturbed']:
                disturbed += 1
                continue
        ours.append(took)
        command = [binary, 'lab', 'link', '--delay', '20ms', '--server', server, '--', *client.split()]
        theirs.append(float(timed(command, folder)[1].split()[0]))
    if not ours:
        print(f'{"a request 40 ms away":28} not judged: all of {disturbed} runs say that the machine disturbed them')
        return None
    here, there = statistics.median(ours), statistics.median(theirs)
    share = here / there - 1
    print(
        f'{"a request 40 ms away":28} run {1000 * here:.2f} ms, lab {1000 * there:.2f} ms: {share:+.1%} ({len(ours)} pairs; '
        f'{disturbed} more said that they were disturbed)'
    )
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=30, help='of the suite')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        binary = os.path.join(folder, 'tcpwhy')
        shutil.copy(args.bin, binary)
        for name, text in (
            ('suite', SUITE_PROGRAM),
            ('talk', TALK_PROGRAM),
            ('server', SERVER_PROGRAM),
            ('client', CLIENT_PROGRAM),
        ):
            with open(os.path.join(folder, f'{name}.py'), 'w', encoding='utf8') as f:
                f.write(text)
        python = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
        began = start(folder, binary, 5 * args.pairs)
        suite = [python, 'suite.py', str(args.seconds), '0.05']
        added = compared(f'a suite of {args.seconds:.0f} s', folder, binary, suite, args.pairs)
        # told, not judged: what is busy with nothing else on loopback is faster or slower by chance of where it is scheduled
        compared('nothing but 50,000 requests', folder, binary, [python, 'talk.py', '50000'], 2 * args.pairs + 1)
        away = distance(folder, binary, 2 * args.pairs)
    wrong = [
        text
        for text, is_wrong in (
            (f'start: {began:.0f} ms, bound {START_MS}', began > START_MS),
            (f'suite: {added:+.1%}, bound {SUITE:.0%}', added > SUITE),
            (f'distance: {away or 0:+.1%}, bound {DISTANCE:.0%}', away is not None and abs(away) > DISTANCE),
        )
        if is_wrong
    ]
    for text in wrong:
        print(f'beyond its bound: {text}')
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
