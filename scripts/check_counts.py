#!/usr/bin/env python3
"""Holds the counts of `explain` against what tshark and tcptrace say of the same captures.

    scripts/check_counts.py --bin target/release/tcpwhy [--set bundled|shared|all]
    scripts/check_counts.py ... --report            the differences without a class, as rows for count_classes.json
    scripts/check_counts.py --self-test

Compared for each file: TCP packets, connections; for each connection and side: packets, retransmitted packets (repeated
SYNs among them, as tshark counts), zero windows, repeated SYNs. tshark's figure is the reference and tcptrace's is shown
beside it; for repeated SYNs it is tcptrace's where there is one. A difference must stand in
count_classes.json with both figures, the frames that show it and the class that says why; there are at most 15
classes. A difference without a row fails, and so does a row without its difference.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import capfile
import common
from answers.packets import endpoint

TABLE = os.path.join(common.ROOT, 'scripts', 'count_classes.json')
MAX_CLASSES = 15
FLAGS = {
    'retransmitted': 'tcp.analysis.retransmission',
    'zero_windows': 'tcp.analysis.zero_window',
    'syn_repeats': 'tcp.flags.syn == 1',
    'packets': 'tcp',
}


def key(file, where, what):
    """What makes a difference unique."""
    return f'{file} | {where} | {what}'


def side_counts(c):
    """{what: [client, server]} of a connection in our JSON, which leaves out an end's counters that are zero; a figure
    whose end is missing is None."""
    ends = c.get('endpoints') or {}

    def of(name):
        sides = [ends.get(side) for side in ('client', 'server')]
        return None if None in sides else [end.get(name, 0) for end in sides]

    syns = of('syn_repeats')
    data = [c['retransmitted']['client'], c['retransmitted']['server']]
    return {
        'packets': [c['packets']['client'], c['packets']['server']],
        'retransmitted': data,
        'zero_windows': of('zero_windows'),
        'syn_repeats': syns,
    }


def stream_counts(stream):
    """The same of a tshark stream, as [a, b]. A SYN-ACK of b is no repeat of a's SYN."""
    flags = stream.get('an') or {}
    return {
        'packets': stream['pkts'],
        'retransmitted': flags.get('retransmission', [0, 0]),
        'zero_windows': flags.get('zero_window', [0, 0]),
        'syn_repeats': [max(n - 1, 0) for n in stream['syn']],
    }


def trace_counts(entry):
    """The same of a tcptrace connection."""
    syns = [int(str(x).partition('/')[0] or 0) for x in entry.get('SYN/FIN_pkts_sent', ['0/0', '0/0'])]
    return {
        'packets': entry.get('total_packets'),
        'retransmitted': entry.get('rexmt_data_pkts', [0, 0]),
        'zero_windows': entry.get('zero_win_adv', [0, 0]),
        'syn_repeats': [max(n - 1, 0) for n in syns],
    }


def bar_endpoint(text):
    """'10.0.0.1|80' as (address bytes, port)."""
    address, _, port = text.rpartition('|')
    if re.match(r':[^:]', address):
        address = ':' + address  # tcptrace writes ::1 so
    return endpoint(f'[{address}]:{port}')


def compare(answer, reference):
    """[(where, what, ours, theirs, tcptrace's)] that differ, and how many figures were compared."""
    found, compared = [], 0
    shark = reference['tshark']

    def look(where, what, ours, theirs, trace=None):
        nonlocal compared
        compared += 1
        if ours != theirs:
            found.append((where, what, ours, theirs, trace))

    look('file', 'tcp_packets', answer['capture']['tcp_packets'], shark['tcp_packets'])
    look('file', 'connections', len(answer['connections']), shark['streams_total'])
    ours, traces = {}, {}
    for c in answer['connections']:
        ends = endpoint(c['client']), endpoint(c['server'])
        ours.setdefault(frozenset(ends), []).append((ends[0], c))
    for entry in (reference.get('tcptrace') or {}).get('conns') or []:
        ends = bar_endpoint(entry['a']), bar_endpoint(entry['b'])
        traces.setdefault(frozenset(ends), []).append((ends[0], entry))
    theirs = {}
    for stream in shark.get('streams') or []:
        ends = bar_endpoint(stream['a']), bar_endpoint(stream['b'])
        theirs.setdefault(frozenset(ends), []).append((ends[0], stream))
    for flow, streams in theirs.items():
        mine = sorted(ours.get(flow, []), key=lambda x: x[1]['start_ns'])
        streams.sort(key=lambda x: x[1]['first'])
        trace = traces.get(flow, [])
        if len(mine) != len(streams):
            look(f'stream {streams[0][1]["s"]}', 'connections', len(mine), len(streams), len(trace) if trace else None)
            continue
        for n, ((client, c), (first, stream)) in enumerate(zip(mine, streams)):
            wanted = stream_counts(stream)
            third = trace_counts(trace[n][1]) if len(trace) == len(streams) else {}
            for what, got in side_counts(c).items():
                if got is None:
                    look(f'stream {stream["s"]}', what, 'missing', wanted[what])
                    continue
                turned = got if client == first else got[::-1]
                other = third.get(what)
                if other and trace[n][0] != first:
                    other = other[::-1]
                best = other if what == 'syn_repeats' and other else wanted[what]
                look(f'stream {stream["s"]}', what, turned, list(best), other)
    return found, compared


