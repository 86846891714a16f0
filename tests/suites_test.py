#!/usr/bin/env python3
"""What docs/suites says to type for a test suite is typed, in a copy of its example: with the planted stall `--fail-if` ends
it with code 4 and names the cause; the fixed version ends with 0.

    tests/suites_test.py [--bin PATH] SUITE
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

NEEDS = {'pytest': 'pytest', 'go': 'go', 'cargo': 'cargo', 'junit': 'mvn', 'node': 'node'}
TOOLS = os.path.join(os.path.dirname(os.path.dirname(common.BINARY)), 'tools')


def typed(suite):
    """The lines of the first block of the page, as words."""
    with open(os.path.join(ROOT, 'docs', 'suites', f'{suite}.md'), encoding='utf8') as f:
        block = re.search(r'\n\n((?:    .*\n)+)', f.read()).group(1)
    return [shlex.split(line) for line in block.splitlines()]


def environment(folder):
    """Tools of our own first; caches that are not the user's."""
    own = dict(os.environ, PATH=os.path.join(TOOLS, 'bin') + os.pathsep + os.environ['PATH'])
    own |= {'MAVEN_OPTS': f'-Dmaven.repo.local={os.path.join(TOOLS, "m2")}', 'GOFLAGS': '-mod=mod'}
    # the part of Go's library that is in C takes a sixth of the time to build, and the example needs none of it
    own['CGO_ENABLED'] = '0'
    return own | {'CARGO_TARGET_DIR': os.path.join(folder, 'target'), 'PYTHONDONTWRITEBYTECODE': '1'}


def skip(reason):
    print(f'SKIP: {reason}')
    sys.exit(75)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('suite', choices=NEEDS)
    args = parser.parse_args()
    binary, wrong, ran = os.path.abspath(args.bin), [], 0
    with tempfile.TemporaryDirectory() as folder:
        example = os.path.join(folder, args.suite)
        own = environment(folder)
        if not shutil.which(NEEDS[args.suite], path=own['PATH']):
            skip(f'{NEEDS[args.suite]} is not installed')
        shutil.copytree(os.path.join(ROOT, 'examples', 'suites', args.suite), example)

        def run(words, **more):
            done = subprocess.run(
                words,
                cwd=example,
                env=own | more,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            return done.returncode, done.stdout + done.stderr

        for words in typed(args.suite):
            if words[:2] != ['tcpwhy', 'run']:
                # what fetches and compiles, outside
                code, said = run(words, FIXED='1')
                if code:
                    skip(f'{" ".join(words)}: {said.strip().splitlines()[-1] if said.strip() else code}')
                continue
            line = ' '.join(words)
            code, said = run([binary, *words[1:]], FIXED='1')
            if code == 125 and 'namespace' in said:
                skip(said.strip().splitlines()[-1])
            ran += 1
            if code or '10 requests' not in said:
                wrong.append(f'{line}: the fixed version ends with {code}: {said[-400:]}')
            if '--fail-if' in words:
                code, said = run([binary, *words[1:]])
                if code != 4 or 'nagle_delayed_ack>5% holds' not in said:
                    wrong.append(f'{line}: the planted stall ends with {code}: {said[-400:]}')
    for fault in wrong:
        print(fault)
    print(f'{args.suite}: {ran} lines of its page: {len(wrong)} faults')
    return 1 if wrong or not ran else 0


if __name__ == '__main__':
    sys.exit(main())
