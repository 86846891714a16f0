//! Two captures beside each other: the page of `tcpwhy compare --html`.

use super::apart::{Wanted, busy, read_apart};
use super::http::{self, Request};
use super::view::sorry;
use super::{Shared, Sorry};
use crate::load::Loaded;
use std::io::{self, Write};
use tcpwhy_library::Detail;
use tcpwhy_report::compare;

/// Bytes of both files: every exchange of them is kept while they are compared.
const MOST: u64 = 128 << 20;

impl Shared {
    pub(super) fn compare(&self, out: &mut impl Write, request: &Request) -> io::Result<()> {
        let name = |which: &str| request.query.get(which).map_or("", String::as_str);
        match self.compared(name("before"), name("after")) {
            Ok(page) => {
                http::head(out, 200, "text/html; charset=utf-8", &[])?;
                out.write_all(&page)
            }
            Err(why) => sorry(out, true, &why),
        }
    }

    /// The page of two captures. Nothing of it is kept.
    fn compared(&self, before: &str, after: &str) -> Result<Vec<u8>, Sorry> {
        let found = self.folder.list();
        let find = |name: &str| {
            found.get(name).cloned().ok_or_else(|| (404, format!("there is no capture {name} here")))
        };
        let entries = [find(before)?, find(after)?];
        if entries.iter().map(|e| e.size).sum::<u64>() > MOST {
            let why = format!("both are more than {} MiB: tcpwhy compare {before} {after}", MOST >> 20);
            return Err((413, why));
        }
        let _turn = self.turns.take().ok_or_else(busy)?;
        let read = |name: &str, i: usize| -> Result<Loaded, Sorry> {
            let wanted = Wanted { listed: None, detail: Detail::All, gains: false, names: self.names };
            let capture = (name.to_owned(), entries[i].clone());
            let read = read_apart(&[capture], wanted, self.reporter(name), &self.stop);
            self.forget_progress(name);
            read
        };
        let sides = [read(before, 0)?, read(after, 1)?];
        let comparison = tcpwhy_library::compare_answers(&sides[0].analysis, &sides[1].analysis);
        let comparison = comparison.ok_or_else(|| {
            (
                422,
                format!(
                    "{before} and {after} share no server, by address or by port: there is nothing to compare"
                ),
            )
        })?;
        let mut page = Vec::new();
        let written = compare::page(&mut page, &comparison, [before, after]);
        written.map_err(|e| (422, e.to_string()))?;
        Ok(page)
    }
}
