//! How many files are held open for responses.
//!
//! Whoever asks for many large files and takes none of them would have all descriptors of the process, and nobody else a
//! connection or a file. All responses together have an eighth of them, and those to the clients of one network a quarter of
//! that ([`NetworkShares`]). Nobody is refused: files beyond that are [opened for each piece](super::closed).

use std::sync::LazyLock;

use godwit_body::{NetworkShares, Share};

/// The part of the process's descriptors: half of them may be taken by connections, a quarter by upstreams.
const PART: u64 = 8;
/// Files at most, however many descriptors there are.
const MOST: usize = 8192;
/// Descriptors where the system does not say how many there may be.
const USUAL: u64 = 1024;

static ALL: LazyLock<NetworkShares> = LazyLock::new(|| {
    let descriptors = godwit_os::descriptors::limit().unwrap_or(USUAL);
    NetworkShares::of(usize::try_from(descriptors / PART).unwrap_or(MOST).min(MOST))
});

/// A file counts as open as long as this exists.
pub(super) type OpenFile = Share;

/// The files that all responses of this process may hold open. The limit of descriptors is asked for the first time that this
/// is called.
pub(super) fn of_process() -> NetworkShares {
    ALL.clone()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn most_descriptors_are_for_others() {
        let descriptors = usize::try_from(godwit_os::descriptors::limit().unwrap()).unwrap();
        let most = of_process().most();
        assert!(most > 0 && most <= descriptors / 8 && most <= MOST, "{most} of {descriptors}");
    }
}
