#!/usr/bin/env python3
"""`tcpwhy view` in tmux: keys, a change of size, and the terminal as it was after ^C, a signal and a panic.

    tests/view_test.py [--bin PATH] [--debug-bin PATH]

Only a build with debug assertions panics when it is asked to; without --debug-bin that part is left out.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

CAPTURE = os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap')
# asks for a panic at the first key; see crates/tcpwhy/src/view/mod.rs
PANIC = 'TCPWHY_TEST_PANIC=1'


class Tmux:
    """A server of its own, so that no session of anybody else is touched."""

    def __init__(self):
        self.name = f'tcpwhy-test-{os.getpid()}'

    def run(self, *words):
        return subprocess.run(
            ['tmux', '-L', self.name, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout

    def keys(self, *keys):
        self.run('send-keys', '-t', 'v', *keys)

    def until(self, *parts, seconds=20, columns=0):
        """The screen, once all parts stand on it and so many columns are used; exits if they do not come."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            screen = self.run('capture-pane', '-p', '-t', 'v')
            if all(p in screen for p in parts) and max(map(len, screen.splitlines()), default=0) >= columns:
                return screen
            time.sleep(0.1)
        sys.exit(f'FAIL {parts} in {columns} columns did not come:\n{screen}')

    def start(self, binary, environment=''):
        """The browser, on an empty screen."""
        command = f'{environment} {shlex.quote(os.path.abspath(binary))} view {shlex.quote(CAPTURE)}; echo ended $?'
        self.keys(f'clear; {command.strip()}', 'Enter')
        self.until('(93 %) of it is Nagle', 'Nagle held a small write', 'q: quit')

    def is_as_before(self, code, after):
        """The shell's screen is back, the cursor shows, keys are echoed and lines are edited."""
        screen = self.until(f'ended {code}', 'ready:')
        if 'q: quit' in screen:
            sys.exit(f'FAIL the screen was not put back after {after}:\n{screen}')
        state = self.run('display-message', '-p', '-t', 'v', '#{alternate_on} #{cursor_flag}').split()
        if state != ['0', '1']:
            sys.exit(f'FAIL after {after}: alternate screen, cursor: {state}')
        self.keys(
            'clear; stty -a | tr " " "\\n" | grep -x -e echo -e -echo -e icanon -e -icanon | tr "\\n" " "; echo .',
            'Enter',
        )
        self.until('icanon echo .')
        print(f'ok   the terminal is as before after {after}')


def keys_and_sizes(tmux, binary):
    """What is shown, at two sizes, and that nothing flickers."""
    # a release build must not know what asks for a panic
    tmux.start(binary, PANIC)
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
    tmux.until('exchange 20:', 'esc: back', columns=100)
    tmux.run('resize-window', '-t', 'v', '-x', '80', '-y', '24')
    tmux.keys('Escape')
    tmux.until('127.0.0.1:38718 > 127.0.0.1:25', 'Exchanges')
    print('ok   keys and sizes')


def child_of(shell):
    with open(f'/proc/{shell}/task/{shell}/children', encoding='ascii') as f:
        return int(f.read().split()[0])


def an_interrupt_ends_the_reading(tmux, binary):
    """Standard input that stays open: what came before ^C is shown. What asks the program to end shows nothing."""
    shell = tmux.run('display-message', '-p', '-t', 'v', '#{pane_pid}').strip()
    for number in (signal.SIGINT, signal.SIGTERM):
        command = f'{shlex.quote(os.path.abspath(binary))} view - < <(cat {shlex.quote(CAPTURE)}; sleep 15)'
        tmux.keys(f'clear; {command}; echo ended $?', 'Enter')
        deadline = time.monotonic() + 10
        view = None
        while view is None and time.monotonic() < deadline:
            time.sleep(1)
            with open(f'/proc/{shell}/task/{shell}/children', encoding='ascii') as f:
                children = f.read().split()
            for child in children:
                with open(f'/proc/{child}/comm', encoding='ascii') as f:
                    view = int(child) if f.read().strip() == 'tcpwhy' else view
        if view is None:
            sys.exit('FAIL view - does not begin')
        time.sleep(1)
        os.kill(view, number)
        if number == signal.SIGINT:
            tmux.until('(93 %) of it is Nagle', 'q: quit', seconds=10)
            tmux.keys('q')
        tmux.is_as_before(130, f'{number.name} while standard input is read')


def ends_with_its_terminal(tmux, binary):
    """A terminal that goes while hang-ups are ignored (nohup, a shell that was told to) leaves nothing that runs on."""
    tmux.run('new-window', '-n', 'w', '-t', 'v', 'env PS1=ready: bash --norc')
    tmux.until('ready:')
    tmux.start(binary, "trap '' HUP;")
    view = child_of(tmux.run('display-message', '-p', '-t', 'v', '#{pane_pid}').strip())
    tmux.run('kill-window', '-t', 'v:w')
    deadline = time.monotonic() + 10
    while os.path.exists(f'/proc/{view}'):
        if time.monotonic() > deadline:
            os.kill(view, signal.SIGKILL)
            sys.exit('FAIL view runs on although its terminal has gone')
        time.sleep(0.05)
    print('ok   ends with its terminal')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--debug-bin')
    args = parser.parse_args()
    tmux = Tmux()
    tmux.run('-f', '/dev/null', 'new-session', '-d', '-s', 'v', '-x', '80', '-y', '24', 'env PS1=ready: bash --norc')
    try:
        tmux.until('ready:')
        keys_and_sizes(tmux, args.bin)
        tmux.keys('C-c')
        tmux.is_as_before(0, '^C')
        tmux.start(args.bin)
        shell = tmux.run('display-message', '-p', '-t', 'v', '#{pane_pid}').strip()
        os.kill(child_of(shell), signal.SIGTERM)
        tmux.is_as_before(0, 'SIGTERM')
        an_interrupt_ends_the_reading(tmux, args.bin)
        ends_with_its_terminal(tmux, args.bin)
        if args.debug_bin:
            tmux.start(args.debug_bin, PANIC)
            tmux.keys('Down')
            tmux.until('on purpose, for a test of the terminal')
            tmux.is_as_before(101, 'a panic')
    finally:
        tmux.run('kill-server')


if __name__ == '__main__':
    main()
