//! Applications: what they write, read and wait for, one call after the other, as threads with blocking sockets do.

use crate::scenario::Host;
use crate::socket::Socket;
use std::collections::VecDeque;
use tcpwhy_base::{Cause, Cork, Nanos, Step, Turn, Workload};

/// One call or wait.
#[derive(Clone, Copy, Debug)]
enum Op {
    Wait(Nanos, Cause),
    /// Calls of `chunk` bytes each, `part` left of the one that goes on; what the next packet buffer takes
    /// was `copied`.
    Write {
        bytes: u64,
        chunk: u64,
        part: u64,
        more: bool,
        copied: bool,
    },
    Read(u64),
    Cork(bool),
    /// The turn of this number begins, or is over.
    Begin(u32),
    End(u32),
    Shutdown,
    /// Reads until the peer ended its direction.
    Drain,
    Done,
}

/// What an application did at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Begin(u32),
    End(u32),
    Done,
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    No,
    /// A time of its own choice.
    Until(Nanos),
    Reading,
    Writing,
    Over,
}

/// One end's application on one connection.
#[derive(Clone, Debug)]
pub(crate) struct App {
    ops: VecDeque<Op>,
    turn: usize,
    turns: usize,
    server: bool,
    pub(crate) blocked: Blocked,
    /// Why the next write comes no earlier.
    why: Option<Cause>,
    read: u64,
    read_began: Option<Nanos>,
    pauses: usize,
    /// Pipelined: requests written, answers to be read.
    writing: bool,
    pub(crate) started: bool,
    /// What the way from a read, or from a sleep in a write, to what is sent next takes.
    turning: Nanos,
}

/// How long a `write` copies so many bytes.
fn copying(bytes: u64, host: &Host) -> Nanos {
    Nanos((u128::from(bytes) * 1_000_000_000 / u128::from(host.stack.copy_rate.max(1))) as i64)
}

impl App {
    pub(crate) fn new(w: &Workload, server: bool, requests: u32) -> App {
        App {
            ops: VecDeque::new(),
            turn: 0,
            turns: w.repeat_from.min(w.turns.len()) + requests as usize,
            server,
            blocked: Blocked::No,
            why: None,
            read: 0,
            read_began: None,
            pauses: 0,
            writing: true,
            started: false,
            turning: Nanos::ZERO,
        }
    }

    /// Runs until it must wait. Notes go to `note`.
    pub(crate) fn run(
        &mut self,
        now: Nanos,
        s: &mut Socket,
        host: &Host,
        w: &Workload,
        note: &mut Vec<Note>,
    ) {
        self.blocked = Blocked::No;
        s.returned |= std::mem::take(&mut s.away);
        while self.blocked == Blocked::No {
            let Some(op) = self.ops.pop_front() else {
                self.refill(w, host);
                continue;
            };
            match op {
                Op::Wait(time, why) => {
                    self.why = Some(why);
                    if time > Nanos::ZERO {
                        self.blocked = Blocked::Until(now + time);
                    }
                }
                Op::Write { bytes, chunk, part, more, copied } => {
                    let call = if part > 0 { part } else { chunk.min(bytes) };
                    // A packet leaves when its data have been copied (`tcp_sendmsg_locked`).
                    let first = copying(call.min(s.p.gso_max), host) + std::mem::take(&mut self.turning);
                    if !copied && first > Nanos::ZERO {
                        self.ops.push_front(Op::Write { bytes, chunk, part, more, copied: true });
                        self.blocked = Blocked::Until(now + first);
                        continue;
                    }
                    let why = self.why.take();
                    let taken = s.write(now, call, more, part > 0, why);
                    if taken < bytes {
                        self.ops.push_front(Op::Write {
                            bytes: bytes - taken,
                            chunk,
                            part: call - taken,
                            more,
                            copied: false,
                        });
                    }
                    if taken < call {
                        self.why = Some(Cause::SendBuffer);
                        self.blocked = Blocked::Writing;
                        self.turning = host.stack.turn;
                    } else if taken < bytes
                        || self.ops.front().is_some_and(|op| matches!(op, Op::Write { .. }))
                    {
                        let rest = copying(call.saturating_sub(s.p.gso_max), host);
                        if rest > Nanos::ZERO {
                            self.blocked = Blocked::Until(now + rest);
                        }
                    }
                }
                Op::Read(left) => self.read(now, left, s, host),
                Op::Cork(on) => s.cork(now, on),
                Op::Begin(n) => note.push(Note::Begin(n)),
                Op::End(n) => note.push(Note::End(n)),
                Op::Shutdown => s.shutdown(now),
                Op::Drain => {
                    while s.read(now, u64::MAX) > 0 {}
                    if !s.readable().1 {
                        self.ops.push_front(Op::Drain);
                        self.blocked = Blocked::Reading;
                    }
                }
                Op::Done => {
                    note.push(Note::Done);
                    self.blocked = Blocked::Over;
                }
            }
        }
    }

