#!/usr/bin/env python3
"""Do two builds give the same answers, byte for byte? For changes that must not change any.

    scripts/same.py --bin target/release/tcpwhy --with OTHER [CAPTURE OR FOLDER ...]

Each capture is explained by both, with the default JSON, with all exchanges, as lines, and on one core; names of temporary files
do not occur in answers, so the bytes are compared. Without captures: those of the tree and of the shared folder. A difference
is an exit code of 1.
"""

import argparse
import hashlib
import os
import subprocess
import sys

import common

FORMS = (('--json',), ('--json', '--exchanges', 'all'), ('--jsonl',))


def answer(binary, capture, form, cores):
    """Exit code and hash of what one run writes."""
    done = subprocess.run(
        [binary, 'explain', capture, *form],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, NO_COLOR='1'),
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
        check=False,
    )
    return done.returncode, hashlib.sha256(done.stdout).hexdigest(), len(done.stdout)


def captures_below(path):
    """A file, or all captures in a folder and those in it."""
    if not os.path.isdir(path):
        return [path]
    folders = sorted(folder for folder, _, _ in os.walk(path))
    return [capture for folder in folders for capture in common.captures_in(folder)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--with', dest='other', required=True, help='the other program')
    parser.add_argument('captures', nargs='*', help='files or folders')
    o = parser.parse_args()
    both = os.sched_getaffinity(0)
    one = {min(both)}
    places = o.captures or [os.path.join(common.ROOT, 'captures'), os.path.join(common.SHARED, 'captures')]
    captures = [capture for place in places for capture in captures_below(place)]
    runs, differ = 0, []
    for capture in captures:
        for form, cores in [(form, both) for form in FORMS] + [(FORMS[0], one)]:
            runs += 1
            if answer(o.bin, capture, form, cores) != answer(o.other, capture, form, cores):
                differ.append(f'{capture} {" ".join(form)}{" on one core" if cores == one else ""}')
                print(f'differs: {differ[-1]}', flush=True)
    print(f'{len(captures)} captures, {runs} comparisons, {len(differ)} differ')
    return 1 if differ or not captures else 0


if __name__ == '__main__':
    sys.exit(main())
