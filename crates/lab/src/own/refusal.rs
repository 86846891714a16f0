//! Which rule refused a network of one's own, and what to do about it.

use std::fs;
use std::io;

/// The sentence for an error of `unshare`, or of the first use of what it gave.
pub(super) fn sentence(error: &io::Error) -> String {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let setting = |name: &str| number(&format!("/proc/sys/{}", name.replace('.', "/")));
    let limit = |name: &str| setting(name).map(|n| (name.to_owned(), n));
    let why = match error.raw_os_error() {
        // user_namespaces(7): ENOSPC since Linux 4.9, EUSERS before.
        Some(libc::ENOSPC | libc::EUSERS) => {
            let limits = [limit("user.max_user_namespaces"), limit("user.max_net_namespaces")];
            let least = limits.into_iter().flatten().min_by_key(|l| l.1);
            let (name, n) = least.unwrap_or(("user.max_user_namespaces".into(), 0));
            format!("{name} is {n} here: raise it (sudo sysctl -w {name}=10000), or use sudo")
        }
        Some(libc::EINVAL | libc::ENOSYS) => {
            "this kernel has no user or network namespaces (CONFIG_USER_NS, CONFIG_NET_NS): use sudo, or another kernel".into()
        }
        Some(libc::EPERM | libc::EACCES) => forbidden(&setting),
        _ => format!("{error}"),
    };
    format!("no network of its own for the command: {why}")
}

fn forbidden(setting: &dyn Fn(&str) -> Option<u64>) -> String {
    for (name, closed) in
        [("kernel.apparmor_restrict_unprivileged_userns", 1), ("kernel.unprivileged_userns_clone", 0)]
    {
        if setting(name) == Some(closed) {
            let open = 1 - closed;
            return format!(
                "{name}={closed} keeps user namespaces from users: use sudo, or allow them with sudo sysctl -w {name}={open}"
            );
        }
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.lines().any(|l| l.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2")) {
        return "a seccomp filter refuses it, as container engines set it: start the container with --security-opt \
                seccomp=unconfined"
            .into();
    }
    "the kernel does not permit user namespaces here (a chroot, or a security module): use sudo".into()
}
