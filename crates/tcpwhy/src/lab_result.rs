//! What one experiment of the lab gave, as a small file beside its captures: `lab run --keep` writes it when
//! the experiment ends, `serve` shows it. Figures stand there as numbers and as the lab shows them, so that a
//! reader needs no table of units.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Its name in the folder of the experiment.
pub(crate) const FILE: &str = "lab-result.json";
/// What the lab writes has some hundred bytes; a file larger than this is not its.
const LARGEST: u64 = 64 << 10;

/// The result of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LabResult {
    /// Always `tcpwhy lab`.
    pub(crate) tool: String,
    pub(crate) schema: u32,
    pub(crate) name: String,
    pub(crate) title: String,
    /// Who published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Of a sweep: the key and its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    pub(crate) verdict: String,
    /// The verdict in words.
    pub(crate) said: String,
    /// What the figures are of, such as `exchange median`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) measure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) measured: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) theory: Option<Figure>,
    /// A smaller run: `measured` and `theory` are what it says of the published size.
    #[serde(default)]
    pub(crate) scaled: bool,
    /// Why it deviates, or why it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    pub(crate) disturbed: bool,
    /// Files beside this one.
    pub(crate) captures: Vec<Tap>,
    /// What the truth of the run says about its causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
}

/// A figure of the published size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    /// With its unit.
    pub(crate) shown: String,
}

/// The capture of one end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tap {
    pub(crate) end: String,
    pub(crate) file: String,
}

/// Takes the result of an earlier run away: its captures are about to be written over.
pub(crate) fn forget(folder: &Path) {
    // None there is as good; one that cannot be removed cannot be replaced either, and that is said.
    let _ = std::fs::remove_file(folder.join(FILE));
}

impl LabResult {
    /// Reads one; says in a few words what is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<LabResult, String> {
        let mut text = String::new();
        File::open(path)
            .and_then(|f| f.take(LARGEST + 1).read_to_string(&mut text))
            .map_err(|e| format!("cannot be read: {e}"))?;
        if text.len() as u64 > LARGEST {
            return Err("is too large for a result of the lab".into());
        }
        let result: LabResult =
            serde_json::from_str(&text).map_err(|e| format!("is no result of the lab: {e}"))?;
        if result.tool != "tcpwhy lab" || result.schema != 1 {
            return Err(format!(
                "is of {} with schema {}, which is not known here",
                result.tool, result.schema
            ));
        }
        Ok(result)
    }
}

#[cfg(target_os = "linux")]
impl LabResult {
    /// Writes it into `folder`, whole or not at all: who looks meanwhile sees no half of it.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        use anyhow::Context as _;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
        let mut out = crate::output::Output::open(Some(&folder.join(FILE)), true)?;
        let written = serde_json::to_writer_pretty(&mut out, self);
        out.finish(written.map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_no_result_is_refused_with_the_reason() {
        let folder = std::env::temp_dir().join(format!("tcpwhy-lab-result-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(FILE);
        let whole = r#"{"tool":"tcpwhy lab","schema":1,"name":"n","title":"<b>","verdict":"as_expected","said":"as expected",
            "disturbed":false,"captures":[{"end":"client","file":"a.pcap"}],"measured":{"value":1.5,"shown":"1.50 ms"}}"#;
        let read = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            LabResult::read(&path)
        };
        let result = read(whole.as_bytes()).unwrap();
        assert_eq!((result.title.as_str(), result.measured.unwrap().value), ("<b>", 1.5));
        assert!(
            read(&whole.as_bytes()[..whole.len() / 2]).unwrap_err().contains("no result of the lab: EOF")
        );
        assert!(read(&[0xff, 0xfe]).unwrap_err().contains("cannot be read"));
        assert!(read(b"{}").unwrap_err().contains("missing field"));
        assert!(read(&vec![b' '; LARGEST as usize + 1]).unwrap_err().contains("too large"));
        assert!(
            read(whole.replace("\"schema\":1", "\"schema\":2").as_bytes()).unwrap_err().contains("schema 2")
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_written_is_read() {
        let folder = std::env::temp_dir().join(format!("tcpwhy-lab-written-{}", std::process::id()));
        let result = LabResult {
            tool: "tcpwhy lab".into(),
            schema: 1,
            name: "n".into(),
            title: "t".into(),
            source: Some("s".into()),
            at: None,
            verdict: "as_published".into(),
            said: "as published".into(),
            measure: None,
            published: Some(Figure { value: 40.0, shown: "40.0 ms".into() }),
            measured: None,
            theory: None,
            scaled: true,
            note: None,
            disturbed: false,
            captures: vec![Tap { end: "server".into(), file: "cap.server.pcap".into() }],
            label: Some("l".into()),
        };
        result.write(&folder.join("deep")).unwrap();
        assert_eq!(LabResult::read(&folder.join("deep").join(FILE)), Ok(result));
        assert_eq!(fs::read_dir(folder.join("deep")).unwrap().count(), 1, "nothing half is left");
        fs::remove_dir_all(folder).unwrap();
    }
}
