//! Requests that may be no more than the login of a connection: a kept one spares them (rule 166).

use crate::rest::at_rest;
use tcpwhy_base::{Nanos, Program};

/// No login, with what drivers say behind it, takes more requests than that, less one.
const MOST: usize = 6;

/// How a connection began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Bytes of each of its first requests, as far as they fit.
    sizes: [u16; MOST],
    /// How long all its requests but the last took, microseconds: of what takes hours it does not matter.
    before: u32,
}

at_rest! { Opening { sizes, before } }

/// What may be logins are the same where the requests are as large, one for one.
pub(crate) type Sizes = (u8, [u16; MOST]);

impl Opening {
    /// One more request, behind so many which took so long.
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: u64, behind: u64, before: Nanos) {
        if let Some(size) = self.sizes.get_mut(behind as usize) {
            *size = bytes.min(u64::from(u16::MAX)) as u16;
        }
        self.before = u32::try_from(before.0.max(0) / 1_000).unwrap_or(u32::MAX);
    }

    /// How long all its requests but the last took.
    pub(crate) fn before(&self) -> Nanos {
        Nanos::micros(self.before.into())
    }

    /// Of the first requests, so many.
    pub(crate) fn first(&self, count: u64) -> Sizes {
        let mut first = [0; MOST];
        let count = MOST.min(count as usize);
        first[..count].copy_from_slice(&self.sizes[..count]);
        (count as u8, first)
    }

    /// How many of so many requests to this server may be the login: all but the last of a few, where its protocol has one. A request that is
    /// as large as a later one may be the same with another key, and is none.
    pub(crate) fn login(&self, count: u64, server: Option<Program>) -> u64 {
        use Program::{MariaDb, MySql, PostgreSql, Redis};
        let has_one = matches!(server, Some(MariaDb | MySql | PostgreSql | Redis));
        let Some(sizes) = self.sizes.get(..count as usize).filter(|_| has_one) else { return 0 };
        let apart = (1..sizes.len()).all(|at| !sizes[at..].contains(&sizes[at - 1]));
        if apart { count.saturating_sub(1) } else { 0 }
    }
}
