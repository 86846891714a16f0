"""The sending half of an end: what stops each segment, what an ACK releases, what is lost, and its timers."""

import dataclasses

from synth.end import End
from synth.habits import FOREVER
from synth.segment import ACK, FIN, PSH, Sent
from synth.sim import MS, SECOND


class Sender(End):
    """Bytes that were written, those in flight, and the windows that hold the rest."""

    def __init__(self, sim, side, stack):
        super().__init__(sim, side, stack)
        self.una = self.nxt = self.end = 1
        self.edge, self.peer_largest = 0, 0
        self.cwnd, self.ssthresh = 0, stack.ssthresh
        self.before_idle = self.before_loss = 0
        self.out, self.history, self.writes = [], [], []
        self.small_end = 0
        self.hold, self.pacer, self.shut = 'app', 0, []
        self.srtt = self.var = 0
        self.rto, self.backoff = stack.rto_first, 0
        self.duplicates, self.recover, self.repair = 0, 0, None
        self.probed = False
        self.persist_count, self.timeouts = 0, 0
        self.fin_wanted = self.fin_sent = False
        self.last_sent = 0
        self.rest = 0  # of a write, what the send buffer has no room for yet

    def flight(self):
        """Bytes that the network is thought to hold (RFC 6675 Pipe)."""
        pipe = sum(s.end - s.seq for s in self.out if not s.sacked and (not s.lost or s.again))
        return pipe if self.stack.sack and self.peer.stack.sack else max(0, pipe - self.duplicates * self.mss)

    def measured(self, trip):
        """RFC 6298 2."""
        if not self.srtt:
            self.srtt, self.var = trip, trip // 2
        else:
            self.var += (abs(self.srtt - trip) - self.var) // 4
            self.srtt += (trip - self.srtt) // 8
        floor = self.stack.rto_min
        self.rto = self.srtt + max(4 * self.var, floor) if self.stack.rto_adds else max(self.srtt + 4 * self.var, floor)

    def open_edge(self, p, scaled=True):
        size = p.window << (self.peer.stack.scale if scaled and self.scaled() else 0)
        self.edge = max(self.edge, p.ack + size)
        self.peer_largest = max(self.peer_largest, size)

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
        self.later(self.sim.jitter(self.stack.react), lambda: self.released(p))

    def released(self, ack):
        if self.state != 'open':
            return
        if self.rest and self.room_to_wake():
            self.write_more(True)
        else:
            self.push('ack', ack.late, bool(ack.payload))

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
            self.shrink(self.stack.smaller)
            self.cwnd = self.mss
        self.push('timer')
        self.start('rto', self.rto << self.backoff, self.timeout)

    def told(self, size):
        """A router says how much payload goes on: a host that heeds it sends all of it again at once, with the window that it has
        (Linux tcp_simple_retransmit)."""
        if self.stack.heeds and size < self.mss and self.out and self.state == 'open':
            self.recover = self.nxt
            self.shrink(size)
            self.push('timer')
            self.arm()

    def shrink(self, size):
        """Smaller segments from here on: black-hole detection (RFC 4821 7.6, Windows: 536), or what a router said."""
        self.mss, out = size, []
        for s in self.out:
            for seq in range(s.seq, s.end, self.mss):
                out.append(
                    dataclasses.replace(
                        s, seq=seq, end=min(seq + self.mss, s.end), first=s.first or s, lost=True, again=False
                    )
                )
        self.out, self.repair = out, 'path_mtu'

    def persist(self):
        """A probe of a shut window (RFC 9293 3.8.6.1)."""
        self.persist_count += 1
        if self.stack.persist_byte:
            self.put(self.nxt, ACK, 1)
        else:
            self.put(self.una - 1, ACK)
        self.start('persist', min(max(self.stack.persist, self.rto) << self.persist_count, 60 * SECOND), self.persist)

    # ------------------------------------------------------------ sending

    def push(self, trigger, late=0, answered=False):
        """Sends what may be sent, in the order of the kernel's questions, and remembers what stopped it."""
        if self.state != 'open':
            return
        for s in self.out:
            if s.lost and not s.again and not s.sacked:
                if self.flight() and self.flight() + s.end - s.seq > self.cwnd:
                    break
                self.repeat(s, 'retransmission_timeout' if self.repair is None else self.repair)
        # full segments in the buffer of a writer that is blocked are held by a window (rule 6); a partial one grows with
        # what it writes (rule 56)
        blocked = trigger == 'wake' and self.hold in ('app', 'send_buffer', 'nagle')
        reason = 'app' if trigger == 'write' else 'send_buffer' if blocked else self.hold
        while True:
            size = min(self.mss, self.end - self.nxt)
            if size <= 0:
                self.finish()
                hold = 'send_buffer' if self.rest else 'app'
                break
            hold, size = self.stopped(size)
            if hold:
                break
            self.first_time(size, reason, late, answered)
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

    def first_time(self, size, reason, late, answered):
        sent = Sent(self.nxt, self.nxt + size, self.sim.now, reason, self.write_of(self.nxt), late, srtt=self.srtt)
        sent.answered = answered
        sent.filled = self.writes[-1]
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
