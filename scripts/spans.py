"""What scripts that look at single spans share: walking an answer, the figures in a sentence, a connection's packets.

Takes the JSON of `explain --exchanges all` and, beside it, the packets as `capfile` reads them; knows nothing of causes.
"""

import bisect
import re
from typing import NamedTuple

import capfile
from answers.packets import endpoint

NS = {'ns': 1, 'µs': 10**3, 'ms': 10**6, 's': 10**9, 'min': 60 * 10**9, 'h': 3600 * 10**9}
BITS = {'bit/s': 1, 'kbit/s': 10**3, 'Mbit/s': 10**6, 'Gbit/s': 10**9}
TIME = r'(?P<{0}>\d[\d.]* (?:ns|µs|ms|s|min|h)\b(?: \d[\d.]* (?:ns|µs|ms|s|min)\b)*)'

# every sentence that carries a figure, by what it says; a sentence that none of them reads has no figures
SENTENCES = [
    re.compile(text)
    for text in (
        r'^(?P<flight>\d+) bytes \(.*\) were in flight, the window had been (?P<before>\d+) before; .* \(round trip '
        + TIME.format('trip'),
        r'^(?P<flight>\d+) bytes \(.*\) were in flight and the next left with the ACK \(round trip '
        + TIME.format('trip'),
        r'^With (?P<flight>\d+) bytes in flight the sender could send no more, and the ACK was ' + TIME.format('late'),
        r'^(?P<bytes>\d+) bytes passed; the bottleneck carries about (?P<rate>[\d.]+ [kMG]?bit/s)\.',
        r'^(?P<bytes>\d+) bytes passed one after the other\.',
        r'^Nothing for ' + TIME.format('wait') + r' with (?P<outstanding>\d+) bytes unacknowledged',
        r'^Nothing for ' + TIME.format('wait') + r', with everything acknowledged',
        r'^The next byte came ' + TIME.format('wait') + r" after the other side's last one; " + TIME.format('trip'),
        r'^The next write came ' + TIME.format('wait') + r' after the one before\.',
        r'^For ' + TIME.format('wait') + r' TCP had nothing to send',
        r'^\d+ bytes were retransmitted after ' + TIME.format('after'),
        r'^\d+ bytes were sent again, ' + TIME.format('after'),
        r'^\d+ bytes more came ' + TIME.format('after'),
        r'^The SYN(?:-ACK)? was sent .* over ' + TIME.format('wait'),
        r'^One round trip \(' + TIME.format('trip'),
        r'^(?P<flight>\d+) bytes in flight filled the window .* one window per ' + TIME.format('trip'),
        r'^(?P<flight>\d+) bytes in flight filled what the receiver offered',
        r'^\d+ bytes were sent; the next (?P<held>\d+) waited for their ACK, which was '
        + TIME.format('late')
        + r' late',
        r'^The next (?P<held>\d+) bytes waited for the ACK of the \d+ bytes before them',
        r'^All in flight was acknowledged after ' + TIME.format('wait') + r', and only then, ' + TIME.format('late'),
        r'^(?P<flight>\d+) bytes in flight filled the window .* were acknowledged '
        + TIME.format('late')
        + r' after they',
        r'until with (?P<flight>\d+) bytes in flight one of them woke up the writer',
        r'^Nothing for '
        + TIME.format('wait')
        + r' with (?P<outstanding>\d+) bytes unacknowledged; then new data as a probe',
    )
]


class Span(NamedTuple):
    """A span with where it stands."""

    connection: dict
    part: dict  # setup, exchange or gap
    kind: str  # 'setup', 'exchange', 'gap'
    span: dict

    @property
    def cause(self):
        return self.span['cause']

    @property
    def length(self):
        return self.span['end_ns'] - self.span['start_ns']

    @property
    def sure(self):
        return self.span['confidence']

    def figures(self):
        """{name: number} of the sentence: ns, bytes and bit/s; None if no pattern reads it."""
        for pattern in SENTENCES:
            found = pattern.search(self.span['why'] or '')
            if found:
                return {name: number(text) for name, text in found.groupdict().items() if text is not None}
        return None


def unread(spans, causes):
    """How many sentences of these causes have figures that no pattern reads: they would make a count smaller in silence."""
    return sum(s.cause in causes and s.figures() is None and any(map(str.isdigit, s.span['why'] or '')) for s in spans)


def number(text):
    """'41.6 ms', '1 min 2 s', '115 Mbit/s' or '5520' as a number in ns, bit/s or bytes."""
    words = text.split()
    if len(words) == 1:
        return int(text)
    if words[1] in BITS:
        return float(words[0]) * BITS[words[1]]
    return sum(float(value) * NS[unit] for value, unit in zip(words[::2], words[1::2]))


def walk(answer):
    """Every Span of an answer, gaps included."""
    for c in answer['connections']:
        yield from walk_connection(c)


def walk_connection(c):
    """Every Span of one connection."""
    parts = [('setup', c['setup'])] if c['setup'] else []
    parts += [('exchange', x) for x in c['exchanges']] + [('gap', g) for g in c['gaps']]
    for kind, part in parts:
        for span in part['spans']:
            yield Span(c, part, kind, span)


# ---------------------------------------------------------------- packets


