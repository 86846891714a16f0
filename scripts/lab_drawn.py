#!/usr/bin/env python3
"""Runs of the lab that nobody thought of: links, stacks' settings and workloads drawn by a seed, made with the kernel's own TCP.

    scripts/lab_drawn.py --bin PATH [--count 60] SEED OUT      as root; some seconds for each

OUT/NAME has the captures of both ends and the label, as `tcpwhy lab run --keep` leaves them; `scripts/accuracy.py --folder OUT`
scores the answers. The same seed draws the same experiments; what the kernel makes of them differs from run to run. A run that
is there already is kept.
"""

import argparse
import math
import os
import random
import subprocess
import sys

import common

# of a run; what would take longer is drawn smaller
SECONDS = 4
KINDS = {
    'upload': 4,
    'download': 4,
    'requests': 4,
    'messages': 3,
    'pipelined': 1,
    'bursts': 2,
    'drip': 2,
    'reader': 2,
    'parallel': 1,
}
PATIENCE = 120


def spread(rng, low, high):
    """Between two values, as often in each power of ten."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def some(rng, chance):
    return rng.random() < chance


def link(rng):
    out = {'rtt_ms': round(spread(rng, 0.3, 150), 2), 'mtu': rng.choice([1500] * 8 + [9000, 1400, 576])}
    if some(rng, 0.7):
        out['rate_mbit'] = round(spread(rng, 2, 300), 1)
        trip = out['rate_mbit'] * 125 * out['rtt_ms']
        out['queue_bytes'] = max(int(trip * spread(rng, 0.25, 4)), 20 * out['mtu'])
    elif some(rng, 0.3):
        out['offload'] = True
        return out
    for way in ('up', 'down'):
        if some(rng, 0.1):
            out[f'{way}.jitter_ms'] = round(out['rtt_ms'] * rng.uniform(0.02, 0.3), 3)
        if some(rng, 0.12):
            out[f'{way}.loss'] = round(spread(rng, 0.001, 0.03), 4)
        if some(rng, 0.04):
            out[f'{way}.reorder'] = f'{{ every = {rng.randint(20, 200)}, hold_ms = {round(out["rtt_ms"] / 8, 3)} }}'
    return out


def host(rng, congestion):
    out = {'congestion': congestion, 'nodelay': some(rng, 0.6)}
    if some(rng, 0.2):
        out['sndbuf'] = int(spread(rng, 8192, 400_000))
    if some(rng, 0.15):
        out['rcvbuf'] = int(spread(rng, 8192, 400_000))
    if some(rng, 0.5):
        out['write_chunk'] = int(spread(rng, 500, 300_000))
    if some(rng, 0.3):
        out['read_chunk'] = int(spread(rng, 2000, 200_000))
    if some(rng, 0.15):
        out['epoll'] = True
    if some(rng, 0.07):
        out['quickack'] = True
    if some(rng, 0.07):
        out['notsent_lowat'] = int(spread(rng, 4096, 130_000))
    if some(rng, 0.05):
        out['initcwnd'] = rng.choice([2, 4, 20, 40])
    if some(rng, 0.3):
        out['sysctl'] = '{ "net.ipv4.tcp_slow_start_after_idle" = 0 }'
    return out


def message(rng, low, high):
    """One to four writes."""
    return [int(spread(rng, low, high)) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4]))]


def bulk(rng, path):
    """As many bytes as the link and slow start take a second or two for."""
    rate = path.get('rate_mbit', 400) * 125_000
    return int(min(rate * rng.uniform(0.3, SECONDS / 2), 20e6, rate * path['rtt_ms'] / 1000 * 200 + 500_000))


def applications(rng, kind, path, hosts):
    """The keys of [workload]; hosts may get some, too."""
    trip = path['rtt_ms'] / 1000
    turns = max(2, min(40, int(SECONDS / 2 / (trip + 0.06))))
    if kind == 'upload':
        return {'request': [bulk(rng, path)], 'response': [200]}
    if kind == 'download':
        return {'request': [200], 'response': [bulk(rng, path)]}
    if kind == 'requests':
        out = {'request': message(rng, 50, 8000), 'response': message(rng, 50, 60_000), 'requests': turns}
        if some(rng, 0.4):
            out['think_ms'] = round(spread(rng, 0.2, 60), 2)
        if some(rng, 0.4):
            out['gap_ms'] = round(spread(rng, 0.2, 100), 2)
        return out
    if kind == 'messages':
        for name in hosts:
            hosts[name]['nodelay'] = some(rng, 0.25)
        parts = [int(spread(rng, 2, 900)) for _ in range(rng.choice([2, 2, 3]))]
        answer = [int(spread(rng, 2, 3000)) for _ in range(rng.choice([1, 1, 2, 3]))]
        return {'request': parts, 'response': answer, 'requests': turns}
    if kind == 'pipelined':
        return {
            'request': [int(spread(rng, 50, 2000))],
            'response': [int(spread(rng, 50, 20_000))],
            'requests': turns * 2,
            'pipeline': True,
        }
    if kind == 'bursts':
        size = min(bulk(rng, path) // 4, 400_000)
        gap = round(spread(rng, 20, 900), 1)
        return {
            'request': [300],
            'response': [size],
            'requests': max(2, int(SECONDS * 1000 / (gap + 400))),
            'gap_ms': gap,
        }
    if kind == 'drip':
        parts = []
        for _ in range(rng.randint(5, 25)):
            parts += [int(spread(rng, 100, 30_000)), f'{{ pause_ms = {round(spread(rng, 0.5, 90), 2)} }}']
        return (
            {'request': parts[:-1], 'response': [300]} if some(rng, 0.5) else {'request': [300], 'response': parts[:-1]}
        )
    if kind == 'reader':
        size = bulk(rng, path)
        end = rng.choice(['client', 'server'])
        if some(rng, 0.5):
            hosts[end]['read_rate'] = int(max(size / SECONDS, size / SECONDS * spread(rng, 1, 6)))
        else:
            ms = round(spread(rng, 30, 1500), 1)
            hosts[end]['read_pauses'] = f'[{{ at_bytes = {int(size * rng.uniform(0.1, 0.7))}, ms = {ms} }}]'
        return {'request': [300], 'response': [size]} if end == 'client' else {'request': [size], 'response': [300]}
    return {'request': [200], 'response': [bulk(rng, path) // 4], 'connections': rng.randint(2, 5), 'stagger_ms': 20}


def value(what):
    if isinstance(what, bool):
        return str(what).lower()
    if isinstance(what, list):
        return f'[{", ".join(value(v) for v in what)}]'
    if isinstance(what, str) and what[0] not in '[{':
        return f'"{what}"'
    return str(what)


def drawn(seed, n):
    """Name and text of an experiment."""
    rng = random.Random(f'{seed} {n}')
    kind = rng.choices(list(KINDS), KINDS.values())[0]
    congestion = rng.choice(['cubic', 'cubic', 'cubic', 'bbr', 'bbr', 'reno'])
    path, hosts = link(rng), {'client': host(rng, congestion), 'server': host(rng, congestion)}
    tables = {'link': path, 'workload': applications(rng, kind, path, hosts), **hosts}
    name = f'drawn-{seed}-{n}-{kind}-{congestion}'
    lines = [f'title = "Drawn: {name}"', f'seed = {rng.randint(1, 10**6)}', f'limit_s = {5 * SECONDS}']
    for table, keys in tables.items():
        lines += ['', f'[{table}]', *(f'{key} = {value(what)}' for key, what in keys.items())]
    return name, '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--count', type=int, default=60)
    parser.add_argument('--from', type=int, default=0, dest='first')
    parser.add_argument('seed')
    parser.add_argument('out')
    args = parser.parse_args()
    if os.geteuid() != 0:
        print('the lab needs root')
        return 75
    os.makedirs(args.out, exist_ok=True)
    made = 0
    for n in range(args.first, args.first + args.count):
        name, text = drawn(args.seed, n)
        keep = os.path.join(args.out, name)
        if os.path.exists(os.path.join(keep, 'label.json')):
            made += 1
            continue
        file = os.path.join(args.out, f'{name}.toml')
        with open(file, 'w', encoding='utf8') as f:
            f.write(text)
        command = [args.bin, 'lab', 'run', file, '--keep', keep]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if os.path.exists(os.path.join(keep, 'label.json')):
            made += 1
        else:
            print(f'{name}: {(done.stderr or done.stdout).strip()[:300]}')
    print(f'{made} of {args.count} runs in {args.out}')
    return 0 if made else 1


if __name__ == '__main__':
    sys.exit(main())
