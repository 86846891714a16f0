//! Which program speaks at an end: a guess from the first bytes of a connection, or from a well-known port.
//! Nothing of what is said is kept but the name.

/// No more bytes of a message are looked at.
pub const MOST: usize = 512;

macro_rules! programs {
    ($($program:ident $name:literal),* $(,)?) => {
        /// A program, or the language that it is written in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Program {
            $($program),*
        }

        impl Program {
            /// Each of them, where its number says.
            pub const ALL: [Program; [$($name),*].len()] = [$(Program::$program),*];

            /// Its name for people.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Program::$program => $name),*
                }
            }
        }
    };
}

programs! {
    Apache "Apache",
    DotNet ".NET",
    Envoy "Envoy",
    Go "Go",
    HaProxy "HAProxy",
    Java "Java",
    Kafka "Kafka",
    Libcurl "libcurl",
    MariaDb "MariaDB",
    Memcached "memcached",
    MongoDb "MongoDB",
    MySql "MySQL",
    Nginx "nginx",
    NodeJs "Node.js",
    OpenSsh "OpenSSH",
    Php "PHP",
    Postfix "Postfix",
    PostgreSql "PostgreSQL",
    Python "Python",
    Redis "Redis",
    Ruby "Ruby",
    Rust "Rust",
}

impl Program {
    /// Whether a way to make a fix that names these systems (`nginx, HAProxy`) is one for this program.
    pub fn is_among(self, systems: &str) -> bool {
        let also = match self {
            Program::MariaDb => &["MySQL", "Databases"][..],
            Program::MySql | Program::PostgreSql | Program::MongoDb => &["Databases"],
            Program::Php => &["PHP-FPM"],
            _ => &[],
        };
        systems.split(", ").any(|s| s == self.name() || also.contains(&s))
    }

    /// The program that listens on this port almost everywhere.
    pub const fn of_port(port: u16) -> Option<Program> {
        Some(match port {
            22 => Program::OpenSsh,
            3306 => Program::MySql,
            5432 => Program::PostgreSql,
            6379 => Program::Redis,
            9092 => Program::Kafka,
            11211 => Program::Memcached,
            27017 => Program::MongoDb,
            _ => return None,
        })
    }
}

/// How a program was guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// By what it, or its peer, said first.
    FirstBytes,
    /// By the port that it listens on.
    Port,
}

impl Told {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Told::FirstBytes => "first_bytes",
            Told::Port => "port",
        }
    }
}

/// What programs call themselves in `Server:` and `User-Agent:` and in greetings, in small letters; the first
/// that is found counts, so what others contain stands behind them.
const NAMES: &[(&str, Program)] = &[
    ("mariadb", Program::MariaDb),
    ("openssh", Program::OpenSsh),
    ("postfix", Program::Postfix),
    ("nginx", Program::Nginx),
    ("openresty", Program::Nginx),
    ("envoy", Program::Envoy),
    ("haproxy", Program::HaProxy),
    ("python", Program::Python),
    ("uvicorn", Program::Python),
    ("gunicorn", Program::Python),
    ("werkzeug", Program::Python),
    ("aiohttp", Program::Python),
    ("paramiko", Program::Python),
    ("hyper", Program::Rust),
    ("actix", Program::Rust),
    ("reqwest", Program::Rust),
    ("apache-coyote", Program::Java),
    ("apache-httpclient", Program::Java),
    ("jetty", Program::Java),
    ("okhttp", Program::Java),
    ("java", Program::Java),
    ("netty", Program::Java),
    ("apache", Program::Apache),
    ("kestrel", Program::DotNet),
    ("microsoft-iis", Program::DotNet),
    ("microsoft-httpapi", Program::DotNet),
    ("puma", Program::Ruby),
    ("webrick", Program::Ruby),
    ("ruby", Program::Ruby),
    ("php", Program::Php),
    ("node", Program::NodeJs),
    ("axios", Program::NodeJs),
    ("undici", Program::NodeJs),
    ("go-http-client", Program::Go),
    ("ssh-2.0-go", Program::Go),
    ("caddy", Program::Go),
    ("curl", Program::Libcurl),
];

/// The program that these first bytes of a message name, as their sender. Looks at [`MOST`] bytes at most.
pub fn sender_of(payload: &[u8]) -> Option<Program> {
    let payload = &payload[..payload.len().min(MOST)];
    match payload.first()? {
        b'H' if payload.starts_with(b"HTTP/1.") => header(payload, b"server:"),
        b'G' | b'P' | b'D' | b'O' | b'C' => {
            let (_, protocol) = crate::protocol::beginning(payload)?;
            (protocol == "http/1").then(|| header(payload, b"user-agent:"))?
        }
        b'S' if payload.starts_with(b"SSH-") => named(first_line(payload)),
        // SMTP and FTP greet with 220 (RFC 5321 4.2, RFC 959 5.4).
        b'2' if payload.starts_with(b"220") => named(first_line(payload)),
        b'+' if payload.starts_with(b"+PONG\r\n") => Some(Program::Redis),
        b'-' if [&b"-ERR "[..], b"-NOAUTH ", b"-WRONGTY"].iter().any(|s| payload.starts_with(s)) => {
            Some(Program::Redis)
        }
        _ => greeting_of_mysql(payload),
    }
}

