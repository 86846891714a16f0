//! Counters and settings of a network namespace, from the text of `/proc`.

use hashbrown::HashMap;

/// Counters by their names (`ListenOverflows`, `OutSegs`), which are the same in all files.
#[derive(Clone, Debug, Default)]
pub struct Counters(HashMap<String, u64>);

impl Counters {
    /// Takes the lines of `/proc/net/netstat` or `/proc/net/snmp`: pairs, names first and then values, each
    /// behind the name of its group. Only those of TCP, and the kinds of ICMP messages.
    pub fn add(&mut self, text: &str) {
        let mut lines = text.lines();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let (Some((group, names)), Some((_, values))) = (names.split_once(':'), values.split_once(':'))
            else {
                continue;
            };
            if !["Tcp", "TcpExt", "IcmpMsg"].contains(&group) {
                continue;
            }
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                // A few are negative where they are not known (MaxConn).
                if let Ok(value) = value.parse() {
                    self.0.insert(name.into(), value);
                }
            }
        }
    }

    /// A counter; 0 where this kernel has none.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// By how much a counter has grown since.
    pub fn since(&self, before: &Counters, name: &str) -> u64 {
        self.of(name).saturating_sub(before.of(name))
    }
}

/// Settings of a host and its network namespace. What could not be read is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.core.wmem_max`.
    pub wmem_max: Option<u64>,
    /// `net.core.rmem_max`.
    pub rmem_max: Option<u64>,
    /// The third value of `net.ipv4.tcp_wmem`.
    pub tcp_wmem_max: Option<u64>,
    /// The third value of `net.ipv4.tcp_rmem`.
    pub tcp_rmem_max: Option<u64>,
    /// `net.ipv4.tcp_mem`, in pages: below the first no pressure, above the second pressure, above the third
    /// nothing is given.
    pub tcp_mem: Option<[u64; 3]>,
    /// `net.ipv4.ip_local_port_range`.
    pub ports: Option<[u64; 2]>,
    /// `net.ipv4.tcp_tw_reuse`.
    pub tw_reuse: Option<u64>,
    /// `net.ipv4.tcp_tw_reuse_delay`, in milliseconds; kernels before 6.14 wait for a second.
    pub tw_reuse_delay: Option<u64>,
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: Option<u64>,
    /// `net.ipv4.tcp_syncookies`.
    pub syncookies: Option<u64>,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub slow_start_after_idle: Option<u64>,
}

impl Settings {
    /// From `net.*` names to the text of the files.
    pub fn read(file: impl Fn(&str) -> Option<String>) -> Settings {
        let all = |name: &str| -> Option<Vec<u64>> {
            file(name)?.split_whitespace().map(|n| n.parse().ok()).collect()
        };
        let one = |name: &str| all(name)?.first().copied();
        let third = |name: &str| all(name)?.get(2).copied();
        Settings {
            somaxconn: one("net/core/somaxconn"),
            wmem_max: one("net/core/wmem_max"),
            rmem_max: one("net/core/rmem_max"),
            tcp_wmem_max: third("net/ipv4/tcp_wmem"),
            tcp_rmem_max: third("net/ipv4/tcp_rmem"),
            tcp_mem: all("net/ipv4/tcp_mem").and_then(|v| v.try_into().ok()),
            ports: all("net/ipv4/ip_local_port_range").and_then(|v| v.try_into().ok()),
            tw_reuse: one("net/ipv4/tcp_tw_reuse"),
            tw_reuse_delay: one("net/ipv4/tcp_tw_reuse_delay"),
            timestamps: one("net/ipv4/tcp_timestamps"),
            syncookies: one("net/ipv4/tcp_syncookies"),
            slow_start_after_idle: one("net/ipv4/tcp_slow_start_after_idle"),
        }
    }

    /// How many local ports there are to choose from.
    pub fn port_count(&self) -> Option<u64> {
        let [low, high] = self.ports?;
        Some(high.checked_sub(low)? + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 5 7\nIpExt: InOctets\nIpExt: 9\n";
        let mut c = Counters::default();
        c.add(text);
        c.add("Tcp: RtoMax MaxConn OutSegs\nTcp: 120000 -1 44\n");
        assert_eq!(
            (c.of("ListenOverflows"), c.of("OutSegs"), c.of("MaxConn"), c.of("InOctets")),
            (7, 44, 0, 0)
        );
        let mut later = c.clone();
        later.add("TcpExt: ListenOverflows\nTcpExt: 9\n");
        assert_eq!(later.since(&c, "ListenOverflows"), 2);
        for damaged in ["TcpExt", "TcpExt: a b\n", "TcpExt: a\nTcpExt: x\n", ":\n:\n"] {
            Counters::default().add(damaged);
        }
    }

    #[test]
    fn settings_are_read_as_far_as_they_are_there() {
        let s = Settings::read(|name| match name {
            "net/ipv4/ip_local_port_range" => Some("32768\t60999\n".into()),
            "net/ipv4/tcp_mem" => Some("1 2\n".into()),
            "net/ipv4/tcp_wmem" => Some("4096 16384 4194304\n".into()),
            _ => None,
        });
        assert_eq!(
            (s.port_count(), s.tcp_mem, s.tcp_wmem_max, s.somaxconn),
            (Some(28_232), None, Some(4_194_304), None)
        );
    }
}
