//! The inputs for the second pass: read as they were read first.

use crate::input::Input;
use tcpwhy_base::{Nanos, SocketEvent};
use tcpwhy_library::Filter;
use tcpwhy_library::{Connection, captures::Analysis, captures::Window};
use tcpwhy_trace::{Found, Met, Names, Pass, Stretch, Track, Tracks};

/// Packets in a page. More would make it larger than a ticket system takes: a million are 3 to 6 MB.
pub(crate) const PAGE: u64 = 2_000_000;

/// What the first pass read, so that the second reads the same.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) inputs: &'a [Input],
    pub(crate) frames_before: &'a [u64],
    pub(crate) window: Option<Window>,
    pub(crate) filter: Option<&'a Filter>,
}

impl Source<'_> {
    /// Reads all inputs again and gives each frame to `each`, in their order, until it says `false`.
    pub(crate) fn read_again(
        &self,
        connections: &[Box<Connection>],
        each: impl FnMut(&Met<'_>) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        self.pass(Pass::new(connections, self.filter), each)
    }

    /// The same; what kernels said between frames goes to `hear`.
    pub(crate) fn read_again_hearing(
        &self,
        connections: &[Box<Connection>],
        hear: impl FnMut(&mut Vec<SocketEvent>) -> anyhow::Result<()>,
        each: impl FnMut(&Met<'_>) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        self.pass_hearing(Pass::new(connections, self.filter), hear, each)
    }

    fn pass(&self, pass: Pass<'_>, each: impl FnMut(&Met<'_>) -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let hear = |heard: &mut Vec<SocketEvent>| {
            heard.clear();
            Ok(())
        };
        self.pass_hearing(pass, hear, each)
    }

    fn pass_hearing(
        &self,
        mut pass: Pass<'_>,
        mut hear: impl FnMut(&mut Vec<SocketEvent>) -> anyhow::Result<()>,
        mut each: impl FnMut(&Met<'_>) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        for (input, &before) in self.inputs.iter().zip(self.frames_before) {
            let mut reader = input.open().map_err(|e| anyhow::anyhow!(e))?;
            let times = self.window.map_or((Nanos(i64::MIN), Nanos::MAX), |w| (w.from, w.to));
            if !pass.read_hearing(&mut reader, before, times, &mut hear, &mut each)? {
                break;
            }
        }
        Ok(())
    }

    /// What exchanges are called, for `analysis` to be told; `parents`: which spans of the application they
    /// belong to, too.
    pub(crate) fn names(&self, analysis: &Analysis, parents: bool) -> anyhow::Result<Found> {
        let mut names = Names::new(&analysis.connections, parents);
        self.read_again(&analysis.connections, |met| {
            names.take(met);
            Ok(true)
        })?;
        Ok(names.finish())
    }

    /// The packets of the connections that a page lists (`html::listed`), thinned out to `room` of them.
    pub(crate) fn tracks(
        &self,
        analysis: &Analysis,
        listed: Option<&[usize]>,
        room: u64,
    ) -> anyhow::Result<Vec<Track>> {
        let all = &analysis.connections;
        let mut tracks = match listed {
            None => Tracks::new(all, room),
            Some(places) => Tracks::among(all, places.to_vec(), room),
        };
        self.pass(Pass::of(all, |place| tracks.wants(place), self.filter), |met| {
            tracks.take(met);
            Ok(true)
        })?;
        Ok(tracks.finish())
    }

    /// The packets of one connection from a moment to another, at most so many.
    pub(crate) fn stretch(
        &self,
        analysis: &Analysis,
        id: u32,
        times: (Nanos, Nanos),
        most: usize,
    ) -> anyhow::Result<Track> {
        let Some(at) = analysis.connections.iter().position(|c| c.id == id) else {
            return Ok(Track::default());
        };
        let mut stretch = Stretch::new(&analysis.connections, at, times, most);
        let pass = Pass::of(&analysis.connections, |place| place == at, self.filter);
        self.pass(pass, |met| Ok(stretch.take(met)))?;
        Ok(stretch.finish())
    }
}
