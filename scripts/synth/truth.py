"""From what each segment waited for to the label of one tap (the format: captures/README.md, "Fields of label.json").

The rules are those of the design, told from the simulation and never from a reading of packets:

- the time between two passages of payload belongs to what the later segment waited for, whole (rule 1);
- inside it the flow's own bytes at the rate of the link are `bandwidth` (rule 3);
- an answer's wait is the far application's time, known from its clock, and the trips that remain (rules 5 and 13);
- from a lost segment's time and one round trip to the ACK of all that had been sent, it is the loss (rule 14);
- a byte of the client opens an exchange if it acknowledges bytes of the server, all of them (rule 7); a pause of a one-way
  transfer that is longer than a second and two timeouts ends one (rule 9); an exchange ends with the last passage of
  payload (rule 10).
"""

import common

from synth.segment import ACK, RST, SYN
from synth.sim import MS, SECOND

LOSS = ('retransmission_timeout', 'path_mtu', 'tail_loss_probe', 'fast_recovery')
OVERLAYS = LOSS + ('spurious_recovery', 'slow_reader')  # the stronger first
THINK = ('client_think', 'server_think', 'sender_pause')
# causes that one reading of the same wait gives and another does not: neither is forbidden where the other is true
NEAR = {
    'slow_start': ('congestion_window', 'pacing', 'delayed_ack', 'idle_restart'),
    'congestion_window': ('slow_start', 'pacing', 'delayed_ack', 'idle_restart'),
    'idle_restart': ('slow_start', 'congestion_window', 'delayed_ack'),
    'nagle': ('nagle_delayed_ack',),
    'nagle_delayed_ack': ('nagle', 'delayed_ack'),
    'delayed_ack': ('slow_start', 'congestion_window', 'receive_window', 'silly_window'),
    'receive_window': ('silly_window', 'slow_reader', 'delayed_ack'),
    'slow_reader': ('silly_window', 'receive_window'),
    'silly_window': ('receive_window', 'slow_reader', 'delayed_ack'),
    'spurious_recovery': LOSS + ('delayed_ack',),
    'send_buffer': ('delayed_ack', 'pacing'),
    'pacing': (),
    'retransmission_timeout': LOSS + ('congestion_window', 'slow_start', 'spurious_recovery'),
    'tail_loss_probe': LOSS + ('congestion_window', 'slow_start', 'spurious_recovery'),
    'fast_recovery': LOSS + ('congestion_window', 'slow_start', 'spurious_recovery'),
    'path_mtu': ('retransmission_timeout', 'tail_loss_probe', 'fast_recovery', 'congestion_window', 'slow_start'),
}
SMALL = 0.02  # a share of the time below which nothing is asked, and which a clean control may have


class Truth:
    """ns by cause over setup and exchanges at one tap. `repairs`: causes of the repeats that were sent, whatever they cost here;
    `doubt`: ns that one fair reading gives to a loss and another to the wait beside it, a round trip for each (rule 14).
    `alike`: names of the same wait of an application.
    `hard`: ns of what was repeated without need, which this tap can hardly tell.
    `under`: what segments waited for while something was repeated without need: the repeat delayed nothing.
    """

    def __init__(self):
        self.time, self.spans, self.repairs, self.doubt = {}, [], set(), 0
        self.under, self.alike, self.hard = set(), set(), 0

    def add(self, start, end, cause):
        if end > start:
            self.time[cause] = self.time.get(cause, 0) + end - start
            self.spans.append((start, end, cause))

    def total(self):
        return sum(self.time.values())


def busy_in(sim, tap, side, start, end):
    """ns of a stretch at a tap in which the link carried data of `side`: after the sender's tap, before the receiver's."""
    shift = 0 if tap == side else sim.links[side].delay
    return sim.carrying(side, start - shift, end - shift)


