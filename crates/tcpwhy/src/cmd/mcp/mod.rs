//! `tcpwhy mcp`: the questions as tools of the Model Context Protocol, over standard input and output.
//! Messages are lines of JSON-RPC; both generations are spoken, that with a handshake (2024-11-05 to
//! 2025-11-25) and that without (2026-07-28).

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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A longer line is no question.
const LONGEST: u64 = 1 << 20;
/// Questions that wait while one is answered.
const WAITING: usize = 64;

/// What is being answered, so that it can be called off.
#[derive(Default)]
struct Current {
    state: Mutex<State>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    id: Option<Value>,
    /// Questions that were called off, by notifications that wait behind them. As these wait with the others,
    /// they are few.
    called_off: Vec<Value>,
}

impl Current {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was not called off while it waited.
    fn begin(&self, id: &Value) -> bool {
        let mut state = self.state();
        if state.called_off.contains(id) {
            return false;
        }
        self.stop.store(false, Relaxed);
        state.id = Some(id.clone());
        true
    }

    /// Whether it was called off: then nobody waits for an answer.
    fn end(&self) -> bool {
        self.state().id = None;
        self.stop.swap(false, Relaxed)
    }

    fn call_off(&self, id: Value) {
        let mut state = self.state();
        if state.id.as_ref() == Some(&id) {
            self.stop.store(true, Relaxed);
        }
        state.called_off.push(id);
    }

    /// All that waited before the notification is done: what comes with that number is another question.
    fn pass(&self, id: &Value) {
        let mut state = self.state();
        if let Some(at) = state.called_off.iter().position(|called_off| called_off == id) {
            state.called_off.remove(at);
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
                current.call_off(id);
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
    if let Some(id) = protocol::called_off(line) {
        current.pass(&id);
    }
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
    if !current.begin(&request.id) {
        return None;
    }
    let reply = match request.reply() {
        Reply::Call { name, arguments } => {
            request.result(answers::call(&name, &arguments, root, &current.stop))
        }
        Reply::Told => request.told(),
    };
    let called_off = current.end();
    (!called_off).then_some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question that is called off while it waits is not answered, one that comes later under its number
    /// is; nothing is kept of either.
    #[test]
    fn what_is_called_off_while_it_waits_is_not_answered() {
        let root = Root::open(&std::env::temp_dir()).expect("there is a temporary folder");
        let current = Current::default();
        let question = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let off =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#.to_owned();
        let lines = [question(1), question(2), question(3), off.clone(), off, question(2)];
        // They are read while the first one is answered.
        lines
            .iter()
            .filter_map(|line| protocol::called_off(line.as_bytes()))
            .for_each(|id| current.call_off(id));
        let replies = lines.iter().filter_map(|line| answer(line.as_bytes(), &root, &current));
        let ids: Vec<Value> = replies.map(|reply| reply["id"].clone()).collect();
        assert_eq!(ids, [1, 3, 2]);
        assert!(current.state().called_off.is_empty());
    }
}
