#!/usr/bin/env python3
"""Writes labelled captures of conversations whose causes are known, for scripts/accuracy.py (docs/cases.md).

    scripts/cases.py [OUT]              all cases, default target/cases; --sample the small set of `make test`
    scripts/cases.py --only REGEX       some of them
    scripts/cases.py --list             names, rules, half; --looked-at NAME ... names to move to the half to learn from
    scripts/cases.py --drawn SEED OUT   conversations drawn at random by that seed, which nobody has seen, instead
    scripts/cases.py --self-test        the simulation's own rules

OUT/NAME/label.json has the labels, `rules`, `family`, `origin` (synth, rewritten, model) and `half`: `learn` or `score`.
The half is drawn by the seed below from the name alone, so a new case moves no other. Who looks at a case of the half that is
only scored writes its name into scripts/cases_seen.txt: from then on it is one to learn from.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sys

import capfile
import common
from families import drawn, files, kernels, modelled, other, rewritten, timers, windows, workloads
from synth import habits, sim, stack, truth, wire

SEED = 20261122
ENDS = ('client', 'server')
SEEN = os.path.join(common.ROOT, 'scripts', 'cases_seen.txt')
SAMPLE = os.path.join(common.ROOT, 'scripts', 'cases_sample.txt')


def draw(name):
    """A number that belongs to a name for ever."""
    return int.from_bytes(hashlib.sha256(f'{SEED}:{name}'.encode()).digest()[:8], 'big')


def listed(path):
    """Names in a file, one a line; what follows a # is a remark."""
    with open(path, encoding='utf8') as f:
        return {line.split('#')[0].strip() for line in f} - {''}


def half(name, looked_at):
    """`learn` or `score`. What was drawn at random is there to be scored."""
    if name.startswith('drawn-'):
        return 'learn' if name in looked_at else 'score'
    return 'learn' if name in looked_at or draw(name) & 1 else 'score'


def simulated():
    """(family, Case) of all simulated families."""
    return [
        (make.__name__, case)
        for module in (windows, timers, other, kernels, files, workloads)
        for make in module.FAMILIES
        for case in make()
    ]


# ---------------------------------------------------------------- one simulated case


def conversation(case):
    """A Sim that has run."""
    run = sim.Sim(draw(case.name), *case.links)
    ends = tuple(
        stack.Endpoint(run, side, habits, app())
        for side, habits, app in zip((0, 1), (case.client, case.server), case.apps)
    )
    ends[0].peer, ends[1].peer = ends[1], ends[0]
    run.ends = ends
    run.at(0, ends[0].connect)
    run.run()
    return run


class Untrue(Exception):
    """A case that did not turn out as it was meant."""


def simulate(family, case, out):
    """Writes one case; gives its packets."""
    run, chance = conversation(case), random.Random(draw(case.name) + 1)
    trip = sum(link.delay for link in case.links)
    rated = any(link.rate for link in case.links)
    port = 20_000 + draw(case.name) % 40_000
    hosts = tuple(wire.Host(chance, side, (port, 80)[side]) for side in (0, 1))
    ends, written = {}, 0
    for tap in case.taps:
        told = truth.tell(run, tap)
        verify(case, told)
        checks = refused_checks(run, tap) if case.spec.get('refused') else truth.label(told, trip, rated, case.spec)
        for check in checks:
            check['connections'] = [port]
            check['basis'] = f'simulated: {", ".join(f"{c} {t / sim.MS:.1f} ms" for c, t in told.time.items())}'
        packets = wire.packets(run, tap, hosts, case.contents, chance, **case.wire)
        for number, earlier in enumerate(case.earlier):
            packets = before(earlier.but(name=f'{case.name}/{number}'), hosts, tap, chance, packets)
        ends[ENDS[tap]] = {
            'file': f'cap.{ENDS[tap]}.pcap',
            'packets': len(packets),
            'connections': 1 + len(case.earlier),
            'checks': checks,
        }
        written += len(packets)
        store(out, case.name, ENDS[tap], packets)
    label(out, case.name, family, 'synth', case.rules, ends)
    return written


def before(case, hosts, tap, chance, packets):
    """The packets of an earlier conversation of the same hosts, a second before the first of `packets`."""
    run = conversation(case)
    port = wire.Host(chance, 0, 20_000 + draw(case.name) % 40_000)
    port.address = hosts[0].address
    extra = wire.packets(run, tap, (port, hosts[1]), case.contents, chance)
    shift = packets[0].time - extra[-1].time - sim.SECOND
    return [p._replace(time=p.time + shift) for p in extra] + packets


