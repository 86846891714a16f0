"""What families are made of: a case, the usual applications, the usual paths."""

from dataclasses import dataclass, field, replace

from synth.habits import LINUX, Stack
from synth.sim import MS, Link


@dataclass
class Case:
    """One conversation, before it runs. Applications are functions without arguments that give a generator."""

    name: str
    rules: str  # 'R1 R4'; 'odd 1' for the strange files
    apps: tuple
    links: tuple
    client: Stack = LINUX
    server: Stack = LINUX
    meant: tuple = ()  # causes one of which must have the most time among the avoidable ones; 'clean'
    spec: dict = field(default_factory=dict)  # for truth.label
    wire: dict = field(default_factory=dict)  # for wire.packets
    contents: tuple = ((), ())  # bytes of payload that are not zero: ((offset + 1, bytes), ...) for each end
    taps: tuple = (0, 1)
    earlier: tuple = ()  # Cases of the same two hosts whose packets are in the capture too, before this one

    def but(self, **changes):
        return replace(self, **changes)


# what most look-alikes say: the most time, of all causes, is the application's or the link's
PAUSES = {'kind': 'dominant', 'dominant': ['sender_pause'], 'weak': []}
WORKS = {'kind': 'dominant', 'dominant': ['server_think'], 'weak': []}
CARRIES = {'kind': 'dominant', 'dominant': ['bandwidth'], 'weak': [], 'also': ('slow_start', 'receive_window')}


def path(trip_ms, rate=0, queue=1 << 40, up=None, down=None):
    """Two links; `up` and `down` are further arguments of Link."""
    half = int(trip_ms * MS / 2)
    return Link(half, rate, queue, **(up or {})), Link(half, rate, queue, **(down or {}))


def requests(count, request=(200,), response=(2000,), work=0, gap=20 * MS, between=0):
    """Requests and responses, each a tuple of writes; `between` is slept between two writes of the server."""

    def client():
        for n in range(count):
            if n and gap:
                yield 'sleep', gap
            for size in request:
                yield 'write', size
            yield 'read', sum(response)
        yield ('close',)
        yield ('closed',)

    def server():
        for _ in range(count):
            yield 'read', sum(request)
            if work:
                yield 'sleep', work
            for n, size in enumerate(response):
                if n and between:
                    yield 'sleep', between
                yield 'write', size
        yield ('closed',)
        yield ('close',)

    return client, server


def transfer(writes, up=True, pause=0, answer=0, reader=None):
    """One way: the writes of one end, `pause` between them; the other reads all, as `reader` says ('read' if None)."""
    total = sum(writes)

    def source():
        if not up:
            yield 'read', 40
        for n, size in enumerate(writes):
            if n and pause:
                yield 'sleep', pause
            yield 'write', size
        if up and answer:
            yield 'read', answer
        yield ('close',)
        yield ('closed',)

    def sink():
        if not up:
            yield 'write', 40
        yield from (reader() if reader else iter([('read', total)]))
        if up and answer:
            yield 'write', answer
        yield ('closed',)
        yield ('close',)

    return (source, sink) if up else (sink, source)


def stops(first, wait, total):
    """A reader that stops for a while after `first` bytes."""

    def reader():
        yield 'read', first
        yield ('stop',)
        yield 'sleep', wait
        yield ('go',)
        yield 'read', total - first

    return reader


def lost(*numbers):
    """A drop rule: data segments of these numbers of this direction are lost, repeats included in the count."""
    return lambda p, n: bool(p.payload) and n in numbers
