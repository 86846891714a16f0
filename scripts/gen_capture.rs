//! Writes large captures for `make bench`, and reads JSON as a consumer at the end of a pipe would.
//! Built with plain `rustc -O`: no part of the product.
//!
//!     gen_capture flows PACKETS CONNECTIONS FILE    connections side by side: requests, responses, some losses
//!     gen_capture elephant PACKETS FILE             one transfer
//!     gen_capture short CONNECTIONS FILE            one request each, about a thousand open at a time
//!     gen_capture read-json                         scans standard input, prints {"bytes", "packets", "connections"}
//!     gen_capture run STATISTICS COMMAND...         runs a command, writes what it cost (a small parent, because
//!                                                   Linux counts the parent's memory to the child until it executes)
//!
//! Nanosecond pcap, Ethernet, IPv4, headers only (lengths on the wire are whole), time stamps on every segment,
//! taken at the client. The same arguments give the same bytes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

const MSS: u32 = 1448;
const START: u64 = 1_700_000_000 * SECOND;
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u64>().ok());
    let result = match (args.first().map(String::as_str), args.len()) {
        (Some("flows"), 4) => number(1).zip(number(2)).map(|(p, c)| flows(p, c as usize, &args[3])),
        (Some("elephant"), 3) => number(1).map(|p| elephant(p, &args[2])),
        (Some("short"), 3) => number(1).map(|c| short(c, &args[2])),
        (Some("read-json"), 1) => Some(read_json()),
        (Some("run"), 3..) => Some(run(&args[1], &args[2..])),
        _ => None,
    };
    result.unwrap_or_else(|| {
        eprintln!("gen_capture flows PACKETS CONNECTIONS FILE | elephant PACKETS FILE | short CONNECTIONS FILE | read-json | run STATISTICS COMMAND...");
        std::process::exit(2)
    })
}

// ---------------------------------------------------------------- packets

/// One segment to be written; `up`: from the client.
#[derive(Clone, Copy)]
struct Segment {
    time: u64,
    up: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    length: u32,
    sack: Option<(u32, u32)>,
}

/// A capture file being written.
struct Output {
    file: BufWriter<Box<dyn Write>>,
    packets: u64,
    piped: bool,
}

impl Output {
    fn new(path: &str) -> io::Result<Output> {
        let piped = path == "-";
        let to: Box<dyn Write> = if piped { Box::new(io::stdout().lock()) } else { Box::new(File::create(path)?) };
        let mut file = BufWriter::with_capacity(1 << 20, to);
        let mut head = Vec::new();
        for word in [0xA1B2_3C4Du32, 4 << 16 | 2, 0, 0, 128, 1] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        file.write_all(&head)?;
        Ok(Output { file, packets: 0, piped })
    }

