//! What `check` sees only with privileges: which buffers of living sockets their programs have set, and how
//! much was asked for.

use crate::kernel::said;
use aya::maps::{MapData, RingBuf};
use aya::programs::{Iter, TracePoint};
use aya::{Btf, Ebpf};
use hashbrown::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;

/// Bytes of a record of `bpf/check.bpf.c`: of a socket, of a call.
const LOCK: usize = 16;
const ASKED: usize = 32;
/// `SO_SNDBUF`.
const SNDBUF: u32 = 7;

/// A call of setsockopt() for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// By this process,
    pub pid: u32,
    /// for this file of it.
    pub fd: u32,
    /// `SO_SNDBUF`; else `SO_RCVBUF`.
    pub send: bool,
    /// How many bytes.
    pub bytes: u32,
}

/// Programs that are attached while a host is looked at.
pub struct Probe {
    programs: Ebpf,
    ring: Option<RingBuf<MapData>>,
    /// What could not be had, and why.
    pub missing: Vec<String>,
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("missing", &self.missing).finish_non_exhaustive()
    }
}

impl Probe {
    /// Attaches them; or says why not, as the rest of a sentence that begins with "because".
    pub fn open() -> Result<Probe, String> {
        let types = Btf::from_sys_fs().map_err(|_| crate::kernel::NO_TYPES.to_owned())?;
        let mut programs =
            Ebpf::load(aya::include_bytes_aligned!("../bpf/check.bpf.o")).map_err(|e| said(&e))?;
        let lists: &mut Iter = program(&mut programs, "lists")?;
        lists.load("tcp", &types).map_err(|e| said(&e))?;
        let ring = asks(&mut programs);
        let missing = ring.as_ref().err().map(|why| format!("setsockopt(): {why}"));
        Ok(Probe { programs, ring: ring.ok(), missing: missing.into_iter().collect() })
    }

    /// Sockets of this thread's network namespace with a buffer that their programs set, by cookie: the send
    /// buffer (1), the receive buffer (2), both.
    pub fn locks(&mut self) -> Result<HashMap<u64, u32>, String> {
        let lists: &mut Iter = program(&mut self.programs, "lists")?;
        let link = lists.attach().and_then(|id| lists.take_link(id)).map_err(|e| said(&e))?;
        let mut file: File = link.into_file().map_err(|e| said(&e))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        let records = bytes.as_chunks::<LOCK>().0;
        Ok(records
            .iter()
            .filter_map(|r| {
                Some((u64::from_ne_bytes(*r.first_chunk()?), u32::from_ne_bytes(*r.get(8..)?.first_chunk()?)))
            })
            .collect())
    }

    /// The calls since it was last asked.
    pub fn asked(&mut self) -> Vec<Asked> {
        let mut out = Vec::new();
        while let Some(record) = self.ring.as_mut().and_then(RingBuf::next) {
            let Some(record) = record.first_chunk::<ASKED>() else { continue };
            let [pid, fd, option, bytes] = [0, 4, 8, 12].map(|at| {
                let word = record.get(at..).and_then(<[u8]>::first_chunk);
                word.map_or(0, |b| u32::from_ne_bytes(*b))
            });
            out.push(Asked { pid, fd, send: option == SNDBUF, bytes });
        }
        out
    }
}

fn asks(programs: &mut Ebpf) -> Result<RingBuf<MapData>, String> {
    let asks: &mut TracePoint = program(programs, "asks")?;
    asks.load().map_err(|e| said(&e))?;
    crate::namespace::with_tracefs(|| asks.attach("syscalls", "sys_enter_setsockopt"))?
        .map_err(|e| said(&e))?;
    let ring = programs.take_map("calls").ok_or("no ring in the object")?;
    RingBuf::try_from(ring).map_err(|e| said(&e))
}

fn program<'a, T>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut T, String>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program, Error = aya::programs::ProgramError>,
{
    let program = programs.program_mut(name).ok_or("not in the object")?;
    program.try_into().map_err(|e: aya::programs::ProgramError| said(&e))
}
