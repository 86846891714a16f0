#!/usr/bin/env python3
"""Writes a variant of a capture about which `explain` must say the same, or less with a warning.

    scripts/transform.py addresses+ipv6+vlan IN OUT
    scripts/transform.py --list | --self-test

Steps, joined by +; they run in the order of this table, whatever the order given:

    addresses      other addresses and ports, one for one
    no-timestamps  the TCP timestamp option becomes padding
    ipv6           IPv4 becomes IPv6
    vlan           an 802.1Q tag (raw IP gets an Ethernet header first)
    gro            neighbouring segments of one direction arrive as one, stamped with the last's time
    skip           the first 20 packets are missing
    drop           3 % of the frames are missing (seed 7)
    snaplen        frames are cut at 60 bytes
    microseconds   time stamps lose their nanoseconds
    pcapng         pcapng instead of pcap

Raw IP, Ethernet, VLAN, Linux cooked and loopback frames are rewritten; others pass unchanged.
"""

import argparse
import ipaddress
import os
import random
import struct
import sys
import tempfile

import capfile
from capfile import ETHERNET, RAW_IP, Packet

SKIP, DROP, SEED, SNAPLEN, VLAN_ID = 20, 0.03, 7, 60, 301
GRO_WINDOW, GRO_LIMIT = 100_000, 65_535  # ns between segments that one interrupt hands over; largest packet
LOSSY = {'gro', 'skip', 'drop', 'snaplen'}  # after these a verdict may weaken
IPV6_PREFIX = ipaddress.ip_address('fd5c:77::').packed[:12]


def new_port(port):
    """A one-to-one map of ports (an odd factor has an inverse modulo 65536; 0 stays possible and is harmless)."""
    return (port * 0x5A4D + 0x1F3B) & 0xFFFF


# ---------------------------------------------------------------- checksums


def ones_sum(data):
    """Ones' complement sum of 16-bit words."""
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Frame:
    """A TCP frame being rewritten. Checksums are updated for what changed, so a wrong one stays wrong."""

    def __init__(self, packet, tcp):
        self.packet, self.at, self.data = packet, tcp, bytearray(packet.data)

    def put(self, offset, new):
        """Replaces bytes that the TCP checksum covers (pseudo-header included)."""
        old = bytes(self.data[offset : offset + len(new)])
        self.data[offset : offset + len(new)] = new
        self.amend(old, new)

    def amend(self, old, new):
        """Corrects the TCP checksum for `old` having become `new` (RFC 1624, equation 3)."""
        where = self.at.tcp + 16
        if len(self.data) < where + 2:
            return
        check = struct.unpack_from('>H', self.data, where)[0]
        total = (~check & 0xFFFF) + (~ones_sum(old) & 0xFFFF) + ones_sum(new)
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into('>H', self.data, where, ~total & 0xFFFF)

    def done(self):
        """The packet as it is now."""
        if self.at.version == 4:
            checksum_ipv4(self.data, self.at.ip)
        return self.packet._replace(data=bytes(self.data))


def checksum_ipv4(data, ip):
    """Writes the IPv4 header checksum."""
    size = (data[ip] & 15) * 4
    if len(data) >= ip + size:
        data[ip + 10 : ip + 12] = b'\0\0'
        struct.pack_into('>H', data, ip + 10, ~ones_sum(bytes(data[ip : ip + size])) & 0xFFFF)


# ---------------------------------------------------------------- steps


def addresses(packets):
    """Other addresses in the order of their appearance, other ports."""
    seen = {}

    def mapped(old):
        if old not in seen:
            n = len(seen) + 1
            seen[old] = (
                struct.pack('>I', 0xC6120000 + 7 * n)
                if len(old) == 4  # 198.18.0.0/15
                else ipaddress.ip_address('2001:db8:7::').packed[:8] + struct.pack('>Q', 11 * n)
            )
        return seen[old]

    for p in packets:
        t = capfile.tcp(p)
        if t:
            frame = Frame(p, t)
            first = t.ip + (12 if t.version == 4 else 8)
            frame.put(first, mapped(t.source))
            frame.put(first + len(t.source), mapped(t.target))
            frame.put(t.tcp, struct.pack('>HH', new_port(t.sport), new_port(t.dport)))
            p = frame.done()
        yield p


