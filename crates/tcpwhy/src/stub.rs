//! Stands in for the capture crate until it lands.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]
use std::io::Read;
use std::path::Path;
use tcpwhy_base::*;
#[derive(Debug)]
pub enum ReadError { Io(std::io::Error), NotACapture, Cut }
impl std::fmt::Display for ReadError { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{self:?}") } }
impl std::error::Error for ReadError {}
pub struct Reader { data: Vec<u8>, at: usize, n: u64, link: u32, ns: bool }
pub struct Frame<'a> { pub number: u64, pub time: Nanos, pub bad_time: bool, pub link_type: u32, pub data: &'a [u8], pub len: u32 }
impl Reader {
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        let mut data = Vec::new();
        if path == Path::new("-") { std::io::stdin().read_to_end(&mut data).map_err(ReadError::Io)?; } else { data = std::fs::read(path).map_err(ReadError::Io)?; }
        if data.len() < 24 { return Err(ReadError::NotACapture); }
        let m = u32::from_le_bytes(data[..4].try_into().unwrap());
        if m != 0xa1b2c3d4 && m != 0xa1b23c4d { return Err(ReadError::NotACapture); }
        let link = u32::from_le_bytes(data[20..24].try_into().unwrap());
        Ok(Reader { data, at: 24, n: 0, link, ns: m == 0xa1b23c4d })
    }
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        if self.at == self.data.len() { return Ok(None); }
        let d = &self.data[self.at..];
        if d.len() < 16 { return Err(ReadError::Cut); }
        let u = |i: usize| u32::from_le_bytes(d[i..i + 4].try_into().unwrap());
        let n = u(8) as usize;
        if d.len() < 16 + n { return Err(ReadError::Cut); }
        self.at += 16 + n; self.n += 1;
        let time = Nanos(i64::from(u(0)) * 1_000_000_000 + i64::from(u(4)) * if self.ns { 1 } else { 1000 });
        Ok(Some(Frame { number: self.n, time, bad_time: false, link_type: self.link, data: &d[16..16 + n], len: u(12) }))
    }
}
#[derive(PartialEq, Eq, Debug, Clone, Copy)]
pub enum Verdict { Tcp, NotTcp, UnknownLink }
#[derive(Default)]
pub struct Dissector;
impl Dissector {
    pub fn new() -> Dissector { Dissector }
    pub fn dissect(&mut self, f: &Frame<'_>, file: u16, s: &mut Segment) -> Verdict {
        let d = match f.link_type { 1 => if f.data.len() < 34 || f.data[12..14] != [8, 0] { return Verdict::NotTcp } else { &f.data[14..] }, 101 => f.data, _ => return Verdict::UnknownLink };
        if d.len() < 20 || d[0] >> 4 != 4 || d[9] != 6 { return Verdict::NotTcp; }
        let ihl = (d[0] & 15) as usize * 4; let tl = u16::from_be_bytes([d[2], d[3]]) as usize; let t = &d[ihl..];
        if t.len() < 20 { return Verdict::NotTcp; }
        let ip = |i: usize| std::net::IpAddr::from([d[i], d[i + 1], d[i + 2], d[i + 3]]);
        let h = |i: usize| u16::from_be_bytes([t[i], t[i + 1]]);
        let w = |i: usize| u32::from_be_bytes([t[i], t[i + 1], t[i + 2], t[i + 3]]);
        *s = Segment::EMPTY;
        s.time = f.time; s.frame = f.number; s.file = file;
        s.src = Endpoint { ip: ip(12), port: h(0) }; s.dst = Endpoint { ip: ip(16), port: h(2) };
        s.seq = Seq(w(4)); s.ack = Seq(w(8)); s.flags = TcpFlags(h(12) & 0x1ff); s.window = h(14);
        s.len = (tl - ihl - (t[12] >> 4) as usize * 4) as u32;
        Verdict::Tcp
    }
}
