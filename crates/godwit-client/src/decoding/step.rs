//! What one step of a decoder has come to.

/// What one step has come to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    pub(super) read: usize,
    pub(super) written: usize,
    /// What has been read is whole. What follows may begin another one.
    pub(super) is_end: bool,
}
