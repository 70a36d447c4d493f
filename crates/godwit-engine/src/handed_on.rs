//! Counting what was not for the shard that received it.

/// Datagrams that came for another shard or an older generation of the process, in runs as they were received. All
/// figures only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HandedOn {
    /// Runs handed on.
    pub runs: u64,
    /// Runs dropped instead, because whoever they were for did not keep up.
    pub dropped: u64,
}

impl HandedOn {
    pub(crate) fn count(&mut self, taken: bool) {
        *(if taken { &mut self.runs } else { &mut self.dropped }) += 1;
    }
}
