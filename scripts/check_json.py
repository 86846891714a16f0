#!/usr/bin/env python3
"""Checks the JSON of `explain` against itself and against the packets, knowing nothing of how it was made.

    scripts/check_json.py --bin target/release/tcpwhy FILE...
    scripts/check_json.py --bin target/release/tcpwhy --all         captures/ and, where it exists, ../shared/captures
    scripts/check_json.py --json ANSWER CAPTURE                     an answer that was saved
    scripts/check_json.py --self-test [--bin PROGRAM FILE]          breaks a good answer in every way: each must be caught

In the answer: spans are sorted, disjoint and cover setup, each exchange and each gap to the nanosecond; these and what
was omitted tile the connection; payload adds up; budgets are the sums of their spans, findings the sums of budgets.
Against the packets (read by our own reader where all are TCP on a plain link, else by tshark too): frames exist and belong to
the connection they are evidence for; packets, payload and times are those of the file; payload means an exchange.
Unexplained time: at most 2 % on labelled captures, 10 % on real ones with both directions and the handshake; a
capture may be excused in unexplained_excused.json, with the reason. Every excess is printed with the answer's reason.
"""

import argparse
import concurrent.futures
import json
import os
import sys

import common
from answers.broken import self_test
from answers.checks import Report, check
from answers.packets import facts_of

EXCUSED = os.path.join(common.ROOT, 'scripts', 'unexplained_excused.json')


def excuses():
    """{file name: reason} for captures that may exceed the limit."""
    if not os.path.exists(EXCUSED):
        return {}
    with open(EXCUSED, encoding='utf8') as f:
        return json.load(f)


def check_file(binary, path, kind, more=()):
    """(report, or None when the program refuses the file and nothing is in it)."""
    answer, code = common.explain(binary, path, *more)
    facts = facts_of(path)
    if answer is None:
        if facts and facts.frames:
            raise common.Failed(f'refused with exit code {code}, though it holds TCP')
        return None
    return check(answer, facts, kind, excuses().get(os.path.basename(path)))


def files_of(which):
    """[(path, kind)] of the sets."""
    found = []
    for _, folder in common.sets(which):
        found += [(p, 'real') for p in common.captures_in(folder)]
        found += [(labelled.path, 'labelled') for labelled in common.labelled_in(os.path.join(folder, 'lab'))]
    return found


def run(binary, files, jobs, verbose):
    """Checks the files; the number of those with problems."""
    failed, refused, notes = 0, 0, []
    # processes: most of the time goes into looking at the answer, which is done here
    with concurrent.futures.ProcessPoolExecutor(common.overlap(jobs)) as pool:
        # labelled captures are small enough for all detail; the others get the default, so that omission is seen too
        waiting = [
            (path, pool.submit(check_file, binary, path, kind, ('--exchanges', 'all') if kind != 'real' else ()))
            for path, kind in files
        ]
        for path, future in waiting:
            try:
                report = future.result()
            except common.Failed as error:
                report = Report()
                report.bad('run', '', str(error))
            if report is None:
                refused += 1
                continue
            notes += [f'{common.shown(path)}: {n}' for n in report.notes]
            if report.problems:
                failed += 1
                print(f'FAIL {common.shown(path)}: {len(report.problems)} problems')
                for rule, where, text in report.problems[: None if verbose else 5]:
                    print(f'       {rule}: {where}: {text}')
            elif verbose:
                print(f'ok   {common.shown(path)}')
    for note in notes:
        print(f'note {note}')
    print(
        f'check_json: {len(files)} captures, {len(files) - failed - refused} good, {failed} bad, '
        f'{refused} without TCP refused'
    )
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--set', choices=['bundled', 'shared', 'all'], help='what --all means; default all')
    parser.add_argument('--json', help='a saved answer to the one FILE')
    parser.add_argument(
        '--kind',
        choices=['labelled', 'real', 'any'],
        default='real',
        help='limit of unexplained time for FILE; any: none',
    )
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('--jobs', type=int)
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    if args.self_test:
        return 1 if self_test(args.bin, args.files) else 0
    if args.json:
        with open(args.json, encoding='utf8') as f:
            report = check(json.load(f), facts_of(args.files[0]), args.kind)
        for problem in report.problems:
            print('{}: {}: {}'.format(*problem))
        return 1 if report.problems else 0
    files = [(f, None if args.kind == 'any' else args.kind) for f in args.files]
    if args.all or args.set:
        files += files_of(args.set or 'all')
    if not files:
        parser.error('no files')
    if not common.have('tshark'):
        print('note tshark is not installed: frames are checked by our own reader, in plain captures only')
    return 1 if run(args.bin, files, args.jobs, args.verbose) else 0


if __name__ == '__main__':
    sys.exit(main())
