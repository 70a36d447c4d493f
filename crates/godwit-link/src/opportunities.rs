//! Traces of delivery opportunities: when a link of varying rate, as in mobile networks, can deliver a packet.
//!
//! The text form is that of mahimahi and its relatives: a line for each opportunity, with its millisecond; several in
//! one millisecond are several lines. The last line is also the length of the trace, which begins anew at its end.

use godwit_base::Time;
use std::fmt;
use std::str::FromStr;

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// A trace, with one opportunity at least. One opportunity delivers an IP packet of 1500 bytes, or several smaller ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opportunities {
    /// Milliseconds from the beginning, in order.
    at: Vec<u32>,
}

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotATrace {
    /// The line with this number, from 1, is no number of milliseconds below 2^32.
    Line(usize),
    /// The line with this number is earlier than the one before.
    Order(usize),
    /// There is no opportunity after the first millisecond.
    Empty,
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotATrace::Line(line) => write!(f, "line {line} is no number of milliseconds"),
            NotATrace::Order(line) => write!(f, "line {line} is earlier than the line before"),
            NotATrace::Empty => f.write_str("there is no opportunity after the first millisecond"),
        }
    }
}

impl std::error::Error for NotATrace {}

impl FromStr for Opportunities {
    type Err = NotATrace;

    fn from_str(text: &str) -> Result<Self, NotATrace> {
        let mut at = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() {
                continue;
            }
            let next: u32 = line.parse().map_err(|_| NotATrace::Line(number))?;
            if at.last().is_some_and(|last| next < *last) {
                return Err(NotATrace::Order(number));
            }
            at.push(next);
        }
        Self::new(at).ok_or(NotATrace::Empty)
    }
}

impl fmt::Display for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.iter().try_for_each(|at| writeln!(f, "{at}"))
    }
}

impl Opportunities {
    /// From milliseconds in order; `None` if there is none above zero, or they are not in order.
    pub fn new(at: Vec<u32>) -> Option<Self> {
        let usable = at.is_sorted() && at.last().is_some_and(|last| *last > 0);
        usable.then_some(Opportunities { at })
    }

    pub(crate) fn one_a_second() -> Self {
        Opportunities { at: vec![1_000] }
    }

    /// Milliseconds of the opportunities, in order.
    pub fn millis(&self) -> &[u32] {
        &self.at
    }

    /// When the opportunity with this number comes, counted on from turn to turn.
    pub(crate) fn time_of(&self, number: u64) -> Time {
        let count = self.at.len() as u64;
        let turn = (number / count).saturating_mul(self.turn());
        let at = self.at.get((number % count) as usize).copied().unwrap_or(0);
        Time::from_nanos(turn.saturating_add(u64::from(at) * MILLISECOND))
    }

    /// The number of the first opportunity at `time` or after it.
    pub(crate) fn first_from(&self, time: Time) -> u64 {
        let turn = time.as_nanos() / self.turn();
        let rest = time.as_nanos() % self.turn();
        let before = self.at.partition_point(|at| u64::from(*at) * MILLISECOND < rest);
        turn * self.at.len() as u64 + before as u64
    }

    /// Nanoseconds from one beginning to the next.
    fn turn(&self) -> u64 {
        self.at.last().map_or(1, |last| u64::from(*last) * MILLISECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * MILLISECOND)
    }

    #[test]
    fn text_and_trace_agree() {
        let text = "0\n3\n3\n10\n";
        let trace: Opportunities = text.parse().unwrap();
        assert_eq!((trace.millis(), trace.to_string()), (&[0, 3, 3, 10][..], text.to_owned()));
        assert_eq!("1\nx".parse::<Opportunities>(), Err(NotATrace::Line(2)));
        assert_eq!("5\n\n4".parse::<Opportunities>(), Err(NotATrace::Order(3)));
        assert_eq!("0\n0\n".parse::<Opportunities>(), Err(NotATrace::Empty));
        assert_eq!("".parse::<Opportunities>(), Err(NotATrace::Empty));
    }

    #[test]
    fn a_trace_begins_anew_at_its_end() {
        let trace = Opportunities::new(vec![1, 3, 3, 10]).unwrap();
        let times: Vec<_> = (0..8).map(|number| trace.time_of(number)).collect();
        assert_eq!(times, [1, 3, 3, 10, 11, 13, 13, 20].map(ms));
        for (time, first) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 3), (11, 4), (12, 5), (25, 11)] {
            assert_eq!(trace.first_from(ms(time)), first, "at {time} ms");
        }
        // The end of one turn is the beginning of the next.
        assert_eq!(trace.time_of(trace.first_from(ms(10))), ms(11));
    }
}