def verify(case, told):
    """Whether the simulation shows what the case is about."""
    if not case.meant or not told.time:
        return
    total = told.total()
    if case.spec.get('kind') == 'dominant':
        most, wanted = max(told.time, key=lambda c: told.time[c]), case.spec['dominant']
    else:
        avoidable = {c: t for c, t in told.time.items() if c in common.AVOIDABLE and t > truth.SMALL * total}
        most, wanted = max(avoidable, key=lambda c: avoidable[c]) if avoidable else 'clean', case.meant
    if most not in wanted:
        raise Untrue(
            f'{case.name}: meant {wanted}, got {most}: '
            + ', '.join(f'{c} {t / sim.MS:.1f}' for c, t in told.time.items())
        )


def refused_checks(run, tap):
    """A reset answered each SYN: all of it is `refused` (rule 11)."""
    times = [q.time for q in run.taps[tap]]
    took = (times[-1] - times[0]) / sim.MS
    rest = [c for c in common.AVOIDABLE if c not in ('refused', 'syn_retransmit')]
    return [
        {
            'kind': 'dominant',
            'dominant': ['refused'],
            'weak': [],
            'side': None,
            'forbidden': rest,
            'exempt': [],
            'parts': [{'causes': ['refused'], 'ms': round(took, 3), 'tolerance_ms': round(0.05 * took + 1, 3)}],
        }
    ]


# ---------------------------------------------------------------- files


def store(out, name, end, packets):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    capfile.write(os.path.join(folder, f'cap.{end}.pcap'), packets, snaplen=wire.SNAP + 14)


KINDS = ('cause', 'dominant', 'clean', 'any')


def well_formed(ends):
    """A label that scripts/accuracy.py can judge by: known kinds and causes, possible sums, nothing asked and forbidden."""
    for end, truth_of_end in ends.items():
        assert end in ENDS and truth_of_end['packets'] > 0 and truth_of_end['checks'], end
        for check in truth_of_end['checks']:
            assert check['kind'] in KINDS, check['kind']
            asked = set(check['dominant']) | set(check['weak']) | {c for p in check['parts'] for c in p['causes']}
            assert (asked | set(check['forbidden'])) <= set(common.SPAN_CAUSES), check
            assert not set(check['dominant']) & set(check['forbidden']), check
            assert not set(check['dominant']) & set(check['weak']), check
            assert bool(check['dominant']) == (check['kind'] in ('cause', 'dominant')), check
            assert all(p['ms'] >= 0 and p['tolerance_ms'] > 0 for p in check['parts']), check
            assert check['kind'] != 'clean' or set(common.INHERENT) <= set(check['inherent']), check


def label(out, name, family, origin, rules, ends):
    well_formed(ends)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    text = {
        'title': name,
        'family': family,
        'origin': origin,
        'rules': rules.split(),
        'half': half(name, label.looked_at),
        'truth': {'captures': ends},
    }
    with open(os.path.join(folder, 'label.json'), 'w', encoding='utf8') as f:
        json.dump(text, f, indent=1)


label.looked_at = frozenset()


def tasks(args):
    """[(name, family, function that writes it)] of what was asked for."""
    made = [('drawn', case) for case in drawn.drawn(args.drawn)] if args.drawn else simulated()
    found = [(case.name, family, lambda out, f=family, c=case: simulate(f, c, out)) for family, case in made]
    others = [] if args.drawn else [*rewritten.cases(), *(modelled.cases(args.bin) if args.bin else ())]
    for name, family, origin, rules, make in others:

        def write(out, name=name, family=family, origin=origin, rules=rules, make=make):
            ends = make(out, name, store)
            label(out, name, family, origin, rules, ends)
            return sum(end['packets'] for end in ends.values())

        found.append((name, family, write))
    doubled = {name for name, _, _ in found if [n for n, _, _ in found].count(name) > 1}
    assert not doubled, doubled
    if args.only:
        found = [t for t in found if re.search(args.only, t[0])]
    if args.sample:
        found = sample(found)
    return found


def sample(found):
    """The small set."""
    names = listed(SAMPLE)
    chosen = [t for t in found if t[0] in names]
    assert len(chosen) == len(names), names - {t[0] for t in chosen}
    assert all(half(name, label.looked_at) == 'learn' for name in names)
    return chosen


# ---------------------------------------------------------------- test


