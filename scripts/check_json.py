#!/usr/bin/env python3
"""Checks the JSON of `explain` against itself and against the packets, knowing nothing of how it was made.

    scripts/check_json.py --bin target/release/tcpwhy FILE...
    scripts/check_json.py --bin target/release/tcpwhy --all         captures/ and, where it exists, ../shared/captures
    scripts/check_json.py --json ANSWER CAPTURE                     an answer that was saved
    scripts/check_json.py --self-test [--bin PROGRAM FILE]          breaks a good answer in every way: each must be caught

In the answer: spans are sorted, disjoint and cover setup, each exchange and each gap to the nanosecond; these and what
was omitted tile the connection; payload adds up; budgets are the sums of their spans, findings the sums of budgets.
Against the packets (read by tshark, or without it by our own reader where the link is plain): frames exist and belong to
the connection they are evidence for; packets, payload and times are those of the file; payload means an exchange.
Unexplained time: at most 2 % on labelled captures, 10 % on real ones with both directions and the handshake; a
capture may be excused in unexplained_excused.json, with the reason. Every excess is printed with the answer's reason.
"""

import argparse
import concurrent.futures
import copy
import ipaddress
import json
import os
import re
import subprocess
import sys

import capfile
import common

MAX_UNEXPLAINED = {'labelled': 0.02, 'real': 0.10}
EXCUSED = os.path.join(common.ROOT, 'scripts', 'unexplained_excused.json')
MAX_TIME = 2**63 - capfile.SECOND * 2**32  # later times (of broken files) need more than 64 bits
FIELDS = (
    'frame.number',
    'frame.time_epoch',
    'ip.src',
    'ip.dst',
    'ipv6.src',
    'ipv6.dst',
    'tcp.srcport',
    'tcp.dstport',
    'tcp.seq_raw',
    'tcp.len',
    'tcp.flags',
)


# ---------------------------------------------------------------- the packets


class Frame:
    """A TCP frame as an independent reader sees it. In a tunnel, either address family may be the inner one."""

    def __init__(self, time, ends, seq, length, flags):
        self.time, self.ends, self.seq, self.length, self.flags = time, ends, seq, length, flags

    def between(self, one, other):
        """Whether it goes from `one` to `other` (1), back (-1) or neither (0)."""
        for source, target in self.ends:
            if (source, target) == (one, other):
                return 1
            if (source, target) == (other, one):
                return -1
        return 0


class Facts:
    """What the packets say: the number of frames, the earliest time, and the TCP frames by number."""

    def __init__(self, count, start, frames, by):
        self.count, self.start, self.frames, self.by = count, start, frames, by
        self.flows = {}
        for number, frame in frames.items():
            for ends in frame.ends:
                self.flows.setdefault(frozenset(ends), []).append(number)


def endpoint(text):
    """'10.0.0.1:80' or '[::1]:80' as (address bytes, port)."""
    match = re.fullmatch(r'\[?([^\]]+?)\]?:(\d+)', text or '')
    return (ipaddress.ip_address(match[1]).packed, int(match[2])) if match else None


def facts_of(path):
    """Facts, or None where neither reader can tell."""
    try:
        packets = capfile.read(path)
    except ValueError:
        return None
    start = min((p.time for p in packets), default=0)
    frames, foreign = {}, False
    for number, p in enumerate(packets, 1):
        t = capfile.tcp(p)
        if t:
            ends = [((t.source, t.sport), (t.target, t.dport))]
            frames[number] = Frame(p.time, ends, t.seq, t.payload, t.flags)
        elif capfile.ip_offset(p.link, p.data) is None:
            foreign = True
    if common.have('tshark'):
        # our own reading stands where TCP lies directly on IP: tshark also looks for packets inside payload
        return Facts(len(packets), start, {**by_tshark(path), **frames}, 'tshark')
    return Facts(len(packets), start, {} if foreign else frames, None if foreign else 'own reader')


