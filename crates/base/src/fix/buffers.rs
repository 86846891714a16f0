//! Sizes: buffers, windows, segments, the first flight.

use super::{FixId, FixInfo, How, Place, Unless};

/// In the order of [`FixId`].
pub(super) const ROWS: &[FixInfo] = &[
    FixInfo {
        fix: FixId::BiggerWindow,
        id: "bigger_window",
        place: Place::Writer,
        unless: &[],
        title: "Let the sender have more than two segments in flight",
        how: &[
            How {
                system: "Any",
                text: "Remove SO_SNDBUF at the sender and SO_RCVBUF at the receiver: with buffers of one or \
                       two segments ({mss} bytes each) each pair waits for a delayed ACK",
            },
            How {
                system: "Any",
                text: "If a buffer must be set: at least four segments, and at least rate times round trip",
            },
            How {
                system: "Any",
                text: "A protocol that sends one block and waits for its answer: send the next block before \
                       (pipelining, a window of requests)",
            },
        ],
    },
    FixInfo {
        fix: FixId::UnsetRcvbuf,
        id: "unset_rcvbuf",
        place: Place::Reader,
        unless: &[Unless::WindowHadRoom],
        title: "Do not set SO_RCVBUF: let the kernel size it",
        how: &[
            How {
                system: "Any",
                text: "Delete the setsockopt(SO_RCVBUF): it turns automatic sizing off for that socket; the \
                       window was {have_bytes} bytes, this path needs {need_bytes}",
            },
            How {
                system: "Any",
                text: "If it must be set: before listen() or connect() (the window scale is chosen in the \
                       SYN), at least twice rate times round trip, and raise net.core.rmem_max, which \
                       clips it silently",
            },
            How {
                system: "nginx, HAProxy",
                text: "nginx: no `rcvbuf=` on the listen line; HAProxy: no `tune.rcvbuf.client` or \
                       `tune.rcvbuf.server`",
            },
            How {
                system: "Java",
                text: "No setReceiveBufferSize(); Netty: no ChannelOption.SO_RCVBUF; Apache Kafka: \
                       receive.buffer.bytes=-1, socket.receive.buffer.bytes=-1",
            },
            How {
                system: "Databases",
                text: "MySQL Connector/J tcpRcvBuf=0 (default); pgjdbc receiveBufferSize=-1 (default)",
            },
            How { system: "Go, .NET", text: "Go: no SetReadBuffer(); .NET: no Socket.ReceiveBufferSize" },
            How { system: "Apache", text: "`ReceiveBufferSize 0` (default)" },
        ],
    },
    FixInfo {
        fix: FixId::SmallerMtu,
        id: "smaller_mtu",
        place: Place::Host,
        unless: &[],
        title: "Make the segment small against the buffer",
        how: &[
            How {
                system: "Any",
                text: "Rather remove the small SO_RCVBUF or SO_SNDBUF; over loopback a Unix socket has no \
                       segments at all",
            },
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &n, sizeof n) with n = 1448 before connect() \
                       or listen()",
            },
            How {
                system: "Linux",
                text: "`ip link set dev lo mtu 16384`: affects every local connection and their throughput",
            },
            How { system: "HAProxy", text: "`bind :443 mss 1448`" },
        ],
    },
    FixInfo {
        fix: FixId::UnsetSndbuf,
        id: "unset_sndbuf",
        place: Place::Writer,
        unless: &[Unless::BufferHadRoom, Unless::TooFewBytes],
        title: "Do not set SO_SNDBUF: let the kernel size it",
        how: &[
            How {
                system: "Any",
                text: "Delete the setsockopt(SO_SNDBUF): it turns automatic sizing off for that socket; \
                       about {have_bytes} bytes were in flight, this path needs {need_bytes}",
            },
            How {
                system: "Any",
                text: "If it must be set: at least twice rate times round trip, and raise \
                       net.core.wmem_max, which clips it silently (getsockopt shows the doubled value)",
            },
            How {
                system: "nginx, HAProxy",
                text: "nginx: no `sndbuf=` on the listen line; HAProxy: no `tune.sndbuf.client` or \
                       `tune.sndbuf.server`",
            },
            How { system: "Apache", text: "`SendBufferSize 0` (default)" },
            How {
                system: "Java",
                text: "No setSendBufferSize(); Netty: no ChannelOption.SO_SNDBUF; Apache Kafka: \
                       send.buffer.bytes=-1, socket.send.buffer.bytes=-1",
            },
            How {
                system: "Databases",
                text: "MySQL Connector/J tcpSndBuf=0 (default); pgjdbc sendBufferSize=-1 (default)",
            },
            How {
                system: "Windows",
                text: "Keep more than one overlapped send outstanding, and follow \
                       SIO_IDEAL_SEND_BACKLOG_QUERY; SO_SNDBUF 0 with one blocking send waits for the ACK \
                       of each",
            },
            How { system: "Go, .NET", text: "Go: no SetWriteBuffer(); .NET: no Socket.SendBufferSize" },
        ],
    },
    FixInfo {
        fix: FixId::NotsentLowat,
        id: "notsent_lowat",
        place: Place::Writer,
        unless: &[],
        title: "Keep unsent data in the program: TCP_NOTSENT_LOWAT",
        how: &[
            How {
                system: "Any",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &n, sizeof n) with n = 16384 to 131072: poll() and \
                       blocking writes wait until less is unsent, so that what is urgent overtakes what is not in the \
                       program; throughput stays, as what is in flight does not count",
            },
            How {
                system: "Any",
                text: "Or what is urgent and what is bulk on connections of their own; a smaller SO_SNDBUF helps, too, but \
                       limits what is in flight",
            },
            How { system: "Linux", text: "For all sockets: sysctl -w net.ipv4.tcp_notsent_lowat=131072" },
            How { system: "Java", text: "Netty: EpollChannelOption.TCP_NOTSENT_LOWAT" },
        ],
    },
    FixInfo {
        fix: FixId::Wmem,
        id: "wmem",
        place: Place::Writer,
        unless: &[Unless::BufferHadRoom, Unless::BelowDefault],
        title: "Raise the limit of the automatic send buffer",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_wmem=\"4096 16384 16777216\"`: the third value is the limit, \
                       about half of it payload; it does nothing where the program sets SO_SNDBUF (whose limit is \
                       net.core.wmem_max)",
            },
            How {
                system: "Linux",
                text: "Needed here: a third value of {need_buffer} bytes or more, twice the {need_bytes} that this \
                       path needs in flight, in whole MiB",
            },
            How {
                system: "FreeBSD",
                text: "`sysctl kern.ipc.maxsockbuf=16777216 net.inet.tcp.sendbuf_max=16777216`",
            },
            How {
                system: "macOS",
                text: "`sysctl kern.ipc.maxsockbuf=16777216 net.inet.tcp.autosndbufmax=16777216`",
            },
        ],
    },
    FixInfo {
        fix: FixId::Rmem,
        id: "rmem",
        place: Place::Reader,
        unless: &[Unless::WindowHadRoom],
        title: "Raise the limit of the automatic receive window",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_rmem=\"4096 131072 33554432\"`: the third value is the \
                       limit, a half to two thirds of it becomes window; from Linux 6.16 on that is the default with \
                       4 GiB of memory or more (6291456 before; `sysctl net.ipv4.tcp_rmem` shows it): then only more \
                       helps; for new connections (the scale is chosen in the SYN); it does nothing where the program \
                       sets SO_RCVBUF",
            },
            How {
                system: "Linux",
                text: "Needed here: a third value of {need_buffer} bytes or more, twice the {need_bytes} that this \
                       path needs in flight, in whole MiB",
            },
            How {
                system: "Linux",
                text: "`sysctl net.ipv4.tcp_moderate_rcvbuf` must be 1; net.core.rmem_max matters only for \
                       an explicit SO_RCVBUF",
            },
            How {
                system: "Linux",
                text: "The window was small at the start only: the second value is what it begins with, \
                       `sysctl -w net.ipv4.tcp_rmem=\"4096 1048576 33554432\"`, with `ip route change PREFIX via \
                       GATEWAY dev DEV initrwnd 200` on the receiving host",
            },
            How {
                system: "Windows",
                text: "`netsh int tcp set global autotuninglevel=normal`; Get-NetTCPSetting shows \
                       AutoTuningLevelEffective",
            },
            How {
                system: "FreeBSD",
                text: "`sysctl kern.ipc.maxsockbuf=33554432 net.inet.tcp.recvbuf_max=33554432`",
            },
            How {
                system: "macOS",
                text: "`sysctl kern.ipc.maxsockbuf=33554432 net.inet.tcp.autorcvbufmax=33554432`",
            },
        ],
    },
    FixInfo {
        fix: FixId::MemoryLimit,
        id: "memory_limit",
        place: Place::Host,
        unless: &[],
        title: "Give TCP more memory",
        how: &[
            How {
                system: "Linux",
                text: "`cat /proc/net/sockstat` (TCP: mem, in pages) against `sysctl net.ipv4.tcp_mem`: \
                       raise tcp_mem when mem is near its second value",
            },
            How {
                system: "Linux",
                text: "In a container: the sock line of memory.stat against memory.max of the cgroup; raise \
                       memory.max",
            },
            How {
                system: "Linux",
                text: "`ss -tim` sorted by skmem r and w: a few sockets with unread or unsent megabytes are \
                       the usual reason; fix their reader",
            },
        ],
    },
    FixInfo {
        fix: FixId::Initcwnd,
        id: "initcwnd",
        place: Place::Writer,
        unless: &[],
        title: "Start with a larger congestion window",
        how: &[
            How {
                system: "Linux",
                text: "`ip route change default via GATEWAY dev DEV initcwnd {segments}` on the sending \
                       host: the message then goes in one flight; a burst that a thin link may drop, so \
                       better on a route for known peers",
            },
            How {
                system: "Linux",
                text: "`ip route change PREFIX via GATEWAY dev DEV initcwnd {most_segments}` on the sending host \
                       (default 10; where a gain is predicted it is for this), and on the receiver's route as large an \
                       initrwnd; a burst that a thin link may drop: for known peers, and begin with 20",
            },
            How {
                system: "Linux",
                text: "`ip route change PREFIX via GATEWAY dev DEV initcwnd 20` (default 10); the \
                       receiver's first window must allow it too: initrwnd on its route",
            },
            How {
                system: "Windows",
                text: "Set-NetTCPSetting -SettingName InternetCustom -InitialCongestionWindowMss 20",
            },
            How { system: "FreeBSD", text: "`sysctl net.inet.tcp.initcwnd_segments=20`" },
        ],
    },
    FixInfo {
        fix: FixId::SmallerResponse,
        id: "smaller_response",
        place: Place::Server,
        unless: &[Unless::SameHost],
        title: "Send fewer bytes",
        how: &[
            How {
                system: "Uploads",
                text: "Send them compressed: `Content-Encoding: gzip` where the server takes it, `rsync -z`, `scp -C`; \
                       or only what has changed (rsync, resumable uploads)",
            },
            How {
                system: "nginx",
                text: "`gzip on; gzip_types application/json text/css application/javascript;` (text/html \
                       is always included)",
            },
            How {
                system: "HAProxy, Apache",
                text: "HAProxy `compression algo gzip` with `compression type application/json`; Apache \
                       `AddOutputFilterByType DEFLATE application/json`",
            },
            How {
                system: "Any",
                text: "Ten segments (about 14 kB) fit the first flight, 30 fit two, 70 fit three: drop \
                       fields, page results, shrink headers and cookies to save a whole round trip",
            },
            How {
                system: "Databases",
                text: "Only the columns and rows needed; MySQL useCompression=true on slow links",
            },
        ],
    },
    FixInfo {
        fix: FixId::LargerMtu,
        id: "larger_mtu",
        place: Place::Path,
        unless: &[Unless::SameHost],
        title: "Use larger packets where the whole path carries them",
        how: &[
            How {
                system: "Linux",
                text: "`ip link set dev DEV mtu 9000` at both ends and on every switch and tunnel between; \
                       prove it first with `ping -M do -s 8972 {server}`",
            },
            How {
                system: "Linux",
                text: "Find who lowers it: `tracepath -n` to the peer shows the MTU at each hop; `ip route \
                       get` a cached one",
            },
            How {
                system: "Linux",
                text: "A tunnel or container network with a low MTU: set it to the outer MTU less the \
                       tunnel's overhead (WireGuard 80, VXLAN 50 bytes)",
            },
            How {
                system: "Windows",
                text: "`netsh interface ipv4 set subinterface \"Ethernet\" mtu=9000 store=persistent`",
            },
        ],
    },
    FixInfo {
        fix: FixId::NoIdleRestart,
        id: "no_idle_restart",
        place: Place::Writer,
        unless: &[],
        title: "Keep the congestion window over pauses",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_slow_start_after_idle=0` on the sending host (in its network \
                       namespace); acts at once on open connections; the first flight after a pause is \
                       then a burst of a whole window, of which a queue that is shorter drops a part: measure it",
            },
            How {
                system: "Docker, Kubernetes",
                text: "docker run --sysctl net.ipv4.tcp_slow_start_after_idle=0; Kubernetes: \
                       securityContext.sysctls, if the kubelet allows it (--allowed-unsafe-sysctls)",
            },
            How {
                system: "Windows",
                text: "Set-NetTCPSetting -SettingName InternetCustom -CwndRestart False (the default)",
            },
        ],
    },
    FixInfo {
        fix: FixId::WindowScaling,
        id: "window_scaling",
        place: Place::Host,
        unless: &[],
        title: "Let both ends offer window scaling",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_window_scaling=1` (default) at the end whose SYN or SYN-ACK \
                       lacks it",
            },
            How {
                system: "Linux",
                text: "Lacking only under load: SYN cookies without timestamps strip it; `sysctl -w \
                       net.ipv4.tcp_timestamps=1` and a longer listen backlog",
            },
            How { system: "Windows", text: "`netsh int tcp set global autotuninglevel=normal`" },
            How {
                system: "Path",
                text: "A firewall that strips or rewrites the option: capture on both sides of it and \
                       compare the SYN",
            },
            How { system: "FreeBSD, macOS", text: "`sysctl net.inet.tcp.rfc1323=1` (default)" },
        ],
    },
];
