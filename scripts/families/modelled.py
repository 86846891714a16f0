"""Conversations of the program's own model (`tcpwhy predict --write`), with the stacks that it knows, at both taps.

The label is the model's account of the run (`budget` in its JSON): it knows what each end waited for. Only limits of TCP and
the server's work are asked for; the client's pauses lie between exchanges.
"""

import json
import subprocess

import capfile
import common
from synth.truth import NEAR

PROFILES = (
    'windows',
    'macos',
    'freebsd',
    'linux-3.10',
    'linux-5.10',
    'windows,linux',
    'linux,windows',
    'macos,freebsd',
)
WORK = (
    ('start', ('--response', '120KiB'), (15, 80)),
    ('start-up', ('--request', '90KiB', '--response', '100'), (40,)),
    ('nagle', ('--writes', '4,300', '--response', '40', '--requests', '8', '--gap', '60ms'), (1, 30)),
    ('nagle-answer', ('--request', '120', '--response-writes', '8,400', '--requests', '8', '--gap', '60ms'), (10,)),
    (
        'nodelay',
        ('--writes', '4,300', '--response', '40', '--requests', '8', '--gap', '60ms', '--nodelay', 'both'),
        (20,),
    ),
    ('rcvbuf', ('--response', '300KiB', '--rcvbuf', '8192'), (25,)),
    ('sndbuf', ('--response', '300KiB', '--sndbuf', '16384', '--write-chunk', '16KiB', '--nodelay', 'both'), (25,)),
    ('link', ('--response', '400KiB', '--bandwidth', '4mbit'), (20,)),
    (
        'work',
        ('--request', '300', '--response', '2000', '--server-time', '180ms', '--requests', '5', '--gap', '90ms'),
        (35,),
    ),
    ('idle', ('--request', '300', '--response', '100KiB', '--requests', '4', '--gap', '3s'), (50,)),
)
ASKED = 0.05


def cases(binary):
    """[(name, family, origin, rules, function that writes)]"""
    out = []
    for profile in PROFILES:
        for work, arguments, trips in WORK:
            for trip in trips:
                name = f'model-{profile.replace(",", "-")}-{work}-rtt{trip}'
                command = [binary, 'predict', '--rtt', f'{trip}ms', '--profile', profile, *arguments]
                out.append((name, 'modelled', 'model', 'R2 R3 R16', written(command, trip)))
    return out


def written(command, trip):
    """A function that runs the model and writes its packets at both ends."""

    def make(out, name, store):
        said = {}
        for end in ('client', 'server'):
            path = f'{out}/{name}.pcapng'
            done = subprocess.run(
                [*command, '--json', '--write', path, '--tap', end],
                capture_output=True,
                check=False,
            )
            if done.returncode:
                raise common.Failed(f'{name}: {done.stderr.decode()[-200:]}')
            packets = capfile.read(path)
            subprocess.run(['rm', path], check=True)
            store(out, name, end, packets)
            account = {}
            for row in json.loads(done.stdout)['budget']:
                account[row['cause']] = account.get(row['cause'], 0) + row['time_ns'] / 1e6
            said[end] = {
                'file': f'cap.{end}.pcap',
                'packets': len(packets),
                'connections': 1,
                'checks': checks(account, trip),
            }
        return said

    return make


def checks(account, trip):
    """The label that follows from the model's account (ms by cause)."""
    own = {c: ms for c, ms in account.items() if c != 'client_think'}
    total = max(sum(own.values()), 1e-9)
    avoidable = {c: ms for c, ms in own.items() if c in common.AVOIDABLE and ms > ASKED * total}
    near = set(own)
    for cause in own:
        near |= set(NEAR.get(cause, ()))
    if set(own) & {'receive_window', 'send_buffer'}:
        near |= {'slow_start', 'receive_window'}  # whose turn the first flight was
    parts = [part({c}, account, trip) for c in own if c == 'server_think' and own[c] > ASKED * total]
    if avoidable:
        # a tail that Nagle holds at the end of a slow start: one round trip, which either may be said to own
        both = sum(avoidable.values())
        parts.append(part(set(avoidable), account, trip))
        parts += [part({c}, account, trip) for c, ms in avoidable.items() if len(avoidable) > 1 and ms > 0.6 * both]
    base = {
        'connections': 'all',
        'weak': [],
        'side': None,
        'exempt': [],
        'forbidden': [c for c in common.AVOIDABLE if c not in near],
        'basis': 'model: ' + ', '.join(f'{c} {ms:.1f} ms' for c, ms in account.items()),
        'parts': parts,
    }
    small = sum(ms for c, ms in own.items() if c in common.AVOIDABLE)
    if avoidable:
        most = max(avoidable.values())
        winners = [c for c, ms in avoidable.items() if ms > 0.7 * most]
        weak = sorted({n for w in winners for n in NEAR.get(w, ())} - set(winners))
        return [{**base, 'kind': 'cause', 'dominant': winners, 'weak': weak}]
    if small > 0.02 * total:
        return [{**base, 'kind': 'any', 'dominant': []}]  # too much for a clean control, too little to be asked for
    fine = list(common.INHERENT) + [c for c in common.APPLICATION if own.get(c, 0) > 0.005 * total]
    return [{**base, 'kind': 'clean', 'dominant': [], 'inherent': fine}]


def part(causes, account, trip):
    """A sum that the label asks for."""
    ms = sum(account[c] for c in causes)
    return {'causes': sorted(causes), 'ms': round(ms, 3), 'tolerance_ms': round(0.15 * ms + 2 + min(trip, 0.3 * ms), 3)}
