//! The first page: what is in the folder, and a place to drop a file.

use super::{Shared, http, secret};
use std::io::{self, Write};

impl Shared {
    pub(super) fn start(&self, out: &mut impl Write) -> io::Result<()> {
        let nonce = secret();
        let policy = format!(
            "Content-Security-Policy: default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
        );
        http::head(out, 200, "text/html; charset=utf-8", &policy)?;
        let script = include_str!("../../assets/serve.js").replace("%LIMIT%", &self.limit.to_string());
        let page = include_str!("../../assets/serve.html")
            .replace("%STYLE%", include_str!("../../assets/serve.css"))
            .replace("%NONCE%", &nonce)
            .replace("%SCRIPT%", &script);
        out.write_all(page.as_bytes())
    }
}