    /// Writes a segment of the connection between `client` and `server` (address and port).
    fn put(&mut self, client: (u32, u16), server: (u32, u16), s: &Segment) -> io::Result<()> {
        let mut b = [0u8; 16 + 14 + 20 + 60];
        let ((source, sport), (target, dport)) = if s.up { (client, server) } else { (server, client) };
        let options = if s.flags & SYN != 0 { 20 } else { 12 + if s.sack.is_some() { 12 } else { 0 } };
        let captured = 14 + 20 + 20 + options;
        let on_wire = captured + s.length as usize;
        b[0..4].copy_from_slice(&((s.time / SECOND) as u32).to_le_bytes());
        b[4..8].copy_from_slice(&((s.time % SECOND) as u32).to_le_bytes());
        b[8..12].copy_from_slice(&(captured as u32).to_le_bytes());
        b[12..16].copy_from_slice(&(on_wire as u32).to_le_bytes());
        let eth = &mut b[16..];
        eth[0..12].copy_from_slice(&[2, 0, 0, 0, 0, 1 + s.up as u8, 2, 0, 0, 0, 0, 2 - s.up as u8]);
        eth[12] = 8;
        let ip = &mut eth[14..];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((on_wire - 14) as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&(self.packets as u16).to_be_bytes());
        ip[6] = 0x40;
        ip[8] = if s.up { 64 } else { 55 };
        ip[9] = 6;
        ip[12..16].copy_from_slice(&source.to_be_bytes());
        ip[16..20].copy_from_slice(&target.to_be_bytes());
        let sum = (0..20).step_by(2).map(|i| u32::from(ip[i]) << 8 | u32::from(ip[i + 1])).sum::<u32>();
        let sum = (sum & 0xFFFF) + (sum >> 16);
        let sum = (sum & 0xFFFF) + (sum >> 16);
        ip[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
        let tcp = &mut ip[20..];
        tcp[0..2].copy_from_slice(&sport.to_be_bytes());
        tcp[2..4].copy_from_slice(&dport.to_be_bytes());
        tcp[4..8].copy_from_slice(&s.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&s.ack.to_be_bytes());
        tcp[12] = ((20 + options) / 4 << 4) as u8;
        tcp[13] = s.flags;
        tcp[14..16].copy_from_slice(&if s.flags & SYN != 0 { 64_240u16 } else { 1_024 }.to_be_bytes());
        let milliseconds = (s.time / MILLISECOND) as u32;
        let o = &mut tcp[20..];
        let stamp = if s.flags & SYN != 0 {
            o[0..6].copy_from_slice(&[2, 4, (1460u16 >> 8) as u8, (1460u16 & 255) as u8, 4, 2]);
            o[16..20].copy_from_slice(&[1, 3, 3, 7]);
            6
        } else {
            o[0..2].copy_from_slice(&[1, 1]);
            2
        };
        o[stamp..stamp + 2].copy_from_slice(&[8, 10]);
        o[stamp + 2..stamp + 6].copy_from_slice(&milliseconds.to_be_bytes());
        let echo = if s.flags & ACK != 0 { milliseconds.wrapping_sub(1) } else { 0 };
        o[stamp + 6..stamp + 10].copy_from_slice(&echo.to_be_bytes());
        if let Some((from, to)) = s.sack {
            o[12..16].copy_from_slice(&[1, 1, 5, 10]);
            o[16..20].copy_from_slice(&from.to_be_bytes());
            o[20..24].copy_from_slice(&to.to_be_bytes());
        }
        self.packets += 1;
        self.file.write_all(&b[..16 + captured])
    }

    fn done(mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.piped {
            eprintln!("{}", self.packets);
        } else {
            println!("{}", self.packets);
        }
        Ok(())
    }
}

// ---------------------------------------------------------------- conversations

/// A small generator of random numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A connection that makes up its next exchange whenever it has nothing left to send.
struct Flow {
    client: (u32, u16),
    server: (u32, u16),
    rtt: u64,
    time: u64,
    up: u32,
    down: u32,
    queue: VecDeque<Segment>,
    chance: Chance,
}

impl Flow {
    fn new(n: u64, time: u64) -> Flow {
        let mut chance = Chance(n.wrapping_mul(0x1234_5677) ^ 42);
        let rtt = MILLISECOND * (1 + chance.below(80)) + chance.below(MILLISECOND);
        let client = (0x0A00_0000 | (n / 28_000 + 1) as u32, 32_768 + (n % 28_000) as u16);
        let server = (0xC633_6400 | (n % 50) as u32 + 1, 443);
        let (up, down) = (chance.next() as u32, chance.next() as u32);
        Flow { client, server, rtt, time, up, down, queue: VecDeque::new(), chance }
    }

    fn send(&mut self, up: bool, flags: u8, length: u32) {
        let (seq, ack) = if up { (self.up, self.down) } else { (self.down, self.up) };
        self.queue.push_back(Segment { time: self.time, up, flags, seq, ack, length, sack: None });
        let moved = length + u32::from(flags & (SYN | FIN) != 0);
        if up {
            self.up = self.up.wrapping_add(moved);
        } else {
            self.down = self.down.wrapping_add(moved);
        }
    }

    fn open(&mut self) {
        let down = std::mem::take(&mut self.down);
        self.send(true, SYN, 0);
        self.down = down;
        self.time += self.rtt;
        self.send(false, SYN | ACK, 0);
        self.time += 20_000;
        self.send(true, ACK, 0);
    }

    fn close(&mut self) {
        self.time += 50_000;
        self.send(true, FIN | ACK, 0);
        self.time += self.rtt;
        self.send(false, FIN | ACK, 0);
        self.time += 15_000;
        self.send(true, ACK, 0);
    }

