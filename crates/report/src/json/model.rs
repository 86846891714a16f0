use schemars::JsonSchema;
use serde::Serialize;
use tcpwhy_analysis::Replay;

/// The example of a finding, replayed in the model of both ends and the path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Model<'a> {
    /// Which connection.
    pub connection: u32,
    /// First exchange of the replayed part.
    pub first_exchange: u32,
    /// Its last exchange.
    pub last_exchange: u32,
    /// Its time in the capture: exchanges, and the setup if the first is 1.
    pub observed_ns: i64,
    /// Its time in the model.
    pub modelled_ns: i64,
    /// Model less capture, as a share of the capture.
    pub error: f64,
    /// The error is at most 15 %; else nothing is predicted from it.
    pub trustworthy: bool,
    /// What did not show and was assumed.
    pub assumed: &'a [String],
    /// The best changes together.
    pub together: Option<Combined>,
    /// Changes that are often advised and do not help here.
    pub no_help: Vec<NoEffect>,
}

/// Several changes at once.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Combined {
    /// Ids of fixes, each with where it is made.
    pub fixes: Vec<(&'static str, &'static str)>,
    /// Time of the replayed part with all of them.
    pub predicted_ns: i64,
}

/// A change that does not help.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NoEffect {
    /// Id of the fix, or of a setting that is none.
    pub id: &'static str,
    /// `client`, `server`, `both` or `path`.
    #[serde(rename = "where")]
    pub place: &'static str,
    /// In a few words.
    pub what: String,
    /// What it saves of the replayed part: nothing, or below zero.
    pub saves_ns: i64,
}

impl NoEffect {
    pub(super) fn new(v: tcpwhy_analysis::NoEffect) -> NoEffect {
        NoEffect { id: v.id, place: v.place, what: v.what, saves_ns: v.saves.0 }
    }
}

impl<'a> Model<'a> {
    pub(super) fn new(r: &'a Replay) -> Model<'a> {
        Model {
            connection: r.connection,
            first_exchange: r.exchanges.0,
            last_exchange: r.exchanges.1,
            observed_ns: r.observed.0,
            modelled_ns: r.modelled.0,
            error: r.error(),
            trustworthy: r.trustworthy(),
            assumed: &r.assumed,
            together: r.together.as_ref().map(|t| Combined {
                fixes: t.changes.iter().map(|f| (f.0.info().id, f.1)).collect(),
                predicted_ns: t.predicted.0,
            }),
            no_help: r.no_help.iter().cloned().map(NoEffect::new).collect(),
        }
    }
}
