"""Habits of TCP stacks: what differs between systems and decades, as far as waits depend on it (sources: docs/cases.md)."""

import dataclasses
from dataclasses import dataclass

from synth.sim import MS, SECOND, US

FOREVER = 1 << 60


@dataclass(frozen=True)
class Stack:
    """Habits of one stack; the default is a current Linux."""

    name: str = 'linux'
    mss: int = 1460  # as announced; time stamps take 12 bytes of it
    timestamps: bool = True
    ts_tick: int = MS  # clock of the stamps
    ts_echo: int = 7323  # 1323: TS.Recent does not move on pure ACKs
    sack: bool = True
    options: str = 'sack stamps scale'  # their order in a SYN, behind the MSS
    scale: int = 7
    window: int = 64240  # receive buffer, in bytes of payload
    initial: int = 10  # initial window in segments
    grow: str = 'bytes'  # slow start by 'bytes' acknowledged, one segment an 'ack', or 'none'
    ssthresh: int = FOREVER
    idle: str = 'halve'  # after idle: 'halve' once an RTO (Linux), 'initial' (RFC 5681 4.1), 'keep'
    nagle: str = 'minshall'  # or 'classic' (RFC 896), 'off' (TCP_NODELAY)
    delay: int = 40 * MS  # of a delayed ACK
    heartbeat: bool = False  # the delay ends at the next multiple of itself (BSD's fast timer)
    every: int = 2  # full segments that are acknowledged at once
    quick: int = 16  # segments acknowledged at once at the start
    pingpong: bool = True  # delays only in conversations (Linux)
    push_acks: bool = False  # a segment with PSH is acknowledged at once (macOS)
    rto_min: int = 200 * MS
    rto_first: int = SECOND
    rto_adds: bool = True  # the minimum is added to SRTT (Linux) rather than a floor
    fast: bool = True  # fast retransmit
    probe: bool = True  # tail loss probes
    persist: int = 200 * MS
    persist_byte: bool = False  # window probes carry a byte
    silly: bool = False  # offers windows below a segment
    update: str = 'double'  # window updates: 'double' (Linux), 'half' (BSD), 'each' read, 'never' by itself
    send_buffer: int = FOREVER
    wake: float = 1 / 3  # share of the send buffer that must be free to wake a writer
    pace: int = 0  # bytes a second, 0 for none
    smaller_after: int = 0  # timeouts of one full segment after which segments become `smaller` bytes
    smaller: int = 536
    heeds: bool = True  # ICMP about packets that are too large (some hosts drop it)
    third_ack: int = 0  # delay of the handshake's last ACK
    syn_ack: int = 0  # delay of the SYN-ACK
    give_up: int = 0  # timeouts after which the connection is reset
    reset_tries: int = 0  # more SYNs after a reset, `reset_gap` apart (Windows: 2, 500 ms)
    reset_gap: int = 500 * MS
    refuses: bool = False  # answers a SYN with a reset
    ids: str = 'count'  # IP identifiers: 'count', 'zero', 'random'
    ttl: int = 64
    react: int = 40 * US  # from a packet to what it causes

    def but(self, **changes):
        """The same with other habits."""
        return dataclasses.replace(self, **changes)


LINUX = Stack()
LINUX_OLD = LINUX.but(name='linux-2.6', initial=3, ts_tick=4 * MS, probe=False, window=65000, grow='ack', scale=2)
WINDOWS = Stack(
    'windows',
    options='scale sack stamps',
    timestamps=False,
    nagle='classic',
    delay=200 * MS,
    quick=0,
    pingpong=False,
    probe=False,
    rto_min=300 * MS,
    rto_first=3 * SECOND,
    rto_adds=False,
    idle='keep',
    persist_byte=True,
    update='half',
    scale=8,
    ttl=128,
    initial=2,
    window=65535,
)
WINDOWS_10 = WINDOWS.but(name='windows-10', delay=40 * MS, initial=10, rto_first=SECOND)
MACOS = Stack(
    'macos',
    options='scale stamps sack',
    nagle='classic',
    delay=100 * MS,
    quick=0,
    pingpong=False,
    push_acks=True,
    probe=False,
    window=131072,
    rto_min=SECOND,
    rto_adds=False,
    idle='initial',
    persist=5 * SECOND,
    persist_byte=True,
    update='half',
    scale=6,
)
BSD = Stack(
    'bsd',
    options='scale sack stamps',
    ts_tick=500 * MS,
    ts_echo=1323,
    sack=False,
    nagle='classic',
    delay=200 * MS,
    heartbeat=True,
    quick=0,
    pingpong=False,
    probe=False,
    rto_min=SECOND,
    rto_first=3 * SECOND,
    rto_adds=False,
    initial=1,
    grow='ack',
    idle='initial',
    persist=5 * SECOND,
    persist_byte=True,
    update='half',
    scale=0,
    window=17520,
)
SOLARIS = BSD.but(
    name='solaris',
    ts_tick=10 * MS,
    heartbeat=False,
    delay=50 * MS,
    initial=4,
    window=24820,
    quick=0,
    rto_min=400 * MS,
    rto_first=3 * SECOND,
)
SLOW_ACKS = WINDOWS.but(name='slow-acks', delay=500 * MS, initial=4, ttl=255)
DEVICE = Stack(
    'device',
    mss=1460,
    timestamps=False,
    sack=False,
    scale=0,
    window=2920,
    initial=1,
    grow='ack',
    idle='keep',
    nagle='off',
    delay=250 * MS,
    quick=0,
    pingpong=False,
    every=1,
    rto_min=SECOND,
    rto_first=3 * SECOND,
    rto_adds=False,
    fast=False,
    probe=False,
    persist=SECOND,
    persist_byte=True,
    update='each',
    ttl=255,
)
EACH = LINUX.but(name='acks-each', every=1, pingpong=False, quick=0)
FOURTH = LINUX.but(name='acks-fourth', every=4, pingpong=False, quick=0, grow='ack', probe=False, rto_min=400 * MS)
STACKS = {
    s.name: s for s in (LINUX, LINUX_OLD, WINDOWS, WINDOWS_10, MACOS, BSD, SOLARIS, SLOW_ACKS, DEVICE, EACH, FOURTH)
}
