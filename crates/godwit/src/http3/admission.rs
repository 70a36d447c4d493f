//! Whether there is room for another connection.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

type Admit = dyn Fn(SocketAddr) -> Option<Box<dyn Any + Send>> + Send + Sync;

/// Whoever decides, if anybody: see [`super::Server::admission`].
#[derive(Clone, Default)]
pub(super) struct Admission(Option<Arc<Admit>>);

/// A connection that was let in. It is held as long as the connection is served.
pub(super) struct Admitted {
    _permit: Option<Box<dyn Any + Send>>,
}

impl Admission {
    pub(super) fn new<P: Any + Send>(
        admit: impl Fn(SocketAddr) -> Option<P> + Send + Sync + 'static,
    ) -> Self {
        Admission(Some(Arc::new(move |remote| admit(remote).map(|permit| Box::new(permit) as _))))
    }

    /// `None` if there is no room.
    pub(super) fn ask(&self, remote: SocketAddr) -> Option<Admitted> {
        match &self.0 {
            None => Some(Admitted { _permit: None }),
            Some(admit) => admit(remote).map(|permit| Admitted { _permit: Some(permit) }),
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Admission" } else { "None" })
    }
}
