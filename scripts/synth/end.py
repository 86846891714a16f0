"""What sending and receiving share: the clock, timers, the peer, and packets that leave."""

from dataclasses import dataclass

from synth.segment import ACK, SYN, Segment


@dataclass
class Timer:
    """One timer of an end; starting it again stops the one before."""

    number: int = 0
    running: bool = False


class End:
    """Timers, options and the next packet, from what the two directions know."""

    def __init__(self, sim, side, stack):
        self.sim, self.side, self.stack = sim, side, stack
        self.state = 'closed'
        self.mss = stack.mss
        self.peer = None
        self.timers = {name: Timer() for name in ('rto', 'probe', 'ack', 'persist', 'pace')}

    def later(self, delay, action):
        self.sim.at(self.sim.now + delay, action)

    def start(self, name, delay, action):
        timer = self.timers[name]
        timer.number += 1
        timer.running = True
        mark = timer.number

        def fire():
            if timer.running and timer.number == mark and self.state != 'dead':
                timer.running = False
                action()

        self.later(delay, fire)

    def stop(self, name):
        self.timers[name].running = False

    def running(self, name):
        return self.timers[name].running

    def scaled(self):
        return self.stack.scale > 0 and self.peer.stack.scale > 0

    def stamps(self):
        both = self.stack.timestamps and self.peer.stack.timestamps
        return (self.sim.now // self.stack.ts_tick + 1000, self.recent) if both else None

    def put(self, seq, flags, payload=0, sent=None, late=0):
        """Hands a packet to the network."""
        segment = Segment(
            self.side,
            seq,
            self.peer_next if flags & ACK else 0,
            flags,
            self.window() if not flags & SYN else min(0xFFFF, self.stack.window),
            payload,
        )
        segment.stamps, segment.sent, segment.late = self.stamps(), sent, late
        if flags & SYN and flags & ACK:
            self.offered = self.peer_next + min(0xFFFF, self.stack.window)
        elif flags & SYN:
            self.offered = 1 + min(0xFFFF, self.stack.window)
        if self.holes and self.stack.sack and self.peer.stack.sack and flags & ACK:
            segment.sack = tuple(self.holes[-3:][::-1])
        if flags & ACK:
            self.pending, self.last_ack = 0, self.peer_next
            self.stop('ack')
        self.sim.send(segment)
