use crate::args::Slice;
use crate::failure::{Exit, Usage, say};
use crate::headers::{self, Names};
use crate::load::{self, Loaded};
use crate::output::{self, Output};
use crate::{cmd, select, shown};
use anyhow::bail;
use tcpwhy_library::Detail;
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
    select::connections(&mut loaded.analysis, connection).map_err(Usage)?;
    let written = write(&mut out, &loaded, args.anonymize);
    let (packets, written) = match written {
        Ok(n) => (n, Ok(())),
        Err(e) => (0, Err(e)),
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
    Ok(loaded.exit())
}

/// What is in the file, and what is not.
fn stays(anonymize: bool) -> &'static str {
    if anonymize {
        "addresses were replaced; times, ports, sizes, sequence numbers, TTL, IP identifiers and options stay, of payload only \
         the first word of HTTP and SSH and the types of TLS records; MAC addresses, VLANs and comments are not in it"
    } else {
        "addresses are the true ones (--anonymize replaces them); payload is cut but for the first word of HTTP and SSH and \
         the types of TLS records; MAC addresses, VLANs and comments are not in it"
    }
}

fn write(out: &mut Output, loaded: &Loaded, anonymize: bool) -> anyhow::Result<u64> {
    let mut names = if anonymize { Names::anonymous() } else { Names::default() };
    let mut writer = Writer::pcapng(out)?;
    let mut bytes = Vec::new();
    let mut packets = 0;
    loaded.source().read_again(&loaded.analysis.connections, |met| {
        if met.packet.is_some() {
            let len = headers::write(met.segment, &mut names, &mut bytes);
            let mut frame = Frame::new(met.frame.time.floor0(), headers::link(met.segment), &bytes);
            frame.len = len.max(frame.len);
            writer.write(&frame, None)?;
            packets += 1;
        }
        Ok(true)
    })?;
    writer.finish()?;
    Ok(packets)
}
