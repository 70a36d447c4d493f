//! The numbers of paths.

/// Which path of a connection; numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

impl PathId {
    /// The path id that goes into packet protection. All paths share one sequence of packet numbers, so that it is that
    /// of the first one; where each has its own, as in multipath QUIC, it is its number.
    #[inline]
    pub(crate) const fn nonce_id(self) -> u32 {
        0
    }
}
