//! Tickets of clients, which the application keeps.
//!
//! As bytes one is: four that say what it is, the QUIC version (4 bytes in network byte order), and the ticket in the format
//! of [`SessionTicket::to_bytes`], in which are the server's transport parameters as well. Whoever has them can read and
//! change connections that are made with them. Clients that have a certificate get none.

use super::Resumption;
use super::kept::{ClientTicket, ConnectionTickets, ReceivedTickets};
use crate::abi::Status;
use crate::worker::{ConnectionNews, State};
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::ClientConfig;
use std::sync::{Arc, Mutex};

impl Resumption {
    /// What a client's connection begins with, which has the ticket that was set, and is told of those that come.
    pub(in crate::connection) fn client_config(
        &mut self,
        owner: Key,
        config: &ClientConfig,
        received: &Arc<ReceivedTickets>,
    ) -> ClientConfig {
        let (received, ticket) = (Arc::clone(received), Mutex::new(self.ticket.take()));
        let mut config = config.clone();
        config.resumption.store = Some(Arc::new(ConnectionTickets { owner, received, ticket }));
        config
    }
}

impl State {
    /// A client is to resume the session of a ticket that the application has kept.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if these bytes are no ticket, or one of a version that is not spoken;
    /// [`Status::INVALID_STATE`] at a server, and if the connection was started or closed.
    pub(crate) fn set_resumption_ticket(
        &mut self,
        cx: &ShardCx<'_>,
        key: Key,
        bytes: &[u8],
    ) -> Result<(), Status> {
        let connection = self.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
        if bytes.is_empty() {
            return Err(Status::INVALID_PARAMETER);
        }
        if connection.is_server || connection.is_started || connection.closed_locally {
            return Err(Status::INVALID_STATE);
        }
        let is_spoken = |ticket: &ClientTicket| cx.endpoint().versions().contains(&ticket.version);
        let ticket = ClientTicket::from_bytes(bytes).filter(is_spoken).ok_or(Status::INVALID_PARAMETER)?;
        connection.resumption.ticket = Some(ticket);
        connection.resumption.is_attempted = true;
        Ok(())
    }

    /// Has tickets told that have come. Before the handshake is complete, and that is told, there is nothing to say of them.
    pub(crate) fn take_received_tickets(&mut self) {
        for (key, ticket) in self.received_tickets.take() {
            match self.connections.get(key) {
                Some(connection) if connection.is_connected => {
                    self.tell_connection(key, ConnectionNews::TicketReceived { ticket });
                }
                Some(connection) if connection.is_open() => self.received_tickets.put(key, ticket),
                _ => {}
            }
        }
    }
}
