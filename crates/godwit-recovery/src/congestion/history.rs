//! What controllers were before their last reductions, so that each can be undone by itself.

/// Reductions remembered: what comes late comes within two round trips.
pub(crate) const REMEMBERED: usize = 5;

/// Values from before the last reductions, the newest first.
#[derive(Debug, Clone)]
pub(super) struct History<T>(Vec<T>);

impl<T: Copy> History<T> {
    pub(super) const fn new() -> Self {
        History(Vec::new())
    }

    /// There is one more reduction.
    pub(super) fn push(&mut self, before: T) {
        self.0.truncate(REMEMBERED.saturating_sub(1));
        self.0.insert(0, before);
    }

    /// From before the reduction that so many others have followed.
    pub(super) fn get(&self, events_ago: usize) -> Option<T> {
        self.0.get(events_ago).copied()
    }

    /// Those from after that reduction.
    pub(super) fn since(&mut self, events_ago: usize) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().take(events_ago)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A window that has been reduced again since a reduction to so many hundredths which was made for nothing, from
/// `before`: what it would be without that, but no more than it was then unless it is already.
pub(super) fn without_reduction(window: u64, hundredths: u64, before: u64) -> u64 {
    let raised = window.saturating_mul(100).checked_div(hundredths).unwrap_or(window);
    raised.min(before.max(window))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_only_so_many_are_kept() {
        let mut history = History::new();
        assert_eq!(history.get(0), None);
        (0..8).for_each(|before| history.push(before));
        let kept: Vec<_> = (0..10).map_while(|ago| history.get(ago)).collect();
        assert_eq!(kept, [7, 6, 5, 4, 3]);
        history.since(2).for_each(|value| *value += 100);
        assert_eq!((history.get(0), history.get(1), history.get(2)), (Some(107), Some(106), Some(5)));
        history.clear();
        assert_eq!((history.get(0), history.since(5).count()), (None, 0));
    }

    #[test]
    fn a_reduction_that_never_was_gives_back_no_more_than_there_was() {
        assert_eq!(without_reduction(49, 70, 100), 70);
        assert_eq!(without_reduction(80, 70, 100), 100, "not beyond the window before it");
        assert_eq!(without_reduction(120, 70, 100), 120, "and not below what there is");
        assert_eq!(without_reduction(50, 0, 100), 50);
    }
}
