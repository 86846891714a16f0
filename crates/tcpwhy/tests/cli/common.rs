//! Captures made by hand, byte by byte, and the program run on them.

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}
pub(crate) use End::{Client, Server};

/// A pcap file in memory: microseconds, little-endian.
pub(crate) struct Pcap {
    pub(crate) bytes: Vec<u8>,
    /// Seconds at which its clock begins.
    pub(crate) epoch: u32,
    pub(crate) client_port: u16,
    /// The last byte of the addresses of both.
    pub(crate) hosts: (u8, u8),
    id: u16,
}

impl Pcap {
    pub(crate) fn new() -> Pcap {
        Pcap::with_link(1)
    }

    pub(crate) fn with_link(link: u32) -> Pcap {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, link] {
            bytes.extend(word.to_le_bytes());
        }
        Pcap { bytes, epoch: 1_700_000_000, client_port: 40_000, hosts: (1, 2), id: 0 }
    }

    /// A frame at `us` microseconds.
    pub(crate) fn frame(&mut self, us: u64, data: &[u8]) -> &mut Pcap {
        let (s, us) = ((us / 1_000_000) as u32 + self.epoch, (us % 1_000_000) as u32);
        for word in [s, us, data.len() as u32, data.len() as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(data);
        self
    }

    /// A TCP packet over Ethernet and IPv4. Sequence numbers count from 1000 (client) and 5000 (server).
    pub(crate) fn tcp(&mut self, us: u64, from: End, flags: u8, seq: u32, ack: u32, len: usize) -> &mut Pcap {
        let (src, dst) = match from {
            Client => ((self.hosts.0, self.client_port, 1000), (self.hosts.1, 80u16, 5000)),
            Server => ((self.hosts.1, 80, 5000), (self.hosts.0, self.client_port, 1000)),
        };
        let options: &[u8] = if flags & SYN != 0 { &[2, 4, 5, 0xb4, 1, 3, 3, 7] } else { &[] };
        let mut tcp = Vec::new();
        tcp.extend(src.1.to_be_bytes());
        tcp.extend(dst.1.to_be_bytes());
        tcp.extend((seq + src.2).to_be_bytes());
        tcp.extend(if flags & ACK != 0 { ack + dst.2 } else { 0 }.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0x20, 0, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend(std::iter::repeat_n(b'x', len));
        let frame = ethernet(6, src.0, dst.0, self.id, &tcp);
        self.id += 1;
        self.frame(us, &frame)
    }

    /// A UDP packet.
    pub(crate) fn udp(&mut self, us: u64) -> &mut Pcap {
        let frame = ethernet(17, 1, 2, 0, &[0, 53, 0, 54, 0, 8, 0, 0]);
        self.frame(us, &frame)
    }

    /// A handshake over a path of 10 ms, then `n` requests answered after 50 ms, each 100 ms after the other.
    pub(crate) fn conversation(&mut self, start: u64, n: u32) -> &mut Pcap {
        self.tcp(start, Client, SYN, 0, 0, 0);
        self.tcp(start + 10_000, Server, SYN | ACK, 0, 1, 0);
        self.tcp(start + 10_050, Client, ACK, 1, 1, 0);
        for i in 0..n {
            let at = start + 20_000 + u64::from(i) * 100_000;
            let (seq, ack) = (1 + i * 100, 1 + i * 200);
            self.tcp(at, Client, PSH | ACK, seq, ack, 100);
            self.tcp(at + 10_000, Server, ACK, ack, seq + 100, 0);
            self.tcp(at + 60_000, Server, PSH | ACK, ack, seq + 100, 200);
            self.tcp(at + 60_050, Client, ACK, seq + 100, ack + 200, 0);
        }
        self
    }
}

pub(crate) fn ethernet(protocol: u8, src: u8, dst: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, 0, dst, 0, 0, 0, 0, 0, src, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend((20 + payload.len() as u16).to_be_bytes());
    frame.extend(id.to_be_bytes());
    frame.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
    frame.extend(payload);
    frame
}

/// A directory that goes when the test ends.
pub(crate) struct Dir(pub(crate) PathBuf);

/// A real capture of one connection: 27 Nagle stalls.
pub(crate) fn smtp() -> String {
    format!("{}/../../captures/zeek__smtp_bdat.pcap", env!("CARGO_MANIFEST_DIR"))
}

impl Dir {
    pub(crate) fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tcpwhy-test-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the program did.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }

    /// One line on standard error that holds all of `parts`, and this exit code.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert_eq!(self.err.trim_end().lines().count(), 1, "one sentence: {}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {}", self.err);
        }
    }
}

/// The program with the signals of a terminal, whoever runs the tests: a shell's job in the background is started to
/// ignore ^C, and what is ignored stays ignored.
pub(crate) fn program() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_tcpwhy")]);
    command
}

/// Runs the program.
pub(crate) fn tcpwhy(args: &[&str]) -> Ran {
    tcpwhy_with(args, b"")
}

/// Runs the program with `input` on its standard input.
pub(crate) fn tcpwhy_with(args: &[&str], input: &[u8]) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args), input)
}

/// Runs the program as root without any of root's powers (util-linux, which every Debian has).
pub(crate) fn powerless(args: &[&str]) -> Ran {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_tcpwhy")]);
    ran(command.args(args), b"")
}

/// Sends a signal, such as `TERM`, to a program that a test started.
pub(crate) fn kill(child: &std::process::Child, signal: &str) {
    let done = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

fn ran(command: &mut Command, input: &[u8]) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that does not read its input closes it.
    let _ = child.stdin.take().unwrap().write_all(input);
    let done = child.wait_with_output().unwrap();
    Ran {
        code: done.status.code().unwrap_or(-1),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// Compares with a file beside the tests; `UPDATE=1` rewrites it.
#[track_caller]
pub(crate) fn snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs (UPDATE=1 rewrites it):\n{text}", path.display());
}
