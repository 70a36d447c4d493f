//! The bits of a packet's first byte that carry no meaning for this connection: the greased QUIC bit (RFC
//! 9287) and the latency spin bit (RFC 9000 section 17.4).
//!
//! The QUIC bit is random once the peer has said that it does not look at it. The spin bit is off unless
//! the settings want it, and even then on one of sixteen paths, so that it tells nothing of those who turned
//! it off; where it is off, it has a random value that stays for the path.

use godwit_base::Rng;
use godwit_wire::Side;

/// The QUIC bit of a first byte.
const QUIC_BIT: u8 = 0x40;

/// See the module.
#[derive(Debug)]
pub(super) struct HeaderBits {
    side: Side,
    /// The peer accepts packets whose QUIC bit is 0.
    grease: bool,
    /// Random bits, the lowest to be used next.
    pool: u64,
    left: u8,
    wants_spin: bool,
    /// Four bits for each path decide whether the spin bit is off on it.
    lottery: u64,
    spins: bool,
    spin: bool,
}

impl HeaderBits {
    /// `wants_spin` is whether the settings permit the spin bit.
    pub(super) fn new(side: Side, wants_spin: bool, rng: &mut dyn Rng) -> Self {
        let mut bits = HeaderBits {
            side,
            grease: false,
            pool: 0,
            left: 0,
            wants_spin,
            lottery: rng.next_u64(),
            spins: false,
            spin: false,
        };
        bits.on_new_path();
        bits
    }

    /// The peer's transport parameters have come.
    pub(super) fn set_grease(&mut self, grease: bool) {
        self.grease = grease;
    }

    /// Whether the QUIC bit of packets to be sent is random.
    pub(super) const fn greases(&self) -> bool {
        self.grease
    }

    /// Gives the first byte of a packet to be sent its QUIC bit. Comes before the packet is sealed.
    #[inline]
    pub(super) fn apply(&mut self, first: Option<&mut u8>, rng: &mut dyn Rng) {
        if self.grease
            && let Some(first) = first
            && self.is_zero(rng)
        {
            *first &= !QUIC_BIT;
        }
    }

    fn is_zero(&mut self, rng: &mut dyn Rng) -> bool {
        if self.left == 0 {
            (self.pool, self.left) = (rng.next_u64(), 64);
        }
        self.left = self.left.saturating_sub(1);
        let bit = self.pool & 1 == 0;
        self.pool >>= 1;
        bit
    }

    /// The spin bit of packets sent now.
    pub(super) const fn spin(&self) -> bool {
        self.spin
    }

    /// A 1-RTT packet came whose number is the highest so far.
    #[inline]
    pub(super) fn on_newest(&mut self, spin: bool) {
        if self.spins {
            // The server reflects, the client inverts: one edge goes around per round trip.
            self.spin = spin ^ (self.side == Side::Client);
        }
    }

    /// The connection has moved to another path, or uses another connection id.
    pub(super) fn on_new_path(&mut self) {
        self.spins = self.wants_spin && self.lottery & 0xf != 0;
        self.spin = !self.spins && self.lottery & 0x10 != 0;
        self.lottery = self.lottery.rotate_right(5);
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    #[test]
    fn the_quic_bit_is_random_only_for_peers_that_do_not_mind() {
        let mut rng = SeededRng::new(1);
        let mut bits = HeaderBits::new(Side::Client, false, &mut rng);
        let zeros = |bits: &mut HeaderBits, rng: &mut SeededRng| {
            let zero = |_: &u32| {
                let mut first = 0xff;
                bits.apply(Some(&mut first), rng);
                assert_eq!(first | QUIC_BIT, 0xff, "no other bit changes");
                first & QUIC_BIT == 0
            };
            (0..1000).filter(zero).count()
        };
        assert_eq!(zeros(&mut bits, &mut rng), 0);
        bits.set_grease(true);
        assert!((400..600).contains(&zeros(&mut bits, &mut rng)));
    }

    #[test]
    fn the_spin_bit_goes_around_where_it_is_on() {
        let mut rng = SeededRng::new(2);
        let (mut off, mut edges) = (0, 0);
        for _ in 0..1600 {
            let mut client = HeaderBits::new(Side::Client, true, &mut rng);
            let mut server = HeaderBits::new(Side::Server, true, &mut rng);
            if !client.spins {
                off += 1;
            }
            if client.spins && server.spins {
                for _ in 0..4 {
                    let before = client.spin();
                    server.on_newest(client.spin());
                    client.on_newest(server.spin());
                    edges += u32::from(client.spin() != before);
                }
                client.on_new_path();
                assert!(!client.spins || !client.spin(), "it starts anew on another path");
            }
        }
        assert!((50..200).contains(&off), "{off}");
        assert!(edges >= 4 * 1200, "{edges}");
    }

    #[test]
    fn without_the_setting_the_spin_bit_stands_still() {
        let mut rng = SeededRng::new(3);
        let mut values = [0, 0];
        for _ in 0..200 {
            let mut bits = HeaderBits::new(Side::Client, false, &mut rng);
            let value = bits.spin();
            bits.on_newest(value);
            assert_eq!(bits.spin(), value);
            *values.get_mut(usize::from(value)).unwrap() += 1;
        }
        assert!(values.iter().all(|count| *count > 60), "{values:?}");
    }
}
