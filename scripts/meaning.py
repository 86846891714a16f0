#!/usr/bin/env python3
"""Invariants of meaning: whether what `explain` says could be true of the packets, whatever the cause is.

    scripts/meaning.py --bin target/release/tcpwhy [FOLDER ...]         default: ../shared/captures and all below it
    scripts/meaning.py ... --baseline docs/meaning.json                 beside the counts of another day
    scripts/meaning.py ... --json FILE | --show N | --max N             counts; N violations of each; at most N in all

scripts/check_json.py holds an answer to its contract (it tiles, it adds up); this script asks what no honest answer breaks:

    bandwidth       an exchange's own bytes at the bottleneck rate and one segment; none where 0 bytes passed
    path_delay      at most the base round trip for each turn: the one that was known when the exchange ended, which its
                    spans name, and which never rises
    empty           no limit of TCP with nothing in flight for longer than a wake-up
    pause           no sender_pause with data that was unacknowledged for two retransmission timeouts
    probe           a tail loss probe within one retransmission timeout
    window          no wait for the congestion window with less in flight than one segment
    capture         no span longer than the capture
    sentence        figures that agree with the span and with each other

A timeout's length cannot be seen: one second or three round trips stand for it (RFC 6298 2.4), whichever is longer, so that
a violation is one for every stack that follows the RFC.
"""

import argparse
import concurrent.futures
import json
import os
import sys

import common
import spans
from weak_claims import below

SECOND, MS, US = 10**9, 10**6, 10**3
LIMITS = (
    'slow_start',
    'idle_restart',
    'congestion_window',
    'receive_window',
    'send_buffer',
    'nagle',
    'nagle_delayed_ack',
    'delayed_ack',
)
CONGESTION = ('slow_start', 'idle_restart', 'congestion_window')
WAKE_UP = MS  # from an ACK to the data that it released (rule 5)
RTO_FLOOR, RTO_TRIPS = SECOND, 3
TURN_SLACK = 100 * US  # what two hosts need to wake up; no capture tells it from the trip
SEGMENT = 1514
HEADERS = 54  # Ethernet, IPv4 and TCP without options; short, so that a count errs on the program's side
ROUNDING = 1.02  # sentences have three digits
INVARIANTS = ('bandwidth', 'path_delay', 'empty', 'pause', 'probe', 'window', 'capture', 'sentence')


class Findings:
    """Violations of one capture: (invariant, ns, text)."""

    def __init__(self):
        self.found, self.unread = [], 0

    def add(self, invariant, time, s, text):
        where = s.span['id'] if s else ''
        self.found.append((invariant, int(time), f'{where} {text}'))


def rto(c):
    """The shortest timeout that an RFC 6298 stack on this path would have, in ns."""
    return max(RTO_FLOOR, RTO_TRIPS * (c['path']['rtt_ns'] or 0))


def segment_size(c):
    """The smaller MSS of a connection less time stamps, or None."""
    sizes = [e['mss'] for e in c['endpoints'].values() if e['mss']]
    return min(sizes) - 12 if sizes else None


def examine_answer(answer, packets):
    """All violations. `packets`: Packets or None where they cannot be read."""
    out = Findings()
    total = answer['capture']['duration_ns']
    for c in answer['connections']:
        segments = packets.of(c) if packets else []
        flights = [spans.Flight(segments, side) for side in (0, 1)] if segments else []
        known = None
        for x in c['exchanges']:
            known = exchange(c, x, segments, known, out)
        for s in spans.walk_connection(c):
            figures = s.figures() or {}
            if s.length > total:
                out.add('capture', s.length, s, f'{s.cause} of {s.length} ns in a capture of {total} ns')
            if s.kind != 'gap' or s.cause in LIMITS:
                held(c, s, figures, flights, out)
            sentence(c, s, figures, out)
    out.unread = spans.unread(spans.walk(answer), LIMITS + ('bandwidth', 'sender_pause'))
    return out


