//! What makes opening a connection cheaper, or possible.

use super::{FixId, FixInfo, How, Place, Unless};

/// In the order of [`FixId`].
pub(super) const ROWS: &[FixInfo] = &[
    FixInfo {
        fix: FixId::ReuseConnections,
        id: "reuse_connections",
        place: Place::Client,
        unless: &[],
        title: "Keep connections open and use them again",
        how: &[
            How {
                system: "Any",
                text: "One pool for the life of the process: the setup, TLS and slow start are paid once, \
                       not for each of the {count} connections",
            },
            How {
                system: "Any",
                text: "Keep the pool's idle time below the server's (and the firewall's), else the first \
                       request after a pause meets a reset",
            },
            How {
                system: "Python",
                text: "requests.Session() (or one urllib3.PoolManager) kept for the process; requests.get() \
                       opens a new connection each time",
            },
            How {
                system: "Go",
                text: "One http.Client for all; read each body to its end and close it; raise \
                       Transport.MaxIdleConnsPerHost (default 2) to the real concurrency",
            },
            How {
                system: "Node.js, .NET",
                text: "Node.js: an http.Agent with keepAlive true (the default agent since Node 19); .NET: \
                       one static HttpClient, PooledConnectionLifetime for DNS changes",
            },
            How {
                system: "nginx",
                text: "In the upstream block `keepalive 32;`, in the location `proxy_http_version 1.1;` and \
                       `proxy_set_header Connection \"\";`",
            },
            How {
                system: "HAProxy, Apache",
                text: "HAProxy `http-reuse safe` (the default; `always` reuses more); Apache `KeepAlive On` \
                       and no `disablereuse=On` on ProxyPass",
            },
            How {
                system: "PostgreSQL",
                text: "libpq asks for TLS in a round trip of its own: `sslmode=disable` where the server refuses it \
                       (ssl=off), `sslnegotiation=direct` (PostgreSQL 17) where it does not",
            },
            How {
                system: "Databases",
                text: "A pool in the application (HikariCP, pgxpool, SQLAlchemy) or beside the server \
                       (PgBouncer, ProxySQL)",
            },
            How {
                system: "Servers",
                text: "The server closed first: let it keep connections, nginx `keepalive_timeout 65s;` and \
                       `keepalive_requests 1000;`, Apache `KeepAlive On`, gunicorn `-k gthread --keep-alive 65`, Node.js \
                       server.keepAliveTimeout; unless the requests ask for it (`Connection: close`, as Python's \
                       urllib.request sends, or HTTP/1.0)",
            },
        ],
    },
    FixInfo {
        fix: FixId::FastOpen,
        id: "fast_open",
        place: Place::Host,
        unless: &[Unless::SameHost],
        title: "Send the first request in the SYN (TCP Fast Open)",
        how: &[
            How {
                system: "Linux",
                text: "Both ends `sysctl -w net.ipv4.tcp_fastopen=3`; server, before listen(): setsockopt(fd, \
                       IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof queue), how many may wait; client: \
                       setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one); saves one round \
                       trip from the second connection on; only for requests that may arrive twice",
            },
            How { system: "nginx", text: "`listen 443 ssl fastopen=256;`" },
            How {
                system: "HAProxy",
                text: "`bind :443 tfo`, and `tfo` on the server line towards the backend",
            },
            How { system: "libcurl", text: "CURLOPT_TCP_FASTOPEN set to 1 (curl --tcp-fastopen)" },
            How {
                system: "Any",
                text: "Some middleboxes drop a SYN with data, and Linux then turns it off for an hour and \
                       more (TcpExt TCPFastOpenBlackhole): measure before relying on it",
            },
        ],
    },
    FixInfo {
        fix: FixId::CloserServer,
        id: "closer_server",
        place: Place::Server,
        unless: &[Unless::SameHost, Unless::NoTrip],
        title: "Bring client and server nearer to each other",
        how: &[
            How {
                system: "Any",
                text: "Each round trip costs {rtt} on this path; light in fibre needs about 1 ms for \
                       every 100 km of distance, there and back",
            },
            How {
                system: "Any",
                text: "End TCP and TLS near the client (edge proxy or CDN) and keep warm connections from \
                       there to the origin",
            },
            How {
                system: "Any",
                text: "Put the caller beside the database (same zone), or read from a replica that is near",
            },
        ],
    },
    FixInfo {
        fix: FixId::Tls13,
        id: "tls13",
        place: Place::Server,
        unless: &[],
        title: "Offer TLS 1.3: one round trip instead of two",
        how: &[
            How { system: "nginx", text: "`ssl_protocols TLSv1.2 TLSv1.3;` (OpenSSL 1.1.1 or newer)" },
            How { system: "Apache", text: "`SSLProtocol -all +TLSv1.2 +TLSv1.3`" },
            How {
                system: "HAProxy",
                text: "`ssl-default-bind-options ssl-min-ver TLSv1.2` with no ssl-max-ver below TLSv1.3",
            },
            How {
                system: "MySQL, PostgreSQL",
                text: "MySQL `tls_version=TLSv1.2,TLSv1.3`; PostgreSQL 17 with libpq \
                       `sslnegotiation=direct` saves the SSLRequest round trip as well",
            },
            How {
                system: "Java, Go, .NET",
                text: "On by default since JDK 11 and Go 1.12; .NET takes what the system offers (Windows \
                       Server 2022 or Windows 11 and later)",
            },
        ],
    },
    FixInfo {
        fix: FixId::TlsResumption,
        id: "tls_resumption",
        place: Place::Server,
        unless: &[],
        title: "Let clients resume TLS sessions",
        how: &[
            How {
                system: "nginx",
                text: "`ssl_session_cache shared:SSL:10m; ssl_session_timeout 1h; ssl_session_tickets on;`; \
                       several servers need one shared ssl_session_ticket_key, renewed often",
            },
            How { system: "Apache", text: "`SSLSessionCache shmcb:logs/ssl_scache(512000)`" },
            How {
                system: "HAProxy",
                text: "`tune.ssl.cachesize` and `tune.ssl.lifetime` large enough; no `no-tls-tickets` on \
                       the bind line",
            },
            How {
                system: "Go",
                text: "Client: tls.Config.ClientSessionCache = tls.NewLRUClientSessionCache(64); without it \
                       each connection makes a full handshake",
            },
            How {
                system: "libcurl",
                text: "Use the same easy or multi handle again, or share CURL_LOCK_DATA_SSL_SESSION between \
                       handles",
            },
            How {
                system: "Any",
                text: "In TLS 1.3 resumption saves certificates and computation, not a round trip; only \
                       early data (0-RTT, nginx `ssl_early_data on`) does, and early data can be replayed",
            },
        ],
    },
    FixInfo {
        fix: FixId::ListenBacklog,
        id: "listen_backlog",
        place: Place::Server,
        unless: &[],
        title: "Give the listener a longer queue",
        how: &[
            How {
                system: "Linux",
                text: "Both numbers: listen(fd, 4096) in the program and `sysctl -w \
                       net.core.somaxconn=4096`; the smaller counts, for the SYN queue too; restart the \
                       listener (somaxconn was 128 before Linux 5.4)",
            },
            How {
                system: "Linux",
                text: "Check: Send-Q of `ss -ltn 'sport = :{port}'` is the limit that holds, and `nstat -az \
                       TcpExtListenOverflows` must stop rising",
            },
            How {
                system: "nginx, Apache",
                text: "nginx `listen 80 backlog=4096;` (default 511); Apache `ListenBacklog 4096` (default \
                       511)",
            },
            How {
                system: "HAProxy, Envoy",
                text: "HAProxy `backlog 4096` in the frontend (default: maxconn); Envoy listener \
                       tcp_backlog_size (default: somaxconn)",
            },
            How {
                system: "Databases",
                text: "MySQL and MariaDB `back_log=1000`; PostgreSQL takes twice its backends \
                       (max_connections and workers); Redis `tcp-backlog 4096` (default 511)",
            },
            How {
                system: "Python",
                text: "socketserver and http.server ask for 5 only: set request_queue_size = 1024 on the \
                       server class; asyncio: backlog=1024 in start_server (default 100)",
            },
            How {
                system: "Java, Netty",
                text: "new ServerSocket(port, 1024) (default 50); Netty ChannelOption.SO_BACKLOG",
            },
            How {
                system: "Node.js, .NET, Go",
                text: "Node.js server.listen with backlog 4096 (default 511); Kestrel \
                       SocketTransportOptions.Backlog (default 512); Go reads somaxconn when it starts, so \
                       raise that and restart",
            },
        ],
    },
    FixInfo {
        fix: FixId::Firewall,
        id: "firewall",
        place: Place::Path,
        unless: &[],
        title: "Find what drops the SYN",
        how: &[
            How {
                system: "Linux",
                text: "`nft list ruleset` or `iptables -vnL`: a DROP whose counter rises with the repeats; \
                       use reject with tcp reset, so that clients fail at once",
            },
            How {
                system: "Linux",
                text: "Connection tracking full: compare `sysctl net.netfilter.nf_conntrack_count` with \
                       nf_conntrack_max; \"nf_conntrack: table full\" in dmesg",
            },
            How {
                system: "Linux",
                text: "Capture at the server as well: `tcpdump -ni any 'tcp port {port} and tcp[tcpflags] & \
                       tcp-syn != 0'`: SYN seen means the host dropped it, not seen means the path did",
            },
            How {
                system: "Linux",
                text: "`nstat -az TcpExtListenDrops TcpExtTCPTimeWaitOverflow TcpExtPAWSTimewait \
                       TcpExtTCPReqQFullDrop` while it happens",
            },
            How {
                system: "Cloud",
                text: "Security group, network ACL and load balancer target rules for the port; NAT gateway \
                       port limits",
            },
        ],
    },
    FixInfo {
        fix: FixId::AcceptFaster,
        id: "accept_faster",
        place: Place::Server,
        unless: &[],
        title: "Accept connections sooner",
        how: &[
            How {
                system: "Any",
                text: "Accept in a loop until EAGAIN in a thread that does nothing else; no TLS, \
                       authentication, DNS or file work before the next accept()",
            },
            How {
                system: "Linux",
                text: "Several listeners on one port with SO_REUSEPORT, one for each worker (a stalled \
                       worker then delays its own share)",
            },
            How {
                system: "nginx",
                text: "`listen 80 reuseport;` and worker_processes auto; blocking work out of the worker \
                       (`aio threads;`)",
            },
            How {
                system: "Apache, PHP-FPM",
                text: "A full queue means that all workers are busy: MaxRequestWorkers, or pm.max_children \
                       and listen.backlog; shorter KeepAliveTimeout with the prefork MPM",
            },
            How {
                system: "HAProxy",
                text: "maxconn reached holds accept() back: raise it (global and frontend) or shed load \
                       earlier",
            },
        ],
    },
    FixInfo {
        fix: FixId::AbortOnOverflow,
        id: "abort_on_overflow",
        place: Place::Server,
        unless: &[],
        title: "Refuse at once instead of letting clients wait",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_abort_on_overflow=1`: only if clients retry elsewhere; it \
                       acts when the final ACK meets a full queue, never when the SYN does, and not for \
                       connections made from SYN cookies",
            },
            How {
                system: "Any",
                text: "Better: limit in the application (answer 503 or close after accept), so that the \
                       queue never fills",
            },
        ],
    },
    FixInfo {
        fix: FixId::SynCookies,
        id: "syn_cookies",
        place: Place::Server,
        unless: &[],
        title: "Turn SYN cookies on",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_syncookies=1` (the default) and keep \
                       `net.ipv4.tcp_timestamps=1`: without timestamps a cookie loses window scaling and \
                       SACK",
            },
            How { system: "FreeBSD", text: "`sysctl net.inet.tcp.syncookies=1` (the default)" },
        ],
    },
    FixInfo {
        fix: FixId::StartListener,
        id: "start_listener",
        place: Place::Server,
        unless: &[],
        title: "Have a process listen on that address and port",
        how: &[
            How {
                system: "Linux",
                text: "`ss -ltnp 'sport = :{port}'` on the server: nothing there means not started; \
                       127.0.0.1 there means bound to loopback only",
            },
            How {
                system: "Linux",
                text: "No listener on the address that the client used, or a firewall rule that rejects \
                       with tcp reset: compare `ss -ltn` with the address in the capture",
            },
            How { system: "Windows", text: "Get-NetTCPConnection -State Listen -LocalPort {port}" },
            How {
                system: "Any",
                text: "During restarts: hand the socket over (systemd socket activation, nginx reload) or \
                       take the server out of the balancer first",
            },
        ],
    },
    FixInfo {
        fix: FixId::PortRange,
        id: "port_range",
        place: Place::Client,
        unless: &[],
        title: "Widen the range of local ports",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.ip_local_port_range=\"10000 65000\"`; connect() becomes slow \
                       from half of the range to one destination on, so plan for twice the need; keep \
                       service ports out with ip_local_reserved_ports",
            },
            How {
                system: "Linux",
                text: "A second source or destination address doubles the ports: only the four-tuple must \
                       be unique; nginx `proxy_bind`, HAProxy `source` on the server line",
            },
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) before a \
                       bind() to a source address",
            },
            How { system: "Windows", text: "`netsh int ipv4 set dynamicport tcp start=10000 num=55000`" },
            How { system: "FreeBSD, macOS", text: "`sysctl net.inet.ip.portrange.first=10000`" },
        ],
    },
    FixInfo {
        fix: FixId::TwReuse,
        id: "tw_reuse",
        place: Place::Client,
        unless: &[],
        title: "Let connect() reuse ports in TIME_WAIT",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_tw_reuse=1` on the client (default 2: loopback only); needs \
                       timestamps at both ends; a port is free again after 1 s",
            },
            How {
                system: "Any",
                text: "Better: do not be the end that closes first, or do not close (connection pool)",
            },
        ],
    },
];
