//! Where TLS finds the session that one connection resumes, and leaves those that it makes.

use rustls::server::StoresServerSessions;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// The sessions of one connection of a server.
pub(super) struct ConnectionSessions(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The one that the client may resume, by its ticket.
    resumable: Option<Named>,
    /// Those that were made, by the names that TLS has given them.
    made: Vec<Named>,
}

struct Named {
    name: Vec<u8>,
    session: Zeroizing<Vec<u8>>,
}

impl ConnectionSessions {
    /// With a session that may be resumed by that ticket, or none.
    pub(super) fn new(resumable: Option<(Vec<u8>, Vec<u8>)>) -> Self {
        let resumable = resumable.map(|(name, session)| Named { name, session: Zeroizing::new(session) });
        ConnectionSessions(Mutex::new(Inner { resumable, made: Vec::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete in itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out a session that TLS has made.
    pub(super) fn take_made(&self, name: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut inner = self.inner();
        let at = inner.made.iter().position(|made| made.name == name)?;
        Some(inner.made.swap_remove(at).session)
    }
}

impl StoresServerSessions for ConnectionSessions {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        self.inner().made.push(Named { name, session: Zeroizing::new(session) });
        true
    }

    /// TLS 1.3 takes what it looks at.
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        let resumable = self.inner().resumable.take_if(|resumable| resumable.name == name)?;
        Some(resumable.session.to_vec())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for ConnectionSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionSessions(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_resumed_once_and_by_its_ticket() {
        let sessions = ConnectionSessions::new(Some((b"ticket".to_vec(), b"session".to_vec())));
        assert_eq!(sessions.take(b"another"), None);
        assert_eq!((sessions.get(b"ticket"), sessions.take(b"ticket")), (None, Some(b"session".to_vec())));
        assert_eq!(sessions.take(b"ticket"), None);
    }

    #[test]
    fn what_is_made_is_for_tickets_and_not_resumed_here() {
        let sessions = ConnectionSessions::new(None);
        for name in [b"one", b"two"] {
            assert!(sessions.put(name.to_vec(), name.to_vec()));
        }
        assert_eq!(sessions.take(b"one"), None);
        assert_eq!(sessions.take_made(b"two").unwrap().as_slice(), b"two");
        assert!(sessions.take_made(b"two").is_none() && sessions.take_made(b"one").is_some());
    }
}
