"""The table of all verdicts: by end, cause, origin and family; its measures, and thresholds for them."""

import math

import common

from answers.verdicts import MISSING, RIGHT, WEAK, WEAKENED, WRONG

BINS = [(0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01)]


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


class Bin:
    """Sums of claims of one confidence."""

    def __init__(self):
        self.ns = self.right = self.else_right = 0

    def add(self, claim):
        self.ns += claim.ns
        self.right += claim.right
        self.else_right += claim.else_right

    def row(self):
        wrong = self.ns - self.right
        right = f'{100 * self.right / self.ns:10.1f} %' if self.ns else f'{"-":>12}'
        rest = f'{100 * self.else_right / wrong:21.1f} %' if wrong > 1 else f'{"-":>23}'
        return f'{self.ns / 1e9:16.3f} s {right} {rest}'


class Score:
    """The whole table."""

    def __init__(self):
        self.ends, self.causes, self.all = {}, {}, Tally()
        self.origins, self.halves, self.families = {}, {}, {}
        self.clean, self.unexplained, self.forbidden, self.failed, self.runs = [0, 0], [0, 0], [], [], 0
        self.bins = [Bin() for _ in BINS]
        self.open = Bin()  # what is said to be unexplained

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
        for claim in result.claims:
            self.bin_of(claim).add(claim)

    def bin_of(self, claim):
        """Where a claim counts. Who says that time is unexplained claims nothing but that one of two names is right."""
        if claim.cause == common.UNEXPLAINED:
            return self.open
        return next(b for b, (low, high) in zip(self.bins, BINS) if max(claim.confidence, 0.5) < high)

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
        print('\nconfidence    time in such spans   of it right   of the rest an alternative is')
        for (low, high), sums in zip(BINS, self.bins):
            print(f'{low:.1f} to {min(high, 1.0):.1f} {sums.row()}')
        print(f'unexplained{self.open.row()}')
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
