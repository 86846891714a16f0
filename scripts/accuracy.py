#!/usr/bin/env python3
"""How often `explain` is right on captures whose causes are known (labels: captures/README.md).

    scripts/accuracy.py --bin target/release/tcpwhy [--set bundled|shared|all | --folder DIR] [--verbose]
    scripts/accuracy.py ... --transform addresses+ipv6     the same on variants of the captures (scripts/transform.py)
    scripts/accuracy.py ... --min-dominant 0.95 ...        thresholds; a miss is an exit code of 1
    scripts/accuracy.py ... --floor FILE [--raise-floor]   thresholds from a file, which may only become better
    scripts/accuracy.py ... --half learn | --families      one half of the made cases; a table by family
    scripts/accuracy.py --self-test

Verdict of a check: right, weak (a cause that this end can hardly tell from the right one), weakened (none, after packets
were taken away, with a warning), wrong (another cause), missing (none). Weak and weakened count half.
Time-weighted accuracy: labelled milliseconds that lie on an acceptable cause, over all labelled milliseconds.
Made cases (scripts/cases.py) come in two halves: what is off in the half that is only scored is counted and not told, unless
--tell-scored asks for it; who asks has to write the names into scripts/cases_seen.txt.
Calibration: of the time in spans with a confidence in a bin, the share that is right (no more than the truth has of its cause),
and how much of the rest one of the alternatives explains.
"""

import argparse
import concurrent.futures
import json
import os
import re
import sys
import tempfile

import capfile
import common
import transform
from answers.score import Score, misses, raised
from answers.verdicts import MISSING, RIGHT, WEAK, WEAKENED, WRONG, judge

TRANSFORMED_SLACK = 0.10  # of the labelled time, on top of its tolerance


def examine(binary, case, steps):
    """[(check, Result)] of one end of an experiment, on a variant of its capture if steps are given."""
    with tempfile.TemporaryDirectory() as folder:
        path, cut_ms, left = case.path, 0.0, None
        if steps:
            path = os.path.join(folder, 'variant.pcap')
            before, after = transform.transform(case.path, path, steps)
            if after:
                cut_ms = max(0.0, (after[0].time - before[0].time) / 1e6) if 'skip' in steps else 0.0
            left = {p for t in map(capfile.tcp, after) if t for p in (t.sport, t.dport)}
        answer, _ = common.explain(binary, path, '--exchanges', 'all')
    if answer is None:
        raise common.Failed('refused')
    out, claimed = [], []
    for check in case.checks:
        ports = check['connections']
        if steps and ports != 'all':
            ports = [transform.new_port(p) if 'addresses' in steps else p for p in ports]
            here = [p for p in ports if p in left]
            if not here:
                continue  # nothing of these connections is left
            share = len(here) / len(ports)
            check = dict(
                check,
                parts=[dict(p, ms=p['ms'] * share, tolerance_ms=p['tolerance_ms'] * share) for p in check['parts']],
            )
            ports = here
        elif steps and not left:
            continue
        result = judge(
            check,
            answer,
            ports,
            bool(transform.LOSSY & set(steps)),
            TRANSFORMED_SLACK if steps else 0.0,
            cut_ms,
        )
        if result.claims and ports in claimed:
            result.claims = []  # another check has counted these spans
        claimed += [ports] if result.claims else []
        out.append((check, result))
    return out


def line(case, check, result):
    """One check in words."""
    wanted = '|'.join(check['dominant']) or check['kind']
    parts = ', '.join(
        f'{"" if hit else "NOT "}{got:.1f} of {ms:.1f}±{tolerance:.1f} ms' for hit, got, ms, tolerance in result.parts
    )
    tail = (' WRONG SIDE' if result.side is False else '') + ''.join(f' FORBIDDEN {f}' for f in result.forbidden)
    return f'{str(case):<52} {result.verdict or "-":<9} {result.got or "-":<24} want {wanted:<32} {parts}{tail}'


def cases_of(args):
    """The labelled captures that were asked for: of the sets or of folders, and made cases; one that is in two counts once."""
    found = {}
    folders = args.folder or [os.path.join(folder, 'lab') for _, folder in common.sets(args.set)]
    for folder in folders + args.cases:
        for case in common.labelled_in(folder):
            if (not args.only or re.search(args.only, case.name)) and args.half in (None, case.half):
                found.setdefault((case.name, case.end), case)
    return list(found.values())


