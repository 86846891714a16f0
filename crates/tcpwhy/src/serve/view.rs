//! The page of a capture, and what it asks for while it is looked at. Reading and drawing take memory:
//! captures take turns, and a page is made once, kept as a file and sent from there.

use super::apart::{Wanted, busy, read_apart};
use super::folder::Named;
use super::http::{self, Request};
use super::judge::Said;
use super::{Kept, Shared, Sorry};
use crate::load::Loaded;
use crate::pages;
use crate::progress::Report;
use crate::source;
use crate::temporary::Temporary;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, PoisonError};
use tcpwhy_base::Nanos;
use tcpwhy_library::Detail;
use tcpwhy_report::html::{self, Extras, Served};

/// Captures kept analysed, each with its page.
const KEPT: usize = 4;
/// Connections of all of them together: 0.7 GB. The one seen last is kept, however many it has.
const KEPT_CONNECTIONS: usize = 500_000;
/// Packets in an answer to a zoom; a screen has some thousand columns.
const MOST_PACKETS: usize = 400_000;

/// Answers with what went wrong, as text or as a page.
pub(super) fn sorry(out: &mut impl Write, is_page: bool, (status, why): &Sorry) -> io::Result<()> {
    match (status, is_page) {
        (503, _) => http::later(out, 5, is_page, why),
        (_, true) => http::sorry(out, *status, why),
        (_, false) => http::say(out, *status, why),
    }
}

/// How many of the oldest give way, by their connections, the oldest first.
fn too_many(sizes: &[usize]) -> usize {
    let room = |first: usize| {
        let kept = &sizes[first..];
        kept.len() <= KEPT && kept.iter().sum::<usize>() <= KEPT_CONNECTIONS
    };
    let last = sizes.len().saturating_sub(1);
    (0..last).find(|&first| room(first)).unwrap_or(last)
}

impl Shared {
    fn find(&self, name: &str) -> Result<Vec<Named>, Sorry> {
        self.folder.find(name).ok_or_else(|| (404, format!("there is no capture {name} here")))
    }