def self_test():
    """The simulation against figures that can be told by hand."""
    from families.base import Case, path, requests, transfer

    def told(apps, links, client=habits.LINUX, server=habits.LINUX, tap=0):
        return truth.tell(conversation(Case('x', '', apps, links, client, server)), tap).time

    ms = sim.MS
    one = told(requests(1, (200,), (2_000,), 30 * ms), path(20))
    assert abs(one['handshake'] - 20 * ms) < ms and abs(one['server_think'] - 30 * ms) < ms, one
    assert abs(one['path_delay'] - 20 * ms) < ms, one
    # 10, 20, 40 segments: 90,000 bytes are 63 of 1,448, three flights, two waits
    start = told(transfer([90_000]), path(50), habits.LINUX, habits.LINUX.but(window=300_000))
    assert abs(start['slow_start'] - 100 * ms) < 2 * ms, start
    # one segment of 536, acknowledged after 200 ms at most: each costs the trip and the delay
    lone = told(
        transfer([5 * 536]),
        path(10),
        habits.LINUX.but(
            initial=1, mss=536, timestamps=False, grow='none', nagle='off', probe=False, rto_min=sim.SECOND
        ),
        habits.WINDOWS,
    )
    assert 4 * 200 * ms < lone['delayed_ack'] < 4 * 220 * ms, lone
    # 2 Mbit/s carry 120,000 bytes in half a second
    link = told(transfer([120_000]), path(10, 2e6), habits.LINUX.but(initial=100), habits.LINUX.but(window=300_000), 1)
    assert abs(link['bandwidth'] - 490 * ms) < 25 * ms, link
    # Nagle: the second small segment waits for the delayed ACK of the first
    held = told(requests(1, (4, 100), (50,)), path(10), habits.LINUX, habits.WINDOWS_10)
    assert abs(held['nagle_delayed_ack'] - 52 * ms) < 4 * ms, held
    # the last segment is lost: SRTT and 200 ms
    tail = told(requests(1, (4,), (1_000,)), path(10, down={'drop': lambda p, n: p.payload > 0 and n == 0}))
    assert abs(tail['tail_loss_probe'] - 200 * ms) < 25 * ms, tail
    told = truth.tell(
        conversation(Case('x', '', requests(1, (4, 100), (50,)), path(10), habits.LINUX, habits.WINDOWS_10)), 0
    )
    checks = truth.label(told, 10 * ms, False, {})
    well_formed({'client': {'packets': 1, 'checks': checks}})
    assert checks[0]['dominant'] == ['nagle_delayed_ack'] and 'cork' in checks[0]['forbidden'], checks
    text = [half(f'case {n}', ()) for n in range(1000)]
    assert 450 < text.count('learn') < 550
    assert half('x', {'x'}) == 'learn'
    print('cases: self-test passed')


def is_control(folder):
    """Whether a case's tempting cause is not the truth: nothing avoidable is asked for, or something is only forbidden."""
    try:
        with open(os.path.join(folder, 'label.json'), encoding='utf8') as f:
            ends = json.load(f)['truth']['captures']
    except OSError:
        return False
    return all(not set(c['dominant']) & set(common.AVOIDABLE) for e in ends.values() for c in e['checks'])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', nargs='?', default=os.path.join(common.ROOT, 'target', 'cases'))
    parser.add_argument(
        '--bin',
        default=common.BINARY if os.path.exists(common.BINARY) else None,
        help='the program, for the cases that its model writes',
    )
    parser.add_argument('--only', help='regular expression on the names')
    parser.add_argument('--sample', action='store_true', help='the small set')
    parser.add_argument('--drawn', metavar='SEED', help='random conversations of this seed')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    label.looked_at = frozenset(listed(SEEN))
    found = tasks(args)
    if args.list:
        print('\n'.join(f'{name:<44}{family:<20}{half(name, label.looked_at)}' for name, family, _ in found))
        return 0
    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    packets, bad = 0, []
    for name, _, write in found:
        try:
            packets += write(args.out)
        except (Untrue, common.Failed) as error:
            bad.append(str(error))
            shutil.rmtree(os.path.join(args.out, name), ignore_errors=True)
    controls = sum(is_control(os.path.join(args.out, name)) for name, _, _ in found)
    halves = [half(name, label.looked_at) for name, _, _ in found]
    print(
        f'{len(found)} cases, {halves.count("learn")} to learn from, {halves.count("score")} only scored; '
        f'{controls} look-alikes; {packets} packets '
        f'in {common.shown(args.out)}'
    )
    for text in bad:
        print(f'UNTRUE {text}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
