#!/usr/bin/env python3
"""`tcpwhy watch` in tmux: what stands on the screen, keys, a change of size, and the terminal as it was after q, ^C and a signal.

tests/watch_screen_test.py [--bin PATH]
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys

import view_test
from view_test import Tmux, child_of, common

# long enough for a machine that does everything else first
PATIENCE = 60
# requests in two writes each over loopback, until it is killed; says its port
STALLS = """
import socket, threading
def serve(listener):
    c = listener.accept()[0]
    while c.recv(204, socket.MSG_WAITALL):
        c.sendall(b'a' * 100)
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=serve, args=[listener], daemon=True).start()
c = socket.create_connection(listener.getsockname())
print(listener.getsockname()[1], flush=True)
while True:
    c.send(b'h' * 4); c.send(b'b' * 200)
    c.recv(100, socket.MSG_WAITALL)
"""


def start(tmux, binary, port):
    """The screen, on an empty one, once it says what is slow."""
    tmux.keys(
        f'clear; {shlex.quote(os.path.abspath(binary))} watch --port {port} --interval 300ms; echo ended $?', 'Enter'
    )
    tmux.until('2 connections in the last', 'Nagle held a small write', 'fix: ', 'q: quit', seconds=PATIENCE)


def keys_and_sizes(tmux, port):
    """The worst connection stands first and is chosen; the next one is the other end of it."""
    tmux.until('lost', 'program', f'> 127.0.0.1:{port}', 'python3', 'since ', seconds=PATIENCE)
    tmux.keys('Down')
    tmux.until('client_think', f'127.0.0.1:{port} <', seconds=PATIENCE)
    tmux.keys('Space')
    still = tmux.until('; paused', seconds=PATIENCE)
    view_test.time.sleep(1)
    if tmux.until('; paused') != still:
        sys.exit('FAIL what is paused goes on')
    tmux.keys('Up')
    tmux.until('Nagle held a small write', '; paused', seconds=PATIENCE)
    tmux.keys('Space')
    tmux.run('resize-window', '-t', 'v', '-x', '120', '-y', '40')
    tmux.until('Nagle held a small write', 'q: quit', seconds=PATIENCE, columns=100)
    tmux.run('resize-window', '-t', 'v', '-x', '40', '-y', '10')
    tmux.until(' in the last', 'q: quit', seconds=PATIENCE)
    tmux.run('resize-window', '-t', 'v', '-x', '80', '-y', '24')
    tmux.until('Nagle held a small write', 'q: quit', seconds=PATIENCE)
    print('ok   keys and sizes')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    binary = parser.parse_args().bin
    load = subprocess.Popen([sys.executable, '-c', STALLS], stdout=subprocess.PIPE, text=True)
    tmux = Tmux()
    tmux.run('-f', '/dev/null', 'new-session', '-d', '-s', 'v', '-x', '80', '-y', '24', 'env PS1=ready: bash --norc')
    try:
        port = load.stdout.readline().strip()
        tmux.until('ready:', seconds=PATIENCE)
        start(tmux, binary, port)
        keys_and_sizes(tmux, port)
        tmux.keys('q')
        tmux.is_as_before(0, 'q')
        start(tmux, binary, port)
        tmux.keys('C-c')
        tmux.is_as_before(130, '^C')
        start(tmux, binary, port)
        shell = tmux.run('display-message', '-p', '-t', 'v', '#{pane_pid}').strip()
        os.kill(child_of(shell), signal.SIGTERM)
        tmux.is_as_before(130, 'SIGTERM')
        start(tmux, binary, port)
        load.kill()
        load.wait()
        tmux.until('0 connections in the last', seconds=PATIENCE)
        tmux.keys('q')
        tmux.is_as_before(0, 'the end of all connections')
    finally:
        load.kill()
        tmux.run('kill-server')


if __name__ == '__main__':
    main()
