#!/usr/bin/env python3
"""Attacks on `tcpwhy serve` that take longer than a test should: `make attack`.

    scripts/attack.py [--bin FILE] [--seconds N]
    scripts/attack.py --gigabyte [SHAPE ...]    instead: pages of captures of 1 GB, `--html` and `serve`, beside `explain --json`

What the server must bear is in docs/security.md: who says nothing shuts nobody out, and many views at once of a large capture
take the memory of one. Prints what was measured; exit code 1 if a bound was broken.
"""

import argparse
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import common

VIEWS = 24
# above one view alone: threads, and buffers of answers on their way
MORE_MEMORY = 100 << 20
# a request that is served at once on an idle machine, on one that is busy with the attack
PATIENCE = 3.0


# of captures of 1 GB: one transfer, a hundred packets a connection, ten
SHAPES = {
    'elephant': ['elephant', '12500000'],
    'flows': ['flows', '12500000', '125000'],
    'short': ['short', '1200000'],
}


class Server:
    """tcpwhy serve on a free port of loopback."""

    def __init__(self, binary, folder):
        environment = {k: v for k, v in os.environ.items() if k != 'TCPWHY_TOKEN'}
        self.process = subprocess.Popen(
            [binary, 'serve', folder, '--port', '0'],
            stderr=subprocess.PIPE,
            text=True,
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        line = self.process.stderr.readline()
        while 'http://' not in line:
            if not line:
                sys.exit('the server does not say its address')
            line = self.process.stderr.readline()
        self.port, token = re.search(r':(\d+)/\?token=(\w+)', line).groups()
        self.port = int(self.port)
        answer = self.ask('/?token=' + token)
        self.cookie = answer.getheader('Set-Cookie').split(';')[0]

    def ask(self, path, cookie=None, timeout=120):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        connection.request('GET', path, headers={'Cookie': cookie} if cookie else {})
        return connection.getresponse()

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), timeout=30)

    def peak(self):
        """Largest resident memory so far, in bytes."""
        with open(f'/proc/{self.process.pid}/status', encoding='utf8') as f:
            return int(re.search(r'VmHWM:\s+(\d+)', f.read())[1]) << 10

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


def took(server):
    """Seconds until the list is there."""
    began = time.monotonic()
    answer = server.ask('/api/list', server.cookie)
    answer.read()
    return time.monotonic() - began if answer.status == 200 else float('inf')


def waiting(binary, folder, seconds):
    """Connections that say nothing, or a byte each second, renewed as they are closed; event streams that nobody reads."""
    server, stop = Server(binary, folder), threading.Event()

    def idle():
        held = []
        while not stop.is_set():
            try:
                held.append(server.connect())
            except OSError:
                time.sleep(0.05)
            held = held[-500:]
            time.sleep(0.002)

    def slow():
        while not stop.is_set():
            try:
                with server.connect() as s:
                    while not stop.is_set():
                        s.sendall(b'G')
                        time.sleep(1)
            except OSError:
                pass

    streams = []
    for _ in range(64):
        s = server.connect()
        s.sendall(
            f'GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {server.cookie}\r\n\r\n'.encode()
        )
        streams.append(s)
    threads = [threading.Thread(target=f, daemon=True) for f in [idle] * 2 + [slow] * 32]
    for t in threads:
        t.start()
    worst, asked, refused, until = 0.0, 0, 0, time.monotonic() + seconds
    while time.monotonic() < until:
        asked += 1
        try:
            worst = max(worst, took(server))
        except OSError:
            refused += 1
        time.sleep(0.2)
    stop.set()
    code = server.end()
    print(
        f'waiting: {asked} requests beside 2 floods, 32 slow heads and 64 streams: {refused} lost, slowest {worst:.2f} s, '
        f'ended with {code}'
    )
    return refused > asked // 50 or worst > PATIENCE or code != 0


