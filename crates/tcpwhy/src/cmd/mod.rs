//! One file per command.

pub(crate) mod causes;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod man;
pub(crate) mod predict;