    fn read(&mut self, now: Nanos, left: u64, s: &mut Socket, host: &Host) {
        if left == 0 {
            return;
        }
        let began = *self.read_began.get_or_insert(now);
        let mut most = left.min(host.read_chunk);
        if let Some(&(at, time)) = host.read_pauses.get(self.pauses) {
            if self.read >= at {
                self.pauses += 1;
                self.ops.push_front(Op::Read(left));
                self.blocked = Blocked::Until(now + time);
                s.away = true;
                return;
            }
            most = most.min(at - self.read);
        }
        let n = s.read(now, most);
        if n == 0 {
            let over = s.readable().1;
            self.ops.push_front(Op::Read(left));
            self.blocked = if over { Blocked::Over } else { Blocked::Reading };
            // It has caught up: what comes now finds a reader.
            s.returned = false;
            return;
        }
        self.read += n;
        self.turning = host.stack.turn;
        if left > n {
            self.ops.push_front(Op::Read(left - n));
        }
        if let Some(rate) = host.read_rate {
            let due = began + Nanos((u128::from(self.read) * 1_000_000_000 / u128::from(rate.max(1))) as i64);
            if due > now {
                self.blocked = Blocked::Until(due);
                s.away = true;
            }
        }
    }

    /// The calls of the next turn.
    fn refill(&mut self, w: &Workload, host: &Host) {
        if self.turn >= self.turns {
            if !self.server && w.pipeline && self.writing {
                (self.writing, self.turn) = (false, 0);
                return;
            }
            let last = [Op::Shutdown, Op::Drain, Op::Done];
            let drain = self.server && !w.server_closes;
            self.ops.extend(drain.then_some(Op::Drain).into_iter().chain(last));
            return;
        }
        let n = self.turn;
        self.turn += 1;
        let Some(turn) = w.turn(n) else { return };
        let (up, down) = (Turn::bytes(&turn.request), Turn::bytes(&turn.response));
        let n = n as u32;
        if self.server {
            if up > 0 {
                self.ops.push_back(Op::Read(up));
            }
            if down == 0 {
                self.ops.push_back(Op::End(n));
            }
            self.ops.push_back(Op::Wait(turn.think, Cause::ServerThink));
            self.message(&turn.response, host);
            return;
        }
        if !w.pipeline || self.writing {
            // Before the first turn of a connection, the wait comes before the connection.
            let before = if n > 0 { turn.before } else { Nanos::ZERO };
            self.ops.push_back(Op::Wait(before, Cause::ClientThink));
            self.ops.push_back(Op::Begin(n));
            self.message(&turn.request, host);
        }
        if (!w.pipeline || !self.writing) && down > 0 {
            self.ops.extend([Op::Read(down), Op::End(n)]);
        }
    }

    fn message(&mut self, steps: &[Step], host: &Host) {
        if host.cork == Cork::Message {
            self.ops.push_back(Op::Cork(true));
        }
        let last = steps.iter().rposition(|s| matches!(s, Step::Write(_)));
        for (i, &step) in steps.iter().enumerate() {
            match step {
                Step::Pause(t) => self.ops.push_back(Op::Wait(t, Cause::SenderPause)),
                Step::Write(bytes) => {
                    let more = host.more && Some(i) != last;
                    let chunk = host.write_chunk.unwrap_or(bytes).max(1);
                    if bytes > 0 {
                        self.ops.push_back(Op::Write { bytes, chunk, part: 0, more, copied: false });
                    }
                }
            }
        }
        if host.cork == Cork::Message {
            self.ops.push_back(Op::Cork(false));
        }
    }
}
