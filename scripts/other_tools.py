#!/usr/bin/env python3
"""What tshark and tcptrace say of labelled captures: whether they flag what took the time.

    scripts/other_tools.py DIR [--bin target/release/tcpwhy] [--json FILE]

DIR is a data set of `tcpwhy lab dataset` (folders with label.json), or captures/lab. For each capture whose label asks for a
cause, three answers are scored: does the tool flag anything that belongs to that cause (`flagged` in the table of causes)?

tshark: its expert information about TCP (tcp.analysis flags), the most telling ones counted per cause, see FLAGS.
tcptrace: the counters of `tcptrace -l -W` that belong to the cause, see COUNTERS.
Flags that any ordinary transfer raises (window updates, keep-alives, reused ports) count for nothing.
tcpwhy: the cause itself has the most time (the rule of accuracy.py).
A flag on a control (a capture where nothing avoidable happened) is a false alarm.

Neither tool claims to attribute time; the table says what a person who reads their flags is pointed to.
"""

import argparse
import json
import shutil
import subprocess
import sys

import accuracy
import common

# What a reader of the flag would look for. A flag that many causes raise (a duplicate ACK) points to losses.
FLAGS = {
    'retransmission': 'loss',
    'fast_retransmission': 'loss',
    'spurious_retransmission': 'loss',
    'lost_segment': 'loss',
    'ack_lost_segment': 'loss',
    'duplicate_ack': 'loss',
    'out_of_order': 'loss',
    'zero_window': 'window',
    'window_full': 'window',
    'zero_window_probe': 'window',
    'zero_window_probe_ack': 'window',
}
COUNTERS = {
    'rexmt data pkts': 'loss',
    'outoforder pkts': 'loss',
    'zero win adv': 'window',
    'zwnd probe pkts': 'window',
}


def tshark(path):
    """{flag: packets}."""
    fields = ['-e', 'tcp.analysis.flags'] + [x for f in sorted(FLAGS) for x in ('-e', 'tcp.analysis.' + f)]
    done = subprocess.run(
        ['tshark', '-r', path, '-Y', 'tcp.analysis.flags', '-T', 'fields', *fields],
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {}
    for row in done.stdout.splitlines():
        for name, value in zip(sorted(FLAGS), row.split('\t')[1:]):
            if value:
                counts[name] = counts.get(name, 0) + 1
    return counts


def tcptrace(path):
    """{counter: sum of both directions}."""
    done = subprocess.run(
        ['tcptrace', '-l', '-W', '-n', path], capture_output=True, text=True, errors='replace', check=False
    )
    counts = {}
    for row in done.stdout.splitlines():
        for name in COUNTERS:
            parts = row.split(name + ':')
            for part in parts[1:]:
                number = part.split()[0] if part.split() else '0'
                counts[name] = counts.get(name, 0) + (int(number) if number.isdigit() else 0)
    return {k: v for k, v in counts.items() if v}


def flagged(counts, table):
    """The families that are flagged."""
    return {table[name] for name in counts if name in table}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--json')
    args = parser.parse_args()
    for tool in ('tshark', 'tcptrace'):
        if not shutil.which(tool):
            sys.exit(f'{tool} is not installed: apt-get install tshark tcptrace')
    rows, alarms, controls = {}, {'tshark': 0, 'tcptrace': 0, 'tcpwhy': 0}, 0
    for case in common.labelled_in(args.folder):
        check = case.checks[0]
        if check['kind'] not in ('cause', 'dominant', 'clean'):
            continue
        seen = {'tshark': flagged(tshark(case.path), FLAGS), 'tcptrace': flagged(tcptrace(case.path), COUNTERS)}
        result = accuracy.examine(args.bin, case, [])[0][1]
        if check['kind'] == 'clean':
            controls += 1
            for tool in seen:
                alarms[tool] += bool(seen[tool])
            alarms['tcpwhy'] += result.verdict == accuracy.WRONG
            continue
        cause = case.cause()
        row = rows.setdefault(cause, {'captures': 0, 'tshark': 0, 'tcptrace': 0, 'tcpwhy': 0})
        row['captures'] += 1
        for tool in seen:
            row[tool] += common.CAUSES[cause]['flagged'] in seen[tool]
        row['tcpwhy'] += result.verdict == accuracy.RIGHT
    print(f'{"dominant cause":<26}{"captures":>9}{"tshark":>9}{"tcptrace":>9}{"tcpwhy":>9}')
    total = {'captures': 0, 'tshark': 0, 'tcptrace': 0, 'tcpwhy': 0}
    for cause, row in sorted(rows.items(), key=lambda r: -r[1]['captures']):
        print(f'{cause:<26}{row["captures"]:>9}{row["tshark"]:>9}{row["tcptrace"]:>9}{row["tcpwhy"]:>9}')
        for key in total:
            total[key] += row[key]
    print(f'{"all":<26}{total["captures"]:>9}{total["tshark"]:>9}{total["tcptrace"]:>9}{total["tcpwhy"]:>9}')
    print(
        f'\ncontrols {controls}; flagged all the same: tshark {alarms["tshark"]}, tcptrace {alarms["tcptrace"]}, '
        f'tcpwhy {alarms["tcpwhy"]}'
    )
    if args.json:
        with open(args.json, 'w', encoding='utf8') as f:
            json.dump({'causes': rows, 'all': total, 'controls': controls, 'false_alarms': alarms}, f, indent=1)
            f.write('\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