def exchange(c, x, segments, known, out):
    """Bandwidth and path delay of one exchange; `known` is the shortest round trip named before. Gives the shortest by now."""
    said = [
        s for s in (spans.Span(c, x, 'exchange', span) for span in x['spans']) if s.cause in ('bandwidth', 'path_delay')
    ]
    busy = [s for s in said if s.cause == 'bandwidth']
    for s in busy:
        if (s.figures() or {}).get('bytes') == 0 and s.length > 0:
            out.add('bandwidth', s.length, s, '0 bytes passed')
    rates = [s.figures()['rate'] for s in busy if 'rate' in (s.figures() or {})]
    if rates:
        rate = min(rates) / ROUNDING
        wire = sum(p.length + 14 for p in segments if x['start_ns'] <= p.time <= x['end_ns'])
        if not segments:
            payload = x['request_bytes'] + x['response_bytes']
            wire = payload + (payload // (segment_size(c) or 536) + 2) * 2 * HEADERS
        rated = sum(s.length for s in busy if 'rate' in (s.figures() or {}))
        allowed = (wire + SEGMENT) * 8e9 / rate
        if rated > allowed:
            out.add(
                'bandwidth',
                rated - allowed,
                busy[0],
                f'{rated / MS:.2f} ms for {wire} bytes, which take {allowed / MS:.2f}',
            )
    travels = [s for s in said if s.cause == 'path_delay']
    # later packets may show a shorter way than was known; nobody had seen it then
    named = [s.figures()['trip'] for s in travels if 'trip' in (s.figures() or {})]
    trip, spent = c['path']['rtt_ns'], sum(s.length for s in travels)
    if named and known is not None and max(named) > known * ROUNDING:
        out.add('path_delay', max(named) - known, travels[0], f'a round trip of {max(named)} ns after one of {known}')
    if trip is not None and (most := x['turns'] * (max([trip, *named]) * ROUNDING + TURN_SLACK)) < spent:
        out.add('path_delay', spent - most, travels[0], f'{spent / MS:.3f} ms in {x["turns"]} turns')
    return min([*named, *([known] if known is not None else [])], default=None)


def held(c, s, figures, flights, out):
    """What must have been in flight for a claim to be possible."""
    start, end = s.span['start_ns'], s.span['end_ns']
    mss = segment_size(c)
    # where spans were folded, the order within is lost: nothing says when this one was
    if s.cause in LIMITS and flights and s.span.get('detail') != 'repeated':
        # away from the sender an ACK passes the tap before it releases anything: a round trip at most
        slack = WAKE_UP + (c['path']['rtt_ns'] or 0)
        empty = spans.longest_empty(flights, start, end)
        if empty > slack * ROUNDING:
            out.add('empty', empty, s, f'{s.cause}: nothing in flight for {empty / MS:.2f} ms')
    if s.cause == 'sender_pause' and flights and s.span['side'] in ('client', 'server'):
        bytes_held, oldest = flights[0 if s.span['side'] == 'client' else 1].at(end - 1)
        if bytes_held and oldest is not None and end - oldest > 2 * rto(c):
            out.add('pause', s.length, s, f'{bytes_held} bytes unacknowledged for {(end - oldest) / SECOND:.2f} s')
    if s.cause == 'tail_loss_probe' and s.length > rto(c) + 2 * (c['path']['rtt_ns'] or 0):
        out.add('probe', s.length, s, f'a probe that took {s.length / SECOND:.2f} s')
    if s.cause in CONGESTION and mss and figures.get('flight', mss) < mss:
        out.add('window', s.length, s, f'{s.cause} with {figures["flight"]} bytes in flight, a segment is {mss}')


def sentence(c, s, figures, out):
    """Figures that cannot belong to this span."""
    wrong = None
    if figures.get('before', 0) and figures['flight'] >= figures['before']:
        wrong = f'{figures["flight"]} in flight, only {figures["before"]} before'
    elif 'trip' in figures and s.cause in CONGESTION + ('receive_window', 'send_buffer') and figures['trip'] == 0:
        wrong = 'a round trip of 0'
    elif figures.get('bytes', 0) > sum(c['bytes'].values()) + (SEGMENT + HEADERS) * sum(c['packets'].values()):
        wrong = f'{figures["bytes"]} bytes of a connection of {sum(c["bytes"].values())}'
    elif s.span.get('folded', 1) == 1 and s.length > figures.get('wait', s.length) * ROUNDING + US:
        wrong = f'waited {figures["wait"] / MS:.3f} ms, the span is {s.length / MS:.3f}'
    elif (
        s.span.get('folded', 1) == 1
        and s.cause == 'bandwidth'
        and 'rate' in figures
        and s.length
        > (figures['bytes'] + SEGMENT + figures['bytes'] * HEADERS / 536) * 8e9 / figures['rate'] * ROUNDING
    ):
        wrong = f'{figures["bytes"]} bytes at {figures["rate"] / 1e6:.3f} Mbit/s in {s.length / MS:.3f} ms'
    if wrong:
        out.add('sentence', s.length, s, f'{s.cause}: {wrong}')


# ---------------------------------------------------------------- all captures


def examine(binary, path):
    """The Findings of one capture."""
    answer, _ = common.explain(binary, path, '--exchanges', 'all')
    if answer is None:
        return Findings()
    try:
        packets = spans.Packets(path)
    except ValueError:
        packets = None
    return examine_answer(answer, packets)


def run(binary, folders, jobs):
    """{invariant: [(ns, path, text)]}, captures, sentences that could not be read, failures."""
    found, unread, failed = {name: [] for name in INVARIANTS}, 0, []
    paths = [p for folder in folders for p in below(folder)]
    with concurrent.futures.ThreadPoolExecutor(common.overlap(jobs)) as pool:
        for path, future in [(p, pool.submit(examine, binary, p)) for p in paths]:
            try:
                here = future.result()
                unread += here.unread
                for name, time, text in here.found:
                    found[name].append((time, path, text))
            except (common.Failed, ValueError) as error:
                failed.append(f'{common.shown(path)}: {error}')
    return found, len(paths), unread, failed


def plain(rows):
    """A row of the table."""
    return {
        'violations': len(rows),
        'seconds': round(sum(t for t, _, _ in rows) / SECOND, 3),
        'captures': len({path for _, path, _ in rows}),
    }


def self_test():
    """Each invariant on a made-up answer that breaks it and no other."""
    spans.self_test()

    def broken(*said, segments=(), duration=10 * SECOND, trip=20 * MS):
        made, at = [], 0
        for cause, ms, why in said:
            made.append(
                {
                    'id': '1.1',
                    'cause': cause,
                    'side': 'client',
                    'start_ns': at,
                    'end_ns': at + int(ms * MS),
                    'confidence': 0.85,
                    'why': why,
                }
            )
            at += int(ms * MS)
        c = {
            'id': 1,
            'quality': [],
            'path': {'rtt_ns': trip},
            'bytes': {'client': 10**5, 'server': 0},
            'gaps': [],
            'packets': {'client': 99, 'server': 9},
            'endpoints': {'client': {'mss': 1460}},
            'setup': None,
            'exchanges': [
                {'start_ns': 0, 'end_ns': at, 'turns': 1, 'spans': made, 'request_bytes': 10**5, 'response_bytes': 0}
            ],
        }
        packets = type('Fixed', (), {'of': lambda _, c: list(segments)})()
        return {
            name
            for name, _, _ in examine_answer({'connections': [c], 'capture': {'duration_ns': duration}}, packets).found
        }

    def data(time, ack_time):
        return [spans.Segment(time, 0, 1, 1, 1460, 16, 1500), spans.Segment(ack_time, 1, 1, 1461, 0, 16, 40)]

    flew = '{} bytes (2 segments) were in flight, the window had been 9000 before; the next left with the ACK (round trip {}).'
    passed = '{} bytes passed; the bottleneck carries about 10 Mbit/s.'
    assert broken(('path_delay', 20, ''), ('slow_start', 20, flew.format(2920, '20 ms'))) == set()
    assert broken(('path_delay', 21, '')) == {'path_delay'}
    assert broken(('path_delay', 21, 'One round trip (21 ms): the distance.')) == set()
    assert broken(('path_delay', 21, 'One round trip (20.4 ms): the distance.')) == {'path_delay'}
    assert broken(('bandwidth', 80, passed.format(100000))) == set()
    assert broken(('bandwidth', 98, passed.format(100000))) == {'bandwidth', 'sentence'}
    assert broken(('bandwidth', 5, '0 bytes passed one after the other.')) == {'bandwidth'}
    assert broken(('nagle', 100, ''), segments=data(0, 10 * MS)) == {'empty'}
    assert broken(('nagle', 100, ''), segments=data(0, 90 * MS)) == set()
    waited = 'Nothing for {} with 1460 bytes unacknowledged, and no ACK'
    assert broken(('sender_pause', 3000, waited.format('3.00 s')), segments=data(0, 3001 * MS)) == {'pause'}
    assert broken(('sender_pause', 900, waited.format('900 ms')), segments=data(0, 3001 * MS)) == set()
    assert broken(('tail_loss_probe', 1300, '')) == {'probe'}
    assert broken(('slow_start', 20, flew.format(100, '20 ms'))) == {'window'}
    assert broken(('server_think', 20, ''), duration=10 * MS) == {'capture'}
    assert broken(('idle_restart', 20, flew.format(9000, '20 ms'))) == {'sentence'}
    assert broken(('sender_pause', 30, 'Nothing for 10.0 ms, with everything acknowledged')) == {'sentence'}
    print('meaning: self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folders', nargs='*', default=[os.path.join(common.SHARED, 'captures')])
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--baseline', help='a file that --json wrote')
    parser.add_argument('--json', help='write the counts to this file')
    parser.add_argument('--show', type=int, default=0, help='the worst violations of each')
    parser.add_argument('--max', type=int, help='exit code 1 above this many violations')
    parser.add_argument('--jobs', type=int)
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    found, captures, unread, failed = run(args.bin, args.folders, args.jobs)
    if not captures:
        print(f'no capture in {" ".join(args.folders)}')
        return 1
    was = {}
    if args.baseline:
        with open(args.baseline, encoding='utf8') as f:
            was = json.load(f)['rows']
    print(f'{"invariant":<14}{"violations":>12}{"time":>14}{"captures":>10}' + (f'{"were":>10}' if was else ''))
    for name in INVARIANTS:
        row = plain(found[name])
        print(
            f'{name:<14}{row["violations"]:12}{row["seconds"]:12.3f} s{row["captures"]:10}'
            + (f'{was.get(name, {}).get("violations", 0):10}' if was else '')
        )
        for time, path, text in sorted(found[name], key=lambda v: -v[0])[: args.show]:
            print(f'    {time / MS:10.3f} ms  {common.shown(path)} {text}')
    print(f'{captures} captures; sentences that could not be read: {unread}; no answer: {len(failed)}')
    for text in failed:
        print(f'NO ANSWER {text}')
    if args.json:
        with open(args.json, 'w', encoding='utf8') as f:
            json.dump({'captures': captures, 'rows': {n: plain(found[n]) for n in INVARIANTS}}, f, indent=1)
            f.write('\n')
    violations = sum(map(len, found.values()))
    if args.max is not None and violations > args.max:
        print(f'MISSED {violations} violations, wanted at most {args.max}')
        return 1
    return 1 if failed or unread else 0


if __name__ == '__main__':
    sys.exit(main())
