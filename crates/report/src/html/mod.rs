//! A page that shows an analysis: one file, nothing from elsewhere. The page itself is built from `web/` and
//! committed as `assets/report.html`; here the answer is put into it. What comes from a capture goes in as base64,
//! or escaped, never as markup.

mod columns;
mod embed;
mod fixes;
mod listed;
mod plain;

pub use listed::MOST as LISTED;
pub use plain::Escaped;

/// The places of the connections that a page lists ([`Extras::listed`]), ascending; `None` if that is all of
/// them, as it is up to 10,000.
pub fn listed(analysis: &Analysis) -> Option<Vec<usize>> {
    listed::listed(analysis, listed::MOST)
}

use crate::{Capture, json};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use tcpwhy_analysis::Analysis;
use tcpwhy_base::{CAUSES, Kind, Nanos};
use tcpwhy_trace::Track;

/// As built from `web/`.
const TEMPLATE: &str = include_str!("../../assets/report.html");
/// Tracks are packed together up to about so many bytes: a small one alone would hardly shrink, and of a large
/// block only a part might be wanted.
const CHUNK: usize = 256 << 10;

/// What a page needs beside the analysis.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// The documentation pages of the causes: id and text in Markdown.
    pub pages: &'a [(&'static str, &'a str)],
    /// Packets of the connections that have graphs.
    pub tracks: &'a [Track],
    /// The places of the connections that it lists, ascending; `None`: all.
    pub listed: Option<&'a [usize]>,
    /// The page may ask the server it came from (`tcpwhy serve`); else it can reach nothing at all.
    pub served: Option<Served<'a>>,
}

/// What a page that came from `tcpwhy serve` knows of its server.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Served<'a> {
    /// Name of the capture, as the server lists it.
    pub name: &'a str,
}

/// Writes the page.
pub fn write(
    out: &mut (impl Write + Send),
    analysis: &Analysis,
    capture: &Capture,
    extras: &Extras<'_>,
    threads: usize,
) -> io::Result<()> {
    let mut rest = TEMPLATE;
    for (mark, part) in [
        ("%CONNECT%", Part::Connect),
        ("%TITLE%", Part::Title),
        ("<!--plain-->", Part::Plain),
        ("<!--data-->", Part::Data),
    ] {
        let (before, after) =
            rest.split_once(mark).ok_or_else(|| io::Error::other("the page has no place for its data"))?;
        out.write_all(before.as_bytes())?;
        match part {
            Part::Connect => out.write_all(if extras.served.is_some() { b"'self'" } else { b"'none'" })?,
            Part::Title => write!(out, "{}", Escaped(&title(capture)))?,
            Part::Plain => plain::write(out, analysis, capture)?,
            Part::Data => data(out, analysis, capture, extras, threads)?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

enum Part {
    Connect,
    Title,
    Plain,
    Data,
}

fn title(capture: &Capture) -> String {
    let names: Vec<&str> =
        capture.files.iter().map(|f| f.rsplit(['/', '\\']).next().unwrap_or(f)).take(3).collect();
    format!("{} · tcpwhy", names.join(", "))
}

/// What the script reads beside the JSON.
#[derive(Serialize)]
struct Page<'a> {
    frames_before: &'a [u64],
    /// Of all connections, listed or not.
    exchanges: u64,
    causes: Vec<CauseRow<'a>>,
    tracks: Vec<TrackRow>,
    served: Option<Served<'a>>,
    fixes: BTreeMap<&'a str, Vec<json::Fix<'a>>>,
    general: fixes::General,
}

#[derive(Serialize)]
struct CauseRow<'a> {
    id: &'static str,
    class: &'static str,
    owner: &'static str,
    group: &'static str,
    span: bool,
    title: &'static str,
    what: &'static str,
    page: &'a str,
}

#[derive(Serialize)]
struct TrackRow {
    connection: u32,
    chunk: usize,
    at: usize,
    kept: usize,
    total: u64,
}

fn data(
    out: &mut (impl Write + Send),
    analysis: &Analysis,
    capture: &Capture,
    extras: &Extras<'_>,
    threads: usize,
) -> io::Result<()> {
    embed::block(out, "d-report", |mut w| match extras.listed {
        None => json::write(&mut w, analysis, capture, threads),
        Some(places) => json::write_of(&mut w, analysis, capture, places),
    })?;
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut tracks = Vec::with_capacity(extras.tracks.len());
    for track in extras.tracks {
        if chunks.last().is_none_or(|c| c.len() >= CHUNK) {
            chunks.push(Vec::new());
        }
        let chunk = chunks.len() - 1;
        let at = chunks[chunk].len();
        columns::encode(track, capture.start(), &mut chunks[chunk]);
        tracks.push(TrackRow {
            connection: track.connection,
            chunk,
            at,
            kept: track.packets.len(),
            total: track.total,
        });
    }
    let own = fixes::own(analysis);
    let fixes = fixes::shown(&own, json::Context::new(analysis, capture));
    let page = page(capture, extras, tracks, fixes, analysis);
    embed::block(out, "d-page", |w| Ok(serde_json::to_writer(w, &page)?))?;
    for (i, chunk) in chunks.iter().enumerate() {
        embed::block(out, &format!("d-packets-{i}"), |w| w.write_all(chunk))?;
    }
    Ok(())
}

fn page<'a>(
    capture: &'a Capture,
    extras: &Extras<'a>,
    tracks: Vec<TrackRow>,
    fixes: BTreeMap<&'a str, Vec<json::Fix<'a>>>,
    analysis: &Analysis,
) -> Page<'a> {
    let text = |id| extras.pages.iter().find(|p| p.0 == id).map_or("", |p| p.1);
    Page {
        frames_before: &capture.frames_before,
        exchanges: analysis.totals.exchanges,
        causes: CAUSES
            .iter()
            .map(|c| CauseRow {
                id: c.id,
                class: c.class.letter(),
                owner: c.owner.id(),
                group: c.group.id(),
                span: c.kind == Kind::Span,
                title: c.title,
                what: c.what,
                page: text(c.id),
            })
            .collect(),
        tracks,
        served: extras.served,
        fixes,
        general: fixes::General::of(&analysis.findings),
    }
}

/// Where the packets of a capture start, for [`encode_track`].
pub fn encode_track(track: &Track, start: Nanos) -> Vec<u8> {
    let mut bytes = Vec::new();
    columns::encode(track, start, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, headline};

    #[test]
    fn a_page_holds_the_verdict_and_no_markup_of_the_capture() {
        let analysis = crate::sample::analysis();
        let hostile = "</script><img src=x onerror=alert(1)>.pcap";
        let capture = Capture { files: vec![hostile.into()], ..Capture::default() };
        let mut page = Vec::new();
        write(&mut page, &analysis, &capture, &Extras::default(), 1).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains(hostile) && !page.contains("<img src=x"));
        assert!(page.contains("&lt;/script&gt;&lt;img src=x"));
        assert!(page.contains("connect-src 'none'"));
        assert!(page.contains("id=\"d-report\"") && page.contains("id=\"d-page\""));
        let said = headline(&analysis, &capture, &Answer::new(&analysis));
        assert!(page.contains(&Escaped(&said).to_string()));
    }
}
