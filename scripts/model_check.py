#!/usr/bin/env python3
"""Predicted beside measured beside published: the model against experiments on the real kernel.

Rows come from scripts/model_measured.json (which the tests of the model read too; --measure makes its runs anew), from the
labelled captures beside a checkout (../shared/captures/lab) where there are some, from scripts/model_scenarios.json (runs of
scenarios/*.toml in the lab) and scripts/model_matrix.json (the lab's matrix). Prints a table, the median and the 95th
percentile of the errors, and whether every fix goes in the measured direction. Ends with 1 if a bound is missed.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
MEDIAN, P95 = 5.0, 15.0
# Pairs of rows, before and after a fix: (before, after), by id.
FIXES = [
    ('A4 fresh, MTU 8500, kept open, Nagle on', 'A4 fresh, MTU 8500, the server closes'),
    ('A4 fresh, MTU 1500, the server closes', 'A4 initcwnd 20'),
    ('A4 kept, back to back, server Nagle on', 'A4 kept, back to back'),
    ('A4 kept, 1 s gap', 'A4 kept, 6 s gap, ssai=0'),
    ('A4 fresh, MTU 1500, the server closes', 'A4 kept, back to back'),
    ('A1 write 200 + write 800, then read', 'A1 the same, TCP_NODELAY'),
    ('A2 SNDBUF 16K, 16 KB writes, NODELAY', 'A2 SNDBUF 64K, 16 KB writes, NODELAY'),
    ('A2 SNDBUF 64K, 16 KB writes, NODELAY', 'A2 automatic'),
    ('A2 SNDBUF 16K, 1 KB writes, NODELAY, 22 MB', 'A2 SNDBUF 16K, 16 KB writes, NODELAY'),
    ('A2 SNDBUF 16K, 16 KB writes, NODELAY', 'A2 SNDBUF 16K, one write'),
    ('A2 376 KB into SO_RCVBUF 8K, RTT 40', 'A2 default receive buffer, RTT 40'),
    ('A3 one connection', 'A3 NODELAY client only'),
    ('A3 one connection', 'A3 NODELAY server only'),
    ('A3 one connection', 'A3 NODELAY both'),
    ('A3 one connection', 'A3 CORK both'),
    ('A3 one connection', 'A3 one write both'),
    ('A3 one connection', 'A3 MTU 1500'),
    ('A3 one connection', 'A3 reconnect after 1'),
]


def toml_value(v):
    if isinstance(v, bool):
        return 'true' if v else 'false'
    if isinstance(v, str):
        return json.dumps(v)
    if isinstance(v, list):
        return '[' + ', '.join(toml_value(x) for x in v) + ']'
    if isinstance(v, dict):
        return '{ ' + ', '.join(f'"{k}" = {toml_value(x)}' for k, x in v.items()) + ' }'
    return repr(v)


def toml(scenario):
    lines = ['title = "check"', 'limit_s = 300']
    for table in ('link', 'client', 'server', 'workload'):
        lines.append(f'[{table}]')
        lines += [f'"{k}" = {toml_value(v)}' for k, v in scenario.get(table, {}).items()]
    return '\n'.join(lines) + '\n'


def predict(binary, path):
    run = subprocess.run([binary, 'predict', path, '--json'], capture_output=True, text=True)
    if run.returncode != 0:
        return None, run.stderr.strip()
    return json.loads(run.stdout), None


# What is measured of a run, as the lab calls it.
MEASURES = {
    'total': 'elapsed',
    'connect': 'connect first',
    'connect max': 'connect max',
    'first': 'exchange first',
    'last': 'exchange last',
    'mean': 'exchange mean',
    'median': 'exchange median',
    'max': 'exchange max',
}
MEASURED = os.path.join(HERE, 'model_measured.json')


def runs_of(binary, row, runs):
    """The figures of so many undisturbed runs of an experiment, ms; none if the machine was busy or lacks something."""
    found = []
    for seed in range(1, row.get('seeds', 1) + 1):
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, 's.toml')
            with open(path, 'w', encoding='utf8') as f:
                # The lab makes a disturbed run again if its figure does not fit; no figure fits this one.
                f.write(
                    f'seed = {seed}\n'
                    + toml(row)
                    + f'[expect]\nmeasure = "{MEASURES[row["metric"]]}"\nvalue = 0\ntolerance = 0\n'
                )
            often = 1 if 'seeds' in row else runs
            run = subprocess.run(
                [binary, 'lab', 'run', path, '--json', '--runs', str(often)],
                capture_output=True,
                text=True,
                check=False,
            )
        if run.returncode not in (0, 4):
            sys.exit(f'{row["id"]}: {run.stderr.strip() or run.stdout[-300:]}')
        one = json.loads(run.stdout)['results'][0]
        if one.get('skipped') or one['cut_off'] or one['disturbed']:
            print(
                f'not measured: {row["id"]}: '
                f'{one.get("skipped") or ("cut off" if one["cut_off"] else "disturbed")} {one["runs"]}',
                flush=True,
            )
            return None
        found += [round(ms, 3) for ms in one['runs']]
    return found


def measure(binary, data, pattern, runs):
    """Measures the rows that match anew. What a run was, a run stays: a row changes only by runs that were not disturbed."""
    for row in data['rows'] + data['tests']:
        if re.search(pattern, row['id']) and (found := runs_of(binary, row, runs)):
            before, row['runs'], row['measured'] = row['measured'], found, round(statistics.median(found), 3)
            print(f'measured {row["id"]}: {before} -> {row["measured"]} ({min(found)} to {max(found)})', flush=True)
            write(data)


def write(data):
    """The file, three lines a row."""

    def text(row):
        parts = [
            {k: v for k, v in row.items() if k not in ('link', 'client', 'server', 'workload')},
            {k: row[k] for k in ('link', 'client', 'server')},
            {'workload': row['workload']},
        ]
        return '  ' + ',\n   '.join(json.dumps(part)[1:-1] for part in parts).join('{}')

    with open(MEASURED, 'w', encoding='utf8') as f:
        f.write('{\n "source": ' + json.dumps(data['source']))
        for key in ('rows', 'tests'):
            f.write(f',\n "{key}": [\n' + ',\n'.join(text(row) for row in data[key]) + '\n ]')
        f.write('\n}\n')


def figure(answer, metric, gaps=0):
    ms = [t / 1e6 for t in answer['latencies_ns']]
    if metric == 'total':
        return answer['total_ns'] / 1e6
    if metric == 'sum':
        return sum(ms)
    if metric == 'without gaps':
        return answer['total_ns'] / 1e6 - gaps
    if metric == 'connect':
        steps = [s for s in answer['diagram'] if s['segments'] and s['bytes'] == 0]
        last = [s for s in steps if s['side'] == 'server' and s['arrived_ns'] is not None][-1]
        return last['arrived_ns'] / 1e6
    if metric == 'last':
        return ms[-1]
    return statistics.mean(ms) if metric == 'mean' else statistics.median(ms)


def from_label(label):
    """A labelled capture as a scenario, its measured time, and why not, if it is none of ours."""
    link, app = label['link'], label['application']
    measured = label.get('measured')
    if not isinstance(measured, dict) or 'latency_ms' not in measured or 'request' not in app:
        return None
    s = {'link': {'mtu': link['mtu'], 'up': {}, 'down': {}}, 'client': {}, 'server': {}, 'workload': {}}
    for way, key in (('ab', 'up'), ('ba', 'down')):
        d = s['link'][key]
        d['delay_ms'] = link[f'one_way_delay_ms_{way}']
        rate = link.get(f'rate_mbit_{way}')
        if rate:
            d['rate_mbit'] = rate
            if link.get('queue_bytes'):
                d['queue_bytes'] = link['queue_bytes']
        if link.get(f'loss_{way}'):
            d['loss'] = link[f'loss_{way}']
        drops = []
        for rule in link.get('drop_rules', []):
            at, what, n = rule.split(':')
            if at == way:
                drops.append({'what': 'seq', 'at': int(n)} if what == 'seq' else {'what': what, 'n': [int(n)]})
        if drops:
            d['drops'] = drops
    for side in ('client', 'server'):
        own = app.get(side, {})
        host = s[side]
        for key in ('sndbuf', 'rcvbuf', 'write_chunk', 'read_chunk'):
            if own.get(key):
                host[key] = own[key]
        if own.get('nodelay'):
            host['nodelay'] = True
        if own.get('read_pauses'):
            host['read_pauses'] = [{'at_bytes': a, 'ms': ms} for a, ms in own['read_pauses']]
        extra = link.get(f'extra_sysctl_{side}')
        if extra:
            host['sysctl'] = extra
        if link.get('initcwnd'):
            host['initcwnd'] = link['initcwnd']
    w = s['workload']
    w.update(requests=app['requests'], request=app['request'], response=app['response'])
    w['think_ms'] = app.get('server', {}).get('think_ms', 0)
    w['gap_ms'] = app.get('client', {}).get('gap_ms', 0)
    # In the labels a float is a pause in seconds.
    w['request'] = [{'pause_ms': step * 1000} if isinstance(step, float) else step for step in app['request']]
    request = app['request']
    if len(request) == 3 and request[1] < 1 and request[2] < sum(measured['latency_ms']) and request[1] == 0.001:
        # 300 KB in chunks of the last size, a pause before each.
        w['request'] = [request[0]] + w['request'][1:3] * (307200 // request[2])
    latencies = sorted(measured['latency_ms'])
    n = len(latencies)
    spread = (latencies[n * 9 // 10] - latencies[n // 10]) / 2
    return s, statistics.median(latencies), spread


def labelled():
    base = os.path.join(ROOT, '..', 'shared', 'captures', 'lab')
    if not os.path.isdir(base):
        print('SKIP: labelled captures: no ../shared beside this checkout')
        return
    for name in sorted(os.listdir(base)):
        path = os.path.join(base, name, 'label.json')
        if os.path.exists(path):
            with open(path) as f:
                made = from_label(json.load(f))
            if made:
                yield {
                    'id': f'label {name}',
                    'published': None,
                    'measured': made[1],
                    'spread': made[2],
                    'metric': 'median',
                    **made[0],
                }


def matrix():
    """Runs of the lab's matrix (scripts/model_matrix.py)."""
    with open(os.path.join(HERE, 'model_matrix.json')) as f:
        rows = json.load(f)['rows']
    for row in rows:
        w = row['workload']
        yield {**row, 'published': None, 'gaps': (w.get('requests', 1) - 1) * w.get('gap_ms', 0)}


