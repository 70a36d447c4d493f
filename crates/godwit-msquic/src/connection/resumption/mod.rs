//! Sessions that are resumed, and 0-RTT (RFC 8446 sections 2.2, 2.3 and 4.6.1, RFC 9001 sections 4.5 and 4.6).
//!
//! At a [server](server) the application decides twice. When it likes, it gives the client a ticket, with data of its own in
//! it: TLS makes tickets when the handshake is complete, the transport withholds them, and they are sent with another ticket
//! in their place, in which the session and the data are sealed. And when a client comes back, the application is told of
//! that data and may refuse: that is before TLS begins, for which the ticket is read in the ClientHello. Where the sessions of
//! one connection come from and go to are its own [`ConnectionSessions`].
//!
//! At a [client](client) it is told of every ticket, as bytes with which it can begin a connection at any time.
//!
//! Invariants: a ticket permits 0-RTT only in the process and under limits no lower than those that gave it out, and to each
//! ClientHello once ([`EarlyTickets`](crate::configuration::EarlyTickets)); RESUMED is told before anything else of a
//! connection.

mod client;
mod kept;
mod offered;
mod server;
mod sessions;

pub(crate) use kept::ReceivedTickets;

use godwit_transport::TransportConfig;
use kept::ClientTicket;
use offered::Offered;
pub(super) use offered::OfferedSession;
use sessions::ConnectionSessions;
use std::sync::Arc;

/// What a connection has to do with sessions.
#[derive(Default)]
pub(crate) struct Resumption {
    /// At a client: the ticket that the application has set.
    ticket: Option<ClientTicket>,
    /// There is, or was, a session to resume.
    pub(crate) is_attempted: bool,
    /// At a server: a session that the application is to decide about.
    offered: Option<Offered>,
    /// At a server: the application has nothing against the session.
    is_accepted: bool,
    /// At a server that gives out tickets: what they are made of.
    source: Option<TicketSource>,
}

/// What the tickets of a server's connection are made of.
struct TicketSource {
    sessions: Arc<ConnectionSessions>,
    /// What the connection was accepted with: clients that come back keep to it in their 0-RTT packets.
    transport: Arc<TransportConfig>,
}
