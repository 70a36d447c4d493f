//! Runs that connections have written and left for others to protect.
//!
//! Protection takes a large part of the time of who sends much, and needs nothing of the connection but keys: whoever has a
//! batch and its [`UnprotectedRuns`] can do it, on another thread as well.
//!
//! Invariant: no packet is protected twice, for what is encrypted again is plaintext again. After a failure, or when
//! whoever did it was interrupted, none of the batch may leave.

use godwit_base::SendBatch;
use godwit_tls::keys::{ProtectionKeys, UnprotectedPacket};
use std::ops::Range;
use std::sync::Arc;

/// The runs of a batch that are to be protected before it is sent ([`Endpoint::transmit_unprotected`]).
///
/// [`Endpoint::transmit_unprotected`]: crate::Endpoint::transmit_unprotected
#[derive(Debug, Default)]
pub struct UnprotectedRuns {
    runs: Vec<UnprotectedRun>,
    packets: Vec<UnprotectedPacket>,
    /// The run that is being protected, or could not be.
    at: Option<usize>,
}

#[derive(Debug)]
struct UnprotectedRun {
    /// Its number in the batch.
    number: usize,
    keys: Arc<ProtectionKeys>,
    packets: Range<usize>,
}

/// A run could not be protected, or not to the end, which is a defect at this end. The batch must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotProtected {
    /// The number of the run in the batch.
    pub run: usize,
}

impl UnprotectedRuns {
    /// No runs.
    pub const fn new() -> Self {
        UnprotectedRuns { runs: Vec::new(), packets: Vec::new(), at: None }
    }

    /// True if nothing is left to be protected.
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many runs are to be protected.
    pub const fn len(&self) -> usize {
        self.runs.len()
    }

    /// Forgets all of them, for another batch.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.packets.clear();
        self.at = None;
    }

    /// The packets of the run with this number, placed within it.
    pub(crate) fn push(&mut self, number: usize, keys: Arc<ProtectionKeys>, packets: &[UnprotectedPacket]) {
        let first = self.packets.len();
        self.packets.extend_from_slice(packets);
        self.runs.push(UnprotectedRun { number, keys, packets: first..self.packets.len() });
    }

    /// Protects the packets of `batch`, the one that was filled with these. Nothing is left to be protected then.
    ///
    /// # Errors
    /// If one cannot be protected, or this has been called before and was interrupted (by a panic). The run's bytes are
    /// zero then, where it was not interrupted, and it fails again until [`UnprotectedRuns::clear`].
    pub fn protect(&mut self, batch: &mut SendBatch) -> Result<(), NotProtected> {
        if let Some(run) = self.at {
            return Err(NotProtected { run });
        }
        for UnprotectedRun { number, keys, packets } in &self.runs {
            self.at = Some(*number);
            let failed = NotProtected { run: *number };
            let bytes = batch.run_mut(*number).ok_or(failed)?;
            let packets = self.packets.get(packets.clone()).unwrap_or_default();
            if keys.protect(packets, bytes).is_err() {
                bytes.fill(0);
                return Err(failed);
            }
        }
        self.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
