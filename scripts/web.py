#!/usr/bin/env python3
"""The page of reports: `web.py build` makes crates/report/assets/report.html, `check` says whether it is fresh, `style`
whether its sources are formatted and without lints, `test` runs it in a browser, `screenshots` renews
docs/screenshots. Exit code 75: this cannot be done here, the
last line says why.
"""

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile

import common
import page_types

WEB = os.path.join(common.ROOT, 'web')
BUILT = os.path.join(common.ROOT, 'crates', 'report', 'assets', 'report.html')
CHROMIUM = os.environ.get('CHROMIUM', '/usr/bin/chromium')
CANNOT = 75


def cannot(why):
    print(why)
    sys.exit(CANNOT)


def run(*command, **more):
    return subprocess.run(command, cwd=WEB, stdin=subprocess.DEVNULL, check=False, **more)


def packages():
    """What package-lock.json names, installed."""
    for need in ('node', 'npm'):
        if not shutil.which(need):
            cannot(f'{need} is not installed (Node.js 20.19 or later)')
    lock = os.path.join(WEB, 'package-lock.json')
    stamp = os.path.join(WEB, 'node_modules', '.tcpwhy-lock')
    if os.path.exists(stamp) and filecmp.cmp(lock, stamp, shallow=False):
        return
    done = run(
        'npm',
        'ci',
        '--no-audit',
        '--no-fund',
        '--prefer-offline',
        '--ignore-scripts',
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        print(done.stdout)
        cannot('npm ci could not fetch the packages: is there a network?')
    shutil.copyfile(lock, stamp)


def build(to):
    """Builds the page into `to`."""
    for command in (
        ('npx', '--no-install', 'tsc', '--noEmit'),
        ('npx', '--no-install', 'vite', 'build', '--logLevel', 'warn'),
        ('node', 'scripts/finish.mjs', to),
    ):
        code = run(*command).returncode
        if code:
            sys.exit(code)


def check():
    """The committed page is what the sources make, and its types are those of the schema."""
    if not page_types.is_fresh():
        print(f'{common.shown(page_types.TYPES)} is not what docs/schema makes: make web')
        sys.exit(1)
    with tempfile.TemporaryDirectory() as folder:
        fresh = os.path.join(folder, 'report.html')
        build(fresh)
        if not filecmp.cmp(fresh, BUILT, shallow=False):
            print(f'{common.shown(BUILT)} is not what web/ makes: make web')
            sys.exit(1)
    print('the page is what web/ makes')
    with open(os.path.join(WEB, 'package-lock.json'), encoding='utf8') as f:
        if '"resolved"' in f.read():
            print('web/package-lock.json names registries: remove the "resolved" lines')
            sys.exit(1)


def style():
    """Format and lints of the sources."""
    sys.exit(run('npx', '--no-install', 'biome', 'check', '--error-on-warnings').returncode)


def browser(binary):
    """The tests in Chromium."""
    if not os.path.exists(CHROMIUM):
        cannot(f'{CHROMIUM} is not there: apt-get install chromium')
    tests = sorted(os.path.join('tests', n) for n in os.listdir(os.path.join(WEB, 'tests')) if n.endswith('.test.mjs'))
    sys.exit(node('--test', '--test-concurrency=1', *tests, binary=binary))


def node(*arguments, binary):
    """Runs node; its temporary files, a browser's profile among them, go with it, however it ends. The exit code."""
    with tempfile.TemporaryDirectory(prefix='tcpwhy-') as folder:
        environment = {**os.environ, 'TCPWHY': os.path.abspath(binary), 'TMPDIR': folder}
        return run('node', *arguments, env=environment).returncode


def screenshots(binary):
    """Pictures of the page, for people to look at."""
    if not os.path.exists(CHROMIUM):
        cannot(f'{CHROMIUM} is not there: apt-get install chromium')
    folder = os.path.join(common.ROOT, 'docs', 'screenshots')
    sys.exit(node(os.path.join('tests', 'screens.mjs'), folder, binary=binary))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', choices=['build', 'check', 'style', 'test', 'screenshots'])
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    packages()
    if args.what == 'build':
        page_types.write()
        build(BUILT)
    elif args.what == 'check':
        check()
    elif args.what == 'style':
        style()
    elif args.what == 'screenshots':
        screenshots(args.bin)
    else:
        browser(args.bin)


if __name__ == '__main__':
    main()
