#!/usr/bin/env python3
"""Counts claims that stand on weak grounds: what `explain` says with confidence where a capture can hardly show it.

    scripts/weak_claims.py --bin target/release/tcpwhy [FOLDER ...]     default: ../shared/captures and all below it
    scripts/weak_claims.py ... --baseline docs/weak_claims.json         beside the counts of another day
    scripts/weak_claims.py ... --json FILE | --top N                    the counts; the worst captures of each row

Each row is a claim, with its time, its spans and the captures that it stands in. A row is no proof of a mistake: it says
how much is said on grounds that are known to be weak. Reads the JSON, and packets where a row asks what was in flight.
Exit code 1 with --max-share S if a row holds more than S of its time in the baseline.
"""

import argparse
import concurrent.futures
import json
import os
import sys

import common
import spans

SECOND, MS = 10**9, 10**6
THINK = ('client_think', 'server_think', 'sender_pause')
LOSS = ('fast_recovery', 'retransmission_timeout', 'tail_loss_probe', 'spurious_recovery', 'syn_retransmit', 'path_mtu')
SURE = 0.85  # the rules' usual confidence
WEAK = 0.5  # a claim of at most this much is no claim
SLOW_LINK = 300e3  # bit/s


# ---------------------------------------------------------------- rows: what each counts, as a test of one span


def think_beside_drops(s, _):
    return s.cause in THINK and s.sure >= SURE and s.length > 5 * MS and 'capture_drops' in s.connection['quality']


def pause_unacknowledged(s, flights):
    if s.cause != 'sender_pause' or s.length <= SECOND:
        return False
    flight = flights(s.connection, s.span['side'])
    if flight is None:
        return (s.figures() or {}).get('outstanding', 0) > 0
    unacknowledged = [b - a for a, b, held in flight.steps(s.span['start_ns'], s.span['end_ns']) if held]
    return max(unacknowledged, default=0) > SECOND


def timeout_without_trip(s, _):
    return s.cause == 'retransmission_timeout' and s.sure >= SURE and s.connection['path']['rtt_ns'] is None


def loss_beside_drops(s, _):
    return s.cause in LOSS and s.sure > WEAK and 'capture_drops' in s.connection['quality']


def slow_bandwidth(s, _):
    figures = s.figures() or {}
    return s.cause == 'bandwidth' and 0 < figures.get('bytes', 0) * 8e9 < SLOW_LINK * s.length


def empty_bandwidth(s, _):
    return s.cause == 'bandwidth' and (s.figures() or {}).get('bytes') == 0 and s.length > 5 * MS


def delayed_ack_small(s, _):
    if s.cause != 'delayed_ack':
        return False
    mss = [e['mss'] for e in s.connection['endpoints'].values() if e['mss']]
    return (s.figures() or {}).get('flight', 0) < min(mss, default=536) - 12  # less the time stamps


def long_probe(s, _):
    return s.cause == 'tail_loss_probe' and s.length > SECOND


def below_what_flew(s, _):
    figures = s.figures() or {}
    return (
        s.cause in ('congestion_window', 'idle_restart')
        and 'before' in figures
        and figures['flight'] >= figures['before']
    )


ROWS = [
    ('think or pause of 0.85 or more, over 5 ms, in a connection with capture_drops', think_beside_drops),
    ('sender_pause while data stayed unacknowledged for more than 1 s', pause_unacknowledged),
    ('retransmission_timeout of 0.85 or more, round trip unknown', timeout_without_trip),
    ('a loss cause above 0.5 in a connection with capture_drops', loss_beside_drops),
    ('pacing', lambda s, _: s.cause == 'pacing'),
    ('bandwidth below 300 kbit/s by its own figures', slow_bandwidth),
    ('send_buffer', lambda s, _: s.cause == 'send_buffer'),
    ('bandwidth of 0 bytes, over 5 ms', empty_bandwidth),
    ('delayed_ack with less than a segment in flight', delayed_ack_small),
    ('tail_loss_probe over 1 s', long_probe),
    ('congestion_window or idle_restart with at least as much in flight as before', below_what_flew),
]
ABOVE = "bandwidth above a connection's own bytes at its own rate"
NAMES = [name for name, _ in ROWS] + [ABOVE]
# causes whose row reads the sentence: one that cannot be read would make the row smaller in silence
READ = ('bandwidth', 'delayed_ack', 'congestion_window', 'idle_restart', 'sender_pause')


