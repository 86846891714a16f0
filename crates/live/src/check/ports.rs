//! Local ports: which of them connect() can still have.

use super::{Audit, Fault};
use crate::sample::{Sample, State};
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, Nanos};

/// `TCP_TIMEWAIT_LEN`.
const TIME_WAIT: Nanos = Nanos::secs(60);
/// `LOOPBACK_IFINDEX`.
const LOOPBACK: u32 = 1;

/// Local ports of one address to one destination.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ports {
    /// That connect() cannot have, those in TIME_WAIT too.
    used: u64,
    /// Of them: in TIME_WAIT.
    waiting: u64,
    /// Beside them: in TIME_WAIT, and free to be had all the same.
    reusable: u64,
}

impl Audit {
    /// Takes all sockets, those in TIME_WAIT too: which local ports are in use.
    pub fn ports(&mut self, sockets: &[Sample]) {
        self.destinations.clear();
        let Some([low, high]) = self.settings.ports else { return };
        let connections = sockets.iter().filter(|s| s.state != State::Listen);
        for s in connections.filter(|s| (low..=high).contains(&u64::from(s.local.port))) {
            let reusable = self.is_reusable(s);
            let ports = self.destinations.entry((s.local.ip, s.peer)).or_default();
            ports.reusable += u64::from(reusable);
            ports.used += u64::from(!reusable);
            ports.waiting += u64::from(!reusable && s.state == State::TimeWait);
        }
    }

    /// Which destinations use no time stamps: of a socket in TIME_WAIT the kernel does not tell.
    pub(super) fn stamps(&mut self, s: &Sample) {
        if matches!(s.state, State::Established | State::CloseWait | State::FinWait1)
            && s.info.is_some_and(|info| !info.stamped)
        {
            self.unstamped.insert(s.peer);
        }
    }

    /// `tcp_twsk_unique`: connect() takes the port of a connection in TIME_WAIT that used time stamps, once
    /// it is old enough.
    fn is_reusable(&self, s: &Sample) -> bool {
        let allowed = match self.settings.tw_reuse {
            Some(0) | None => false,
            Some(2) => s.device == LOOPBACK || is_loopback(s.local.ip, s.peer),
            Some(_) => true,
        };
        let stamped = self.settings.timestamps != Some(0) && !self.unstamped.contains(&s.peer);
        let delay = self.settings.tw_reuse_delay.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(1000);
        let old = s.expires.is_some_and(|left| TIME_WAIT - left >= Nanos::millis(delay.min(60_000)));
        s.state == State::TimeWait && allowed && stamped && old
    }

    /// `__inet_hash_connect` tries the ports of one parity first: when more than half of the range is in use
    /// to one destination, each connect() searches through half of it before it finds one.
    pub(super) fn local_ports(&self) -> Vec<Fault> {
        let Some(range) = self.settings.port_count().filter(|&n| n > 0) else { return Vec::new() };
        let used = self.destinations.iter().filter(|(_, ports)| ports.used * 2 > range);
        used.map(|((own, peer), ports)| Fault {
            id: "local-ports",
            subject: format!("{own} > {peer}"),
            cause: Cause::PortExhaustion,
            when: (self.last - self.start, self.last - self.start),
            evidence: format!(
                "{} of {range} local ports are in use to it, {} of them in TIME_WAIT{}; {}",
                ports.used,
                ports.waiting,
                self.reuse((*own, *peer), ports),
                match ports.used {
                    all if all >= range => "none is left: connect() fails with EADDRNOTAVAIL",
                    _ => "connect() searches through half of them each time",
                }
            ),
            figures: vec![
                ("used", ports.used),
                ("time_wait", ports.waiting),
                ("reusable", ports.reusable),
                ("ports", range),
            ],
            fixes: Cause::PortExhaustion.info().fixes.to_vec(),
        })
        .collect()
    }

