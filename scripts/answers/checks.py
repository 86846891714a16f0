"""The checks of an answer: in itself, and against the packets. Each problem has the name of the rule it breaks."""

import capfile
import common

from answers.packets import endpoint, new_bytes

MAX_UNEXPLAINED = {'labelled': 0.02, 'real': 0.10}
# a stamp that lies so far from those before and behind it is the neighbours' (crates/capture/src/stamps.rs)
FAR = 2 * capfile.SECOND
MAX_TIME = 2**63 - capfile.SECOND * 2**32  # later times (of broken files) need more than 64 bits


class Report:
    """Problems found, as (rule, where, text)."""

    def __init__(self):
        self.problems, self.notes = [], []

    def bad(self, rule, where, text):
        self.problems.append((rule, where, text))

    def rules(self):
        return {rule for rule, _, _ in self.problems}


def whole(value):
    """An integer that is not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def check(answer, facts, kind, excused=None):
    """Everything. `kind`: 'labelled', 'real', or None for no limit on unexplained time."""
    report = Report()
    try:
        if answer.get('schema') != 1:
            report.bad('schema', 'document', f'schema is {answer.get("schema")!r}')
        ids = [c['id'] for c in answer['connections']]
        if len(set(ids)) != len(ids):
            report.bad('identity', 'connections', 'an id is used twice')
        left_out = answer['summary']['connections_omitted']
        if answer['capture']['connections'] != len(ids) + left_out:
            said = f'{answer["capture"]["connections"]} connections, {len(ids)} listed, {left_out} left out'
            report.bad('identity', 'capture', said)
        for c in answer['connections']:
            Connection(c, facts, report).check()
        findings(answer['findings'], answer['connections'], 'capture', report)
        examples(answer, facts, report)
        if facts:
            totals(answer, facts, report)
        unexplained(answer, kind, excused, report)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        report.bad('shape', 'document', f'{type(error).__name__}: {error}')
    return report


class Connection:
    """The checks within one connection."""

    def __init__(self, c, facts, report):
        self.c, self.facts, self.report, self.where = c, facts, report, f'connection {c["id"]}'
        self.ends = endpoint(c['client']), endpoint(c['server'])
        self.setup = [c['setup']] if c['setup'] else []
        self.omitted = c['exchanges_omitted'] or {}, c['gaps_omitted'] or {}

    def bad(self, rule, text, where=''):
        self.report.bad(rule, f'{self.where} {where}'.strip(), text)

    def check(self):
        named = [('setup', p) for p in self.setup]
        named += [(f'exchange {x["id"]}', x) for x in self.c['exchanges']]
        named += [(f'gap {n}', g) for n, g in enumerate(self.c['gaps'], 1)]
        for name, part in named:
            self.covered(name, part)
            for span in part['spans']:
                self.span(name, span)
        self.tiled(named)
        self.budget('budget', self.setup + self.c['exchanges'], self.omitted[0])
        self.budget('gap_budget', self.c['gaps'], self.omitted[1])
        self.payload()
        findings(self.c['findings'], [self.c], self.where, self.report)

    def covered(self, name, part):
        """Spans sorted, disjoint, covering."""
        at, end = part['start_ns'], part['end_ns']
        if not whole(at) or not whole(end) or end < at:
            self.bad('time', f'from {at!r} to {end!r}', name)
            return
        for n, span in enumerate(part['spans'], 1):
            start, stop = span['start_ns'], span['end_ns']
            if not whole(start) or not whole(stop) or stop < start:
                self.bad('time', f'span {n} from {start!r} to {stop!r}', name)
                return
            if start != at:
                self.bad('cover', f'span {n} starts {abs(start - at)} ns {"late" if start > at else "early"}', name)
            if stop == start and end > part['start_ns']:
                self.bad('cover', f'span {n} is empty', name)
            at = stop
        if at != end:
            self.bad('cover', f'the spans end {abs(end - at)} ns {"before" if at < end else "after"} it', name)

    def span(self, name, span):
        """One span by itself."""
        if span['cause'] not in common.SPAN_CAUSES:
            self.bad('cause', f'no cause {span["cause"]!r}', name)
        if span['side'] not in (None, 'client', 'server', 'network'):
            self.bad('cause', f'side {span["side"]!r}', name)
        sure = span['confidence']
        if not isinstance(sure, (int, float)) or isinstance(sure, bool) or not 0 <= sure <= 1:
            self.bad('confidence', f'confidence {sure!r}', name)
        for other in span['alternatives']:
            if other['cause'] not in common.SPAN_CAUSES or not 0 <= other['confidence'] <= 1:
                self.bad('cause', f'alternative {other!r}', name)
        if not span['why']:
            self.bad('why', 'a span without a sentence', name)
        evidence(span['frames'], self.ends, self.facts, lambda rule, text: self.bad(rule, text, name))

    def tiled(self, named):
        """Setup, exchanges, gaps and the omitted ones fill the connection exactly."""
        at, end, hole = self.c['start_ns'], self.c['end_ns'], 0
        if not whole(at) or not whole(end) or not 0 <= at <= end:
            self.bad('time', f'from {at!r} to {end!r}')
            return
        for name, part in sorted(named, key=lambda p: (p[1]['start_ns'], p[1]['end_ns'])):
            if part['start_ns'] < at:
                self.bad('tile', f'starts {at - part["start_ns"]} ns before the end of what precedes it', name)
            else:
                hole += part['start_ns'] - at
            at = max(at, part['end_ns'])
        if at > end:
            self.bad('tile', f'its parts end {at - end} ns after it')
        hole += max(end - at, 0)
        left_out = sum(o.get('duration_ns', 0) for o in self.omitted)
        if hole != left_out:
            self.bad('tile', f'{hole} ns are in no part, the omitted ones hold {left_out}')
        for o in self.omitted:
            if o and sum(o['budget'].values()) != o['duration_ns']:
                self.bad('tile', f'omitted: budget {sum(o["budget"].values())} ns, duration {o["duration_ns"]}')

    def budget(self, name, parts, omitted):
        """The budget equals its spans and what was omitted."""
        want = dict(omitted.get('budget', {}))
        for part in parts:
            for span in part['spans']:
                want[span['cause']] = want.get(span['cause'], 0) + span['end_ns'] - span['start_ns']
        for cause in sorted(set(want) | set(self.c[name])):
            if want.get(cause, 0) != self.c[name].get(cause, 0):
                self.bad(
                    'budget', f'{name} of {cause} is {self.c[name].get(cause, 0)}, its spans hold {want.get(cause, 0)}'
                )

    def payload(self):
        """Payload over setup, exchanges and omitted ones equals the connection's, and the packets'."""
        for side, key in (('client', 'request_bytes'), ('server', 'response_bytes')):
            held = sum(x[key] for x in self.c['exchanges']) + self.omitted[0].get(key, 0)
            held += sum(s['bytes'][side] for s in self.setup)
            if held != self.c['bytes'][side]:
                self.bad('bytes', f'the parts hold {held} bytes of the {side}, the connection {self.c["bytes"][side]}')
        in_setup = sum(sum(s['bytes'].values()) for s in self.setup)
        count = len(self.c['exchanges']) + self.omitted[0].get('count', 0)
        if sum(self.c['bytes'].values()) > in_setup and not count:
            self.bad('exchanges', 'payload, but no exchange')


def evidence(frames, ends, facts, bad):
    """Frame numbers exist and belong to the connection between `ends`."""
    first, last, key = frames['first'], frames['last'], frames['key']
    if not all(map(whole, [first, last, *key])) or not 1 <= first <= last:
        bad('frames', f'frames {frames!r}')
        return
    if any(not first <= k <= last for k in key) or list(key) != sorted(set(key)):
        bad('frames', f'key frames {key} of {first} to {last}')
    for number in {first, last, *key}:
        if facts and number > facts.count:
            bad('frames', f'frame {number} of {facts.count}')
        elif facts and facts.by and ends and all(ends):
            frame = facts.frames.get(number)
            if frame is None:
                bad('frames', f'frame {number} is no TCP frame')
            elif not frame.between(*ends):
                bad('frames', f'frame {number} belongs to another connection')


def findings(listed, connections, where, report):
    """Each finding is the sum of the spans of its cause (and of its side, where they are told apart)."""
    groups = {}
    for f in listed:
        if not whole(f['lost_ns']) or f['lost_ns'] < 0:
            report.bad('findings', where, f'{f["cause"]}: lost_ns {f["lost_ns"]!r}')
        if not 0 <= f['share'] <= 1:
            report.bad('findings', where, f'{f["cause"]}: share {f["share"]!r}')
        if f['cause'] in common.SPAN_CAUSES:
            if f['class'] != common.SPAN_CAUSES[f['cause']]:
                report.bad('findings', where, f'{f["cause"]}: class {f["class"]!r}')
            groups.setdefault(f['cause'], []).append(f)
        elif f['cause'] not in common.FINDINGS_ONLY:
            report.bad('findings', where, f'no cause {f["cause"]!r}')
    for cause, group in groups.items():
        held = sum(c[b].get(cause, 0) for c in connections for b in ('budget', 'gap_budget'))
        claimed = sum(f['lost_ns'] for f in group)
        sides = [f['side'] for f in group]
        if len(set(sides)) != len(sides):
            report.bad('findings', where, f'{cause} is listed twice for one side')
        if claimed != held:
            report.bad('findings', where, f'{cause} lost {claimed} ns, its spans hold {held}')
    order = [f['lost_ns'] for f in listed]
    if where == 'capture' and order != sorted(order, reverse=True):
        report.bad('findings', where, 'not worst first')


def examples(answer, facts, report):
    """The examples of findings point at frames of their connection."""
    by_id = {c['id']: c for c in answer['connections']}
    for f in answer['findings'] + [f for c in answer['connections'] for f in c['findings']]:
        example = f.get('example')
        if not example:
            continue
        c = by_id.get(example['connection'])
        if c is None:
            report.bad('findings', 'capture', f'{f["cause"]}: example of connection {example["connection"]!r}')
            continue
        ends = endpoint(c['client']), endpoint(c['server'])
        evidence(
            example['frames'], ends, facts, lambda rule, text, f=f: report.bad(rule, f'example of {f["cause"]}', text)
        )
        for n in f['connections']:
            if n not in by_id:
                report.bad('findings', 'capture', f'{f["cause"]}: connection {n!r}')


def believed(frames):
    """Those whose stamps are less than FAR from that of a neighbour in the file."""
    beside = zip(frames, [None, *frames], [*frames[1:], None], strict=False)
    return [f for f, *others in beside if any(o and abs(o.time - f.time) <= FAR for o in others)] or frames


def totals(answer, facts, report):
    """The numbers of packets, payload bytes and times are those of the file."""
    capture = answer['capture']
    if capture['packets'] != facts.count:
        report.bad('packets', 'capture', f'{capture["packets"]} packets, the file holds {facts.count}')
    if not facts.by:
        return
    copies = any('duplicates' in c['quality'] for c in answer['connections'])
    mended = any(w['code'] == 'bad_time' for w in capture['warnings'])
    if capture['tcp_packets'] != len(facts.frames):
        report.bad('packets', 'capture', f'{capture["tcp_packets"]} TCP packets, {facts.by} reads {len(facts.frames)}')
    # A connection that is not listed is a single packet.
    listed = sum(sum(c['packets'].values()) for c in answer['connections']) + answer['summary']['connections_omitted']
    if listed > capture['tcp_packets'] or (listed < capture['tcp_packets'] and not copies):
        report.bad('packets', 'capture', f'the connections hold {listed} of {capture["tcp_packets"]} TCP packets')
    flows = {}
    for c in answer['connections']:
        flows.setdefault((endpoint(c['client']), endpoint(c['server'])), []).append(c)
    for (client, server), group in flows.items():
        where = f'connection {group[0]["id"]}'
        numbers = facts.flows.get(frozenset((client, server)))
        if not numbers:
            report.bad('frames', where, 'its addresses are not in the file')
            continue
        frames = [facts.frames[n] for n in sorted(set(numbers))]
        if len(group) > 1 or (server, client) in flows:
            continue  # incarnations: the file alone does not say where one ends
        c = group[0]
        if not set(c['quality']) & {'duplicates', 'encapsulated'}:
            for side, way in (('client', 1), ('server', -1)):
                seen = sum(f.between(client, server) == way for f in frames)
                if c['packets'][side] != seen and client != server:
                    report.bad('packets', where, f'{c["packets"][side]} packets of the {side}, {facts.by}: {seen}')
        for side, one, other in (('client', client, server), ('server', server, client)):
            held = new_bytes(frames, one, other)
            if c['bytes'][side] != held:
                report.bad('payload', where, f'{c["bytes"][side]} bytes of the {side}, {facts.by}: {held}')
        known = believed(frames) if mended else frames
        first, last = min(f.time for f in known) - facts.start, max(f.time for f in known) - facts.start
        if len(known) < len(frames):
            # the others have the time of whatever frame comes before them in the file
            first, last = min(first, c['start_ns']), max(last, c['end_ns'])
        if len(known) < len(frames) and last > capture['duration_ns']:
            report.bad('times', where, f'ends at {last} ns, the capture at {capture["duration_ns"]}')
        waits = [x['ended'] for x in c['exchanges'][-1:]] == ['capture_end'] and last < c['end_ns']
        if waits:
            # who waits for an answer waits until the last packet of the capture (rule 150)
            last = capture['duration_ns']
        if 'time_went_back' not in c['quality'] and last < MAX_TIME and (c['start_ns'], c['end_ns']) != (first, last):
            report.bad('times', where, f'{c["start_ns"]} to {c["end_ns"]} ns, its packets {first} to {last}')


def unexplained(answer, kind, excused, report):
    """The share of time without an explanation; each excess with the reason that the answer gives."""
    for c in answer['connections']:
        parts = ([c['setup']] if c['setup'] else []) + c['exchanges'] + c['gaps']
        for span in (s for p in parts for s in p['spans'] if s['cause'] == common.UNEXPLAINED):
            if not span['why']:
                report.bad('unexplained', f'connection {c["id"]}', 'unexplained without a reason')
        if kind is None or (kind == 'real' and (c['opened'] != 'handshake' or 'one_sided' in c['quality'])):
            continue
        time = [
            sum(c[b].get(common.UNEXPLAINED, 0) for b in ('budget', 'gap_budget')),
            sum(sum(c[b].values()) for b in ('budget', 'gap_budget')),
        ]
        if time[0] <= MAX_UNEXPLAINED[kind] * time[1]:
            continue
        longest = max(
            (s for p in parts for s in p['spans'] if s['cause'] == common.UNEXPLAINED),
            key=lambda s: s['end_ns'] - s['start_ns'],
            default=None,
        )
        reason = longest['why'] if longest else 'only in omitted parts'
        said = f'{time[0] / 1e6:.1f} ms, {100 * time[0] / time[1]:.0f} %, {reason}'
        if excused:
            report.notes.append(f'connection {c["id"]}: unexplained {said} (excused: {excused})')
        else:
            report.bad('unexplained', f'connection {c["id"]}', said)
