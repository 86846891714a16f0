use crate::Side;
use std::ops::{Index, IndexMut};

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// Sent the SYN (or is inferred to have).
    Client,
    /// Listened.
    Server,
}

impl End {
    /// Both, the client first.
    pub const BOTH: [End; 2] = [End::Client, End::Server];

    /// The other one.
    #[inline]
    #[must_use]
    pub const fn peer(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    /// The name in JSON and text, the same as that of its [`Side`].
    pub const fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }
}

impl From<End> for Side {
    #[inline]
    fn from(end: End) -> Side {
        match end {
            End::Client => Side::Client,
            End::Server => Side::Server,
        }
    }
}

/// A value for each end of a connection, indexed by [`End`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ends<T> {
    /// The client's.
    pub client: T,
    /// The server's.
    pub server: T,
}

impl<T> Ends<T> {
    /// The values of client and server.
    #[inline]
    pub const fn new(client: T, server: T) -> Ends<T> {
        Ends { client, server }
    }

    /// Makes the value of each end, the client's first.
    #[inline]
    pub fn of(mut make: impl FnMut(End) -> T) -> Ends<T> {
        Ends { client: make(End::Client), server: make(End::Server) }
    }

    /// Both values, the client's first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.client, &self.server].into_iter()
    }

    /// Both values to change, the client's first.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        [&mut self.client, &mut self.server].into_iter()
    }

    /// The value of `end` and that of its peer, to change.
    #[inline]
    pub fn pair_mut(&mut self, end: End) -> (&mut T, &mut T) {
        match end {
            End::Client => (&mut self.client, &mut self.server),
            End::Server => (&mut self.server, &mut self.client),
        }
    }

    /// Both values as `[client, server]`.
    #[inline]
    pub fn into_array(self) -> [T; 2] {
        [self.client, self.server]
    }
}

impl<T> From<[T; 2]> for Ends<T> {
    #[inline]
    fn from([client, server]: [T; 2]) -> Ends<T> {
        Ends { client, server }
    }
}

impl<T> Index<End> for Ends<T> {
    type Output = T;

    #[inline]
    fn index(&self, end: End) -> &T {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }
}

impl<T> IndexMut<End> for Ends<T> {
    #[inline]
    fn index_mut(&mut self, end: End) -> &mut T {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_own_value() {
        let mut ends = Ends::of(End::name);
        assert_eq!(ends[End::Server], "server");
        ends[End::Client] = "first";
        assert_eq!(ends.into_array(), ["first", "server"]);
        assert_eq!(ends.pair_mut(End::Server), (&mut "server", &mut "first"));
        assert_eq!(Side::from(End::Client.peer()), Side::Server);
    }
}
