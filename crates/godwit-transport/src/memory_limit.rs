//! A limit on what many connections hold together. Who holds what, and who gives way, is for
//! [`Endpoint`](crate::Endpoint)s to say.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted at a time, as a power of two: smaller holdings are of no concern, and seldom does one change.
pub(crate) const UNIT_BITS: u32 = 14;

/// What connections may hold for their peers together: data that nobody has read yet, data that is not acknowledged, and
/// datagrams that wait. Copies are the same limit.
///
/// When more is held, a connection that takes more is closed with INTERNAL_ERROR, if it holds more than the others do on
/// average, or its network (/24 of IPv4, /48 of IPv6) more than a quarter of the limit. A network has half of it at most
/// in any case.
#[derive(Clone)]
pub struct MemoryLimit(Arc<Account>);

/// All in units.
struct Account {
    limit: u64,
    held: AtomicU64,
    holders: AtomicU64,
}

impl MemoryLimit {
    /// A limit of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let account = Account { limit: bytes >> UNIT_BITS, held: 0.into(), holders: 0.into() };
        MemoryLimit(Arc::new(account))
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit << UNIT_BITS
    }

    /// Bytes that are held.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed) << UNIT_BITS
    }

    /// The limit in units.
    pub(crate) fn units(&self) -> u64 {
        self.0.limit
    }

    /// So many units, held by so many connections, in place of so many: what all hold then, and how many connections do.
    pub(crate) fn exchange(&self, before: (u64, u64), now: (u64, u64)) -> (u64, u64) {
        // Nothing else is read by the order of these, and what an endpoint adds it takes away again.
        let change = |all: &AtomicU64, before: u64, now: u64| {
            let change = now.wrapping_sub(before);
            all.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
        };
        (change(&self.0.held, before.0, now.0), change(&self.0.holders, before.1, now.1))
    }
}

impl Default for MemoryLimit {
    /// 1 GiB.
    fn default() -> Self {
        MemoryLimit::new(1 << 30)
    }
}

impl fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimit").field("limit", &self.limit()).field("held", &self.held()).finish()
    }
}
