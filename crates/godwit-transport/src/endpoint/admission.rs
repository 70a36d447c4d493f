//! Who may begin a handshake: limits on what strangers can make us hold.
//!
//! Until a handshake is accepted it costs a buffer of a few datagrams, and from then until it is complete a connection.
//! The number of both is limited for the whole endpoint and for each [source](super::source). Bytes are limited for the
//! whole: those that a ClientHello may be in, and apart from them those that come early, which nobody needs who has no
//! hello.
//!
//! Long before a limit is reached strangers have to prove their address, so that what is beyond is left to those who have
//! (RFC 9000 section 8.1.2).

use super::ledger::Ledger;
use super::source::Source;
use godwit_base::Budget;

/// Bytes of a ClientHello that one incoming handshake may hold on average.
const BYTES_EACH: u64 = 6000;
/// The same of what is read of it, with what is missing in between.
const READ_EACH: u64 = 6000;
/// The same of what comes early: an initial window is 14,720 bytes, and few clients have so much to say.
const EARLY_EACH: u64 = 2000;

/// What incoming handshakes hold that nobody has accepted yet.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) ledger: Ledger,
    /// With so many, strangers have to prove their address.
    strained_at: usize,
    bytes: Budget,
    read: Budget,
    early: Budget,
}

impl Admission {
    pub(super) fn new(most: usize) -> Self {
        let bytes = |each: u64| (most as u64).saturating_mul(each);
        Admission {
            ledger: Ledger::new(most),
            strained_at: most.div_ceil(2),
            bytes: Budget::new(bytes(BYTES_EACH)),
            read: Budget::new(bytes(READ_EACH)),
            early: Budget::new(bytes(EARLY_EACH)),
        }
    }

    /// True if strangers should prove their address before they are given memory.
    pub(super) fn is_strained(&self, source: Source) -> bool {
        let half = |budget: &Budget| budget.used() >= budget.limit() / 2;
        self.ledger.is_strained(source, self.strained_at) || half(&self.bytes) || half(&self.read)
    }

    /// One more handshake from `source`. False if it must be turned away.
    pub(super) fn admit(&mut self, source: Source) -> bool {
        let room = self.ledger.has_room(source);
        if room {
            self.ledger.enter(source);
        }
        room
    }

    /// Whether so many bytes more may be buffered, and so many read.
    pub(super) fn has_room_for(&self, bytes: usize, read: usize) -> bool {
        self.bytes.remaining() >= bytes as u64 && self.read.remaining() >= read as u64
    }

    /// `bytes` more are buffered. False if they must not be.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        self.bytes.charge(bytes as u64).is_ok()
    }

    /// The same of what is read of a ClientHello.
    pub(super) fn charge_read(&mut self, bytes: usize) -> bool {
        self.read.charge(bytes as u64).is_ok()
    }

    /// So much of what was read is not kept any more.
    pub(super) fn release_read(&mut self, bytes: usize) {
        self.read.release(bytes as u64);
    }

    /// The same of what comes early.
    pub(super) fn charge_early(&mut self, bytes: usize) -> bool {
        self.early.charge(bytes as u64).is_ok()
    }

    /// A handshake from `source` was accepted, or is given up, and so much of it is no longer buffered.
    pub(super) fn leave(&mut self, source: Source, bytes: usize, early: usize) {
        self.ledger.leave(source);
        self.bytes.release(bytes as u64);
        self.early.release(early as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed_hash::KeyedHash;
    use godwit_base::SeededRng;
    use std::net::IpAddr;

    fn from(address: impl Into<IpAddr>) -> Source {
        Source::of(KeyedHash::new(&mut SeededRng::new(1)), address.into())
    }

    fn from_v6(narrow: u16, host: u16) -> Source {
        from([0x2001, 0xdb8, narrow, host, 0, 0, 0, host])
    }

    #[test]
    fn a_network_cannot_take_everything() {
        let mut admission = Admission::new(100);
        let admitted = (0..=255).filter(|host| admission.admit(from([198, 51, 100, *host]))).count();
        assert_eq!(admitted, 25);
        assert!(admission.admit(from([198, 51, 101, 1])), "a neighbour");
        admission.leave(from([198, 51, 100, 200]), 0, 0);
        assert!(admission.admit(from([198, 51, 100, 7])));
        assert!(!admission.admit(from([198, 51, 100, 7])));
        assert_eq!((0..100).filter(|host| admission.admit(from_v6(0, *host))).count(), 25, "one /48");
        assert!(admission.admit(from_v6(1, 0)));
    }

    #[test]
    fn neighbouring_networks_together_cannot_take_everything() {
        let mut admission = Admission::new(100);
        let admitted = (0..100).filter(|net| admission.admit(from([198, 51, *net, 1]))).count();
        assert_eq!(admitted, 50, "one /16");
        let mut admission = Admission::new(100);
        assert_eq!((0..100).filter(|net| admission.admit(from_v6(*net, 0))).count(), 50, "one /32");
        assert!(admission.admit(from([198, 51, 100, 1])));
    }

    #[test]
    fn the_whole_is_limited() {
        let mut admission = Admission::new(40);
        let net = |net: u8| from([10, net, 0, 1]);
        for at in 0..40 {
            assert_eq!(admission.is_strained(net(200)), at >= 20);
            assert!(admission.admit(net(at)));
        }
        assert!(!admission.admit(net(200)));
        assert!(admission.charge(240_000));
        assert!(!admission.charge(1));
        assert!(admission.charge_early(80_000), "that is apart");
        assert!(!admission.charge_early(1));
        admission.leave(net(0), 10, 10);
        assert!(admission.charge(10) && admission.charge_early(10));
        for at in 1..40 {
            admission.leave(net(at), 0, 0);
        }
        assert_eq!(admission.ledger.held(), 0);
        for at in 0..40 {
            assert_eq!(admission.ledger.held_by_neighbours(net(at)), 0);
        }
    }

    #[test]
    fn there_is_room_for_so_many_bytes_and_so_many_read_and_for_both_or_none() {
        let mut admission = Admission::new(1);
        assert!(admission.has_room_for(6000, 6000));
        assert!(!admission.has_room_for(6001, 0) && !admission.has_room_for(0, 6001));
        assert!(
            admission.charge(1) && admission.has_room_for(5999, 6000) && !admission.has_room_for(6000, 0)
        );
    }

    #[test]
    fn what_is_not_read_any_more_leaves_room() {
        let mut admission = Admission::new(1);
        assert!(admission.charge_read(6000) && !admission.charge_read(1));
        admission.release_read(10);
        assert!(admission.charge_read(10) && !admission.charge_read(1));
    }

    #[test]
    fn bytes_strain_as_well() {
        let (mut admission, somebody) = (Admission::new(100), from([192, 0, 2, 1]));
        assert!(admission.charge(299_999) && !admission.is_strained(somebody));
        assert!(admission.charge(1) && admission.is_strained(somebody));
    }
}
