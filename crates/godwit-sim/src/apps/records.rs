//! Answers that are sealed together: none is there before the last byte of its record is.
//!
//! QUIC seals packet by packet. TLS over TCP seals up to 16 KiB at a time, and nothing of a record can be read before all
//! of it has come, whatever it holds of other answers.

/// What an answer gives way to the next after, where they take turns: a packet's worth.
const TURN: usize = 1200;

/// Answers of a round, as they would follow each other in one stream of records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records {
    /// Bytes of a record; 0 is none.
    pub(super) size: usize,
    /// Answers of the round, all of this many bytes.
    pub(super) answers: usize,
    pub(super) each: usize,
    /// Whether they take turns, or go one after the other.
    pub(super) turns: bool,
}

impl Records {
    /// Whether an answer can be read, if so many bytes have come of each.
    pub(super) fn is_readable(&self, answer: usize, came: &[usize]) -> bool {
        if self.size == 0 {
            return true;
        }
        let until = self.record_end(answer);
        (0..self.answers).all(|at| came.get(at).copied().unwrap_or(0) >= self.before(at, until))
    }

    /// Where the record ends that has an answer's last byte.
    fn record_end(&self, answer: usize) -> usize {
        let whole = self.each * self.answers;
        let end = if self.turns {
            // In the last turn every answer has what the turns before have left of it.
            let last = self.each.saturating_sub(1) % TURN + 1;
            whole.saturating_sub(self.answers.saturating_sub(answer + 1) * last)
        } else {
            self.each * (answer + 1)
        };
        end.next_multiple_of(self.size).min(whole)
    }

    /// How many bytes of an answer come before some place.
    fn before(&self, answer: usize, until: usize) -> usize {
        if self.turns {
            let round = TURN * self.answers.max(1);
            let (rounds, rest) = (until / round, until % round);
            let of_last = self.each.saturating_sub(rounds * TURN).min(TURN);
            (rounds * TURN + rest.saturating_sub(answer * of_last).min(of_last)).min(self.each)
        } else {
            until.saturating_sub(answer * self.each).min(self.each)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: Records = Records { size: 16 << 10, answers: 6, each: 4000, turns: false };

    #[test]
    fn an_answer_waits_for_its_record_alone() {
        // The fifth begins in the first record, with 384 bytes.
        let mut came = [4000, 4000, 4000, 4000, 0, 0];
        assert!(!SIX.is_readable(0, &came));
        came[4] = 384;
        assert!((0..4).all(|answer| SIX.is_readable(answer, &came)) && !SIX.is_readable(4, &came));
        came = [4000, 3999, 4000, 4000, 4000, 4000];
        assert!(!SIX.is_readable(0, &came) && !SIX.is_readable(5, &came));
        assert!(Records { size: 0, ..SIX }.is_readable(0, &[4000]), "without records nobody waits");
        let alone = Records { answers: 1, ..SIX };
        assert!(alone.is_readable(0, &[4000]) && !alone.is_readable(0, &[3999]));
    }

    #[test]
    fn in_turns_all_end_in_the_last_record() {
        let turns = Records { turns: true, ..SIX };
        let almost = [4000, 4000, 4000, 4000, 4000, 3999];
        assert!((0..6).all(|answer| !turns.is_readable(answer, &almost)));
        assert!((0..6).all(|answer| turns.is_readable(answer, &[4000; 6])));
        // 7200 bytes are a turn of all: records of that much end with each turn.
        let whole = Records { size: 7200, ..turns };
        assert_eq!(
            (whole.before(0, 7200), whole.before(5, 7200), whole.before(5, 24_000)),
            (1200, 1200, 4000)
        );
    }
}