def scenarios():
    path = os.path.join(HERE, 'model_scenarios.json')
    if not os.path.exists(path):
        return
    with open(path) as f:
        data = json.load(f)
    for name, run in sorted(data['runs'].items()):
        file = os.path.join(ROOT, 'scenarios', name + '.toml')
        if os.path.exists(file):
            yield {
                'id': f'scenario {name}',
                'published': None,
                'measured': run['median_ms'],
                'metric': 'median',
                'file': file,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', default=os.path.join(ROOT, 'target', 'release', 'tcpwhy'))
    parser.add_argument('--only', default='', help='rows whose id matches this expression')
    parser.add_argument(
        '--measure', metavar='REGEX', help='measure matching rows anew in the lab (root, a quiet machine)'
    )
    parser.add_argument('--runs', type=int, default=5, help='how often, with --measure')
    args = parser.parse_args()
    with open(MEASURED, encoding='utf8') as f:
        data = json.load(f)
    if args.measure is not None:
        measure(args.bin, data, args.measure, args.runs)
        return
    rows = data['rows']
    rows = [r for r in rows + list(labelled()) + list(scenarios()) + list(matrix()) if re.search(args.only, r['id'])]
    print(f'{"experiment":<52} {"published":>10} {"measured":>10} {"predicted":>10} {"error":>8}')
    errors, found = [], {}
    for row in rows:
        with tempfile.TemporaryDirectory() as tmp:
            path = row.get('file') or os.path.join(tmp, 's.toml')
            if 'file' not in row:
                with open(path, 'w') as f:
                    f.write(toml(row))
            answer, why = predict(args.bin, path)
        published = f'{row["published"]:g}' if row['published'] is not None else '-'
        if answer is None or not answer['complete']:
            print(f'{row["id"][:52]:<52} {published:>10} {row["measured"]:>10.1f} {"-":>10}  {why or "not complete"}')
            continue
        got = figure(answer, row['metric'], row.get('gaps', 0))
        # A request of less than two milliseconds is mostly the machine: the spread of the measurement is allowed for it.
        allowed = row.get('spread', 0.1) if row['measured'] < 2 else 0
        miss = max(abs(got - row['measured']) - allowed, 0)
        error = miss / row['measured'] * 100
        errors.append((error, row['id']))
        found[row['id']] = (row['measured'], got)
        sign = '-' if got < row['measured'] else '+'
        print(f'{row["id"][:52]:<52} {published:>10} {row["measured"]:>10.1f} {got:>10.1f} {sign}{error:>6.1f} %')
    if not errors:
        sys.exit('no row')
    errors.sort()
    median = statistics.median(e[0] for e in errors)
    p95 = errors[min(len(errors) - 1, int(len(errors) * 0.95))][0]
    print(
        f'\n{len(errors)} experiments: median error {median:.1f} % (bound {MEDIAN:g}), 95th percentile '
        f'{p95:.1f} % (bound {P95:g})'
    )
    for error, name in [e for e in errors if e[0] > P95][::-1]:
        print(f'  beyond {P95:g} %: {name} ({error:.0f} %)')
    wrong = 0
    tried = [(b, a) for b, a in FIXES if b in found and a in found]
    for before, after in tried:
        (mb, pb), (ma, pa) = found[before], found[after]
        if (ma < mb) != (pa < pb):
            wrong += 1
            print(f'wrong direction: {before} -> {after}')
    print(f'fixes: the direction is right in {len(tried) - wrong} of {len(tried)}')
    sys.exit(1 if median > MEDIAN or p95 > P95 or wrong else 0)


if __name__ == '__main__':
    main()
