//! What connection ids show to others, as the application has set it; workers begin with it.

use godwit_transport::{EndpointConfig, ServerId};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What ids show, at all workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// The number of this server, to load balancers.
    pub(super) server_id: Option<ServerId>,
}

static SHOWN: Mutex<Shown> = Mutex::new(Shown { server_id: None });

/// What they show.
pub(super) fn shown() -> MutexGuard<'static, Shown> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shown {
    /// A worker begins with it.
    pub(super) const fn apply(&self, config: &mut EndpointConfig) {
        config.server_id = self.server_id;
    }
}
