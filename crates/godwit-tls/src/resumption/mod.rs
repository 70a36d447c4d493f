//! What outlives a connection so that the next one begins faster: TLS session tickets, address tokens, and
//! what was learnt about the server and the path.
//!
//! At a client all of it is kept in one [`SessionStore`], by server and network ([`SessionKey`]): tickets and
//! tokens are taken out when they are used, so that none is shown twice and nobody can link two connections
//! by them (RFC 9001 section 9.6 and RFC 9000 section 8.1.3). [`MemorySessions`] is the store of this crate. One that
//! outlives the process says so ([`SessionStore::is_persistent`]) and keeps [tickets as bytes](SessionTicket::to_bytes),
//! which takes a [`PortableVerifier`].
//!
//! At a server there are two kinds of tickets. [`SessionTickets`] seals sessions with keys that follow from
//! [`crate::secrets::ServerSecrets`], so that every process with the same secrets resumes them; such a session
//! is never good for 0-RTT. [`EarlySessions`] remembers sessions in the process that issued them and forgets
//! each at its first use, which makes it the register that stops replays: only its sessions carry 0-RTT. A server
//! that has both gives every client one ticket of each kind. A server that decides itself when a client gets a ticket, and
//! what is in it, has what TLS would send ([`NewSession`]) withheld, and sends it with a ticket of its own.
//!
//! (RFC 8446 sections 4.6.1 and 8, RFC 9000 sections 7.4.1 and 8.1.3, RFC 9001 sections 4.5 and 4.6.)

mod both;
mod memory;
mod new_session;
mod portable;
mod register;
#[cfg(test)]
mod tests;
mod tickets;

pub use both::BothKinds;
pub use memory::MemorySessions;
pub use new_session::NewSession;
pub use portable::{PortableTicket, PortableVerifier, TicketReader};
pub use register::EarlySessions;
pub use tickets::SessionTickets;

use bytes::Bytes;
use rustls::NamedGroup;
use rustls::client::Tls13ClientSessionValue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Under what something is remembered: what differs in any of these has nothing in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SessionKey {
    /// The server's name, as it was asked for.
    pub server_name: String,
    /// The application protocols offered, in order.
    pub alpn: Vec<Vec<u8>>,
    /// The QUIC version: tickets and tokens of one version are not for another (RFC 9369 section 5).
    pub version: u32,
    /// The network that the client was in, as the application numbers them. Tokens and round-trip times of one
    /// network mean nothing in another, and using them there would tell the server that the client has moved.
    pub network: u64,
}

impl SessionKey {
    /// Of connections in network 0.
    pub fn new(server_name: impl Into<String>, alpn: Vec<Vec<u8>>, version: u32) -> Self {
        SessionKey { server_name: server_name.into(), alpn, version, network: 0 }
    }
}

/// What a connection leaves to the next one beside tickets and tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Remembered {
    /// The smoothed round-trip time; zero if unknown. The next connection begins with it (RFC 9002 section
    /// 6.2.2), so that a lost first packet is repeated sooner.
    pub rtt: Duration,
    /// The share of packets lost of late, in parts of 65,536. Whether small flights are sent twice is decided by it.
    pub loss: u16,
    /// How much the round-trip time varied, in parts of 65,536 of it; zero if unknown. A lost first packet is repeated
    /// the sooner, the less it did.
    pub variation: u16,
    /// The congestion window in bytes at the end; zero if unknown. Not used by itself.
    pub window: u64,
    /// The rate at which the path delivered, in bytes per second, if the congestion controller has measured it; zero if
    /// unknown. Only for controllers that a program brings.
    pub rate: u64,
    /// What the application gave to be remembered, such as the settings that its 0-RTT requests keep to.
    pub application: Bytes,
}

/// A session ticket with its secrets. It can be used once.
pub struct SessionTicket {
    /// In what form it is.
    pub form: TicketForm,
}

/// In what form there is a ticket.
pub enum TicketForm {
    /// As TLS has it, which is good in this process.
    Live(Tls13ClientSessionValue),
    /// For a store that is persistent.
    Portable(Box<PortableTicket>),
}

