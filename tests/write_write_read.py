#!/usr/bin/env python3
"""Write-write-read with both sides stalling: both directions must be named, with the time that they lost.

The stalls are measured here from the packets alone: a side sends, then falls silent; after 20 ms or more the
peer's ACK without data comes; at once the side sends the rest. Each side's sum must be within 5 % of what
`explain` calls nagle_delayed_ack with that side as the writer.

    tests/write_write_read.py [--bin PATH]
"""

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import capfile  # noqa: E402
import common  # noqa: E402

MIN_HOLD = 20_000_000  # shortest delayed ACK that this looks for; Linux waits 40 ms or more
RELEASE = 8_000_000  # the held data follow the ACK within this and, at the other end's tap, a round trip
CAPTURES = ('loopback_write_write_read.pcap', 'lab/reconnect_cut/cap.client.pcap', 'lab/reconnect_cut/cap.server.pcap')


def stalls(packets, release=RELEASE):
    """{'client': [ns of each stall where the client is the writer], 'server': [...]} of a one-connection capture."""
    found, client, last_sent, acked = {'client': [], 'server': []}, None, {}, {}
    for p in packets:
        t = capfile.tcp(p)
        if not t:
            continue
        me, peer = (t.source, t.sport), (t.target, t.dport)
        if t.flags & capfile.SYN and not t.flags & capfile.ACK:
            client = me
        if t.payload:
            if me in last_sent and me in acked:
                sent, ack = last_sent[me], acked[me]
                if ack - sent >= MIN_HOLD and p.time - ack <= release:
                    found['client' if me == client else 'server'].append(p.time - sent)
            last_sent[me] = p.time
            acked.pop(me, None)
            acked.pop(peer, None)  # an answer: the peer was not held by an ACK without data
        elif not t.flags & (capfile.SYN | capfile.FIN | capfile.RST):
            acked[peer] = p.time
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    failed = 0
    for name in CAPTURES:
        path = os.path.join(ROOT, 'captures', name)
        packets = capfile.read(path)
        syn_ack = [capfile.tcp(p) for p in packets[:3]]
        rtt = packets[2].time - packets[0].time if all(syn_ack) else 0
        measured = stalls(packets, RELEASE + rtt)
        answer, _ = common.explain(args.bin, path, '--exchanges', 'all')
        for side, times in measured.items():
            spans = [
                s
                for c in answer['connections']
                for part in parts(c)
                for s in part['spans']
                if s['cause'] == 'nagle_delayed_ack' and s['side'] == side
            ]
            got, want = sum(s['end_ns'] - s['start_ns'] for s in spans), sum(times)
            good = len(times) > 10 and abs(got - want) <= 0.05 * want
            failed += not good
            print(
                f'{"ok  " if good else "FAIL"} {name}: {side}: {got / 1e6:.1f} ms in {len(spans)} spans, '
                f'{want / 1e6:.1f} ms measured in {len(times)} stalls'
            )
        sides = {f['side'] for f in answer['findings'] if f['cause'] == 'nagle_delayed_ack'}
        if not sides:
            failed += 1
            print(f'FAIL {name}: no finding nagle_delayed_ack')
    return 1 if failed else 0


def parts(connection):
    """Setup and exchanges."""
    return ([connection['setup']] if connection['setup'] else []) + connection['exchanges']


if __name__ == '__main__':
    sys.exit(main())
