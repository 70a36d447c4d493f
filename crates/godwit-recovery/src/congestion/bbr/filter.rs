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
