"""Virtual time, the two directions of a path, and the taps at both of its ends."""

import heapq
import random
from dataclasses import dataclass

US, MS, SECOND = 10**3, 10**6, 10**9
HEADERS = 40
NIC = 1500  # ns between two packets of one burst


@dataclass
class Link:
    """One direction. Functions are asked with the segment and its number among those of its kind."""

    delay: int = 10 * MS
    rate: float = 0  # bit/s, 0: none
    queue: int = 1 << 40  # bytes
    mtu: int = 65535  # larger packets vanish
    tells: int = 0  # ns after which ICMP says so at their sender, 0: never
    drop: object = None  # (segment, number of this data segment from 0) -> bool
    extra: object = None  # (segment, now) -> ns on top of the delay
    overtake: object = None  # (segment, number) -> ns of delay by which others overtake it
    thin: int = 0  # ns for which an ACK is held, so that a newer one takes its place


class Passage:
    """A packet as it passes a tap."""

    __slots__ = ('time', 'segment')

    def __init__(self, time, segment):
        self.time, self.segment = time, segment


class Sim:
    """Two ends and what is between them. `taps` are lists of Passage, client's and server's."""

    def __init__(self, seed, up, down):
        self.now, self.queue, self.number = 0, [], 0
        self.random = random.Random(seed)
        self.links = (up, down)
        self.busy, self.arrived, self.nic = [0, 0], [0, 0], [0, 0]
        self.counts, self.backlog, self.held = [0, 0], [0, 0], [None, None]
        self.taps, self.ends, self.idents = ([], []), (None, None), [1, 1]
        self.first_syn = 0
        self.reset_while, self.carried = None, ([], [])
        self.words = ([], [])  # what routers said at each tap: (time, segment, MTU)

    def jitter(self, mean):
        """A short time that is never quite the same."""
        return int(mean * (0.6 + 0.8 * self.random.random()))

    def at(self, time, action):
        self.number += 1
        heapq.heappush(self.queue, (max(time, self.now), self.number, action))

    def run(self, limit=600 * SECOND, packets=60000):
        """Until nothing more happens."""
        while self.queue:
            time, _, action = heapq.heappop(self.queue)
            if time > limit or len(self.taps[0]) > packets:
                break
            self.now = time
            action()
        for tap in self.taps:
            tap.sort(key=lambda p: p.time)

    def carrying(self, side, start, end):
        """ns of a stretch in which a rated link was busy with data of `side`."""
        return sum(max(0, min(b, end) - max(a, start)) for a, b in self.carried[side])

    def send(self, p):
        """A packet leaves a host: its own tap, then the link."""
        side = p.side
        leaves = self.nic[side] = max(self.now, self.nic[side] + NIC)
        kind = self.ends[side].stack.ids
        self.idents[side] += 1
        p.ident = (
            0 if kind == 'zero' else self.random.randrange(65536) if kind == 'random' else self.idents[side] & 0xFFFF
        )
        self.taps[side].append(Passage(leaves, p))
        link = self.links[side]
        number = self.counts[side]
        if p.payload:
            self.counts[side] += 1
        size = p.payload + HEADERS + (12 if p.stamps else 0)
        start = max(leaves, self.busy[side])
        waiting = (start - leaves) * link.rate / 8 / SECOND if link.rate else 0
        if size > link.mtu and link.tells:
            self.at(leaves + link.tells, lambda: self.word(p, link.mtu))
        if size > link.mtu or link.drop and link.drop(p, number) or waiting > link.queue:
            if p.sent:
                p.sent.dropped = True
            return
        done = self.busy[side] = start + (int(size * 8 * SECOND / link.rate) if link.rate else 0)
        if link.rate and p.payload:
            if self.carried[side] and self.carried[side][-1][1] >= start:
                self.carried[side][-1][1] = done
            else:
                self.carried[side].append([start, done])
        arrives = done + link.delay + (link.extra(p, self.now) if link.extra else 0)
        aside = link.overtake(p, number) if link.overtake else 0
        if aside:
            self.at(arrives + aside, lambda: self.arrive(p))
            return
        arrives = self.arrived[side] = max(arrives, self.arrived[side] + 1)
        if link.thin and p.pure_ack() and not p.sack:
            if self.held[side] is None:
                self.at(arrives + link.thin, lambda: self.let_go(side))
            self.held[side] = p
            return
        if self.held[side] is not None:
            self.at(arrives, lambda: self.let_go(side))
        self.at(arrives, lambda: self.arrive(p))

    def word(self, p, mtu):
        """A router says at the sender of a packet that it was too large (RFC 1191)."""
        self.words[p.side].append((self.now, p, mtu))
        self.ends[p.side].told(mtu - HEADERS - (12 if p.stamps else 0))

    def let_go(self, side):
        p, self.held[side] = self.held[side], None
        if p is not None:
            self.arrive(p)

    def arrive(self, p):
        other = 1 - p.side
        self.taps[other].append(Passage(self.now, p))
        self.ends[other].receive(p)