def above_own_bytes(c, wire_bytes):
    """ns of `bandwidth` above what a connection's bytes take at its rate and one segment more, or 0."""
    rate = c['path']['bandwidth_bps']
    time = (c['budget'] or {}).get('bandwidth', 0)
    if not rate or not time:
        return 0
    return max(0, time - int((wire_bytes + 1514) * 8e9 / rate))


# ---------------------------------------------------------------- counting


class Count:
    """One row: time, spans, and time by capture."""

    def __init__(self):
        self.time, self.spans, self.captures = 0, 0, {}

    def add(self, time, capture):
        self.time += time
        self.spans += 1
        self.captures[capture] = self.captures.get(capture, 0) + time

    def plain(self):
        return {'seconds': round(self.time / SECOND, 3), 'spans': self.spans, 'captures': len(self.captures)}


def examine(binary, path):
    """[(row, ns)] of one capture, and how many sentences could not be read."""
    answer, _ = common.explain(binary, path, '--exchanges', 'all')
    if answer is None:
        return [], 0
    packets, kept, out = None, {}, []

    def flights(c, side):
        """The Flight of a side, or None where its packets cannot be read."""
        nonlocal packets
        if packets is None:
            packets = spans.Packets(path)
        if (c['id'], side) not in kept:
            segments = packets.of(c)
            kept[c['id'], side] = spans.Flight(segments, 0 if side == 'client' else 1) if segments else None
        return kept[c['id'], side]

    for s in spans.walk(answer):
        out += [(name, s.length) for name, test in ROWS if test(s, flights)]
    for c in answer['connections']:
        headers = 54 * sum(c['packets'].values())
        again = 1 + sum(c['retransmitted'].values()) / max(sum(c['packets'].values()), 1)
        over = above_own_bytes(c, sum(c['bytes'].values()) * again + headers)
        if over:
            out.append((ABOVE, over))
    return out, spans.unread(spans.walk(answer), READ)


def below(folder):
    """Capture files of a folder and of all folders in it."""
    return sorted(p for here, _, _ in os.walk(folder) for p in common.captures_in(here))


def run(binary, folders, jobs):
    """{row: Count}, captures looked at, unread sentences, failures."""
    counts = {name: Count() for name in NAMES}
    paths = [p for folder in folders for p in below(folder)]
    unread, failed = 0, []
    with concurrent.futures.ThreadPoolExecutor(common.overlap(jobs)) as pool:
        for path, future in [(p, pool.submit(examine, binary, p)) for p in paths]:
            try:
                rows, more = future.result()
            except (common.Failed, ValueError) as error:
                failed.append(f'{common.shown(path)}: {error}')
                continue
            unread += more
            for name, time in rows:
                counts[name].add(time, path)
    return counts, len(paths), unread, failed


def table(counts, baseline):
    """The rows in words."""
    print(f'{"claim":<80}{"time":>11}{"spans":>8}{"captures":>10}' + (f'{"was":>11}{"spans":>8}' if baseline else ''))
    for name in NAMES:
        row = counts[name].plain()
        text = f'{name:<80}{row["seconds"]:9.3f} s{row["spans"]:8}{row["captures"]:10}'
        if baseline:
            was = baseline['rows'].get(name, {'seconds': 0, 'spans': 0})
            text += f'{was["seconds"]:9.3f} s{was["spans"]:8}'
        print(text)


