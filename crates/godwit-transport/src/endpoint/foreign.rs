//! Datagrams for other shards and other generations of the process, on their way out of this endpoint.
//!
//! They are copied once, back to back, into one buffer that is used again for the next batch. Datagrams that came
//! one after the other from the same sender for the same owner stay together as one run, so that whoever hands
//! them over has one thing to do for all of them.

use godwit_base::RecvMeta;

/// Whose datagrams a run holds, and what is known of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreign {
    /// Where they came in, their ECN codepoint, their bytes in all and the size of each.
    pub meta: RecvMeta,
    /// The shard that their connection id names, before reduction to the number of shards there are.
    pub shard: u8,
    /// The generation of the process that their connection id names.
    pub generation: u8,
}

/// Runs of datagrams for others. What does not fit is dropped.
#[derive(Debug, Default)]
pub struct ForeignBatch {
    runs: Vec<Foreign>,
    bytes: Vec<u8>,
}

impl ForeignBatch {
    /// The most runs held.
    pub const MAX_RUNS: usize = 1024;
    /// The most bytes held: as much as a batch of received datagrams has.
    pub const MAX_BYTES: usize = 1 << 20;
    /// The most bytes of one run that is put together.
    pub const MAX_RUN: usize = 60_000;

    /// Nothing.
    pub const fn new() -> Self {
        ForeignBatch { runs: Vec::new(), bytes: Vec::new() }
    }

    /// True if there is nothing.
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of runs.
    pub const fn len(&self) -> usize {
        self.runs.len()
    }

    /// Forgets everything, but keeps the memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.bytes.clear();
    }

    /// Appends a run: `foreign.meta` says how its datagrams are cut. False if there is no room.
    pub fn push_run(&mut self, foreign: Foreign, run: &[u8]) -> bool {
        let fits = run.len() <= Self::MAX_BYTES.saturating_sub(self.bytes.len());
        if self.runs.len() >= Self::MAX_RUNS || !fits || run.is_empty() || foreign.meta.stride == 0 {
            return false;
        }
        self.runs.push(Foreign { meta: RecvMeta { len: run.len(), ..foreign.meta }, ..foreign });
        self.bytes.extend_from_slice(run);
        true
    }

    /// Appends one datagram, to the last run if it belongs there. False if there is no room.
    pub fn push(&mut self, foreign: Foreign, datagram: &[u8]) -> bool {
        let meta = RecvMeta { len: datagram.len(), stride: datagram.len(), ..foreign.meta };
        let foreign = Foreign { meta, ..foreign };
        let free = Self::MAX_BYTES.saturating_sub(self.bytes.len());
        if let Some(last) = self.runs.last_mut()
            && (1..=free).contains(&datagram.len())
            && continues(last, &foreign)
        {
            last.meta.len = last.meta.len.saturating_add(datagram.len());
            self.bytes.extend_from_slice(datagram);
            return true;
        }
        self.push_run(foreign, datagram)
    }

    /// The runs with their bytes, in the order in which they came.
    pub fn runs(&self) -> impl Iterator<Item = (&Foreign, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.runs.iter().filter_map(move |foreign| {
            let (run, after) = rest.split_at_checked(foreign.meta.len)?;
            rest = after;
            Some((foreign, run))
        })
    }

    /// As [`ForeignBatch::runs`], to be decrypted in place.
    pub fn runs_mut(&mut self) -> impl Iterator<Item = (RecvMeta, &mut [u8])> {
        let mut rest = self.bytes.as_mut_slice();
        self.runs.iter().filter_map(move |foreign| {
            let (run, after) = std::mem::take(&mut rest).split_at_mut_checked(foreign.meta.len)?;
            rest = after;
            Some((foreign.meta, run))
        })
    }
}

/// Whether a datagram can follow those of `run`: of one size are all but the last, which may be shorter.
fn continues(run: &Foreign, next: &Foreign) -> bool {
    let whole = run.meta.len.checked_rem(run.meta.stride) == Some(0);
    let same =
        Foreign { meta: RecvMeta { len: next.meta.len, stride: next.meta.stride, ..run.meta }, ..*run };
    let len = run.meta.len.saturating_add(next.meta.len);
    whole && same == *next && next.meta.len <= run.meta.stride && len <= ForeignBatch::MAX_RUN
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::{Ecn, SocketId};

    fn from(port: u16, shard: u8) -> Foreign {
        let remote = ([192, 0, 2, 1], port).into();
        let meta = RecvMeta { socket: SocketId(1), local: None, remote, ecn: Ecn::Ect0, len: 0, stride: 1 };
        Foreign { meta, shard, generation: 7 }
    }

    fn shapes(batch: &ForeignBatch) -> Vec<(u16, u8, usize, usize)> {
        let shape = |(foreign, run): (&Foreign, &[u8])| {
            assert_eq!(foreign.meta.len, run.len());
            (foreign.meta.remote.port(), foreign.shard, run.len(), foreign.meta.stride)
        };
        batch.runs().map(shape).collect()
    }

    #[test]
    fn what_belongs_together_stays_together() {
        let mut batch = ForeignBatch::new();
        for (foreign, len) in
            [(from(1, 1), 100), (from(1, 1), 100), (from(1, 1), 60), (from(1, 1), 60), (from(1, 1), 61)]
        {
            assert!(batch.push(foreign, &vec![1; len]));
        }
        assert!(batch.push(from(2, 1), &[2; 61]));
        assert!(batch.push(from(2, 3), &[3; 61]));
        assert_eq!(
            shapes(&batch),
            [(1, 1, 260, 100), (1, 1, 60, 60), (1, 1, 61, 61), (2, 1, 61, 61), (2, 3, 61, 61)]
        );
        let first: Vec<u8> = batch.runs_mut().map(|(_, run)| run[0]).collect();
        assert_eq!(first, [1, 1, 1, 2, 3]);
        batch.clear();
        assert!(batch.is_empty() && batch.runs().next().is_none());
    }

    #[test]
    fn a_run_is_as_long_as_its_bytes_whatever_is_said_of_it() {
        let mut batch = ForeignBatch::new();
        let mut foreign = from(1, 1);
        (foreign.meta.len, foreign.meta.stride) = (7, 100);
        assert!(batch.is_empty() && batch.push_run(foreign, &[1; 250]) && !batch.is_empty());
        foreign.meta.len = 1000;
        assert!(batch.push_run(foreign, &[2; 60]));
        assert_eq!(shapes(&batch), [(1, 1, 250, 100), (1, 1, 60, 100)]);
        let bytes: Vec<u8> = batch.runs().filter_map(|(_, run)| run.last().copied()).collect();
        assert_eq!(bytes, [1, 2]);
    }

    #[test]
    fn runs_bytes_and_their_number_are_bounded() {
        let mut batch = ForeignBatch::new();
        let taken = (0..2000).filter(|n| batch.push(from(*n, 0), &[0; 40])).count();
        assert_eq!((taken, batch.len()), (1024, 1024));
        batch.clear();
        let taken = (0..2000).filter(|_| batch.push(from(1, 0), &[0; 1200])).count();
        assert_eq!(taken, ForeignBatch::MAX_BYTES / 1200);
        assert!(batch.runs().all(|(foreign, _)| foreign.meta.len <= ForeignBatch::MAX_RUN));
        assert!(!batch.push(from(1, 0), &[]) && !batch.push_run(from(1, 0), &[]));
    }
}
