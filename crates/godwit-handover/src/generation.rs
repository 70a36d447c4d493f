//! What the shards of an endpoint know of the other generations of the process.

use crate::older::{OlderGeneration, OlderGenerations, OtherGenerations};
use godwit_engine::Shard;
use godwit_transport::tls::secrets::ServerSecrets;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An endpoint's place among the generations of its process. All of its shards share it.
#[derive(Debug)]
pub struct EndpointGeneration {
    pub(crate) secrets: Arc<ServerSecrets>,
    pub(crate) number: u8,
    pub(crate) older: OlderGenerations,
    /// The next older generation, until it has handed over.
    predecessor: Mutex<Option<UnixStream>>,
    handing_over: AtomicBool,
}

impl EndpointGeneration {
    /// That of an endpoint for which nothing was inherited: whose connection ids carry `number`.
    pub fn first(secrets: Arc<ServerSecrets>, number: u8) -> Self {
        Self::new(secrets, number, OlderGenerations::default(), None)
    }

    pub(crate) fn new(
        secrets: Arc<ServerSecrets>,
        number: u8,
        older: OlderGenerations,
        predecessor: Option<UnixStream>,
    ) -> Self {
        let (predecessor, handing_over) = (Mutex::new(predecessor), AtomicBool::new(false));
        EndpointGeneration { secrets, number, older, predecessor, handing_over }
    }

    /// Makes a shard one of an endpoint that was inherited: it does not receive before [`crate::take_over()`] is called.
    #[must_use]
    pub fn join<H>(&self, shard: Shard<H>) -> Shard<H> {
        shard.sharing_with(OtherGenerations::older(self.older.clone()))
    }

    /// The older generations of which at least a shard is left.
    pub(crate) fn living(&self) -> impl Iterator<Item = &OlderGeneration> {
        self.older.living()
    }

    /// A number for the next generation that none of those has which live.
    pub(crate) fn next_number(&self) -> u8 {
        let mut next = self.number.wrapping_add(1);
        while next != self.number && self.living().any(|older| older.generation == next) {
            next = next.wrapping_add(1);
        }
        next
    }

    pub(crate) fn take_predecessor(&self) -> Option<UnixStream> {
        self.predecessor.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Only one attempt at a time.
    pub(crate) fn begin(&self) -> io::Result<OneAttempt<'_>> {
        if self.handing_over.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a hand-over is under way"));
        }
        Ok(OneAttempt(&self.handing_over))
    }
}

/// Another attempt can be made once this is dropped.
pub(crate) struct OneAttempt<'a>(&'a AtomicBool);

impl Drop for OneAttempt<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
