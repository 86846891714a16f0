#!/usr/bin/env python3
"""The model against lab captures, flight by flight and byte by byte: which segments left together, how long after the data
before them, and when each byte passed.

Captures: those of the runs without a fix (captures/fixes) and the labelled ones (captures/lab, and ../shared where it is). The
model writes a capture of the same scenario at the same end (`tcpwhy predict --write`); both are cut into flights by the
same rule and laid beside each other. In a long transfer one ACK that comes microseconds earlier moves the ends of all flights
after it; there the times of the bytes say more. Ends with 1 if a bound is missed.
"""

import argparse
import difflib
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import capfile
import common
import model_fixes
from model_check import from_label, toml

# Share of a capture's flights that the model has too (direction, segments, bytes, in order), on average over the captures;
# errors of their waits (median), and of the times at which bytes passed since the first SYN (median, 95th percentile).
SAME, WAITS, MEDIAN, P95 = 80.0, 5.0, 5.0, 15.0
# Waits below this are the machine.
LEAST = 2_000_000


def flights(path, rtt_ms):
    """(direction, segments, bytes) of each flight, and how long it came after the data before it, ns.

    Data of one direction belong together while less than a quarter of the round trip (1 ms at least) lies between them
    and the other direction sends none."""
    apart = max(rtt_ms / 4, 1) * 1e6
    out, waits, last = [], [], {}
    open_at = {}
    for packet in capfile.read(path):
        t = capfile.tcp(packet)
        if t is None or t.payload == 0:
            continue
        up = t.dport < t.sport
        key = (t.sport, t.dport) if up else (t.dport, t.sport)
        before, side, index = open_at.get(key, (None, None, None))
        if before is not None and side == up and packet.time - before <= apart:
            d, n, size = out[index]
            out[index] = (d, n + 1, size + t.payload)
        else:
            index = len(out)
            out.append(('up' if up else 'down', 1, t.payload))
            waits.append(packet.time - last[key] if key in last else 0)
        open_at[key], last[key] = (packet.time, up, index), packet.time
    return out, waits


def passed(path):
    """When the last byte of each segment passed first, since the first packet: {(connection, direction, offset): ns}."""
    out, first, start, numbers = {}, None, {}, {}
    for packet in capfile.read(path):
        t = capfile.tcp(packet)
        if t is None:
            continue
        first = packet.time if first is None else first
        up = t.dport < t.sport
        pair = (t.sport, t.dport) if up else (t.dport, t.sport)
        if t.flags & capfile.SYN:
            numbers.setdefault(pair, len(numbers))
            start[pair, up] = t.seq
        elif t.payload and (pair, up) in start:
            end = (t.seq + t.payload - start[pair, up] - 1) & 0xFFFFFFFF
            out.setdefault((numbers[pair], up, end), packet.time - first)
    return out


def cases():
    """(name, scenario, capture, end)."""
    for p in model_fixes.pairs():
        path = os.path.join(model_fixes.CAPTURES, model_fixes.file_name(p))
        if os.path.exists(path):
            yield p['id'], p['before'], path, 'client'
    if not common.have('zstd'):
        print('labelled captures are left out: zstd is not installed')
        return
    for _, folder in common.sets('all'):
        for label in sorted(glob.glob(os.path.join(folder, 'lab', '*', 'label.json'))):
            with open(label, encoding='utf8') as f:
                made = from_label(json.load(f))
            # One draw of random losses is no target.
            if made is None or any(made[0]['link'][way].get('loss') for way in ('up', 'down')):
                continue
            for end in ('client', 'server'):
                found = glob.glob(os.path.join(os.path.dirname(label), f'cap.{end}.pcap*'))
                if found:
                    yield f'{os.path.basename(os.path.dirname(label))} {end}', made[0], found[0], end


def rtt_of(s):
    link = s['link']
    return link.get('rtt_ms') or link['up'].get('delay_ms', 0) + link['down'].get('delay_ms', 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--only', default='', help='cases whose name matches this expression')
    parser.add_argument('--show', action='store_true', help='the flights that differ')
    args = parser.parse_args()
    shares, errors, late, seen = [], [], [], set()
    print(f'{"case":<64} {"flights":>8} {"the same":>9} {"waits off by":>13} {"bytes off by":>13}')
    for name, scenario, path, end in cases():
        if name in seen or not re.search(args.only, name):
            continue
        seen.add(name)
        with tempfile.TemporaryDirectory() as tmp:
            file, made = os.path.join(tmp, 's.toml'), os.path.join(tmp, 'model.pcapng')
            with open(file, 'w', encoding='utf8') as f:
                f.write(toml(scenario))
            run = subprocess.run(
                [args.bin, 'predict', file, '--json', '--write', made, '--tap', end],
                capture_output=True,
                text=True,
                check=False,
            )
            if run.returncode != 0:
                sys.exit(f'{name}: {run.stderr.strip()}')
            when, then = passed(path), passed(made)
            (want, waited), (got, modelled) = flights(path, rtt_of(scenario)), flights(made, rtt_of(scenario))
        # Long captures repeat themselves; what is cut (a snap of the first packets) ends earlier than the run.
        matcher = difflib.SequenceMatcher(None, want, got[: len(want) + 50], autojunk=False)
        found, off = 0, []
        for a, b, n in matcher.get_matching_blocks():
            found += n
            off += [abs(modelled[b + i] / waited[a + i] - 1) * 100 for i in range(n) if waited[a + i] >= LEAST]
        share = found / max(len(want), 1) * 100
        apart = [abs(then[k] / when[k] - 1) * 100 for k in when if k in then and when[k] >= LEAST]
        shares.append(share)
        errors += off
        # Without any wait of that length the time is the machine's.
        late += [statistics.median(apart)] if apart and off else []
        shown = [f'{statistics.median(e):.1f} %' if e else '-' for e in (off, apart)]
        print(f'{name[:64]:<64} {len(want):>8} {share:>7.1f} % {shown[0]:>13} {shown[1]:>13}')
        if args.show:
            for tag, a, b, c, d in matcher.get_opcodes():
                if tag != 'equal':
                    print(f'    measured {want[a:b][:6]}, model {got[c:d][:6]}')
    if not shares:
        sys.exit('no case')
    late.sort()
    share, waits, median = statistics.mean(shares), statistics.median(errors), statistics.median(late)
    p95 = late[min(len(late) - 1, int(len(late) * 0.95))]
    whole = sum(s == 100 for s in shares)
    print(
        f'\n{len(shares)} captures: all flights the same in {whole}, {share:.1f} % on average (bound {SAME:g}); their waits '
        f'off by {waits:.1f} % (median, bound {WAITS:g}); bytes off by {median:.1f} % (median of captures, bound '
        f'{MEDIAN:g}), {p95:.1f} % (95th '
        f'percentile, bound {P95:g})'
    )
    sys.exit(1 if share < SAME or waits > WAITS or median > MEDIAN or p95 > P95 else 0)


if __name__ == '__main__':
    main()
