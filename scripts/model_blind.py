#!/usr/bin/env python3
"""Blind test: parameter sets from a printed seed, predictions written to disk first, then the lab runs.

Needs root and a quiet machine (the lab makes network namespaces); says SKIP where the lab says so. Directory OUT keeps
scenarios, predictions and what was measured. Ends with 1 if the median error exceeds 5 % or the 95th percentile 15 %.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys

from model_check import MEDIAN, P95, ROOT, predict, toml


def draw(r):
    mtu = r.choice([1500, 1500, 1500, 9000])
    link = {'rtt_ms': r.choice([2, 10, 25, 60, 120, 200]), 'mtu': mtu}
    if r.random() < 0.7:
        link['rate_mbit'] = r.choice([10, 50, 100, 200])
        link['queue_bytes'] = r.choice([100_000, 300_000, 1_000_000])

    def sizes():
        return r.choice(
            [r.randint(1, 1000), r.randint(1000, 20_000), r.randint(20_000, 300_000), r.randint(300_000, 3_000_000)]
        )

    request, response = [r.randint(50, 1200)], [sizes()]
    if r.random() < 0.4:
        request, response = response, request
    if r.random() < 0.4:
        request = [r.randint(1, 200)] + request
    if r.random() < 0.4:
        response = [r.randint(1, 200)] + response
    hosts = []
    for _ in range(2):
        host = {'nodelay': r.random() < 0.5}
        if r.random() < 0.2:
            host['initcwnd'] = r.choice([3, 20, 40])
        if r.random() < 0.15:
            host['sysctl'] = {'net.ipv4.tcp_slow_start_after_idle': 0}
        if r.random() < 0.15:
            host['sndbuf'] = r.choice([16384, 32768, 65536, 262144])
            host['write_chunk'] = r.choice([2048, 8192, 16384])
            host['nodelay'] = True
        if r.random() < 0.15:
            host['rcvbuf'] = r.choice([16384, 65536, 131072])
        hosts.append(host)
    workload = {'requests': r.randint(1, 6), 'request': request, 'response': response}
    if r.random() < 0.5:
        workload['think_ms'] = r.choice([5, 20, 45, 150])
    if r.random() < 0.4:
        workload['gap_ms'] = r.choice([100, 500, 1500])
    return {'link': link, 'client': hosts[0], 'server': hosts[1], 'workload': workload}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', default=os.path.join(ROOT, 'target', 'release', 'tcpwhy'))
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--sets', type=int, default=30)
    parser.add_argument('--out', default=os.path.join(ROOT, 'target', 'model-blind'))
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f'seed {seed}, {args.sets} sets, in {args.out}')
    r = random.Random(seed)
    os.makedirs(args.out, exist_ok=True)
    sets = []
    for n in range(args.sets):
        path = os.path.join(args.out, f'{n:02}.toml')
        with open(path, 'w') as f:
            f.write(toml(draw(r)))
        answer, why = predict(args.bin, path)
        if answer is None:
            sys.exit(f'{path}: {why}')
        sets.append((n, path, [t / 1e6 for t in answer['latencies_ns']]))
    with open(os.path.join(args.out, 'predictions.json'), 'w') as f:
        json.dump({'seed': seed, 'latencies_ms': {n: ms for n, _, ms in sets}}, f, indent=1)
    errors = []
    for n, path, predicted in sets:
        to = os.path.join(args.out, f'{n:02}')
        run = subprocess.run([args.bin, 'lab', 'run', path, '--keep', to], capture_output=True, text=True)
        if run.returncode != 0:
            print(f'{n:02} SKIP: {run.stdout.strip()} {run.stderr.strip()}')
            continue
        with open(os.path.join(to, 'meta.json')) as f:
            meta = json.load(f)
        measured = [(x['end_ns'] - x['start_ns']) / 1e6 for x in meta['exchanges'] if x['complete']]
        if len(measured) != len(predicted):
            print(f'{n:02} {len(measured)} of {len(predicted)} requests were answered')
            continue
        got, want = sum(predicted), sum(measured)
        error = abs(got - want) / want * 100
        errors.append(error)
        print(f'{n:02} measured {want:>9.1f} ms, predicted {got:>9.1f} ms, {error:>5.1f} %', flush=True)
    if not errors:
        print('SKIP: nothing was measured')
        return
    errors.sort()
    median, p95 = statistics.median(errors), errors[min(len(errors) - 1, int(len(errors) * 0.95))]
    print(
        f'{len(errors)} sets: median {median:.1f} % (bound {MEDIAN:g}), 95th percentile {p95:.1f} % '
        f'(bound {P95:g}), worst {errors[-1]:.1f} %'
    )
    sys.exit(1 if median > MEDIAN or p95 > P95 else 0)


if __name__ == '__main__':
    main()
