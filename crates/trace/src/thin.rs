//! Which packets a page gets: all of the worst connections while there is room; of longer ones so many in each
//! stretch of time that no pixel changes, and all of them around what was found.

use crate::{Met, Packet, Track, marks};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Class, Ends, Nanos};

/// A connection with more packets than this gives way to others when there is no room for all.
const LARGE: u64 = 400_000;
/// So many stretches of time are drawn of a connection that was thinned out: a few times the pixels of a wide screen.
const STRETCHES: i64 = 8_192;
/// Packets kept before and after the evidence of a finding.
const AROUND: u64 = 2_000;
/// Odd packets kept in one stretch.
const ODD: usize = 6;

/// Collects the tracks of an analysis, at most so many packets.
#[derive(Debug)]
pub struct Tracks(Vec<Option<(Track, Thinner)>>);

impl Tracks {
    /// For these connections, which are those that the pass was made for; `room`: packets in all.
    pub fn new(connections: &[Box<Connection>], room: u64) -> Tracks {
        Tracks::among(connections, (0..connections.len()).collect(), room)
    }

    /// For the connections at these places alone; `room`: packets in all.
    pub fn among(connections: &[Box<Connection>], places: Vec<usize>, room: u64) -> Tracks {
        let with_track = |(plan, c): (Option<Thinner>, &Connection)| Some((Track::new(c), plan?));
        let all = connections.iter().map(|c| &**c);
        Tracks(plan(connections, places, room).into_iter().zip(all).map(with_track).collect())
    }

    /// Packets of the connection at this place are taken.
    pub fn wants(&self, place: usize) -> bool {
        matches!(self.0.get(place), Some(Some(_)))
    }

    /// Takes what the pass met.
    pub fn take(&mut self, met: &Met<'_>) {
        if let Some((i, packet)) = met.packet
            && !packet.is_copy()
            && let Some(Some((track, thinner))) = self.0.get_mut(i)
        {
            track.total += 1;
            thinner.push(packet, &mut track.packets);
        }
    }

    /// What was collected, in the order of the connections; those that found no room are absent.
    pub fn finish(self) -> Vec<Track> {
        let finished = |(mut track, mut thinner): (Track, Thinner)| {
            thinner.flush(&mut track.packets);
            track
        };
        self.0.into_iter().flatten().map(finished).collect()
    }
}

/// How each connection is thinned; `None`: no packets of it. `order`: the places of those that get any.
fn plan(connections: &[Box<Connection>], mut order: Vec<usize>, room: u64) -> Vec<Option<Thinner>> {
    let tcp = |c: &Connection| c.budget.of_class(Class::Tcp) + c.gap_budget.of_class(Class::Tcp);
    let size = |c: &Connection| c.packets[0] + c.packets[1];
    order.sort_by_cached_key(|&i| (std::cmp::Reverse((tcp(&connections[i]), size(&connections[i]))), i));
    let all: u64 = order.iter().map(|&i| size(&connections[i])).sum();
    let mut left = room;
    let mut plans: Vec<Option<Thinner>> = connections.iter().map(|_| None).collect();
    for i in order {
        let c = &connections[i];
        let thin = STRETCHES as u64 * 10;
        let whole = size(c) <= left && (all <= room || size(c) <= LARGE);
        if whole {
            left -= size(c);
            plans[i] = Some(Thinner::whole());
        } else if thin <= left {
            left -= thin;
            plans[i] = Some(Thinner::new(c, (left / 4).min(room / 8)));
        }
    }
    plans
}

/// Lets packets through: all, or some of each stretch of time.
#[derive(Debug)]
struct Thinner {
    /// Length of a stretch; zero: everything passes.
    stretch: i64,
    start: Nanos,
    /// Frames of which everything passes.
    whole: Vec<(u64, u64)>,
    at: i64,
    held: Vec<Packet>,
}

impl Thinner {
    fn whole() -> Thinner {
        Thinner { stretch: 0, start: Nanos::ZERO, whole: Vec::new(), at: 0, held: Vec::new() }
    }