    /// Why those in TIME_WAIT count, or which of them do not.
    fn reuse(&self, (own, peer): (IpAddr, Endpoint), ports: &Ports) -> String {
        if ports.reusable > 0 {
            return format!(" and too young to be used again, as {} more can be", ports.reusable);
        }
        match self.settings.tw_reuse {
            _ if ports.waiting == 0 => String::new(),
            None => {
                " (net.ipv4.tcp_tw_reuse could not be read: with 1 they can be used again after a second)"
                    .into()
            }
            Some(0) => " (net.ipv4.tcp_tw_reuse is 0)".into(),
            Some(_) if self.settings.timestamps == Some(0) => " (net.ipv4.tcp_timestamps is 0)".into(),
            Some(_) if self.unstamped.contains(&peer) => " (it uses no time stamps)".into(),
            Some(2) if !is_loopback(own, peer) => {
                " (net.ipv4.tcp_tw_reuse is 2: only those of loopback can be used again)".into()
            }
            Some(_) => " and too young to be used again".into(),
        }
    }
}

fn is_loopback(own: IpAddr, peer: Endpoint) -> bool {
    own.is_loopback() || peer.ip.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Counters, Settings};
    use crate::sample::Info;

    fn socket(ip: [u8; 4], port: u16, left: Option<i64>) -> Sample {
        Sample {
            local: Endpoint { ip: ip.into(), port },
            peer: Endpoint { ip: ip.into(), port: 80 },
            state: if left.is_some() { State::TimeWait } else { State::Established },
            expires: left.map(Nanos::millis),
            info: left.is_none().then(Info::default),
            ..Sample::open(port, 80)
        }
    }

    /// Of ten ports all are in TIME_WAIT, of which so many for 900 ms only.
    #[test]
    fn a_port_that_connect_can_have_is_not_in_use() {
        const OTHER: [u8; 4] = [10, 9, 0, 1];
        let found = |ip, young: u16, change: &dyn Fn(&mut Settings), stamped: bool| {
            let mut settings =
                Settings { ports: Some([40_000, 40_009]), tw_reuse: Some(2), ..Settings::default() };
            change(&mut settings);
            let mut audit = Audit::new(settings, Counters::default(), Nanos::ZERO);
            if !stamped {
                audit.sockets(&[socket(ip, 9, None)], Nanos::ZERO);
            }
            let all: Vec<Sample> = (0..10)
                .map(|n| socket(ip, 40_000 + n, Some(if n < young { 59_100 } else { 58_900 })))
                .collect();
            audit.ports(&all);
            audit.local_ports().first().map(|f| (f.figures.clone(), f.evidence.clone()))
        };
        let says = |found: Option<(Vec<(&str, u64)>, String)>, used: u64, words: &str| {
            let (figures, evidence) = found.unwrap();
            assert!(figures.contains(&("used", used)) && evidence.contains(words), "{figures:?} {evidence}");
        };
        let reuse = |n| move |s: &mut Settings| s.tw_reuse = n;
        let home = [127, 0, 0, 1];
        assert_eq!(found(home, 0, &|_| (), true), None);
        assert_eq!(found(home, 5, &|_| (), true), None);
        says(
            found(home, 6, &|_| (), true),
            6,
            "too young to be used again, as 4 more can be; connect() searches",
        );
        says(found(home, 10, &|_| (), true), 10, "too young to be used again; none is left");
        says(found(home, 0, &|_| (), false), 10, "it uses no time stamps");
        says(found(home, 0, &|s| s.timestamps = Some(0), true), 10, "tcp_timestamps is 0");
        says(found(home, 0, &|s| s.tw_reuse_delay = Some(2000), true), 10, "too young");
        says(found(home, 0, &reuse(Some(0)), true), 10, "tcp_tw_reuse is 0");
        says(found(home, 0, &reuse(None), true), 10, "could not be read");
        says(found(OTHER, 0, &|_| (), true), 10, "only those of loopback");
        assert_eq!(found(OTHER, 0, &reuse(Some(1)), true), None);
    }
}
