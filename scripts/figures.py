#!/usr/bin/env python3
"""Draws the figures of README.md and of the pages of causes from bundled captures: scripts/figures.py --bin BINARY [--check]"""

import argparse
import os
import subprocess
import sys
import tempfile

import common

FOLDER = os.path.join(common.ROOT, 'docs', 'figures')
# figure: capture and which connection and exchange of it
FIGURES = {
    'nagle_delayed_ack': ('zeek__smtp_bdat.pcap', '--connection 1 --exchange 19'),
    'fast_recovery': ('lab/loss_middle_one/cap.server.pcap.zst', '--connection 1'),
    'tail_loss_probe': ('lab/loss_tail_tlp/cap.server.pcap.zst', '--connection 1 --exchange 1'),
    'receive_window': ('lab/376k_upload_rcvbuf8192_rtt40/cap.client.pcap.zst', '--connection 1'),
    'slow_reader': ('lab/slow_reader_6s_rcvbuf8k/cap.server.pcap.zst', '--connection 1'),
    'slow_start': ('lab/fresh_mtu1500/cap.server.pcap.zst', '--connection 1'),
    'server_think': ('lab/mix_server_think_2s/cap.client.pcap.zst', '--connection 1 --exchange 1'),
}


def draw(binary, name, to):
    capture, which = FIGURES[name]
    subprocess.run(
        [binary, 'explain', os.path.join(common.ROOT, 'captures', capture), '--quiet', *which.split(), '--svg', to],
        stdout=subprocess.DEVNULL,
        check=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    os.makedirs(FOLDER, exist_ok=True)
    stale = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in FIGURES:
            kept = os.path.join(FOLDER, name + '.svg')
            fresh = os.path.join(scratch, name + '.svg')
            draw(os.path.abspath(args.bin), name, fresh)
            with open(fresh, 'rb') as f:
                new = f.read()
            old = b''
            if os.path.exists(kept):
                with open(kept, 'rb') as f:
                    old = f.read()
            if new != old:
                stale.append(name)
                if not args.check:
                    with open(kept, 'wb') as f:
                        f.write(new)
            page = os.path.join(common.ROOT, 'docs', 'causes', name + '.md')
            with open(page, encoding='utf8') as f:
                if f'../figures/{name}.svg' not in f.read():
                    sys.exit(f'figures: {common.shown(page)} does not show its figure')
    if args.check and stale:
        sys.exit(f'figures: out of date: {", ".join(stale)}: make docs-figures')
    print(f'figures: {len(FIGURES)} in docs/figures, {len(stale)} new')


if __name__ == '__main__':
    main()
