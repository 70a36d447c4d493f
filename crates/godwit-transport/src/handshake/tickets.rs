//! Session tickets that a server gives out by itself, when it likes (RFC 8446 section 4.6.1).
//!
//! TLS writes its tickets once, when the handshake is complete, and knows no other time. Where they are to be withheld, what
//! it writes after the handshake is kept here, and goes out as the application says, one by one.

use super::{Handshake, Level, NewSession, one_rtt};

/// As many tickets as that are never enough.
pub(super) const ALL_TICKETS: u8 = u8::MAX;

impl Handshake {
    /// At a server, before anything is received: tickets are not sent by themselves.
    pub(crate) fn withhold_tickets(&mut self) {
        self.beside.withheld = Some(Vec::new());
    }

    /// At a client: TLS stays, to read whatever tickets the server gives out, however late.
    pub(crate) fn read_all_tickets(&mut self) {
        self.enough_tickets = ALL_TICKETS;
    }

    /// The next of the tickets that TLS has written and that were withheld.
    pub(crate) fn next_withheld(&mut self) -> Option<NewSession> {
        let messages = self.beside.withheld.as_mut()?;
        let read = NewSession::read(messages);
        let Some((session, rest)) = read else {
            *messages = Vec::new();
            return None;
        };
        let read = messages.len().saturating_sub(rest.len());
        messages.drain(..read);
        Some(session)
    }

    /// Sends a ticket in place of one that was withheld. False if it is too long, or the handshake is not complete.
    pub(crate) fn send_ticket(&mut self, ticket: &NewSession, early: bool) -> bool {
        let Some(message) = ticket.to_message(early).filter(|_| self.writing == Level::OneRtt) else {
            return false;
        };
        let stream = one_rtt(&mut self.one_rtt, self.beside.over);
        stream.to_send.tail().extend_from_slice(&message);
        true
    }

    /// Session tickets that are enough for a client that is idle.
    pub(super) const fn enough_when_idle(&self) -> u8 {
        match self.enough_tickets {
            ALL_TICKETS => ALL_TICKETS,
            0 => 0,
            _ => 1,
        }
    }
}
