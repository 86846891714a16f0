//! Loss, timers, and the path between.

use super::{FixId, FixInfo, How, Place, Unless};

/// In the order of [`FixId`].
pub(super) const ROWS: &[FixInfo] = &[
    FixInfo {
        fix: FixId::FixLoss,
        id: "fix_loss",
        place: Place::Path,
        unless: &[Unless::NothingLost, Unless::SameHost],
        title: "Find where packets are lost, and stop it",
        how: &[
            How {
                system: "Linux",
                text: "`ip -s link` and `ethtool -S DEV` at both ends (errors, drops, missed), `tc -s \
                       qdisc` (dropped): loss inside a host is seen there",
            },
            How {
                system: "Any",
                text: "Locate it: `mtr --tcp --port {port} {server}` from the client, and captures at both \
                       ends of the suspected segment",
            },
            How {
                system: "Any",
                text: "Loss that begins with load and no rise of the round trip is a policer: shape just \
                       below its rate, or buy more",
            },
            How {
                system: "Linux",
                text: "Shape the sender below the policer: `tc qdisc replace dev DEV root cake bandwidth \
                       {rate_mbit}Mbit`",
            },
            How {
                system: "Linux",
                text: "A network card ring that overflows: `ethtool -G DEV rx 4096`; duplex and optics \
                       errors: `ethtool DEV`",
            },
        ],
    },
    FixInfo {
        fix: FixId::CongestionControl,
        id: "congestion_control",
        place: Place::Writer,
        unless: &[Unless::SameHost],
        title: "Choose another congestion control",
        how: &[
            How {
                system: "Linux",
                text: "One destination: `ip route change PREFIX via GATEWAY dev DEV congctl bbr` on the \
                       sending host; with 1 % loss at 20 ms 5 MB took 1.0 s instead of 6.6 s; BBR v1 takes \
                       more than its share from others and may raise loss",
            },
            How {
                system: "Linux",
                text: "One program: setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"bbr\", 3); the host: \
                       `sysctl -w net.ipv4.tcp_congestion_control=bbr`",
            },
            How {
                system: "ECN",
                text: "Where nothing was lost and Wireshark's `tcp.flags.cwr == 1` finds segments, a queue on the way \
                       marks packets instead of dropping them: look for it (`tc -s qdisc`: ecn_mark), or try \
                       without (`sysctl -w net.ipv4.tcp_ecn=0` at the sender)",
            },
            How {
                system: "Windows",
                text: "`netsh int tcp set supplemental template=internet congestionprovider=cubic`",
            },
            How {
                system: "Linux",
                text: "Where a cap or BBR paces too low: look for SO_MAX_PACING_RATE in the program and for \
                       `maxrate` in `tc qdisc show`; `ip route change PREFIX via GATEWAY dev DEV congctl cubic`",
            },
        ],
    },
    FixInfo {
        fix: FixId::HostLoad,
        id: "host_load",
        place: Place::Host,
        unless: &[],
        title: "Take the delay out of the host",
        how: &[
            How {
                system: "Linux",
                text: "CPU quota: nr_throttled in the cgroup's cpu.stat; raise cpu.max or run fewer threads",
            },
            How {
                system: "Linux",
                text: "Scheduler: `perf sched timehist -p PID`; softirq: second and third column of \
                       /proc/net/softnet_stat, `mpstat -P ALL 1`; spread with RSS or RPS",
            },
            How {
                system: "Linux",
                text: "Interrupt moderation: `ethtool -c DEV`, then `ethtool -C DEV adaptive-rx on` or a \
                       lower rx-usecs",
            },
            How {
                system: "Linux",
                text: "Queue in the host: `tc -s qdisc` backlog; `tc qdisc replace dev DEV root fq`; \
                       virtual machines: steal in `vmstat 1`",
            },
        ],
    },
    FixInfo {
        fix: FixId::RtoMin,
        id: "rto_min",
        place: Place::Writer,
        unless: &[],
        title: "Lower the minimum retransmission timeout",
        how: &[
            How {
                system: "Linux",
                text: "`ip route change PREFIX via GATEWAY dev DEV rto_min 50ms` on the sending host, for \
                       nearby peers only; stay above the peer's delayed ACK (40 ms on Linux) or \
                       retransmissions become needless",
            },
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_rto_min_us=50000` (6.11 and later): for all connections of \
                       the namespace",
            },
            How { system: "Windows", text: "Set-NetTCPSetting -SettingName DatacenterCustom -MinRtoMs 50" },
        ],
    },
    FixInfo {
        fix: FixId::ThinStreams,
        id: "thin_streams",
        place: Place::Writer,
        unless: &[],
        title: "Retry small streams without doubling the timeout",
        how: &[
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof one): with fewer \
                       than 4 packets out the first 6 timeouts do not double",
            },
            How { system: "Linux", text: "`sysctl -w net.ipv4.tcp_thin_linear_timeouts=1`: for the host" },
            How {
                system: "Any",
                text: "A second attempt on another connection after the usual time (hedged request) beats \
                       any timer, if the request may run twice",
            },
        ],
    },
    FixInfo {
        fix: FixId::FixReordering,
        id: "fix_reordering",
        place: Place::Path,
        unless: &[Unless::SameHost],
        title: "Keep the packets of a connection on one way",
        how: &[
            How {
                system: "Linux",
                text: "Bonding: mode 802.3ad or balance-xor with xmit_hash_policy=layer3+4, never \
                       balance-rr",
            },
            How {
                system: "Any",
                text: "Equal-cost paths: balance by flow, not by packet; tunnels: hash on the inner header",
            },
            How {
                system: "Linux",
                text: "Until then: `sysctl -w net.ipv4.tcp_reordering=10`, which makes recovery start later \
                       (and real loss cost more)",
            },
        ],
    },
    FixInfo {
        fix: FixId::ClampMss,
        id: "clamp_mss",
        place: Place::Path,
        unless: &[],
        title: "Clamp the MSS to what the path carries",
        how: &[
            How {
                system: "Linux",
                text: "On the router or tunnel end: `nft add rule inet filter forward tcp flags syn tcp \
                       option maxseg size set rt mtu` (iptables: -t mangle -A FORWARD -p tcp --tcp-flags \
                       SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu)",
            },
            How {
                system: "Any",
                text: "Let ICMP \"fragmentation needed\" (type 3 code 4) and ICMPv6 \"packet too big\" \
                       (type 2) through: the clean repair",
            },
            How {
                system: "Linux",
                text: "On one host, the one that gets the large packets: `ip route change PREFIX via GATEWAY dev DEV \
                       advmss 1360`, or the interface's MTU at the tunnel's value",
            },
            How { system: "HAProxy", text: "`bind :443 mss 1360`" },
            How {
                system: "Any",
                text: "If a clamp is there already and too low: set it to the path MTU less 40 (IPv4) or 60 \
                       (IPv6); it was {mss}",
            },
        ],
    },
    FixInfo {
        fix: FixId::MtuProbing,
        id: "mtu_probing",
        place: Place::Writer,
        unless: &[],
        title: "Let TCP find the packet size by itself",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_mtu_probing=1`: after some timeouts falls to tcp_base_mss \
                       (1024); the first stall of seconds remains, so it is a net, not a repair",
            },
            How {
                system: "FreeBSD, macOS",
                text: "`sysctl net.inet.tcp.pmtud_blackhole_detection=1` (default 0 on FreeBSD, 1 on macOS)",
            },
            How {
                system: "Windows",
                text: "Path black-hole detection is a registry matter (EnablePMTUBHDetect): better lower \
                       the interface: `netsh interface ipv4 set subinterface \"Ethernet\" mtu=1400 \
                       store=persistent`",
            },
        ],
    },
    FixInfo {
        fix: FixId::FasterLink,
        id: "faster_link",
        place: Place::Path,
        unless: &[Unless::SameHost],
        title: "Get a faster link, or move the bytes less often",
        how: &[
            How {
                system: "Any",
                text: "The bottleneck gave {rate} and was busy: no TCP setting adds to that (a prediction is for twice the rate)",
            },
            How {
                system: "Any",
                text: "Cache near the reader, compress, send only differences (rsync, ETag, delta), or move \
                       the transfer to a quiet hour",
            },
            How {
                system: "Any",
                text: "Check that the link is what was bought: `ethtool DEV` (100 instead of 1000 Mbit/s), \
                       a rate limit of the cloud instance, a shaper on the sending host (`tc -s qdisc show`: tbf, \
                       htb, cake, fq with `maxrate`; in Kubernetes `kubernetes.io/egress-bandwidth`)",
            },
        ],
    },
    FixInfo {
        fix: FixId::QueueManagement,
        id: "queue_management",
        place: Place::Path,
        unless: &[],
        title: "Keep the queue at the bottleneck short",
        how: &[
            How {
                system: "Linux",
                text: "On the box before the slow link: `tc qdisc replace dev DEV root cake bandwidth \
                       {rate_mbit}Mbit`, the figure a little below the link, so that the queue is there",
            },
            How {
                system: "Linux",
                text: "`tc qdisc replace dev DEV root fq_codel` on the device that owns the slow link",
            },
            How {
                system: "Any",
                text: "Limit the bulk transfers that fill it (rsync --bwlimit, SO_MAX_PACING_RATE, a backup \
                       window) or give them a lower class",
            },
            How {
                system: "Linux",
                text: "ECN with an AQM that marks: `sysctl -w net.ipv4.tcp_ecn=1` at both ends",
            },
        ],
    },
    FixInfo {
        fix: FixId::FewerRoundTrips,
        id: "fewer_round_trips",
        place: Place::Client,
        unless: &[Unless::OneRequest, Unless::NoTrip],
        title: "Ask for more with each round trip",
        how: &[
            How {
                system: "Any",
                text: "{count} serial round trips of {rtt} each: batch, pipeline or run them at the \
                       same time",
            },
            How {
                system: "Any",
                text: "Send the next request before the answer is there (pipelining, several connections) where it does \
                       not depend on that; ask for many things at once where the protocol can (a batch, a list; in \
                       SQL a join or `IN` instead of a query for each row)",
            },
            How {
                system: "MySQL",
                text: "Reading row by row (the \"n + 1\" of object mappers): one query with a join or `IN (...)`; writing: \
                       Connector/J rewriteBatchedStatements=true with addBatch(), cachePrepStmts=true with \
                       useServerPrepStmts=true; with useCursorFetch=true a larger setFetchSize",
            },
            How {
                system: "PostgreSQL",
                text: "Reading row by row (the \"n + 1\" of object mappers): one query with a join or `= ANY (...)`; libpq \
                       pipeline mode (PQenterPipelineMode); pgjdbc reWriteBatchedInserts=true and \
                       defaultRowFetchSize=1000 (small fetch sizes cost a round trip each)",
            },
            How {
                system: "Redis",
                text: "Pipelining, MGET and MSET, or a Lua script; client-side pipelines of some hundred \
                       commands",
            },
            How { system: "HTTP", text: "HTTP/2 with concurrent streams, or a batch endpoint; preconnect" },
            How {
                system: "OpenSSH",
                text: "Many small files: `tar c DIR | ssh HOST tar x` instead of sftp or scp, or several sftp side by side; one \
                       large file over a long path is held by the channel's window of 2 MiB; keys typed one by one \
                       wait for their echo (mosh shows them at once)",
            },
        ],
    },
    FixInfo {
        fix: FixId::UserTimeout,
        id: "user_timeout",
        place: Place::Writer,
        unless: &[],
        title: "Notice a dead peer sooner",
        how: &[
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms) with as many milliseconds as the caller \
                       can wait (30000 is usual; it ends no silence that is shorter): covers unacknowledged data and \
                       closed windows; with keepalive also idle connections",
            },
            How {
                system: "Linux",
                text: "SO_KEEPALIVE with TCP_KEEPIDLE 60, TCP_KEEPINTVL 10, TCP_KEEPCNT 6 (defaults 7200, \
                       75, 9); shorter than the idle time of firewalls and NAT",
            },
            How {
                system: "Linux",
                text: "For the host: `sysctl -w net.ipv4.tcp_retries2=8` (about 100 s instead of 15 \
                       minutes)",
            },
            How {
                system: "nginx, HAProxy",
                text: "nginx `listen 80 so_keepalive=60:10:6;` and proxy_socket_keepalive on; HAProxy \
                       `tcp-ut 30s` on bind and server lines",
            },
            How {
                system: "PostgreSQL",
                text: "libpq and server: tcp_user_timeout=30000, keepalives_idle=60 (server: \
                       tcp_keepalives_idle); pgjdbc socketTimeout=60, tcpKeepAlive=true",
            },
            How {
                system: "MySQL, Redis",
                text: "Connector/J socketTimeout=60000; Redis tcp-keepalive 60 (default 300)",
            },
            How {
                system: "Go, Java",
                text: "Go: net.Dialer KeepAliveConfig (1.23) and a deadline on each read; Java: \
                       setSoTimeout() and ExtendedSocketOptions.TCP_KEEPIDLE; Netty: \
                       EpollChannelOption.TCP_USER_TIMEOUT",
            },
            How { system: "OpenSSH", text: "ServerAliveInterval 15 and ServerAliveCountMax 4" },
        ],
    },
];