def no_timestamps(packets):
    """Timestamp options are overwritten by no-operation options."""
    for p in packets:
        t = capfile.tcp(p)
        if t:
            frame, at, end = Frame(p, t), t.tcp + 20, min(t.tcp + t.header, len(p.data))
            while at < end and p.data[at] != 0:
                size = 1 if p.data[at] == 1 else p.data[at + 1] if at + 1 < end else 0
                if size < 1 or (p.data[at] != 1 and size < 2):
                    break
                if p.data[at] == 8:
                    count = min(size, end - at)
                    # the checksum works on even offsets; an odd start shifts both sides by one byte
                    shift = b'\0' * ((at - t.tcp) % 2)
                    old = bytes(frame.data[at : at + count])
                    frame.data[at : at + count] = b'\1' * count
                    frame.amend(shift + old, shift + b'\1' * count)
                at += size
            p = frame.done()
        yield p


def ipv6(packets):
    """IPv4 headers become IPv6 headers; identifiers and IP options go."""
    for p in packets:
        t = capfile.tcp(p)
        if t and t.version == 4:
            frame = Frame(p, t)
            old, new = t.source + t.target, IPV6_PREFIX + t.source + IPV6_PREFIX + t.target
            frame.amend(old, new)
            below = bytearray(p.data[: t.ip])
            if p.link == ETHERNET or p.link in (capfile.SLL,):
                below[-2:] = b'\x86\xdd'
            elif p.link == capfile.SLL2:
                below[0:2] = b'\x86\xdd'
            elif p.link in (capfile.NULL, capfile.LOOP):
                below[:4] = struct.pack('<I', 10) if p.link == capfile.NULL else struct.pack('>I', 10)
            size = t.header + t.payload
            head = struct.pack('>IHBB', 6 << 28, size if size <= 0xFFFF else 0, 6, p.data[t.ip + 8]) + new
            data = bytes(below) + head + bytes(frame.data[t.tcp :])
            link = 229 if p.link == 228 else p.link
            p = Packet(p.time, link, data, p.length - (t.tcp - t.ip) + 40)
        yield p


def vlan(packets):
    """Ethernet frames get a VLAN tag; raw IP gets an Ethernet header and the tag."""
    for p in packets:
        data, length = p.data, p.length
        if p.link in RAW_IP and data and data[0] >> 4 in (4, 6):
            four = data[0] >> 4 == 4
            source, target = (data[12:16], data[16:20]) if four else (data[20:24], data[36:40])
            mac = [b'\x06\x11' + a.ljust(4, b'\0') for a in (target, source)]
            data, length = mac[0] + mac[1] + (b'\x08\x00' if four else b'\x86\xdd') + data, length + 14
        elif p.link != ETHERNET or len(data) < 14:
            yield p
            continue
        yield Packet(p.time, ETHERNET, data[:12] + struct.pack('>HH', 0x8100, VLAN_ID) + data[12:], length + 4)


def gro(packets):
    """Merges runs of segments as a receiving host with generic receive offload shows them."""
    held, out = {}, []  # held: flow -> [packets so far, TCP of the first, next seq, size]

    def flush(flow):
        run = held.pop(flow, None)
        if run:
            out.append(merged(run))

    for p in packets:
        t = capfile.tcp(p)
        if not t:
            out.append(p)
            continue
        here, there = (t.source, t.sport), (t.target, t.dport)
        options = p.data[t.tcp + 20 : t.tcp + t.header]
        for flow in list(held):  # a late segment of the same or the other direction closes a run
            if p.time - held[flow][0][-1].time > GRO_WINDOW or flow == (there, here):
                flush(flow)
        flow = (here, there)
        run = held.get(flow)
        plain = t.payload > 0 and not t.flags & (SYN_FIN_RST_URG)
        if (
            run
            and plain
            and t.seq == run[2]
            and t.ack == run[1].ack
            and options == run[4]
            and run[3] + t.payload <= GRO_LIMIT
        ):
            run[0].append(p)
            run[2] = (run[2] + t.payload) & 0xFFFFFFFF
            run[3] += t.payload
        else:
            flush(flow)
            if plain and len(p.data) >= t.tcp + 20:
                run = held[flow] = [
                    [p],
                    t,
                    (t.seq + t.payload) & 0xFFFFFFFF,
                    t.tcp - t.ip + t.header + t.payload,
                    options,
                ]
            else:
                out.append(p)
                continue
        if t.flags & capfile.PSH:
            flush(flow)
    for flow in list(held):
        flush(flow)
    return sorted(out, key=lambda p: p.time)


SYN_FIN_RST_URG = capfile.SYN | capfile.FIN | capfile.RST | capfile.URG


