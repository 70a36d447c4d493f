//! What became of datagrams.

use godwit_recovery::Outcome;
use std::collections::VecDeque;

/// Outcomes kept for an application that does not fetch them; then the oldest are dropped.
const MOST_KEPT: usize = 1 << 16;

/// Places that an empty queue keeps.
const KEPT: usize = 16;

/// What became of a datagram that was given a tag. Tags need not differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatagramOutcome {
    /// It left in a packet.
    Sent {
        /// Its tag.
        tag: u64,
    },
    /// The peer acknowledged its packet: the peer's transport has it, but its application may yet miss it.
    Acknowledged {
        /// Its tag.
        tag: u64,
    },
    /// Its packet was declared lost. It is not sent again, but may still arrive.
    SuspectedLost {
        /// Its tag.
        tag: u64,
    },
    /// It was suspected lost before, and then acknowledged all the same.
    Spurious {
        /// Its tag.
        tag: u64,
    },
    /// It was not sent: another one took its place in the queue, it was withdrawn, the path has become too
    /// narrow for it, or the connection ended.
    Cancelled {
        /// Its tag.
        tag: u64,
    },
}

impl DatagramOutcome {
    /// The tag of the datagram.
    pub const fn tag(&self) -> u64 {
        match self {
            DatagramOutcome::Sent { tag }
            | DatagramOutcome::Acknowledged { tag }
            | DatagramOutcome::SuspectedLost { tag }
            | DatagramOutcome::Spurious { tag }
            | DatagramOutcome::Cancelled { tag } => *tag,
        }
    }
}

/// Counters of DATAGRAM frames, tagged or not. They only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DatagramStats {
    /// Sent.
    pub sent: u64,
    /// Acknowledged, late ones included.
    pub acknowledged: u64,
    /// Declared lost.
    pub lost: u64,
    /// Acknowledged after they had been declared lost.
    pub spurious: u64,
    /// Taken from the send queue unsent.
    pub cancelled: u64,
    /// Received.
    pub received: u64,
    /// Received, and dropped before they were read.
    pub dropped: u64,
}

/// Outcomes that wait to be fetched.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    waiting: VecDeque<DatagramOutcome>,
    /// The application was told that there are some, and has not fetched all since.
    announced: bool,
    stats: DatagramStats,
}

impl Outcomes {
    pub(super) fn on_sent(&mut self, tag: Option<u64>) {
        count(&mut self.stats.sent);
        self.keep(tag.map(|tag| DatagramOutcome::Sent { tag }));
    }

    pub(super) fn on_cancelled(&mut self, tag: Option<u64>) {
        count(&mut self.stats.cancelled);
        self.keep(tag.map(|tag| DatagramOutcome::Cancelled { tag }));
    }

    pub(super) fn on_outcome(&mut self, outcome: Outcome, tag: Option<u64>) {
        let stats = &mut self.stats;
        match outcome {
            Outcome::Acked => count(&mut stats.acknowledged),
            Outcome::Lost => count(&mut stats.lost),
            Outcome::Spurious => {
                count(&mut stats.acknowledged);
                count(&mut stats.spurious);
            }
        }
        self.keep(tag.map(|tag| match outcome {
            Outcome::Acked => DatagramOutcome::Acknowledged { tag },
            Outcome::Lost => DatagramOutcome::SuspectedLost { tag },
            Outcome::Spurious => DatagramOutcome::Spurious { tag },
        }));
    }

    pub(super) fn on_received(&mut self, dropped: u64) {
        count(&mut self.stats.received);
        self.stats.dropped = self.stats.dropped.saturating_add(dropped);
    }

    fn keep(&mut self, outcome: Option<DatagramOutcome>) {
        let Some(outcome) = outcome else { return };
        if self.waiting.len() >= MOST_KEPT {
            self.waiting.pop_front();
        }
        self.waiting.push_back(outcome);
    }

    /// The oldest. After a `None` the application is told of the next.
    pub(super) fn next(&mut self) -> Option<DatagramOutcome> {
        let first = self.waiting.pop_front();
        if first.is_none() {
            self.announced = false;
            self.waiting.shrink_to(KEPT);
        }
        first
    }

    /// True once when there are some.
    #[inline]
    pub(super) fn take_news(&mut self) -> bool {
        !self.waiting.is_empty() && !std::mem::replace(&mut self.announced, true)
    }

    pub(super) const fn stats(&self) -> DatagramStats {
        self.stats
    }
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
