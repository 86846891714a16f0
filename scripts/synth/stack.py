"""One end of a connection: RFC 9293 as far as waits depend on it, with the habits that differ between stacks."""

import dataclasses
from dataclasses import dataclass

from synth.habits import FOREVER
from synth.sim import MS, SECOND, US

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
    """A transmission of data. `cause`: 'app' or a cause of the table; `write`: what supplied its first byte."""

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


@dataclass
class Write:
    """A write of an application: what it waited for before, since when, until when."""

    start: int
    end: int
    time: int
    ready: int
    after: str  # 'read' (it had waited for input), 'write' or 'start'
    blocked: bool = False  # the send buffer had no room


@dataclass
class Timer:
    """One timer of an end; starting it again stops the one before."""

    number: int = 0
    running: bool = False


class Endpoint:
    """A TCP end with its application, a generator that yields what it waits for.

    ('write', n), ('read', n), ('sleep', ns), ('stop',) and ('go',) for reading, ('take', n) while stopped, ('close',),
    ('reset',), ('closed',).
    """

    def __init__(self, sim, side, stack, app):
        self.sim, self.side, self.stack, self.app = sim, side, stack, app
        self.state = 'closed'
        self.mss = stack.mss
        # sending
        self.una = self.nxt = self.end = 1
        self.edge, self.peer_largest, self.peer_scale = 0, 0, 0
        self.cwnd, self.ssthresh = 0, stack.ssthresh
        self.before_idle = self.before_loss = 0
        self.out, self.history, self.writes = [], [], []
        self.small_end = 0
        self.hold, self.pacer, self.shut = 'app', 0, []
        self.srtt = self.var = 0
        self.rto, self.backoff = stack.rto_first, 0
        self.duplicates, self.recover, self.repair = 0, 0, None
        self.probed = False
        self.timers = {name: Timer() for name in ('rto', 'probe', 'ack', 'persist', 'pace')}
        self.persist_count, self.timeouts = 0, 0
        self.fin_wanted = self.fin_sent = False
        self.last_sent = 0
        # receiving
        self.peer_next, self.holes, self.unread, self.offered = 1, [], 0, 0
        self.reading, self.got, self.wanted, self.asked = True, 0, None, 0
        self.pending, self.pending_since, self.quick, self.talking = 0, 0, stack.quick, False
        self.recent, self.last_ack = 0, 0
        self.last_data = -FOREVER
        self.peer_fin = None
        # application
        self.ready, self.after, self.rest = 0, 'start', 0
        self.waiting = False
        self.peer = None

    # ------------------------------------------------------------ helpers

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

    def flight(self):
        """Bytes that the network is thought to hold (RFC 6675 Pipe)."""
        pipe = sum(s.end - s.seq for s in self.out if not s.sacked and (not s.lost or s.again))
        return pipe if self.stack.sack and self.peer.stack.sack else max(0, pipe - self.duplicates * self.mss)

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

    def measured(self, trip):
        """RFC 6298 2."""
        if not self.srtt:
            self.srtt, self.var = trip, trip // 2
        else:
            self.var += (abs(self.srtt - trip) - self.var) // 4
            self.srtt += (trip - self.srtt) // 8
        floor = self.stack.rto_min
        self.rto = self.srtt + max(4 * self.var, floor) if self.stack.rto_adds else max(self.srtt + 4 * self.var, floor)

    # ------------------------------------------------------------ receiving

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

    def open_edge(self, p, scaled=True):
        size = p.window << (self.peer.stack.scale if scaled and self.scaled() else 0)
        self.edge = max(self.edge, p.ack + size)
        self.peer_largest = max(self.peer_largest, size)

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

    # ------------------------------------------------------------ acknowledgements

    def on_ack(self, p):
        if not p.flags & ACK:
            return
        old_edge, out = self.edge, bool(self.out)
        self.open_edge(p)
        for a, b in p.sack:
            for s in self.out:
                if a <= s.seq and s.end <= b:
                    s.sacked = True
        if p.ack > self.una:
            self.advance(p)
        elif out and not p.payload and p.ack == self.una and self.edge == old_edge and not p.flags & FIN:
            self.duplicates += 1
            self.look_for_loss()
        if self.edge > old_edge and not self.out:
            self.stop('persist')
            self.persist_count = 0
        self.later(self.sim.jitter(self.stack.react), lambda: self.released(p.late))

    def released(self, late):
        if self.state != 'open':
            return
        if self.rest and self.room_to_wake():
            self.write_more(True)
        else:
            self.push('ack', late)

    def advance(self, p):
        held = self.flight()
        done = [s for s in self.out if s.end <= p.ack]
        fresh = [s for s in done if not s.again and s.first is None]
        if p.stamps and done or fresh and len(fresh) == len(done):
            self.measured(self.sim.now - (fresh[-1].time if fresh else done[-1].time))
        acked = p.ack - self.una
        self.una = p.ack
        self.nxt = max(self.nxt, self.una)
        self.out = [s for s in self.out if s.end > p.ack]
        self.backoff = self.timeouts = 0
        self.duplicates, self.probed = 0, False
        if self.recover:
            if self.una >= self.recover:
                self.recover, self.repair = 0, None
                self.cwnd = max(self.cwnd, min(self.ssthresh, self.mss * 10**6)) if self.stack.fast else self.cwnd
            elif self.out and (self.repair == 'fast_recovery'):
                if not (self.stack.sack and self.peer.stack.sack) and not self.out[0].again:
                    self.out[0].lost = True
                self.look_for_loss()
        if not self.recover or self.repair == 'retransmission_timeout':
            self.grow(acked, held)
        if self.before_loss and self.cwnd >= self.before_loss:
            self.before_loss = 0
        if self.before_idle and self.cwnd >= self.before_idle:
            self.before_idle = 0
        self.arm()

    def grow(self, acked, held):
        """Slow start and congestion avoidance, only where the window was used (RFC 7661)."""
        if (
            self.stack.grow == 'none'
            or held * 2 < self.cwnd
            or held + self.mss <= self.cwnd
            and self.cwnd >= self.ssthresh
        ):
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += min(acked, self.mss) if self.stack.grow == 'ack' else acked
        else:
            self.cwnd += max(1, self.mss * acked // self.cwnd)

    def look_for_loss(self):
        """RFC 5681 3.2 and RFC 6675: three duplicates, or three segments above a hole."""
        if not self.stack.fast or not self.out:
            return
        selective = self.stack.sack and self.peer.stack.sack
        above, found = 0, False
        for s in reversed(self.out):
            if s.sacked:
                above += 1
            elif selective and above >= 3 and not s.lost:
                s.lost = found = True
        if not selective and self.duplicates == 3 and not self.recover:
            self.out[0].lost = found = True
        if found and not self.recover:
            self.recover, self.repair = self.nxt, 'fast_recovery'
            self.before_loss = max(self.before_loss, self.cwnd)
            self.ssthresh = max(sum(s.end - s.seq for s in self.out) // 2, 2 * self.mss)
            self.cwnd = self.ssthresh

    # ------------------------------------------------------------ timers

    def arm(self):
        """The timer of the oldest segment, or a probe before it (RFC 6298 5, RFC 8985 7)."""
        self.stop('rto')
        self.stop('probe')
        if not self.out and not (self.fin_sent and self.una <= self.end):
            return
        self.start('rto', self.rto << self.backoff, self.timeout)
        if (
            self.stack.probe
            and self.stack.sack
            and not self.probed
            and not self.recover
            and self.out
            and not self.backoff
        ):
            wait = 2 * self.srtt + (2 * MS if len(self.out) > 1 else 200 * MS)
            if wait < self.rto:
                self.start('probe', wait, self.tail_probe)
            else:
                self.start('rto', self.rto, self.tail_probe)

    def tail_probe(self):
        self.probed = True
        self.start('rto', self.rto, self.timeout)
        if self.out:
            self.repeat(self.out[-1], 'tail_loss_probe')

    def timeout(self):
        if self.stack.give_up and self.timeouts >= self.stack.give_up:
            self.reset()
            return
        self.timeouts += 1
        self.backoff = min(self.backoff + 1, 6)
        if not self.out:
            if self.fin_sent and self.una <= self.end:
                self.put(self.end, FIN | ACK)
                self.start('rto', self.rto << self.backoff, self.timeout)
            return
        if not self.recover or self.repair != 'retransmission_timeout':
            self.before_loss = max(self.before_loss, self.cwnd)
            self.ssthresh = max(self.flight() // 2, 2 * self.mss)
        self.cwnd, self.recover, self.repair, self.duplicates = self.mss, self.nxt, 'retransmission_timeout', 0
        for s in self.out:
            s.lost, s.again = not s.sacked, False
        if self.stack.smaller_after and self.timeouts >= self.stack.smaller_after and self.mss > self.stack.smaller:
            self.shrink()
        self.push('timer')
        self.start('rto', self.rto << self.backoff, self.timeout)

    def shrink(self):
        """Smaller segments from here on: black-hole detection (RFC 4821 7.6, Windows: 536)."""
        self.mss, out = self.stack.smaller, []
        for s in self.out:
            for seq in range(s.seq, s.end, self.mss):
                out.append(
                    dataclasses.replace(
                        s, seq=seq, end=min(seq + self.mss, s.end), first=s.first or s, lost=True, again=False
                    )
                )
        self.out, self.repair, self.cwnd = out, 'path_mtu', self.mss

    def persist(self):
        """A probe of a shut window (RFC 9293 3.8.6.1)."""
        self.persist_count += 1
        if self.stack.persist_byte:
            self.put(self.nxt, ACK, 1)
        else:
            self.put(self.una - 1, ACK)
        self.start('persist', min(max(self.stack.persist, self.rto) << self.persist_count, 60 * SECOND), self.persist)

    # ------------------------------------------------------------ sending

    def push(self, trigger, late=0):
        """Sends what may be sent, in the order of the kernel's questions, and remembers what stopped it."""
        if self.state != 'open':
            return
        for s in self.out:
            if s.lost and not s.again and not s.sacked:
                if self.flight() and self.flight() + s.end - s.seq > self.cwnd:
                    break
                self.repeat(s, 'retransmission_timeout' if self.repair is None else self.repair)
        reason = {'write': 'app', 'wake': 'send_buffer'}.get(trigger) or self.hold
        while True:
            size = min(self.mss, self.end - self.nxt)
            if size <= 0:
                self.finish()
                hold = 'send_buffer' if self.rest else 'app'
                break
            hold, size = self.stopped(size)
            if hold:
                break
            self.first_time(size, reason, late)
        if hold == 'slow_reader' and self.hold != hold:
            self.shut.append([self.sim.now, FOREVER])
        elif self.hold == 'slow_reader' and hold != self.hold:
            self.shut[-1][1] = self.sim.now
        self.hold = hold

    def stopped(self, size):
        """(what stops the next segment or None, its size)"""
        flight = self.flight()
        if not self.out:
            self.restart()
        if flight and flight + size > self.cwnd:
            return self.congestion(), size
        room = self.edge - self.nxt
        if room < size:
            if room < self.mss and not (room > 0 and room * 2 >= self.peer_largest):
                if not self.out and not self.running('persist'):
                    self.start('persist', max(self.stack.persist, self.rto), self.persist)
                return self.window_cause(), size
            size = min(size, room)
        held = self.stack.nagle == 'classic' or self.small_end > self.una
        if held and size < self.mss and self.stack.nagle != 'off' and not self.fin_wanted and self.out:
            return 'nagle', size
        if self.stack.pace and self.pacer > self.sim.now:
            if not self.running('pace'):
                self.start('pace', self.pacer - self.sim.now, lambda: self.push('timer'))
            return 'pacing', size
        return None, size

    def restart(self):
        """The window after idle (RFC 5681 4.1; Linux: tcp_cwnd_restart)."""
        idle = self.sim.now - self.last_sent
        if self.last_sent and idle > self.rto and self.stack.idle != 'keep':
            old, floor = self.cwnd, self.stack.initial * self.mss
            if self.stack.idle == 'initial':
                self.cwnd = min(self.cwnd, floor)
            else:
                while idle > self.rto and self.cwnd > floor:
                    self.cwnd, idle = max(self.cwnd // 2, floor), idle - self.rto
            if self.cwnd < old:
                self.before_idle = max(old, self.before_idle)
                self.ssthresh = max(self.ssthresh, old * 3 // 4)
            self.last_sent = self.sim.now

    def congestion(self):
        if self.before_idle:
            return 'idle_restart'
        return 'congestion_window' if self.before_loss or self.cwnd >= self.ssthresh else 'slow_start'

    def window_cause(self):
        """Why the peer's window is full: its application does not read, or its buffer is that small."""
        return 'slow_reader' if not self.peer.reading or self.peer.unread >= self.peer.mss else 'receive_window'

    def write_of(self, seq):
        for w in reversed(self.writes):
            if w.start <= seq:
                return w
        return self.writes[0]

    def first_time(self, size, reason, late):
        sent = Sent(self.nxt, self.nxt + size, self.sim.now, reason, self.write_of(self.nxt), late, srtt=self.srtt)
        if reason == 'app' and sent.write.blocked:
            sent.cause = 'send_buffer'
        self.nxt += size
        if size < self.mss:
            self.small_end = self.nxt
        if self.stack.pace:
            self.pacer = max(self.pacer, self.sim.now) + size * SECOND // self.stack.pace
        self.out.append(sent)
        self.history.append(sent)
        self.transmit(sent)
        if len(self.out) == 1 or not self.running('rto') or self.running('probe'):
            self.arm()

    def transmit(self, s):
        ends = any(w.end == s.end for w in self.writes[-200:])
        if self.stack.pingpong and self.sim.now - self.last_data < 40 * MS:
            self.talking = True
        self.last_sent = self.sim.now
        self.put(s.seq, ACK | (PSH if ends or s.end == self.end else 0), s.end - s.seq, s)

    def repeat(self, s, reason):
        s.again = True
        s.time = self.sim.now if s.first else s.time
        copy = dataclasses.replace(s, time=self.sim.now, cause=reason, first=s.first or s, dropped=False)
        self.history.append(copy)
        self.transmit(copy)

    def finish(self):
        if self.fin_wanted and not self.fin_sent and not self.rest:
            self.fin_sent = True
            self.put(self.end, FIN | ACK)
            self.nxt = self.end + 1
            self.arm()

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


def merge(ranges):
    """Ranges in order, those that touch made one."""
    out = []
    for a, b in sorted(ranges):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], b))
        else:
            out.append((a, b))
    return out
