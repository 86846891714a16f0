//! The names of what packets were wrapped in.

/// One wrapping; its index in [`NAMES`].
pub(crate) type Encap = u8;

pub(crate) const VLAN: Encap = 0;
pub(crate) const ETAG: Encap = 1;
pub(crate) const PBB: Encap = 2;
pub(crate) const PPPOE: Encap = 3;
pub(crate) const MPLS: Encap = 4;
pub(crate) const GRE: Encap = 5;
pub(crate) const PPTP: Encap = 6;
pub(crate) const ERSPAN: Encap = 7;
pub(crate) const IPIP: Encap = 8;
pub(crate) const SIX_IN_FOUR: Encap = 9;
pub(crate) const ETHERIP: Encap = 10;
pub(crate) const VXLAN: Encap = 11;
pub(crate) const GENEVE: Encap = 12;
pub(crate) const GTP: Encap = 13;
pub(crate) const TEREDO: Encap = 14;
pub(crate) const L2TP: Encap = 15;
pub(crate) const AYIYA: Encap = 16;
/// A tag of a link as the first three, but of later date.
pub(crate) const VNTAG: Encap = 17;

/// How many there are.
pub(crate) const COUNT: usize = 18;

/// Their names in messages and JSON.
pub(crate) const NAMES: [&str; COUNT] = [
    "vlan", "etag", "pbb", "pppoe", "mpls", "gre", "pptp", "erspan", "ipip", "6in4", "etherip", "vxlan",
    "geneve", "gtp", "teredo", "l2tp", "ayiya", "vntag",
];

/// Those that carry packets between hosts that do not see them: all but the tags of a link.
pub(crate) const TUNNELS: u32 = (!0 << GRE) & !(1 << VNTAG);
