//! The matrix of labelled runs: rows of settings, at each round trip time and each size.

use crate::{LabError, Scenario, scenario};
use std::fmt::Write;

const MATRIX: &str = include_str!("../matrix.toml");

/// One run of the matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Row, round trip time and size, as in `nagle-request-rtt20-2`.
    pub name: String,
    /// The row.
    pub row: String,
    /// Round trip time of the link, milliseconds.
    pub rtt_ms: f64,
    /// Which size of the row, from 1.
    pub size: usize,
    /// What is run.
    pub scenario: Scenario,
}

/// All runs, in the order of the file.
pub fn cells() -> Result<Vec<Cell>, LabError> {
    expand(MATRIX)
}

fn expand(text: &str) -> Result<Vec<Cell>, LabError> {
    let wrong = |what: &str| LabError::Scenario(format!("matrix: {what}"));
    let matrix: toml::Table = text.parse().map_err(|e| wrong(&format!("{e}")))?;
    let rtts =
        matrix.get("rtts_ms").and_then(toml::Value::as_array).ok_or_else(|| wrong("rtts_ms is missing"))?;
    let table =
        |value: Option<&toml::Value>| value.and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let common = table(matrix.get("common"));
    let mut cells = Vec::new();
    for (name, row) in &table(matrix.get("row")) {
        let row = table(Some(row));
        let sizes =
            row.get("sizes").and_then(toml::Value::as_array).ok_or_else(|| wrong("a row without sizes"))?;
        for rtt in rtts {
            let rtt_ms = rtt.as_float().or_else(|| rtt.as_integer().map(|n| n as f64)).unwrap_or_default();
            for (n, size) in sizes.iter().enumerate() {
                let mut text = toml::Table::new();
                let title = format!("Matrix: {name}, {rtt_ms} ms, size {}", n + 1);
                scenario::put(&mut text, "title", title.into())?;
                scenario::put(&mut text, "link.rtt_ms", rtt_ms.into())?;
                for (key, value) in common.iter().chain(&row).chain(&table(Some(size))) {
                    if key != "sizes" {
                        scenario::put(&mut text, key, value.clone())?;
                    }
                }
                let mut label = String::new();
                let _ = write!(label, "{name}-rtt{rtt_ms}-{}", n + 1);
                cells.push(Cell {
                    name: label,
                    row: name.clone(),
                    rtt_ms,
                    size: n + 1,
                    scenario: Scenario::from_table(&text)?,
                });
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tcpwhy_base::Nanos;

    #[test]
    fn three_round_trip_times_by_three_sizes() {
        let cells = cells().unwrap();
        let names: BTreeSet<_> = cells.iter().map(|c| &c.name).collect();
        assert_eq!(names.len(), cells.len());
        // Both ends of each are captured.
        assert!(cells.len() * 2 >= 300, "{} runs", cells.len());
        let rows: BTreeSet<_> = cells.iter().map(|c| &c.row).collect();
        for row in rows {
            let of: Vec<_> = cells.iter().filter(|c| &c.row == row).collect();
            let rtts: BTreeSet<_> = of.iter().map(|c| c.rtt_ms as u64).collect();
            assert_eq!((of.len(), rtts.len()), (9, 3), "{row}");
        }
        let one = cells.iter().find(|c| c.name == "loss-middle-rtt20-3").unwrap();
        assert_eq!(
            (one.scenario.shared.rtt(), one.scenario.shared.links[1].drops.len()),
            (Nanos::millis(20), 2)
        );
        assert!(one.scenario.shared.hosts[0].nodelay);
    }

    #[test]
    fn keys_are_those_of_a_scenario() {
        let text =
            "rtts_ms = [1]\n[row.a]\n'workload.nonsense' = 1\nsizes = [{ 'workload.request' = [1] }]\n";
        assert!(expand(text).unwrap_err().to_string().contains("nonsense"));
    }
}
