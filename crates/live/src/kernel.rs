//! Kernel events: the programs of `bpf/`, which sum up for each socket what only its
//! kernel sees, or tell of each event. They are gone with the process,
//! whatever ends it, and change nothing.

use crate::events::{Happened, What};
use crate::facts::{Facts, WORDS};
use crate::gauge::{Gauge, Taken};
use aya::maps::{Array, HashMap as BpfMap, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfLoader};
use hashbrown::HashMap;
use std::error::Error;
use std::os::fd::OwnedFd;
use std::time::Instant;
use std::{fmt, io};
use tcpwhy_base::Nanos;

/// Each program that sums up, and the tracepoint that it waits at. What ends a wait comes before what begins
/// it, so that no wait begins whose end is not heard.
const SUMS: [(&str, &str); 7] = [
    ("again", "tcp_retransmit_skb"),
    ("leaves", "net_dev_queue"),
    ("comes_in", "tcp_probe"),
    ("read_ends", "sock_recv_length"),
    ("write_goes_on", "tcp_sendmsg_locked"),
    ("write_ends", "sock_send_length"),
    ("becomes_readable", "sk_data_ready"),
];

/// Of them: this one runs for what is sent again alone, the others several times for each request.
const SELDOM: &str = "again";

/// Each program that tells of single events.
const EVENTS: [(&str, &str); 9] = [
    ("writes", "tcp_sendmsg_locked"),
    ("write_ends", "sock_send_length"),
    ("comes_in", "tcp_probe"),
    ("learns", "tcp_probe"),
    ("timer_fires", "timer_expire_entry"),
    ("ack_timer_fires", "timer_expire_entry"),
    ("becomes_readable", "sk_data_ready"),
    ("reads", "tcp_rcv_space_adjust"),
    ("changes_state", "inet_sock_set_state"),
];

/// Programs that are attached.
#[derive(Debug)]
pub struct Kernel {
    programs: Ebpf,
    /// Those that run for each request, while they are attached.
    frequent: Links,
    /// What a run of them takes.
    gauge: Gauge<OwnedFd>,
    turn: u64,
    /// Tracepoints that this kernel does not have, and why.
    pub missing: Vec<String>,
}

/// Programs that tell of each event.
pub struct Events {
    /// Detached when this is dropped.
    _programs: Ebpf,
    ring: RingBuf<MapData>,
    lost: Array<MapData, u64>,
    /// What it takes to tell late reads is attached.
    pub tells_reads: bool,
    /// Tracepoints that this kernel does not have, and why.
    pub missing: Vec<String>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("missing", &self.missing).finish_non_exhaustive()
    }
}

