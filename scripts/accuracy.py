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
Calibration: of the time in spans with a confidence in a bin, the share whose cause is acceptable.
"""

import argparse
import concurrent.futures
import json
import math
import os
import re
import sys
import tempfile

import capfile
import common
import transform
from answers.packets import endpoint

AVOIDABLE_FLOOR = 0.05  # below this share a connection has no dominant avoidable cause
CLEAN_AVOIDABLE, CLEAN_INHERENT = 0.05, 0.90
FORBIDDEN = 0.02
TRANSFORMED_SLACK = 0.10  # of the labelled time, on top of its tolerance
BINS = [(0.0, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01)]
RIGHT, WEAK, WEAKENED, WRONG, MISSING = 'right', 'weak', 'weakened', 'wrong', 'missing'


# ---------------------------------------------------------------- one answer


class Time:
    """Nanoseconds of setup and exchanges, by cause and side, over some connections."""

    def __init__(self, connections):
        self.by_cause, self.by_side, self.total = {}, {}, 0
        for c in connections:
            for span in spans_of(c):
                self.add(span['cause'], span['side'], span['end_ns'] - span['start_ns'])
            for cause, time in ((c['exchanges_omitted'] or {}).get('budget') or {}).items():
                self.add(cause, None, time)

    def add(self, cause, side, time):
        self.by_cause[cause] = self.by_cause.get(cause, 0) + time
        self.by_side[cause, side] = self.by_side.get((cause, side), 0) + time
        self.total += time

    def of(self, causes):
        return sum(self.by_cause.get(c, 0) for c in causes)

    def largest(self, allowed):
        """The cause with the most time among those allowed, and its time."""
        pool = [(time, cause) for cause, time in self.by_cause.items() if allowed(cause) and time > 0]
        return max(pool)[::-1] if pool else (None, 0)

    def side_of(self, cause):
        pool = [(time, str(side)) for (c, side), time in self.by_side.items() if c == cause]
        return max(pool)[1] if pool else None


def spans_of(c):
    """Spans of setup and exchanges."""
    for part in ([c['setup']] if c['setup'] else []) + c['exchanges']:
        yield from part['spans']


class Result:
    """The outcome of one check."""

    def __init__(self):
        self.verdict = self.got = self.side = None  # side: True, False, or None where not asked
        self.parts = []  # (hit, got ms, wanted ms, tolerance ms)
        self.forbidden = []
        self.credit = self.wanted = 0.0  # ms on acceptable causes, of labelled ms
        self.unexplained = self.total = 0
        self.spans = []  # (confidence, ns, acceptable)


def client_port(c):
    return endpoint(c['client'])[1]


def judge(check, answer, ports, lossy=False, slack=0.0, cut_ms=0.0):
    """One check of a label. `ports`: client ports to look at, or 'all'; `cut_ms`: time that the capture lost in front."""
    result = Result()
    chosen = [c for c in answer['connections'] if ports == 'all' or client_port(c) in ports]
    complete = bool(chosen) if ports == 'all' else {client_port(c) for c in chosen} >= set(ports)
    result.wanted = sum(p['ms'] for p in check['parts'])
    asked = check['kind'] in ('cause', 'dominant', 'clean')
    if not complete:
        result.verdict, result.got = (MISSING if asked else None), 'connection not found'
        result.parts = [(False, 0.0, p['ms'], p['tolerance_ms']) for p in check['parts']]
        return result
    time = Time(chosen)
    result.total, result.unexplained = time.total, time.of([common.UNEXPLAINED])
    if check['kind'] == 'clean':
        clean(check, time, result)
    elif asked:
        dominant(check, time, result)
    warned = any(c['quality'] for c in chosen) or bool(answer['capture']['warnings'])
    blamed = result.verdict == WRONG and common.SPAN_CAUSES.get(result.got) == 'T'
    if lossy and warned and result.verdict in (MISSING, WRONG) and not blamed:
        result.verdict, result.wanted = WEAKENED, 0.0
    else:
        for part in check['parts']:
            got, tolerance = time.of(part['causes']) / 1e6, part['tolerance_ms'] + slack * part['ms']
            hit = part['ms'] - tolerance - cut_ms <= got <= part['ms'] + tolerance
            result.parts.append((hit, got, part['ms'], tolerance))
            result.credit += max(0.0, min(got, part['ms']) - max(0.0, got - part['ms'] - tolerance))
    for cause in check['forbidden']:
        if time.of([cause]) > FORBIDDEN * time.total:
            result.forbidden.append(f'{cause} {time.of([cause]) / 1e6:.1f} ms')
    fine = acceptable(check)
    result.spans = (
        [(s['confidence'], s['end_ns'] - s['start_ns'], s['cause'] in fine) for c in chosen for s in spans_of(c)]
        if asked
        else []
    )
    return result


def acceptable(check):
    """Causes that the label allows for this check's connections."""
    fine = set(check['dominant']) | set(check.get('inherent') or []) | set(common.INHERENT)
    for part in check['parts']:
        fine |= set(part['causes'])
    return fine - set(check['forbidden'])