def frames_for(path, where, what):
    """Up to eight frames that tshark counts for this figure: a start for whoever looks into it."""
    match = re.fullmatch(r'stream (\d+)', where)
    if not match or what not in FLAGS or not common.have('tshark'):
        return []
    command = [
        'tshark',
        '-n',
        '-r',
        '-',
        '-Y',
        f'tcp.stream == {match[1]} && {FLAGS[what]}',
        '-T',
        'fields',
        '-e',
        'frame.number',
    ]
    done = subprocess.run(
        command, input=capfile.unpacked(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    return [int(n) for n in done.stdout.split()][:8]


def load_table():
    """(classes {id: reason}, rows by key) of the table; ValueError says what is wrong with it."""
    with open(TABLE, encoding='utf8') as f:
        table = json.load(f)
    classes, rows = table['classes'], {}
    if len(classes) > MAX_CLASSES:
        raise ValueError(f'{len(classes)} classes, at most {MAX_CLASSES}')
    for row in table['differences']:
        name = key(row['file'], row['where'], row['what'])
        if row['class'] not in classes:
            raise ValueError(f'{name}: no class {row["class"]!r}')
        if not row.get('frames') and row['where'] != 'file':
            raise ValueError(f'{name}: no frames')
        if name in rows:
            raise ValueError(f'{name}: twice')
        rows[name] = row
    for name, reason in classes.items():
        if not reason or not any(r['class'] == name for r in rows.values()):
            raise ValueError(f'class {name}: no reason or no row')
    return classes, rows


def judge(differences, rows, seen_files):
    """(differences without a fitting row, rows without their difference). `differences`: (file, where, ...)."""
    left, used = [], set()
    for file, where, what, ours, theirs, trace in differences:
        name = key(file, where, what)
        row = rows.get(name)
        if row and row['ours'] == ours and row['theirs'] == theirs:
            used.add(name)
        else:
            left.append((file, where, what, ours, theirs, trace))
    stale = [r for name, r in rows.items() if name not in used and r['file'] in seen_files]
    return left, stale


def references(which):
    """[(capture, reference)] of the sets."""
    found = {}
    for _, folder in common.sets(which):
        for path in common.captures_in(folder):
            reference = os.path.join(folder, 'reference', os.path.basename(path) + '.json')
            if os.path.exists(reference):
                found.setdefault(os.path.basename(path), (path, reference))
    return list(found.values())


def one(binary, path, reference):
    """(file, differences, figures compared) or (file, None, why)."""
    name = os.path.basename(path)
    with open(reference, encoding='utf8') as f:
        wanted = json.load(f)
    try:
        answer, _ = common.explain(binary, path)
    except common.Failed as error:
        return name, None, str(error)
    if answer is None:
        if wanted['tshark'].get('tcp_packets'):
            return name, None, 'refused, though tshark reads TCP in it'
        return name, [], 0
    found, compared = compare(answer, wanted)
    return name, found, compared


def run(binary, which, report, jobs):
    """The number of problems."""
    classes, rows = load_table()
    differences, compared, problems, files = [], 0, 0, references(which)
    with concurrent.futures.ThreadPoolExecutor(common.overlap(jobs)) as pool:
        for name, found, count in pool.map(lambda f: one(binary, *f), files):
            if found is None:
                problems += 1
                print(f'FAIL {name}: {count}')
                continue
            compared += count
            differences += [(name, *d) for d in found]
    if not files:
        problems += 1
        print('FAIL no capture with a reference was found')
    left, stale = judge(differences, rows, {os.path.basename(p) for p, _ in files})
    if report:
        paths = {os.path.basename(p): p for p, _ in files}
        for file, where, what, ours, theirs, trace in left:
            row = {
                'file': file,
                'where': where,
                'what': what,
                'ours': ours,
                'theirs': theirs,
                'tcptrace': trace,
                'class': '',
                'frames': frames_for(paths[file], where, what),
            }
            print(json.dumps(row))
    else:
        for file, where, what, ours, theirs, trace in left:
            print(f'FAIL {file}, {where}: {what}: {ours}, tshark {theirs}, tcptrace {trace}: in no class')
        for row in stale:
            print(
                f'FAIL {row["file"]}, {row["where"]}: {row["what"]}: the table has a row, the figures agree or changed'
            )
    by_class = {}
    for row in rows.values():
        by_class[row['class']] = by_class.get(row['class'], 0) + 1
    for name, reason in classes.items():
        print(f'  {by_class[name]:4} x {name}: {reason}')
    print(
        f'check_counts: {len(files)} captures, {compared} figures, {len(differences)} differences, '
        f'{len(differences) - len(left)} in {len(classes)} classes, {len(left)} in none, {len(stale)} stale rows'
    )
    return problems + len(left) + len(stale)


def self_test():
    """One difference without a class, and one row without its difference, must be noticed."""
    with open(os.path.join(common.ROOT, 'captures', 'reference', 'zeek__smtp_bdat.pcap.json'), encoding='utf8') as f:
        reference = json.load(f)
    stream = reference['tshark']['streams'][0]
    ends = [re.sub(r'^(.*)\|(\d+)$', r'[\1]:\2', stream[k]) for k in 'ab']
    answer = {
        'capture': {'tcp_packets': reference['tshark']['tcp_packets']},
        'connections': [
            {
                'client': ends[0],
                'server': ends[1],
                'start_ns': 0,
                'packets': dict(zip(('client', 'server'), stream['pkts'])),
                'retransmitted': {'client': 0, 'server': 0},
                'endpoints': {
                    'client': {'zero_windows': 0, 'syn_repeats': 0},
                    'server': {'zero_windows': 0, 'syn_repeats': 0},
                },
            }
        ],
    }
    found, compared = compare(answer, reference)
    assert not found and compared == 6, found
    turned = json.loads(json.dumps(answer))
    c = turned['connections'][0]
    c['client'], c['server'] = c['server'], c['client']
    c['packets'] = {'client': c['packets']['server'], 'server': c['packets']['client']}
    assert not compare(turned, reference)[0]
    for break_it in (
        lambda a: a['capture'].update(tcp_packets=1),
        lambda a: a['connections'].clear(),
        lambda a: a['connections'][0]['packets'].update(client=1),
        lambda a: a['connections'][0]['retransmitted'].update(server=1),
        lambda a: a['connections'][0]['endpoints']['client'].update(zero_windows=1),
        lambda a: a['connections'][0]['endpoints']['client'].update(syn_repeats=1),
        lambda a: a['connections'][0]['endpoints'].pop('client'),
    ):
        broken = json.loads(json.dumps(answer))
        break_it(broken)
        assert compare(broken, reference)[0], break_it
    row = {
        'file': 'f',
        'where': 'stream 0',
        'what': 'packets',
        'ours': [1, 2],
        'theirs': [1, 3],
        'class': 'c',
        'frames': [1],
    }
    rows = {key('f', 'stream 0', 'packets'): row}
    same = ('f', 'stream 0', 'packets', [1, 2], [1, 3], None)
    assert judge([same], rows, {'f'}) == ([], [])
    assert judge([('f', 'stream 0', 'packets', [1, 1], [1, 3], None)], rows, {'f'})[0]
    assert judge([same, ('f', 'stream 1', 'packets', [1, 1], [1, 3], None)], rows, {'f'})[0]
    assert judge([], rows, {'f'})[1] and not judge([], rows, set())[1]
    load_table()
    print('check_counts: self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--set', choices=['bundled', 'shared', 'all'], default='all')
    parser.add_argument('--report', action='store_true')
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('--jobs', type=int)
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    try:
        return 1 if run(args.bin, args.set, args.report, args.jobs) else 0
    except ValueError as error:
        sys.exit(f'count_classes.json: {error}')


if __name__ == '__main__':
    sys.exit(main())
