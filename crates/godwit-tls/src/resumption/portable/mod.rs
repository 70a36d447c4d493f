//! Tickets that outlive the process.
//!
//! rustls has no way to write a ticket down or to read one back. What there is to a ticket is known here
//! nevertheless: the server's message passes through ([`NewSessions`]), the secret through our HKDF
//! ([`crate::provider::ticket_secret`]), certificates and transport parameters can be asked for. And a ticket can be put
//! into the TLS library of another process in the one way that it offers: as the message of a server at the end of a
//! handshake. That
//! handshake takes place between two ends in memory ([`import`]), and the client's is told by [`PortableVerifier`]
//! that all is well if the certificates that were kept are good as of now. It takes as long as a handshake takes both
//! ends, some tenths of a millisecond.
//!
//! Client certificates cannot be told apart by what rustls shows of them. Tickets of a client that has one stay in
//! the process, so that nobody is taken for somebody else.
//!
//! (RFC 8446 sections 4.6.1 and 4.2.11, RFC 9001 section 4.6.1.)

mod bytes;
mod import;
#[cfg(test)]
mod tests;
mod verifier;

pub use verifier::PortableVerifier;

use super::new_session::{NewSession, NewSessions};
use crate::provider::ticket_secret;

use rustls::CipherSuite;
use rustls::client::{ResolvesClientCert, Tls13ClientSessionValue};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::time_provider::TimeProvider;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// No ticket is good for longer (RFC 8446 section 4.6.1).
const MAX_LIFETIME: u32 = 7 * 24 * 60 * 60;

/// All that there is to a ticket.
#[derive(Clone, PartialEq, Eq)]
pub struct PortableTicket {
    suite: CipherSuite,
    /// Seconds since the Unix epoch.
    issued: u64,
    /// Seconds.
    lifetime: u32,
    age_add: u32,
    early: bool,
    ticket: Vec<u8>,
    secret: Vec<u8>,
    /// The server's transport parameters, encoded.
    parameters: Vec<u8>,
    /// The server's certificates, its own first.
    chain: Vec<CertificateDer<'static>>,
}

impl PortableTicket {
    /// In the format of the module `bytes`. `None` if it is too long.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        bytes::encode(self)
    }

    /// `None` if these bytes are no ticket, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes::decode(bytes)
    }

    /// Whether the server has said that it may accept 0-RTT with it.
    pub fn permits_early_data(&self) -> bool {
        self.early
    }

    /// From when on it is worth nothing, since the Unix epoch.
    pub fn expires(&self) -> Duration {
        let lifetime = self.lifetime.min(MAX_LIFETIME);
        Duration::from_secs(self.issued.saturating_add(lifetime.into()))
    }
}

impl fmt::Debug for PortableTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortableTicket").field("expires", &self.expires()).finish_non_exhaustive()
    }
}

/// Turns the tickets that a connection gets into [`PortableTicket`]s, and such tickets into sessions that TLS can use.
#[derive(Debug)]
pub struct TicketReader {
    verifier: Arc<PortableVerifier>,
    identity: Arc<dyn ResolvesClientCert>,
    time: Arc<dyn TimeProvider>,
    incoming: Mutex<Incoming>,
}

#[derive(Debug, Default)]
struct Incoming {
    sessions: NewSessions,
    chain: Vec<CertificateDer<'static>>,
}

impl TicketReader {
    /// For connections with these settings, whose verifier is `verifier`. `None` if they have a client certificate.
    pub fn new(verifier: &Arc<PortableVerifier>, tls: &rustls::ClientConfig) -> Option<Self> {
        let identity = tls.client_auth_cert_resolver.clone();
        (!identity.has_certs()).then(|| TicketReader {
            verifier: verifier.clone(),
            identity,
            time: tls.time_provider.clone(),
            incoming: Mutex::default(),
        })
    }

    /// Has TLS `read` this data, which comes after the handshake with the owner of `chain`. During that
    /// [`TicketReader::describe`] is called.
    pub fn reading<R>(&self, data: &[u8], chain: &[CertificateDer<'static>], read: impl FnOnce() -> R) -> R {
        {
            let mut incoming = self.incoming();
            incoming.sessions.read(data);
            if incoming.chain.is_empty() {
                incoming.chain = chain.to_vec();
            }
        }
        ticket_secret::taking(read)
    }

    /// What there is to the ticket that TLS has just read.
    pub fn describe(&self, value: &Tls13ClientSessionValue) -> Option<Box<PortableTicket>> {
        let mut incoming = self.incoming();
        let NewSession { lifetime, age_add, ticket, .. } = incoming.sessions.next()?;
        Some(Box::new(PortableTicket {
            suite: value.suite().common.suite,
            issued: self.time.current_time()?.as_secs(),
            lifetime,
            age_add,
            early: value.max_early_data_size() > 0,
            ticket,
            secret: ticket_secret::taken()?,
            parameters: value.quic_params(),
            chain: incoming.chain.clone(),
        }))
    }

    /// The ticket as TLS has it. `None` if it has expired, or its certificates are not good enough any more.
    pub fn import(
        &self,
        ticket: &PortableTicket,
        name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        let now = self.time.current_time()?;
        if ticket.expires() <= Duration::from_secs(now.as_secs()) {
            return None;
        }
        import::import(ticket, &self.verifier, &self.identity, name.clone(), now)
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
