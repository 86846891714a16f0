//! Network devices of a network namespace: their MTUs, addresses, counters, and what they take off the processor.

use crate::check::Device;
use crate::netlink::{Netlink, attribute, attributes};
use crate::wire::{u16_at, u32_at};
use hashbrown::HashMap;
use std::io;
use std::net::IpAddr;

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
/// `struct ifinfomsg`, `struct ifaddrmsg`, `struct genlmsghdr`.
const LINK: usize = 16;
const ADDRESS: usize = 8;
const GENERIC: usize = 4;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_STATS64: u16 = 23;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const FEATURES_GET: u8 = 11;
const FEATURES_ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BIT_NAME: u16 = 2;

/// Asks for devices again and again.
#[derive(Debug)]
pub struct Links {
    route: Netlink,
    ethtool: Option<(Netlink, u16)>,
}

impl Links {
    /// Of this thread's network namespace.
    pub fn open() -> io::Result<Links> {
        let ethtool = Netlink::generic().ok().and_then(|g| family(&g).map(|id| (g, id)));
        Ok(Links { route: Netlink::route()?, ethtool })
    }

    /// All devices.
    pub fn devices(&self) -> io::Result<Vec<Device>> {
        let mut out = Vec::new();
        self.route.ask(RTM_GETLINK, true, &[0; LINK], |body| out.extend(device(body)))?;
        let mut addresses: HashMap<u32, Vec<IpAddr>> = HashMap::new();
        self.route.ask(RTM_GETADDR, true, &[0; ADDRESS], |body| {
            if let Some((index, ip)) = address(body) {
                addresses.entry(index).or_default().push(ip);
            }
        })?;
        for d in &mut out {
            d.addresses = addresses.remove(&d.index).unwrap_or_default();
            d.features = self.features(d.index);
        }
        Ok(out)
    }

    /// Names of what is switched on; none where the kernel does not say (before 5.6).
    fn features(&self, index: u32) -> Option<Vec<String>> {
        let (socket, id) = self.ethtool.as_ref()?;
        let device = attribute(1 | 0x8000, &attribute(1, &index.to_ne_bytes()));
        let mut found = None;
        let request = [&[FEATURES_GET, 1, 0, 0][..], &device].concat();
        socket.ask(*id, false, &request, |body| found = Some(active(body))).ok()?;
        found
    }
}

fn family(socket: &Netlink) -> Option<u16> {
    let mut id = None;
    let request = [&[GET_FAMILY, 1, 0, 0][..], &attribute(FAMILY_NAME, b"ethtool\0")].concat();
    let each = |body: &[u8]| {
        let mut all = attributes(body.get(GENERIC..).unwrap_or_default());
        id = all.find(|a| a.0 == FAMILY_ID).and_then(|a| u16_at(a.1, 0));
    };
    socket.ask(CONTROLLER, false, &request, each).ok()?;
    id
}

fn active(body: &[u8]) -> Vec<String> {
    let of = |bytes, kind| attributes(bytes).filter(move |a| a.0 == kind).map(|a| a.1);
    let bits = of(body.get(GENERIC..).unwrap_or_default(), FEATURES_ACTIVE).flat_map(|b| of(b, BITSET_BITS));
    let names = bits.flat_map(|b| attributes(b).map(|a| a.1)).flat_map(|b| of(b, BIT_NAME));
    names.map(text).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

fn device(body: &[u8]) -> Option<Device> {
    let mut out = Device { index: u32_at(body, 4)?, ..Device::default() };
    for (kind, value) in attributes(body.get(LINK..)?) {
        match kind {
            IFLA_IFNAME => out.name = text(value),
            IFLA_MTU => out.mtu = u32_at(value, 0)?,
            IFLA_STATS64 => {
                let n = |at: usize| Some(u64::from_ne_bytes(*value.get(at * 8..)?.first_chunk()?));
                (out.came, out.left) = ((n(0)?, n(2)?), (n(1)?, n(3)?));
            }
            _ => {}
        }
    }
    Some(out)
}

fn address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let of = |wanted| attributes(body.get(ADDRESS..)?).find(|a| a.0 == wanted).map(|a| a.1);
    // Beside the own address of a point-to-point link stands that of the other end.
    let bytes = of(IFA_LOCAL).or_else(|| of(IFA_ADDRESS))?;
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some((u32_at(body, 4)?, ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_a_device() {
        let all = Links::open().unwrap().devices().unwrap();
        let lo = all.iter().find(|d| d.name == "lo").unwrap();
        assert!(lo.mtu > 0 && lo.addresses.contains(&[127, 0, 0, 1].into()), "{lo:?}");
        if let Some(features) = &lo.features {
            assert!(features.iter().any(|f| f == "loopback"), "{features:?}");
        }
    }

    #[test]
    fn damaged_answers_are_no_devices() {
        let whole = [vec![0; LINK], attribute(IFLA_MTU, &[1, 2]), attribute(IFLA_STATS64, &[0; 9])].concat();
        for cut in 0..=whole.len() {
            let _ = (device(&whole[..cut]), address(&whole[..cut]), active(&whole[..cut]));
        }
    }
}
