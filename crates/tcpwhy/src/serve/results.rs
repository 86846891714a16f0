//! The results of the lab in the folder, as rows for the page. A file that cannot be understood is a row that says why.

use super::folder::{Entry, Found};
use crate::lab_result::{LabResult, Tap};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What was read of each file, and of which state of it.
type Read = (Entry, Arc<Result<LabResult, String>>);

/// Results that were read already: each file is read once, and again when it has changed.
#[derive(Default)]
pub(crate) struct Results(Mutex<BTreeMap<String, Read>>);

impl Results {
    /// All rows as JSON, the newest first.
    pub(crate) fn list(&self, found: &Found) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, (entry, _)| found.results.get(name) == Some(entry));
        let mut rows: Vec<_> = found.results.iter().collect();
        rows.sort_by(|a, b| b.1.changed.cmp(&a.1.changed).then(a.0.cmp(b.0)));
        let rows = rows.into_iter().map(|(name, entry)| {
            let read = known
                .entry(name.clone())
                .or_insert_with(|| (entry.clone(), Arc::new(LabResult::read(&entry.path))));
            row(name, &read.1, found)
        });
        serde_json::Value::from_iter(rows).to_string()
    }
}

fn row(name: &str, result: &Result<LabResult, String>, found: &Found) -> serde_json::Value {
    match result {
        Ok(result) => {
            let folder = name.rsplit_once('/').map_or("", |n| n.0);
            let taps: Vec<_> = result.captures.iter().filter_map(|tap| capture(folder, tap, found)).collect();
            serde_json::json!({ "file": name, "result": result, "captures": taps })
        }
        Err(why) => serde_json::json!({ "file": name, "problem": why }),
    }
}

/// A capture beside the result, if it is among those that were found.
fn capture(folder: &str, tap: &Tap, found: &Found) -> Option<serde_json::Value> {
    let name = if folder.is_empty() { tap.file.clone() } else { format!("{folder}/{}", tap.file) };
    found.captures.contains_key(&name).then(|| serde_json::json!({ "end": tap.end, "name": name }))
}

#[cfg(test)]
mod tests {
    use super::super::folder::Folder;
    use super::*;
    use crate::temporary::Temporary;
    use serde_json::{Value, json};
    use std::fs;

    #[test]
    fn rows_come_and_change_with_their_files() {
        let base = std::env::temp_dir().join(format!("tcpwhy-results-{}", std::process::id()));
        fs::create_dir_all(base.join("in/a")).unwrap();
        let folder = Folder::new(&[base.join("in")], Temporary::folder(&base, "store-").unwrap()).unwrap();
        let results = Results::default();
        let rows = || -> Value { serde_json::from_str(&results.list(&folder.look())).unwrap() };
        assert_eq!(rows(), json!([]));
        fs::write(base.join("in/a/cap.client.pcap"), "x").unwrap();
        let path = base.join("in/a/lab-result.json");
        let text = json!({ "tool": "tcpwhy lab", "schema": 1, "name": "n", "title": "<img src=x>", "verdict": "as_expected",
            "said": "as expected", "disturbed": false,
            "captures": [{ "end": "client", "file": "cap.client.pcap" }, { "end": "server", "file": "../../cap.pcap" }] })
        .to_string();
        fs::write(&path, &text[..40]).unwrap();
        assert_eq!(rows()[0]["file"], "a/lab-result.json");
        assert!(rows()[0]["problem"].as_str().unwrap().contains("no result of the lab"));
        fs::write(&path, &text).unwrap();
        let now = rows();
        assert_eq!(now[0]["result"]["title"], "<img src=x>");
        assert_eq!(
            now[0]["captures"],
            json!([{ "end": "client", "name": "a/cap.client.pcap" }]),
            "no way out"
        );
        fs::remove_file(&path).unwrap();
        assert_eq!(rows(), json!([]));
        drop(folder);
        fs::remove_dir_all(base).unwrap();
    }
}
