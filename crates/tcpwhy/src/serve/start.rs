//! The first page: what is in the folder, and a place to drop a file.

use super::access::secret;
use super::{Shared, http};
use std::io::{self, Write};
use tcpwhy_report::html::Escaped;

/// What is said while there is nothing to show.
const NONE_YET: &str = "No captures here yet. pcap and pcapng files, also packed with gzip, zstd or lz4, appear as they are \
                        written, and so do the results of tcpwhy lab run --keep.";
const NO_FOLDER: &str =
    "Nothing was dropped yet. Started with a folder, tcpwhy serve lists its captures here.";

impl Shared {
    pub(super) fn start(&self, out: &mut impl Write) -> io::Result<()> {
        let nonce = secret();
        let policy = format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        http::head(out, 200, "text/html; charset=utf-8", &[("Content-Security-Policy", &policy)])?;
        let script = include_str!("../../assets/serve.js").replace("%LIMIT%", &self.room.limit().to_string());
        let page = include_str!("../../assets/serve.html")
            .replace("%STYLE%", include_str!("../../assets/serve.css"))
            .replace("%NONCE%", &nonce)
            .replace("%NONE%", if self.folder.place().is_some() { NONE_YET } else { NO_FOLDER })
            .replace("%PLACE%", &Escaped(&self.folder.place().unwrap_or_default()).to_string())
            .replace("%SCRIPT%", &script);
        out.write_all(page.as_bytes())
    }
}