/// Loads an object and attaches its programs; with what could not be. Or says why not, as the rest of a
/// sentence that begins with "because".
fn load(
    object: &[u8],
    wanted: &[(&'static str, &str)],
    netns: Option<&u32>,
) -> Result<(Ebpf, Links, Vec<String>), String> {
    let types = Btf::from_sys_fs().map_err(|_| NO_TYPES.to_owned())?;
    let mut loader = EbpfLoader::new();
    if let Some(netns) = netns {
        loader.override_global("only_netns", netns, true);
    }
    let mut programs = loader.load(object).map_err(|e| said(&e))?;
    let (mut attached, mut missing) = (Vec::new(), Vec::new());
    for (name, tracepoint) in wanted {
        match attach(&mut programs, name, tracepoint, &types) {
            Ok(link) => attached.push((*name, link)),
            Err(why) => missing.push(format!("{tracepoint}: {why}")),
        }
    }
    match missing.first() {
        Some(why) if attached.is_empty() => Err(why.clone()),
        _ => Ok((programs, attached, missing)),
    }
}

impl Events {
    /// Attaches them, for sockets of one network namespace (the number of its file) or, with 0, of all.
    pub fn open(netns: u32) -> Result<Events, String> {
        let object = aya::include_bytes_aligned!("../bpf/events.bpf.o");
        let (mut programs, _, missing) = load(object, &EVENTS, Some(&netns))?;
        let ring = programs.take_map("events").ok_or("no ring in the object")?;
        let ring = RingBuf::try_from(ring).map_err(|e| said(&e))?;
        let lost = programs.take_map("lost").ok_or("no count in the object")?;
        let lost = Array::try_from(lost).map_err(|e| said(&e))?;
        let lacks = |tracepoint: &str| missing.iter().any(|why| why.starts_with(tracepoint));
        let tells_reads = !lacks("sk_data_ready") && !lacks("tcp_rcv_space_adjust");
        Ok(Events { _programs: programs, ring, lost, tells_reads, missing })
    }

    /// The next event, if there is one.
    #[expect(clippy::should_implement_trait, reason = "there may be more later")]
    pub fn next(&mut self) -> Option<Happened> {
        loop {
            let record = self.ring.next()?;
            if let Some(mut event) = Happened::decode(&record) {
                if let What::State(state) = &mut event.what {
                    state.reads = self.tells_reads;
                }
                return Some(event);
            }
        }
    }

    /// How many events did not fit.
    pub fn lost(&self) -> u64 {
        self.lost.get(&0, 0).unwrap_or(0)
    }
}

impl Kernel {
    /// Attaches them; or says why not, as the rest of a sentence that begins with "because".
    pub fn open() -> Result<Kernel, String> {
        let object = aya::include_bytes_aligned!("../bpf/watch.bpf.o");
        let (programs, mut frequent, missing) = load(object, &SUMS, None)?;
        frequent.retain(|(name, _)| *name != SELDOM);
        Ok(Kernel { programs, frequent, gauge: Gauge::default(), turn: 0, missing })
    }

    /// Whether the programs that run for each write and read listen.
    pub fn is_listening(&self) -> bool {
        !self.frequent.is_empty()
    }

    /// Lets them listen, or rest; what was under way is forgotten. Whether that was possible.
    pub fn listen(&mut self, on: bool) -> bool {
        self.gauge.stop();
        while let Some((name, link)) = self.frequent.pop() {
            if let Some(Ok(program)) = self.programs.program_mut(name).map(<&mut BtfTracePoint>::try_from) {
                let _ = program.detach(link);
            }
        }
        self.turn += 1;
        let turns = self.programs.map_mut("turns").and_then(|m| Array::<_, u64>::try_from(m).ok());
        if turns.is_none_or(|mut turns| turns.set(0, self.turn, 0).is_err()) {
            return false;
        }
        for (name, _) in SUMS.iter().filter(|(name, _)| on && *name != SELDOM) {
            // One that could not be loaded at first cannot be attached now.
            if let Some(Ok(program)) = self.programs.program_mut(name).map(<&mut BtfTracePoint>::try_from)
                && let Ok(link) = program.attach()
            {
                self.frequent.push((name, link));
            }
        }
        self.is_listening() == on
    }

    /// How often the programs that run for each write and read have run, on all processors.
    pub fn runs(&self) -> u64 {
        let map = self.programs.map("runs").and_then(|m| PerCpuArray::<_, u64>::try_from(m).ok());
        map.and_then(|m| m.get(&0, 0).ok()).map_or(0, |all| all.iter().fold(0, |sum, n| sum.wrapping_add(*n)))
    }

    /// What a run of them takes by the kernel's statistics, whenever that has been measured (CAP_SYS_ADMIN):
    /// to be asked at each look while they listen, with how often they have run since the last one.
    pub fn cost(&mut self, runs: u64) -> Option<Nanos> {
        let Kernel { programs, frequent, gauge, .. } = self;
        let taken = || {
            let infos = frequent.iter().filter_map(|(name, _)| programs.program(name)?.info().ok());
            infos.fold(Taken::default(), |sum, info| Taken {
                time: sum.time + info.run_time(),
                runs: sum.runs + info.run_count(),
            })
        };
        gauge.read(Instant::now(), runs, || enable_stats(Stats::RunTime).ok(), taken)
    }

    /// What was seen of each socket of which there is anything to say, by its cookie.
    pub fn facts(&self) -> HashMap<u64, Facts> {
        let map = self.programs.map("sockets").and_then(|m| BpfMap::<_, u64, [u64; WORDS]>::try_from(m).ok());
        // What is removed while it is read is missing: of sockets that nothing was heard of for longest.
        map.iter()
            .flat_map(BpfMap::iter)
            .flatten()
            .map(|(_, sums)| Facts::decode(&sums))
            .filter(|(_, facts)| *facts != Facts::default())
            .collect()
    }
}

type Links = Vec<(&'static str, BtfTracePointLinkId)>;

fn attach(
    programs: &mut Ebpf,
    name: &str,
    tracepoint: &str,
    types: &Btf,
) -> Result<BtfTracePointLinkId, String> {
    let program = programs.program_mut(name).ok_or("not in the object")?;
    let program: &mut BtfTracePoint = program.try_into().map_err(|e| said(&e))?;
    program.load(tracepoint, types).map_err(|e| said(&e))?;
    program.attach().map_err(|e| said(&e))
}

/// Where fields stand is not known.
pub(crate) const NO_TYPES: &str =
    "this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF, /sys/kernel/btf/vmlinux)";

/// `EPERM`. A program that the kernel finds at fault is EACCES.
const NOT_PERMITTED: i32 = 1;

/// An error with what it comes from. What a lack of privileges is, the kernel says as "not permitted", and
/// nothing more.
pub(crate) fn said(error: &(dyn Error + 'static)) -> String {
    let mut at = Some(error);
    let mut last = error.to_string();
    while let Some(e) = at {
        if e.downcast_ref::<io::Error>().is_some_and(|e| e.raw_os_error() == Some(NOT_PERMITTED)) {
            // Not even root may read the kernel's memory then, which is what the programs do.
            let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
            if lockdown.contains("[confidentiality]") {
                return "this kernel is locked down (confidentiality): start it with lockdown=integrity or without".into();
            }
            return "this takes CAP_BPF and CAP_PERFMON: run it as root, or with those two".into();
        }
        last = e.to_string();
        at = e.source();
    }
    last
}
