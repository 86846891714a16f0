"""What passes between two ends, and what each remembers of it."""

from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Segment:
    """A packet on its way. Numbers are relative to the initial ones; `cause` is what its data waited for."""

    __slots__ = (
        'side',
        'seq',
        'ack',
        'flags',
        'window',
        'payload',
        'stamps',
        'sack',
        'late',
        'sent',
        'ident',
        'options',
    )

    def __init__(self, side, seq, ack, flags, window, payload=0):
        self.side, self.seq, self.ack, self.flags, self.window, self.payload = side, seq, ack, flags, window, payload
        self.stamps, self.sack, self.late, self.sent, self.ident, self.options = None, (), 0, None, 0, None

    def pure_ack(self):
        return not self.payload and self.flags == ACK


@dataclass(eq=False)
class Sent:
    """A transmission of data. `cause`: 'app' or a cause of the table; `write`: what supplied its first byte;
    `filled`: the last write there was, which let it go if it waited for the application."""

    seq: int
    end: int
    time: int
    cause: str
    write: 'Write'
    late: int = 0  # how long the ACK that released it had been delayed by the peer's timer
    first: 'Sent' = None  # the first transmission of a repeat
    sacked: bool = False
    lost: bool = False
    again: bool = False
    dropped: bool = False  # the network lost it
    srtt: int = 0
    filled: 'Write' = None
    answered: bool = False  # the ACK that released it came with data


@dataclass
class Write:
    """A write of an application: what it waited for before, since when, until when."""

    start: int
    end: int
    time: int
    ready: int
    after: str  # 'read' (it had waited for input), 'write' or 'start'
    blocked: bool = False  # the send buffer had no room


def merge(ranges):
    """Ranges in order, those that touch made one."""
    out = []
    for a, b in sorted(ranges):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], b))
        else:
            out.append((a, b))
    return out
