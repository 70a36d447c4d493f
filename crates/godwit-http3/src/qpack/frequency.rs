//! How often something has come of late, in sections: what came long ago counts little.

/// What counts one half when so many sections have followed.
const HALF_LIFE: u16 = 20;
const TWO_HALF_LIVES: u32 = 40;

/// What something counts that has just come for the first time.
pub(super) const ONCE: u32 = 256;

/// The most that anything counts.
const MOST: u32 = 16 * ONCE;

/// A frequency, in [`ONCE`]s, and the section in which it held. Sections are numbered modulo 2^16: what nobody has asked about
/// for so long that the numbers come again is taken for younger than it is, which does no harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Frequency {
    amount: u16,
    section: u16,
}

impl Frequency {
    /// So much, in this section.
    pub(super) fn new(amount: u32, section: u16) -> Self {
        Frequency { amount: amount.min(MOST) as u16, section }
    }

    /// What is left of it in a later section.
    pub(super) fn at(self, section: u16) -> u32 {
        let age = section.wrapping_sub(self.section);
        let halved = u32::from(self.amount).checked_shr(u32::from(age / HALF_LIFE)).unwrap_or_default();
        // Between two halvings it falls evenly.
        let part = halved.saturating_mul(u32::from(age % HALF_LIFE)) / TWO_HALF_LIVES;
        halved.saturating_sub(part)
    }

    /// It has come so much more in this section.
    pub(super) fn add(&mut self, amount: u32, section: u16) {
        *self = Frequency::new(self.at(section).saturating_add(amount), section);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_long_ago_counts_little() {
        let mut frequency = Frequency::default();
        assert_eq!(frequency.at(7), 0);
        frequency.add(ONCE, 65_530);
        assert_eq!([65_530, 4, 14, 34].map(|section| frequency.at(section)), [256, 192, 128, 64]);
        assert_eq!(frequency.at(65_529), 0);
        frequency.add(ONCE, 14);
        assert_eq!(frequency.at(14), 384);
        (0..100).for_each(|_| frequency.add(ONCE, 14));
        assert_eq!(frequency.at(14), MOST);
    }
}
