"""What the packets of a capture say, as our own reader has them where they are TCP on a plain link, and tshark the others."""

import ipaddress
import re
import subprocess

import capfile
import common

FIELDS = (
    'frame.number',
    'frame.time_epoch',
    'ip.src',
    'ip.dst',
    'ipv6.src',
    'ipv6.dst',
    'tcp.srcport',
    'tcp.dstport',
    'tcp.seq_raw',
    'tcp.len',
    'tcp.flags',
)


class Frame:
    """A TCP frame as an independent reader sees it. In a tunnel, either address family may be the inner one."""

    def __init__(self, time, ends, seq, length, flags):
        self.time, self.ends, self.seq, self.length, self.flags = time, ends, seq, length, flags

    def between(self, one, other):
        """Whether it goes from `one` to `other` (1), back (-1) or neither (0)."""
        for source, target in self.ends:
            if (source, target) == (one, other):
                return 1
            if (source, target) == (other, one):
                return -1
        return 0


class Facts:
    """What the packets say: the number of frames, the earliest time, and the TCP frames by number."""

    def __init__(self, count, start, frames, by):
        self.count, self.start, self.frames, self.by = count, start, frames, by
        self.flows = {}
        for number, frame in frames.items():
            for ends in frame.ends:
                self.flows.setdefault(frozenset(ends), []).append(number)


def endpoint(text):
    """'10.0.0.1:80' or '[::1]:80' as (address bytes, port)."""
    match = re.fullmatch(r'\[?([^\]]+?)\]?:(\d+)', text or '')
    return (ipaddress.ip_address(match[1]).packed, int(match[2])) if match else None


def facts_of(path):
    """Facts, or None where neither reader can tell."""
    try:
        packets = capfile.read(path)
    except ValueError:
        return None
    start = min((p.time for p in packets), default=0)
    frames, foreign = {}, False
    for number, p in enumerate(packets, 1):
        t = capfile.tcp(p)
        if t:
            ends = [((t.source, t.sport), (t.target, t.dport))]
            frames[number] = Frame(p.time, ends, t.seq, t.payload, t.flags)
        else:
            foreign = foreign or may_hold_tcp(p)
    if len(frames) < len(packets) and common.have('tshark'):
        # our own reading stands where TCP lies directly on IP: tshark, which takes longer to start than to read, also looks for
        # packets inside payload
        return Facts(len(packets), start, {**by_tshark(path), **frames}, 'tshark')
    return Facts(len(packets), start, {} if foreign else frames, None if foreign else 'own reader')


def may_hold_tcp(packet):
    """Whether a packet that is not TCP itself may have some within: a link or a tunnel (GRE, UDP) that only tshark reads."""
    at = capfile.ip_offset(packet.link, packet.data)
    if at is None or len(packet.data) < at + 20:
        return True
    protocol = packet.data[at + 9] if packet.data[at] >> 4 == 4 else packet.data[at + 6]
    return protocol not in (1, 2, 58)  # ICMP, IGMP, ICMPv6


def by_tshark(path):
    """{number: Frame} of the innermost TCP headers."""
    options = [x for f in FIELDS for x in ('-e', f)]
    command = [
        'tshark',
        '-n',
        '-r',
        '-',
        '-Y',
        'tcp && !icmp && !icmpv6',
        '-o',
        'tcp.desegment_tcp_streams:FALSE',
        '-T',
        'fields',
        '-E',
        'occurrence=l',
        *options,
    ]
    done = subprocess.run(
        command, input=capfile.unpacked(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    frames = {}
    for line in done.stdout.decode().splitlines():
        row = line.split('\t')
        if len(row) != len(FIELDS) or not row[6] or not row[7]:
            continue
        ports, ends = (int(row[6]), int(row[7])), []
        for source, target in ((row[2], row[3]), (row[4], row[5])):
            if source and target:
                ends.append(tuple((ipaddress.ip_address(a).packed, p) for a, p in zip((source, target), ports)))
        whole, _, fraction = row[1].partition('.')
        time = int(whole) * 10**9 + int(fraction.ljust(9, '0')[:9])
        frames[int(row[0])] = Frame(time, ends, int(row[8] or 0), int(row[9] or 0), int(row[10] or '0', 16))
    return frames


def new_bytes(frames, one, other):
    """Distinct payload bytes from `one` to `other`; sequence numbers may wrap."""
    ranges, last = [], None
    for f in frames:
        if f.length and f.between(one, other) == 1 and not f.flags & capfile.RST:
            seq = f.seq + (1 if f.flags & capfile.SYN else 0)
            if last is not None:
                seq += round((last - seq) / 2**32) * 2**32
            last = seq
            ranges.append((seq, seq + f.length))
    total, reach = 0, None
    for start, end in sorted(ranges):
        if reach is None or start >= reach:
            total, reach = total + end - start, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total