def merged(run):
    """One packet for a run of segments."""
    parts, first, _, size, _ = run
    if len(parts) == 1:
        return parts[0]
    data, whole = bytearray(), len(parts[0].data) == parts[0].length
    data += parts[0].data[: first.tcp + first.header + first.payload]  # without the padding of short frames
    for p in parts[1:]:
        t = capfile.tcp(p)
        data[first.tcp + 13] |= t.flags
        if whole:
            data += p.data[t.tcp + t.header : t.tcp + t.header + t.payload]
            whole = len(p.data) == p.length
    if first.version == 4:
        struct.pack_into('>H', data, first.ip + 2, min(size, 0xFFFF))
        checksum_ipv4(data, first.ip)
    else:
        struct.pack_into('>H', data, first.ip + 4, min(size - 40, 0xFFFF))
    return Packet(parts[-1].time, parts[0].link, bytes(data), first.ip + size)


def drop(packets):
    """Frames missing at random, always the same ones."""
    chance = random.Random(SEED)
    return [p for p in packets if chance.random() >= DROP]


def unchanged(packets):
    """A step that belongs to the writer."""
    return packets


STEPS = {
    'addresses': addresses,
    'no-timestamps': no_timestamps,
    'ipv6': ipv6,
    'vlan': vlan,
    'gro': gro,
    'skip': lambda packets: packets[SKIP:],
    'drop': drop,
    'snaplen': lambda packets: [p._replace(data=p.data[:SNAPLEN]) for p in packets],
    'microseconds': unchanged,
    'pcapng': unchanged,
}


def parse(text):
    """'a+b' as a list of steps in running order; ValueError names an unknown one."""
    asked = [s for s in text.split('+') if s]
    for step in asked:
        if step not in STEPS:
            raise ValueError(f'no step {step}; there are {", ".join(STEPS)}')
    return [s for s in STEPS if s in asked]


def transform(source, target, steps):
    """Writes the variant of `source` to `target`; gives the packets before and after."""
    before = capfile.read(source)
    after = before
    for step in steps:
        after = list(STEPS[step](after))
    capfile.write(target, after, 'pcapng' in steps, 'microseconds' in steps, SNAPLEN if 'snaplen' in steps else 262144)
    return before, after


# ---------------------------------------------------------------- test


def self_test():
    """Every step on a bundled capture: payload and order stay, checksums stay right where they were right."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'captures')
    cases = [
        os.path.join(root, 'loopback_write_write_read.pcap'),
        os.path.join(root, 'zeek__tcp_reassembly.pcap'),
        os.path.join(root, 'lab', 'fresh_mtu1500', 'cap.client.pcap.zst'),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            for name in list(STEPS) + ['addresses+ipv6+vlan+microseconds+pcapng']:
                out = os.path.join(folder, 'x.pcap')
                before, after = transform(case, out, parse(name))
                again = capfile.read(out)
                assert len(again) == len(after), name
                payload = [sum(t.payload for t in map(capfile.tcp, ps) if t) for ps in (before, again)]
                if name not in ('skip', 'drop'):
                    assert payload[0] == payload[1], (name, payload)
                if name not in LOSSY:
                    assert len(again) == len(before)
                    assert wrong_checksums(again) == wrong_checksums(before), name
                assert name != 'skip' or len(again) == len(before) - SKIP, name
    print('transform: self-test passed')


def wrong_checksums(packets):
    """How many whole frames have a TCP checksum that does not fit."""
    wrong = 0
    for p in packets:
        t = capfile.tcp(p)
        if t and len(p.data) == p.length:
            segment = p.data[t.tcp : t.tcp + t.header + t.payload]
            pseudo = t.source + t.target + struct.pack('>II', len(segment), 6)
            wrong += ones_sum(pseudo + segment) != 0xFFFF
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--list', action='store_true', help='print the names of the steps')
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('steps', nargs='?')
    parser.add_argument('source', nargs='?')
    parser.add_argument('target', nargs='?')
    args = parser.parse_args()
    if args.list:
        print('\n'.join(STEPS))
    elif args.self_test:
        self_test()
    elif not args.target:
        parser.error('STEPS IN OUT are needed')
    else:
        try:
            _, after = transform(args.source, args.target, parse(args.steps))
        except (OSError, ValueError) as error:
            sys.exit(f'transform: {args.source}: {error}')
        print(f'{len(after)} packets')


if __name__ == '__main__':
    main()
