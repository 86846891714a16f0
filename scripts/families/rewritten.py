"""Bundled lab captures, rewritten: what their packets would have looked like with another stack, clock or tap.

The experiment's label stays, since who waited for what is not changed; where a coarse clock or a second copy of the packets
makes a sum less sure, the tolerance grows, and nothing is asked where nothing could be said.
"""

import copy
import json
import os
import random
import struct

import capfile
import common
from synth.sim import MS

LAB = os.path.join(common.ROOT, 'captures', 'lab')
LOSS = ['fast_recovery', 'retransmission_timeout', 'tail_loss_probe', 'spurious_recovery', 'path_mtu']


def experiments():
    """{name: {end: (file, truth)}} of the bundled labelled captures."""
    found = {}
    for name in sorted(os.listdir(LAB)):
        path = os.path.join(LAB, name, 'label.json')
        if os.path.exists(path):
            with open(path, encoding='utf8') as f:
                ends = json.load(f)['truth']['captures']
            found[name] = {end: (os.path.join(LAB, name, truth['file']), truth) for end, truth in ends.items()}
    return found


def cases():
    """[(name, family, origin, rules, function that writes)]"""
    out = []
    for name, ends in experiments().items():
        out.append((f'rewritten-echo-{name}', 'rewritten', 'rewritten', 'R2', variant(ends, old_echo)))
        for tick in (1, 10):
            out.append(
                (
                    f'rewritten-clock{tick}-{name}',
                    'rewritten',
                    'rewritten',
                    'R17',
                    variant(ends, lambda packets, _, t=tick: rounded(packets, t * MS), coarse(tick)),
                )
            )
        out.append((f'rewritten-copies-{name}', 'rewritten', 'rewritten', 'odd 1', variant(ends, copies, no_sums)))
        if len(ends) == 2:
            out.append((f'rewritten-merged-{name}', 'rewritten', 'rewritten', 'odd 1', merged(ends)))
    return out


def variant(ends, rewrite, relabel=lambda checks: checks):
    """A function that writes each end after `rewrite(packets, end)`."""

    def make(out, name, store):
        said = {}
        for end, (path, truth) in ends.items():
            packets = rewrite(capfile.read(path), end)
            store(out, name, end, packets)
            said[end] = {
                'file': f'cap.{end}.pcap',
                'packets': len(packets),
                'connections': truth['connections'],
                'checks': relabel(copy.deepcopy(truth['checks'])),
            }
        return said

    return make


# ---------------------------------------------------------------- rewriting


def stamps_at(packet, t):
    """Offset of the time stamps' values in a frame, or None."""
    at, end = t.tcp + 20, min(t.tcp + t.header, len(packet.data))
    while at < end and packet.data[at]:
        if packet.data[at] == 1:
            at += 1
            continue
        size = packet.data[at + 1] if at + 1 < end else 0
        if packet.data[at] == 8 and size == 10 and at + 10 <= end:
            return at + 2
        if size < 2:
            return None
        at += size
    return None


def old_echo(packets, _end):
    """Both ends echo as RFC 1323 has it: TS.Recent is the stamp of the last data that the ACK covers, never of a pure ACK."""
    recent, out = {}, []  # per direction: [(end of data, stamp)], newest last
    for p in packets:
        t = capfile.tcp(p)
        at = stamps_at(p, t) if t else None
        if at is None:
            out.append(p)
            continue
        here, there = (t.source, t.sport), (t.target, t.dport)
        value = struct.unpack_from('>I', p.data, at)[0]
        if t.payload or t.flags & capfile.SYN:
            recent.setdefault((here, there), []).append(
                (t.seq + t.payload + bool(t.flags & capfile.SYN) & 0xFFFFFFFF, value)
            )
        heard = recent.get((there, here), [])
        if t.flags & capfile.ACK and heard:
            covered = [v for end, v in heard[-64:] if (t.ack - end) & 0xFFFFFFFF < 1 << 31]
            data = bytearray(p.data)
            struct.pack_into('>I', data, at + 4, covered[-1] if covered else heard[0][1])
            p = p._replace(data=bytes(data))
        out.append(p)
    return out


def rounded(packets, tick):
    """The capture's clock ticks that slowly."""
    return [p._replace(time=p.time // tick * tick) for p in packets]


def copies(packets, _end):
    """Each packet passes the tap a second time, 3 to 6 ms later and one hop on."""
    chance, out, last = random.Random(5), list(packets), 0
    for p in packets:
        t = capfile.tcp(p)
        if t and t.version == 4:
            data = bytearray(p.data)
            data[t.ip + 8] = max(1, data[t.ip + 8] - 1)
            last = max(last + 1, p.time + chance.randrange(3 * MS, 6 * MS))
            out.append(p._replace(time=last, data=bytes(data)))
    return sorted(out, key=lambda p: p.time)


def merged(ends):
    """The packets of both ends in one file, by the clock that both share."""

    def make(out, name, store):
        packets = sorted((p for path, _ in ends.values() for p in capfile.read(path)), key=lambda p: p.time)
        truth = ends['client'][1]
        store(out, name, 'client', packets)
        return {
            'client': {
                'file': 'cap.client.pcap',
                'packets': len(packets),
                'connections': truth['connections'],
                'checks': no_sums(copy.deepcopy(truth['checks'])),
            }
        }

    return make


# ---------------------------------------------------------------- labels


def no_sums(checks):
    """Which end's packets are taken decides where a wait begins: causes are asked, sums are not."""
    for check in checks:
        check['parts'] = []
    return checks


def coarse(tick):
    """A clock that ticks every `tick` ms: sums are sure to two ticks for each of fifty waits; controls and sums below twenty
    ticks are not asked."""

    def relabel(checks):
        for check in checks:
            for part in check['parts']:
                part['tolerance_ms'] += min(100 * tick, 0.5 * part['ms'])
            if check['kind'] == 'clean' or sum(p['ms'] for p in check['parts']) < 20 * tick:
                check.update(kind='any', parts=[], dominant=[], weak=[])
        return checks

    return relabel
