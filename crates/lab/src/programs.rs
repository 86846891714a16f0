//! Real programs as server and client.

use crate::machine;
use crate::network::Network;
use crate::processes::{Kind, Process};
use crate::scenario::{Programs, Scenario};
use crate::{LabError, clock};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tcpwhy_base::{End, Nanos};

/// Directories of commands that are not in everybody's `PATH`.
const SBIN: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// Of the directories made for programs; the process number follows.
const PREFIX: &str = "tcpwhy-lab-";
/// In each of them, so that none but ours is ever removed.
const MARK: &str = ".made-by-tcpwhy-lab";
const POLL: Duration = Duration::from_millis(2);

/// Says what is missing, and the package that has it.
pub(crate) fn installed(programs: &Programs) -> Result<(), LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from)).collect();
    for need in &programs.needs {
        if !places.iter().any(|p| p.join(&need.command).is_file()) {
            return Err(LabError::missing(
                &need.command,
                "not installed",
                format!("apt-get install {}", need.package),
            ));
        }
    }
    Ok(())
}

/// Runs server and client; `times` gets what the client printed. Says whether the run was cut off.
pub(crate) fn run(
    scenario: &Scenario,
    programs: &Programs,
    network: &Network,
    stop: &AtomicBool,
    times: &mut Vec<f64>,
) -> Result<bool, LabError> {
    let directory = Directory::new().map_err(LabError::failed("make a temporary directory"))?;
    for (name, text) in &programs.files {
        if name.contains('/') || name.starts_with('.') {
            return Err(LabError::Scenario(format!("programs.files: {name}: a plain name is asked for")));
        }
        fs::write(directory.path.join(name), text).map_err(LabError::failed(format!("write {name}")))?;
    }
    let limit = clock::now() + scenario.shared.limit;
    let stage = Stage { network, directory: &directory.path, limit, stop };
    if let Some(command) = &programs.prepare
        && stage.to_end("prepare", End::Server, command)?.is_none()
    {
        return Ok(true);
    }
    let server = programs.server.as_ref().map(|c| stage.start("server", End::Server, c)).transpose()?;
    if let Some(port) = programs.port
        && !stage.listens(port, server.as_ref())?
    {
        return Ok(true);
    }
    if let Some(command) = &programs.fill
        && stage.to_end("fill", End::Server, command)?.is_none()
    {
        return Ok(true);
    }
    for _ in 0..programs.repeat.max(1) {
        let start = clock::now();
        let Some(printed) = stage.to_end("client", End::Client, &programs.client)? else { return Ok(true) };
        let took = clock::now() - start;
        let before = times.len();
        times.extend(printed.lines().filter_map(|l| l.trim().parse::<f64>().ok()).filter(|s| s.is_finite()));
        if times.len() == before {
            times.push(took.0 as f64 / 1e9);
        }
    }
    Ok(false)
}

struct Stage<'a> {
    network: &'a Network,
    directory: &'a Path,
    limit: Nanos,
    stop: &'a AtomicBool,
}

impl Stage<'_> {
    fn start(&self, name: &str, side: End, command: &str) -> Result<Process, LabError> {
        let file = |end: &str| {
            File::create(self.directory.join(format!("{name}.{end}")))
                .map_err(LabError::failed("make a file"))
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.directory)
            .env("PATH", format!("{path}:{}", SBIN.join(":")))
            .env("HOME", self.directory)
            .env("DIR", self.directory)
            .env("SERVER", Network::SERVER.to_string())
            .env("CLIENT", Network::CLIENT.to_string())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?);
        // What prepares the experiment may take its time; what is measured should not wait for a processor.
        let real_time = machine::is_virtual() && (name == "server" || name == "client");
        self.network.start(side, shell, Kind::Alone { real_time })
    }

    /// What it printed; nothing if it was cut off.
    fn to_end(&self, name: &str, side: End, command: &str) -> Result<Option<String>, LabError> {
        let process = self.start(name, side, command)?;
        while !process.is_finished() {
            if clock::now() > self.limit || self.stop.load(Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
        let ended = process.wait().map_err(LabError::failed(format!("wait for the {name}")))?;
        if !ended.success() {
            return Err(self.failed(name, &ended));
        }
        let printed = fs::read(self.directory.join(format!("{name}.out")));
        let printed = printed.map_err(LabError::failed(format!("read what the {name} printed")))?;
        Ok(Some(String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Waits until something listens on the server's port; says no if that was cut off.
    fn listens(&self, port: u16, server: Option<&Process>) -> Result<bool, LabError> {
        loop {
            let found = self.network.listening(End::Server)?.contains(&port);
            if found {
                return Ok(true);
            }
            if server.is_some_and(Process::is_finished) {
                return Err(self.failed("server", &"ended before it listened"));
            }
            if clock::now() > self.limit || self.stop.load(Relaxed) {
                return Ok(false);
            }
            std::thread::sleep(POLL * 10);
        }
    }

    fn failed(&self, name: &str, how: &dyn ToString) -> LabError {
        let errors = fs::read(self.directory.join(format!("{name}.err"))).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        let last = errors.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
        LabError::failed(format!("the {name}'s command"))(io::Error::other(format!(
            "{}: {last}",
            how.to_string()
        )))
    }
}

/// A directory for the time of one run, and its mark, which is locked for as long: a lock goes with its process, also
/// where containers share a directory and number their processes alike.
struct Directory {
    path: PathBuf,
    _mark: File,
}

impl Directory {
    fn new() -> io::Result<Directory> {
        // A name that nobody can have taken before.
        let chance = RandomState::new().hash_one(PREFIX);
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{chance:016x}", std::process::id()));
        fs::create_dir(&path)?;
        // Under another name until it is locked: whoever sees the mark sees the lock.
        let (early, mark) = (path.join(".new"), path.join(MARK));
        let file = File::create_new(&early)?;
        // Where nothing can be locked nothing is taken for an orphan either.
        let _ = file.try_lock();
        fs::rename(early, mark)?;
        Ok(Directory { path, _mark: file })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The next start tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes directories of runs that were killed: own ones that nobody uses. Links are not followed.
pub(crate) fn remove_orphans() {
    let Ok(own) = fs::metadata("/proc/self").map(|m| m.uid()) else { return };
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        let is_ours = process.is_some_and(|p| p.parse::<u32>().is_ok())
            && entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == own);
        let mark = entry.path().join(MARK);
        if is_ours
            && fs::symlink_metadata(&mark).is_ok_and(|m| m.is_file())
            && File::open(&mark).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