def exchanges_of(passages, trip):
    """Lists of payload passages, one list for each exchange."""
    out, current, server_end, high = [], [], 1, [1, 1]
    pause = max(SECOND, 2 * (trip + 200 * MS))
    payload = [q for q in passages if q.segment.sent]
    for at, q in enumerate(payload):
        p = q.segment
        fresh = p.seq + p.payload > high[p.side]
        sides = {c.segment.side for c in current}
        # what Nagle held belongs to the write that it was held for, whatever came across meanwhile (rule 78); if the ACK
        # came with an answer, no packet tells it from the next request
        held = p.sent.cause == 'nagle' and not p.sent.answered
        opens = p.side == 0 and fresh and 1 in sides and p.ack >= server_end and not held
        if (
            current
            and fresh
            and len(sides) == 1
            and p.side in sides
            and q.time - current[-1].time > pause
            and p.sent.cause == 'app'
            and not unrepaired(payload[at:], high[p.side])
        ):
            opens = True
        if (
            opens
            and 1 in sides
            and any(
                n.segment.side == 1
                and n.segment.payload
                and n.segment.sent.cause == 'slow_reader'
                and n.segment.sent.write.time < q.time
                for n in payload[at + 1 : at + 40]
            )
        ):
            opens = False  # its answer is not over: the shut window holds the rest of it
        if opens:
            out.append(current)
            current = []
        current.append(q)
        high[p.side] = max(high[p.side], p.seq + p.payload)
        server_end = high[1]
    return out + [current] if current else out


def unrepaired(passages, high):
    """Whether data below `high` were lost and are still to be repeated: then the silence is no pause (R5)."""
    first = passages[0]
    return any(
        q.segment.side == first.segment.side
        and q.segment.sent.first
        and q.segment.sent.first.dropped
        and q.segment.sent.first.time < first.segment.sent.time
        and q.segment.seq < high
        for q in passages[1:]
    )


def idle_repeats(sim, tap):
    """Repeats of what had come, while nothing newer was in flight: none waited for them (rules 33, 74, 75). Also ns for which
    the tap beside the sender can hardly tell them from losses."""
    out, doubt = set(), 0
    for end in sim.ends:
        for repeat in end.history:
            first = repeat.first
            if first is None or first.dropped or first.seq <= 1:
                continue
            if max(s.end for s in end.history if s.time <= repeat.time) == first.end:
                out.add(id(repeat))
                doubt += repeat.time - first.time if tap == end.side else 0
    return out, doubt


def hidden_holds(exchange):
    """Passages of what Nagle held while its writer's clock ran on: a held write returns at once, and a later one of the same
    message came when it would have come anyway (rule 24)."""
    out, writer, since = set(), None, 0
    for q in reversed(exchange):
        sent = q.segment.sent
        if writer is not None and q.segment.side != writer:
            writer = None
        if sent.cause == 'nagle' and writer is not None and since < sent.time:
            out.add(id(sent))
        elif sent.cause != 'app' or sent.filled.blocked:
            writer = None
        else:
            # its clock ran since it had written before, or had read what was there already
            writer, since = q.segment.side, 0 if sent.filled.after == 'write' else sent.filled.ready
    return out


def losses(sim, tap, idle):
    """[(start, end, cause)]: each repaired loss (rule 14)."""
    found = []
    for end in sim.ends:
        history = end.history
        for repeat in history:
            if repeat.first is None or id(repeat) in idle:
                continue
            lost = repeat.first
            cause = repeat.cause if lost.dropped else 'spurious_recovery'
            recovery = max((s.end for s in history if s.time <= repeat.time), default=lost.end)
            covered = next(
                (
                    q.time
                    for q in sim.taps[tap]
                    if q.segment.side != end.side and q.time > repeat.time and q.segment.ack >= recovery
                ),
                None,
            )
            if covered is not None:
                found.append((lost.time + (lost.srtt or 0), covered, cause))
            else:
                found.append((lost.time + (lost.srtt or 0), repeat.time, cause))
    return found