def dominant(check, time, result):
    """The largest cause against the label."""
    if check['kind'] == 'cause':
        # a labelled cause may be small beside what the applications waited: half of it is enough then
        floor = AVOIDABLE_FLOOR * time.total
        own = [p['ms'] * 1e6 for p in check['parts'] if set(p['causes']) & set(check['dominant'])]
        floor = min([floor] + [ms / 2 for ms in own])
        cause, most = time.largest(lambda c: common.SPAN_CAUSES.get(c) == 'T')
    else:
        floor = 1
        cause, most = time.largest(lambda c: True)
    result.got = cause or 'none'
    if cause is None or most < floor or (cause == common.UNEXPLAINED and cause not in check['dominant']):
        result.verdict = MISSING
        return
    result.verdict = RIGHT if cause in check['dominant'] else WEAK if cause in (check.get('weak') or []) else WRONG
    if check.get('side') and result.verdict != WRONG:
        result.side = time.side_of(cause) in check['side']


def clean(check, time, result):
    """A control."""
    cause, most = time.largest(lambda c: common.SPAN_CAUSES.get(c) == 'T' and c not in (check.get('exempt') or []))
    if most > CLEAN_AVOIDABLE * time.total:
        result.verdict, result.got = WRONG, cause
    elif time.of(check['inherent']) >= CLEAN_INHERENT * time.total:
        result.verdict, result.got = RIGHT, 'clean'
    else:
        share = 100 * time.of(check['inherent']) / max(time.total, 1)
        result.verdict, result.got = MISSING, f'inherent {share:.0f} %'


# ---------------------------------------------------------------- all captures


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
    out = []
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
        out.append(
            (
                check,
                judge(
                    check,
                    answer,
                    ports,
                    bool(transform.LOSSY & set(steps)),
                    TRANSFORMED_SLACK if steps else 0.0,
                    cut_ms,
                ),
            )
        )
    return out


class Tally:
    """Sums for one row of the table."""

    def __init__(self):
        self.verdicts = dict.fromkeys((RIGHT, WEAK, WEAKENED, WRONG, MISSING), 0)
        self.parts = [0, 0]
        self.sides = [0, 0]
        self.time = [0.0, 0.0]
        self.forbidden = 0

    def add(self, result):
        if result.verdict:
            self.verdicts[result.verdict] += 1
        self.parts[0] += sum(hit for hit, *_ in result.parts)
        self.parts[1] += len(result.parts)
        if result.side is not None:
            self.sides[0] += result.side
            self.sides[1] += 1
        self.time[0] += result.credit
        self.time[1] += result.wanted
        self.forbidden += len(result.forbidden)

    def dominant(self):
        v = self.verdicts
        count = sum(v.values())
        return (v[RIGHT] + (v[WEAK] + v[WEAKENED]) / 2) / count if count else None

    def row(self, name):
        shares = [self.dominant()] + [a / b if b else None for a, b in (self.parts, self.time, self.sides)]
        cells = ''.join(f'{100 * s:8.1f}%' if s is not None else '        -' for s in shares)
        return f'{name:<24}' + ''.join(f'{n:9}' for n in self.verdicts.values()) + cells + f'{self.forbidden:11}'


HEADING = (
    f'{"":<24}'
    + ''.join(f'{n:>9}' for n in (RIGHT, WEAK, WEAKENED, WRONG, MISSING, 'dominant', 'ms', 'time', 'side'))
    + f'{"forbidden":>11}'
)


