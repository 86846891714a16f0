//! What each capture says in a few words, for the list. It is known of what was opened; small captures are read for it
//! while somebody looks at the list and nobody waits for anything else, one at a time, and not kept.

use super::Shared;
use super::apart::{Wanted, read_apart};
use super::folder::{Entry, Found};
use crate::load::Loaded;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tcpwhy_base::{Kind, Nanos};
use tcpwhy_library::Detail;
use tcpwhy_report::{Answer, headline};

/// Bytes of a file that is read without being asked for.
const MOST: u64 = 32 << 20;
/// What takes longer (a small file may hold much) waits until somebody opens it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks for something to read.
const PERIOD: Duration = Duration::from_millis(200);

/// A capture in a few words.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// The cause to name, its part of the time, and the whole sentence.
    Verdict { share: f64, title: &'static str, owner: &'static str, sentence: String },
    /// It has no time to divide, or cannot be read: why.
    Nothing(String),
    /// Too much to be read unasked.
    Later,
}

/// What is known, each for a state of its file. Only what is listed is kept, so it has an end.
#[derive(Default)]
pub(super) struct Judged(Mutex<BTreeMap<String, (Entry, Said)>>);

impl Judged {
    pub(super) fn note(&self, name: &str, entry: &Entry, said: Said) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), (entry.clone(), said));
    }

    /// What is known of a capture in this state, as JSON; null while nothing is.
    pub(super) fn of(&self, name: &str, entry: &Entry) -> serde_json::Value {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(name).filter(|k| k.0 == *entry).map(|k| &k.1) {
            None => serde_json::Value::Null,
            Some(Said::Verdict { share, title, owner, sentence }) => {
                serde_json::json!({ "share": share, "title": title, "owner": owner, "sentence": sentence })
            }
            Some(Said::Nothing(why)) => serde_json::json!({ "nothing": why }),
            Some(Said::Later) => serde_json::json!({ "later": true }),
        }
    }

    /// The newest capture of which nothing is known; what has gone is forgotten.
    fn next(&self, found: Found) -> Option<(String, Entry)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, k| found.captures.get(name) == Some(&k.0));
        let new = found.captures.into_iter().filter(|(name, _)| !known.contains_key(name));
        new.max_by(|a, b| a.1.changed.cmp(&b.1.changed).then_with(|| b.0.cmp(&a.0)))
    }
}

impl Said {
    /// Of a capture that was read.
    pub(super) fn of(loaded: &Loaded) -> Said {
        let sentence = headline(&loaded.analysis, &loaded.capture, &Answer::new(&loaded.analysis));
        let spans = loaded.analysis.findings.iter().filter(|f| f.cause.info().kind == Kind::Span);
        match spans.max_by_key(|f| f.of_requests()).filter(|f| f.of_requests() > Nanos::ZERO) {
            Some(f) => Said::Verdict {
                share: f.share_of_requests,
                title: f.cause.info().title,
                owner: f.cause.owner().id(),
                sentence,
            },
            None => Said::Nothing(sentence),
        }
    }
}

/// Reads what is not known yet, until the server ends.
pub(super) fn run(shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        if !(shared.door.has_streams() && judge_next(shared)) {
            thread::sleep(PERIOD);
        }
    }
}

/// Whether one more is known.
fn judge_next(shared: &Arc<Shared>) -> bool {
    let Some((name, entry)) = shared.judged.next(shared.folder.look()) else { return false };
    if entry.size > MOST {
        shared.judged.note(&name, &entry, Said::Later);
        return true;
    }
    let Some(_turn) = shared.turns.take_if_free() else { return false };
    let (enough, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let watch = (Arc::clone(shared), Arc::clone(&enough));
    let report = Box::new(move |_, _| {
        let (shared, enough) = &watch;
        if shared.turns.is_wanted() || shared.stop.load(Ordering::Relaxed) || began.elapsed() > PATIENCE {
            enough.store(true, Ordering::Relaxed);
        }
    });
    let wanted = Wanted { listed: Some(0), detail: Detail::Worst(100), gains: false, names: false };
    let read = read_apart(&[(name.clone(), entry.clone())], wanted, report, &enough);
    let said = match read {
        _ if enough.load(Ordering::Relaxed) && began.elapsed() <= PATIENCE => return false,
        _ if enough.load(Ordering::Relaxed) => Said::Later,
        Ok(loaded) => Said::of(&loaded),
        Err((_, why)) => Said::Nothing(why),
    };
    shared.judged.note(&name, &entry, said);
    true
}
