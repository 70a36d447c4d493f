//! What the shards of a process know of the other generations.

use crate::handler::Api;
use godwit_engine::{Elder, Elders, ShardHandle};
use godwit_transport::tls::secrets::ServerSecrets;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A process's place among the generations. All of its shards share it.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(super) secrets: Arc<ServerSecrets>,
    pub(super) generation: u8,
    pub(super) elders: Elders,
    /// The next older generation, until it has handed over.
    predecessor: Mutex<Option<UnixStream>>,
    handing_over: AtomicBool,
}

impl Lineage {
    pub(crate) fn new(
        secrets: Arc<ServerSecrets>,
        generation: u8,
        elders: Elders,
        predecessor: Option<UnixStream>,
    ) -> Self {
        let (predecessor, handing_over) = (Mutex::new(predecessor), AtomicBool::new(false));
        Lineage { secrets, generation, elders, predecessor, handing_over }
    }

    /// That of a process's shards.
    pub(super) fn of(shards: &[ShardHandle<Api>]) -> io::Result<Arc<Self>> {
        let lineage = shards.first().and_then(|shard| shard.peek(|_, api| api.lineage.clone()));
        lineage.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// The older generations of which at least a shard is left.
    pub(super) fn living(&self) -> impl Iterator<Item = &Elder> {
        self.elders.iter().filter(|elder| elder.shards.iter().flatten().any(|way| way.is_open()))
    }

    /// A number for the next generation that none of those has which live.
    pub(super) fn next_generation(&self) -> u8 {
        let mut next = self.generation.wrapping_add(1);
        while next != self.generation && self.living().any(|elder| elder.generation == next) {
            next = next.wrapping_add(1);
        }
        next
    }

    pub(super) fn take_predecessor(&self) -> Option<UnixStream> {
        self.predecessor.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Only one attempt at a time.
    pub(super) fn begin(&self) -> io::Result<OneAttempt<'_>> {
        if self.handing_over.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a hand-over is under way"));
        }
        Ok(OneAttempt(&self.handing_over))
    }
}

/// Another attempt can be made once this is dropped.
pub(super) struct OneAttempt<'a>(&'a AtomicBool);

impl Drop for OneAttempt<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
