//! Tickets of both kinds from one server: one for 0-RTT here, and one that every process with the same keys opens.
//!
//! TLS asks its configuration whether tickets carry their session ("stateless"), once for every session it is shown
//! and for every ticket it writes, and accepts 0-RTT only if they do not. So the answer is each connection's own: it
//! follows the kind of the session that was shown last, and alternates from ticket to ticket.

use rustls::server::{ProducesTickets, StoresServerSessions};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One connection's view of both kinds.
pub struct BothKinds {
    early: Arc<dyn StoresServerSessions>,
    sealed: Arc<dyn ProducesTickets>,
    /// What comes next is, or what was shown was, a sealed session.
    sealing: AtomicBool,
}

impl BothKinds {
    /// TLS settings for one connection: those given, whose session storage is for 0-RTT, with `sealed` beside it.
    pub fn install(
        tls: &rustls::ServerConfig,
        sealed: Arc<dyn ProducesTickets>,
    ) -> Arc<rustls::ServerConfig> {
        let early = tls.session_storage.clone();
        let both = Arc::new(BothKinds { early, sealed, sealing: AtomicBool::new(false) });
        let mut tls = tls.clone();
        tls.session_storage = both.clone();
        tls.ticketer = both;
        Arc::new(tls)
    }

    fn show(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let early = self.early.take(ticket);
        self.sealing.store(early.is_none(), Ordering::Relaxed);
        early.or_else(|| self.sealed.decrypt(ticket))
    }
}

impl StoresServerSessions for BothKinds {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        self.sealing.store(true, Ordering::Relaxed);
        self.early.put(name, session)
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.show(ticket)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl ProducesTickets for BothKinds {
    fn enabled(&self) -> bool {
        self.sealing.load(Ordering::Relaxed)
    }

    fn lifetime(&self) -> u32 {
        self.sealed.lifetime()
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.sealing.store(false, Ordering::Relaxed);
        self.sealed.encrypt(session)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.show(ticket)
    }
}

impl fmt::Debug for BothKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BothKinds(..)")
    }
}
