//! How much HTTP/2 upstreams may send before anybody takes it (RFC 9113 section 5.2).
//!
//! A response whose client does not take it fills the window of its stream, and what is in there is in memory; room in the
//! window is made by what the client takes. All streams together fit into the window of their connection, so that an
//! exchange whose client reads slowly holds up nobody else. Large windows for all would be much memory in the hands of clients
//! that read nothing: one connection to an upstream has them, of all shards together, which does while there is little to do,
//! and the others have small ones.

use crate::lock;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, Weak};

/// Exchanges on one HTTP/2 connection.
pub(crate) const MAX_STREAMS: usize = 64;

/// The windows of a connection, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Of each stream.
    pub(crate) stream: u32,
    /// Of all together.
    pub(crate) connection: u32,
}

impl Windows {
    /// 8 MiB on a connection.
    pub(crate) const LARGE: Windows = Windows::of(128 << 10);
    /// 1 MiB on a connection.
    pub(crate) const SMALL: Windows = Windows::of(16 << 10);

    const fn of(stream: u32) -> Windows {
        Windows { stream, connection: stream * MAX_STREAMS as u32 }
    }
}

/// The connection with large windows, if there is one. It is known by its count of exchanges, which whatever may hold
/// something of it shares: the pool, and exchanges that go on when the connection takes no more of them.
#[derive(Debug, Default)]
pub(crate) struct LargeWindows(Mutex<Weak<AtomicUsize>>);

impl LargeWindows {
    /// The windows of the connection whose exchanges are counted here.
    pub(crate) fn choose(&self, exchanges: &Arc<AtomicUsize>) -> Windows {
        let mut large = lock(&self.0);
        if large.strong_count() > 0 {
            return Windows::SMALL;
        }
        *large = Arc::downgrade(exchanges);
        Windows::LARGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_large_windows() {
        let (all, [one, other]) = (LargeWindows::default(), [0, 0].map(|_| Arc::default()));
        assert_eq!(all.choose(&one), Windows::LARGE);
        let exchange = Arc::clone(&one);
        drop(one);
        assert_eq!(all.choose(&other), Windows::SMALL, "it still holds what it has been sent");
        drop(exchange);
        assert_eq!(all.choose(&Arc::default()), Windows::LARGE);
        assert_eq!(all.choose(&other), Windows::LARGE, "that one is gone");
    }
}
