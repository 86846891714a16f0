//! Copies of a small real capture, each with addresses of its own: what passes a busy tap, said by real programs.

use crate::packets::SECOND;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::Ipv4Addr;
use std::path::Path;
use tcpwhy_base::Nanos;
use tcpwhy_capture::{Frame, Reader, Writer};

const ETHERNET: u32 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Copies that pass side by side.
const BESIDE: u64 = 64;
/// Where the addresses of the frames stand: behind Ethernet's header, in that of IPv4.
const SOURCE: usize = 14 + 12;
const TARGET: usize = 14 + 16;
/// And what of TCP, where that header has no options.
const PORTS: usize = 14 + 20;
const FLAGS: usize = PORTS + 13;

/// A frame of the original.
struct Original {
    since: Nanos,
    data: Vec<u8>,
    len: u32,
    to_server: bool,
}

fn port(data: &[u8], at: usize) -> [u8; 2] {
    [data[at], data[at + 1]]
}

/// TCP over IPv4 over Ethernet; who is asked is known from the SYNs.
fn originals(path: &Path) -> io::Result<Vec<Original>> {
    let mut reader = Reader::open(path).map_err(io::Error::other)?;
    let (mut all, mut servers, mut first) = (Vec::new(), HashSet::new(), None);
    while let Some(frame) = reader.next().map_err(io::Error::other)? {
        let data = frame.data;
        let plain = frame.link_type == ETHERNET && data.len() > FLAGS && data[12..15] == [8, 0, 0x45];
        if !plain || data[23] != 6 {
            continue;
        }
        if data[FLAGS] & (SYN | ACK) == SYN {
            servers.insert(port(data, PORTS + 2));
        }
        let since = frame.time - *first.get_or_insert(frame.time);
        let to_server = servers.contains(&port(data, PORTS + 2));
        all.push(Original { since, data: data.to_vec(), len: frame.len, to_server });
    }
    if all.is_empty() { Err(io::Error::other("no TCP over IPv4 over Ethernet in it")) } else { Ok(all) }
}

/// Writes so many copies: some side by side, the next ones behind them.
pub(crate) fn copies(capture: &str, copies: u64, path: &str) -> io::Result<()> {
    let all = originals(Path::new(capture))?;
    let lasts = all.last().map_or(Nanos::ZERO, |last| last.since);
    let mut writer = Writer::pcap(BufWriter::with_capacity(1 << 20, File::create(path)?), ETHERNET)?;
    let mut start = Nanos(1_700_000_000 * SECOND as i64);
    let mut data = Vec::new();
    for group in 0..copies.div_ceil(BESIDE) {
        let of_group = group * BESIDE..copies.min((group + 1) * BESIDE);
        // Each begins a little behind the one before, so that all of them pass at once for most of the time.
        let begins = |copy: u64| start + lasts.part(BESIDE as i64).times((copy % BESIDE) as i64).part(4);
        let mut next: BinaryHeap<_> = of_group.map(|copy| Reverse((begins(copy), copy, 0))).collect();
        while let Some(Reverse((time, copy, n))) = next.pop() {
            let original: &Original = &all[n];
            data.clear();
            data.extend_from_slice(&original.data);
            let client = Ipv4Addr::from_bits(0x0A00_0000 + copy as u32).octets();
            let server = [198, 51, 100, 1];
            let (from, to) = if original.to_server { (client, server) } else { (server, client) };
            data[SOURCE..SOURCE + 4].copy_from_slice(&from);
            data[TARGET..TARGET + 4].copy_from_slice(&to);
            writer.write(&Frame { len: original.len, ..Frame::new(time, ETHERNET, &data) }, None)?;
            if let Some(later) = all.get(n + 1) {
                next.push(Reverse((begins(copy) + later.since, copy, n + 1)));
            }
        }
        start += lasts.times(2);
    }
    writer.finish()?;
    println!("{}", copies * all.len() as u64);
    Ok(())
}
