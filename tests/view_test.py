#!/usr/bin/env python3
"""`tcpwhy view` in tmux: keys, a change of size, and the terminal as it was after ^C.

    tests/view_test.py [--bin PATH]
"""
import argparse
import os
import shlex
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

CAPTURE = os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap')


class Tmux:
    """A server of its own, so that no session of anybody else is touched."""

    def __init__(self):
        self.name = f'tcpwhy-test-{os.getpid()}'

    def run(self, *words):
        return subprocess.run(['tmux', '-L', self.name, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False).stdout

    def keys(self, *keys):
        self.run('send-keys', '-t', 'v', *keys)

    def until(self, *parts, seconds=20):
        """The screen, once all parts stand on it; exits if they do not come."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            screen = self.run('capture-pane', '-p', '-t', 'v')
            if all(p in screen for p in parts):
                return screen
            time.sleep(0.1)
        sys.exit(f'FAIL {parts} did not come:\n{screen}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    tmux = Tmux()
    tmux.run('-f', '/dev/null', 'new-session', '-d', '-s', 'v', '-x', '80', '-y', '24', 'env PS1=ready: bash --norc')
    try:
        tmux.until('ready:')
        tmux.keys(f'{shlex.quote(os.path.abspath(args.bin))} view {shlex.quote(CAPTURE)}; echo ended $?', 'Enter')
        tmux.until('1.16 s (41 %) is TCP', 'Nagle held a small write', 'q: quit')
        print('ok   the verdict at 80x24')
        # what is redrawn while nothing happens would flicker: the pane gets no bytes
        log = os.path.join(common.ROOT, 'target', f'view-{os.getpid()}.log')
        tmux.run('pipe-pane', '-t', 'v', f'cat > {shlex.quote(log)}')
        time.sleep(1.5)
        idle = os.path.getsize(log) if os.path.exists(log) else 0
        tmux.run('pipe-pane', '-t', 'v')
        if os.path.exists(log):
            os.remove(log)
        if idle > 0:
            sys.exit(f'FAIL {idle} bytes were drawn while nothing happened')
        print(f'ok   still while nothing happens ({idle} bytes)')
        tmux.keys('Enter')
        tmux.until('exchange 19: 49.0 ms', '102 client', 'P. 129 B')
        tmux.keys('Tab')
        tmux.until('exchange 20:')
        tmux.run('resize-window', '-t', 'v', '-x', '120', '-y', '40')
        wide = tmux.until('exchange 20:', 'esc: back')
        if max(map(len, wide.splitlines())) < 100:
            sys.exit(f'FAIL the wider window is not used:\n{wide}')
        tmux.run('resize-window', '-t', 'v', '-x', '80', '-y', '24')
        tmux.keys('Escape')
        tmux.until('127.0.0.1:38718 > 127.0.0.1:25', 'Exchanges')
        print('ok   keys and sizes')
        tmux.keys('C-c')
        screen = tmux.until('ended 0', 'ready:')
        if 'Exchanges' in screen:
            sys.exit(f'FAIL the screen was not put back:\n{screen}')
        tmux.keys('stty -a | tr " " "\\n" | grep -x -e echo -e -echo -e icanon -e -icanon | tr "\\n" " "; echo .', 'Enter')
        tmux.until('icanon echo .')
        print('ok   the terminal is as before after ^C')
    finally:
        tmux.run('kill-server')


if __name__ == '__main__':
    main()
