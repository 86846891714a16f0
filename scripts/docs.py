#!/usr/bin/env python3
"""Puts what examples print between their markers in README.md; --check only says whether it is up to date.

A block shows the command as a user types it and what it prints when its output is no terminal.
"""

import argparse
import os
import subprocess
import sys

import common

# By the name in the markers, what is typed.
EXAMPLES = {
    'demo': 'explain captures/zeek__smtp_bdat.pcap',
    'predict': 'predict --rtt 200ms --request 16KiB --response 20KiB --server-time 100ms',
}
README = os.path.join(common.ROOT, 'README.md')


def block(binary, command):
    """What stands between the markers."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(('CLICOLOR', 'COLUMNS', 'TCPWHY'))}
    done = subprocess.run(
        [binary, *command.split()],
        cwd=common.ROOT,
        stdout=subprocess.PIPE,
        env=dict(environment, NO_COLOR='1'),
        check=True,
    )
    lines = [line.rstrip() for line in done.stdout.decode('utf8').rstrip().splitlines()]
    return '\n'.join(['', '```console', f'$ tcpwhy {command}', *lines, '```', ''])


def with_blocks(text, binary):
    """The text with each example as it is printed now."""
    for name, command in EXAMPLES.items():
        begin, end = f'<!-- {name}:begin -->', f'<!-- {name}:end -->'
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            sys.exit(f'docs: README.md needs one {begin} and after it one {end}')
        before, rest = text.split(begin)
        text = before + begin + block(binary, command) + end + rest.split(end)[1]
    return text


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
    new = with_blocks(text, os.path.abspath(args.bin))
    if new == text:
        print('docs: README.md is up to date')
        return 0
    if args.check:
        print('docs: README.md does not show what its examples print now: make docs')
        return 1
    with open(README, 'w', encoding='utf8') as f:
        f.write(new)
    print('docs: README.md was brought up to date')
    return 0


if __name__ == '__main__':
    sys.exit(main())
