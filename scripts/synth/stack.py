"""One end of a connection: RFC 9293 as far as waits depend on it, with the habits that differ between stacks.

`segment`: what passes and what is remembered. `end`: what both halves share. `receiver`, `sender`: the two halves.
Here: the handshake, where a packet goes, and the application.
"""

from synth.habits import FOREVER
from synth.receiver import Receiver
from synth.segment import ACK, FIN, RST, SYN, Write
from synth.sender import Sender
from synth.sim import US


class Endpoint(Receiver, Sender):
    """A TCP end with its application, a generator that yields what it waits for.

    ('write', n), ('read', n), ('sleep', ns), ('stop',) and ('go',) for reading, ('take', n) while stopped, ('close',),
    ('reset',), ('closed',).
    """

    def __init__(self, sim, side, stack, app):
        super().__init__(sim, side, stack)
        self.app = app
        self.ready, self.after = 0, 'start'
        self.waiting = False

    # ------------------------------------------------------------ handshake

    def connect(self):
        self.state = 'syn'
        self.put(0, SYN)
        self.start('rto', self.stack.rto_first << self.backoff, self.connect_again)

    def connect_again(self):
        self.backoff += 1
        self.connect()

    def established(self):
        self.state, self.backoff = 'open', 0
        self.stop('rto')
        options = 12 if self.stamps() else 0
        self.mss = min(self.stack.mss, self.peer.stack.mss) - options
        self.cwnd = self.stack.initial * self.mss
        self.ready = self.sim.now
        self.later(self.sim.jitter(20 * US), self.step)

    def receive(self, p):
        """A packet arrived."""
        if self.state == 'dead':
            return
        if p.flags & RST:
            if self.state == 'syn' and self.backoff < self.stack.reset_tries:
                self.stop('rto')
                self.later(self.stack.reset_gap, self.connect_again)
                return
            self.state = 'dead'
            return
        if p.flags & SYN:
            self.on_syn(p)
            return
        if self.state == 'syn-received' and p.flags & ACK:
            self.open_edge(p)
            self.measured(self.sim.now - self.syn_time)
            self.established()
        if self.state not in ('open',):
            return
        if p.stamps and p.seq <= self.last_ack and (self.stack.ts_echo == 7323 or p.seq + p.payload > self.last_ack):
            self.recent = max(self.recent, p.stamps[0])
        probe = not p.payload and not p.flags & FIN and p.seq < self.peer_next
        if p.payload or p.flags & FIN:
            self.on_data(p)
        elif probe:
            self.put(self.nxt, ACK)
        self.on_ack(p)

    def on_syn(self, p):
        self.recent = p.stamps[0] if p.stamps else 0
        if self.stack.refuses:
            self.put(0, RST | ACK)
            return
        if p.flags & ACK:
            if self.state == 'syn':
                self.measured(self.sim.now - self.sim.first_syn)
                self.open_edge(p, scaled=False)
                self.state = 'third'
                self.later(self.stack.third_ack, self.third_ack)
            else:
                self.put(self.nxt, ACK)
        elif self.state in ('closed', 'syn-received'):
            self.state, self.syn_time = 'syn-received', self.sim.now + self.stack.syn_ack
            self.edge = p.window
            self.later(self.stack.syn_ack, lambda: self.put(0, SYN | ACK))

    def third_ack(self):
        self.established()
        self.put(1, ACK)

    # ------------------------------------------------------------ the application

    def step(self, value=None):
        """Runs the application to its next wait."""
        if self.state == 'dead':
            return
        try:
            what = next(self.app)
        except StopIteration:
            return
        kind = what[0]
        if kind == 'write':
            self.rest = what[1]
            self.write_more(False)
        elif kind == 'read':
            self.wanted = self.asked = self.asked + what[1]
            self.wake_reader()
        elif kind == 'sleep':
            self.later(what[1] + self.sim.jitter(30 * US), self.step)
        elif kind == 'stop':
            self.reading = False
            self.step()
        elif kind == 'go':
            self.reading = True
            self.take(self.unread)
            self.step()
        elif kind == 'take':
            self.take(what[1])
            self.step()
        elif kind == 'close':
            self.fin_wanted = True
            self.push('write')
            self.step()
        elif kind == 'reset':
            self.reset()
        elif kind == 'closed':
            self.waiting = True
            if self.peer_fin is not None and self.peer_next > self.peer_fin:
                self.peer_closed()
        else:
            raise ValueError(kind)

    def reset(self):
        """Gives the connection up, and remembers what its data still waited for."""
        for end in (self, self.peer):
            if end.out and end.timeouts:
                self.sim.reset_while = 'retransmission_timeout'
            elif end.end > end.nxt and end.hold not in ('app', 'send_buffer'):
                self.sim.reset_while = end.hold
            if end.shut and end.shut[-1][1] == FOREVER:
                end.shut[-1][1] = self.sim.now
        self.put(self.nxt, RST | ACK)
        self.state = 'dead'

    def peer_closed(self):
        if self.waiting:
            self.waiting = False
            self.later(self.sim.jitter(20 * US), self.step)

    def room_to_wake(self):
        free = self.stack.send_buffer - (self.end - self.una)
        return free >= self.stack.send_buffer * self.stack.wake

    def write_more(self, woken):
        """Takes as much of a write as the send buffer has room for."""
        room = max(0, self.stack.send_buffer - (self.end - self.una))
        taken = min(self.rest, room)
        if taken:
            self.writes.append(Write(self.end, self.end + taken, self.sim.now, self.ready, self.after, woken))
            self.end += taken
            self.rest -= taken
            self.ready, self.after = self.sim.now, 'write'
            self.push('wake' if woken else 'write')
        if not self.rest:
            self.later(self.sim.jitter(5 * US), self.step)