impl SessionTicket {
    /// Whether the server has said that it may accept 0-RTT with it.
    pub fn permits_early_data(&self) -> bool {
        match &self.form {
            TicketForm::Live(value) => value.max_early_data_size() > 0,
            TicketForm::Portable(ticket) => ticket.permits_early_data(),
        }
    }

    /// The ticket in a form that can be kept, in a format of our own with a version; **whoever has it can read and
    /// change connections that are made with it.** `None` if it is not for a store that
    /// [is persistent](SessionStore::is_persistent), or longer than 24 KiB with the server's certificates.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match &self.form {
            TicketForm::Live(_) => None,
            TicketForm::Portable(ticket) => ticket.to_bytes(),
        }
    }

    /// A ticket that was [kept](SessionTicket::to_bytes). `None` if these bytes are none, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ticket = PortableTicket::from_bytes(bytes)?;
        Some(SessionTicket { form: TicketForm::Portable(Box::new(ticket)) })
    }

    /// When the ticket expires, since the Unix epoch. `None` if that is known to TLS only.
    pub fn expires(&self) -> Option<Duration> {
        match &self.form {
            TicketForm::Live(_) => None,
            TicketForm::Portable(ticket) => Some(ticket.expires()),
        }
    }
}

impl fmt::Debug for SessionTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTicket").field("early_data", &self.permits_early_data()).finish()
    }
}

/// Where clients keep what outlives their connections. Shared by any number of them. What is to be kept is given to it
/// while a connection's endpoint may be locked: that must not block. What is there is asked for before a connection
/// begins, off that lock, and again only if it begins anew in another version.
///
/// What servers send fills it, so an implementation bounds what it keeps per key and in all.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Whether it keeps tickets [as bytes](SessionTicket::to_bytes). If so, it is given tickets that can be, if there
    /// is a [`Resumption::verifier`], and none otherwise. Default false.
    fn is_persistent(&self) -> bool {
        false
    }

    /// Keeps a ticket beside those that are there.
    fn put_ticket(&self, key: &SessionKey, ticket: SessionTicket);

    /// Takes out the ticket to be used, the newest of its kind: one that permits 0-RTT if it is to be offered
    /// (`early`), one that does not otherwise; and if there is none, one of the other kind.
    fn take_ticket(&self, key: &SessionKey, early: bool) -> Option<SessionTicket>;

    /// Whether there is a ticket under this key, which stays there. A client whose server has moved it to another
    /// version asks, so as to begin with the version of its tickets (RFC 9369 section 5); where the answer is always
    /// no, as by default, such tickets are not used.
    fn has_ticket(&self, key: &SessionKey) -> bool {
        let _ = key;
        false
    }

    /// Keeps a token of a NEW_TOKEN frame, at most 1024 bytes.
    fn put_token(&self, key: &SessionKey, token: Bytes);

    /// Takes out the newest token.
    fn take_token(&self, key: &SessionKey) -> Option<Bytes>;

    /// Changes what is remembered of the path and the application.
    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered));

    /// What is remembered of the path and the application.
    fn remembered(&self, key: &SessionKey) -> Option<Remembered>;

    /// Keeps which group the server chose for the key exchange.
    fn put_group(&self, key: &SessionKey, group: NamedGroup);

    /// The group that the server chose last.
    fn group(&self, key: &SessionKey) -> Option<NamedGroup>;
}

/// Where a client's connections keep and find what outlives them. The default is nowhere; resumption is then
/// what the TLS settings say.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Resumption {
    /// The store. With one, the session storage of the TLS settings is not used.
    pub store: Option<Arc<dyn SessionStore>>,
    /// The network that the client is in; see [`SessionKey::network`].
    pub network: u64,
    /// The verifier of the TLS settings, if the store is persistent: tickets are kept there only if it is the same, the
    /// provider of the settings is [`crate::provider()`], and they have no client certificate.
    pub verifier: Option<Arc<PortableVerifier>>,
}