def run(args, steps):
    """The Score over the chosen captures."""
    score = Score()
    with concurrent.futures.ThreadPoolExecutor(common.overlap(args.jobs)) as pool:
        waiting = [(c, pool.submit(examine, args.bin, c, steps)) for c in cases_of(args)]
        for case, future in waiting:
            score.runs += 1
            try:
                results = future.result()
            except (common.Failed, KeyError, TypeError, AttributeError) as error:
                score.failed.append(f'{case}: {error!r}')
                continue
            for check, result in results:
                score.add(case, check, result)
                off = (
                    result.verdict not in (None, RIGHT)
                    or result.forbidden
                    or result.side is False
                    or not all(hit for hit, *_ in result.parts)
                )
                if case.half == 'score' and not args.tell_scored:
                    continue
                if args.verbose or (off and not args.quiet):
                    print(line(case, check, result))
    for text in score.failed:
        print(f'NO ANSWER {text}')
    return score


# ---------------------------------------------------------------- self-test


def self_test():
    """The rules of judging on made-up answers."""

    def answer(budget, quality=()):
        at, spans = 0, []
        for cause, side, ms in budget:
            spans.append(
                {
                    'cause': cause,
                    'side': side,
                    'start_ns': at,
                    'end_ns': at + int(ms * 1e6),
                    'confidence': 0.85,
                    'alternatives': [{'cause': 'delayed_ack'}],
                }
            )
            at += int(ms * 1e6)
        return {
            'connections': [
                {
                    'client': '10.0.0.1:5',
                    'server': '10.0.0.2:9',
                    'setup': None,
                    'quality': list(quality),
                    'exchanges': [{'spans': spans}],
                    'exchanges_omitted': None,
                }
            ],
            'capture': {'warnings': []},
        }

    cause = {
        'connections': 'all',
        'kind': 'cause',
        'dominant': ['nagle'],
        'weak': ['delayed_ack'],
        'side': ['client'],
        'parts': [{'causes': ['nagle'], 'ms': 100, 'tolerance_ms': 5}],
        'forbidden': ['cork'],
    }
    control = {
        'connections': 'all',
        'kind': 'clean',
        'dominant': [],
        'parts': [],
        'forbidden': [],
        'exempt': [],
        'inherent': ['path_delay'],
    }

    def verdict(check, budget, **more):
        return judge(check, answer(budget, more.pop('quality', ())), more.pop('ports', 'all'), **more)

    good = verdict(cause, [('nagle', 'client', 100), ('path_delay', None, 50)])
    assert good.verdict == RIGHT and good.side and good.parts[0][0] and good.credit == 100
    assert verdict(cause, [('nagle', 'server', 100)]).side is False
    assert verdict(cause, [('nagle', 'client', 90)]).parts[0][0] is False
    assert verdict(cause, [('nagle', 'client', 90)], slack=0.1).parts[0][0] is True
    assert verdict(cause, [('delayed_ack', 'server', 100)]).verdict == WEAK
    assert verdict(cause, [('send_buffer', 'client', 100)]).verdict == WRONG
    assert verdict(cause, [('send_buffer', 'client', 100)], lossy=True, quality=['snaplen']).verdict == WRONG
    assert verdict(cause, [('path_delay', None, 100)]).verdict == MISSING
    assert verdict(cause, [('path_delay', None, 100)], lossy=True).verdict == MISSING
    assert verdict(cause, [('path_delay', None, 100)], lossy=True, quality=['snaplen']).verdict == WEAKENED
    assert verdict(cause, [('nagle', 'client', 100), ('cork', 'client', 4)]).forbidden
    assert not verdict(cause, [('nagle', 'client', 100), ('cork', 'client', 1)]).forbidden
    assert verdict(cause, [('nagle', 'client', 100)], ports=[6]).verdict == MISSING
    assert verdict(control, [('path_delay', None, 95), ('nagle', 'client', 4)]).verdict == RIGHT
    assert verdict(control, [('path_delay', None, 94), ('nagle', 'client', 6)]).verdict == WRONG
    assert verdict(control, [('path_delay', None, 80), ('client_think', 'client', 20)]).verdict == MISSING
    words = {'end': 'client', 'origin': 'lab', 'half': 'learn', 'family': 'x', '__str__': lambda s: 'x'}
    score, case = Score(), type('Case', (), words)()
    score.add(case, cause, good)
    assert (score.bins[3].ns, score.bins[3].right) == (150e6, 150e6) and score.measures()['dominant-client'] == 1
    # what is said beyond the truth is wrong, which an alternative may explain; who says unexplained claims nothing
    sums = [{'causes': [c], 'ms': ms, 'tolerance_ms': 0} for c, ms in (('nagle', 60), ('delayed_ack', 25))]
    more = verdict(dict(cause, sums=sums), [('nagle', 'client', 100), ('unexplained', None, 10)]).claims
    assert [round(c.right / 1e6) for c in more] == [60, 0] and [c.else_right for c in more] == [25e6, 0]
    score.add(case, cause, type(good)())
    score.bin_of(more[1]).add(more[1])
    assert score.open.ns == 10e6 and score.open.right == 0
    assert misses({'dominant': 0.5, 'wrong': 3}, {'min-dominant': 0.6, 'max-wrong': 3}) == [
        'dominant 0.5, wanted at least 0.6'
    ]
    assert misses({'dominant': None, 'wrong': 4}, {'min-dominant': 0.6, 'max-wrong': 3})[1:] == [
        'wrong 4, wanted at most 3'
    ]
    got = raised({'min-dominant': 0.5, 'max-wrong': 3}, {'dominant': 0.61234, 'wrong': 4})
    assert got == {'min-dominant': 0.612, 'max-wrong': 3}, got
    print('accuracy: self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--set', choices=['bundled', 'shared', 'all'], default='all')
    parser.add_argument(
        '--folder',
        action='append',
        default=[],
        help='labelled captures below this folder instead, as `tcpwhy lab` keeps them',
    )
    parser.add_argument('--only', help='regular expression on the experiment')
    parser.add_argument('--transform', default='', help='steps of transform.py joined by +')
    parser.add_argument('--verbose', action='store_true', help='every check, not only those that are off')
    parser.add_argument('--quiet', action='store_true', help='the table only')
    parser.add_argument('--jobs', type=int)
    parser.add_argument('--json', help='write the measures to this file')
    parser.add_argument(
        '--cases', action='append', default=[], metavar='DIR', help='made cases (scripts/cases.py) beside the others'
    )
    parser.add_argument('--half', choices=['learn', 'score'])
    parser.add_argument('--families', action='store_true', help='a table by family of made cases')
    parser.add_argument('--tell-scored', action='store_true', help='what is off in the half that is only scored, too')
    parser.add_argument('--floor', help='a file of thresholds')
    parser.add_argument('--raise-floor', action='store_true', help='write better measures into that file')
    parser.add_argument('--self-test', action='store_true')
    names = ['min-' + n for n in ('dominant', 'dominant-client', 'dominant-server', 'ms', 'time', 'side', 'clean')]
    names += ['max-' + n for n in ('unexplained', 'forbidden', 'wrong', 'failed')]
    for name in names:
        parser.add_argument('--' + name, type=float)
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    try:
        steps = transform.parse(args.transform)
    except ValueError as error:
        parser.error(str(error))
    score = run(args, steps)
    if steps:
        print(f'after {" + ".join(steps)}:')
    score.print(args.families)
    measures = score.measures()
    if args.json:
        with open(args.json, 'w', encoding='utf8') as f:
            json.dump(measures, f, indent=1)
    off = misses(measures, {n: getattr(args, n.replace('-', '_')) for n in names})
    if args.floor:
        with open(args.floor, encoding='utf8') as f:
            floor = json.load(f)
        off += misses(measures, floor)
        better = raised(floor, measures)
        if args.raise_floor and better != floor:
            with open(args.floor, 'w', encoding='utf8') as f:
                json.dump(better, f, indent=1)
                f.write('\n')
            print(f'{args.floor} raised')
    if score.runs == 0:
        off.append('no labelled capture found')
    if score.failed and args.max_failed is None:
        off.append(f'{len(score.failed)} captures without an answer')
    for text in off:
        print(f'MISSED {text}')
    return 1 if off else 0


if __name__ == '__main__':
    sys.exit(main())
