//! A file that is dropped on the page.

use super::{Shared, http};
use crate::input::Input;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::sync::atomic::Ordering;

impl Shared {
    pub(super) fn upload(&self, out: &mut impl Write, request: &mut http::Request) -> io::Result<()> {
        let name = request.query.get("name").cloned().unwrap_or_default();
        let Some(length) = request.header("content-length").and_then(|l| l.parse::<u64>().ok()) else {
            return http::say(out, 411, "the length of the file is missing");
        };
        if length > self.limit {
            let most = tcpwhy_report::text::bytes(self.limit);
            let why = format!(
                "{name} is larger than is taken here ({most}): start tcpwhy serve with the file or its folder instead"
            );
            return http::say(out, 413, &why);
        }
        let path = self.folder.path_for(self.dropped.fetch_add(1, Ordering::Relaxed));
        let kept = (|| {
            let mut file = File::create_new(&path)?;
            let n = io::copy(&mut (&mut request.body).take(length), &mut file)?;
            if n == length {
                Ok(())
            } else {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it was cut off on its way"))
            }
        })();
        let refuse = |out: &mut _, status, why: &str| {
            let _ = fs::remove_file(&path);
            http::say(out, status, why)
        };
        if let Err(e) = kept {
            return refuse(out, 507, &format!("{name} could not be kept: {e}"));
        }
        let input = Input { path: path.clone(), name: name.clone() };
        if let Err(why) = input.open() {
            return refuse(out, 415, &why);
        }
        let name = self.folder.add(&name, path);
        http::head(out, 200, "application/json", &[])?;
        out.write_all(serde_json::json!({ "name": name }).to_string().as_bytes())
    }
}
