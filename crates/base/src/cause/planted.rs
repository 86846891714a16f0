//! A cause that no other place knows: with `--cfg planted_cause` the tests must name every place that lists causes.

use super::{Cause, CauseInfo, Class, Evidence, Group, Kind, Owner, SizedBy, close};
use crate::FixId;

pub(super) const ROWS: &[CauseInfo] = &[CauseInfo {
    cause: Cause::Planted,
    id: "planted",
    class: Class::Tcp,
    owner: Owner::Tcp,
    group: Group::Windows,
    kind: Kind::Span,
    live_only: false,
    title: "A cause that was planted",
    name: "a planted cause",
    what: "nothing ever waits for it",
    at_reader: false,
    evidence: &[Evidence::Windows],
    flagged: None,
    made_of: &[],
    family: &[],
    alike: &[close(Cause::SendBuffer)],
    sized: SizedBy::Nothing,
    fixes: &[FixId::Application],
}];
