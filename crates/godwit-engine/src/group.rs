//! Handing datagrams to the shard they belong to.
//!
//! Where the kernel steers by connection id this is rare (a merged run can carry two connections of one
//! address); where it does not, it happens to every datagram of a connection that changed its address. The
//! way is a bounded queue per shard: what does not fit is dropped, as a full socket would.

use crate::wake::Put;
use godwit_transport::Foreign;
use std::sync::{Arc, OnceLock, Weak};

/// Where a shard takes in datagrams from others.
pub(crate) trait Inbox: Send + Sync {
    /// What became of it.
    fn put(&self, foreign: &Foreign, run: &[u8]) -> Put;
}

/// The shards of one address. Each knows all of them through a clone of this.
#[derive(Clone)]
pub struct ShardGroup {
    inboxes: Arc<[OnceLock<Weak<dyn Inbox>>]>,
    generation: u8,
}

impl ShardGroup {
    /// A place for `count` shards, whose connection ids carry `generation`.
    pub fn new(count: usize, generation: u8) -> Self {
        ShardGroup { inboxes: (0..count).map(|_| OnceLock::new()).collect(), generation }
    }

    /// Number of shards.
    pub fn len(&self) -> usize {
        self.inboxes.len()
    }

    /// True if there is no shard at all.
    pub fn is_empty(&self) -> bool {
        self.inboxes.is_empty()
    }

    pub(crate) fn join(&self, shard: usize, inbox: Weak<dyn Inbox>) {
        if let Some(place) = self.inboxes.get(shard) {
            let _ = place.set(inbox);
        }
    }

    /// Gives a run of datagrams to its shard. None if there is no such shard in this process.
    pub(crate) fn hand_on(&self, foreign: &Foreign, run: &[u8]) -> Option<Put> {
        if foreign.generation != self.generation {
            return None;
        }
        // The shard is named as it is in our own ids, not reduced: what is beyond was not issued by us.
        let inbox = self.inboxes.get(usize::from(foreign.shard)).and_then(OnceLock::get);
        inbox.and_then(Weak::upgrade).map(|inbox| inbox.put(foreign, run))
    }
}

impl std::fmt::Debug for ShardGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardGroup").field("shards", &self.len()).finish_non_exhaustive()
    }
}
