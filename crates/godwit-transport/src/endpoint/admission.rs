//! Who may begin a handshake: limits on what strangers can make us hold.
//!
//! Until a handshake is accepted it costs a buffer of a few datagrams, and from then until it is complete a connection.
//! The number of both is limited for the whole endpoint and for each source network, narrow (/24 of IPv4, /56 of IPv6)
//! and wide (/16, /32). Bytes are limited for the whole: those that a ClientHello may be in, and apart from them those
//! that come early, which nobody needs who has no hello.
//!
//! Long before a limit is reached strangers have to prove their address, so that what is beyond is left to those who have
//! (RFC 9000 section 8.1.2).

use super::demux::KeyedHash;
use godwit_base::Budget;
use std::collections::HashMap;
use std::net::IpAddr;

/// Bytes of a ClientHello that one incoming handshake may hold on average.
const BYTES_EACH: u64 = 6000;
/// The same of what comes early: an initial window is 14,720 bytes, and few clients have so much to say.
const EARLY_EACH: u64 = 2000;

/// A source network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Prefix(u64);

impl Prefix {
    /// The networks that an address is in, and the share of everything that each may hold: a part of so many, but not less
    /// than so much.
    fn all_of(address: IpAddr) -> [(Self, usize, usize); 2] {
        // Widths and kinds differ in the highest three bits.
        let (narrow, wide) = match address.to_canonical() {
            IpAddr::V4(address) => {
                let address = u64::from(u32::from(address));
                (address >> 8 | 1 << 63, address >> 16 | 1 << 62)
            }
            IpAddr::V6(address) => {
                let address = u128::from(address);
                ((address >> 72) as u64, (address >> 96) as u64 | 1 << 61)
            }
        };
        [(Prefix(narrow), 4, 16), (Prefix(wide), 2, 32)]
    }
}

/// The narrow network of an address, as a number.
pub(super) fn network(address: IpAddr) -> u64 {
    let [(Prefix(narrow), ..), _] = Prefix::all_of(address);
    narrow
}

/// How many of something there may be, of each source network and in all.
#[derive(Debug)]
pub(super) struct Ledger {
    most: usize,
    held: usize,
    /// Only networks that hold something: at most two for each that is held.
    by_prefix: HashMap<Prefix, usize, KeyedHash>,
}

impl Ledger {
    pub(super) fn new(most: usize, hash: KeyedHash) -> Self {
        Ledger { most, held: 0, by_prefix: HashMap::with_hasher(hash) }
    }

    /// What the networks of an address hold, and may hold at most.
    fn shares(&self, address: IpAddr) -> impl Iterator<Item = (Prefix, usize, usize)> + '_ {
        Prefix::all_of(address).into_iter().map(|(prefix, part, least)| {
            let held = self.by_prefix.get(&prefix).copied().unwrap_or(0);
            (prefix, held, self.most.div_ceil(part).max(least))
        })
    }

    /// True if the networks of an address hold half of what they may, or all together hold `many`.
    pub(super) fn is_strained(&self, address: IpAddr, many: usize) -> bool {
        self.held >= many || self.shares(address).any(|(_, held, most)| held >= most.div_ceil(2))
    }

    /// Whether one more may come from `address`.
    pub(super) fn has_room(&self, address: IpAddr) -> bool {
        self.held < self.most && self.shares(address).all(|(_, held, most)| held < most)
    }

    /// Whether there would be room for one from `address` if one from `other` left.
    pub(super) fn stands_in_the_way(&self, address: IpAddr, other: IpAddr) -> bool {
        let others = Prefix::all_of(other).map(|(prefix, ..)| prefix);
        self.shares(address).all(|(prefix, held, most)| held < most || others.contains(&prefix))
    }

    /// What the narrow network of an address holds.
    pub(super) fn held_by_neighbours(&self, address: IpAddr) -> usize {
        self.shares(address).next().map_or(0, |(_, held, _)| held)
    }

    /// One more comes from `address`.
    pub(super) fn enter(&mut self, address: IpAddr) {
        for (prefix, ..) in Prefix::all_of(address) {
            let held = self.by_prefix.entry(prefix).or_insert(0);
            *held = held.saturating_add(1);
        }
        self.held = self.held.saturating_add(1);
    }

    /// One from `address` has gone.
    pub(super) fn leave(&mut self, address: IpAddr) {
        for (prefix, ..) in Prefix::all_of(address) {
            let Some(held) = self.by_prefix.get_mut(&prefix) else { return };
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.by_prefix.remove(&prefix);
            }
        }
        self.held = self.held.saturating_sub(1);
    }
}

