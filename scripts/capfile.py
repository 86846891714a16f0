"""Capture files for the test scripts: reading, writing and the few header fields that they need.

Takes pcap (micro- and nanoseconds, both byte orders) and pcapng, plain, gzip or zstd. Written apart from the
program's own reader, so that each can be held against the other. Standard library and the `zstd` command.
"""

import gzip
import io
import struct
import subprocess
import zlib
from typing import NamedTuple

ETHERNET, NULL, LOOP, SLL, SLL2 = 1, 0, 108, 113, 276
RAW_IP = (12, 14, 101, 228, 229)
VLAN_TAGS = (0x8100, 0x88A8, 0x9100)
SECOND = 10**9


class Packet(NamedTuple):
    """One frame: time in ns since the epoch, link type, captured bytes, length on the wire."""

    time: int
    link: int
    data: bytes
    length: int


class Tcp(NamedTuple):
    """Where the TCP of a frame is, and what its header says."""

    ip: int  # offset of the IP header
    tcp: int  # offset of the TCP header
    version: int
    source: bytes  # addresses as bytes
    target: bytes
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    header: int  # length of the TCP header, options included
    payload: int  # by the IP header; by the frame where that says 0 (offload)


FIN, SYN, RST, PSH, ACK, URG, CWR = 1, 2, 4, 8, 16, 32, 128


# ---------------------------------------------------------------- files


def unpacked(path):
    """The bytes of a file, decompressed as far as they go."""
    with open(path, 'rb') as f:
        raw = f.read()
    if raw[:4] == b'\x28\xb5\x2f\xfd':
        return subprocess.run(['zstd', '-dcq', path], stdout=subprocess.PIPE, check=False).stdout
    if raw[:2] == b'\x1f\x8b':
        out = io.BytesIO()
        try:
            with gzip.open(io.BytesIO(raw)) as z:
                while block := z.read(1 << 16):
                    out.write(block)
        except (EOFError, OSError, zlib.error):
            pass  # cut in the middle: what came before counts
        return out.getvalue()
    return raw


def read(path):
    """All whole packets of a file; ValueError if it is no capture."""
    data = unpacked(path)
    if len(data) >= 24:
        for order in '<>':
            magic = struct.unpack_from(order + 'I', data)[0]
            if magic in (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34):
                return list(_pcap(data, order, magic))
        if data[:4] == b'\x0a\x0d\x0d\x0a':
            return list(_pcapng(data))
    raise ValueError('neither pcap nor pcapng')


def _pcap(data, order, magic):
    scale = 1 if magic == 0xA1B23C4D else 1000
    head = 24 if magic == 0xA1B2CD34 else 16  # the "modified" variant has 8 more bytes a record
    link = struct.unpack_from(order + 'I', data, 20)[0] & 0x03FFFFFF
    at = 24
    while at + head <= len(data):
        seconds, fraction, captured, length = struct.unpack_from(order + 'IIII', data, at)
        at += head
        if at + captured > len(data):
            return
        yield Packet(seconds * SECOND + fraction * scale, link, data[at : at + captured], length)
        at += captured


def _pcapng(data):
    at, order, interfaces, last = 0, '<', [], 0
    while at + 12 <= len(data):
        if data[at : at + 4] == b'\x0a\x0d\x0d\x0a':
            order = '<' if data[at + 8 : at + 12] == b'\x4d\x3c\x2b\x1a' else '>'
            interfaces = []
        kind, size = struct.unpack_from(order + 'II', data, at)
        if size < 12 or at + size > len(data):
            return
        if kind == 1:
            interfaces.append(_interface(data, at, size, order))
        elif kind in (2, 6) and size >= 32:
            if kind == 6:
                number, high, low, captured, length = struct.unpack_from(order + 'IIIII', data, at + 8)
            else:
                number, _, high, low, captured, length = struct.unpack_from(order + 'HHIIII', data, at + 8)
            if number < len(interfaces) and captured <= size - 32:
                link, ticks, offset, _ = interfaces[number]
                last = (high << 32 | low) * SECOND // ticks + offset * SECOND
                yield Packet(last, link, data[at + 28 : at + 28 + captured], length)
        elif kind == 3 and interfaces:
            length = struct.unpack_from(order + 'I', data, at + 8)[0]
            captured = min(length, size - 16, interfaces[0][3] or length)
            yield Packet(last, interfaces[0][0], data[at + 12 : at + 12 + captured], length)
        at += size


