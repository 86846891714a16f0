//! `tcpwhy record` over loopback in a network namespace of its own, where the kernel's TCP stalls by rule;
//! skipped where there may be none.

use crate::common::Dir;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Requests in two writes each, so many; 1: with TCP_NODELAY.
const REQUESTS: &str = "
import socket, sys, threading
count, nodelay = int(sys.argv[1]), int(sys.argv[2])
def serve(listener):
    c = listener.accept()[0]
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    while c.recv(204, socket.MSG_WAITALL):
        c.sendall(b'a' * 100)
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=serve, args=[listener], daemon=True).start()
c = socket.create_connection(listener.getsockname())
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
for _ in range(count):
    c.send(b'h' * 4); c.send(b'secret' * 33 + b'..')
    c.recv(100, socket.MSG_WAITALL)
print('all answered')
";

const BIN: &str = env!("CARGO_BIN_EXE_tcpwhy");

/// A shell that runs `script` in a network namespace of its own (and a mount namespace); $0 is the program,
/// $1 its file. None, after saying so, where it may not, or where there are no packets to be seen.
pub(crate) fn apart(script: &str, file: &Path) -> Option<Output> {
    let script = format!("ip link set lo up && {{ {script}\n}}");
    // With the signals of a terminal, whoever runs the test.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", "unshare", "--net", "--mount", "sh", "-c", &script, BIN]);
    let done = command.arg(file).env("REQUESTS", REQUESTS).env("PROGRAMS", PROGRAMS).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if said.contains("unshare") || said.contains("CAP_NET_RAW") || said.contains("RTNETLINK") {
        crate::skips::skip("record", &said, env!("CARGO_TARGET_TMPDIR"));
        return None;
    }
    Some(done)
}

/// Whether kernel events were recorded; else that is said.
fn has_events(done: &Output) -> bool {
    let said = String::from_utf8_lossy(&done.stderr);
    let without = said.lines().find(|l| l.contains("without "));
    without
        .inspect(|why| crate::skips::skip("record: kernel events", why, env!("CARGO_TARGET_TMPDIR")))
        .is_none()
}

