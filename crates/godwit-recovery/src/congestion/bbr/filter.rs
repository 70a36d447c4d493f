//! The highest rate of the last two probes.

/// The maximum over the present cycle and the one before (`MaxBwFilter`, two cycles).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MaxFilter {
    present: u64,
    before: u64,
}

impl MaxFilter {
    pub(super) fn get(self) -> u64 {
        self.present.max(self.before)
    }

    pub(super) fn update(&mut self, value: u64) {
        self.present = self.present.max(value);
    }

    /// The next cycle begins. A cycle without a value does not count.
    pub(super) fn advance(&mut self) {
        if self.present > 0 {
            self.before = self.present;
            self.present = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_cycles_that_have_a_value_count() {
        let mut filter = MaxFilter::default();
        for (value, highest) in [(5, 5), (9, 9), (4, 9), (3, 4), (0, 3), (0, 3), (2, 3), (1, 2)] {
            filter.update(value);
            filter.update(value / 2);
            assert_eq!(filter.get(), highest, "{value}");
            filter.advance();
        }
    }
}
