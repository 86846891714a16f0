//! The fixes of a finding, with the figures of the capture filled in.

use crate::facts::Facts;
use crate::result::{Connection, Fix, Parameter};
use tcpwhy_base::{Cause, Endpoint, Figures, FixId, Nanos, Place, Side, SizedBy};

/// What fixes need to know of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub(crate) id: u32,
    pub(crate) server: Endpoint,
    /// The smaller of the MSS options.
    pub(crate) mss: Option<u32>,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) bandwidth_bps: Option<u64>,
    pub(crate) bytes: [u64; 2],
    pub(crate) exchanges_omitted: u64,
}

impl Brief {
    pub(crate) fn of(c: &Connection) -> Brief {
        Brief {
            id: c.id,
            server: c.server,
            mss: c.ends.iter().filter_map(|e| e.mss).min(),
            rtt: c.path.rtt,
            bandwidth_bps: c.path.bandwidth_bps,
            bytes: c.bytes,
            exchanges_omitted: c.exchanges_omitted.count,
        }
    }
}

/// Fixes for time lost to `cause`, the best first.
pub(crate) fn fixes_for(
    cause: Cause,
    side: Option<Side>,
    lost: Nanos,
    connection: &Brief,
    facts: &Facts,
) -> Vec<Fix> {
    let figures = figures(cause, side, connection, facts);
    let listed = match facts {
        // A SYN-ACK passed the tap and did not arrive: no queue of the server was full.
        Facts::SynRepeats { answered: true, syn_ack: false, .. } => {
            &[FixId::FixLoss, FixId::Firewall, FixId::ReuseConnections][..]
        }
        _ => cause.info().fixes,
    };
    listed
        .iter()
        .map(|&fix| {
            let info = fix.info();
            let how = info
                .how
                .iter()
                .filter_map(|h| Some(format!("{}: {}", h.system, figures.fill(h.text)?)))
                .collect();
            Fix {
                fix,
                place: place_of(info.place, cause, side),
                how,
                parameters: parameters(fix, side, connection, &figures),
                saves: Some(lost),
                predicted: None,
                replayed: false,
            }
        })
        .collect()
}

fn place_of(place: Place, cause: Cause, side: Option<Side>) -> &'static str {
    let at_reader = cause.info().at_reader;
    let side = match side {
        Some(Side::Client) if at_reader => Some(Side::Server),
        Some(Side::Server) if at_reader => Some(Side::Client),
        _ => side,
    };
    let (mine, other) = match side {
        Some(Side::Client) => ("client", "server"),
        Some(Side::Server) => ("server", "client"),
        _ => ("host", "host"),
    };
    match place {
        Place::Writer => mine,
        Place::Reader => other,
        Place::Client => "client",
        Place::Server => "server",
        Place::Host => "host",
        Place::Path => "path",
    }
}

fn figures(cause: Cause, side: Option<Side>, c: &Brief, facts: &Facts) -> Figures {
    let mut f = Figures::default();
    let mut put = |name, value: String| f.0.push((name, value));
    put("server", c.server.ip.to_string());
    put("port", c.server.port.to_string());
    let mss = c.mss;
    if let Some(mss) = mss {
        put("mss", mss.to_string());
    }
    if let Some(rtt) = c.rtt {
        put("rtt_ms", format!("{:.1}", rtt.as_ms()));
        if let Some(bps) = c.bandwidth_bps {
            put("rate_mbit", format!("{:.0}", bps as f64 / 1e6));
            let need = (bps as f64 / 8.0 * rtt.0 as f64 / 1e9) as u64;
            if cause.info().sized == SizedBy::Path {
                put("need_bytes", need.to_string());
            }
        }
    }
    match *facts {
        Facts::Window { flight, .. } | Facts::Flight { flight, .. } | Facts::AckDelay { flight, .. } => {
            put("have_bytes", flight.to_string());
        }
        Facts::Closed { window } => put("have_bytes", window.to_string()),
        _ => {}
    }
    if cause.info().sized == SizedBy::Message {
        let sender = usize::from(side == Some(Side::Server));
        let exchanges = c.exchanges_omitted.max(1);
        if let Some(mss) = mss.filter(|&m| m > 0) {
            let segments = c.bytes[sender] / exchanges / u64::from(mss) + 1;
            // Ten are the default (RFC 6928); beyond a hundred a larger initial window is no longer reasonable.
            if (11..=100).contains(&segments) {
                put("segments", segments.to_string());
            }
        }
    }
    f
}

fn parameters(
    fix: FixId,
    side: Option<Side>,
    c: &Brief,
    figures: &Figures,
) -> Vec<(&'static str, Parameter)> {
    let mut out = vec![
        ("server", Parameter::Text(c.server.to_string())),
        ("connection", Parameter::Number(i64::from(c.id))),
    ];
    if let Some(side) = side {
        out.push(("side", Parameter::Text(side.name().into())));
    }
    let number = |name: &str| figures.0.iter().find(|f| f.0 == name).and_then(|f| f.1.parse::<i64>().ok());
    match fix {
        FixId::UnsetRcvbuf | FixId::UnsetSndbuf | FixId::Wmem | FixId::Rmem | FixId::BiggerWindow => {
            if let Some(n) = number("need_bytes") {
                out.push(("bytes", Parameter::Number(n)));
            }
        }
        FixId::Initcwnd => {
            if let Some(n) = number("segments") {
                out.push(("segments", Parameter::Number(n)));
            }
        }
        _ => {}
    }
    out
}