    /// A request, the server's work, a response of up to `most` segments in flights of ten and twenty.
    fn exchange(&mut self, most: u64) {
        let request = 100 + self.chance.below(1_200) as u32;
        self.send(true, PSH | ACK, request);
        self.time += self.rtt + self.chance.below(8 * MILLISECOND);
        let segments = 1 + self.chance.below(most) as u32;
        let lost = if segments > 5 && self.chance.below(60) == 0 { segments / 2 } else { u32::MAX };
        let mut hole = None;
        for n in 0..segments {
            if n == 10 || n == 30 {
                self.time += self.rtt - 20_000 * 10.min(self.rtt / 40_000);
            }
            self.time += 12_000 + self.chance.below(3_000);
            let last = n + 1 == segments;
            let length = if last { 200 + self.chance.below(1_000) as u32 } else { MSS };
            if n == lost {
                hole = Some(self.down);
                self.down = self.down.wrapping_add(length);
                continue;
            }
            self.send(false, if last { PSH | ACK } else { ACK }, length);
            if let Some(at) = hole {
                self.time += 2_000;
                let sack = Some((at.wrapping_add(MSS), self.down));
                self.queue.push_back(Segment {
                    time: self.time, up: true, flags: ACK, seq: self.up, ack: at, length: 0, sack,
                });
            } else if n % 2 == 1 || last {
                self.time += 2_000;
                self.send(true, ACK, 0);
            }
        }
        if let Some(at) = hole {
            self.time += self.rtt;
            self.queue.push_back(Segment {
                time: self.time, up: false, flags: ACK, seq: at, ack: self.up, length: MSS, sack: None,
            });
            self.time += 3_000;
            self.send(true, ACK, 0);
        }
    }

