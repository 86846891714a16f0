//! Many predictions over one or two varying settings: as a table, as CSV, as a drawing.

use super::types::CauseName;
use std::io::{self, Write};
use tcpwhy_base::Nanos;

/// A setting that varies.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, as on the command line.
    pub name: String,
    /// Its values, for people.
    pub labels: Vec<String>,
    /// Its values as numbers (nanoseconds, bytes, bits a second, ...).
    pub values: Vec<f64>,
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Total time.
    Time,
    /// Payload over total time.
    Throughput,
}

/// One prediction.
#[derive(Clone, Debug)]
pub struct Point {
    /// Total time; none: not possible, or not done within the limits.
    pub total: Option<Nanos>,
    /// Payload in both directions.
    pub bytes: u64,
    /// The cause that takes the most time.
    pub cause: Option<CauseName>,
}

impl Point {
    fn bps(&self) -> Option<f64> {
        let total = self.total.filter(|t| t.0 > 0)?;
        Some(self.bytes as f64 * 8e9 / total.0 as f64)
    }

    fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Time => self.total.map(|t| t.0 as f64),
            Metric::Throughput => self.bps(),
        }
    }

    fn label(&self, metric: Metric) -> String {
        match (metric, self.total) {
            (_, None) => "-".into(),
            (Metric::Time, Some(t)) => t.to_string(),
            (Metric::Throughput, _) => {
                self.bps().map_or("-".into(), |b| crate::text::style::bit_rate(b as u64))
            }
        }
    }
}

/// Predictions over one axis or two; `points` row by row, the last axis fastest.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// One or two.
    pub axes: Vec<Axis>,
    /// As many as the product of their lengths.
    pub points: Vec<Point>,
    /// What is shown in table and drawing.
    pub metric: Metric,
}

impl Sweep {
    /// For people.
    pub fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let [first, rest @ ..] = self.axes.as_slice() else { return Ok(()) };
        let Some(second) = rest.first() else {
            let width =
                first.labels.iter().map(|l| l.chars().count()).chain([first.name.len()]).max().unwrap_or(0);
            writeln!(out, "{:>width$}  {:>12}  {:>12}  most time", first.name, "time", "throughput")?;
            for (label, p) in first.labels.iter().zip(&self.points) {
                let cause = p.cause.map_or("", |c| c.0.id());
                writeln!(
                    out,
                    "{label:>width$}  {:>12}  {:>12}  {cause}",
                    p.label(Metric::Time),
                    p.label(Metric::Throughput)
                )?;
            }
            return Ok(());
        };
        let head = format!("{} \\ {}", first.name, second.name);
        let width = first.labels.iter().map(|l| l.chars().count()).chain([head.len()]).max().unwrap_or(0);
        write!(out, "{head:>width$}")?;
        second.labels.iter().try_for_each(|l| write!(out, "  {l:>11}"))?;
        writeln!(out)?;
        for (label, row) in first.labels.iter().zip(self.points.chunks(second.labels.len().max(1))) {
            write!(out, "{label:>width$}")?;
            row.iter().try_for_each(|p| write!(out, "  {:>11}", p.label(self.metric)))?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// One line for each prediction; times in nanoseconds, sizes in bytes, rates in bits a second.
    pub fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        for axis in &self.axes {
            write!(out, "{},", axis.name)?;
        }
        writeln!(out, "total_ns,throughput_bps,cause")?;
        let inner = self.axes.get(1).map_or(1, |a| a.values.len().max(1));
        for (i, p) in self.points.iter().enumerate() {
            if let Some(v) = self.axes.first().and_then(|a| a.values.get(i / inner)) {
                write!(out, "{v},")?;
            }
            if let Some(v) = self.axes.get(1).and_then(|a| a.values.get(i % inner)) {
                write!(out, "{v},")?;
            }
            let total = p.total.map_or(String::new(), |t| t.0.to_string());
            let bps = p.bps().map_or(String::new(), |b| format!("{b:.0}"));
            writeln!(out, "{total},{bps},{}", p.cause.map_or("", |c| c.0.id()))?;
        }
        Ok(())
    }

