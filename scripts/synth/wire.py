"""What a tap saw, as packets of a capture: headers with their options, offloads, the clock of the capture."""

import struct

import capfile

from synth.segment import ACK, FIN, PSH, RST, SYN

SNAP = 96
EPOCH = 1_600_000_000 * 10**9
LARGEST = 65160


class Host:
    """Address, port and first sequence number of one end."""

    def __init__(self, random, side, port):
        self.address = bytes((10, 77, random.randrange(1, 255), side + 1))
        self.port, self.first = port, random.randrange(1 << 32)


def sum16(data):
    """Ones' complement sum (RFC 1071)."""
    total = sum(struct.unpack(f'>{(len(data) + 1) // 2}H', data + b'\0' * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def options(stacks, p):
    """TCP options of a segment."""
    out = b''
    own, peer = stacks[p.side], stacks[1 - p.side]
    if p.flags & SYN:
        out += struct.pack('>BBH', 2, 4, own.mss)
        asked = not p.flags & ACK
        listed = {'sack': b'', 'scale': b'', 'stamps': b''}
        if own.sack and (asked or peer.sack):
            listed['sack'] = b'\4\2'
        if own.scale and (asked or peer.scale):
            listed['scale'] = struct.pack('>BBB', 3, 3, own.scale)
        if own.timestamps and (asked or peer.timestamps):
            listed['stamps'] = struct.pack('>BBII', 8, 10, *(p.stamps or (1, 0)))
        out += b''.join(listed[name] for name in own.options.split())
    elif p.stamps:
        out += b'\1\1' + struct.pack('>BBII', 8, 10, *p.stamps)
    return out


def frame(hosts, stacks, p, contents, payload=None, ttl=0):
    """(bytes, length) of an Ethernet frame; payload is zeros but for `contents`, and is cut by the snap length."""
    one, other = hosts[p.side], hosts[1 - p.side]
    seq = (one.first + p.seq) & 0xFFFFFFFF
    ack = (other.first + p.ack) & 0xFFFFFFFF if p.flags & ACK else 0
    more = options(stacks, p)
    if p.sack:
        more += b'\1\1' + struct.pack('>BB', 5, 2 + 8 * len(p.sack))
        more += b''.join(struct.pack('>II', *((other.first + n) & 0xFFFFFFFF for n in block)) for block in p.sack)
    more += b'\1' * (-len(more) % 4)
    size = p.payload if payload is None else payload
    data = bytearray(size)
    for start, text in contents[p.side]:
        low, high = max(start, p.seq), min(start + len(text), p.seq + size)
        if low < high:
            data[low - p.seq : high - p.seq] = text[low - start : high - start]
    tcp = struct.pack('>HHIIBBHHH', one.port, other.port, seq, ack, (20 + len(more)) // 4 << 4, p.flags, p.window, 0, 0)
    tcp += more
    total = 20 + len(tcp) + size
    check = ~sum16(one.address + other.address + struct.pack('>HH', 6, len(tcp) + size) + tcp + bytes(data)) & 0xFFFF
    tcp = tcp[:16] + struct.pack('>H', check) + tcp[18:]
    ip = (
        struct.pack('>BBHHHBBH', 0x45, 0, total, p.ident, 0x4000, ttl or stacks[p.side].ttl, 6, 0)
        + one.address
        + other.address
    )
    ip = ip[:10] + struct.pack('>H', ~sum16(ip) & 0xFFFF) + ip[12:]
    macs = bytes((2, 0, 0, 0, 0, 1 + (1 - p.side))) + bytes((2, 0, 0, 0, 0, 1 + p.side))
    whole = macs + b'\x08\0' + ip + tcp + bytes(data)
    return whole[: SNAP + 14], len(whole)


def word(hosts, stacks, p, mtu):
    """(bytes, length) of the frame in which a router tells the sender of a packet that it was too large: ICMP type 3, code 4,
    with the IP header and eight bytes more (RFC 792, RFC 1191)."""
    quoted = frame(hosts, stacks, p, ((), ()))[0][14 : 14 + 28]
    icmp = struct.pack('>BBHHH', 3, 4, 0, 0, mtu) + quoted
    icmp = icmp[:2] + struct.pack('>H', ~sum16(icmp) & 0xFFFF) + icmp[4:]
    ip = (
        struct.pack('>BBHHHBBH', 0x45, 0xC0, 20 + len(icmp), 0, 0, 63, 1, 0) + b'\x0a\x4d\0\xfe' + hosts[p.side].address
    )
    ip = ip[:10] + struct.pack('>H', ~sum16(ip) & 0xFFFF) + ip[12:]
    macs = bytes((2, 0, 0, 0, 0, 1 + p.side)) + bytes((2, 0, 0, 0, 0, 1 + (1 - p.side)))
    whole = macs + b'\x08\0' + ip + icmp
    return whole, len(whole)


def joined(passages, side, window, own):
    """Packets merged as an offload shows them. `own`: at the sender's tap, where a merged packet has the first one's time
    (segmentation offload); else the first one's too, as generic receive offload delivers it."""
    out = []
    for q in passages:
        last = out[-1] if out else None
        p = q.segment
        if (
            last
            and p.side == side == last[1].side
            and p.payload
            and last[1].payload
            and p.seq == last[1].seq + last[2]
            and p.ack == last[1].ack
            and q.time - last[3] <= window
            and last[2] + p.payload <= LARGEST
            and not last[4] & (PSH | FIN)
            and not p.flags & (SYN | RST)
        ):
            last[2] += p.payload
            last[3] = q.time
            last[4] |= p.flags
        else:
            out.append([q.time, p, p.payload, q.time, p.flags])
    return out


def packets(sim, tap, hosts, contents, seed, offload=0, tick=1, copies=0, lose=None, skip=0):
    """The capfile.Packets of one tap.

    `offload`: ns within which neighbouring segments are one packet; `tick`: of the capture's clock; `copies`: ns after which
    each packet passes once more, one hop on; `lose`: share of packets that the capture misses; `skip`: packets missing in front.
    """
    stacks = tuple(end.stack for end in sim.ends)
    merged = []
    if offload:
        for side in (0, 1):
            own = [q for q in sim.taps[tap] if q.segment.side == side]
            merged += joined(own, side, offload, side == tap)
        merged.sort(key=lambda row: row[0])
    else:
        merged = [[q.time, q.segment, q.segment.payload, q.time, q.segment.flags] for q in sim.taps[tap]]
    out = []
    for time, p, size, _, flags in merged:
        kept, p.flags = p.flags, flags
        data, length = frame(hosts, stacks, p, contents, size)
        out.append(capfile.Packet(EPOCH + time // tick * tick, capfile.ETHERNET, data, length))
        if copies:
            data, length = frame(hosts, stacks, p, contents, size, stacks[p.side].ttl - 1)
            out.append(capfile.Packet(EPOCH + (time + copies) // tick * tick, capfile.ETHERNET, data, length))
        p.flags = kept
    for time, p, mtu in sim.words[tap]:
        data, length = word(hosts, stacks, p, mtu)
        out.append(capfile.Packet(EPOCH + time // tick * tick, capfile.ETHERNET, data, length))
    if copies or sim.words[tap]:
        out.sort(key=lambda p: p.time)
    out = out[skip:]
    if lose:
        out = [p for n, p in enumerate(out) if n < 3 or seed.random() >= lose]
    return out
