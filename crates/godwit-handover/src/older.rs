//! The older generations that still have connections, and the ways to them.

use crate::relay::{RelayReceiver, RelaySender, Relayed};
use godwit_base::RecvBatch;
use godwit_engine::{OtherProcesses, TakenIn};
use godwit_transport::Foreign;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// An older generation that still has connections.
#[derive(Debug)]
pub(crate) struct OlderGeneration {
    /// What its connection ids carry.
    pub(crate) generation: u8,
    /// The ways to its shards, in their order.
    pub(crate) shards: Vec<Option<RelaySender>>,
}

/// The older generations that a process knows. Each of its shards knows them through a clone of this.
#[derive(Debug, Clone, Default)]
pub(crate) struct OlderGenerations {
    all: Arc<[OlderGeneration]>,
}

impl OlderGenerations {
    /// These generations.
    pub(crate) fn new(all: Vec<OlderGeneration>) -> Self {
        OlderGenerations { all: all.into() }
    }

    /// Those of which at least a shard is left.
    pub(crate) fn living(&self) -> impl Iterator<Item = &OlderGeneration> {
        self.all.iter().filter(|older| older.shards.iter().flatten().any(|way| way.is_open()))
    }
}

/// The other generations, as one shard sees them: older ones, and the newer one, if that receives.
#[derive(Debug)]
pub(crate) struct OtherGenerations {
    older: OlderGenerations,
    /// Where the newer generation gives what is this one's.
    relay: Option<RelayReceiver>,
}

impl OtherGenerations {
    /// Those of the newest generation.
    pub(crate) fn older(older: OlderGenerations) -> Box<Self> {
        Box::new(OtherGenerations { older, relay: None })
    }

    /// Those of a generation to which a newer one relays.
    pub(crate) fn with_newer(older: OlderGenerations, relay: RelayReceiver) -> Box<Self> {
        Box::new(OtherGenerations { older, relay: Some(relay) })
    }
}

impl OtherProcesses for OtherGenerations {
    fn hand_on(&self, owner: &Foreign, received: Duration, run: &[u8]) -> Option<bool> {
        let older = self.older.all.iter().find(|older| older.generation == owner.generation);
        let way = older.and_then(|older| older.shards.get(usize::from(owner.shard))?.as_ref());
        match way?.send(&owner.meta, received, run) {
            Relayed::Done => Some(true),
            Relayed::Dropped => Some(false),
            Relayed::Gone => None,
        }
    }

    fn take_in(&mut self, batch: &mut RecvBatch) -> io::Result<TakenIn> {
        self.relay.as_mut().map_or(Ok(TakenIn::default()), |relay| relay.receive(batch))
    }

    fn on_receiving(&mut self) {
        self.relay = None;
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.relay.as_ref().map(|relay| relay.as_fd())
    }
}