def self_test():
    """Each row on a made-up span that belongs to it, and on one that does not."""
    spans.self_test()

    def made(cause, ms, sure=0.85, why='', quality=(), rtt=1):
        c = {'id': 1, 'quality': list(quality), 'path': {'rtt_ns': rtt}, 'endpoints': {'client': {'mss': 1460}}}
        return spans.Span(
            c,
            {},
            'exchange',
            {'cause': cause, 'side': 'client', 'start_ns': 0, 'end_ns': int(ms * MS), 'confidence': sure, 'why': why},
        )

    def hit(s):
        return {name for name, test in ROWS if test(s, lambda c, side: None)}

    drops = ['capture_drops']
    waited = 'Nothing for 2.00 s with 9 bytes unacknowledged, and no ACK'
    flew = '{} bytes (2 segments) were in flight, the window had been 2000 before; the next left with the ACK (round trip 2 ms).'
    late = 'With {} bytes in flight the sender could send no more, and the ACK was 40.0 ms late.'
    for n, (yes, no) in enumerate(
        [
            (made('client_think', 6, quality=drops), made('client_think', 6, 0.5, quality=drops)),
            (
                made('sender_pause', 2000, why=waited),
                made('sender_pause', 2000, why='Nothing for 2.00 s, with everything acknowledged'),
            ),
            (made('retransmission_timeout', 6, rtt=None), made('retransmission_timeout', 6)),
            (made('fast_recovery', 6, quality=drops), made('fast_recovery', 6)),
            (made('pacing', 6), made('nagle', 6)),
            (
                made('bandwidth', 100, why='100 bytes passed one after the other.'),
                made('bandwidth', 1, why='1000 bytes passed one after the other.'),
            ),
            (made('send_buffer', 6), made('nagle', 6)),
            (
                made('bandwidth', 6, why='0 bytes passed one after the other.'),
                made('bandwidth', 4, why='0 bytes passed one after the other.'),
            ),
            (made('delayed_ack', 6, why=late.format(100)), made('delayed_ack', 6, why=late.format(2000))),
            (made('tail_loss_probe', 1001), made('tail_loss_probe', 999)),
            (made('idle_restart', 6, why=flew.format(2000)), made('idle_restart', 6, why=flew.format(1999))),
        ]
    ):
        assert ROWS[n][0] in hit(yes), ROWS[n][0]
        assert ROWS[n][0] not in hit(no), ROWS[n][0]
    c = {'path': {'bandwidth_bps': 8000000}, 'budget': {'bandwidth': 10 * MS}}
    assert above_own_bytes(c, 10000) == 0 and above_own_bytes(c, 1000) == 10 * MS - 2514 * 1000
    print('weak_claims: self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folders', nargs='*', default=[os.path.join(common.SHARED, 'captures')])
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--baseline', help='a file that --json wrote')
    parser.add_argument('--max-share', type=float, help='of the time of each row in the baseline')
    parser.add_argument('--json', help='write the counts to this file')
    parser.add_argument('--top', type=int, default=0, help='this many captures of each row')
    parser.add_argument('--jobs', type=int)
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    counts, captures, unread, failed = run(args.bin, args.folders, args.jobs)
    if not captures:
        print(f'no capture in {" ".join(args.folders)}')
        return 1
    baseline = None
    if args.baseline:
        with open(args.baseline, encoding='utf8') as f:
            baseline = json.load(f)
    table(counts, baseline)
    for name in NAMES if args.top else ():
        worst = sorted(counts[name].captures.items(), key=lambda item: -item[1])[: args.top]
        print(f'\n{name}' + ''.join(f'\n  {time / SECOND:9.3f} s  {common.shown(path)}' for path, time in worst))
    print(f'\n{captures} captures; sentences that could not be read: {unread}; no answer: {len(failed)}')
    if args.json:
        with open(args.json, 'w', encoding='utf8') as f:
            json.dump({'captures': captures, 'rows': {n: counts[n].plain() for n in NAMES}}, f, indent=1)
            f.write('\n')
    for text in failed:
        print(f'NO ANSWER {text}')
    off = [
        n
        for n in NAMES
        if baseline
        and args.max_share is not None
        and counts[n].time / SECOND > args.max_share * baseline['rows'].get(n, {'seconds': 0})['seconds'] + 0.0005
    ]
    for name in off:
        print(f'MISSED {name}')
    return 1 if off or failed or unread else 0


if __name__ == '__main__':
    sys.exit(main())
