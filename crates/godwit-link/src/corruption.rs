//! Damage to a packet's bytes.

use godwit_base::{Rng, SeededRng};

/// How badly a packet is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Damage {
    /// One to so many bits are flipped.
    Bits(u16),
    /// One to so many bytes are changed.
    Bytes(u16),
}

/// The damage one packet has taken, to be done to its bytes with [`Corruption::apply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Corruption {
    seed: u64,
    damage: Damage,
}

impl Corruption {
    pub(crate) fn draw(damage: Damage, rng: &mut impl Rng) -> Self {
        Corruption { seed: rng.next_u64(), damage }
    }

    /// Damages the packet. The result always differs from the original, unless that is empty.
    pub fn apply(&self, packet: &mut [u8]) {
        let mut rng = SeededRng::new(self.seed);
        let (most, by_bit) = match self.damage {
            Damage::Bits(most) => (most, true),
            Damage::Bytes(most) => (most, false),
        };
        let times = 1 + rng.below(u64::from(most.max(1)));
        let mut first = None;
        for _ in 0..times {
            let position = rng.below(packet.len() as u64) as usize;
            let mask = if by_bit { 1 << rng.below(8) } else { 1 + rng.below(255) as u8 };
            // What was done first is not undone by what follows.
            if first.is_some_and(|done| done == position) {
                continue;
            }
            first.get_or_insert(position);
            if let Some(byte) = packet.get_mut(position) {
                *byte ^= mask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_real_bounded_and_repeatable() {
        let mut rng = SeededRng::new(9);
        let rounds = if cfg!(miri) { 50 } else { 2_000 };
        for round in 0..rounds {
            let damage = if round % 2 == 0 { Damage::Bits(3) } else { Damage::Bytes(3) };
            let corruption = Corruption::draw(damage, &mut rng);
            let original = vec![0x5a_u8; 1 + round % 50];
            let (mut a, mut b) = (original.clone(), original.clone());
            corruption.apply(&mut a);
            corruption.apply(&mut b);
            assert_eq!(a, b);
            let bits: u32 = a.iter().zip(&original).map(|(x, y)| (x ^ y).count_ones()).sum();
            let bytes = a.iter().zip(&original).filter(|(x, y)| x != y).count();
            assert!((1..=3).contains(&bytes), "{bytes} bytes changed");
            assert!(matches!(damage, Damage::Bytes(_)) || bits <= 3, "{bits} bits changed");
        }
    }

    #[test]
    fn nothing_to_damage_is_no_trouble() {
        Corruption::draw(Damage::Bits(8), &mut SeededRng::new(1)).apply(&mut []);
        let mut one = [0];
        Corruption::draw(Damage::Bytes(0), &mut SeededRng::new(1)).apply(&mut one);
        assert_ne!(one, [0]);
    }
}
