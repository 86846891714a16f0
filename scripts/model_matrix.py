#!/usr/bin/env python3
"""Condenses a folder that `tcpwhy lab dataset` made into scripts/model_matrix.json, for scripts/model_check.py.

    scripts/model_matrix.py target/matrix

Kept of each run: the scenario without what is default, the packets that the link lost, how long all requests took together.
Random losses are replaced by the log of what was lost, so that the model meets the same ones. Runs that the lab marked as
disturbed are left out.
"""

import argparse
import json
import os

import common

TARGET = os.path.join(common.ROOT, 'scripts', 'model_matrix.json')
# Of a scenario: what every run has, or what is nothing.
USUAL = {
    'congestion': 'cubic',
    'cork': 'never',
    'read_chunk': 262144,
    'backlog': 128,
    'loss_of': 'all',
    'mtu': 1500,
    'connections': 1,
    'requests': 1,
    'patience_ms': 1000000.0,
    'connection': 1,
    'copies': 1,
}


def lean(value):
    """Without defaults and empty tables."""
    if isinstance(value, dict):
        short = {
            k: lean(v) for k, v in value.items() if k == 'at' or v not in (None, False, 0, [], {}) and USUAL.get(k) != v
        }
        return {k: v for k, v in short.items() if v not in ({}, [])}
    return [lean(v) for v in value] if isinstance(value, list) else value


def losses(run):
    """The log of the link as packets to lose, of both directions."""
    ports = {}
    for e in run['exchanges']:
        ports.setdefault(e['port'], len(ports) + 1)
    found = {}
    syns = {}
    for lost in run['lost']:
        if lost['reason'] not in ('random', 'chosen'):
            continue
        way, connection = 'up' if lost['up'] else 'down', ports.get(lost['port'], 1)
        if lost['syn']:
            syns[way, connection] = syns.get((way, connection), 0) + 1
        elif lost['payload'] > 0:
            key = (way, connection, lost['relative'])
            found[key] = found.get(key, 0) + 1
    drops = {'up': [], 'down': []}
    for (way, connection), n in syns.items():
        drops[way].append({'what': 'syn', 'n': list(range(1, n + 1)), 'connection': connection})
    for (way, connection, at), copies in found.items():
        drops[way].append({'what': 'seq', 'at': at, 'copies': copies, 'connection': connection})
    return drops


def condense(folder):
    rows = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name, 'meta.json')
        if not os.path.exists(path):
            continue
        with open(path, encoding='utf8') as f:
            run = json.load(f)
        if run['disturbed'] or run['cut_off'] or not run['exchanges']:
            continue
        s = run['scenario']
        given = [d['what'] for way in ('up', 'down') for d in s['link'][way]['drops']]
        # ACKs have no sequence number of their own: chosen ones stay as they were chosen.
        if 'ack' not in given:
            for way, drops in losses(run).items():
                s['link'][way].update(loss=0, drops=drops)
        w = s['workload']
        took = sum(x['end_ns'] - x['start_ns'] for x in run['exchanges'])
        metric = 'sum'
        if w['reconnect_every'] or any(d['what'] == 'syn' for way in ('up', 'down') for d in s['link'][way]['drops']):
            # Opening (and closing) is what it is about.
            took, metric = run['elapsed_ns'] - (w['requests'] - 1) * w['gap_ms'] * 1e6, 'without gaps'
        row = {'id': f'matrix {name}', 'measured': round(took / 1e6, 3), 'metric': metric}
        row.update({k: lean(s[k]) for k in ('link', 'client', 'server', 'workload')})
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    args = parser.parse_args()
    rows = condense(args.folder)
    with open(TARGET, 'w', encoding='utf8') as f:
        f.write(
            '{"source": "tcpwhy lab dataset: Linux 6.18, CONFIG_HZ=250; ms of all requests together '
            '(without gaps: of all the run, without pauses of the client), one run each",\n "rows": [\n'
        )
        f.write(',\n'.join('  ' + json.dumps(row) for row in rows))
        f.write('\n]}\n')
    print(f'{len(rows)} runs in {common.shown(TARGET)}')


if __name__ == '__main__':
    main()
