//! Kernel events: the programs of `bpf/`, which sum up for each socket what only its kernel sees. They are gone with the process,
//! whatever ends it, and change nothing.

use crate::facts::{Facts, WORDS};
use aya::maps::HashMap as BpfMap;
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};
use hashbrown::HashMap;
use std::error::Error;
use std::io;

/// Each program, and the tracepoint that it waits at.
const PROGRAMS: [(&str, &str); 4] = [
    ("write_ends", "sock_send_length"),
    ("write_goes_on", "tcp_sendmsg_locked"),
    ("leaves", "net_dev_queue"),
    ("again", "tcp_retransmit_skb"),
];

/// Programs that are attached.
#[derive(Debug)]
pub struct Kernel {
    programs: Ebpf,
    /// Tracepoints that this kernel does not have, and why.
    pub missing: Vec<String>,
}

impl Kernel {
    /// Attaches them; or says why not, as the rest of a sentence that begins with "because".
    pub fn open() -> Result<Kernel, String> {
        let object = aya::include_bytes_aligned!("../bpf/watch.bpf.o");
        let types = Btf::from_sys_fs().map_err(|_| {
            "this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF, /sys/kernel/btf/vmlinux)"
                .to_owned()
        })?;
        let mut programs = Ebpf::load(object).map_err(|e| said(&e))?;
        let (mut attached, mut missing) = (0, Vec::new());
        for (name, tracepoint) in PROGRAMS {
            match attach(&mut programs, name, tracepoint, &types) {
                Ok(()) => attached += 1,
                Err(why) => missing.push(format!("{tracepoint}: {why}")),
            }
        }
        match missing.first() {
            Some(why) if attached == 0 => Err(why.clone()),
            _ => Ok(Kernel { programs, missing }),
        }
    }

    /// What was seen of each socket, by its cookie.
    pub fn facts(&self) -> HashMap<u64, Facts> {
        let map = self.programs.map("sockets").and_then(|m| BpfMap::<_, u64, [u64; WORDS]>::try_from(m).ok());
        // What is removed while it is read is missing: of sockets that nothing was heard of for longest.
        map.iter().flat_map(BpfMap::iter).flatten().map(|(_, sums)| Facts::decode(&sums)).collect()
    }
}

fn attach(programs: &mut Ebpf, name: &str, tracepoint: &str, types: &Btf) -> Result<(), String> {
    let program = programs.program_mut(name).ok_or("not in the object")?;
    let program: &mut BtfTracePoint = program.try_into().map_err(|e| said(&e))?;
    program.load(tracepoint, types).map_err(|e| said(&e))?;
    program.attach().map_err(|e| said(&e)).map(drop)
}

/// An error with what it comes from. What a lack of privileges is, the kernel says as "not permitted", and nothing more.
fn said(error: &(dyn Error + 'static)) -> String {
    let mut at = Some(error);
    let mut last = error.to_string();
    while let Some(e) = at {
        if e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied) {
            return "this takes CAP_BPF and CAP_PERFMON: run it as root, or with those two".into();
        }
        last = e.to_string();
        at = e.source();
    }
    last
}
