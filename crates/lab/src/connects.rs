//! Connections that are only made: what `connect` costs in time and in processor time.

use crate::host::{CLIENT, SERVER};
use crate::link::checksum;
use crate::network::Network;
use crate::scenario::{Bind, Connects, Host, Scenario};
use crate::watch::{POLL, Watch};
use crate::{LabError, clock, sys};
use serde::Serialize;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tcpwhy_base::{End, Nanos};

const PORT: u16 = 9000;

/// A connection that was only made.
#[derive(Clone, Debug, Serialize)]
pub struct Connect {
    /// `connect` was called, since the Unix epoch.
    pub start_ns: i64,
    /// How long it took.
    pub took_ns: i64,
    /// Processor time of `bind` and `connect`.
    pub processor_ns: i64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Makes the connections; says whether the run was cut off.
pub(crate) fn run(
    scenario: &Scenario,
    connects: &Connects,
    network: &Network,
    watch: &Watch,
    stop: &AtomicBool,
    made: &mut Vec<Connect>,
) -> Result<bool, LabError> {
    // Both ends of every connection are in this process, and the client's is known to the watch too.
    let open = if connects.keep { u64::from(connects.count) * 3 + 200 } else { 200 };
    let limit = sys::many_files(open).map_err(LabError::failed("raise the limit of open files"))?;
    if limit < open {
        return Err(LabError::missing(
            format!("keep {} connections open", connects.count),
            format!("{open} open files are needed, and the limit is {limit}"),
            format!(
                "raise it (`ulimit -n {open}`), or keep fewer with --set connects.count={}",
                (limit.max(203) - 200) / 3
            ),
        ));
    }
    let limit = clock::now() + scenario.shared.limit;
    let server_side = if connects.loopback { End::Client } else { End::Server };
    let target = if connects.loopback { Ipv4Addr::LOCALHOST } else { SERVER };
    let made_so_far = Mutex::new(Vec::new());
    let done = &made_so_far;
    let cut_off = thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let server = network.on(scope, server_side, move || {
            let listener = listener(scenario.host(End::Server), watch).map_err(LabError::failed("listen"))?;
            let _ = ready.send(());
            accept_all(&listener, scenario.host(End::Server), connects, watch);
            Ok(())
        })?;
        // If it does not listen, it says so when it is joined.
        let listening = is_ready.recv().is_ok();
        let client = network.on(scope, End::Client, move || {
            if !listening {
                return Ok(());
            }
            half_open(connects, scenario.shared.rtt(), watch).map_err(LabError::failed("send SYNs"))?;
            make_all(connects, SocketAddrV4::new(target, PORT), watch, done)
        });
        let client = client.inspect_err(|_| watch.end_all())?;
        let mut cut_off = false;
        while !client.is_finished() {
            thread::sleep(POLL);
            if clock::now() > limit || stop.load(Relaxed) {
                cut_off = true;
                watch.stop.store(true, Relaxed);
                // A connect that waits for an answer does not see the flag: its socket is ended.
                watch.end_all();
            }
        }
        watch.end_all();
        let panicked = || Err(LabError::failed("a thread")(io::Error::other("panicked")));
        server.join().unwrap_or_else(|_| panicked())?;
        client.join().unwrap_or_else(|_| panicked())?;
        Ok(cut_off)
    })?;
    *made = made_so_far.into_inner().unwrap_or_default();
    Ok(cut_off)
}

fn listener(host: &Host, watch: &Watch) -> io::Result<TcpListener> {
    let fd = sys::tcp_socket()?;
    sys::listen(fd.as_fd(), PORT, i32::try_from(host.backlog).unwrap_or(i32::MAX))?;
    watch.join(&fd, End::Server, 0)?;
    Ok(TcpListener::from(fd))
}

/// Accepts; the client closes first, so that it is the client that remembers (TIME_WAIT).
fn accept_all(listener: &TcpListener, host: &Host, connects: &Connects, watch: &Watch) {
    let _ = sys::real_time(5);
    let _ = sys::precise_timers();
    let mut kept = Vec::new();
    if !watch.nap(clock::now() + host.accept_start) {
        return;
    }
    while watch.nap(clock::now() + host.accept_delay) {
        let Ok((mut stream, _)) = listener.accept() else { return };
        if connects.keep {
            kept.push(stream);
        } else {
            // Its end, not data; a client that is gone already is no failure.
            let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
            let _ = stream.read(&mut [0]);
        }
    }
}

