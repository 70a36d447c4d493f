//! What connection ids show to others, as the application has set it; workers begin with it.

use godwit_transport::{CidIdentifier, EndpointConfig, ServerId};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What ids show, at all workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// The number of this server, to load balancers.
    pub(super) server_id: Option<ServerId>,
    /// The identifier of this process, by which its datagrams are told from those of others with the same port; of each listener and
    /// connection its own, once it is known which it is.
    pub(super) identifier: Option<CidIdentifier>,
    /// They have room for such identifiers.
    pub(super) is_roomy: bool,
}

/// Bytes of ids that have room for an identifier.
pub(super) const ROOMY: usize = 14;

static SHOWN: Mutex<Shown> = Mutex::new(Shown { server_id: None, identifier: None, is_roomy: false });

/// What they show.
pub(super) fn shown() -> MutexGuard<'static, Shown> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shown {
    /// A worker begins with it.
    pub(super) const fn apply(&self, config: &mut EndpointConfig) {
        config.server_id = self.server_id;
        config.cid_identifier = self.identifier;
        if self.is_roomy {
            config.cid_len = ROOMY;
        }
    }
}
