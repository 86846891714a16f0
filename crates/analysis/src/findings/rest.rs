//! What findings are made of, at rest.

use super::{Best, Doubt, Quick, Rollup, Rollups};
use crate::rest::{Time, at_rest};

at_rest! { Rollup { cause, side, tail, idle, doubt, lost, occurrences, range, example, evidence } }
at_rest! { Doubt { unsure, weighed as Time, time as Time } }
at_rest! { Best { example, time, facts } }
at_rest! { Quick { example, duration } }
at_rest! { Rollups(value) }