def _interface(data, at, size, order):
    """(link type, ticks a second, offset in seconds, snap length)"""
    link, _, snap = struct.unpack_from(order + 'HHI', data, at + 8)
    ticks, offset, option = 10**6, 0, at + 16
    while option + 4 <= at + size - 4:
        code, length = struct.unpack_from(order + 'HH', data, option)
        if code == 0:
            break
        if code == 9 and length == 1:
            value = data[option + 4]
            ticks = 2 ** (value & 127) if value & 128 else 10**value
        elif code == 14 and length == 8:
            offset = struct.unpack_from(order + 'q', data, option + 4)[0]
        option += 4 + (length + 3 & ~3)
    return link, ticks, offset, snap


def write(path, packets, pcapng=False, microseconds=False, snaplen=262144):
    """Writes a capture; one with several link types becomes pcapng. Compressed if the name ends in .gz or .zst."""
    links = sorted({p.link for p in packets}) or [101]
    unit = 1000 if microseconds else 1
    out = []
    if pcapng or len(links) > 1:
        out.append(struct.pack('<IIIHHqI', 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        for link in links:
            resolution = struct.pack('<HHB3xHH', 9, 1, 6 if microseconds else 9, 0, 0)
            size = 20 + len(resolution)
            out.append(struct.pack('<IIHHI', 1, size, link, 0, snaplen) + resolution + struct.pack('<I', size))
        for p in packets:
            ticks = max(p.time, 0) // unit
            pad = -len(p.data) % 4
            size = 32 + len(p.data) + pad
            out.append(
                struct.pack('<7I', 6, size, links.index(p.link), ticks >> 32, ticks & 0xFFFFFFFF, len(p.data), p.length)
            )
            out.append(p.data + bytes(pad) + struct.pack('<I', size))
    else:
        magic = 0xA1B2C3D4 if microseconds else 0xA1B23C4D
        out.append(struct.pack('<IHHiIII', magic, 2, 4, 0, 0, snaplen, links[0]))
        for p in packets:
            out.append(
                struct.pack('<IIII', p.time // SECOND & 0xFFFFFFFF, p.time % SECOND // unit, len(p.data), p.length)
            )
            out.append(p.data)
    body = b''.join(out)
    if path.endswith('.gz'):
        body = gzip.compress(body, mtime=0)
    elif path.endswith('.zst'):
        body = subprocess.run(['zstd', '-qc'], input=body, stdout=subprocess.PIPE, check=True).stdout
    with open(path, 'wb') as f:
        f.write(body)


# ---------------------------------------------------------------- headers


def ip_offset(link, data):
    """Where the IP header starts, or None. Plain links and VLAN tags only: tunnels are left to tshark."""
    if link in RAW_IP:
        return 0
    if link in (NULL, LOOP):
        return 4
    if link == SLL:
        kind, at = _u16(data, 14), 16
    elif link == SLL2:
        kind, at = _u16(data, 0), 20
    elif link == ETHERNET:
        kind, at = _u16(data, 12), 14
    else:
        return None
    while kind in VLAN_TAGS:
        kind, at = _u16(data, at + 2), at + 4
    return at if kind in (0x0800, 0x86DD) else None


def _u16(data, at):
    return struct.unpack_from('>H', data, at)[0] if len(data) >= at + 2 else None


def tcp(packet):
    """The TCP header of a frame, or None: other traffic, later fragments, tunnels, headers cut too short."""
    link, data = packet.link, packet.data
    ip = ip_offset(link, data)
    if ip is None or len(data) < ip + 20:
        return None
    version = data[ip] >> 4
    if version == 4:
        if data[ip + 9] != 6 or _u16(data, ip + 6) & 0x1FFF:
            return None
        at, total = ip + (data[ip] & 15) * 4, _u16(data, ip + 2)
        source, target = data[ip + 12 : ip + 16], data[ip + 16 : ip + 20]
    elif version == 6 and len(data) >= ip + 40 and data[ip + 6] == 6:
        at, total = ip + 40, _u16(data, ip + 4)
        total = total + 40 if total else 0
        source, target = data[ip + 8 : ip + 24], data[ip + 24 : ip + 40]
    else:
        return None
    if len(data) < at + 16:
        return None
    sport, dport, seq, ack, words, flags, window = struct.unpack_from('>HHIIBBH', data, at)
    header = (words >> 4) * 4
    payload = (total or packet.length - ip) - (at - ip) - header
    return Tcp(ip, at, version, source, target, sport, dport, seq, ack, flags, window, header, max(payload, 0))