    /// What is known of a capture, if it has not changed since it was read.
    fn known<T>(&self, name: &str, of: impl Fn(&Kept) -> Option<T>) -> Result<Option<T>, Sorry> {
        let entries = self.find(name)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|k| k.name != name || k.entries == entries);
        Ok(kept.iter().find(|k| k.name == name).and_then(of))
    }

    /// The analysis of a capture, from memory if it has not changed since. The caller has a turn.
    fn load(&self, name: &str) -> Result<Arc<Loaded>, Sorry> {
        if let Some(loaded) = self.known(name, |k| Some(Arc::clone(&k.loaded)))? {
            return Ok(loaded);
        }
        let entries = self.find(name)?;
        let wanted = Wanted {
            listed: Some(html::LISTED),
            detail: Detail::Worst(1000),
            gains: true,
            names: self.names,
        };
        let read = read_apart(&entries, wanted, self.reporter(name), &self.stop);
        self.forget_progress(name);
        let loaded = Arc::new(read?);
        if let [(name, entry)] = &entries[..] {
            self.judged.note(name, entry, Said::of(&loaded));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(Kept { name: name.to_owned(), entries, loaded: Arc::clone(&loaded), page: None });
        let sizes: Vec<usize> = kept.iter().map(|k| k.loaded.analysis.connections.len()).collect();
        kept.drain(..too_many(&sizes));
        Ok(loaded)
    }

    /// Notes how far a capture was read, for those who wait for it.
    pub(super) fn reporter(&self, name: &str) -> Report {
        let (states, named) = (Arc::clone(&self.progress), name.to_owned());
        Box::new(move |packets, bytes| {
            let (read, total) = bytes.unwrap_or_default();
            let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
            states.insert(named.clone(), (packets, read, total));
        })
    }

    /// After it was read.
    pub(super) fn forget_progress(&self, name: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// The page of a capture as a file, made in the caller's turn if there is none yet.
    fn page(&self, name: &str) -> Result<Arc<Temporary>, Sorry> {
        let page = |k: &Kept| k.page.clone();
        if let Some(page) = self.known(name, page)? {
            return Ok(page);
        }
        let _turn = self.turns.take().ok_or_else(busy)?;
        // Who had the turn before may have made it.
        if let Some(page) = self.known(name, page)? {
            return Ok(page);
        }
        let loaded = self.load(name)?;
        let made = self.draw(name, &loaded).map_err(|e| (422, format!("{name}: {e:#}")))?;
        let made = Arc::new(made);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(k) = kept.iter_mut().find(|k| Arc::ptr_eq(&k.loaded, &loaded)) {
            k.page = Some(Arc::clone(&made));
        }
        Ok(made)
    }

    fn draw(&self, name: &str, loaded: &Loaded) -> anyhow::Result<Temporary> {
        // The packets are asked for by the window: the page needs fewer of a large connection.
        let listed = html::listed(&loaded.analysis);
        let listed = listed.as_deref();
        let tracks = loaded.source().tracks(&loaded.analysis, listed, source::PAGE / 2)?;
        let (file, page) = Temporary::file(self.folder.store(), "page-", ".html", true)?;
        let mut out = BufWriter::with_capacity(64 << 10, file);
        let extras = Extras { pages: pages::PAGES, tracks: &tracks, listed, served: Some(Served { name }) };
        html::write(&mut out, &loaded.analysis, &loaded.capture, &extras, 1)?;
        out.flush()?;
        Ok(page)
    }

    pub(super) fn view(&self, out: &mut impl Write, request: &Request) -> io::Result<()> {
        let name = request.query.get("name").map_or("", String::as_str);
        match self.page(name) {
            Ok(page) => {
                let mut file = File::open(page.path())?;
                http::head(out, 200, "text/html; charset=utf-8", &[])?;
                io::copy(&mut file, out).map(drop)
            }
            Err(why) => sorry(out, true, &why),
        }
    }

    /// The packets of a connection between two moments.
    pub(super) fn packets(&self, out: &mut impl Write, request: &Request) -> io::Result<()> {
        let number = |name: &str| request.query.get(name).and_then(|v| v.parse::<i64>().ok());
        let (Some(name), Some(id), Some(from), Some(to)) =
            (request.query.get("name"), number("connection"), number("from"), number("to"))
        else {
            return http::say(out, 400, "name, connection, from and to are needed");
        };
        match self.zoom(name, id, Nanos(from), Nanos(to)) {
            Ok(track) => {
                http::head(out, 200, "application/octet-stream", &[])?;
                out.write_all(&track)
            }
            Err(why) => sorry(out, false, &why),
        }
    }

    /// The packets of connection `id` between two moments since the start of the capture, for the page.
    fn zoom(&self, name: &str, id: i64, from: Nanos, to: Nanos) -> Result<Vec<u8>, Sorry> {
        let known = self.known(name, |k| Some(Arc::clone(&k.loaded)))?;
        let loaded = match known {
            Some(loaded) => loaded,
            None => {
                let _turn = self.turns.take().ok_or_else(busy)?;
                self.load(name)?
            }
        };
        let _turn = self.zooms.take().ok_or_else(busy)?;
        let start = loaded.capture.start();
        let (from, to) = (Nanos(start.0.saturating_add(from.0)), Nanos(start.0.saturating_add(to.0)));
        let mut list = loaded.analysis.connections.iter();
        let Some(c) = list.find(|c| i64::from(c.id) == id) else {
            return Err((404, "there is no such connection".into()));
        };
        match loaded.source().stretch(&loaded.analysis, c.id, (from, to), MOST_PACKETS + 1) {
            Ok(track) if track.packets.len() > MOST_PACKETS => {
                Err((413, "too many packets: look closer".into()))
            }
            Ok(track) => Ok(html::encode_track(&track, start)),
            Err(e) => Err((422, format!("{e:#}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way_and_the_newest_stays() {
        let large = KEPT_CONNECTIONS;
        assert_eq!([too_many(&[]), too_many(&[9 * large]), too_many(&[1, 9 * large])], [0, 0, 1]);
        assert_eq!([too_many(&[1, 1, 1, 1]), too_many(&[1, 1, 1, 1, 1])], [0, 1]);
        assert_eq!(
            [too_many(&[1, large - 1]), too_many(&[2, large - 1]), too_many(&[large, 1, 1])],
            [0, 1, 1]
        );
    }
}
