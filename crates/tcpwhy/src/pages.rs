//! The documentation of causes, as it is in the program.

use std::fmt::Write as _;
use tcpwhy_base::{CauseInfo, Class};

/// The pages of `docs/causes`, by cause.
pub(crate) const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The documentation page of a cause; where none is written, what the table says.
pub(crate) fn page(cause: &CauseInfo) -> String {
    if let Some((_, page)) = PAGES.iter().find(|p| p.0 == cause.id) {
        return (*page).into();
    }
    let mut text = format!("# {} ({})\n\n{}: {}.\n", cause.title, cause.id, class(cause.class), cause.what);
    for fix in cause.fixes.iter().map(|f| f.info()) {
        let _ = writeln!(text, "\n- {} (`{}`)", fix.title, fix.id);
        for how in fix.how.iter().filter(|h| !h.text.contains('{')) {
            let _ = writeln!(text, "  - {}: {}", how.system, how.text);
        }
    }
    text
}

/// The part of a page under the heading that holds `heading`.
pub(crate) fn section(page: &str, heading: &str) -> Option<String> {
    let mut lines = page.lines().skip_while(|l| !(l.starts_with("## ") && l.contains(heading))).skip(1);
    let body: Vec<&str> = lines.by_ref().take_while(|l| !l.starts_with("## ")).collect();
    let body = body.join("\n").trim().to_owned();
    (!body.is_empty()).then_some(body)
}

/// What a class means.
pub(crate) fn class(class: Class) -> &'static str {
    match class {
        Class::Inherent => "Inherent: the price of this path and these sizes",
        Class::Application => "Application: not TCP",
        Class::Tcp => "TCP, host or path: can be avoided",
        Class::Unknown => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::CAUSES;

    #[test]
    fn every_cause_has_text() {
        for cause in CAUSES {
            assert!(page(cause).len() > 40, "{}", cause.id);
        }
    }

    #[test]
    fn sections_are_found() {
        let page = "# T\n\n## How tcpwhy recognises it\n\nBy this.\n\n## Fixes\n\nThat.\n";
        assert_eq!(section(page, "recognises").as_deref(), Some("By this."));
        assert_eq!(section(page, "Fixes").as_deref(), Some("That."));
        assert_eq!(section(page, "else"), None);
    }
}