def by_tshark(path):
    """{number: Frame} of the innermost TCP headers."""
    options = [x for f in FIELDS for x in ('-e', f)]
    command = [
        'tshark',
        '-n',
        '-r',
        '-',
        '-Y',
        'tcp && !icmp && !icmpv6',
        '-o',
        'tcp.desegment_tcp_streams:FALSE',
        '-T',
        'fields',
        '-E',
        'occurrence=l',
        *options,
    ]
    done = subprocess.run(
        command, input=capfile.unpacked(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    frames = {}
    for line in done.stdout.decode().splitlines():
        row = line.split('\t')
        if len(row) != len(FIELDS) or not row[6] or not row[7]:
            continue
        ports, ends = (int(row[6]), int(row[7])), []
        for source, target in ((row[2], row[3]), (row[4], row[5])):
            if source and target:
                ends.append(tuple((ipaddress.ip_address(a).packed, p) for a, p in zip((source, target), ports)))
        whole, _, fraction = row[1].partition('.')
        time = int(whole) * 10**9 + int(fraction.ljust(9, '0')[:9])
        frames[int(row[0])] = Frame(time, ends, int(row[8] or 0), int(row[9] or 0), int(row[10] or '0', 16))
    return frames


def new_bytes(frames, one, other):
    """Distinct payload bytes from `one` to `other`; sequence numbers may wrap."""
    ranges, last = [], None
    for f in frames:
        if f.length and f.between(one, other) == 1 and not f.flags & capfile.RST:
            seq = f.seq + (1 if f.flags & capfile.SYN else 0)
            if last is not None:
                seq += round((last - seq) / 2**32) * 2**32
            last = seq
            ranges.append((seq, seq + f.length))
    total, reach = 0, None
    for start, end in sorted(ranges):
        if reach is None or start >= reach:
            total, reach = total + end - start, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


# ---------------------------------------------------------------- the checks


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
        if answer['capture']['connections'] != len(ids):
            report.bad('identity', 'capture', f'{answer["capture"]["connections"]} connections, {len(ids)} listed')
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


def totals(answer, facts, report):
    """The numbers of packets, payload bytes and times are those of the file."""
    capture = answer['capture']
    if capture['packets'] != facts.count:
        report.bad('packets', 'capture', f'{capture["packets"]} packets, the file holds {facts.count}')
    if not facts.by:
        return
    copies = any('duplicates' in c['quality'] for c in answer['connections'])
    if capture['tcp_packets'] != len(facts.frames):
        report.bad('packets', 'capture', f'{capture["tcp_packets"]} TCP packets, {facts.by} reads {len(facts.frames)}')
    listed = sum(sum(c['packets'].values()) for c in answer['connections'])
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
        first, last = min(f.time for f in frames) - facts.start, max(f.time for f in frames) - facts.start
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


# ---------------------------------------------------------------- files


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
    with concurrent.futures.ThreadPoolExecutor(common.overlap(jobs)) as pool:
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


# ---------------------------------------------------------------- self-test


def good_answer():
    """A small right answer and the facts to it: one connection with setup, two exchanges, an omitted one, gaps."""

    def span(cause, start, end, first, last, side=None):
        return {
            'id': f'{start}',
            'cause': cause,
            'detail': None,
            'side': side,
            'start_ns': start,
            'end_ns': end,
            'frames': {'first': first, 'last': last, 'key': [first]},
            'confidence': 0.9,
            'alternatives': [],
            'source': 'inferred',
            'why': 'because',
        }

    def exchange(number, start, end, sent, got, spans):
        return {
            'id': number,
            'start_ns': start,
            'request_end_ns': start,
            'response_start_ns': end,
            'end_ns': end,
            'with_setup_ns': None,
            'request_bytes': sent,
            'response_bytes': got,
            'turns': 1,
            'duplex': False,
            'complete': True,
            'ended': 'complete',
            'spans': spans,
        }

    def finding(cause, kind, lost, side):
        return {
            'id': cause,
            'cause': cause,
            'class': kind,
            'side': side,
            'lost_ns': lost,
            'share': 0.2,
            'occurrences': 1,
            'connections': [1],
            'why': 'because',
            'fixes': [],
            'example': {'connection': 1, 'exchange': 1, 'frames': {'first': 4, 'last': 6, 'key': [5]}},
        }

    nagle, think = finding('nagle_delayed_ack', 'T', 3000, 'client'), finding('server_think', 'A', 2400, 'server')
    connection = {
        'id': 1,
        'client': '10.0.0.1:4000',
        'server': '10.0.0.2:80',
        'roles': 'syn',
        'start_ns': 0,
        'end_ns': 9000,
        'opened': 'handshake',
        'closed': 'fin',
        'vantage': 'client',
        'protocol': None,
        'quality': [],
        'bytes': {'client': 60, 'server': 90},
        'packets': {'client': 6, 'server': 5},
        'retransmitted': {'client': 0, 'server': 0},
        'setup': {
            'start_ns': 0,
            'end_ns': 1000,
            'bytes': {'client': 0, 'server': 0},
            'spans': [span('handshake', 0, 1000, 1, 3)],
        },
        'exchanges': [
            exchange(
                1,
                1000,
                5000,
                20,
                30,
                [
                    span('nagle_delayed_ack', 1000, 4000, 4, 6, 'client'),
                    span('server_think', 4000, 5000, 6, 7, 'server'),
                ],
            ),
            exchange(
                2,
                5500,
                7000,
                20,
                30,
                [span('server_think', 5500, 6900, 8, 9, 'server'), span('path_delay', 6900, 7000, 8, 9)],
            ),
        ],
        'exchanges_omitted': {
            'count': 1,
            'duration_ns': 700,
            'request_bytes': 20,
            'response_bytes': 30,
            'budget': {'path_delay': 700},
        },
        'gaps': [
            {'start_ns': 5000, 'end_ns': 5500, 'spans': [span('client_think', 5000, 5500, 7, 8, 'client')]},
            {'start_ns': 8000, 'end_ns': 9000, 'spans': [span('client_think', 8000, 9000, 9, 11, 'client')]},
        ],
        'gaps_omitted': {'count': 1, 'duration_ns': 300, 'budget': {'client_think': 300}},
        'budget': {'handshake': 1000, 'nagle_delayed_ack': 3000, 'server_think': 2400, 'path_delay': 800},
        'gap_budget': {'client_think': 1800},
        'findings': [copy.deepcopy(nagle), copy.deepcopy(think)],
    }
    answer = {
        'tool': 'tcpwhy',
        'version': '0',
        'schema': 1,
        'connections': [connection],
        'findings': [nagle, think],
        'capture': {
            'files': ['x'],
            'packets': 12,
            'tcp_packets': 11,
            'start': '',
            'duration_ns': 9000,
            'connections': 1,
            'warnings': [],
        },
    }
    one, other = endpoint('10.0.0.1:4000'), endpoint('10.0.0.2:80')
    #         number: (from the client, time, payload so far, payload)
    frames = {
        1: (1, 0, 0, 0),
        2: (0, 500, 0, 0),
        3: (1, 1000, 0, 0),
        4: (1, 1000, 0, 5),
        5: (0, 3900, 0, 0),
        6: (1, 4000, 5, 15),
        7: (0, 5000, 0, 30),
        8: (1, 5500, 20, 20),
        9: (0, 7000, 30, 30),
        10: (1, 7500, 40, 20),
        11: (0, 9000, 60, 30),
    }
    frames = {
        n: Frame(time, [(one, other) if up else (other, one)], 2**32 - 10 + seq, length, capfile.ACK)
        for n, (up, time, seq, length) in frames.items()
    }
    return answer, Facts(12, 0, frames, 'made up')


def busiest(answer):
    """The connection with the most spans in exchanges."""
    return max(answer['connections'], key=lambda c: sum(len(x['spans']) for x in c['exchanges']))


def some_exchange(c, spans=1):
    """Its longest exchange with that many spans."""
    many = [x for x in c['exchanges'] if len(x['spans']) >= spans]
    return max(many, key=lambda x: x['end_ns'] - x['start_ns'])


def call_unexplained(answer):
    """The longest span becomes unexplained, in budget and findings as well: only the limit can notice."""
    c = busiest(answer)
    span = max((s for x in c['exchanges'] for s in x['spans']), key=lambda s: s['end_ns'] - s['start_ns'])
    old, length = span['cause'], span['end_ns'] - span['start_ns']
    span['cause'] = common.UNEXPLAINED
    c['budget'][old] -= length
    c['budget'][common.UNEXPLAINED] = c['budget'].get(common.UNEXPLAINED, 0) + length
    for listed in (c['findings'], answer['findings']):
        for f in listed:
            if f['cause'] == old and f['side'] == span['side']:
                f['lost_ns'] -= length
        listed.sort(key=lambda f: -f['lost_ns'])


def no_exchanges(answer):
    """All exchanges vanish into one gap and the payload with them: only the packets can tell."""
    for c in answer['connections']:
        start = c['setup']['end_ns'] if c['setup'] else c['start_ns']
        spans = (
            [
                dict(
                    copy.deepcopy(some_exchange(c)['spans'][0]),
                    cause='client_think',
                    start_ns=start,
                    end_ns=c['end_ns'],
                )
            ]
            if c['exchanges']
            else []
        )
        if not spans:
            continue
        c['exchanges'], c['exchanges_omitted'], c['gaps_omitted'] = [], None, None
        c['gaps'] = [{'start_ns': start, 'end_ns': c['end_ns'], 'spans': spans}]
        c['budget'] = {}
        for s in c['setup']['spans'] if c['setup'] else []:
            c['budget'][s['cause']] = c['budget'].get(s['cause'], 0) + s['end_ns'] - s['start_ns']
        c['gap_budget'] = {'client_think': c['end_ns'] - start}
        c['bytes'] = dict(c['setup']['bytes']) if c['setup'] else {'client': 0, 'server': 0}
        c['findings'] = []
    answer['findings'] = []


def swap_spans(answer):
    spans = some_exchange(busiest(answer), 2)['spans']
    spans[0], spans[1] = spans[1], spans[0]


def change(path, by):
    """A mutation that adds to a number; `path` starts at the busiest connection."""

    def mutate(answer):
        where = path(answer, busiest(answer))
        holder, key = where
        holder[key] += by

    return mutate


def mutations():
    """(name, rule that must notice, how to break a good answer)."""

    def exchange_span(n, key):
        return lambda _, c: (some_exchange(c, 2)['spans'][n], key)

    def drop_first_span(answer):
        some_exchange(busiest(answer), 2)['spans'].pop(0)

    def set_cause(answer):
        some_exchange(busiest(answer))['spans'][0]['cause'] = 'gremlins'

    def relabel(answer):
        some_exchange(busiest(answer))['spans'][0]['cause'] = common.UNEXPLAINED

    def forget_gap(answer):
        busiest(answer)['gaps'].pop(0)

    def forget_exchange(answer):
        c = busiest(answer)
        c['exchanges'].remove(some_exchange(c))

    def setup_away(answer):
        busiest(answer)['setup'] = None

    def other_port(answer):
        c = busiest(answer)
        c['client'] = c['client'].rpartition(':')[0] + ':9'

    def key_outside(answer):
        frames = some_exchange(busiest(answer))['spans'][0]['frames']
        frames['key'] = [frames['last'] + 1]

    def frame_beyond(answer):
        frames = some_exchange(busiest(answer))['spans'][0]['frames']
        frames['last'] = answer['capture']['packets'] + 1

    def no_why(answer):
        some_exchange(busiest(answer))['spans'][0]['why'] = ''

    def twice(answer):
        answer['connections'].append(copy.deepcopy(busiest(answer)))

    def certain(answer):
        some_exchange(busiest(answer))['spans'][0]['confidence'] = 1.2

    def empty_list(answer):
        c = busiest(answer)
        c['exchanges'], c['exchanges_omitted'] = [], None

    return [
        ('a nanosecond between two spans', 'cover', change(exchange_span(1, 'start_ns'), 1)),
        ('a nanosecond of overlap', 'cover', change(exchange_span(0, 'end_ns'), 1)),
        ('the last span ends early', 'cover', change(exchange_span(-1, 'end_ns'), -1)),
        ('the first span is missing', 'cover', drop_first_span),
        ('spans out of order', 'cover', swap_spans),
        ('a time with a fraction', 'time', change(exchange_span(0, 'end_ns'), 0.5)),
        ('setup covered short', 'cover', change(lambda _, c: (c['setup']['spans'][-1], 'end_ns'), -1)),
        ('a gap covered short', 'cover', change(lambda _, c: (c['gaps'][0]['spans'][0], 'start_ns'), 1)),
        (
            'an exchange that overlaps its neighbour',
            'tile',
            change(lambda _, c: (c['exchanges'][-1], 'start_ns'), -(10**15)),
        ),
        ('a gap is missing', 'tile', forget_gap),
        ('an exchange is missing', 'tile', forget_exchange),
        ('setup is missing', 'tile', setup_away),
        ('the connection is a nanosecond longer', 'tile', change(lambda _, c: (c, 'end_ns'), 1)),
        ('omitted time is wrong', 'tile', change(lambda _, c: (c['exchanges_omitted'], 'duration_ns'), 1)),
        ('a request one byte larger', 'bytes', change(lambda _, c: (c['exchanges'][0], 'request_bytes'), 1)),
        ('a response one byte larger', 'bytes', change(lambda _, c: (c['exchanges'][0], 'response_bytes'), 1)),
        ('omitted bytes are wrong', 'bytes', change(lambda _, c: (c['exchanges_omitted'], 'request_bytes'), 1)),
        ('setup claims a byte', 'bytes', change(lambda _, c: (c['setup']['bytes'], 'client'), 1)),
        (
            'bytes wrong everywhere alike',
            'payload',
            both(
                change(lambda _, c: (c['exchanges'][0], 'request_bytes'), 1),
                change(lambda _, c: (c['bytes'], 'client'), 1),
            ),
        ),
        ('budget a nanosecond off', 'budget', change(lambda _, c: (c['budget'], next(iter(c['budget']))), 1)),
        (
            'gap budget a nanosecond off',
            'budget',
            change(lambda _, c: (c['gap_budget'], next(iter(c['gap_budget']))), 1),
        ),
        ('a span renamed to unexplained', 'budget', relabel),
        ('a span renamed to unexplained, books in order', 'unexplained', call_unexplained),
        ('no exchanges, payload left', 'exchanges', empty_list),
        ('no exchanges, books in order', 'payload', no_exchanges),
        ('a cause that does not exist', 'cause', set_cause),
        ('a confidence above 1', 'confidence', certain),
        ('a span without a sentence', 'why', no_why),
        ('a frame after the last', 'frames', frame_beyond),
        ('a key frame outside its range', 'frames', key_outside),
        ('a connection that is not in the file', 'frames', other_port),
        ('a finding a nanosecond off', 'findings', change(lambda _, c: (c['findings'][0], 'lost_ns'), 1)),
        ('a finding of the capture off', 'findings', change(lambda a, _: (a['findings'][0], 'lost_ns'), 1)),
        ('one packet too many in the capture', 'packets', change(lambda a, _: (a['capture'], 'packets'), 1)),
        ('one TCP packet too many', 'packets', change(lambda a, _: (a['capture'], 'tcp_packets'), 1)),
        ('one packet too many of a side', 'packets', change(lambda _, c: (c['packets'], 'client'), 1)),
        ('a connection listed twice', 'identity', twice),
        ('another schema', 'schema', change(lambda a, _: (a, 'schema'), 1)),
    ]


def both(one, other):
    """Two mutations."""

    def mutate(answer):
        one(answer)
        other(answer)

    return mutate


def self_test(binary, files):
    """Every mutation of a good answer must be noticed under its rule. Failures are counted."""
    cases = [('made up', *good_answer(), 'labelled')]
    for path in files:
        answer, _ = common.explain(binary, path)
        cases.append((common.shown(path), answer, facts_of(path), 'labelled'))
    failed = 0
    for name, answer, facts, kind in cases:
        clean = check(answer, facts, kind)
        if clean.problems:
            print(f'FAIL {name}: the unchanged answer has problems: {clean.problems[:3]}')
            failed += 1
            continue
        caught = impossible = 0
        for what, rule, mutate in mutations():
            broken = copy.deepcopy(answer)
            try:
                mutate(broken)
            except (KeyError, IndexError, TypeError, ValueError):
                impossible += 1  # this answer has nothing that could be broken so
                continue
            rules = check(broken, facts, kind).rules()
            if rule in rules:
                caught += 1
            else:
                failed += 1
                print(f'FAIL {name}: {what}: not noticed by {rule} (by {", ".join(sorted(rules)) or "nothing"})')
        if name == 'made up' and impossible:
            failed += 1
            print(f'FAIL {name}: {impossible} mutations do not apply')
        print(f'check_json: {name}: {caught} of {len(mutations()) - impossible} mutations noticed')
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
