//! How many files are held open for responses.
//!
//! Whoever asks for many large files and takes none of them would have all descriptors of the process, and nobody else a
//! connection or a file. All responses together have an eighth of them, and those to the clients of one network a quarter of
//! that. Nobody is refused: files beyond that are [opened for each piece](super::closed).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use godwit_body::ClientNetwork;

/// The part of the process's descriptors: half of them may be taken by connections, a quarter by upstreams.
const PART: u64 = 8;
/// Files at most, however many descriptors there are.
const MOST: usize = 8192;
/// The part of the files that is for one network.
const PART_OF_NETWORK: usize = 4;
/// Descriptors where the system does not say how many there may be.
const USUAL: u64 = 1024;

static ALL: LazyLock<OpenFiles> = LazyLock::new(|| {
    let descriptors = godwit_os::descriptors::limit().unwrap_or(USUAL);
    OpenFiles::of(usize::try_from(descriptors / PART).unwrap_or(MOST).min(MOST))
});

/// A number of files that may be open at a time. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct OpenFiles(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_of_network: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// Only networks with files are here.
    networks: HashMap<ClientNetwork, usize>,
}

/// A file that counts as open as long as this exists.
#[derive(Debug)]
pub(super) struct Place {
    files: OpenFiles,
    network: Option<ClientNetwork>,
}

impl OpenFiles {
    /// What all responses of this process share. The limit of descriptors is asked for the first time that this is called.
    pub(super) fn of_process() -> OpenFiles {
        ALL.clone()
    }

    pub(super) fn of(most: usize) -> OpenFiles {
        let most_of_network = most.div_ceil(PART_OF_NETWORK);
        OpenFiles(Arc::new(Inner { most, most_of_network, open: Mutex::default() }))
    }

    /// A place for a file that a client of this network gets; `None` if there are too many.
    pub(super) fn place(&self, network: Option<ClientNetwork>) -> Option<Place> {
        let mut open = self.open();
        let mine = network.and_then(|network| open.networks.get(&network)).copied().unwrap_or(0);
        if open.all >= self.0.most || (network.is_some() && mine >= self.0.most_of_network) {
            return None;
        }
        open.all = open.all.saturating_add(1);
        if let Some(network) = network {
            open.networks.insert(network, mine.saturating_add(1));
        }
        Some(Place { files: self.clone(), network })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.files.open();
        open.all = open.all.saturating_sub(1);
        let Some(network) = self.network else { return };
        match open.networks.get_mut(&network) {
            Some(count) if *count > 1 => *count = count.saturating_sub(1),
            _ => drop(open.networks.remove(&network)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str) -> Option<ClientNetwork> {
        ClientNetwork::of(address.parse().unwrap())
    }

    #[test]
    fn a_network_has_its_share_and_this_machine_what_is_left() {
        let files = OpenFiles::of(8);
        let mut held: Vec<_> =
            ["192.0.2.1", "192.0.2.2"].map(|one| files.place(network(one)).unwrap()).into();
        assert!(files.place(network("192.0.2.3")).is_none(), "its share is used up");
        held.push(files.place(network("2001:db8::1")).unwrap());
        held.extend((0..5).map(|_| files.place(network("127.0.0.1")).unwrap()));
        assert!(
            files.place(network("127.0.0.1")).is_none() && files.place(network("198.51.100.1")).is_none()
        );
        drop(held.remove(0));
        assert!(files.place(network("192.0.2.3")).is_some());
        drop(held);
        assert!(files.open().all == 0 && files.open().networks.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn most_descriptors_are_for_others() {
        let descriptors = usize::try_from(godwit_os::descriptors::limit().unwrap()).unwrap();
        let most = OpenFiles::of_process().0.most;
        assert!(most > 0 && most <= descriptors / 8 && most <= MOST, "{most} of {descriptors}");
    }
}
