//! Whether an upstream is healthy, from the checks in a row that passed or failed.

/// How many checks in a row said something else than what holds.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    against: u32,
}

impl Verdict {
    /// Whether the upstream is healthy after another check, if it `was`; `needed` are the answers in a row
    /// that make it healthy and unhealthy.
    pub(crate) fn on_check(&mut self, was: bool, good: bool, needed: (u32, u32)) -> bool {
        if good == was {
            self.against = 0;
            return was;
        }
        self.against = self.against.saturating_add(1);
        if self.against < if good { needed.0 } else { needed.1 } {
            return was;
        }
        self.against = 0;
        good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_answers_in_a_row_are_needed() {
        let mut verdict = Verdict::default();
        let mut is = true;
        let mut seen = String::new();
        for good in "ggbbgbbbbbgbggbb".chars().map(|check| check == 'g') {
            is = verdict.on_check(is, good, (2, 3));
            seen.push(if is { 'H' } else { 'u' });
        }
        assert_eq!(seen, "HHHHHHHuuuuuuHHH");
    }
}
