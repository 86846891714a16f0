//! The page of one capture.

use crate::TcpwhyError;
use crate::source::{Source, exception};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_analysis::Analysis;
use tcpwhy_base::Nanos;
use tcpwhy_capture::Filter;
use tcpwhy_library::{Detail, Explain, Explained};
use tcpwhy_report::html::{self, Extras};
use tcpwhy_report::{Capture, Warning, quality_warnings};
use tcpwhy_trace::{Pass, Tracks};

/// Packets in a page, as `tcpwhy --html` has them.
const PAGE: u64 = 2_000_000;
/// Exchanges in detail, the longest.
const WORST: usize = 1_000;

/// A capture as a whole.
pub(crate) fn explained(
    source: &Source,
    filter: Option<Filter>,
    detail: Detail,
    stop: &Arc<AtomicBool>,
) -> PyResult<Explained> {
    let mut explain = Explain::new().detail(detail).stopped_by(Arc::clone(stop));
    if let Some(filter) = filter {
        explain = explain.filter(filter);
    }
    Ok(explain.all(source.open().map_err(exception)?))
}

pub(crate) fn html(source: &Source, filter: Option<Filter>, stop: Arc<AtomicBool>) -> PyResult<String> {
    let Explained { connections, findings, totals, input, .. } =
        explained(source, filter.clone(), Detail::Worst(WORST), &stop)?;
    let connections = connections.into_iter().map(Box::new).collect();
    let analysis = Analysis { connections, findings, totals, ..Analysis::default() };
    let mut warnings = quality_warnings(&analysis.totals);
    if let Some(damage) = &input.damage {
        warnings
            .insert(0, Warning { code: "damaged", text: format!("{}: {damage}", source.name()), count: 1 });
    }
    let capture = Capture {
        files: vec![source.name()],
        frames_before: vec![0],
        packets: input.packets,
        tcp_packets: input.counts.tcp,
        span: input.span,
        connections: analysis.totals.connections,
        encapsulations: input.encapsulations,
        partial: filter.is_some(),
        of_command: false,
        warnings,
    };
    let mut tracks = Tracks::new(&analysis.connections, PAGE);
    let mut again = source.open().map_err(exception)?;
    let all = (Nanos(i64::MIN), Nanos::MAX);
    let met = Pass::new(&analysis.connections, filter.as_ref()).read(&mut again, 0, all, |met| {
        tracks.take(met);
        Ok::<_, std::convert::Infallible>(true)
    });
    let Ok(_) = met;
    let tracks = tracks.finish();
    let mut out = Vec::new();
    html::write(
        &mut out,
        &analysis,
        &capture,
        &Extras { pages: &[], tracks: &tracks, listed: None, served: None },
        1,
    )
    .map_err(|e| TcpwhyError::new_err(e.to_string()))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
