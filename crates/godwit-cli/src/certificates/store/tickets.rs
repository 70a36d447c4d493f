//! Session tickets (RFC 8446 section 4.6.1) that end when a certificate is exchanged.
//!
//! A client that resumes does not look at the certificate again: it would go on with one that has been revoked,
//! or with a site that has moved elsewhere. So with every exchange the keys of the tickets are thrown away. What
//! that costs is a full handshake for each client that comes back, which in TLS 1.3 takes no more round trips,
//! once for every exchange (with automatic certificates every two months).
//!
//! Otherwise keys are changed every six hours, and a ticket is good for twelve at most. Tickets carry their
//! session: the server remembers nothing, and TCP and QUIC share the keys.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::ProducesTickets;

pub(super) struct Tickets(ArcSwap<Arc<dyn ProducesTickets>>);

impl Tickets {
    pub(super) fn new() -> Result<Tickets, rustls::Error> {
        Ok(Tickets(ArcSwap::from_pointee(Ticketer::new()?)))
    }

    /// Makes all tickets so far worthless.
    pub(super) fn forget(&self) {
        match Ticketer::new() {
            Ok(fresh) => self.0.store(Arc::new(fresh)),
            // Without random numbers there are no sessions, and no handshakes either.
            Err(_) => self.0.store(Arc::new(Arc::new(Never))),
        }
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tickets")
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.0.load().lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.load().encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.load().decrypt(cipher)
    }
}

#[derive(Debug)]
struct Never;

impl ProducesTickets for Never {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