/// The program that the first bytes of a client are meant for: protocols that only one program, or its like, speaks.
pub fn spoken_to(payload: &[u8]) -> Option<Program> {
    let word = |at: usize| payload.get(at..at + 4)?.first_chunk().map(|b| u32::from_be_bytes(*b));
    // StartupMessage, SSLRequest and GSSENCRequest, behind their length (PostgreSQL, "Message Formats").
    if word(0).is_some_and(|length| (8..10_000).contains(&length))
        && matches!(word(4), Some(0x0003_0000 | 0x0003_0002 | 80_877_103 | 80_877_104))
    {
        return Some(Program::PostgreSql);
    }
    // An array of bulk strings, `*1\r\n$4\r\n`: how each request of RESP begins.
    let array = payload.strip_prefix(b"*")?;
    let digits = array.iter().take_while(|b| b.is_ascii_digit()).count();
    (digits > 0 && array[digits..].starts_with(b"\r\n$")).then_some(Program::Redis)
}

/// Protocol version 10 behind the length and the number of the packet, then the version of the server up to a
/// zero byte.
fn greeting_of_mysql(payload: &[u8]) -> Option<Program> {
    let [a, b, 0, 0, 10, version @ ..] = payload else { return None };
    let length = usize::from(u16::from_le_bytes([*a, *b]));
    let end = version.iter().position(|&b| b == 0)?;
    let version = &version[..end];
    let plausible = (30..300).contains(&length) && version.first().is_some_and(u8::is_ascii_digit);
    plausible.then(|| named(version).unwrap_or(Program::MySql))
}

fn first_line(payload: &[u8]) -> &[u8] {
    payload.split(|&b| b == b'\n').next().unwrap_or_default()
}

/// The program that the value of this header names; `name` in small letters, with its colon.
fn header(payload: &[u8], name: &[u8]) -> Option<Program> {
    let mut lines = payload.split(|&b| b == b'\n').skip(1).take_while(|line| !matches!(line, [] | [b'\r']));
    let line = lines.find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name))?;
    self::named(&line[name.len()..])
}

fn named(text: &[u8]) -> Option<Program> {
    NAMES.iter().find(|(name, _)| contains(text, name.as_bytes())).map(|n| n.1)
}

fn contains(text: &[u8], name: &[u8]) -> bool {
    text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_name_themselves() {
        let told = [
            (&b"HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6 Python/3.11.2\r\n\r\n"[..], Some(Program::Python)),
            (b"HTTP/1.1 200 OK\r\nDate: x\r\nserver: nginx/1.22.1\r\n", Some(Program::Nginx)),
            (b"HTTP/1.1 200 OK\r\nServer: Apache/2.4 (Debian)\r\n", Some(Program::Apache)),
            (b"HTTP/1.1 200 OK\r\nServer: Apache-Coyote/1.1\r\n", Some(Program::Java)),
            (b"HTTP/1.1 200 OK\r\n\r\nServer: nginx\r\n", None),
            (b"HTTP/1.1 200 OK\r\nX-Server: nginx\r\n", None),
            (b"GET / HTTP/1.1\r\nHost: nginx\r\nUser-Agent: curl/7.88.1\r\n", Some(Program::Libcurl)),
            (b"GET / HTTP/1.1\r\nHost: nginx\r\n", None),
            (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", Some(Program::OpenSsh)),
            (b"SSH-2.0-Go\r\n", Some(Program::Go)),
            (b"220 mail.example ESMTP Postfix\r\n", Some(Program::Postfix)),
            (b"220 mail.example ESMTP\r\n", None),
            (b"+PONG\r\n", Some(Program::Redis)),
            (b"+OK\r\n", None),
            (b"\x5b\0\0\0\x0a8.0.36\0rest", Some(Program::MySql)),
            (b"\x6e\0\0\0\x0a5.5.5-10.11.6-MariaDB\0rest", Some(Program::MariaDb)),
            (b"\x6e\0\0\0\x0a\0", None),
            (b"\x6e\0\0\0\x0b8.0.36\0", None),
            (b"", None),
        ];
        for (payload, program) in told {
            assert_eq!(sender_of(payload), program, "{}", payload.escape_ascii());
        }
    }

    #[test]
    fn no_more_than_the_first_bytes_are_looked_at() {
        let long = |n: usize| [b"GET /".as_slice(), &vec![b'x'; n], b"\r\nUser-Agent: curl/8\r\n"].concat();
        let before = 5 + 2 + b"User-Agent: curl".len();
        assert_eq!(sender_of(&long(MOST - before)), Some(Program::Libcurl));
        assert_eq!(sender_of(&long(MOST - before + 1)), None);
    }

    #[test]
    fn protocols_of_one_program_tell_whom_a_client_speaks_to() {
        assert_eq!(spoken_to(&[0, 0, 0, 8, 4, 210, 22, 47]), Some(Program::PostgreSql));
        assert_eq!(spoken_to(&[0, 0, 0, 84, 0, 3, 0, 0]), Some(Program::PostgreSql));
        assert_eq!(spoken_to(&[0, 0, 0, 7, 0, 3, 0, 0]), None, "shorter than its own head");
        assert_eq!(spoken_to(&[0, 0, 0, 84, 0, 3, 0]), None);
        assert_eq!(spoken_to(b"*1\r\n$4\r\n"), Some(Program::Redis));
        assert_eq!(spoken_to(b"*12\r\n$4\r"), Some(Program::Redis));
        assert_eq!((spoken_to(b"*\r\n$4"), spoken_to(b"*1\r\n"), spoken_to(b"")), (None, None, None));
    }

    #[test]
    fn a_program_finds_its_rows() {
        assert!(Program::Nginx.is_among("nginx, HAProxy") && !Program::Nginx.is_among("Any"));
        assert!(Program::MariaDb.is_among("MySQL, Redis") && Program::MariaDb.is_among("Databases"));
        assert!(!Program::Go.is_among("MongoDB"), "a part of a name is none");
        assert_eq!((Program::of_port(5432), Program::of_port(80)), (Some(Program::PostgreSql), None));
    }
}