def tell(sim, tap):
    """The Truth of one tap."""
    truth, passages = Truth(), sim.taps[tap]
    trip = sum(link.delay for link in sim.links)
    syn = next((q.time for q in passages if q.segment.flags & SYN), None)
    third = next(
        (q.time for q in passages if q.segment.side == 0 and q.segment.flags & ACK and not q.segment.flags & SYN), None
    )
    if syn is not None and third is not None:
        first = [q.time for q in passages if q.segment.flags == SYN]
        truth.add(first[0], first[-1], 'syn_retransmit')
        truth.add(first[-1], third, 'handshake')
    idle, truth.hard = idle_repeats(sim, tap)
    bad = losses(sim, tap, idle)
    truth.repairs = {c for _, _, c in bad} | ({'spurious_recovery'} if idle else set())
    truth.doubt = trip * len({repeat.first.seq // 14_480 for end in sim.ends for repeat in end.history if repeat.first})
    truth.doubt += truth.hard
    bad += [(a, b, 'slow_reader') for end in sim.ends for a, b in end.shut]
    exchanges = exchanges_of(passages, trip)
    for exchange in exchanges:
        exchange, again = [q for q in exchange if id(q.segment.sent) not in idle], exchange
        again = [q.time for q in again if id(q.segment.sent) in idle]
        hidden = hidden_holds(exchange)
        for q, following in zip(exchange, exchange[1:]):
            sent = following.segment.sent
            cause, late = sent.cause, sent.late
            if id(sent) in hidden:
                sent.cause = 'sender_pause'
            elif cause != 'slow_reader' and any(q.time < t <= following.time for t in again):
                sent.late = following.time - q.time  # the ACK came with the repeat
            wait(sim, truth, tap, q, following, bad)
            sent.cause, sent.late = cause, late
    if exchanges and sim.reset_while:
        # unfinished (rule 10): up to the reset it is what the data still waited for
        reset = next((q.time for q in passages if q.segment.flags & RST), None)
        if reset is not None:
            truth.add(exchanges[-1][-1].time, reset, sim.reset_while)
    return truth


def wait(sim, truth, tap, q, following, bad):
    """One wait between two passages of payload of an exchange."""
    start, end = q.time, following.time
    p, n = q.segment, following.segment
    overlays = sorted((max(start, a), min(end, b), OVERLAYS.index(c)) for a, b, c in bad if a < end and b > start)
    if overlays and not (n.sent.cause == 'slow_reader' and p.side == n.side):
        # the loss takes its part; what is left before and after belongs to the wait itself
        cause = OVERLAYS[min(o[2] for o in overlays)]
        a, b = min(o[0] for o in overlays), max(o[1] for o in overlays)
        busy = busy_in(sim, tap, n.side, a, b) if cause != 'slow_reader' else 0
        truth.add(a, a + busy, 'bandwidth')  # what is sent again does not stop a link that is busy (rule 3)
        truth.add(a + busy, b, cause)
        if cause == 'spurious_recovery' and n.sent.cause not in LOSS:
            truth.under |= {n.sent.cause, *NEAR.get(n.sent.cause, ())}
        start, end = (start, a) if a > start else (b, end)
        if end <= start:
            return
    sent = n.sent
    if p.side == n.side:
        busy = busy_in(sim, tap, p.side, start, end)
        truth.add(start, start + busy, 'bandwidth')
        start += busy
        cause = sent.cause
        if cause in LOSS:
            cause = 'path_delay'  # the round trip before a repeat could have been known to be due
        if cause == 'app':
            write = sent.filled  # a held tail goes with the write that fills it up, which is what it waited for
            inside = sent.seq > write.start and p.seq + p.payload <= sent.seq
            cause = (
                'path_delay'
                if inside or write.after == 'start'
                else 'sender_pause'
                if write.after == 'write'
                else ('client_think', 'server_think')[n.side]
            )
            if cause == 'sender_pause' and end - start < 200_000:
                cause = 'path_delay'
            elif cause in THINK:
                # no packet tells the work on the next of several requests from a pause within an answer
                truth.alike |= {cause, 'sender_pause'}
        elif cause == 'nagle' and sent.late:
            cause = 'nagle_delayed_ack'
        elif cause not in THINK and sent.late > (end - start) / 2:
            cause = 'delayed_ack'
        truth.add(start, end, cause)
        return
    # the other side speaks: its application's time, the rest is the way
    busy = (busy_in(sim, tap, p.side, start, end) if tap == p.side else 0) + (
        busy_in(sim, tap, n.side, start, end) if tap != n.side else 0
    )
    think = max(0, sent.write.time - sent.write.ready) if sent.cause in ('app', 'send_buffer') else 0
    name = ('client_think', 'server_think')[n.side] if sent.write.after != 'write' else 'sender_pause'
    if sent.cause not in ('app', 'send_buffer'):
        held = sent.cause if not (sent.cause == 'nagle' and sent.late) else 'nagle_delayed_ack'
        truth.add(start, end, held if held not in LOSS else 'path_delay')
        return
    think = min(think, end - start)
    busy = min(busy, end - start - think)
    truth.add(start, start + think, name)
    truth.add(start, start + busy, 'bandwidth')
    truth.add(start, end - think - busy, 'path_delay')


# ---------------------------------------------------------------- labels


def label(truth, trip, rated, spec):
    """The checks of one capture. `spec`: what a family says of its cases: `also`, causes that a fair reading may name too;
    `dominant`, `weak`, `kind`, `forbidden`, `parts` in place of what the truth gives; `asked`: sums of
    these causes only; `doubt_ms`, more tolerance."""
    total = max(truth.total(), 1)
    avoidable = {c: t for c, t in truth.time.items() if c in common.AVOIDABLE and t > SMALL * total}
    open_causes = set(spec.get('also', ())) | truth.under
    for cause in list(truth.time) + sorted(truth.repairs):
        if cause in truth.repairs or truth.time[cause] > 0.001 * total:
            open_causes |= {cause, *NEAR.get(cause, ())}
    forbidden = spec.get('forbidden')
    forbidden = [c for c in common.AVOIDABLE if c not in open_causes] if forbidden is None else list(forbidden)
    # what did happen is never a false claim, whatever a family says of its cases
    forbidden = [c for c in forbidden if truth.time.get(c, 0) <= 0.001 * total]
    parts = parts_of(truth, avoidable, trip, rated, spec)
    checks, app = [], {c: truth.time.get(c, 0) for c in THINK}
    biggest = max(truth.time, key=lambda c: truth.time[c])
    kind = spec.get('kind') or ('clean' if not avoidable else 'cause')
    base = {'connections': 'all', 'weak': [], 'side': None, 'parts': parts, 'forbidden': forbidden, 'exempt': []}
    base['sums'] = sums_of(truth, avoidable, trip, rated, spec)
    if kind == 'clean':
        alike = truth.alike if biggest in truth.alike else {biggest}
        fine = list(common.INHERENT) + list(spec.get('inherent', ()))
        fine += [c for c in THINK if app[c] > 0.005 * total or c in truth.alike]
        fine += (*LOSS, 'spurious_recovery') if truth.hard else ()
        checks.append(
            {**base, 'kind': 'clean', 'dominant': [], 'inherent': fine, 'exempt': list(spec.get('exempt', ()))}
        )
        if biggest in THINK and app[biggest] > 0.5 * total and not spec.get('inherent'):
            checks.append({**base, 'kind': 'dominant', 'dominant': sorted(alike), 'parts': [], 'forbidden': []})
    elif kind == 'any':
        checks.append({**base, 'kind': 'any', 'dominant': []})
    else:
        most = max(avoidable.values(), default=0)
        winners = [c for c, t in avoidable.items() if t > 0.7 * most]
        winners = list(spec.get('dominant', winners))
        weak = [
            c
            for c in spec.get('weak', sum((NEAR.get(w, ()) for w in winners), OVERLAYS[:5] if truth.hard else ()))
            if c not in winners and c not in forbidden
        ]
        checks.append({**base, 'kind': kind, 'dominant': winners, 'weak': sorted(set(weak))})
    return checks


GROUPS = (
    ('slow_start', 'idle_restart', 'congestion_window', 'pacing', 'delayed_ack'),
    ('receive_window', 'slow_reader', 'silly_window', 'delayed_ack'),
    ('nagle', 'nagle_delayed_ack'),
    LOSS + ('congestion_window',),
)


def parts_of(truth, avoidable, trip, rated, spec):
    """Sums to be met: of what is large enough to be asked for."""
    if 'parts' in spec:
        return spec['parts']
    most = max(avoidable, key=lambda c: avoidable[c], default=None)  # asked for, so its sum is, too
    least = max(0.05 * truth.total(), 5 * MS)
    large = {c for c, t in truth.time.items() if t >= least or c == most} - {'path_delay', 'handshake'}
    return sums_of(truth, avoidable, trip, rated, spec, large & set(spec.get('asked', large)))


def sums_of(truth, avoidable, trip, rated, spec, asked=None):
    """The sums of the causes `asked` for, or of all. Causes of one group count together where more than one of them is true."""
    out, done = [], set()
    for cause in sorted(truth.time, key=lambda c: -truth.time[c]):
        if cause in done or asked is not None and cause not in asked:
            continue
        together = set(truth.alike) if cause in truth.alike else {cause}
        if cause in common.AVOIDABLE:
            for group in GROUPS:
                if cause in group:
                    together |= {c for c in group if c in avoidable} | (
                        set(group) if cause in LOSS + ('delayed_ack',) else set()
                    )
        done |= together
        sums = sum(truth.time.get(c, 0) for c in together)
        tolerance = 0.12 * sums + 2 * MS + spec.get('doubt_ms', 0) * MS + min(truth.doubt, 0.5 * sums)
        if rated:
            tolerance += 0.15 * truth.time.get('bandwidth', 0) + (0.1 * sums if cause == 'bandwidth' else 0)
        if cause in LOSS + ('slow_reader', 'silly_window'):
            tolerance += min(trip, 0.3 * sums)  # these begin and end between packets of this tap
        out.append({'causes': sorted(together), 'ms': round(sums / MS, 3), 'tolerance_ms': round(tolerance / MS, 3)})
    return out