/// What incoming handshakes hold that nobody has accepted yet.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) ledger: Ledger,
    bytes: Budget,
    most_bytes: u64,
    early: Budget,
}

impl Admission {
    pub(super) fn new(most: usize, hash: KeyedHash) -> Self {
        let bytes = |each: u64| (most as u64).saturating_mul(each);
        Admission {
            ledger: Ledger::new(most, hash),
            bytes: Budget::new(bytes(BYTES_EACH)),
            most_bytes: bytes(BYTES_EACH),
            early: Budget::new(bytes(EARLY_EACH)),
        }
    }

    /// True if strangers should prove their address before they are given memory.
    pub(super) fn is_strained(&self, address: IpAddr) -> bool {
        self.ledger.is_strained(address, self.ledger.most.div_ceil(2))
            || self.bytes.used() >= self.most_bytes / 2
    }

    /// One more handshake from `address`. False if it must be turned away.
    pub(super) fn admit(&mut self, address: IpAddr) -> bool {
        let room = self.ledger.has_room(address);
        if room {
            self.ledger.enter(address);
        }
        room
    }

    /// `bytes` more are buffered. False if they must not be.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        self.bytes.charge(bytes as u64).is_ok()
    }

    /// The same of what comes early.
    pub(super) fn charge_early(&mut self, bytes: usize) -> bool {
        self.early.charge(bytes as u64).is_ok()
    }

    /// A handshake from `address` was accepted, or is given up, and so much of it is no longer buffered.
    pub(super) fn leave(&mut self, address: IpAddr, bytes: usize, early: usize) {
        self.ledger.leave(address);
        self.bytes.release(bytes as u64);
        self.early.release(early as u64);
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
        admission.leave([198, 51, 100, 200].into(), 0, 0);
        assert!(admission.admit([198, 51, 100, 7].into()));
        assert!(!admission.admit([198, 51, 100, 7].into()));
        let v6 = |net: u16, host: u16| IpAddr::from([0x2001, 0xdb8, 0, net, 0, 0, 0, host]);
        let admitted = (0..100).filter(|host| admission.admit(v6(*host % 256, *host))).count();
        assert_eq!(admitted, 25, "one /56");
        assert!(admission.admit(v6(256, 0)));
    }

    #[test]
    fn neighbouring_networks_together_cannot_take_everything() {
        let mut admission = admission(100);
        let admitted = (0..100).filter(|net| admission.admit([198, 51, *net, 1].into())).count();
        assert_eq!(admitted, 50, "one /16");
        let v6 = |net: u16| IpAddr::from([0x2001, 0xdb8, net, 0, 0, 0, 0, 1]);
        let mut admission = self::admission(100);
        assert_eq!((0..100).filter(|net| admission.admit(v6(*net))).count(), 50, "one /32");
        assert!(admission.admit([198, 51, 100, 1].into()));
    }

    #[test]
    fn the_whole_is_limited() {
        let mut admission = admission(40);
        let net = |net: u8| IpAddr::from([10, net, 0, 1]);
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
        for at in 0..40 {
            admission.leave(net(at), 0, 0);
        }
        assert!(admission.ledger.by_prefix.is_empty());
        assert_eq!(admission.ledger.held, 0);
    }

    #[test]
    fn bytes_strain_as_well() {
        let (mut admission, somebody) = (admission(100), IpAddr::from([192, 0, 2, 1]));
        assert!(admission.charge(299_999) && !admission.is_strained(somebody));
        assert!(admission.charge(1) && admission.is_strained(somebody));
    }
}
