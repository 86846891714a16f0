"""The receiving half of an end: what it has got, when it acknowledges, which window it offers, and its reader."""

from synth.end import End
from synth.habits import FOREVER
from synth.segment import ACK, FIN, PSH, merge
from synth.sim import MS, US


class Receiver(End):
    """Bytes in order, bytes beyond a hole, bytes that wait for the application."""

    def __init__(self, sim, side, stack):
        super().__init__(sim, side, stack)
        self.peer_next, self.holes, self.unread, self.offered = 1, [], 0, 0
        self.reading, self.got, self.wanted, self.asked = True, 0, None, 0
        self.pending, self.pending_since, self.quick, self.talking = 0, 0, stack.quick, False
        self.recent, self.last_ack = 0, 0
        self.last_data = -FOREVER
        self.peer_fin = None

    def window(self):
        """The window to offer, as a header field; the right edge never moves left (RFC 9293 3.8.6.2.2)."""
        free = self.stack.window - self.unread - sum(b - a for a, b in self.holes)
        if free < min(self.mss, self.stack.window // 2) and not self.stack.silly:
            free = 0
        edge = max(self.offered, self.peer_next + free)
        scale = self.stack.scale if self.scaled() else 0
        field_value = min(0xFFFF, (edge - self.peer_next) >> scale)
        self.offered = max(self.offered, self.peer_next + (field_value << scale))
        return field_value

    def on_data(self, p):
        end = p.seq + p.payload
        beyond = p.seq >= self.peer_next + max(0, self.offered - self.peer_next) and p.payload
        if p.flags & FIN:
            self.peer_fin = end
        if beyond and end > self.offered or end <= self.peer_next and p.payload:
            self.put(self.nxt, ACK)  # a probe of a shut window, or a repeat
            return
        if p.seq > self.peer_next:
            self.holes = merge(self.holes + [(p.seq, end)])
            self.put(self.nxt, ACK)
            return
        before, filled = self.peer_next, bool(self.holes)
        self.peer_next = max(self.peer_next, end)
        while self.holes and self.holes[0][0] <= self.peer_next:
            self.peer_next = max(self.peer_next, self.holes.pop(0)[1])
        if self.peer_fin is not None and self.peer_next == self.peer_fin:
            self.peer_next += 1
        new = self.peer_next - before
        self.unread += new - (1 if self.peer_fin is not None and self.peer_next > self.peer_fin else 0)
        if self.reading:
            self.take(self.unread, p)
        self.acknowledge(p, new, filled)
        if self.peer_fin is not None and self.peer_next > self.peer_fin:
            self.peer_closed()

    def acknowledge(self, p, new, filled):
        """An ACK at once, or later (RFC 9293 3.8.6.3, RFC 5681 4.2)."""
        stack = self.stack
        if not self.pending:
            self.pending_since = self.sim.now
        self.pending += new
        self.last_data = self.sim.now
        at_once = (
            filled
            or p.flags & FIN
            or self.pending >= stack.every * self.mss
            or stack.pingpong
            and self.pending > self.mss
            or stack.push_acks
            and p.flags & PSH
        )
        if stack.pingpong and not self.talking and self.reading:
            at_once = True
        if self.quick > 0 and not self.talking:
            self.quick -= 1
            at_once = True
        if at_once:
            self.later(self.sim.jitter(stack.react), self.ack_now)
        elif not self.running('ack'):
            wait = (
                stack.delay - self.sim.now % stack.delay if stack.heartbeat else stack.delay + self.sim.jitter(3 * MS)
            )
            self.start('ack', wait, self.delayed_ack)

    def ack_now(self):
        if self.pending and self.state == 'open':
            self.put(self.nxt, ACK)

    def delayed_ack(self):
        self.talking = False
        self.put(self.nxt, ACK, late=self.sim.now - self.pending_since)

    def take(self, amount, p=None):
        """The application reads; a window update may follow."""
        amount = min(amount, self.unread)
        self.unread -= amount
        self.got += amount
        if p is None:
            scale = self.stack.scale if self.scaled() else 0
            room, old = self.stack.window - self.unread, self.offered - self.peer_next
            if room < min(self.mss, self.stack.window // 2) and not self.stack.silly or room >> scale <= old >> scale:
                gain = False
            else:
                gain = {
                    'double': room >= 2 * old,
                    'each': True,
                    'never': False,
                    'half': room - old >= min(2 * self.mss, self.stack.window // 2),
                }[self.stack.update]
            if gain and amount:
                self.later(self.sim.jitter(self.stack.react), lambda: self.put(self.nxt, ACK))
        self.wake_reader()

    def wake_reader(self):
        if self.wanted is not None and self.got >= self.wanted:
            self.wanted = None
            self.later(self.sim.jitter(20 * US), self.read_done)

    def read_done(self):
        self.ready, self.after = self.sim.now, 'read'
        self.step()
