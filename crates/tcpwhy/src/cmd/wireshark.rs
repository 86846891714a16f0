use crate::args::Wireshark;
use crate::failure::{Exit, say};
use crate::shown;
use anyhow::{Context as _, bail};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tcpwhy_base::CAUSES;

/// The plugin, in which three places are filled in.
const PLUGIN: &str = include_str!("../../assets/wireshark/tcpwhy.lua");
/// The profile: colours, columns, buttons.
const PROFILE: [(&str, &str); 3] = [
    ("colorfilters", include_str!("../../assets/wireshark/colorfilters")),
    ("preferences", include_str!("../../assets/wireshark/preferences")),
    ("dfilter_buttons", include_str!("../../assets/wireshark/dfilter_buttons")),
];

/// Prints the plugin, or puts it where Wireshark looks for it.
pub(crate) fn run(args: &Wireshark) -> anyhow::Result<Exit> {
    let program = std::env::current_exe().unwrap_or_else(|_| "tcpwhy".into());
    let plugin = plugin(&program);
    if !args.install {
        io::stdout().write_all(plugin.as_bytes())?;
        return Ok(Exit::Done);
    }
    let Folders { plugins, configuration, extcap } = match &args.dir {
        Some(dir) => {
            let [plugins, extcap] = ["plugins", "extcap"].map(|name| dir.join(name));
            Folders { plugins, configuration: dir.clone(), extcap: Some(extcap) }
        }
        None => Folders::personal()?,
    };
    write(&plugins, "tcpwhy.lua", &plugin)?;
    let profile = configuration.join("profiles").join("tcpwhy");
    for (name, text) in PROFILE {
        write(&profile, name, text)?;
    }
    #[cfg(unix)]
    if let Some(folder) = &extcap {
        starter(folder, &program)?;
    }
    say(&format!(
        "{} and the profile {} are written; in Wireshark: Analyze > Reload Lua Plugins, then Edit > Configuration Profiles > \
         tcpwhy, and open what --annotate wrote",
        shown(&plugins.join("tcpwhy.lua")),
        shown(&profile)
    ));
    Ok(Exit::Done)
}

/// The interface `tcpwhy: explained capture` is a program in the folder of such programs.
#[cfg(unix)]
fn starter(folder: &Path, program: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let script = format!("#!/bin/sh\nexec {} extcap \"$@\"\n", shown::argument(program.as_os_str()));
    write(folder, "tcpwhy", &script)?;
    let path = folder.join("tcpwhy");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}

fn shown(path: &Path) -> String {
    shown::name(&path.display().to_string()).into_owned()
}

/// With the causes, the version, and the program that the menu starts.
fn plugin(program: &Path) -> String {
    let mut causes = String::new();
    for cause in CAUSES {
        // Writing into memory cannot fail.
        let _ =
            writeln!(causes, "    {} = {{ \"{}\", {} }},", cause.id, cause.owner.id(), literal(cause.title));
    }
    let program = shown::argument(program.as_os_str());
    PLUGIN
        .replace("    -- @CAUSES@\n", &causes)
        .replace("\"@VERSION@\"", &literal(env!("CARGO_PKG_VERSION")))
        .replace("\"@PROGRAM@ explain \"", &literal(&format!("{program} explain ")))
}

/// As a string of Lua.
fn literal(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Where Wireshark keeps what is a user's own.
struct Folders {
    plugins: PathBuf,
    configuration: PathBuf,
    /// Programs that capture; Wireshark has such a folder for each user from 4.2 on.
    extcap: Option<PathBuf>,
}

impl Folders {
    /// As Wireshark says itself; else where it is on this kind of system.
    fn personal() -> anyhow::Result<Folders> {
        let said = ["tshark", "wireshark"].into_iter().find_map(asked).unwrap_or_default();
        let of = |name: &str| {
            said.lines()
                .find_map(|l| l.strip_prefix(name)?.strip_prefix(':').map(|p| PathBuf::from(p.trim())))
        };
        if let (Some(plugins), Some(configuration)) =
            (of("Personal Lua Plugins"), of("Personal configuration"))
        {
            return Ok(Folders { plugins, configuration, extcap: of("Personal Extcap path") });
        }
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        if cfg!(windows) {
            let Some(data) = variable("APPDATA") else {
                bail!("%APPDATA% is not set: name a folder with --dir")
            };
            let own = data.join("Wireshark");
            return Ok(Folders { plugins: own.join("plugins"), configuration: own, extcap: None });
        }
        let Some(home) = variable("HOME") else { bail!("$HOME is not set: name a folder with --dir") };
        let configuration = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Ok(Folders {
            plugins: home.join(".local/lib/wireshark/plugins"),
            configuration: configuration.join("wireshark"),
            extcap: None,
        })
    }
}

fn asked(program: impl AsRef<OsStr>) -> Option<String> {
    let done = Command::new(program)
        .args(["-G", "folders"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8(done.stdout).ok().filter(|_| done.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_are_filled() {
        let text = plugin(Path::new("/opt/a \"b\"/tcpwhy"));
        assert!(!text.contains('@'), "{text}");
        for cause in CAUSES {
            assert!(text.contains(&format!("    {} = {{ \"{}\", \"", cause.id, cause.owner.id())));
        }
        assert_eq!(literal("a\"b\\c"), "\"a\\\"b\\\\c\"");
    }
}
