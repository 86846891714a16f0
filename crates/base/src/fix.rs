/// Where a fix is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The end whose segment or write waited.
    Writer,
    /// The end that received.
    Reader,
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either host's system settings.
    Host,
    /// The path between.
    Path,
}

/// One concrete way to make a fix. `{name}` in the text is filled from the [`Figures`] of the capture; a
/// line whose figure is not known is left out, so every fix has at least one line without any.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Where it applies: `Linux`, `Windows`, `nginx`, `Go`, `Java`, ...
    pub system: &'static str,
    /// The exact setting or change.
    pub text: &'static str,
}

/// One row of the fix table.
#[derive(Clone, Copy, Debug)]
pub struct FixInfo {
    /// The fix.
    pub fix: FixId,
    /// Stable id in JSON.
    pub id: &'static str,
    /// Where it is made.
    pub place: Place,
    /// What to do, in a few words.
    pub title: &'static str,
    /// How, most common first.
    pub how: &'static [How],
}

/// Figures of a capture that fill the placeholders of [`How`].
#[derive(Clone, Debug, Default)]
pub struct Figures(pub Vec<(&'static str, String)>);

impl Figures {
    /// The text with its placeholders filled, or `None` if one of them is not known.
    pub fn fill(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            let value = &self.0.iter().find(|(name, _)| *name == &rest[open + 1..close])?.1;
            out.push_str(&rest[..open]);
            out.push_str(value);
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Something a person can do about a cause. The order is that of the table [`FIXES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "the table says what each one means")]
pub enum FixId {
    ReuseConnections,
    FastOpen,
    CloserServer,
    Tls13,
    TlsResumption,
    ListenBacklog,
    Firewall,
    AcceptFaster,
    AbortOnOverflow,
    SynCookies,
    StartListener,
    PortRange,
    TwReuse,
    Application,
    LargerWrites,
    ReadFaster,
    ApplicationWindow,
    ReadWhileWriting,
    OneWrite,
    Nodelay,
    CorkWhole,
    Quickack,
    BiggerWindow,
    Uncork,
    UnsetRcvbuf,
    SmallerMtu,
    UnsetSndbuf,
    Wmem,
    Rmem,
    MemoryLimit,
    Initcwnd,
    SmallerResponse,
    LargerMtu,
    NoIdleRestart,
    FixLoss,
    CongestionControl,
    HostLoad,
    RtoMin,
    ThinStreams,
    FixReordering,
    ClampMss,
    MtuProbing,
    FasterLink,
    QueueManagement,
    FewerRoundTrips,
    UserTimeout,
    WindowScaling,
}

impl FixId {
    /// Its row of the table.
    pub const fn info(self) -> &'static FixInfo {
        &FIXES[self as usize]
    }
}

/// The one table of fixes.
pub const FIXES: &[FixInfo] = &[
    FixInfo {
        fix: FixId::ReuseConnections,
        id: "reuse_connections",
        place: Place::Client,
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
                system: "Databases",
                text: "A pool in the application (HikariCP, pgxpool, SQLAlchemy) or beside the server \
                       (PgBouncer, ProxySQL)",
            },
        ],
    },
    FixInfo {
        fix: FixId::FastOpen,
        id: "fast_open",
        place: Place::Host,
        title: "Send the first request in the SYN (TCP Fast Open)",
        how: &[
            How {
                system: "Linux",
                text: "Both ends `sysctl -w net.ipv4.tcp_fastopen=3`; client: setsockopt(fd, IPPROTO_TCP, \
                       TCP_FASTOPEN_CONNECT, &one, sizeof one); saves one round trip from the second \
                       connection on; only for requests that may arrive twice",
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
        title: "Bring client and server nearer to each other",
        how: &[
            How {
                system: "Any",
                text: "Each round trip costs {rtt_ms} ms on this path; light in fibre needs about 1 ms for \
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
    FixInfo {
        fix: FixId::Application,
        id: "application",
        place: Place::Writer,
        title: "Look into the application, not into TCP",
        how: &[
            How {
                system: "Any",
                text: "Find the same request in the application's log or trace by time; TCP had nothing to \
                       send, so no socket option shortens this",
            },
            How {
                system: "nginx, HAProxy",
                text: "Log $request_time with $upstream_response_time in nginx, the timers Tq/Tw/Tc/Tr/Tt \
                       (%Tr and so on) in HAProxy: they say which hop took it",
            },
            How {
                system: "Linux",
                text: "`strace -f -tt -T -e trace=network,read,write,futex -p PID` or `perf trace -p PID` \
                       during one request; off-CPU profile if it sleeps",
            },
            How {
                system: "Databases",
                text: "MySQL and MariaDB slow log with long_query_time=0.1; PostgreSQL \
                       log_min_duration_statement = 100 and auto_explain",
            },
            How {
                system: "libcurl",
                text: "A pause of 1 s before a body is the wait for 100-continue: send `Expect:` empty or \
                       set CURLOPT_EXPECT_100_TIMEOUT_MS",
            },
            How {
                system: "Any",
                text: "Reverse name lookups at connect (sshd `UseDNS no`, MySQL `skip_name_resolve`), \
                       garbage collection and lock waits are the usual hidden pauses",
            },
        ],
    },
    FixInfo {
        fix: FixId::LargerWrites,
        id: "larger_writes",
        place: Place::Writer,
        title: "Have the next piece ready before the socket is free",
        how: &[
            How {
                system: "Any",
                text: "Read ahead: fill the next buffer (256 KiB or more) while the last one is being sent, \
                       in a second thread or with asynchronous I/O",
            },
            How {
                system: "Any",
                text: "sendfile() or splice() (Java FileChannel.transferTo, Go io.Copy from an os.File, \
                       nginx `sendfile on;`) instead of small read and write pairs",
            },
            How {
                system: "nginx",
                text: "Slow upstream: `proxy_buffers 16 64k;` smooths it; `output_buffers 2 256k;` for \
                       files without sendfile",
            },
            How {
                system: "libcurl",
                text: "CURLOPT_UPLOAD_BUFFERSIZE 524288 (default 64 KiB), or a read callback that fills its \
                       whole buffer",
            },
            How { system: "OpenSSH", text: "`sftp -B 262144 -R 128`: more requests in flight" },
        ],
    },
    FixInfo {
        fix: FixId::ReadFaster,
        id: "read_faster",
        place: Place::Reader,
        title: "Read from the socket as the data comes",
        how: &[
            How {
                system: "Any",
                text: "Read in a thread of its own into a queue and process from there; a larger SO_RCVBUF \
                       only moves the stall",
            },
            How {
                system: "Linux",
                text: "Proof on the reading host: Recv-Q of `ss -tn` stays above 0 and `nstat -az \
                       TcpExtTCPToZeroWindowAdv` rises",
            },
            How {
                system: "Databases",
                text: "The client fetches a row, works, fetches the next: take the result whole \
                       (mysql_store_result, cursor.fetchall()) or process in another thread",
            },
            How {
                system: "nginx",
                text: "`proxy_buffering on;` with large proxy_buffers takes the answer off the upstream \
                       although the client is slow",
            },
            How {
                system: "Java, Go, Node.js",
                text: "GC pauses (-Xlog:gc), a blocked event loop, or a paused stream (Node.js: handlers of \
                       'data' that wait; Netty: setAutoRead(false))",
            },
        ],
    },
    FixInfo {
        fix: FixId::ApplicationWindow,
        id: "application_window",
        place: Place::Reader,
        title: "Enlarge the flow-control window above TCP",
        how: &[
            How {
                system: "gRPC (Go)",
                text: "grpc.WithInitialWindowSize(n) and grpc.WithInitialConnWindowSize(n) at the receiving \
                       end (server: grpc.InitialWindowSize), n at least {need_bytes}; setting them turns \
                       the automatic window off",
            },
            How {
                system: "gRPC (Java, C++)",
                text: "Java: NettyChannelBuilder.initialFlowControlWindow(n) keeps the automatic window, \
                       flowControlWindow(n) fixes it; C core: grpc.http2.lookahead_bytes, \
                       grpc.http2.bdp_probe=1",
            },
            How {
                system: "Envoy",
                text: "http2_protocol_options: initial_stream_window_size and \
                       initial_connection_window_size",
            },
            How {
                system: "HAProxy",
                text: "`tune.h2.fe.initial-window-size` (uploads) and `tune.h2.be.initial-window-size` \
                       (answers of backends), HAProxy 2.9 and later",
            },
            How {
                system: "nginx, Apache",
                text: "Uploads: nginx `http2_body_preread_size 1m;` (default 64k), Apache `H2WindowSize \
                       1048576`",
            },
            How {
                system: "Go, Rust",
                text: "Go 1.24: http.HTTP2Config MaxReceiveBufferPerStream and \
                       MaxReceiveBufferPerConnection; Rust hyper and reqwest: http2_adaptive_window(true) \
                       or http2_initial_stream_window_size(n)",
            },
            How {
                system: "Node.js, .NET",
                text: "Node.js http2: settings initialWindowSize and session.setLocalWindowSize(n); .NET: \
                       SocketsHttpHandler.InitialHttp2StreamWindowSize, Kestrel \
                       Limits.Http2.InitialStreamWindowSize and InitialConnectionWindowSize",
            },
            How {
                system: "OpenSSH",
                text: "The channel window is 2 MiB in the source: split the transfer over several \
                       connections, or do not tunnel it through ssh",
            },
        ],
    },
    FixInfo {
        fix: FixId::ReadWhileWriting,
        id: "read_while_writing",
        place: Place::Writer,
        title: "Read answers while writing requests",
        how: &[
            How {
                system: "Any",
                text: "Writing and reading in separate threads or tasks, or one loop that polls for POLLIN \
                       and POLLOUT together with non-blocking sockets",
            },
            How {
                system: "Any",
                text: "Limit a pipeline to a batch (for instance 1000 commands), read its answers, then \
                       write the next; larger buffers only move the point of the hang",
            },
            How {
                system: "Go, Python",
                text: "Go: a goroutine that reads before the first Write; Python: asyncio, or selectors \
                       with both events",
            },
            How {
                system: "libpq",
                text: "Pipeline mode: PQsetnonblocking(conn, 1), and PQconsumeInput whenever the socket is \
                       readable",
            },
        ],
    },
    FixInfo {
        fix: FixId::OneWrite,
        id: "one_write",
        place: Place::Writer,
        title: "Write the whole message with one call",
        how: &[
            How {
                system: "Any",
                text: "Header and body in one buffer, or writev()/sendmsg() with both: nothing is left for \
                       Nagle to hold, at either end",
            },
            How {
                system: "Java",
                text: "A BufferedOutputStream around the socket's stream, one flush() for a message; Netty: \
                       write() for the parts, one flush() at the end",
            },
            How {
                system: "Python",
                text: "sock.sendall(head + body) or sock.sendmsg([head, body]); http.server and \
                       socketserver handlers: wbufsize = -1 and one wfile.flush()",
            },
            How { system: "Go", text: "bufio.Writer with one Flush(), or net.Buffers with WriteTo (writev)" },
            How {
                system: "Rust",
                text: "BufWriter with one flush(), or write_vectored(); tokio: BufWriter likewise",
            },
            How {
                system: "Node.js, .NET",
                text: "Node.js: socket.cork(), writes, process.nextTick(() => socket.uncork()); .NET: \
                       BufferedStream, or Socket.Send with a list of segments",
            },
        ],
    },
    FixInfo {
        fix: FixId::Nodelay,
        id: "nodelay",
        place: Place::Writer,
        title: "Set TCP_NODELAY on the writing side",
        how: &[
            How {
                system: "Any",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) after connect() and after \
                       accept(), at the end that waited; if both ends write in pieces, at both; costs one \
                       more small packet for each write",
            },
            How {
                system: "Java",
                text: "socket.setTcpNoDelay(true); Netty: childOption(ChannelOption.TCP_NODELAY, true) at \
                       the server, option(...) at the client",
            },
            How {
                system: "Python",
                text: "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); http.server: \
                       disable_nagle_algorithm = True on the handler (asyncio and http.client set it \
                       themselves)",
            },
            How { system: "Rust", text: "stream.set_nodelay(true) (std and tokio: off by default)" },
            How {
                system: "Node.js, .NET",
                text: "Node.js: socket.setNoDelay(true) (http servers and agents do since Node 18, net \
                       sockets do not); .NET: socket.NoDelay = true",
            },
            How {
                system: "nginx, HAProxy",
                text: "nginx: `tcp_nodelay on;` is the default, for keep-alive, TLS and unbuffered \
                       proxying, so look at the upstream application; HAProxy: `option http-no-delay` \
                       where the application streams small pieces",
            },
            How {
                system: "Go, libcurl",
                text: "On by default: look for SetNoDelay(false), or CURLOPT_TCP_NODELAY 0 (default 1 since \
                       7.50.2)",
            },
            How {
                system: "Databases",
                text: "MySQL Connector/J tcpNoDelay=true (its default); MariaDB server: on unless \
                       --skip-tcp-nodelay; Redis replication: repl-disable-tcp-nodelay no",
            },
        ],
    },
    FixInfo {
        fix: FixId::CorkWhole,
        id: "cork_whole",
        place: Place::Writer,
        title: "Cork the message and uncork at its end",
        how: &[
            How {
                system: "Linux",
                text: "setsockopt TCP_CORK 1, all writes of the message, TCP_CORK 0; or MSG_MORE on all but \
                       the last send(): a cork that is left in place costs 200 ms or an RTO",
            },
            How {
                system: "nginx",
                text: "`sendfile on; tcp_nopush on;`: header and file start leave together",
            },
            How {
                system: "Netty",
                text: "EpollChannelOption.TCP_CORK around the writes (native epoll transport only)",
            },
        ],
    },
    FixInfo {
        fix: FixId::Quickack,
        id: "quickack",
        place: Place::Reader,
        title: "Have the receiver acknowledge at once",
        how: &[
            How {
                system: "Linux",
                text: "`ip route change PREFIX via GATEWAY dev DEV quickack 1` on the receiving host, \
                       PREFIX being the sender's: per destination and lasting; costs one ACK for each \
                       segment",
            },
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one) after every recv(): set \
                       once it is gone at the next reply",
            },
            How {
                system: "Windows",
                text: "Set-NetTCPSetting -SettingName InternetCustom -DelayedAckFrequency 1, with a \
                       New-NetTransportFilter for the port; or WSAIoctl SIO_TCP_SET_ACK_FREQUENCY 1 on the \
                       socket",
            },
            How { system: "FreeBSD, macOS", text: "`sysctl net.inet.tcp.delayed_ack=0`" },
            How {
                system: "Any",
                text: "Better at the sender: more than two segments in flight, then delayed ACKs cost \
                       nothing",
            },
        ],
    },
    FixInfo {
        fix: FixId::BiggerWindow,
        id: "bigger_window",
        place: Place::Writer,
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
        fix: FixId::Uncork,
        id: "uncork",
        place: Place::Writer,
        title: "Release the cork after the last write",
        how: &[
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_CORK, &zero, sizeof zero) after the last write; or \
                       the last send() without MSG_MORE",
            },
            How {
                system: "Linux",
                text: "TCP_NODELAY does not override a cork that stays set: clear the cork",
            },
            How {
                system: "FreeBSD, macOS",
                text: "TCP_NOPUSH has no timer and clearing it need not send: follow it with TCP_NODELAY or \
                       close",
            },
            How {
                system: "Linux",
                text: "Only if TcpExtTCPAutoCorking rises in step: `sysctl -w net.ipv4.tcp_autocorking=0`",
            },
        ],
    },
    FixInfo {
        fix: FixId::UnsetRcvbuf,
        id: "unset_rcvbuf",
        place: Place::Reader,
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
        fix: FixId::Wmem,
        id: "wmem",
        place: Place::Writer,
        title: "Raise the limit of the automatic send buffer",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_wmem=\"4096 16384 16777216\"`: the third value is the limit, \
                       about half of it payload; net.core.wmem_max matters only for an explicit SO_SNDBUF",
            },
            How { system: "Linux", text: "Needed here: a third value of at least twice {need_bytes} bytes" },
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
        title: "Raise the limit of the automatic receive window",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_rmem=\"4096 131072 33554432\"`: the third value is the \
                       limit, a half to two thirds of it becomes window; for new connections (the scale is \
                       chosen in the SYN)",
            },
            How { system: "Linux", text: "Needed here: a third value of at least twice {need_bytes} bytes" },
            How {
                system: "Linux",
                text: "`sysctl net.ipv4.tcp_moderate_rcvbuf` must be 1; net.core.rmem_max matters only for \
                       an explicit SO_RCVBUF",
            },
            How {
                system: "Linux",
                text: "The window was small at the start only: `ip route change PREFIX via GATEWAY dev DEV \
                       initrwnd 44` on the receiving host",
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
        title: "Send fewer bytes",
        how: &[
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
        title: "Keep the congestion window over pauses",
        how: &[
            How {
                system: "Linux",
                text: "`sysctl -w net.ipv4.tcp_slow_start_after_idle=0` on the sending host (in its network \
                       namespace); acts at once on open connections; the first flight after a pause is \
                       then a burst of a whole window",
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
        fix: FixId::FixLoss,
        id: "fix_loss",
        place: Place::Path,
        title: "Find and mend the loss",
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
                system: "Linux",
                text: "If BBR or a rate cap paces too low: `congctl cubic` on the route; look for \
                       SO_MAX_PACING_RATE and for `maxrate` in `tc qdisc show`",
            },
            How {
                system: "Windows",
                text: "`netsh int tcp set supplemental template=internet congestionprovider=cubic`",
            },
        ],
    },
    FixInfo {
        fix: FixId::HostLoad,
        id: "host_load",
        place: Place::Host,
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
                text: "On one host: `ip route change PREFIX via GATEWAY dev DEV advmss 1360`, or the \
                       interface's MTU at the tunnel's value",
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
        title: "Get a faster link, or move the bytes less often",
        how: &[
            How {
                system: "Any",
                text: "The bottleneck gave {rate_mbit} Mbit/s and was busy: no TCP setting adds to that",
            },
            How {
                system: "Any",
                text: "Cache near the reader, compress, send only differences (rsync, ETag, delta), or move \
                       the transfer to a quiet hour",
            },
            How {
                system: "Any",
                text: "Check that the link is what was bought: `ethtool DEV` (100 instead of 1000 Mbit/s), \
                       a rate limit of the cloud instance, a shaper",
            },
        ],
    },
    FixInfo {
        fix: FixId::QueueManagement,
        id: "queue_management",
        place: Place::Path,
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
        title: "Ask for more with each round trip",
        how: &[
            How {
                system: "Any",
                text: "{count} serial round trips of {rtt_ms} ms each: batch, pipeline or run them at the \
                       same time",
            },
            How {
                system: "Any",
                text: "Joins or IN lists instead of one query for each row (the \"n + 1\" of object \
                       mappers); requests in parallel where they do not depend on each other",
            },
            How {
                system: "MySQL",
                text: "Connector/J rewriteBatchedStatements=true with addBatch(); cachePrepStmts=true with \
                       useServerPrepStmts=true; a larger setFetchSize with useCursorFetch=true",
            },
            How {
                system: "PostgreSQL",
                text: "pgjdbc reWriteBatchedInserts=true and defaultRowFetchSize=1000 (small fetch sizes \
                       cost a round trip each); libpq pipeline mode (PQenterPipelineMode)",
            },
            How {
                system: "Redis",
                text: "Pipelining, MGET and MSET, or a Lua script; client-side pipelines of some hundred \
                       commands",
            },
            How { system: "HTTP", text: "HTTP/2 with concurrent streams, or a batch endpoint; preconnect" },
            How { system: "OpenSSH", text: "`sftp -R 128`, or tar through ssh instead of many small files" },
        ],
    },
    FixInfo {
        fix: FixId::UserTimeout,
        id: "user_timeout",
        place: Place::Writer,
        title: "Notice a dead peer sooner",
        how: &[
            How {
                system: "Linux",
                text: "setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms) with 30000: covers \
                       unacknowledged data and closed windows; with keepalive also idle connections",
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
    FixInfo {
        fix: FixId::WindowScaling,
        id: "window_scaling",
        place: Place::Host,
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEHOLDERS: [&str; 9] =
        ["need_bytes", "have_bytes", "rtt_ms", "rate_mbit", "server", "port", "segments", "count", "mss"];

    fn placeholders(text: &'static str) -> Vec<&'static str> {
        text.split('{')
            .skip(1)
            .map(|rest| rest.split_once('}').unwrap_or_else(|| panic!("unclosed brace: {text}")).0)
            .collect()
    }

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in FIXES.iter().enumerate() {
            assert_eq!(row.fix as usize, i, "{}", row.id);
            assert_eq!(row.fix.info().id, row.id);
        }
        assert_eq!(FIXES.len(), FixId::WindowScaling as usize + 1, "a fix has no row");
    }

    #[test]
    fn ids_are_unique_and_titles_are_imperative_phrases() {
        for (i, row) in FIXES.iter().enumerate() {
            assert!(FIXES[..i].iter().all(|other| other.id != row.id), "{} twice", row.id);
            assert!(row.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            assert!(row.title.starts_with(|c: char| c.is_ascii_uppercase()), "{}", row.id);
            assert!(!row.title.contains(['{', '}']) && !row.title.ends_with('.'), "{}", row.id);
        }
    }

    #[test]
    fn every_fix_says_how_even_when_nothing_was_measured() {
        let nothing = Figures::default();
        for row in FIXES {
            assert!((2..=8).contains(&row.how.len()), "{} has {} lines", row.id, row.how.len());
            assert!(row.how.iter().any(|how| nothing.fill(how.text).is_some()), "{}", row.id);
            assert!(row.how.iter().all(|how| !how.system.is_empty() && !how.text.is_empty()), "{}", row.id);
        }
    }

    #[test]
    fn placeholders_are_the_known_ones_and_all_of_them_fill() {
        let figures = Figures(PLACEHOLDERS.map(|name| (name, "1".to_owned())).to_vec());
        for how in FIXES.iter().flat_map(|row| row.how) {
            for name in placeholders(how.text) {
                assert!(PLACEHOLDERS.contains(&name), "{{{name}}} in: {}", how.text);
            }
            let filled = figures.fill(how.text).expect("all figures are given");
            assert!(!filled.contains(['{', '}']), "{filled}");
        }
    }

    #[test]
    fn a_line_with_an_unknown_figure_is_left_out() {
        let figures = Figures(vec![("rtt_ms", "40.2".to_owned())]);
        assert_eq!(figures.fill("a trip of {rtt_ms} ms").as_deref(), Some("a trip of 40.2 ms"));
        assert_eq!(figures.fill("at least {need_bytes}"), None);
    }
}
