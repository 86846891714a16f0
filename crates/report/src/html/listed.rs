//! Which connections a page lists. A browser that is handed a million of them has nothing to show for
//! minutes, and nobody reads them: the page lists those that it can say something of, and the sums are of
//! all.

use std::cmp::Reverse;
use std::collections::HashSet;
use tcpwhy_analysis::{Analysis, Connection};
use tcpwhy_base::{Class, Nanos};

/// Connections in a page: twenty megabytes without exchanges, unpacked. The longest exchanges and gaps of the
/// capture, what findings name and what has findings of its own are some thousand at most.
pub const MOST: usize = 10_000;

/// The places of the connections that are listed, ascending: what is shown in detail and what findings name, then what
/// lost most to TCP, then what took longest. `None` if that is all of them.
pub(super) fn listed(analysis: &Analysis, most: usize) -> Option<Vec<usize>> {
    let all = &analysis.connections;
    if all.len() <= most {
        return None;
    }
    let mut named: HashSet<u32> = HashSet::new();
    for finding in &analysis.findings {
        named.insert(finding.example.connection);
        named.extend(&finding.connections);
    }
    let rank = |c: &Connection| {
        let shown = !c.exchanges.is_empty() || !c.findings.is_empty() || named.contains(&c.id);
        (shown, c.budget.of_class(Class::Tcp), c.budget.total())
    };
    type Rank = Reverse<((bool, Nanos, Nanos), Reverse<usize>)>;
    let mut ranks: Vec<Rank> = all.iter().enumerate().map(|(i, c)| Reverse((rank(c), Reverse(i)))).collect();
    if most > 0 {
        ranks.select_nth_unstable(most - 1);
    }
    let mut places: Vec<usize> = ranks.into_iter().take(most).map(|Reverse((_, Reverse(i)))| i).collect();
    places.sort_unstable();
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty connections: the last but one has an exchange in detail, the first is named by a finding, two
    /// lost something.
    fn twenty() -> Analysis {
        let mut analysis = crate::sample::analysis();
        let sample = analysis.connections.remove(0);
        analysis.connections.clear();
        for id in 1..=20 {
            let mut c = sample.clone();
            (c.id, c.exchanges, c.findings) = (id, Vec::new(), Vec::new());
            c.budget = Default::default();
            c.budget.add(tcpwhy_base::Cause::ServerThink, Nanos(100 + i64::from(id)));
            match id {
                7 | 12 => c.budget.add(tcpwhy_base::Cause::Nagle, Nanos(1)),
                19 => c.exchanges = sample.exchanges.clone(),
                _ => {}
            }
            analysis.connections.push(c);
        }
        analysis.findings.truncate(1);
        let finding = analysis.findings.first_mut().unwrap();
        (finding.connections, finding.example.connection) = (vec![1], 3);
        analysis
    }

    #[test]
    fn what_can_be_shown_comes_first() {
        let analysis = twenty();
        let at = |most| listed(&analysis, most);
        assert_eq!(at(20), None);
        // 1 and 3 are named, 19 has an exchange; then 12 and 7 lost something; then 20 took longest.
        assert_eq!(at(3), Some(vec![0, 2, 18]));
        assert_eq!(at(4), Some(vec![0, 2, 11, 18]));
        assert_eq!(at(6), Some(vec![0, 2, 6, 11, 18, 19]));
        assert_eq!(at(0), Some(vec![]));
    }
}
