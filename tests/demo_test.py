#!/usr/bin/env python3
"""The demo: 27 Nagle stalls of about 1,162 ms, told apart from 31 pauses of the client application of about 1,582 ms.

tests/demo_test.py [--bin PATH]
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

CAPTURE = os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap')
WITHIN = 0.02


class Checks:
    """Counts and says what failed."""

    def __init__(self):
        self.failed = 0

    def expect(self, good, text):
        self.failed += not good
        print(f'{"ok  " if good else "FAIL"} {text}')


def near(got, want):
    return abs(got - want) <= WITHIN * want


def all_spans(answer):
    """Every span of every part."""
    for c in answer['connections']:
        for part in ([c['setup']] if c['setup'] else []) + c['exchanges'] + c['gaps']:
            yield from part['spans']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    checks = Checks()
    answer, code = common.explain(args.bin, CAPTURE, '--exchanges', 'all')
    checks.expect(code == 0, f'exit code {code}')
    # before it closes the connection the client takes 0.3 ms once more: that may count as a pause or not
    for cause, counts, want, side in (
        ('nagle_delayed_ack', (27,), 1162, 'client'),
        ('client_think', (31, 32), 1582, 'client'),
    ):
        found = [f for f in answer['findings'] if f['cause'] == cause]
        checks.expect(len(found) == 1, f'{cause}: one finding ({len(found)})')
        for f in found[:1]:
            lost = f['lost_ns'] / 1e6
            checks.expect(near(lost, want), f'{cause}: {lost:.1f} ms, wanted {want}')
            checks.expect(f['occurrences'] in counts, f'{cause}: {f["occurrences"]} times, wanted {counts[0]}')
            checks.expect(f['side'] == side, f'{cause}: side {f["side"]}')
    first = answer['findings'][0]['cause'] if answer['findings'] else None
    checks.expect(first in ('nagle_delayed_ack', 'client_think'), f'the worst finding is {first}')
    stalls = [s for s in all_spans(answer) if s['cause'] == 'nagle_delayed_ack']
    # the client's 10 bytes are frame 16, the server's late ACK 17, the held 129 bytes 18; and so on
    for frames in ([16, 17, 18], [22, 23, 24], [28, 29, 30]):
        here = [
            s
            for s in stalls
            if s['frames']['first'] <= frames[0]
            and frames[2] <= s['frames']['last'] + 1
            and set(frames) <= {s['frames']['first'], s['frames']['last'], *s['frames']['key']}
        ]
        checks.expect(len(here) == 1, f'one stall shows the frames {frames}')
    # 48.2 ms is the longest in the packets (frames 100 to 102)
    checks.expect(all(40e6 < s['end_ns'] - s['start_ns'] < 49e6 for s in stalls), 'each stall takes 40 to 49 ms')
    pauses = [s['end_ns'] - s['start_ns'] for s in all_spans(answer) if s['cause'] == 'client_think']
    long = [p for p in pauses if p > 10_000_000]
    checks.expect(len(long) == 31 and near(sum(long) / 1e6, 1582), f'{len(long)} long pauses, {sum(long) / 1e6:.1f} ms')
    fixes = [fix['id'] for f in answer['findings'] if f['cause'] == 'nagle_delayed_ack' for fix in f['fixes']]
    checks.expect('nodelay' in fixes and len(fixes) > 1, f'fixes: {", ".join(fixes)}')
    text = subprocess.run(
        [args.bin, 'explain', CAPTURE], stdout=subprocess.PIPE, check=True, env=dict(os.environ, NO_COLOR='1')
    ).stdout.decode('utf8')
    checks.expect('\x1b' not in text, 'no colours when piped')
    checks.expect(bool(re.search(r'\b27\b', text)) and bool(re.search(r'1[.,]16', text)), 'the text says 27 and 1.16 s')
    checks.expect(
        bool(re.search(r'\b3[12] times', text)) and bool(re.search(r'1[.,]5[89]', text)), 'the text says 31 and 1.58 s'
    )
    checks.expect('TCP_NODELAY' in text, 'the text names TCP_NODELAY')
    return 1 if checks.failed else 0


if __name__ == '__main__':
    sys.exit(main())
