#!/usr/bin/env python3
"""Crates of the program and of the wheel for which there are advisories, by a copy of the RustSec data base.

    scripts/advisories.py check FOLDER [--days N] [--old]     FOLDER: a clone of rustsec/advisory-db, or what a tar of it holds
    scripts/advisories.py --self-test

Prints how old the copy is, and fails if that is more than N days (7), unless --old is said. Fails at every advisory that is for a
version in the lock files; what only informs (unmaintained, unsound, notice) is told. `cargo audit --no-fetch --db FOLDER` is
another opinion.
"""

import argparse
import contextlib
import datetime
import glob
import io
import os
import re
import subprocess
import sys
import tempfile
import tomllib

import common

LOCKS = ('Cargo.lock', 'python/Cargo.lock')
DAYS = 7
FRONT = re.compile(r'^```toml\n(.*?)^```', re.DOTALL | re.MULTILINE)
COMPARED = re.compile(r'^\s*(\^|~|>=|<=|>|<|=)?\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+\S+)?\s*$')


def key(numbers, pre=None):
    """By what versions are ordered (semver, 11): one that is not released yet is before the one that is."""
    parts = [(0, int(p), '') if p.isdigit() else (1, 0, p) for p in pre.split('.')] if pre else []
    return (*numbers, not pre, parts)


def version(text):
    """The key of a version, and its three numbers."""
    found = COMPARED.match(text)
    if not found or found[1]:
        raise ValueError(f'no version: {text}')
    numbers = tuple(int(found[n] or 0) for n in (2, 3, 4))
    return key(numbers, found[5])


def satisfies(which, requirement):
    """Whether a version (its key) is within a requirement of cargo, such as `>= 1.2.3, < 2`."""
    if requirement.strip() == '*':
        return True
    for part in requirement.split(','):
        found = COMPARED.match(part)
        if not found:
            raise ValueError(f'no requirement: {requirement}')
        told = [found[n] for n in (2, 3, 4)]
        numbers = tuple(int(n or 0) for n in told)
        low, sign = key(numbers, found[5]), found[1] or '^'
        given = sum(n is not None for n in told)
        # the next version that would not do
        fixed = {
            '^': next((i for i, n in enumerate(numbers[:given]) if n), given - 1),
            '~': min(given, 2) - 1,
            '=': given - 1,
        }
        inside = True
        if sign in fixed:
            at = fixed[sign]
            high = key(tuple(numbers[:at]) + (numbers[at] + 1,) + (0,) * (2 - at))
            exact = sign == '=' and given == 3
            inside = which == low if exact else low <= which < high
        elif sign == '>=':
            inside = which >= low
        elif sign == '>':
            inside = which > low
        elif sign == '<':
            inside = which < low
        else:
            inside = which <= low
        if not inside:
            return False
    return True


def locked(paths):
    """{crate: {version: [lock files]}} of crates that come from a registry."""
    out = {}
    for path in paths:
        with open(path, 'rb') as f:
            packages = tomllib.load(f)['package']
        for package in packages:
            if 'source' in package:
                name = common.shown(path)
                out.setdefault(package['name'], {}).setdefault(package['version'], []).append(name)
    return out


def advisories(folder):
    """The front matter of each."""
    for path in sorted(glob.glob(os.path.join(folder, 'crates', '*', '*.md'))):
        with open(path, encoding='utf8') as f:
            found = FRONT.search(f.read())
        if not found:
            raise ValueError(f'{path}: no advisory')
        yield tomllib.loads(found[1])


def affected(advisory, which):
    """Neither mended in this version nor never touched by it."""
    versions = advisory.get('versions', {})
    fine = [*versions.get('patched', ()), *versions.get('unaffected', ())]
    return not any(satisfies(version(which), requirement) for requirement in fine)


def age(folder, all_of_them, now):
    """When the copy was made, and how many days ago: by its last commit, else its latest advisory, which may be older."""
    command = ['git', '-C', folder, 'log', '-1', '--format=%ct']
    if os.path.exists(os.path.join(folder, '.git')):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            made = datetime.datetime.fromtimestamp(int(done.stdout), datetime.UTC).date()
            return f'last commit {made}', (now - made).days
    dates = [one['advisory']['date'] for one in all_of_them]
    made = max(date if isinstance(date, datetime.date) else datetime.date.fromisoformat(date) for date in dates)
    return f'latest advisory {made}', (now - made).days


