//! What the program at either end does otherwise: fewer writes, no hold, reading in time.

use super::{FixId, FixInfo, How, Place, Unless};

/// In the order of [`FixId`].
pub(super) const ROWS: &[FixInfo] = &[
    FixInfo {
        fix: FixId::Application,
        id: "application",
        place: Place::Writer,
        unless: &[],
        title: "Look into the application, not into TCP",
        how: &[
            How {
                system: "Any",
                text: "Look in its log, trace or profile for {at} to {until} (UTC), connection {ends}: TCP had nothing to send, so no socket option shortens this; it may itself have waited for another server, or on purpose (a long poll, a blocking command)",
            },
            How {
                system: "Linux",
                text: "`ss -tanp 'sport = :{own_port}'` names the process; `strace -f -tt -T -e trace=network,read,write,futex -p PID` or `perf trace -p PID` during one request; off-CPU profile if it sleeps",
            },
            How {
                system: "nginx, HAProxy",
                text: "Log $request_time with $upstream_response_time in nginx, the timers Tq/Tw/Tc/Tr/Tt (%Tr and so on) in HAProxy: they say which hop took it",
            },
            How {
                system: "PostgreSQL",
                text: "`ALTER SYSTEM SET log_min_duration_statement = '100ms'; SELECT pg_reload_conf();` logs slow statements, auto_explain their plans; now: `SELECT pid, state, wait_event, query FROM pg_stat_activity WHERE client_port = {client_port}`",
            },
            How {
                system: "MySQL, MariaDB",
                text: "`SET GLOBAL slow_query_log = ON; SET GLOBAL long_query_time = 0.1;`, then the slow log at that time; now: `SHOW FULL PROCESSLIST` (Host {client})",
            },
            How {
                system: "Redis",
                text: "`redis-cli -p {port} SLOWLOG GET 10`; `redis-cli -p {port} LATENCY DOCTOR` after `CONFIG SET latency-monitor-threshold 10`; KEYS, SORT and large ranges block all clients; BLPOP, XREAD BLOCK and their like wait on purpose",
            },
            How {
                system: "Python",
                text: "`py-spy dump --pid PID` during the wait shows where it stands, `py-spy record -d 30 -o profile.svg --pid PID` where the time goes; PID: `ss -tanp 'sport = :{own_port}'`",
            },
            How {
                system: "Java, Go, Node.js",
                text: "Java: `jcmd PID Thread.print`, -Xlog:gc; Go: /debug/pprof/goroutine?debug=2 of net/http/pprof; Node.js: `node --cpu-prof`, and a blocked event loop",
            },
            How {
                system: "libcurl",
                text: "A pause of 1 s before a body is the wait for 100-continue: send `Expect:` empty or set CURLOPT_EXPECT_100_TIMEOUT_MS",
            },
            How {
                system: "Any",
                text: "A late greeting, or a first answer after 5 s or a multiple of it (`timeout` in resolv.conf(5)), is mostly a lookup of the client's name that no name server answers (sshd `UseDNS no`, MySQL `skip_name_resolve`, rsync `reverse lookup = no`, Postfix `smtpd_peername_lookup = no`); garbage collection and lock waits are other hidden pauses",
            },
        ],
    },
    FixInfo {
        fix: FixId::MoreWorkers,
        id: "more_workers",
        place: Place::Writer,
        unless: &[],
        title: "Work on more requests at once",
        how: &[
            How {
                system: "Any",
                text: "More threads, processes or instances of what answers at {server}, up to its cores where it computes. They gain nothing where all of them wait for one lock, or for a pool of connections to a database that is as small: a thread dump or `SHOW PROCESSLIST` while requests wait shows for what",
            },
            How {
                system: "Python",
                text: "`gunicorn -w 8 --threads 4` (without -k or --threads a worker answers one at a time), `uvicorn --workers 8`; in an asyncio program a call that blocks (time.sleep, requests, a database driver) holds all others: `await asyncio.to_thread(...)`",
            },
            How {
                system: "Java, Go, Node.js",
                text: "Node.js: one thread answers all: node:cluster or more instances, worker_threads for what computes; Java: `server.tomcat.threads.max` of Spring Boot and the pool of connections (HikariCP `maximumPoolSize`); Go: a mutex, db.SetMaxOpenConns",
            },
            How {
                system: "HAProxy, Apache",
                text: "HAProxy `maxconn` of the server line (waits there are Tw of its log); Apache `MaxRequestWorkers`",
            },
            How {
                system: "PHP, Ruby",
                text: "`pm.max_children` of PHP-FPM (its log says when that is reached); Puma `workers` and `threads`",
            },
        ],
    },
    FixInfo {
        fix: FixId::LargerWrites,
        id: "larger_writes",
        place: Place::Writer,
        unless: &[],
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
        unless: &[],
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
        unless: &[],
        title: "Enlarge the flow-control window above TCP",
        how: &[
            How {
                system: "Any",
                text: "Let the end that receives grant more at a time: its window for a stream and that for the \
                       connection, each at least rate times round trip (uploads to nginx: \
                       `http2_body_preread_size 1m;`, to Apache: `H2WindowSize 1048576`)",
            },
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
        unless: &[],
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
        unless: &[Unless::HoldIsNoise],
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
        unless: &[Unless::HoldIsNoise],
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
        unless: &[Unless::HoldIsNoise],
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
        unless: &[Unless::HoldIsNoise],
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
        fix: FixId::Uncork,
        id: "uncork",
        place: Place::Writer,
        unless: &[],
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
];