class Segment(NamedTuple):
    """A packet of one connection. `side`: 0 from the client, 1 from the server; numbers do not wrap."""

    time: int  # ns from the earliest packet of the capture
    side: int
    seq: int
    ack: int
    payload: int
    flags: int
    length: int  # on the wire, from the IP header on


class Packets:
    """The TCP packets of one capture, by pair of endpoints; tunnels are not looked into."""

    def __init__(self, path):
        self.flows = {}
        packets = capfile.read(path)
        self.start = min((p.time for p in packets), default=0)
        for frame, p in enumerate(packets, 1):
            t = capfile.tcp(p)
            if t:
                one, other = (t.source, t.sport), (t.target, t.dport)
                self.flows.setdefault(frozenset((one, other)), []).append((frame, p, t))

    def of(self, c):
        """The Segments of a connection in order of time, empty if the capture's packets cannot be read here."""
        client, server = endpoint(c['client']), endpoint(c['server'])
        out, last, clock = [], [None, None], 0
        first, final = c['frames']['first'], c['frames']['last']
        for frame, p, t in self.flows.get(frozenset((client, server)), ()):
            if not first <= frame <= final:
                continue
            side = 0 if (t.source, t.sport) == client else 1
            seq = near(t.seq + bool(t.flags & capfile.SYN), last[side])
            last[side] = seq if last[side] is None else max(last[side], seq)
            ack = near(t.ack, last[1 - side]) if t.flags & capfile.ACK else None
            if ack is not None and last[1 - side] is None:
                last[1 - side] = ack
            clock = max(clock, p.time - self.start)
            out.append(Segment(clock, side, seq, ack, t.payload, t.flags, p.length - t.ip))
        return out


def near(number32, reference):
    """A 32-bit number unwrapped to lie within 2^31 of a reference."""
    return number32 if reference is None else number32 + round((reference - number32) / 2**32) * 2**32


class Flight:
    """What one side had unacknowledged at this tap, as steps in time."""

    def __init__(self, segments, side):
        self.times, self.bytes, self.oldest = [], [], []
        sent, una, high = [], None, None
        for s in segments:
            if s.side == side and s.payload and not s.flags & capfile.RST:
                end = s.seq + s.payload
                if una is None:
                    una, high = s.seq, s.seq
                if end > high:
                    sent.append((end, s.time))
                    high = end
            elif s.side != side and s.ack is not None and una is not None and una < s.ack:
                una = min(s.ack, high)
                while sent and sent[0][0] <= una:
                    sent.pop(0)
            else:
                continue
            self.times.append(s.time)
            self.bytes.append(high - una)
            self.oldest.append(sent[0][1] if sent else None)

    def at(self, time):
        """(bytes unacknowledged, when the oldest was sent) just after `time`."""
        n = bisect.bisect_right(self.times, time) - 1
        return (self.bytes[n], self.oldest[n]) if n >= 0 else (0, None)

    def steps(self, start, end):
        """[(from, to, bytes)] over a stretch."""
        first = bisect.bisect_right(self.times, start)
        last = bisect.bisect_left(self.times, end)
        marks = [start, *self.times[first:last], end]
        return [(a, b, self.at(a)[0]) for a, b in zip(marks, marks[1:]) if b > a]


def longest_empty(flights, start, end):
    """The longest time of a stretch in which neither side had anything unacknowledged."""
    marks = sorted({start, end, *(a for f in flights for a, _, _ in f.steps(start, end))})
    longest = run = 0
    for a, b in zip(marks, marks[1:]):
        run = 0 if any(f.at(a)[0] for f in flights) else run + b - a
        longest = max(longest, run)
    return longest


def self_test():
    """Figures and flights on made-up input."""

    def figures(why):
        return Span({}, {}, 'gap', {'why': why}).figures()

    assert figures(
        '14480 bytes (10 segments) were in flight, the window had been 23168 before; the next left with the ACK '
        '(round trip 20.1 ms).'
    ) == {'flight': 14480, 'before': 23168, 'trip': 20.1e6}
    assert figures('5520 bytes passed; the bottleneck carries about 115 Mbit/s.') == {'bytes': 5520, 'rate': 115e6}
    assert figures('Nothing for 1 min 2 s with 7 bytes unacknowledged, and no')['wait'] == 62e9
    held = '239 bytes were sent; the next 26 waited for their ACK, which was 42.0 µs late, and left with it.'
    assert figures(held)['late'] == 42e3
    assert figures("The next byte came 2 ms after the other side's last one; 1 ms of that was the trip.") == {
        'wait': 2e6,
        'trip': 1e6,
    }
    assert (
        figures('130966 bytes in flight filled the window that the receiver offered; one window per 18.0 µs')['flight']
        == 130966
    )
    assert (
        unread(
            [Span({}, {}, 'gap', {'cause': 'nagle', 'why': w}) for w in ('7 bytes of another kind', 'No figure')],
            ['nagle'],
        )
        == 1
    )
    assert figures('The trips that the distance sets.') is None
    data = [Segment(0, 0, 100, None, 10, 16, 50), Segment(5, 1, 1, 105, 0, 16, 40), Segment(9, 1, 1, 110, 0, 16, 40)]
    flight = Flight(data, 0)
    assert [flight.at(t)[0] for t in (-1, 0, 5, 9)] == [0, 10, 5, 0] and flight.at(5)[1] == 0
    assert longest_empty([flight], 0, 20) == 11
    assert near(5, 2**32 - 5) == 2**32 + 5