def views(binary, folder, capture):
    """Many views at once of a capture that was not read before, against one view of it."""
    peaks = []
    for at_once in (1, VIEWS):
        server, answers, lock = Server(binary, folder), [], threading.Lock()

        def view(server=server, answers=answers, lock=lock):
            answer = server.ask('/view?name=' + os.path.basename(capture), server.cookie, timeout=600)
            size = len(answer.read())
            with lock:
                answers.append((answer.status, size))

        threads = [threading.Thread(target=view) for _ in range(at_once)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        peaks.append(server.peak())
        good = sum(status == 200 for status, _ in answers)
        later = sum(status == 503 for status, _ in answers)
        print(
            f'views: {at_once} at once of {os.path.getsize(capture) >> 20} MiB: {good} shown, {later} told to come back, '
            f'{peaks[-1] >> 20} MiB at the most'
        )
        server.end()
        if good == 0 or good + later != at_once:
            return True
    return peaks[1] > peaks[0] + MORE_MEMORY


def timed(command):
    """Seconds, and the largest resident memory in bytes."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while process.stdout.read1(1 << 20):
        pass
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f'{command}: {status}')
    return time.monotonic() - began, used.ru_maxrss << 10


def gigabyte(binary, folder, shape):
    """The page of a capture of 1 GB: a file, and the first answer of the server, alone and to many at once."""
    served = os.path.join(folder, shape)
    os.mkdir(served)
    capture, page = os.path.join(served, shape + '.pcap'), os.path.join(folder, 'page.html')
    kind, *size = SHAPES[shape]
    subprocess.run([common.generator(), kind, *size, capture], check=True, stdout=subprocess.DEVNULL)
    rows = [('explain --json', *timed([binary, 'explain', '--json', capture]), '')]
    took, peak = timed([binary, 'explain', '-q', '--html', page, capture])
    rows.append(('explain -q --html', took, peak, f'{os.path.getsize(page) / 1e6:.1f} MB'))
    os.unlink(page)
    for at_once in (1, VIEWS):
        server, answers, lock = Server(binary, served), [], threading.Lock()
        began = time.monotonic()

        def view(server=server, answers=answers, lock=lock, began=began):
            answer = server.ask('/view?name=' + shape + '.pcap', server.cookie, timeout=600)
            status = (answer.status, len(answer.read()), time.monotonic() - began)
            with lock:
                answers.append(status)

        threads = [threading.Thread(target=view) for _ in range(at_once)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        shown = [a for a in answers if a[0] == 200]
        if not shown:
            sys.exit(f'no view of {at_once} was shown: {answers[0]}')
        said = f'{shown[0][1] / 1e6:.1f} MB, {len(shown)} of {at_once} shown, the others told to come back'
        rows.append((f'serve, {at_once} at once', min(a[2] for a in shown), server.peak(), said))
        server.end()
    shutil.rmtree(served)
    for what, seconds, peak, said in rows:
        print(
            f'{shape:9} {what:18} {seconds:6.2f} s  x{seconds / rows[0][1]:4.1f}  {peak / 1e6:6.0f} MB  {said}',
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--seconds', type=float, default=30)
    parser.add_argument('--gigabyte', nargs='*', choices=list(SHAPES), metavar='SHAPE')
    args = parser.parse_args()
    if args.gigabyte is not None:
        with tempfile.TemporaryDirectory() as folder:
            for shape in args.gigabyte or SHAPES:
                gigabyte(args.bin, folder, shape)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        served = os.path.join(folder, 'served')
        os.mkdir(served)
        capture = os.path.join(served, 'elephant.pcap')
        subprocess.run([common.generator(), 'elephant', '800000', capture], check=True, stdout=subprocess.DEVNULL)
        broken = [waiting(args.bin, served, args.seconds), views(args.bin, served, capture)]
    return 1 if any(broken) else 0


if __name__ == '__main__':
    sys.exit(main())