fn make_all(
    connects: &Connects,
    target: SocketAddrV4,
    watch: &Watch,
    done: &Mutex<Vec<Connect>>,
) -> Result<(), LabError> {
    let _ = sys::real_time(5);
    let _ = sys::precise_timers();
    let mut kept = Vec::new();
    for _ in 0..connects.count {
        if !watch.nap(clock::now() + clock::from_ms(connects.pause_ms)) {
            break;
        }
        let fd = sys::tcp_socket().map_err(LabError::failed("a socket"))?;
        let patience = clock::duration(clock::from_ms(connects.patience_ms));
        sys::set_timeout(fd.as_fd(), libc::SO_SNDTIMEO, patience).map_err(LabError::failed("SO_SNDTIMEO"))?;
        let id = watch.join(&fd, End::Client, 0).map_err(LabError::failed("share a socket"))?;
        let (start, processor) = (clock::now(), sys::processor_time());
        let result = bind(&fd, connects.bind, target).and_then(|()| sys::connect(fd.as_fd(), target));
        let processor_ns = sys::processor_time().saturating_sub(processor).as_nanos() as i64;
        let took_ns = (clock::now() - start).0;
        let error = result.err().map(|e| e.to_string());
        watch.leave(id);
        if error.is_none() && connects.keep {
            kept.push(fd);
        }
        let made = Connect { start_ns: start.0, took_ns, processor_ns, error };
        crate::watch::lock(done).push(made);
    }
    Ok(())
}

fn bind(fd: &OwnedFd, how: Bind, target: SocketAddrV4) -> io::Result<()> {
    let own = if target.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { CLIENT };
    match how {
        Bind::No => Ok(()),
        Bind::Zero => sys::bind(fd.as_fd(), SocketAddrV4::new(own, 0)),
        Bind::Late => {
            sys::set_option(fd.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            sys::bind(fd.as_fd(), SocketAddrV4::new(own, 0))
        }
    }
}

/// Sends SYNs whose senders do not exist, and waits until they have arrived.
fn half_open(connects: &Connects, rtt: Nanos, watch: &Watch) -> io::Result<()> {
    if connects.half_open == 0 {
        return Ok(());
    }
    let socket = sys::raw_socket()?;
    for n in 0..connects.half_open {
        if watch.stop.load(Relaxed) {
            return Ok(());
        }
        // In the client's network, but no host that answers: nobody resets what the server opens for them.
        let [_, _, high, low] = (n + 1).to_be_bytes();
        let from = Ipv4Addr::new(10, 77, high.wrapping_add(1), low);
        sys::send_raw(socket.as_fd(), &syn(from, 1024, SERVER, PORT), SERVER)?;
    }
    watch.nap(clock::now() + Nanos::millis(30) + rtt);
    Ok(())
}

/// A SYN with an MSS of 1460.
fn syn(from: Ipv4Addr, from_port: u16, to: Ipv4Addr, to_port: u16) -> Vec<u8> {
    let mut tcp = Vec::with_capacity(24);
    tcp.extend(from_port.to_be_bytes());
    tcp.extend(to_port.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 0, 6 << 4, 2]);
    tcp.extend(64_240u16.to_be_bytes());
    tcp.extend([0, 0, 0, 0, 2, 4]);
    tcp.extend(1460u16.to_be_bytes());
    let mut pseudo = Vec::with_capacity(36);
    pseudo.extend(from.octets());
    pseudo.extend(to.octets());
    pseudo.extend([0, 6, 0, tcp.len() as u8]);
    pseudo.extend(&tcp);
    let sum = checksum(&pseudo).to_be_bytes();
    if let Some(place) = tcp.get_mut(16..18) {
        place.copy_from_slice(&sum);
    }
    let total = (20 + tcp.len()) as u16;
    // The kernel fills in the header's checksum.
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(tcp);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_a_syn() {
        let packet = syn(Ipv4Addr::new(10, 77, 1, 1), 1024, SERVER, 9000);
        let mut pseudo = packet[12..20].to_vec();
        pseudo.extend([0, 6, 0, 24]);
        pseudo.extend(&packet[20..]);
        assert_eq!(checksum(&pseudo), 0, "a sum over itself is zero");
        assert_eq!(packet.len(), 44);
    }
}
