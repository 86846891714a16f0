#!/usr/bin/env python3
"""`tcpwhy watch` beside the lab's runs: on the host of either end one that sees kernel events and one that only samples, both
beside the same run. What they call worst is held against the run's label and against what `explain` says of the run's captures.

    scripts/watch_scenarios.py --bin PATH [--write] [NAME...]
    scripts/watch_scenarios.py --self-test

--write keeps the rows in docs/watch_scenarios.json, beside those of scenarios that were not run now, and puts the table of all of
them into docs/watch.md. Names are those of scenarios/; without any, SCENARIOS are run. Root.

right: one of the two hosts names the labelled cause as the worst of those that can be avoided, or there is none to name and
none is named. contradicted: a host names another one, which the label of its end does not allow. else: missed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import common
from answers.verdicts import acceptable

# one or more of each cause; all take some seconds
SCENARIOS = [
    'length-prefix',
    'length-prefix-nodelay-both',
    'nagle-both-rtt20',
    'nagle-request-rtt20',
    'nagle-response-rtt20',
    'nagle-three-rtt20',
    'length-prefix-cork',
    'cork',
    'cork-message',
    'think-200',
    'think-45',
    'server-closes',
    'keepalive',
    'slow-start-rtt200',
    'slow-start-keepalive',
    'slow-start-gap1000-ssai1',
    'slow-start-gap6000-ssai1',
    'http-gap-ssai1',
    'sndbuf16k-writes-4k',
    'sndbuf16k-writes-1k',
    'sndbuf64k',
    'epoll-writer',
    'rcvbuf8k-rtt40-376k',
    'rcvbuf64k-rtt40',
    'rcvbuf16k-rtt20',
    'explicit-rcvbuf-rtt190',
    'reader-slow',
    'reader-stops',
    'reader-stops-rcvbuf8k',
    'zero-window-answered',
    'loss-last',
    'loss-last-two',
    'loss-last-and-probe',
    'loss-middle-rtt100',
    'loss-middle-twice',
    'loss-random',
    'loss-request-rtt100',
    'loss-first-flight',
    'loss-syn-three',
    'loss-synack',
    'accept-queue-full',
    'connect-slow-acceptor',
    'bufferbloat',
    'shallow-queue',
    'policer',
    'upload-clean',
    'bbr',
    'no-limit',
]
# of the time of connections without what the applications took (scripts/answers/verdicts.py has the same)
FLOOR = 0.05
TRIES = 3
# for all that watch to look
READY = 20
# causes whose time the kernel counts by itself (tcp_chrono), and in which of its counts
CHRONO = {'receive_window': 'window', 'slow_reader': 'window', 'send_buffer': 'buffer'}
NOT_LOST = {'server_think', 'client_think', 'sender_pause'}
BEGIN, END = '<!-- scenarios:begin -->', '<!-- scenarios:end -->'
ROWS = os.path.join(common.ROOT, 'docs', 'watch_scenarios.json')
RIGHT, MISSED, CONTRADICTED = 'right', 'missed', 'contradicted'


class Split:
    """Seconds by cause of the connections of one end."""

    def __init__(self, rows=()):
        self.time, self.classes, self.chrono = {}, {}, {'window': 0.0, 'buffer': 0.0}
        for row in rows:
            for part in row['total']:
                self.add(part['cause'], part['class'], part['time_ns'] / 1e9)
            kernel = row['kernel'] or {}
            self.chrono['window'] += (kernel.get('receive_window_limited_ns') or 0) / 1e9
            self.chrono['buffer'] += (kernel.get('send_buffer_limited_ns') or 0) / 1e9

    def add(self, cause, letter, seconds):
        self.time[cause] = self.time.get(cause, 0.0) + seconds
        self.classes[cause] = letter

    def all(self):
        return sum(t for cause, t in self.time.items() if cause not in NOT_LOST)

    def worst(self, floor=FLOOR):
        """The avoidable cause that took most, if that is worth a word."""
        pool = [(t, cause) for cause, t in self.time.items() if self.classes[cause] == 'T']
        best = max(pool, default=(0.0, None))
        return best[1] if best[0] > floor * self.all() else None


def verdict(named, wanted, allowed):
    """`named`: the worst cause at each end; `wanted`, `allowed`: those of the labels of the ends."""
    for end, cause in named.items():
        if cause and allowed[end] is not None and cause not in wanted[end] | allowed[end]:
            return CONTRADICTED
    every = set().union(*wanted.values())
    return RIGHT if not every or every & set(named.values()) else MISSED


def namespaces(pid):
    """Network namespaces of the threads of a process but our own: name to file."""
    own, found = os.readlink('/proc/self/ns/net'), {}
    try:
        tasks = os.listdir(f'/proc/{pid}/task')
    except OSError:
        return found
    for task in tasks:
        path = f'/proc/{pid}/task/{task}/ns/net'
        try:
            name = os.readlink(path)
        except OSError:
            continue
        if name != own:
            found[name] = path
    return found


def looks(process):
    """It has its socket to the kernel, or has ended: that comes after the kernel events are attached."""
    try:
        fds = [os.readlink(f'/proc/{process.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{process.pid}/fd')]
    except OSError:
        fds = []
    return process.poll() is not None or any(fd.startswith('socket:') for fd in fds)


class Beside:
    """Those that watch the hosts of a run."""

    def __init__(self, binary, kinds):
        self.binary, self.kinds, self.running = binary, kinds, {}

    def look(self, lab):
        """One of each kind in each namespace; again where its thread was gone before it was entered. The run stands still until
        they look: attaching to kernel events takes longer than a namespace is there before its first packet.
        """
        missing = {
            name: path
            for name, path in namespaces(lab.pid).items()
            if any(
                self.running.get((name, kind)) is None or self.running[name, kind].poll() is not None
                for kind in self.kinds
            )
        }
        if not missing:
            return
        lab.send_signal(signal.SIGSTOP)
        try:
            self.start(missing)
            end = time.monotonic() + READY
            for name in missing:
                for kind in self.kinds:
                    while not looks(self.running[name, kind]) and time.monotonic() < end:
                        time.sleep(0.01)
        finally:
            lab.send_signal(signal.SIGCONT)

    def start(self, missing):
        """Those that are not there."""
        for name, path in missing.items():
            for kind, options in self.kinds.items():
                old = self.running.get((name, kind))
                if old is None or old.poll() is not None:
                    command = [
                        'env',
                        '--default-signal=INT',
                        self.binary,
                        'watch',
                        '--jsonl',
                        *options,
                        '--netns',
                        path,
                    ]
                    out = tempfile.TemporaryFile('w+', encoding='utf8')  # noqa: SIM115
                    process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
                    process.out = out
                    self.running[name, kind] = process

    def end(self):
        """The lines of each kind."""
        lines = {kind: [] for kind in self.kinds}
        for process in self.running.values():
            process.send_signal(signal.SIGINT)
        for (_, kind), process in self.running.items():
            process.wait()
            process.out.seek(0)
            lines[kind] += [json.loads(line) for line in process.out]
            process.out.close()
        return lines


def run(binary, name, kinds):
    """Lines of each kind, the label and the folder with the captures of a run that was not disturbed; or None."""
    for _ in range(TRIES):
        folder = tempfile.mkdtemp()
        keep = os.path.join(folder, 'kept')
        beside = Beside(binary, kinds)
        command = [binary, 'lab', 'run', f'scenarios/{name}.toml', '--runs', '1', '--keep', keep]
        lab = subprocess.Popen(
            command, cwd=common.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while lab.poll() is None:
            beside.look(lab)
            time.sleep(0.002)
        lines = beside.end()
        try:
            with open(os.path.join(keep, 'meta.json'), encoding='utf8') as f:
                calm = not json.load(f)['disturbed']
            with open(os.path.join(keep, 'label.json'), encoding='utf8') as f:
                label = json.load(f)
        except OSError:
            calm, label = False, None
        if calm and label:
            return lines, label, keep
        shutil.rmtree(folder, ignore_errors=True)
    return None


def explained(binary, keep, end):
    """What `explain` says of the capture of an end, and the client ends of its connections."""
    answer, _ = common.explain(binary, os.path.join(keep, f'cap.{end}.pcap'), '--exchanges', 'all')
    split = Split()
    clients = {c['client'] for c in answer['connections']} if answer else set()
    for c in answer['connections'] if answer else []:
        for part in ([c['setup']] if c['setup'] else []) + c['exchanges']:
            for span in part['spans']:
                seconds = (span['end_ns'] - span['start_ns']) / 1e9
                split.add(span['cause'], common.SPAN_CAUSES.get(span['cause'], 'U'), seconds)
    return split, clients


def labelled(label, end):
    """Causes that the label of an end asks for, and those that it allows besides; None: all."""
    wanted, allowed = set(), set()
    for check in label['truth']['captures'][end]['checks']:
        wanted |= set(check['dominant'])
        if check['kind'] not in ('cause', 'dominant', 'clean'):
            return wanted, None
        allowed |= acceptable(check) | set(check.get('weak') or ())
    return wanted, allowed


def build(binary):
    """By which rows of one table show that they come from one build."""
    with open(binary, 'rb') as f:
        return hashlib.file_digest(f, 'sha256').hexdigest()[:12]


def scenario(binary, name, kinds):
    """A row of the table, or why there is none."""
    ran = run(binary, name, kinds)
    if ran is None:
        return None
    lines, label, keep = ran
    ends = list(label['truth']['captures'])
    wanted, allowed, said, clients = {}, {}, {}, {}
    for end in ends:
        wanted[end], allowed[end] = labelled(label, end)
        said[end], clients[end] = explained(binary, keep, end)
    row = {'name': name, 'wanted': sorted(set().union(*wanted.values())), 'kinds': {}}
    row['decided'] = bool(row['wanted']) or any(a is not None for a in allowed.values())
    every = set().union(*clients.values())
    splits = {}
    for kind in kinds:
        # the lab may have made a run before the one that it kept
        of = {'client': 'local', 'server': 'peer'}
        splits[kind] = {
            end: Split([x for x in lines[kind] if x['role'] == end and x[of[end]] in every]) for end in ends
        }
        named = {end: splits[kind][end].worst() for end in ends}
        row['kinds'][kind] = (verdict(named, wanted, allowed), named)
    row['explain'] = {end: said[end].worst() for end in ends}
    # the cause in question, at the host that sees most of it, in seconds
    cause = set(row['wanted'])

    def most(of):
        return max((sum(t for c, t in of[end].time.items() if c in cause) for end in ends), default=0.0)

    row['seconds'] = {kind: most(splits[kind]) for kind in kinds}
    row['seconds']['explain'] = most(said)
    counts = {CHRONO[c] for c in cause if c in CHRONO}
    row['chrono'] = max((splits['kernel'][end].chrono[c] for end in ends for c in counts), default=None)
    row['build'] = build(binary)
    shutil.rmtree(os.path.dirname(keep), ignore_errors=True)
    return row


def table(rows):
    """As it stands in docs/watch.md."""
    undecided = [r['name'] for r in rows if not r['decided']]
    rows = [r for r in rows if r['decided']]
    labelled_rows = [r for r in rows if r['wanted']]
    out = []
    for kind in ('kernel', 'sampled'):
        count = {v: sum(r['kinds'][kind][0] == v for r in rows) for v in (RIGHT, MISSED, CONTRADICTED)}
        share = 100 * count[RIGHT] / len(rows) if rows else 0
        what = 'With kernel events' if kind == 'kernel' else 'With `--sampled`'
        out.append(
            f'{what}: {count[RIGHT]} of {len(rows)} right ({share:.0f} %), {count[MISSED]} missed, '
            f'{count[CONTRADICTED]} contradicted.'
        )
    builds = {r.get('build') for r in rows}
    out.append('All rows are of one build.' if len(builds) == 1 else f'The rows are of {len(builds)} builds.')
    near = [r for r in labelled_rows if r['seconds']['kernel'] > 0.05]
    off = sorted(abs(r['seconds']['sampled'] - r['seconds']['kernel']) / r['seconds']['kernel'] for r in near)
    if off:
        out.append(
            f'Time of the labelled cause, sampled against kernel events: off by {100 * off[len(off) // 2]:.0f} % in the median.'
        )
    out += [
        '',
        '| scenario | label | with kernel events | sampled | `explain` | seconds: events / sampled / `explain` / chrono |',
        '|---|---|---|---|---|---|',
    ]

    def named(by_end):
        causes = sorted({c for c in by_end.values() if c})
        return ', '.join(causes) or 'none'

    for r in rows:
        cells = []
        for kind in ('kernel', 'sampled'):
            said, by_end = r['kinds'][kind]
            cells.append(named(by_end) if said == RIGHT else f'**{said}**: {named(by_end)}')
        s = r['seconds']
        chrono = '-' if r['chrono'] is None else f'{r["chrono"]:.2f}'
        times = f'{s["kernel"]:.2f} / {s["sampled"]:.2f} / {s["explain"]:.2f} / {chrono}' if r['wanted'] else ''
        label = ', '.join(r['wanted']) or 'none'
        out.append(f'| {r["name"]} | {label} | {cells[0]} | {cells[1]} | {named(r["explain"])} | {times} |')
    if undecided:
        out += [
            '',
            f'Not counted, because the lab could not tell from the truth what most of the time was: {", ".join(undecided)}.',
        ]
    return '\n'.join(out)


def write(rows):
    """Keeps the rows, and makes the table of all that are kept."""
    kept = {}
    if os.path.exists(ROWS):
        with open(ROWS, encoding='utf8') as f:
            kept = {row['name']: row for row in json.load(f)}
    kept.update({row['name']: row for row in rows})
    order = {name: n for n, name in enumerate(SCENARIOS)}
    rows = sorted(kept.values(), key=lambda r: (order.get(r['name'], len(order)), r['name']))
    with open(ROWS, 'w', encoding='utf8') as f:
        f.write('[\n' + ',\n'.join(json.dumps(row, sort_keys=True) for row in rows) + '\n]\n')
    path = os.path.join(common.ROOT, 'docs', 'watch.md')
    with open(path, encoding='utf8') as f:
        old = f.read()
    with open(path, 'w', encoding='utf8') as f:
        f.write(re.sub(f'{BEGIN}.*{END}', lambda _: f'{BEGIN}\n{table(rows)}\n{END}', old, flags=re.DOTALL))


def self_test():
    """The verdicts, on made splits."""
    ends = ('client', 'server')

    def judged(client, server, wanted, allowed=()):
        named = dict(zip(ends, (client, server), strict=True))
        return verdict(named, dict.fromkeys(ends, set(wanted)), dict.fromkeys(ends, set(allowed)))

    assert judged('nagle', None, ['nagle']) == RIGHT
    assert judged(None, None, ['nagle']) == MISSED
    assert judged('nagle', 'cork', ['nagle']) == CONTRADICTED
    assert judged('nagle', 'cork', ['nagle'], ['cork']) == RIGHT
    assert judged(None, None, []) == RIGHT and judged('cork', None, []) == CONTRADICTED
    part = {'cause': 'nagle', 'class': 'T', 'time_ns': 4e6}
    think = {'cause': 'server_think', 'class': 'A', 'time_ns': 9e9}
    trip = {'cause': 'path_delay', 'class': 'I', 'time_ns': 90e6}
    row = {'total': [part, think, trip], 'kernel': None}
    assert Split([row]).worst() is None and Split([row, row]).worst(0.04) == 'nagle'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    if args.self_test:
        self_test()
        print('verdicts hold')
        return 0
    if os.geteuid() != 0:
        print('the lab needs root')
        return 75
    kinds = {'kernel': (), 'sampled': ('--sampled',)}
    rows, disturbed = [], []
    for name in args.names or SCENARIOS:
        if not os.path.exists(os.path.join(common.ROOT, 'scenarios', f'{name}.toml')):
            sys.exit(f'there is no scenario {name}')
        row = scenario(os.path.abspath(args.bin), name, kinds)
        if row is None:
            disturbed.append(name)
            print(f'{name}: disturbed {TRIES} times, left out', flush=True)
            continue
        rows.append(row)
        print(name, row['wanted'], row['kinds'], row['explain'], row['seconds'], flush=True)
    if args.write:
        write(rows)
    print(table(rows))
    if disturbed:
        print(f'left out, because the machine disturbed them {TRIES} times: {", ".join(disturbed)}')
    return 1 if any(r['decided'] and r['kinds']['kernel'][0] == CONTRADICTED for r in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
