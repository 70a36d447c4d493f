//! Memory that connections share: what is beyond the first part of a connection's windows and send buffer, which each has
//! for itself.
//!
//! Invariants: what is taken never exceeds the reserve, and whoever takes may have half of what nobody else has, so that
//! something is left for whoever comes later. What a connection has taken comes back when it ends at the latest.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The connection window that each connection may have for itself.
pub(crate) const OWN_WINDOW: u64 = 32 << 20;
/// The same of a stream's window.
pub(crate) const OWN_STREAM_WINDOW: u64 = 16 << 20;
/// The same of the send buffer.
const OWN_SEND_BUFFER: u64 = 8 << 20;
/// Taken and given back at a time.
const UNIT: u64 = 1 << 20;

/// What the connections of an endpoint, or of several, may hold together beyond what each has for itself: 32 MiB of
/// connection window, 16 MiB of each stream's window, 8 MiB of send buffer. Copies are the same reserve.
///
/// Windows beyond that are announced only as far as there is something left here, and count until the peer has used
/// them: what was announced cannot be taken back (RFC 9000 section 4.1). A connection that used its windows up within a
/// round trip gets more, one that no longer does gets less, and one alone gets half of the reserve at most.
#[derive(Clone)]
pub struct WindowReserve(Arc<Reserve>);

struct Reserve {
    /// Both in units.
    size: u64,
    taken: AtomicU64,
}

impl WindowReserve {
    /// A reserve of so many bytes, in whole MiB; 0 is none.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        WindowReserve(Arc::new(Reserve { size: bytes / UNIT, taken: AtomicU64::new(0) }))
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size.saturating_mul(UNIT)
    }

    /// Bytes that connections have taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed).saturating_mul(UNIT)
    }

    /// True if both are the same reserve.
    #[must_use]
    pub fn is_same_as(&self, other: &WindowReserve) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Has `wanted` units in place of those that are held, or as many as can be had, but not fewer than are held if more
    /// are wanted.
    fn exchange(&self, held: u32, wanted: u32) -> u32 {
        let (taken, held) = (&self.0.taken, u64::from(held));
        let mut got = held;
        // Nothing else is read by the order of this.
        let _ = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            let others = now.saturating_sub(held);
            let most = (self.0.size.saturating_sub(others) / 2).max(held);
            got = u64::from(wanted).min(most);
            Some(others.saturating_add(got))
        });
        u32::try_from(got).unwrap_or(u32::MAX)
    }
}

impl Default for WindowReserve {
    /// 320 MiB: one connection alone may have 160 MiB of it.
    fn default() -> Self {
        WindowReserve::new(320 << 20)
    }
}

impl fmt::Debug for WindowReserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowReserve").field("size", &self.size()).field("taken", &self.taken()).finish()
    }
}

/// What a connection has taken.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// None leaves everything to the connection's own settings.
    reserve: Option<WindowReserve>,
    /// In units.
    receiving: u32,
    sending: u32,
}

impl Share {
    /// From now on, what is beyond the connection's own comes out of this.
    pub(crate) fn attach(&mut self, reserve: &WindowReserve) {
        self.reserve = Some(reserve.clone());
    }

    pub(crate) const fn is_attached(&self) -> bool {
        self.reserve.is_some()
    }

    /// The most of `wanted` bytes of connection window that can be had while `owed` bytes cannot be given up.
    #[inline]
    pub(crate) fn receive(&mut self, wanted: u64, owed: u64) -> u64 {
        let Some(reserve) = &self.reserve else { return wanted };
        self.receiving = exchange(reserve, self.receiving, wanted.max(owed), OWN_WINDOW);
        wanted.min(OWN_WINDOW.saturating_add(u64::from(self.receiving).saturating_mul(UNIT)))
    }

    /// The same of the send buffer, of which `owed` bytes are in use. Who has nothing to send takes nothing from others.
    #[inline]
    pub(crate) fn send(&mut self, wanted: u64, owed: u64) -> u64 {
        let Some(reserve) = &self.reserve else { return wanted };
        let wanted = if owed == 0 { wanted.min(OWN_SEND_BUFFER) } else { wanted };
        self.sending = exchange(reserve, self.sending, wanted.max(owed), OWN_SEND_BUFFER);
        wanted.min(OWN_SEND_BUFFER.saturating_add(u64::from(self.sending).saturating_mul(UNIT)))
    }

    /// True if some of the connection window is not the connection's own.
    pub(crate) const fn receives(&self) -> bool {
        self.receiving > 0
    }
}

#[inline]
fn exchange(reserve: &WindowReserve, held: u32, wanted: u64, own: u64) -> u32 {
    let wanted = u32::try_from(wanted.saturating_sub(own).div_ceil(UNIT)).unwrap_or(u32::MAX);
    if wanted == held { held } else { reserve.exchange(held, wanted) }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(reserve) = &self.reserve
            && (self.receiving > 0 || self.sending > 0)
        {
            reserve.exchange(self.receiving, 0);
            reserve.exchange(self.sending, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn share(reserve: &WindowReserve) -> Share {
        let mut share = Share::default();
        share.attach(reserve);
        share
    }

    #[test]
    fn it_costs_a_connection_no_more_than_two_words() {
        assert_eq!(size_of::<Share>(), 16);
    }

    #[test]
    fn a_thousand_do_not_exceed_it_and_the_last_gets_some() {
        let reserve = WindowReserve::new(256 * MIB);
        let mut shares: Vec<Share> = (0..1000).map(|_| share(&reserve)).collect();
        let first = shares[0].receive(192 * MIB, 0);
        assert_eq!(first, (32 + 128) * MIB, "half of what is there");
        for share in &mut shares {
            share.receive(192 * MIB, 0);
            share.send(192 * MIB, 0);
            assert!(reserve.taken() <= reserve.size());
        }
        // Whoever asks again while all hold something has no more than half of what is left.
        assert!(shares.iter_mut().all(|share| share.receive(32 * MIB, 0) == 32 * MIB));
        shares.clear();
        assert_eq!(reserve.taken(), 0, "whoever ends gives back");
    }

    #[test]
    fn those_that_ask_again_and_again_have_equal_parts() {
        let reserve = WindowReserve::new(256 * MIB);
        let mut shares: Vec<Share> = (0..3).map(|_| share(&reserve)).collect();
        for _ in 0..40 {
            for share in &mut shares {
                // Between announcements half is used up.
                let half = share.receive(192 * MIB, 0) / 2;
                share.receive(half, half);
                share.receive(192 * MIB, half);
            }
        }
        let held = shares.iter().map(|share| share.receiving).collect::<Vec<_>>();
        assert!(held.iter().all(|held| (40..=90).contains(held)), "{held:?}");
    }

    #[test]
    fn what_was_promised_is_not_given_up() {
        let reserve = WindowReserve::new(256 * MIB);
        let mut one = share(&reserve);
        one.receive(132 * MIB, 0);
        assert_eq!(one.receive(32 * MIB, 100 * MIB), 32 * MIB);
        assert_eq!(reserve.taken(), 68 * MIB);
        assert_eq!((one.receive(32 * MIB, 32 * MIB), reserve.taken()), (32 * MIB, 0));
    }

    #[test]
    fn without_a_reserve_nothing_is_counted() {
        let mut none = Share::default();
        assert_eq!((none.receive(1 << 40, 0), none.send(1 << 40, 0)), (1 << 40, 1 << 40));
        let mut empty = share(&WindowReserve::new(0));
        assert_eq!((empty.receive(1 << 40, 0), empty.send(1 << 40, 0)), (32 * MIB, 8 * MIB));
    }
}
