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
            exhausted([limit("user.max_user_namespaces"), limit("user.max_net_namespaces")])
        }
        // A filter may say anything; container engines say ENOSYS of what they do not know.
        Some(libc::ENOSYS) if is_filtered() => FILTER.into(),
        Some(libc::EINVAL | libc::ENOSYS) => {
            "this kernel has no user or network namespaces (CONFIG_USER_NS, CONFIG_NET_NS): use sudo, or another kernel".into()
        }
        Some(libc::EPERM | libc::EACCES) => forbidden(&setting, is_filtered()),
        _ => format!("{error}"),
    };
    format!("no network of its own for the command: {why}")
}

const FILTER: &str = "a seccomp filter refuses it, as container engines and RestrictNamespaces= of systemd set it: start the \
                      container with --security-opt seccomp=unconfined (Kubernetes: seccompProfile Unconfined), or run it \
                      outside";

/// A limit was met, of this namespace or of one around it, which cannot be read from here.
fn exhausted(limits: [Option<(String, u64)>; 2]) -> String {
    let least = limits.into_iter().flatten().min_by_key(|l| l.1);
    match least {
        Some((name, n @ 0)) => {
            format!("{name} is {n} here: raise it (sudo sysctl -w {name}=10000), or use sudo")
        }
        Some((name, n)) => format!(
            "no more namespaces are allowed: {name} is {n} here, perhaps less in a container around it, and they nest 32 deep \
             at most: end programs that hold some, or use sudo outside"
        ),
        None => "user.max_user_namespaces does not allow it: raise it, or use sudo".into(),
    }
}

fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|l| l.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

fn forbidden(setting: &dyn Fn(&str) -> Option<u64>, filtered: bool) -> String {
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
    if filtered {
        return FILTER.into();
    }
    "the kernel does not permit user namespaces here (a chroot, or a security module): use sudo".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_sentence() {
        let said = |name: &'static str, value: u64, filtered: bool| {
            forbidden(&move |asked: &str| (asked == name).then_some(value), filtered)
        };
        let apparmor = said("kernel.apparmor_restrict_unprivileged_userns", 1, true);
        assert!(apparmor.contains("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"), "{apparmor}");
        let debian = said("kernel.unprivileged_userns_clone", 0, false);
        assert!(debian.contains("sysctl -w kernel.unprivileged_userns_clone=1"), "{debian}");
        // Set so that nothing is refused: something else does.
        let filter = said("kernel.apparmor_restrict_unprivileged_userns", 0, true);
        assert!(filter.contains("seccomp=unconfined"), "{filter}");
        assert!(said("", 0, false).contains("a security module"));
    }

    #[test]
    fn a_limit_that_is_not_zero_is_none_to_raise_here() {
        let limits = |a, b| [Some(("user.a".to_owned(), a)), Some(("user.b".to_owned(), b))];
        assert!(exhausted(limits(5, 0)).contains("sysctl -w user.b=10000"));
        let full = exhausted(limits(5, 7));
        assert!(full.contains("user.a is 5 here") && full.contains("around it"), "{full}");
    }
}
