//! `tcpwhy mcp`: the questions as tools of the Model Context Protocol, over standard input and output. Messages are lines of
//! JSON-RPC; both generations are spoken, that with a handshake (2024-11-05 to 2025-11-25) and that without (2026-07-28).

mod answers;
mod protocol;
mod root;
mod tools;

use crate::args::Mcp;
use crate::failure::Exit;
use protocol::{Reply, Request};
use root::Root;
use serde_json::Value;
use std::io::{self, BufRead, Read as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A longer line is no question.
const LONGEST: u64 = 1 << 20;
/// Questions that wait while one is answered.
const WAITING: usize = 64;

/// What is being answered, so that it can be called off.
#[derive(Default)]
struct Current {
    id: Mutex<Option<Value>>,
    stop: Arc<AtomicBool>,
}

impl Current {
    fn begin(&self, id: &Value) {
        self.stop.store(false, Relaxed);
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
    }

    /// Whether it was called off: then nobody waits for an answer.
    fn end(&self) -> bool {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.stop.swap(false, Relaxed)
    }

    fn call_off(&self, id: &Value) {
        let current = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref() == Some(id) {
            self.stop.store(true, Relaxed);
        }
    }
}

/// Answers assistants.
pub(crate) fn run(args: &Mcp) -> anyhow::Result<Exit> {
    super::tidy_up()?;
    serve(&args.root)?;
    Ok(Exit::Done)
}

/// Answers until standard input ends.
fn serve(folder: &Path) -> anyhow::Result<()> {
    let root = Root::open(folder)?;
    let current = Arc::new(Current::default());
    let lines = read(&current)?;
    let mut out = io::stdout().lock();
    for line in lines {
        let Ok(line) = line else {
            write(&mut out, &protocol::too_long())?;
            continue;
        };
        let Some(reply) = answer(&line, &root, &current) else { continue };
        write(&mut out, &reply)?;
    }
    Ok(())
}

fn write(out: &mut impl Write, reply: &Value) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(reply)?;
    bytes.push(b'\n');
    out.write_all(&bytes)?;
    out.flush()
}

/// The lines as they come; who calls a question off is heard while it is answered. `Err`: a line that is too long.
fn read(current: &Arc<Current>) -> anyhow::Result<Receiver<Result<Vec<u8>, ()>>> {
    let (send, receive) = sync_channel(WAITING);
    let current = Arc::clone(current);
    thread::Builder::new().name("questions".into()).spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST;
            if !whole && input.skip_until(b'\n').is_err() {
                break;
            }
            if let Some(id) = protocol::called_off(&line) {
                current.call_off(&id);
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if send.send(if whole { Ok(line) } else { Err(()) }).is_err() {
                break;
            }
        }
    })?;
    Ok(receive)
}

/// The reply to a line; `None` where none is due.
fn answer(line: &[u8], root: &Root, current: &Current) -> Option<Value> {
    match serde_json::from_slice(line) {
        Err(_) => Some(protocol::no_json()),
        // Batches are of 2025-03-26 and before.
        Ok(Value::Array(all)) if !all.is_empty() => {
            let replies: Vec<Value> = all.into_iter().filter_map(|one| single(one, root, current)).collect();
            (!replies.is_empty()).then_some(Value::Array(replies))
        }
        Ok(one) => single(one, root, current),
    }
}

fn single(message: Value, root: &Root, current: &Current) -> Option<Value> {
    let request = match Request::new(message) {
        Ok(Some(request)) => request,
        Ok(None) => return None,
        Err(refusal) => return Some(refusal),
    };
    let Reply::Call { name, arguments } = request.reply() else { return Some(request.told()) };
    current.begin(&request.id);
    let said = answers::call(&name, &arguments, root, &current.stop);
    let called_off = current.end();
    (!called_off).then(|| request.result(said))
}