#[track_caller]
fn explain(file: &Path) -> Value {
    let done = Command::new(BIN).arg("explain").arg(file).arg("--json").output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// How many spans of this cause in requests say this source.
fn spans(document: &Value, cause: &str, source: &str) -> usize {
    let all = document["connections"].as_array().unwrap().iter();
    all.flat_map(|c| c["exchanges"].as_array().unwrap())
        .flat_map(|e| e["spans"].as_array().unwrap())
        .filter(|s| s["cause"] == cause && s["source"] == source)
        .count()
}

#[test]
fn a_stall_is_explained_with_the_kernel_as_witness() {
    let dir = Dir::new();
    let file = dir.0.join("stalls.pcapng");
    let Some(done) = apart("\"$0\" record -o \"$1\" -- python3 -c \"$REQUESTS\" 20 0", &file) else { return };
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all answered\n", "the command's output is its own");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("packets and ") && said.contains("tcpwhy explain "), "{said}");

    let document = explain(&file);
    let finding = &document["findings"][0];
    assert_eq!((&finding["cause"], &finding["side"]), (&"nagle_delayed_ack".into(), &"client".into()));
    // What packets carry is not kept.
    let bytes = fs::read(&file).unwrap();
    assert!(!bytes.windows(6).any(|w| w == b"secret"), "payload was kept");
    // Other programs pass over what is not theirs.
    if let Ok(shark) = Command::new("tshark")
        .args(["-r", file.to_str().unwrap(), "-T", "fields", "-e", "frame.number"])
        .output()
    {
        assert!(shark.status.success(), "{}", String::from_utf8_lossy(&shark.stderr));
        let packets = String::from_utf8_lossy(&shark.stdout).lines().count();
        assert!(said.contains(&format!(" {packets} packets and ")), "{packets}: {said}");
    }
    if has_events(&done) {
        // The first requests of a connection are acknowledged at once.
        let (told, inferred) = (
            spans(&document, "nagle_delayed_ack", "kernel"),
            spans(&document, "nagle_delayed_ack", "inferred"),
        );
        assert!(told >= 15 && inferred == 0, "{told} by the kernel, {inferred} inferred");
    }
}

#[test]
fn payload_is_kept_when_asked_for_and_a_filter_chooses() {
    let dir = Dir::new();
    let file = dir.0.join("payload.pcapng");
    let script = "\"$0\" record --payload -o \"$1\" -- python3 -c \"$REQUESTS\" 3 1";
    let Some(_) = apart(script, &file) else { return };
    assert!(fs::read(&file).unwrap().windows(6).any(|w| w == b"secret"));
    let script = "\"$0\" record -o \"$1\" 'port 9' -- python3 -c \"$REQUESTS\" 3 1";
    let Some(done) = apart(script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("0 packets and 0 kernel events"), "{said}");
}

/// The file ends with a whole block, and the command goes on.
#[test]
fn a_full_disk_leaves_what_can_be_read() {
    let dir = Dir::new();
    let file = dir.0.join("kept.pcapng");
    let small = dir.0.join("small");
    fs::create_dir(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none {0} && \"$0\" record -o {0}/full.pcapng -- python3 -c \"$REQUESTS\" 2000 1; \
         code=$?; cp {0}/full.pcapng \"$1\"; exit $code",
        small.display()
    );
    let Some(done) = apart(&script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("can be read") && said.contains("No space left"), "{said}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all answered\n");
    let size = fs::metadata(&file).unwrap().len();
    assert!((32 << 10..=64 << 10).contains(&size), "{size}");
    // Exit code 0: nothing is damaged.
    assert!(explain(&file)["capture"]["packets"].as_u64() > Some(100));
}

/// What was waited for is saved at once; the command goes on, and its exit code is the answer's.
#[test]
fn a_command_outlives_what_was_waited_for() {
    let dir = Dir::new();
    let file = dir.0.join("slow.pcapng");
    let script = "\"$0\" record -o \"$1\" --ring 4mb --when 'exchange > 30ms' -- \
                  sh -c 'python3 -c \"$REQUESTS\" 30 0; exit 7'";
    let Some(done) = apart(script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(7), "{said}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all answered\n", "{said}");
    assert!(explain(&file)["capture"]["packets"].as_u64() > Some(3), "{said}");
}

#[test]
fn an_interrupt_ends_it_with_a_whole_file() {
    let dir = Dir::new();
    let file = dir.0.join("interrupted.pcapng");
    // A shell lets its background programs ignore interrupts.
    let script = "python3 -c \"$REQUESTS\" 1000000 0 >/dev/null 2>&1 & requests=$!\n\
                  env --default-signal=INT \"$0\" record -o \"$1\" >/dev/null 2>&1 & record=$!\n\
                  n=0; while [ \"$(stat -c %s \"$1\" 2>/dev/null || echo 0)\" -lt 8000 ] && kill -0 $record && [ $((n += 1)) -lt 1200 ]; do sleep 0.05; done\n\
                  kill -INT $record; wait $record; code=$?; kill $requests; exit $code";
    let Some(done) = apart(script, &file) else { return };
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(
        spans(&explain(&file), "nagle_delayed_ack", "inferred")
            + spans(&explain(&file), "nagle_delayed_ack", "kernel")
            > 0
    );
}

/// The numbers of the programs in the kernel that a process holds; or, after `gone`, waits until none of them is left.
const PROGRAMS: &str = "
import ctypes, glob, os, re, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def there(number):
    asked = ctypes.create_string_buffer(struct.pack('=III', number, 0, 0) + bytes(116), 128)
    call = {'x86_64': 321, 'aarch64': 280}[os.uname().machine]
    fd = libc.syscall(call, 13, asked, 128)  # BPF_PROG_GET_FD_BY_ID
    if fd >= 0:
        os.close(fd)
    return fd >= 0
if sys.argv[1] == 'of':
    held = set()
    for info in glob.glob(f'/proc/{sys.argv[2]}/fdinfo/*'):
        held |= set(re.findall(r'^prog_id:\\s*([0-9]+)', open(info).read(), re.M))
    print(*sorted(held))
else:
    end = time.time() + 30
    while any(there(int(n)) for n in sys.argv[2:]):
        assert time.time() < end, 'still there'
        time.sleep(0.05)
";

/// Two at once, of which one is killed: what it had in the kernel is gone, its file can be read; the other
/// goes on, and SIGTERM ends it with a whole file.
#[test]
fn a_killed_one_leaves_nothing_and_a_second_one_goes_on() {
    let dir = Dir::new();
    let file = dir.0.join("killed.pcapng");
    // Each has written something before it is ended.
    let script = "python3 -c \"$REQUESTS\" 1000000 0 >/dev/null 2>&1 & requests=$!\n\
                  filled() { n=0; while [ \"$(stat -c %s $1 2>/dev/null || echo 0)\" -lt $2 ] && [ $((n += 1)) -lt 1200 ]; do sleep 0.05; done; }\n\
                  \"$0\" record -o \"$1\" >/dev/null 2>&1 & one=$!\n\
                  \"$0\" record -o \"$1.other\" >/dev/null 2>\"$1.said\" & two=$!\n\
                  filled \"$1\" 8000; filled \"$1.other\" 8000\n\
                  programs=$(python3 -c \"$PROGRAMS\" of $one); echo \"programs: $programs\"\n\
                  kill -9 $one; wait $one; python3 -c \"$PROGRAMS\" gone $programs || exit 9\n\
                  filled \"$1.other\" $(($(stat -c %s \"$1.other\") + 2000))\n\
                  kill -TERM $two; wait $two; code=$?; kill $requests; cat \"$1.said\" >&2; exit $code";
    let Some(done) = apart(script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(said.contains(" packets and "), "the second one says what it has: {said}");
    if has_events(&done) {
        let held = String::from_utf8_lossy(&done.stdout).split_whitespace().count();
        assert!(held > 1, "it held no program that could be left: {done:?}");
    }
    let killed = Command::new(BIN).arg("explain").arg(&file).arg("--json").output().unwrap();
    // What was being written when it was killed may be cut.
    assert!(matches!(killed.status.code(), Some(0 | 1)), "{killed:?}");
    let document: Value = serde_json::from_slice(&killed.stdout).unwrap();
    assert!(document["capture"]["packets"].as_u64() > Some(20));
    assert!(explain(&dir.0.join("killed.pcapng.other"))["capture"]["packets"].as_u64() > Some(20));
}

/// The device goes, the recording stays.
#[test]
fn an_interface_that_goes_away_does_not_end_it() {
    let dir = Dir::new();
    let file = dir.0.join("gone.pcapng");
    let script = "\"$0\" record -o \"$1\" -- sh -c 'python3 -c \"$REQUESTS\" 3 1; ip link set lo down; ip link set lo up; python3 -c \"$REQUESTS\" 3 1'";
    let Some(done) = apart(script, &file) else { return };
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(explain(&file)["capture"]["connections"], 2);
}

#[test]
fn it_ends_as_its_command_does_or_in_time() {
    let dir = Dir::new();
    let file = dir.0.join("ends.pcapng");
    for (rest, code) in
        [("-- sh -c 'exit 7'", 7), ("-- sh -c 'kill -9 $$'", 137), ("-- ./nowhere", 127), ("-- /etc", 126)]
    {
        let Some(done) = apart(&format!("\"$0\" record -o \"$1\" {rest}"), &file) else { return };
        assert_eq!(done.status.code(), Some(code), "{rest}: {done:?}");
    }
    let began = Instant::now();
    let Some(done) = apart("\"$0\" record -o \"$1\" --for 300ms", &file) else { return };
    assert!(done.status.success() && began.elapsed() >= Duration::from_millis(300), "{done:?}");
    let Some(done) = apart("\"$0\" record -o /nowhere/file --for 1s", &file) else { return };
    assert_eq!(done.status.code(), Some(3), "{done:?}");
}

/// A name mistyped must not cost what was recorded under `-o` before.
#[test]
fn an_earlier_recording_stays_until_there_is_another() {
    let dir = Dir::new();
    let file = dir.0.join("kept.pcapng");
    let earlier = vec![b'k'; 100_000];
    for (rest, code) in [
        ("-- pyton3 x", 127),
        ("-- /etc", 126),
        ("--ring 64kib -- ./nowhere", 127),
        ("--ring 64kib --when 'exchange > 1h' -- true", 0),
    ] {
        let script = format!("\"$0\" record -o \"$1\" {rest}");
        fs::write(&file, &earlier).unwrap();
        let Some(done) = apart(&script, &file) else { return };
        assert_eq!(done.status.code(), Some(code), "{rest}: {done:?}");
        assert!(fs::read(&file).unwrap() == earlier, "{rest}: it is gone");
        // And where there was none, none is left behind.
        fs::remove_file(&file).unwrap();
        let Some(_) = apart(&script, &file) else { return };
        assert!(!file.exists(), "{rest}");
    }
    fs::write(&file, &earlier).unwrap();
    let Some(_) = apart("\"$0\" record -o \"$1\" -- python3 -c \"$REQUESTS\" 3 1", &file) else { return };
    assert!(fs::metadata(&file).unwrap().len() < 100_000, "what was longer stands behind its end");
    assert_eq!(explain(&file)["capture"]["connections"], 1);
    let pipe = "mkfifo \"$1.fifo\"; cat \"$1.fifo\" >\"$1\" & \"$0\" record -o \"$1.fifo\" -- python3 -c \"$REQUESTS\" 3 1; wait";
    let Some(_) = apart(pipe, &file) else { return };
    assert_eq!(explain(&file)["capture"]["connections"], 1, "through a pipe");
}

/// Answers at once, but for the 300th, which takes its time; goes on until it is ended. The ring has no SYN
/// any more: a port below that of any client tells who answers.
const ONE_SLOW: &str = "
import socket, sys, threading, time
def serve(listener):
    c = listener.accept()[0]
    n = 0
    while c.recv(100, socket.MSG_WAITALL):
        n += 1
        time.sleep(0.6 if n == 300 else 0)
        c.sendall(b'a' * 100)
listener = socket.create_server(('127.0.0.1', 8080))
threading.Thread(target=serve, args=[listener], daemon=True).start()
c = socket.create_connection(listener.getsockname())
while True:
    c.sendall(b'q' * 100)
    c.recv(100, socket.MSG_WAITALL)
    time.sleep(0.002)
";

/// The ring is saved once an exchange has taken too long, and holds it; it stays within its size.
#[test]
fn a_slow_exchange_saves_the_last_of_what_was_seen() {
    let dir = Dir::new();
    let file = dir.0.join("slow.pcapng");
    let script = format!(
        "cat > \"$1.py\" <<'END'\n{ONE_SLOW}\nEND\n\
         env --default-signal=INT timeout -s INT 60 \"$0\" record -o \"$1\" --ring 128kib --when 'exchange > 500ms' & record=$!\n\
         n=0; until [ -e \"$1\" ] || [ $((n += 1)) -ge 1200 ]; do sleep 0.05; done\n\
         python3 \"$1.py\" >/dev/null 2>&1 & requests=$!\n\
         wait $record; code=$?; kill $requests; exit $code"
    );
    let Some(done) = apart(&script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("an exchange between 127.0.0.1:") && said.contains("tcpwhy explain "), "{said}");
    let size = fs::metadata(&file).unwrap().len();
    assert!(size > 10_000 && size <= (128 << 10) + 4_096, "{size}");
    let document = explain(&file);
    let exchanges = document["connections"][0]["exchanges"].as_array().unwrap();
    let took = |x: &Value| x["end_ns"].as_i64().unwrap() - x["start_ns"].as_i64().unwrap();
    let longest = exchanges.iter().map(took).max();
    assert!(longest > Some(550_000_000), "{longest:?}");
}

/// Each time it is asked to it saves the ring into a file of its own, and once more at its end.
#[test]
fn a_signal_saves_what_there_is() {
    let dir = Dir::new();
    let file = dir.0.join("asked.pcapng");
    let script = "python3 -c \"$REQUESTS\" 1000000 1 >/dev/null 2>&1 & requests=$!\n\
                  env --default-signal=INT \"$0\" record -o \"$1\" --ring 64kib 2>\"$1.said\" & record=$!\n\
                  n=0; until [ -e \"$1\" ] || [ $((n += 1)) -ge 1200 ]; do sleep 0.05; done\n\
                  large() { find \"${1%/*}\" -name 'asked*.pcapng' -size +8000c | grep -q .; }\n\
                  n=0; until large \"$1\" || [ $((n += 1)) -ge 600 ]; do kill -USR1 $record; sleep 0.1; done\n\
                  kill -INT $record; wait $record; code=$?; kill $requests; cat \"$1.said\" >&2; exit $code";
    let Some(done) = apart(script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("asked for: ") && said.contains("ended: "), "{said}");
    let saved = fs::read_dir(&dir.0).unwrap().flatten().map(|f| f.path());
    let saved: Vec<_> = saved.filter(|p| p.extension().is_some_and(|e| e == "pcapng")).collect();
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    assert!(saved.len() >= 2 && saved.iter().all(|path| size(path) <= (64 << 10) + 4_096), "{saved:?}");
    let largest = saved.iter().max_by_key(|path| size(path)).unwrap();
    assert!(explain(largest)["capture"]["packets"].as_u64() > Some(10));
}

/// The message names the file that could not be written, no file without a packet is left, and those before stay whole.
#[test]
fn a_full_disk_leaves_what_was_saved_before() {
    let dir = Dir::new();
    let file = dir.0.join("asked.pcapng");
    let small = dir.0.join("small");
    fs::create_dir(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=128k none {0}\n\
         python3 -c \"$REQUESTS\" 1000000 1 >/dev/null 2>&1 & requests=$!\n\
         env --default-signal=INT \"$0\" record -o {0}/asked.pcapng --ring 64kib 2>\"$1.said\" & record=$!\n\
         n=0; until [ -e {0}/asked.pcapng ] || [ $((n += 1)) -ge 1200 ]; do sleep 0.05; done; sleep 1\n\
         failed() {{ [ $(grep -c 'make room' \"$1.said\") -ge 3 ]; }}\n\
         n=0; until failed \"$1\" || [ $((n += 1)) -ge 300 ]; do kill -USR1 $record; sleep 0.1; done\n\
         kill -INT $record; wait $record; code=$?; kill $requests\n\
         cp {0}/* $(dirname \"$1\"); cat \"$1.said\" >&2; exit $code",
        small.display()
    );
    let Some(done) = apart(&script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("/asked-") && last.ends_with("what was saved before is whole"), "{said}");
    let saved = fs::read_dir(&dir.0).unwrap().flatten().map(|f| f.path());
    let saved: Vec<_> = saved.filter(|p| p.extension().is_some_and(|e| e == "pcapng")).collect();
    // Whole ones, and one that the disk took a part of at most.
    assert!((2..=6).contains(&saved.len()), "{saved:?}");
    for path in saved {
        assert!(explain(&path)["capture"]["packets"].as_u64() > Some(0), "{}: {said}", path.display());
    }
}

/// Whoever ends it ends its command: that gets the signal, what was seen of it is saved, and where nothing is
/// to be saved no empty file is left.
#[test]
fn a_command_is_ended_with_it() {
    let dir = Dir::new();
    let file = dir.0.join("ended.pcapng");
    for (signal, options, code) in [
        ("TERM", "", 143),
        ("TERM", "--ring 64kib", 143),
        ("HUP", "--ring 64kib --when 'exchange > 1h'", 129),
    ] {
        let script = format!(
            "rm -f \"$1\" \"$1.begun\"\n\
             \"$0\" record -o \"$1\" {options} -- \
                sh -c 'echo $$ >\"$0.begun\"; exec python3 -c \"$REQUESTS\" 1000000 1' \"$1\" & record=$!\n\
             n=0; until [ -s \"$1.begun\" ] || [ $((n += 1)) -ge 600 ]; do sleep 0.05; done; sleep 1\n\
             kill -{signal} $record; wait $record; code=$?\n\
             kill -0 $(cat \"$1.begun\") 2>/dev/null && {{ kill -9 $(cat \"$1.begun\"); exit 99; }}; exit $code"
        );
        let Some(done) = apart(&script, &file) else { return };
        assert_eq!(done.status.code(), Some(code), "{options}: {done:?}");
        assert_eq!(file.exists(), code == 143, "{options}");
        if file.exists() {
            assert!(explain(&file)["capture"]["packets"].as_u64() > Some(10), "{options}");
        }
    }
}

/// A terminal that goes says so more than once, from the kernel and from its shell: that is no second wish for an end.
#[test]
fn a_terminal_that_goes_ends_it_once() {
    let dir = Dir::new();
    let file = dir.0.join("gone.pcapng");
    let script = "\"$0\" record -o \"$1\" --ring 64kib -- sh -c \
                    'trap \"sleep 1; exit 7\" HUP; echo >\"$0.begun\"; while :; do sleep 0.1; done' \"$1\" & record=$!\n\
                  n=0; until [ -e \"$1.begun\" ] || [ $((n += 1)) -ge 600 ]; do sleep 0.05; done\n\
                  kill -HUP $record; sleep 0.3; kill -HUP $record; wait $record";
    let Some(done) = apart(script, &file) else { return };
    assert_eq!(done.status.code(), Some(7), "{done:?}");
    assert!(fs::metadata(&file).unwrap().len() > 0, "{done:?}");
}

/// Whose a packet is stands beside it by the standard option, what it waited for in a comment.
#[test]
fn packets_name_their_process_and_what_they_waited_for() {
    let dir = Dir::new();
    let file = dir.0.join("named.pcapng");
    let Some(done) = apart("\"$0\" record -o \"$1\" -- python3 -c \"$REQUESTS\" 20 0", &file) else {
        return;
    };
    if !has_events(&done) {
        return;
    }
    let bytes = fs::read(&file).unwrap();
    // epb_processid_threadid: code 8, 8 bytes.
    let options = bytes.windows(4).filter(|w| *w == [8, 0, 8, 0]).count();
    assert!(options > 60, "{options}");
    let Ok(shark) = Command::new("tshark")
        .args(["-r", file.to_str().unwrap(), "-T", "fields", "-e", "frame.comment"])
        .output()
    else {
        return;
    };
    assert!(shark.status.success(), "{}", String::from_utf8_lossy(&shark.stderr));
    let comments = String::from_utf8_lossy(&shark.stdout).into_owned();
    let held =
        comments.lines().filter(|l| l.contains("held by Nagle's algorithm until the ACK before")).count();
    assert!(held >= 10 && comments.contains("python3("), "{comments}");
}

#[test]
fn mistakes_are_told() {
    for (arguments, words) in [
        (&["record"][..], "--output"),
        (&["record", "-o", "-", "--for", "1s"], "name a file"),
        (&["record", "-o", "x", "--for", "1s", "--", "true"], "cannot be used with"),
        (&["record", "-o", "x", "--for", "0s"], "nothing passes in no time"),
        (&["record", "-o", "x", "--netns", "/run/netns/a", "--", "true"], "ip netns exec a tcpwhy record"),
        (
            &["record", "-o", "x", "--netns", "/proc/1/ns/net", "--", "true"],
            "nsenter --net=/proc/1/ns/net tcpwhy",
        ),
        (&["record", "-o", "x", "-i", "eth0"], "all devices are recorded"),
        (&["record", "-i", "any", "-o", "x", "port", "80"], "choose packets by FILTER"),
        (&["record", "-o", "x", "prot 80"], "prot"),
        (&["record", "-o", "x", "--when", "exchange>1s"], "--ring"),
        (&["record", "-o", "x", "--ring", "1kb"], "64kb or more"),
        (&["record", "-o", "x", "--ring", "1mb", "--when", "reply>1s"], "no condition"),
    ] {
        let done = Command::new(BIN).args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    let done = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", BIN, "record", "-o", "x", "--for", "1s"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if said.contains("setpriv") {
        crate::skips::skip("record: without capabilities", &said, env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    assert!(done.status.code() == Some(3) && said.contains("CAP_NET_RAW"), "{said}");
}