def check(folder, locks, days, old, now):
    """Prints what there is; 0: nothing against these lock files, 1: something, or the copy is too old, 2: it is none."""
    try:
        known = list(advisories(folder))
    except (OSError, ValueError) as error:
        print(f'{folder}: {error}')
        return 2
    if not known:
        print(
            f'{folder}: no advisories are in it; name a copy of the RustSec data base (git clone of rustsec/advisory-db)'
        )
        return 2
    crates = locked(locks)
    said, past = age(folder, known, now)
    n = sum(map(len, crates.values()))
    print(f'data base: {len(known)} advisories, {said}, {past} days old; {n} crates of {len(locks)} lock files')
    failed = past > days and not old
    if failed:
        print(f'older than {days} days: fetch it anew, or say --old')
    for one in known:
        told = one['advisory']
        if told.get('withdrawn') or told['package'] not in crates:
            continue
        for which, where in crates[told['package']].items():
            if affected(one, which):
                kind = told.get('informational')
                failed |= not kind
                print(
                    f'{told["id"]}: {told["package"]} {which} ({", ".join(where)}): {kind or "vulnerable"}; {told.get("url", "")}'
                )
    return int(failed)


MADE = """```toml
[advisory]
id = "RUSTSEC-2026-{n:04}"
package = "{package}"
date = "{date}"
{more}
[versions]
patched = [{patched}]
unaffected = [{unaffected}]
```

# Something about {package}
"""


def requirements():
    """Requirements as cargo reads them."""
    for which, requirement, holds in (
        ('1.2.3', '^1.2', True),
        ('1.2.3', '1.2.4', False),
        ('2.0.0', '^1.2', False),
        ('0.3.1', '^0.3', True),
        ('0.4.0', '^0.3.1', False),
        ('0.0.4', '^0.0.3', False),
        ('1.2.9', '~1.2.3', True),
        ('1.3.0', '~1.2.3', False),
        ('1.3.0', '>= 1.2, < 1.3', False),
        ('1.2.9', '>= 1.2, < 1.3', True),
        ('1.0.0-rc.1', '>= 1.0.0', False),
        ('1.0.0-rc.10', '> 1.0.0-rc.9', True),
        ('1.0.0', '=1.0.0', True),
        ('1.0.1', '=1.0.0', False),
        ('1.0.1+build', '<= 1.0.1', True),
        ('0.9.9', '*', True),
    ):
        assert satisfies(version(which), requirement) == holds, (which, requirement)


def self_test():
    """A made-up data base against a made-up lock file: what must be found is, and what must not is not."""
    requirements()
    now = datetime.date(2026, 11, 22)
    cases = (
        # package, patched, unaffected, more, whether it fails, whether it is told
        ('one', '">= 1.3"', '', '', True, True),
        ('one', '">= 1.2.3"', '', '', False, False),
        ('one', '', '"< 2"', '', False, False),
        ('one', '', '', 'withdrawn = "2026-11-21"', False, False),
        ('one', '', '', 'informational = "unmaintained"', False, True),
        ('own', '', '', '', False, False),
        ('absent', '', '', '', False, False),
    )
    for package, patched, unaffected, more, fails, told in cases:
        with tempfile.TemporaryDirectory() as work:
            lock = os.path.join(work, 'Cargo.lock')
            with open(lock, 'w', encoding='utf8') as f:
                f.write('[[package]]\nname = "one"\nversion = "1.2.3"\nsource = "registry"\n\n')
                f.write('[[package]]\nname = "own"\nversion = "0.1.0"\n')
            folder = os.path.join(work, 'crates', package)
            os.makedirs(folder)
            with open(os.path.join(folder, 'RUSTSEC-2026-0001.md'), 'w', encoding='utf8') as f:
                f.write(
                    MADE.format(
                        n=1, package=package, date='2026-11-20', patched=patched, unaffected=unaffected, more=more
                    )
                )
            for days, old, expected in ((7, False, fails), (1, False, True), (1, True, fails)):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    code = check(work, [lock], days, old, now)
                text = out.getvalue()
                assert code == expected and ('RUSTSEC-2026-0001' in text) == told and '2 days old' in text, (
                    package,
                    more,
                    text,
                )
            with contextlib.redirect_stdout(out):
                assert check(os.path.join(work, 'none'), [lock], 7, False, now) == 2
    print(f'{len(cases)} made-up advisories: each found, or passed over, as it must be')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', nargs='?', choices=('check',))
    parser.add_argument('folder', nargs='?')
    parser.add_argument('--days', type=int, default=DAYS)
    parser.add_argument('--old', action='store_true', help='however old the copy is')
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    if not args.folder:
        parser.error('check FOLDER, or --self-test')
    today = datetime.datetime.now(datetime.UTC).date()
    return check(args.folder, [os.path.join(common.ROOT, lock) for lock in LOCKS], args.days, args.old, today)


if __name__ == '__main__':
    sys.exit(main())