    /// Around the findings of `c` up to `extra` packets pass whole.
    fn new(c: &Connection, extra: u64) -> Thinner {
        let evidence = c.findings.iter().flat_map(|f| std::iter::once(&f.example.frames).chain(&f.evidence));
        let mut left = extra;
        let mut whole = Vec::new();
        for frames in evidence.filter(|f| f.first() != 0) {
            let range = (frames.first().saturating_sub(AROUND), frames.last() + AROUND);
            if range.1 - range.0 <= left {
                left -= range.1 - range.0;
                whole.push(range);
            }
        }
        let stretch = ((c.end - c.start).0 / STRETCHES).max(1);
        Thinner { stretch, start: c.start, whole, at: 0, held: Vec::new() }
    }

    fn push(&mut self, packet: Packet, out: &mut Vec<Packet>) {
        if self.stretch == 0 {
            return out.push(packet);
        }
        let at = (packet.time - self.start).0 / self.stretch;
        let inside = self.whole.iter().any(|w| (w.0..=w.1).contains(&packet.frame));
        if at != self.at || inside {
            self.flush(out);
            self.at = at;
        }
        if inside { out.push(packet) } else { self.held.push(packet) }
    }

    /// Of what is held: the first and last of each direction, the extremes, some odd ones.
    fn flush(&mut self, out: &mut Vec<Packet>) {
        let mut held = std::mem::take(&mut self.held);
        let mut keep = vec![false; held.len()];
        let mut best: Ends<[Option<usize>; 6]> = Ends::default();
        let mut odd = 0;
        for (i, p) in held.iter().enumerate() {
            let slots = &mut best[p.from];
            slots[0].get_or_insert(i);
            slots[1] = Some(i);
            let mut extreme = |slot: usize, better: &dyn Fn(&Packet) -> bool| {
                if slots[slot].is_none_or(|j| better(&held[j])) {
                    slots[slot] = Some(i);
                }
            };
            extreme(2, &|q| p.seq < q.seq);
            extreme(3, &|q| p.seq_end() > q.seq_end());
            extreme(4, &|q| p.ack > q.ack);
            extreme(5, &|q| p.window < q.window);
            if p.marks & !marks::DUPLICATE_ACK != 0 && odd < ODD {
                odd += 1;
                keep[i] = true;
            }
        }
        for i in best.iter().flatten().flatten() {
            keep[*i] = true;
        }
        out.extend(held.iter().zip(keep).filter(|k| k.1).map(|k| *k.0));
        // Its room is for the next stretch.
        held.clear();
        self.held = held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::{End, TcpFlags};

    fn packet(i: i64) -> Packet {
        Packet {
            frame: i as u64 + 1,
            time: Nanos(i),
            from: if i % 3 == 0 { End::Server } else { End::Client },
            flags: TcpFlags(TcpFlags::ACK),
            seq: i * 10,
            ack: i,
            len: 10,
            window: 100,
            marks: 0,
            sack: [(0, 0); 4],
            sacks: 0,
        }
    }

    #[test]
    fn thinning_keeps_ends_extremes_and_what_is_odd() {
        let mut thinner =
            Thinner { stretch: 1000, start: Nanos::ZERO, whole: vec![(5001, 5100)], at: 0, held: Vec::new() };
        let mut out = Vec::new();
        for i in 0..10_000 {
            let mut p = packet(i);
            if i == 7_777 {
                p.marks = marks::RETRANSMITTED;
            }
            thinner.push(p, &mut out);
        }
        thinner.flush(&mut out);
        let frames: Vec<u64> = out.iter().map(|p| p.frame).collect();
        assert!(frames.is_sorted());
        assert!(frames.contains(&1) && frames.contains(&10_000) && frames.contains(&7_778));
        assert!((5001..=5100).all(|f| frames.contains(&f)));
        assert!(out.len() < 100 + 12 * 12, "{}", out.len());
    }

    #[test]
    fn nothing_is_thinned_where_all_have_room() {
        let mut thinner = Thinner::whole();
        let mut out = Vec::new();
        (0..100).for_each(|i| thinner.push(packet(i), &mut out));
        thinner.flush(&mut out);
        assert_eq!(out.len(), 100);
    }
}
