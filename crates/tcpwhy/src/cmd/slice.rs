use crate::args::Slice;
use crate::failure::{Exit, Usage, say};
use crate::headers::{self, Names};
use crate::load::{self, Loaded};
use crate::output::{self, Output};
use crate::{cmd, select, shown};
use anyhow::bail;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use tcpwhy_base::{Endpoint, Nanos, SocketEvent};
use tcpwhy_library::{Connection, Detail};
use tcpwhy_library::{packets::Frame, packets::Writer};

/// Writes the headers of some connections to a file that can be given away.
pub(crate) fn run(args: &Slice) -> anyhow::Result<Exit> {
    let Some(connection) = &args.connection else {
        let file = args.files.first().map(|f| shown::argument(f.as_os_str())).unwrap_or_default();
        bail!(Usage(format!(
            "--connection says which: `tcpwhy {file}` lists the connections with their numbers"
        )));
    };
    output::refuse_overwriting(&[Some(&args.output)], &args.files)?;
    let stop = cmd::stop_signal()?;
    let mut out = Output::open(Some(&args.output), true)?;
    let mut loaded = match load::load(&args.files, Detail::None, false, &stop)? {
        Ok(loaded) => loaded,
        Err(exit) => return Ok(exit),
    };
    let all = Uses::of(&loaded.analysis.connections);
    select::connections(&mut loaded.analysis, connection).map_err(Usage)?;
    let written = write(&mut out, &loaded, &all, args.anonymize);
    let ((packets, told), written) = match written {
        Ok(n) => (n, Ok(())),
        Err(e) => ((0, 0), Err(e)),
    };
    out.finish(written)?;
    let n = loaded.analysis.connections.len();
    let connections = if n == 1 { "1 connection".into() } else { format!("{n} connections") };
    let file = if args.output.as_os_str() == "-" {
        "standard output".into()
    } else {
        args.output.display().to_string()
    };
    say(&format!("{packets} packets of {connections} are in {file}"));
    say(stays(args.anonymize));
    if told > 0 {
        say(&format!("what the kernel said of {} is in it", if n == 1 { "it" } else { "them" }));
    }
    Ok(loaded.exit())
}

/// What is in the file, and what is not.
fn stays(anonymize: bool) -> &'static str {
    if anonymize {
        "addresses were replaced; times, ports, sizes, sequence numbers, TTL, IP identifiers and options stay, of payload only \
         the first word of HTTP and SSH, the types of TLS records and a request for TLS; MAC addresses, VLANs and comments are not in it"
    } else {
        "addresses are the true ones (--anonymize replaces them); payload is cut but for the first word of HTTP and SSH, \
         the types of TLS records and a request for TLS; MAC addresses, VLANs and comments are not in it"
    }
}

/// When each pair of ends was a connection: what a kernel says of them is of one of these.
struct Uses(HashMap<(Endpoint, Endpoint), Vec<(Nanos, u32)>>);

impl Uses {
    fn of(connections: &[Box<Connection>]) -> Uses {
        let mut uses: HashMap<_, Vec<_>> = HashMap::new();
        for c in connections {
            uses.entry(pair(c.client, c.server)).or_default().push((c.end, c.id));
        }
        uses.values_mut().for_each(|ends| ends.sort_unstable());
        Uses(uses)
    }

    /// The connection that an event is of: it goes on then, or is the next one; behind the last it is of that.
    fn connection(&self, event: &SocketEvent) -> Option<u32> {
        let ends = self.0.get(&pair(event.local, event.remote))?;
        let at = ends.partition_point(|&(end, _)| end < event.time);
        ends.get(at).or(ends.last()).map(|&(_, id)| id)
    }
}

/// Both ends, the lower one first.
fn pair(a: Endpoint, b: Endpoint) -> (Endpoint, Endpoint) {
    if a <= b { (a, b) } else { (b, a) }
}

/// How many packets and how much of what kernels said was written.
fn write(out: &mut Output, loaded: &Loaded, all: &Uses, anonymize: bool) -> anyhow::Result<(u64, u64)> {
    let names = RefCell::new(if anonymize { Names::anonymous() } else { Names::default() });
    let writer = RefCell::new(Writer::pcapng(out)?);
    let wanted: HashSet<u32> = loaded.analysis.connections.iter().map(|c| c.id).collect();
    let mut bytes = Vec::new();
    let (mut packets, mut told) = (0, 0);
    let hear = |heard: &mut Vec<SocketEvent>| {
        for event in heard.drain(..).filter(|e| all.connection(e).is_some_and(|id| wanted.contains(&id))) {
            let event = headers::event(&event, &mut names.borrow_mut());
            writer.borrow_mut().event(&event)?;
            told += 1;
        }
        Ok(())
    };
    loaded.source().read_again_hearing(&loaded.analysis.connections, hear, |met| {
        if met.packet.is_some() {
            let len = headers::write(met.segment, &mut names.borrow_mut(), &mut bytes);
            let mut frame = Frame::new(met.frame.time.floor0(), headers::link(met.segment), &bytes);
            frame.len = len.max(frame.len);
            writer.borrow_mut().write(&frame, None)?;
            packets += 1;
        }
        Ok(true)
    })?;
    writer.into_inner().finish()?;
    Ok((packets, told))
}
