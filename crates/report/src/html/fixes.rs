//! Fixes with the figures of the connection that they are shown for. The findings of the capture propose theirs for the
//! connection that lost most: its times, addresses and sizes are no advice for another one.

use crate::json::{Context, Fix, View};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tcpwhy_analysis::{self as a, Analysis};

/// Connections that get fixes of their own: those whose requests took longest. A page of many more would be
/// mostly fixes.
const CONNECTIONS: usize = 200;

/// By finding of a connection (`2.f1`) its fixes; none where it is the only one with that finding, as then
/// the capture's are about it.
pub(super) fn own(analysis: &Analysis) -> BTreeMap<String, Vec<a::Fix>> {
    let shared = |f: &a::Finding| {
        let whole = analysis.findings.iter().find(|g| (g.cause, g.side) == (f.cause, f.side));
        whole.is_some_and(|g| g.connection_count > 1)
    };
    let totals = analysis.connections.iter().map(|c| c.budget.total());
    let mut longest: Vec<_> = totals.enumerate().map(|(at, total)| (Reverse(total), at)).collect();
    if longest.len() > CONNECTIONS {
        longest.select_nth_unstable(CONNECTIONS);
    }
    let mut all = BTreeMap::new();
    for c in longest.into_iter().take(CONNECTIONS).map(|(_, at)| &analysis.connections[at]) {
        for (i, f) in c.findings.iter().enumerate().filter(|(_, f)| shared(f)) {
            all.insert(format!("{}.f{}", c.id, i + 1), a::fixes_on(c, f));
        }
    }
    all
}

/// As the document shows fixes.
pub(super) fn shown<'a>(
    own: &'a BTreeMap<String, Vec<a::Fix>>,
    cx: Context<'a>,
) -> BTreeMap<&'a str, Vec<Fix<'a>>> {
    let shown =
        |list: &'a [a::Fix]| list.iter().enumerate().map(|(i, fix)| Fix::view(fix, (), i, cx)).collect();
    own.iter().map(|(id, list)| (id.as_str(), shown(list))).collect()
}

/// What is right for any connection: of each finding of the capture, of each of its fixes, the places of the
/// rows without figures.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct General(Vec<Vec<Vec<usize>>>);

impl General {
    pub(super) fn of(findings: &[a::Finding]) -> General {
        let rows = |fix: &a::Fix| {
            let general = |how: &str| {
                let mut table = fix.fix.info().how.iter();
                table.any(|h| {
                    !h.text.contains('{') && how.strip_prefix(h.system) == Some(&format!(": {}", h.text))
                })
            };
            fix.how.iter().enumerate().filter(|(_, how)| general(how)).map(|(i, _)| i).collect()
        };
        General(findings.iter().map(|f| f.fixes.iter().map(rows).collect()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::FixId;

    #[test]
    fn rows_with_figures_are_of_one_connection() {
        let mut f = crate::sample::analysis().findings.remove(0);
        f.fixes.truncate(1);
        let fix = &mut f.fixes[0];
        fix.fix = FixId::Application;
        let rows = fix.fix.info().how;
        fix.how = rows.iter().map(|h| format!("{}: {}", h.system, h.text.replace(['{', '}'], ""))).collect();
        let expected: Vec<usize> = (0..rows.len()).filter(|&i| !rows[i].text.contains('{')).collect();
        assert!(!expected.is_empty() && expected.len() < rows.len());
        assert_eq!(General::of(&[f]).0, [[expected]]);
    }

    #[test]
    fn a_connection_gets_its_own_where_others_show_the_same() {
        let mut analysis = crate::sample::analysis();
        let mut f = analysis.findings[0].clone();
        f.fixes.clear();
        analysis.connections.truncate(1);
        analysis.connections[0].findings = vec![f];
        analysis.findings[0].connection_count = 1;
        assert!(own(&analysis).is_empty());
        analysis.findings[0].connection_count = 2;
        let all = own(&analysis);
        let id = analysis.connections[0].id;
        assert_eq!(all.keys().collect::<Vec<_>>(), [&format!("{id}.f1")]);
        let fixes = &all[&format!("{id}.f1")];
        assert!(!fixes.is_empty());
        for fix in fixes {
            let at = fix.parameters.iter().find(|p| p.0 == "connection");
            assert_eq!(at, Some(&("connection", a::Parameter::Number(i64::from(id)))));
        }
    }
}
