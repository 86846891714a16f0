//! One host: a network namespace without a name, with a TUN device for its only way out.

use crate::scenario::{Host, Scenario};
use crate::{LabError, sys};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;

/// The client's address.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The server's address.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const DEVICE: &str = "why0";

/// What is written down of each host's settings.
const RECORDED: [&str; 30] = [
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pingpong_thresh",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_rto_max_ms",
    "net.ipv4.tcp_rto_min_us",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syn_linear_timeouts",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_synack_retries",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// A host that exists. When it is dropped, so are namespace and device.
#[derive(Debug)]
pub(crate) struct Namespace {
    namespace: File,
    pub(crate) tun: File,
    /// Settings in force.
    pub(crate) sysctls: BTreeMap<String, String>,
}

impl Namespace {
    pub(crate) fn new(own: Ipv4Addr, host: &Host, scenario: &Scenario) -> Result<Namespace, LabError> {
        in_thread(|| {
            sys::new_network().map_err(|e| {
                let advice = match e.raw_os_error() {
                    Some(libc::EPERM) => "run as root: sudo tcpwhy lab …",
                    _ => "this needs a kernel with network namespaces (CONFIG_NET_NS)",
                };
                LabError::missing("a new network namespace", e, advice)
            })?;
            let namespace = File::open("/proc/thread-self/ns/net")
                .map_err(LabError::failed("open /proc/thread-self/ns/net"))?;
            let tun = sys::tun(DEVICE, scenario.offload).map_err(|e| {
                let advice = match e.raw_os_error() {
                    Some(libc::EPERM | libc::EACCES) => {
                        "run as root, in a container with --device /dev/net/tun"
                    }
                    _ => "load the module (modprobe tun), or make the device (mknod /dev/net/tun c 10 200)",
                };
                LabError::missing("/dev/net/tun", e, advice)
            })?;
            // Router solicitations would be in the captures.
            let _ = write_sysctl("net.ipv6.conf.all.disable_ipv6", "1");
            let _ = write_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
            // Else one connection's round trip time and ssthresh would reach the next.
            write_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
            for (name, value) in &host.stack.sysctl {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                write_sysctl(name, &value)?;
            }
            ip(&["link", "set", "dev", "lo", "up"])?;
            ip(&["address", "add", &format!("{own}/32"), "dev", DEVICE])?;
            // A longer device queue: drops are the link's business.
            let mtu = scenario.shared.mtu.to_string();
            ip(&["link", "set", "dev", DEVICE, "mtu", &mtu, "txqueuelen", "20000", "up"])?;
            let (own, mut numbers) = (own.to_string(), Vec::new());
            numbers.extend(host.initcwnd.map(|n| ["initcwnd".to_owned(), n.to_string()]));
            numbers.extend(host.stack.initrwnd.map(|n| ["initrwnd".to_owned(), n.to_string()]));
            let congestion = host.stack.congestion.as_str();
            let mut route =
                vec!["route", "add", "default", "dev", DEVICE, "src", &own, "congctl", congestion];
            route.extend(numbers.iter().flatten().map(String::as_str));
            ip(&route).map_err(|e| without_congestion(&host.stack.congestion, e))?;
            let sysctls = RECORDED
                .iter()
                .filter_map(|&name| {
                    let value = fs::read_to_string(path(name)).ok()?;
                    Some((name.to_owned(), value.trim().to_owned()))
                })
                .collect();
            Ok(Namespace { namespace, tun: File::from(tun), sysctls })
        })
    }

    /// Moves the calling thread to this host; threads that it starts are there too.
    pub(crate) fn enter(&self) -> Result<(), LabError> {
        sys::enter_network(self.namespace.as_fd()).map_err(LabError::failed("enter a namespace"))
    }

    /// What a thread enters that may outlive this.
    pub(crate) fn share(&self) -> Result<File, LabError> {
        self.namespace.try_clone().map_err(LabError::failed("share a namespace"))
    }

    /// The kernel's counters of this host, as `nstat -az` names them.
    pub(crate) fn counters(&self) -> Result<BTreeMap<String, i64>, LabError> {
        in_thread(|| {
            self.enter()?;
            let mut all = BTreeMap::new();
            for file in ["snmp", "netstat"] {
                let path = format!("/proc/thread-self/net/{file}");
                let text = fs::read_to_string(&path).map_err(LabError::failed(path))?;
                let mut lines = text.lines();
                // Lines come in pairs: names, values.
                while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
                    let mut names = names.split_whitespace();
                    let prefix = names.next().unwrap_or_default().trim_end_matches(':');
                    for (name, value) in names.zip(values.split_whitespace().skip(1)) {
                        all.insert(format!("{prefix}{name}"), value.parse().unwrap_or(0));
                    }
                }
            }
            Ok(all)
        })
    }
}

/// What moved between two readings.
pub(crate) fn moved(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let change = |(name, value): (&String, &i64)| {
        let change = value - before.get(name).unwrap_or(&0);
        (change != 0).then(|| (name.clone(), change))
    };
    after.iter().filter_map(change).collect()
}

/// Runs in a thread that ends afterwards, so that the caller's namespace stays what it was.
pub(crate) fn in_thread<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        thread.map_err(LabError::failed("start a thread"))?.join().unwrap_or_else(|_| {
            Err(LabError::Failed { what: "a thread".into(), why: std::io::Error::other("panicked") })
        })
    })
}

fn path(sysctl: &str) -> String {
    format!("/proc/sys/{}", sysctl.replace('.', "/"))
}

fn write_sysctl(name: &str, value: &str) -> Result<(), LabError> {
    if !name.starts_with("net.") || name.contains("..") || name.contains('/') {
        return Err(LabError::Scenario(format!("sysctl {name}: only those of a network namespace (net.…)")));
    }
    let path = path(name);
    // The mode tells a namespace's own setting from one of the whole machine, which is read-only here; those that
    // are not namespaced at all do not exist here.
    fs::write(&path, value).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => LabError::missing(
            format!("the sysctl {name}"),
            "this kernel has none of that name in a network namespace",
            "leave it out, or use a kernel that has it",
        ),
        _ => LabError::failed(format!("write {value} to {path}"))(e),
    })
}

/// A route with a congestion control that the kernel lacks is refused with nothing but "invalid argument".
fn without_congestion(name: &str, e: LabError) -> LabError {
    let available = fs::read_to_string(path("net.ipv4.tcp_available_congestion_control")).unwrap_or_default();
    if available.split_whitespace().any(|n| n == name) {
        return e;
    }
    LabError::missing(
        format!("congestion control {name}"),
        "this kernel does not have it",
        format!("load it (modprobe tcp_{name}), or use one of: {}", available.trim()),
    )
}

fn ip(arguments: &[&str]) -> Result<(), LabError> {
    let done = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|e| LabError::missing("the command ip", e, "install iproute2"))?;
    if done.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(LabError::Failed { what: format!("ip {}", arguments.join(" ")), why: std::io::Error::other(why) })
}
