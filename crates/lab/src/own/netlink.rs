//! Devices, addresses, routes and rules, asked of the kernel itself: the command `ip` would lose the privileges that
//! only this process has, and would take longer than all the rest.

use crate::sys;
use libc::{
    IFA_ADDRESS, IFA_LOCAL, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO,
    RTA_DST, RTA_OIF, RTA_PREFSRC, RTM_DELRULE, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWROUTE, RTM_NEWRULE,
};
use std::fs::File;
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;

// As wide as they stand in a message.
const REQUEST_AND_ANSWER: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
const NLMSG_ERROR: u16 = libc::NLMSG_ERROR as u16;
// linux/veth.h, fib_rules.h, which libc leaves out.
const VETH_INFO_PEER: u16 = 1;
const FRA_DST: u16 = 1;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FR_ACT_TO_TBL: u8 = 1;
const FAMILY: u8 = libc::AF_INET as u8;
/// Protocol, scope and kind of a route.
const ROUTE: [u8; 3] = [libc::RTPROT_STATIC, libc::RT_SCOPE_LINK, libc::RTN_UNICAST];
/// The table in which everything is found that is local.
pub(crate) const LOCAL: u8 = libc::RT_TABLE_LOCAL;
/// The table of all routes without a rule of their own.
pub(crate) const MAIN: u8 = libc::RT_TABLE_MAIN;

/// Where to ask.
#[derive(Debug)]
pub(crate) struct Netlink(File);

/// Which packets a rule is about, and where it sends them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// The least is asked first.
    pub(crate) priority: u32,
    /// Only what this host itself sends to this net; none: all packets.
    pub(crate) sent_to: Option<(Ipv4Addr, u8)>,
    pub(crate) table: u8,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        sys::device::netlink().map(|fd| Netlink(fd.into()))
    }

    /// Two devices, each of which receives what the other sends (`veth`); the first has this link address.
    pub(crate) fn pair(&self, names: [&str; 2], address: [u8; 6]) -> io::Result<()> {
        let name = |name: &str| attribute(IFLA_IFNAME, &text(name));
        let peer = [vec![0; 16], name(names[1])].concat();
        let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
        let info = [attribute(IFLA_INFO_KIND, b"veth"), data].concat();
        let body =
            [vec![0; 16], name(names[0]), attribute(IFLA_ADDRESS, &address), attribute(IFLA_LINKINFO, &info)];
        self.ask(RTM_NEWLINK, CREATE, &body.concat())
    }

    /// An address of a device, alone in its net.
    pub(crate) fn address(&self, device: u32, address: Ipv4Addr) -> io::Result<()> {
        let [a, b, c, d] = device.to_ne_bytes();
        let body = [
            vec![FAMILY, 32, 0, 0, a, b, c, d],
            attribute(IFA_LOCAL, &address.octets()),
            attribute(IFA_ADDRESS, &address.octets()),
        ];
        self.ask(RTM_NEWADDR, CREATE, &body.concat())
    }

    /// A route to a net by a device, from an address.
    pub(crate) fn route(
        &self,
        net: (Ipv4Addr, u8),
        device: u32,
        from: Ipv4Addr,
        table: u8,
    ) -> io::Result<()> {
        let [protocol, scope, kind] = ROUTE;
        let body = [
            vec![FAMILY, net.1, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0],
            attribute(RTA_DST, &net.0.octets()),
            attribute(RTA_OIF, &device.to_ne_bytes()),
            attribute(RTA_PREFSRC, &from.octets()),
        ];
        self.ask(RTM_NEWROUTE, CREATE, &body.concat())
    }

    pub(crate) fn rule(&self, rule: Rule) -> io::Result<()> {
        self.ask(RTM_NEWRULE, CREATE, &rule.bytes())
    }

    pub(crate) fn no_rule(&self, rule: Rule) -> io::Result<()> {
        self.ask(RTM_DELRULE, 0, &rule.bytes())
    }

    /// Asks, and waits for the answer.
    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let len = u32::try_from(16 + body.len()).map_err(io::Error::other)?;
        let mut message = len.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST_AND_ANSWER | flags).to_ne_bytes());
        // Number of the question and of the socket: one is asked at a time, and the kernel knows who asks.
        message.extend([0; 8]);
        message.extend(body);
        sys::send(self.0.as_fd(), &message, false)?;
        let mut answer = [0; 4096];
        let n = (&self.0).read(&mut answer)?;
        let Some(&[a, b, c, d]) = answer.get(..n).and_then(|a| a.get(16..20)) else {
            return Err(io::Error::other("a short answer"));
        };
        if answer.get(4..6) != Some(&NLMSG_ERROR.to_ne_bytes()) {
            return Err(io::Error::other("an answer to something else"));
        }
        match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

impl Rule {
    fn bytes(self) -> Vec<u8> {
        let (net, bits) = self.sent_to.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
        let mut body = vec![FAMILY, bits, 0, 0, self.table, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0];
        body.extend(attribute(FRA_PRIORITY, &self.priority.to_ne_bytes()));
        if self.sent_to.is_some() {
            body.extend(attribute(FRA_DST, &net.octets()));
            // What a host sends counts as if it had come in by its loopback (ip-rule(8)).
            body.extend(attribute(FRA_IIFNAME, &text("lo")));
        }
        body
    }
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// Length, kind and value, filled up to a multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_filled_up() {
        let want = [&[7, 0, 3, 0][..], b"lo\0", &[0]].concat();
        assert_eq!(attribute(IFLA_IFNAME, &text("lo")), want);
        assert_eq!(attribute(1, &[1, 2, 3, 4]).len(), 8);
    }
}
