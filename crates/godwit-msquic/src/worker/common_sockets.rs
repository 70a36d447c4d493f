//! Where the connections of a worker's clients leave that do not care from where.

use godwit_base::SocketId;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// The sockets, once one has been asked for.
#[derive(Debug, Default)]
pub(super) struct CommonSockets(Mutex<Option<OfFamilies>>);

/// With a dual-stack socket, both are the same.
#[derive(Debug, Clone, Copy)]
struct OfFamilies {
    ipv4: Option<SocketId>,
    ipv6: Option<SocketId>,
}

impl CommonSockets {
    /// The one that reaches `remote`; `bind` makes one that is not there yet.
    ///
    /// # Errors
    /// If there is none that reaches it.
    pub(super) fn find(
        &self,
        remote: SocketAddr,
        bind: impl Fn(SocketAddr) -> io::Result<(SocketId, SocketAddr)>,
    ) -> io::Result<SocketId> {
        let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match *sockets {
            Some(found) => found,
            None => *sockets.insert(Self::bind(bind)?),
        };
        let socket = if remote.is_ipv4() { found.ipv4 } else { found.ipv6 };
        socket.ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    fn bind(bind: impl Fn(SocketAddr) -> io::Result<(SocketId, SocketAddr)>) -> io::Result<OfFamilies> {
        if let Ok((dual, _)) = bind((Ipv6Addr::UNSPECIFIED, 0).into()) {
            return Ok(OfFamilies { ipv4: Some(dual), ipv6: Some(dual) });
        }
        let (socket, _) = bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        Ok(OfFamilies { ipv4: Some(socket), ipv6: None })
    }

    /// They are closed elsewhere.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
