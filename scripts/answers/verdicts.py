"""One answer against a label: is its largest cause the right one, how many milliseconds lie where they should."""

from typing import NamedTuple

import common

from answers.packets import endpoint

AVOIDABLE_FLOOR = 0.05  # below this share a connection has no dominant avoidable cause
CLEAN_AVOIDABLE, CLEAN_INHERENT = 0.05, 0.90
FORBIDDEN = 0.02
RIGHT, WEAK, WEAKENED, WRONG, MISSING = 'right', 'weak', 'weakened', 'wrong', 'missing'


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
        self.claims = []  # Claim


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
            result.credit += credited(got, part['ms'], tolerance)
    for cause in check['forbidden']:
        if time.of([cause]) > FORBIDDEN * time.total:
            result.forbidden.append(f'{cause} {time.of([cause]) / 1e6:.1f} ms')
    if asked:
        result.claims = claims(check, time, [s for c in chosen for s in spans_of(c)])
    return result


def credited(got, wanted, tolerance):
    """The milliseconds of a part that were found: what is said beyond it and its tolerance is taken off."""
    return max(0.0, min(got, wanted) - max(0.0, got - wanted - tolerance))


class Claim(NamedTuple):
    """A span against the truth: how much of its time is right, and how much of the rest one of its alternatives explains."""

    confidence: float
    cause: str
    ns: int
    right: float
    else_right: float


def claims(check, time, spans):
    """[Claim] of the spans of a check. Of a cause only as much is right as the truth has of it (`sums`, or else the parts), and
    an alternative explains what the truth has of it beyond what was said. A cause that fits several sums counts by the one that
    it fits best."""
    sums = check.get('sums') or check['parts']
    groups = {}
    for n, s in enumerate(sums):
        for cause in s['causes']:
            groups.setdefault(cause, []).append(n)
    fine = acceptable(check)
    said = [time.of(s['causes']) for s in sums]
    most = [(s['ms'] + s['tolerance_ms']) * 1e6 for s in sums]
    left = [max(0.0, m - g) for m, g in zip(most, said)]
    out = []
    for s in spans:
        ns, cause = s['end_ns'] - s['start_ns'], s['cause']
        share = 1.0 if cause in fine else 0.0
        if cause in groups and cause not in common.INHERENT and cause not in check['forbidden']:
            share = min(1.0, max(most[n] / max(said[n], 1) for n in groups[cause]))
        wrong, explained = ns * (1 - share), 0.0
        for other in (a['cause'] for a in s['alternatives']):
            for n in groups.get(other, []) if other != cause else []:
                part = min(wrong - explained, left[n])
                left[n] -= part
                explained += part
        out.append(Claim(s['confidence'], cause, ns, ns * share, explained))
    return out


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