    /// A drawing: one line for each value of the second axis, both scales logarithmic.
    pub fn svg(&self, out: &mut impl Write) -> io::Result<()> {
        const COLOURS: [&str; 8] =
            ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"];
        const AREA: [f64; 4] = [80.0, 30.0, 720.0, 400.0];
        let Some(x) = self.axes.first() else { return Ok(()) };
        let inner = self.axes.get(1).map_or(1, |a| a.values.len().max(1));
        let log = |v: f64| v.max(1e-3).log10();
        let values: Vec<f64> = self.points.iter().filter_map(|p| p.value(self.metric)).collect();
        let range = |v: &[f64]| {
            let (low, high) =
                v.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(log(v)), b.max(log(v))));
            if low < high { (low, high) } else { (low - 0.5, low + 0.5) }
        };
        let ((x0, x1), (y0, y1)) = (range(&x.values), range(&values));
        let [left, top, right, bottom] = AREA;
        let px = |v: f64| left + (log(v) - x0) / (x1 - x0) * (right - left);
        let py = |v: f64| bottom - (log(v) - y0) / (y1 - y0) * (bottom - top);
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="900" height="460" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(out, r#"<rect width="900" height="460" fill="white"/>"#)?;
        for (v, label) in x.values.iter().zip(&x.labels) {
            let at = px(*v);
            writeln!(out, "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#e0e0e0\"/>")?;
            let y = bottom + 16.0;
            writeln!(out, "<text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", escaped(label))?;
        }
        for n in 0..=5 {
            let v = 10_f64.powf(y0 + (y1 - y0) * f64::from(n) / 5.0);
            let at = py(v);
            let label = match self.metric {
                Metric::Time => Nanos(v as i64).to_string(),
                Metric::Throughput => crate::text::style::bit_rate(v as u64),
            };
            writeln!(out, "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#e0e0e0\"/>")?;
            let (x, y) = (left - 6.0, at + 4.0);
            writeln!(out, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>")?;
        }
        for line in 0..inner {
            let colour = COLOURS[line % COLOURS.len()];
            let points = x.values.iter().enumerate().filter_map(|(i, v)| {
                let y = self.points.get(i * inner + line)?.value(self.metric)?;
                Some(format!("{:.1},{:.1}", px(*v), py(y)))
            });
            let points: Vec<String> = points.collect();
            writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                points.join(" ")
            )?;
            if let Some(label) = self.axes.get(1).and_then(|a| a.labels.get(line)) {
                let y = top + 16.0 * line as f64 + 10.0;
                let name = self.axes.get(1).map_or("", |a| a.name.as_str());
                writeln!(
                    out,
                    "<text x=\"{}\" y=\"{y}\" fill=\"{colour}\">{} {}</text>",
                    right + 10.0,
                    escaped(name),
                    escaped(label)
                )?;
            }
        }
        let what = if self.metric == Metric::Time { "time" } else { "throughput" };
        writeln!(out, "<text x=\"{left}\" y=\"20\">{what} against {}</text>\n</svg>", escaped(&x.name))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sweep {
        let axis = |name: &str, labels: [&str; 2], values: [f64; 2]| Axis {
            name: name.into(),
            labels: labels.map(String::from).into(),
            values: values.into(),
        };
        let point = |ms| Point { total: ms, bytes: 1_000_000, cause: None };
        Sweep {
            axes: vec![
                axis("rtt", ["1 ms", "100 ms"], [1e6, 1e8]),
                axis("response", ["1 kB", "<1 MB"], [1e3, 1e6]),
            ],
            points: [Some(2), None, Some(200), Some(2000)].map(|ms| point(ms.map(Nanos::millis))).into(),
            metric: Metric::Time,
        }
    }

    #[test]
    fn tables_have_a_row_for_each_value() {
        let mut out = Vec::new();
        sample().table(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<Vec<&str>> =
            text.lines().map(|l| l.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect()).collect();
        assert_eq!(rows[1], ["1 ms", "2.00 ms", "-"]);
        assert_eq!(rows[2], ["100 ms", "200 ms", "2.00 s"]);
    }

    #[test]
    fn csv_has_a_line_for_each_prediction() {
        let mut out = Vec::new();
        sample().csv(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().next(), Some("rtt,response,total_ns,throughput_bps,cause"));
        assert_eq!(text.lines().nth(1), Some("1000000,1000,2000000,4000000000,"));
        assert_eq!(text.lines().nth(2), Some("1000000,1000000,,,"));
        assert_eq!(text.lines().count(), 5);
    }

    #[test]
    fn drawings_are_well_formed() {
        let mut out = Vec::new();
        sample().svg(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("<polyline").count(), 2);
        assert!(text.contains("&lt;1 MB") && text.trim_end().ends_with("</svg>"));
    }
}
