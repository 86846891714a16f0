//! What waits in connections runs through the rules: of one, or of several side by side.

use super::super::logs::{Logs, Reading};
use super::super::waiting::{KINDS, Kind, OTHERS, REQUEST, kind_of};
use super::{Conn, Held, Log, Output, Room, Segment, Unpacked, state_of};

/// So many run side by side. Their states, 3 KB each, are in the second cache together; with more the rules
/// are read for each little less often, and what is read besides becomes more (a cache of 32 KB, simulated;
/// ten short packets of each connection: misses of code and of data for each connection 1,530 and 390 with
/// one, 640 and 420 with four, 480 and 490 with eight, 390 and 650 with sixteen).
pub(in crate::table) const TOGETHER: usize = 8;

/// One of them, on its way.
struct Running<'a> {
    id: u32,
    /// What the next packet is; `None`: there is none.
    next: Option<Kind>,
    /// What is left of the room that is read, and so many bytes of it are packets.
    bytes: &'a [u8],
    used: usize,
    rooms: Reading<'a>,
    unpacked: Unpacked,
    conn: Option<Box<Conn>>,
}

impl<'a> Running<'a> {
    /// What waits in this connection.
    fn of(held: &mut Held, logs: &'a Logs) -> Running<'a> {
        let mut running = Running {
            id: held.id,
            next: None,
            bytes: &[],
            used: 0,
            rooms: logs.read(held.log, held.waits.into()),
            unpacked: Unpacked::of(&held.ends(), held.link, logs.file(held.log)),
            conn: held.conn.take(),
        };
        running.enter_next_room();
        running
    }

    #[inline(never)]
    fn enter_next_room(&mut self) {
        (self.next, self.used) = (None, 0);
        while self.used == 0 {
            let Some((bytes, used)) = self.rooms.next() else { return };
            (self.bytes, self.used) = (bytes, used);
        }
        self.next = self.bytes.first().map(|&first| kind_of(first));
    }

    /// The next packets run through the rules, as far as they are of the kind of the first.
    #[inline(never)]
    #[expect(clippy::vec_box, reason = "none is moved")]
    fn step(&mut self, ended: &mut Vec<Box<Conn>>, parts: &mut Output) {
        let (mut bytes, mut used) = (self.bytes, self.used);
        while let Some((s, n)) = self.unpacked.next(bytes) {
            let segment = self.unpacked.segment(s);
            let conn = self.conn.get_or_insert_with(|| state_of(ended, self.id, segment, parts));
            conn.push_from(s, segment, parts);
            used = used.saturating_sub(n);
            bytes = bytes.get(n..).unwrap_or_default();
            if used == 0 {
                break;
            }
            let next = bytes.first().map(|&first| kind_of(first));
            if next != self.next {
                (self.bytes, self.used, self.next) = (bytes, used, next);
                return;
            }
        }
        self.enter_next_room();
    }
}

/// Those that are at a packet of each kind, a bit for each.
#[derive(Default)]
struct Waiting([u32; KINDS]);

impl Waiting {
    fn put(&mut self, n: usize, next: Option<Kind>) {
        if let Some(of) = next.and_then(|kind| self.0.get_mut(usize::from(kind))) {
            *of |= 1 << n;
        }
    }

    fn take(&mut self, kind: Kind) -> u32 {
        self.0.get_mut(usize::from(kind)).map(std::mem::take).unwrap_or_default()
    }
}

impl Held {
    /// All that waits runs through the rules.
    pub(super) fn run(&mut self, parts: &mut Output, room: &mut Room) {
        self.wake(room);
        let mut running = Running::of(self, &room.logs);
        while running.next.is_some() {
            running.step(&mut room.conns, parts);
        }
        let conn = running.conn;
        self.has_run(conn, parts, room);
    }

    /// The same of several, no more than [`TOGETHER`]. The rules are the most of the program, and larger than
    /// the first cache: a packet finds there what the same kind of packet of another connection went through
    /// just before.
    pub(in crate::table) fn run_all<'a>(
        all: impl Iterator<Item = &'a mut Held>,
        parts: &mut Output,
        room: &mut Room,
    ) {
        let mut waiting: Vec<&mut Held> = Vec::with_capacity(TOGETHER);
        waiting.extend(all.filter(|held| held.waits > 0));
        waiting.iter_mut().for_each(|held| held.wake(room));
        let mut running: Vec<Running<'_>> = Vec::with_capacity(TOGETHER);
        running.extend(waiting.iter_mut().map(|held| Running::of(held, &room.logs)));
        let mut at = Waiting::default();
        running.iter().enumerate().for_each(|(n, one)| at.put(n, one.next));
        // A request ends the exchange before it, which takes the most rules: whoever has come to one waits
        // until all have.
        while at.0 != [0; KINDS] {
            let mut went_on = false;
            for kind in OTHERS {
                went_on |= run_those(at.take(kind), &mut at, &mut running, &mut room.conns, parts);
            }
            if !went_on {
                run_those(at.take(REQUEST), &mut at, &mut running, &mut room.conns, parts);
            }
        }
        let mut conns: Vec<Option<Box<Conn>>> = Vec::with_capacity(TOGETHER);
        conns.extend(running.into_iter().map(|one| one.conn));
        waiting.into_iter().zip(conns).for_each(|(held, conn)| held.has_run(conn, parts, room));
    }

    /// Its state lies idle no more.
    fn wake(&mut self, room: &mut Room) {
        if let Some(conn) = room.resting.wake(&mut self.rested) {
            self.conn = Some(Box::new(conn));
        }
    }

    /// What waited has run through the rules, with which its state became this.
    fn has_run(&mut self, conn: Option<Box<Conn>>, parts: &mut Output, room: &mut Room) {
        let id = self.id;
        let conn = conn.unwrap_or_else(|| state_of(&mut room.conns, id, &Segment::EMPTY, parts));
        (self.grown, self.waits) = (true, 0);
        let log = std::mem::replace(&mut self.log, Log::NONE);
        if !log.is_none() {
            room.logs.give_back(log);
            self.open = conn.is_open();
        }
        self.conn = Some(conn);
    }
}

/// These go on, as far as their packets are of one kind; whether there are any.
#[inline]
#[expect(clippy::vec_box, reason = "none is moved")]
fn run_those(
    mut those: u32,
    at: &mut Waiting,
    running: &mut [Running<'_>],
    ended: &mut Vec<Box<Conn>>,
    parts: &mut Output,
) -> bool {
    let any = those != 0;
    while let Some(one) = running.get_mut(those.trailing_zeros() as usize) {
        one.step(ended, parts);
        at.put(those.trailing_zeros() as usize, one.next);
        those &= those - 1;
    }
    any
}
