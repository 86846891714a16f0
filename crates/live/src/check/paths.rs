//! MTUs of paths, and what devices leave to the processor.

use super::{Audit, Fault};
use crate::sample::{Sample, State};
use hashbrown::HashMap;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Nanos};

/// A device that sends or takes so many full packets a second, each by itself, for a second or more.
const MANY: f64 = 1000.0;
const LEAST: Nanos = Nanos::secs(1);
/// A packet is full from so much of the MTU on; with more than all of it, it holds several segments.
const FULL: f64 = 0.7;

/// A network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The largest packet that it takes.
    pub mtu: u32,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Packets that came, and bytes.
    pub came: (u64, u64),
    /// Packets that left, and bytes.
    pub left: (u64, u64),
    /// What is switched on, by `ethtool`'s names, if the kernel says it.
    pub features: Option<Vec<String>>,
}

/// The path MTU of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathMtu {
    last: u32,
    local: IpAddr,
    peer: IpAddr,
    shrank: Option<Nanos>,
}

/// Devices over the time.
#[derive(Debug, Default)]
pub(super) struct Devices {
    first: Vec<Device>,
    last: Vec<Device>,
    since: Nanos,
    /// Jiffies of all processors since the start, and those in softirqs: first and last.
    softirq: ((u64, u64), (u64, u64)),
}

impl Audit {
    /// Takes the devices, and the first line of `/proc/stat`.
    pub fn devices(&mut self, devices: Vec<Device>, stat: &str, time: Nanos) {
        let mut jiffies = stat.split_whitespace().skip(1).map_while(|n| n.parse::<u64>().ok());
        let all: Vec<u64> = jiffies.by_ref().take(8).collect();
        let now = (all.iter().sum(), all.get(6).copied().unwrap_or(0));
        let seen = &mut self.devices;
        if seen.first.is_empty() {
            seen.first.clone_from(&devices);
            (seen.since, seen.softirq.0) = (time, now);
        }
        (seen.last, seen.softirq.1) = (devices, now);
    }

    pub(super) fn path_mtu(&mut self, s: &Sample, now: Nanos) {
        let Some(mtu) = s.info.map(|i| i.pmtu).filter(|&m| m > 0 && s.state == State::Established) else {
            return;
        };
        let (local, peer) = (s.local.ip, s.peer.ip);
        let seen = self.paths.entry(s.cookie);
        let seen = seen.or_insert(PathMtu { last: mtu, local, peer, shrank: None });
        if mtu < seen.last {
            seen.shrank = Some(now);
        }
        seen.last = mtu;
    }

    /// Something on the path takes smaller packets than the device: the kernel finds out by losing some, for
    /// each destination and again after ten minutes (`net.ipv4.route.mtu_expires`).
    pub(super) fn paths(&self) -> Vec<Fault> {
        let told = self.moved("InType3");
        let mut by_peer: HashMap<IpAddr, (u64, PathMtu, &Device, Nanos)> = HashMap::new();
        for p in self.paths.values() {
            let device = self.devices.last.iter().find(|d| d.addresses.contains(&p.local));
            let Some(device) = device.filter(|d| p.last < d.mtu) else { continue };
            // Without one of these it is a route's own MTU, and nothing was lost.
            let Some(when) = p.shrank.or(told.map(|m| m.first)) else { continue };
            let entry = by_peer.entry(p.peer).or_insert((0, *p, device, when));
            entry.0 += 1;
        }
        let faults = by_peer.into_iter().map(|(peer, (connections, p, device, when))| Fault {
            id: "path-mtu",
            subject: peer.to_string(),
            cause: Cause::PathMtu,
            when: (when, when),
            evidence: format!(
                "packets to it may have {} bytes, {} sends up to {}: larger ones were lost until the kernel was told ({connections} \
                 connection{})",
                p.last,
                device.name,
                device.mtu,
                if connections == 1 { "" } else { "s" }
            ),
            figures: vec![
                ("path_mtu", p.last.into()),
                ("device_mtu", device.mtu.into()),
                ("connections", connections),
            ],
            fixes: Cause::PathMtu.info().fixes.to_vec(),
        });
        faults.collect()
    }

    /// Segments that pass through the whole stack one by one, because nothing cuts or joins them at its end.
    pub(super) fn offloads(&self) -> Vec<Fault> {
        let d = &self.devices;
        let time = self.last - d.since;
        if time < LEAST {
            return Vec::new();
        }
        let ((all, soft), (all_now, soft_now)) = d.softirq;
        let share = 100.0 * soft_now.saturating_sub(soft) as f64 / all_now.saturating_sub(all).max(1) as f64;
        let mut out = Vec::new();
        for now in &d.last {
            let before = d.first.iter().find(|f| f.index == now.index);
            let (Some(before), Some(features)) = (before, &now.features) else { continue };
            let on = |name: &str| features.iter().any(|f| f == name);
            let sends = ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation"];
            let takes = ["rx-gro", "rx-gro-hw", "rx-lro"];
            for (way, names, was, is) in
                [("sends", &sends, before.left, now.left), ("receives", &takes, before.came, now.came)]
            {
                let switch = if way == "sends" { "tso on gso on" } else { "gro on" };
                let (packets, bytes) = (is.0.saturating_sub(was.0), is.1.saturating_sub(was.1));
                let rate = packets as f64 / time.0.max(1) as f64 * 1e9;
                let size = bytes as f64 / packets.max(1) as f64;
                let full = (FULL * f64::from(now.mtu)..=f64::from(now.mtu) + 100.0).contains(&size);
                // A device that loops back receives what it sent: nothing could join that.
                if rate < MANY || !full || names.iter().any(|n| on(n)) || way == "receives" && on("loopback")
                {
                    continue;
                }
                out.push(Fault {
                    id: "offload-off",
                    subject: format!("{}:{way}", now.name),
                    cause: Cause::HostDelay,
                    when: (d.since - self.start, self.last - self.start),
                    evidence: format!(
                        "{} {way} {rate:.0} packets a second of {size:.0} bytes, each through the whole stack by itself: {} are off (`ethtool \
                         -K {} {switch}`); softirqs took {share:.1} % of the processors",
                        now.name,
                        names.join(", "),
                        now.name
                    ),
                    figures: vec![
                        ("packets_per_second", rate as u64),
                        ("bytes_per_packet", size as u64),
                        ("mtu", now.mtu.into()),
                    ],
                    fixes: Cause::HostDelay.info().fixes.to_vec(),
                });
            }
        }
        out
    }
}
