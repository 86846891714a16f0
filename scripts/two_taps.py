#!/usr/bin/env python3
"""How right `explain` is with both taps of each run, beside each tap alone (labels: captures/README.md).

    scripts/two_taps.py --bin target/release/tcpwhy [--folder DIR]

Both taps are explained as one, on the client's clock, so that answer is held against the label of the client's tap.
The labels of the two ends do not ask the same: the waits of a full accept queue lie wholly at the server's tap, and of a lost
request it is asked nothing. So a second table holds each answer only to what the labels of both ends ask: checks that are
alike, of each the parts of the same causes (in the column `time` the lesser of the two labels is what a part weighs, for
every tap), and the causes that both forbid.
Where a run keeps the link's log (`meta.json` of `tcpwhy lab dataset`), the packets that are said to be lost on each
way are counted against it.
"""

import argparse
import json
import os

import accuracy
import common
from answers.score import HEADING, Score
from answers.verdicts import credited


def both(binary, case):
    """The answer from both captures of a run."""
    folder = os.path.dirname(case.path)
    server = os.path.join(folder, os.path.basename(case.path).replace('client', 'server'))
    answer, _ = common.explain(binary, case.path, '--exchanges', 'all', server)
    if answer is None:
        raise common.Failed('refused')
    return answer


def lost(answer):
    """[to the server, to the client], as the answer says; None where it says nothing."""
    taps = [c.get('taps') for c in answer['connections']]
    if not taps or any(t is None or t['lost'] is None for t in taps):
        return None
    return [sum(t['lost'][end] for t in taps) for end in ('client', 'server')]


def logged(case):
    """The same from the link's log, if it was kept."""
    log = os.path.join(os.path.dirname(case.path), 'meta.json')
    if not os.path.exists(log):
        return None
    with open(log, encoding='utf8') as f:
        packets = json.load(f)['lost']
    return [sum(p['up'] for p in packets), sum(not p['up'] for p in packets)]


def common_to(checks, others):
    """[(check, what each of its parts weighs)] of those that the other end's label has too, with only what both ask."""

    def milder(check):
        # Where one end asks for the largest of all causes and the other for the largest avoidable one, both ask the second.
        return dict(check, kind='cause') if check['kind'] == 'dominant' and kinds == {'cause', 'dominant'} else check

    out, left = [], list(others)
    kinds = {c['kind'] for c in (*checks, *others)}
    for check in map(milder, checks):
        like = next(
            (o for o in left if all(milder(o)[k] == check[k] for k in ('kind', 'dominant', 'connections'))), None
        )
        if like is None:
            continue
        left.remove(like)
        asked = {tuple(p['causes']): p['ms'] for p in like['parts']}
        parts = [p for p in check['parts'] if tuple(p['causes']) in asked]
        weights = [min(p['ms'], asked[tuple(p['causes'])]) for p in parts]
        forbidden = [f for f in check['forbidden'] if f in like['forbidden']]
        out.append((dict(check, parts=parts, forbidden=forbidden), weights))
    return out


def weighed(result, weights):
    """The result with parts that weigh this much in the time, whatever this end's label has of them."""
    result.wanted = sum(weights)
    shares = [credited(got, ms, tolerance) / ms if ms else 1.0 for _, got, ms, tolerance in result.parts]
    result.credit = sum(share * weight for share, weight in zip(shares, weights))
    return result


def run(args):
    """Scores of the taps alone and of both, also of what both labels ask, and how often losses are placed as the log says."""
    scores, alike, placed, failed = {}, {}, [0, 0], []
    folders = args.folder or [os.path.join(folder, 'lab') for _, folder in common.sets('bundled')]
    cases = [c for folder in folders for c in common.labelled_in(folder)]
    labels = {(c.name, c.end): c.checks for c in cases}
    asked = [(c, c.end) for c in cases] + [(c, 'both') for c in cases if c.end == 'client']

    def answer(case, what):
        if what == 'both':
            return both(args.bin, case)
        return common.explain(args.bin, case.path, '--exchanges', 'all')[0]

    for case, what, said in common.answered(args.jobs, asked, answer, failed):
        score = scores.setdefault(what, Score())
        for check in case.checks:
            result = accuracy.judge(check, said, check['connections'], False, 0.0, 0.0)
            score.add(case, check, result)
            off = result.verdict not in (None, 'right') or not all(hit for hit, *_ in result.parts)
            if what == 'both' and args.verbose and off:
                print(accuracy.line(case, check, result))
        other = labels.get((case.name, 'server' if case.end == 'client' else 'client'), [])
        for check, weights in common_to(case.checks, other):
            result = accuracy.judge(check, said, check['connections'], False, 0.0, 0.0)
            alike.setdefault(what, Score()).add(case, check, weighed(result, weights))
        log = logged(case) if what == 'both' else None
        if log is not None:
            placed[0] += lost(said) == log
            placed[1] += 1
            if lost(said) != log:
                print(f'{case}: lost {lost(said)}, the log says {log}')
    return scores, alike, placed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument(
        '--folder', action='append', default=[], help='runs below this folder instead of the bundled ones'
    )
    parser.add_argument('--jobs', type=int)
    parser.add_argument('--verbose', action='store_true', help='what is off with both taps')
    args = parser.parse_args()
    scores, alike, placed, failed = run(args)
    for title, table in (('each held to the label of its tap', scores), ('what the labels of both ends ask', alike)):
        print(title)
        print(HEADING)
        for what in (w for w in ('client', 'server', 'both') if w in table):
            score = table[what]
            print(score.all.row(what), f'  clean {score.clean[0]} of {score.clean[1]}')
    if placed[1]:
        print(f'losses placed as the link logged them, packet for packet: {placed[0]} of {placed[1]} runs')
    for text in failed:
        print(f'NO ANSWER {text}')
    return 1 if failed or placed[0] < placed[1] else 0


if __name__ == '__main__':
    raise SystemExit(main())