class Score:
    """The whole table."""

    def __init__(self):
        self.ends, self.causes, self.all = {}, {}, Tally()
        self.origins, self.halves, self.families = {}, {}, {}
        self.clean, self.unexplained, self.forbidden, self.failed, self.runs = [0, 0], [0, 0], [], [], 0
        self.bins = [[0, 0] for _ in BINS]

    def add(self, case, check, result):
        name = check['dominant'][0] if check['dominant'] else check['kind']
        groups = ((self.ends, case.end), (self.causes, name), (self.origins, case.origin), (self.families, case.family))
        if case.origin != 'lab':
            groups += ((self.halves, case.half),)
        for tally in [tallies.setdefault(key, Tally()) for tallies, key in groups] + [self.all]:
            tally.add(result)
        if check['kind'] == 'clean':
            self.clean[0] += result.verdict == RIGHT
            self.clean[1] += 1
        self.unexplained[0] += result.unexplained
        self.unexplained[1] += result.total
        self.forbidden += [f'{case}: {f}' for f in result.forbidden]
        for sure, time, fine in result.spans:
            for n, (low, high) in enumerate(BINS):
                if low <= sure < high:
                    self.bins[n][0] += time * fine
                    self.bins[n][1] += time

    def print(self, families=False):
        print(HEADING)
        for end in sorted(self.ends):
            print(self.ends[end].row(end))
        print()
        for cause in sorted(self.causes, key=lambda c: (-sum(self.causes[c].verdicts.values()), c)):
            print(self.causes[cause].row(cause))
        print()
        if families:
            for family in sorted(self.families):
                print(self.families[family].row(family))
            print()
        for tallies in (self.origins, self.halves):
            if set(tallies) - {'lab'}:
                for name in sorted(tallies):
                    print(
                        tallies[name].row({'learn': 'half to learn from', 'score': 'half only scored'}.get(name, name))
                    )
                print()
        print(self.all.row('all'))
        print('\nconfidence    time in such spans   of it right')
        for (low, high), (right, total) in zip(BINS, self.bins):
            share = f'{100 * right / total:10.1f} %' if total else '         -'
            print(f'{low:.1f} to {min(high, 1.0):.1f} {total / 1e9:16.3f} s {share}')
        share = 100 * self.unexplained[0] / max(self.unexplained[1], 1)
        print(
            f'\nclean controls {self.clean[0]} of {self.clean[1]}; forbidden claims {len(self.forbidden)}; '
            f'unexplained {share:.2f} %; captures {self.runs}, of these without an answer {len(self.failed)}'
        )

    def measures(self):
        """What thresholds are about."""

        def share(pair):
            return pair[0] / pair[1] if pair[1] else None

        dominant = {end: t.dominant() for end, t in self.ends.items()}
        return {
            'dominant': self.all.dominant(),
            'dominant-client': dominant.get('client'),
            'dominant-server': dominant.get('server'),
            'ms': share(self.all.parts),
            'time': share(self.all.time),
            'side': share(self.all.sides),
            'clean': share(self.clean),
            'unexplained': share(self.unexplained),
            'forbidden': len(self.forbidden),
            'wrong': self.all.verdicts[WRONG],
            'failed': len(self.failed),
        }


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
                {'cause': cause, 'side': side, 'start_ns': at, 'end_ns': at + int(ms * 1e6), 'confidence': 0.85}
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
    assert score.bins[4] == [150e6, 150e6] and score.measures()['dominant-client'] == 1
    assert misses({'dominant': 0.5, 'wrong': 3}, {'min-dominant': 0.6, 'max-wrong': 3}) == [
        'dominant 0.5, wanted at least 0.6'
    ]
    assert misses({'dominant': None, 'wrong': 4}, {'min-dominant': 0.6, 'max-wrong': 3})[1:] == [
        'wrong 4, wanted at most 3'
    ]
    got = raised({'min-dominant': 0.5, 'max-wrong': 3}, {'dominant': 0.61234, 'wrong': 4})
    assert got == {'min-dominant': 0.612, 'max-wrong': 3}, got
    print('accuracy: self-test passed')


def misses(measures, thresholds):
    """Thresholds that are not met, in words."""
    out = []
    for name, limit in thresholds.items():
        if limit is None:
            continue
        bound, _, measure = name.partition('-')
        got = measures[measure]
        if got is None or (got < limit - 1e-9 if bound == 'min' else got > limit + 1e-9):
            said = 'nothing' if got is None else round(got, 4)
            out.append(f'{measure} {said}, wanted at {"least" if bound == "min" else "most"} {limit:g}')
    return out


def raised(floor, measures):
    """A floor with every threshold that the measures beat moved up to them; none moves down."""
    out = {}
    for name, limit in floor.items():
        bound, _, measure = name.partition('-')
        got = measures[measure]
        if got is None:
            out[name] = limit
        elif bound == 'min':
            out[name] = max(limit, math.floor(got * 1000) / 1000)
        else:
            out[name] = min(limit, math.ceil(got * 1000) / 1000 if isinstance(got, float) else got)
    return out


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
