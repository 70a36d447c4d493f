//! What servers are asked to do.

use super::super::scenarios::{Scenario, Work as Unit};

/// Requests under way at a time in a closed loop.
pub(super) const IN_FLIGHT: usize = 100;
/// Unused connections to the upstream that are kept.
pub(super) const KEPT: usize = 256;
/// Bytes of a small and of a larger answer.
pub(super) const SMALL: usize = 100;
pub(super) const LARGE: usize = 10_000;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A file with so many bytes.
    File(usize),
    /// [`SMALL`] bytes from the upstream.
    PassedOn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) answer: Answer,
    /// At a third of the rate of the closed loop, which was measured before.
    pub(super) by_the_clock: bool,
}

pub(super) const CLOSED: Work = closed("file of 100 B", Answer::File(SMALL));

pub(super) const ALL: [Work; 4] = [
    CLOSED,
    closed("file of 10 kB", Answer::File(LARGE)),
    closed("100 B passed on from an upstream", Answer::PassedOn),
    Work { name: "file of 100 B, by the clock", answer: Answer::File(SMALL), by_the_clock: true },
];

const fn closed(name: &'static str, answer: Answer) -> Work {
    Work { name, answer, by_the_clock: false }
}

impl Work {
    /// As figures have it.
    pub(super) const fn scenario(&self) -> Scenario {
        Scenario { name: self.name, work: Unit::Requests { streams: IN_FLIGHT }, crossed: false }
    }
}

impl Answer {
    /// Bytes of its content.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Answer::File(bytes) => bytes,
            Answer::PassedOn => SMALL,
        }
    }
}
