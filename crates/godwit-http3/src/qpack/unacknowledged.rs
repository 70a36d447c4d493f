//! Sections with references that the peer has not acknowledged, and the streams that could have to wait because of them (RFC
//! 9204 sections 2.1.2 and 2.1.4).
//!
//! Invariants: no more streams could have to wait than were permitted when each of them became one; memory is bounded by
//! [`MAX_SECTIONS`].

use std::collections::VecDeque;

/// Sections that may be without an answer at once.
const MAX_SECTIONS: usize = 1024;

/// A section that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) stream: u64,
    /// Its Required Insert Count.
    pub(super) required: u64,
    /// The oldest entry that it refers to.
    pub(super) oldest: u64,
}

/// What the peer has not answered.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    /// As they were sent.
    sections: VecDeque<Sent>,
    /// Streams with sections that need more than is known to have arrived, and how much they need.
    blocking: Vec<(u64, u64)>,
    known_received: u64,
}

impl Unacknowledged {
    /// The insertions that are known to have arrived.
    pub(super) fn known_received(&self) -> u64 {
        self.known_received
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        let blocking = self.blocking.len().saturating_mul(size_of::<(u64, u64)>());
        self.sections.len().saturating_mul(size_of::<Sent>()).saturating_add(blocking)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.blocking.is_empty()
    }

    /// Whether there is no room for one more section with references.
    pub(super) fn is_full(&self) -> bool {
        self.sections.len() >= MAX_SECTIONS
    }

    /// Whether a section of this stream may refer to what has perhaps not arrived, where so many streams may wait.
    pub(super) fn may_block(&self, stream: Option<u64>, permitted: u64) -> bool {
        let waits = |stream| self.blocking.iter().any(|(blocking, _)| *blocking == stream);
        (self.blocking.len() as u64) < permitted || stream.is_some_and(waits)
    }

    pub(super) fn push(&mut self, sent: Sent) {
        self.sections.push_back(sent);
        if sent.required > self.known_received {
            match self.blocking.iter_mut().find(|(stream, _)| *stream == sent.stream) {
                Some((_, required)) => *required = sent.required.max(*required),
                None => self.blocking.push((sent.stream, sent.required)),
            }
        }
    }

    /// Takes out the first section of a stream, which the peer has decoded.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<Sent> {
        let first = self.sections.iter().position(|sent| sent.stream == stream)?;
        let sent = self.sections.remove(first)?;
        self.on_received(sent.required);
        Some(sent)
    }

    /// Takes out the sections of a stream, of which the peer reads no more; `None` when there are no more of them.
    pub(super) fn cancel(&mut self, stream: u64) -> Option<Sent> {
        self.blocking.retain(|(blocking, _)| *blocking != stream);
        let first = self.sections.iter().position(|sent| sent.stream == stream)?;
        self.sections.remove(first)
    }

    /// So many insertions, at least, have arrived.
    pub(super) fn on_received(&mut self, count: u64) {
        if count > self.known_received {
            self.known_received = count;
            self.blocking.retain(|(_, required)| *required > count);
        }
    }
}
