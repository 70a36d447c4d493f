//! Who may begin a handshake: limits on what strangers can make us hold.
//!
//! Until a handshake is accepted it costs a buffer of a few datagrams. Their number is limited for the
//! whole endpoint and for each source network (/24 of IPv4, /56 of IPv6), their bytes for the whole.

use super::demux::KeyedHash;
use godwit_base::Budget;
use std::collections::HashMap;
use std::net::IpAddr;

/// Bytes that one incoming handshake may hold on average.
const BYTES_EACH: u64 = 6000;
/// The share of all incoming handshakes that one network may hold: a quarter, but not less than this.
const LEAST_PER_PREFIX: usize = 16;

/// A source network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Prefix(u64);

impl Prefix {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            // An IPv6 network takes 56 bits: the highest one tells the kinds apart.
            IpAddr::V4(address) => Prefix(u64::from(u32::from(address) >> 8) | 1 << 63),
            IpAddr::V6(address) => Prefix((u128::from(address) >> 72) as u64),
        }
    }
}

/// What incoming handshakes hold.
#[derive(Debug)]
pub(super) struct Admission {
    most: usize,
    most_per_prefix: usize,
    held: usize,
    /// Only networks that hold something: at most as many as there are handshakes.
    by_prefix: HashMap<Prefix, usize, KeyedHash>,
    bytes: Budget,
}

impl Admission {
    pub(super) fn new(most: usize, hash: KeyedHash) -> Self {
        Admission {
            most,
            most_per_prefix: most.div_ceil(4).max(LEAST_PER_PREFIX),
            held: 0,
            by_prefix: HashMap::with_hasher(hash),
            bytes: Budget::new((most as u64).saturating_mul(BYTES_EACH)),
        }
    }

    /// True if strangers should prove their address before they are given memory.
    pub(super) const fn is_strained(&self) -> bool {
        self.held >= self.most.div_ceil(2)
    }

    /// One more handshake from `address`. False if it must be turned away.
    pub(super) fn admit(&mut self, address: IpAddr) -> bool {
        if self.held >= self.most {
            return false;
        }
        let from_prefix = self.by_prefix.entry(Prefix::of(address)).or_insert(0);
        if *from_prefix >= self.most_per_prefix {
            return false;
        }
        *from_prefix = from_prefix.saturating_add(1);
        self.held = self.held.saturating_add(1);
        true
    }

    /// A handshake admitted earlier was accepted, or is given up.
    pub(super) fn leave(&mut self, address: IpAddr) {
        let prefix = Prefix::of(address);
        if let Some(from_prefix) = self.by_prefix.get_mut(&prefix) {
            *from_prefix = from_prefix.saturating_sub(1);
            if *from_prefix == 0 {
                self.by_prefix.remove(&prefix);
            }
            self.held = self.held.saturating_sub(1);
        }
    }

    /// `bytes` more are buffered. False if they must not be.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        self.bytes.charge(bytes as u64).is_ok()
    }

    /// `bytes` are no longer buffered.
    pub(super) fn release(&mut self, bytes: usize) {
        self.bytes.release(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    fn admission(most: usize) -> Admission {
        Admission::new(most, KeyedHash::new(&mut SeededRng::new(1)))
    }

    #[test]
    fn a_network_cannot_take_everything() {
        let mut admission = admission(100);
        let admitted = (0..=255).filter(|host| admission.admit([198, 51, 100, *host].into())).count();
        assert_eq!(admitted, 25);
        assert!(admission.admit([198, 51, 101, 1].into()), "a neighbour");
        admission.leave([198, 51, 100, 200].into());
        assert!(admission.admit([198, 51, 100, 7].into()));
        assert!(!admission.admit([198, 51, 100, 7].into()));
        let v6 = |net: u16, host: u16| IpAddr::from([0x2001, 0xdb8, 0, net, 0, 0, 0, host]);
        let admitted = (0..100).filter(|host| admission.admit(v6(*host % 256, *host))).count();
        assert_eq!(admitted, 25, "one /56");
        assert!(admission.admit(v6(256, 0)));
    }

    #[test]
    fn the_whole_is_limited() {
        let mut admission = admission(40);
        for net in 0..40 {
            assert_eq!(admission.is_strained(), net >= 20);
            assert!(admission.admit([10, 0, net, 1].into()));
        }
        assert!(!admission.admit([10, 1, 0, 1].into()));
        assert!(admission.charge(240_000));
        assert!(!admission.charge(1));
        admission.release(10);
        assert!(admission.charge(10));
        for net in 0..40 {
            admission.leave([10, 0, net, 1].into());
            admission.leave([10, 0, net, 1].into());
        }
        assert!(admission.by_prefix.is_empty());
        assert_eq!(admission.held, 0);
    }
}
