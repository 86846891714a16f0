//! The network of one program: loopback, and a pair of devices as the way out, at whose far end we sit.

use super::netlink::{LOCAL, MAIN, Netlink, Rule};
use crate::LabError;
use crate::sys::{device, ring::Ring};
use std::fs;
use std::io;
use std::net::Ipv4Addr;

/// The device that all packets leave by, and its other end, which is ours.
const OUT: &str = "why0";
const FAR: &str = "why1";
/// The link address of every host: the same, so that a packet needs no other link header when it changes hosts.
const LINK_ADDRESS: [u8; 6] = [2, 0x77, 0, 0, 0, 1];
/// Of a program that is alone in its network.
const ALONE: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);
const LOOPBACK: (Ipv4Addr, u8) = (Ipv4Addr::new(127, 0, 0, 0), 8);
/// The table with the way that loopback takes.
const DETOUR: u8 = 77;
/// An Ethernet header comes before each packet.
pub(crate) const LINK_HEADER: usize = 14;
/// The kernel's header in a ring.
const RING_HEADER: usize = 96;

/// Makes `lo` work in this thread's new network.
pub(crate) fn loopback() -> io::Result<()> {
    device::switch_on("lo", true)
}

/// What passes `lo`: enough of each packet for its headers.
pub(crate) fn tap_loopback() -> Result<Ring, LabError> {
    let lo = device::index("lo").map_err(LabError::failed("find lo"))?;
    Ring::new(lo, 256).map_err(LabError::failed("capture on lo"))
}

/// The default route, for what is not this host's own address. The ring holds whole packets.
pub(crate) fn uplink(own: Option<Ipv4Addr>, mtu: u32) -> Result<Ring, LabError> {
    let own = own.unwrap_or(ALONE);
    let netlink = Netlink::open().map_err(LabError::failed("open a netlink socket"))?;
    netlink.pair([OUT, FAR], LINK_ADDRESS).map_err(|e| {
        let advice = "load the module (modprobe veth), or use a kernel that has it (CONFIG_VETH)";
        LabError::missing("a pair of network devices (veth)", e, advice)
    })?;
    let set_up = || -> io::Result<(u32, u32)> {
        device::no_offload(OUT)?;
        for name in [OUT, FAR] {
            // Router solicitations and the like are nobody's traffic.
            let _ = setting(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
            device::set_mtu(name, mtu)?;
            device::switch_on(name, false)?;
        }
        Ok((device::index(OUT)?, device::index(FAR)?))
    };
    let (out, far) = set_up().map_err(LabError::failed("set up a pair of network devices"))?;
    let slot = (mtu as usize + LINK_HEADER + RING_HEADER).next_power_of_two();
    let ring = Ring::new(far, slot).map_err(LabError::failed("capture on the way out"))?;
    let routes =
        netlink.address(out, own).and_then(|()| netlink.route((Ipv4Addr::UNSPECIFIED, 0), out, own, MAIN));
    routes.map_err(LabError::failed("set up routes"))?;
    Ok(ring)
}

/// From now on packets to loopback take that route, and must be sent back from there. `::1` cannot: the
/// kernel takes no packet from or to it that comes by another device (`ip6_rcv_core`), so it is switched off
/// and `localhost` means 127.0.0.1.
pub(crate) fn reroute_loopback() -> Result<(), LabError> {
    // From and to itself, by a device that is not loopback (`ip_route_input_slow`, `fib_validate_source`).
    let own = |name: &str| format!("ipv4/conf/{OUT}/{name}");
    for (name, value) in [
        (own("accept_local"), "1"),
        (own("route_localnet"), "1"),
        (own("rp_filter"), "0"),
        ("ipv4/conf/all/rp_filter".into(), "0"),
    ] {
        setting(&name, value).map_err(|e| {
            let advice = "/proc/sys has to be writable: in a container start it with --security-opt \
                          systempaths=unconfined, or run without --rtt";
            LabError::missing(format!("net/{name}"), e, advice)
        })?;
    }
    let _ = setting("ipv6/conf/lo/disable_ipv6", "1");
    let rules = || -> io::Result<()> {
        let netlink = Netlink::open()?;
        let out = device::index(OUT)?;
        netlink.route(LOOPBACK, out, Ipv4Addr::LOCALHOST, DETOUR)?;
        netlink.rule(Rule { priority: 10, sent_to: None, table: LOCAL })?;
        netlink.rule(Rule { priority: 5, sent_to: Some(LOOPBACK), table: DETOUR })?;
        // Where everything local is found before any other rule is asked.
        netlink.no_rule(Rule { priority: 0, sent_to: None, table: LOCAL })
    };
    rules().map_err(LabError::failed("send loopback by another way"))
}

/// Connections start without the metrics of those before them (`tcp_no_metrics_save`).
pub(crate) fn save_no_metrics() {
    let _ = setting("ipv4/tcp_no_metrics_save", "1");
}

/// A setting of this thread's network.
fn setting(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/{name}"), value)
}