    fn pause(&mut self, most: u64) {
        self.time += self.chance.below(most);
    }
}

/// Writes the segments of all flows in order of time; `refill` adds to a flow that has run dry or ends it.
fn merge(
    mut flows: Vec<Flow>,
    mut out: Output,
    limit: u64,
    mut refill: impl FnMut(&mut Flow, usize) -> bool,
) -> io::Result<()> {
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (n, flow) in flows.iter().enumerate() {
        heap.push(Reverse((flow.time, n)));
    }
    while let Some(Reverse((_, n))) = heap.pop() {
        let flow = &mut flows[n];
        if flow.queue.is_empty() && !refill(flow, n) {
            continue;
        }
        let Some(segment) = flow.queue.pop_front() else { continue };
        out.put(flow.client, flow.server, &segment)?;
        if out.packets >= limit {
            break;
        }
        let next = flow.queue.front().map_or(flow.time, |s| s.time);
        heap.push(Reverse((next, n)));
    }
    out.done()
}

fn flows(packets: u64, connections: usize, path: &str) -> io::Result<()> {
    let all = (0..connections as u64).map(|n| Flow::new(n, START + n * 50_000)).collect();
    let mut opened = vec![false; connections];
    merge(all, Output::new(path)?, packets, |flow, n| {
        if std::mem::replace(&mut opened[n], true) {
            flow.pause(400 * MILLISECOND);
            flow.exchange(16);
        } else {
            flow.open();
        }
        true
    })
}

fn short(connections: u64, path: &str) -> io::Result<()> {
    // a slot is a client that opens one connection after the other
    let slots = 1_000.min(connections);
    let mut next = slots;
    let mut current: Vec<bool> = vec![false; slots as usize];
    let all = (0..slots).map(|n| Flow::new(n, START + n * 50_000)).collect();
    merge(all, Output::new(path)?, u64::MAX, |flow, n| {
        if std::mem::replace(&mut current[n], true) {
            if next >= connections {
                return false;
            }
            *flow = Flow::new(next, flow.time + 100_000);
            next += 1;
        }
        flow.open();
        flow.exchange(3);
        flow.close();
        true
    })
}

fn elephant(packets: u64, path: &str) -> io::Result<()> {
    let mut out = Output::new(path)?;
    let mut flow = Flow::new(7, START);
    flow.rtt = 20 * MILLISECOND;
    flow.open();
    flow.send(true, PSH | ACK, 300);
    flow.time += flow.rtt;
    // 1 Gbit/s: a segment every 12 us; in flight 1,600; an ACK passes for every second segment
    let mut count = 0u64;
    while flow.queue.len() as u64 + out.packets < packets {
        flow.time += 12_000;
        if count > 4_000 && count % 150_000 == 0 {
            let at = flow.down;
            flow.down = flow.down.wrapping_add(MSS);
            for _ in 0..1_600 {
                flow.time += 12_000;
                flow.send(false, ACK, MSS);
                let sack = Some((at.wrapping_add(MSS), flow.down));
                let time = flow.time + 1_000;
                flow.queue.push_back(Segment { time, up: true, flags: ACK, seq: flow.up, ack: at, length: 0, sack });
            }
            flow.time += 5_000;
            let (time, ack) = (flow.time, flow.up);
            flow.queue.push_back(Segment { time, up: false, flags: ACK, seq: at, ack, length: MSS, sack: None });
            flow.time += 3_000;
            flow.send(true, ACK, 0);
        }
        flow.send(false, ACK, MSS);
        count += 1;
        if count % 2 == 0 {
            flow.time += 1_000;
            flow.send(true, ACK, 0);
        }
        while let Some(segment) = flow.queue.pop_front() {
            out.put(flow.client, flow.server, &segment)?;
        }
    }
    out.done()
}

// ---------------------------------------------------------------- the reader of the pipe

/// Scans a JSON document: nesting and strings are followed to the end, the totals are taken from "capture".
fn read_json() -> io::Result<()> {
    let (mut input, mut block) = (io::stdin().lock(), vec![0u8; 1 << 18]);
    let (mut depth, mut quoted, mut escaped, mut bytes) = (0i64, false, false, 0u64);
    let (mut text, mut key, mut section) = (Vec::new(), Vec::new(), Vec::new());
    let (mut number, mut packets, mut connections) = (String::new(), None, None);
    loop {
        let n = input.read(&mut block)?;
        if n == 0 {
            break;
        }
        bytes += n as u64;
        for &c in &block[..n] {
            if quoted {
                if escaped {
                    escaped = false;
                } else if c == b'\\' {
                    escaped = true;
                } else if c == b'"' {
                    quoted = false;
                } else if depth <= 2 && text.len() < 32 {
                    text.push(c);
                }
                continue;
            }
            match c {
                b'"' => {
                    quoted = true;
                    text.clear();
                }
                b'{' | b'[' => {
                    if depth == 1 {
                        section.clone_from(&key);
                    }
                    depth += 1;
                }
                b':' if depth <= 2 => {
                    key.clone_from(&text);
                    number.clear();
                }
                b'0'..=b'9' if depth == 2 && section == b"capture" => number.push(char::from(c)),
                b'}' | b']' | b',' => {
                    if depth == 2 && section == b"capture" && !number.is_empty() {
                        match key.as_slice() {
                            b"packets" => packets = number.parse::<u64>().ok(),
                            b"connections" => connections = number.parse::<u64>().ok(),
                            _ => {}
                        }
                        number.clear();
                    }
                    if c != b',' {
                        depth -= 1;
                    }
                }
                _ => {}
            }
        }
    }
    if depth != 0 || quoted || bytes == 0 {
        eprintln!("the JSON is cut off");
        std::process::exit(1);
    }
    let show = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
    println!("{{\"bytes\": {bytes}, \"packets\": {}, \"connections\": {}}}", show(packets), show(connections));
    Ok(())
}

// ---------------------------------------------------------------- one run

unsafe extern "C" {
    fn getrusage(who: i32, usage: *mut [i64; 18]) -> i32;
}

/// Runs a command and writes wall and CPU seconds and the peak of its memory in bytes.
fn run(statistics: &str, command: &[String]) -> io::Result<()> {
    let started = std::time::Instant::now();
    let status = std::process::Command::new(&command[0]).args(&command[1..]).status()?;
    let wall = started.elapsed().as_secs_f64();
    // struct rusage on 64-bit Linux: user and system time as (s, us), peak memory in KiB, 13 more
    let mut usage = [0i64; 18];
    // SAFETY: the array has the size of struct rusage; -1 is RUSAGE_CHILDREN
    unsafe { getrusage(-1, &mut usage) };
    let cpu = (usage[0] + usage[2]) as f64 + (usage[1] + usage[3]) as f64 / 1e6;
    let peak = usage[4] * 1024;
    std::fs::write(statistics, format!("{{\"wall\": {wall}, \"cpu\": {cpu}, \"memory\": {peak}}}\n"))?;
    std::process::exit(status.code().unwrap_or(128))
}
