#!/usr/bin/env python3
"""Puts the output of the demo between the markers of README.md; --check only says whether it is up to date.

The block shows the command as a user types it and what it prints when its output is no terminal.
"""

import argparse
import os
import subprocess
import sys

import common

CAPTURE = 'captures/zeek__smtp_bdat.pcap'
BEGIN, END = '<!-- demo:begin -->', '<!-- demo:end -->'
README = os.path.join(common.ROOT, 'README.md')


def block(binary):
    """What stands between the markers."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(('CLICOLOR', 'COLUMNS', 'TCPWHY'))}
    done = subprocess.run(
        [binary, 'explain', CAPTURE],
        cwd=common.ROOT,
        stdout=subprocess.PIPE,
        env=dict(environment, NO_COLOR='1'),
        check=True,
    )
    lines = [line.rstrip() for line in done.stdout.decode('utf8').rstrip().splitlines()]
    return '\n'.join(['', '```console', f'$ tcpwhy explain {CAPTURE}', *lines, '```', ''])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    try:
        with open(README, encoding='utf8') as f:
            text = f.read()
    except FileNotFoundError:
        sys.exit('docs: there is no README.md')
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f'docs: README.md needs one {BEGIN} and after it one {END}')
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    new = before + BEGIN + block(os.path.abspath(args.bin)) + END + after
    if new == text:
        print('docs: README.md is up to date')
        return 0
    if args.check:
        print('docs: README.md does not show what the demo prints now: make docs')
        return 1
    with open(README, 'w', encoding='utf8') as f:
        f.write(new)
    print('docs: README.md was brought up to date')
    return 0


if __name__ == '__main__':
    sys.exit(main())
