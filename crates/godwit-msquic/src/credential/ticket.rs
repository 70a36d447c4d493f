//! What is in the tickets of a server: a session of TLS, and what the application wants to be told when it is resumed.
//!
//! Before it is sealed ([`super::ticket_keys`]) that is, with numbers in network byte order: one byte for the format, when it
//! was issued (8, seconds since the Unix epoch), by what it is known here as good for 0-RTT (16, zeros if it is not), then
//! the server's name and the session, each after its length in two bytes, and the application's data.

use super::Credential;
use godwit_tls::resumption::SessionTickets;
use rustls::server::ProducesTickets;

/// The format described above.
const FORMAT: u8 = 1;

/// By what a ticket is known in the process that gave it out as good for 0-RTT.
pub(crate) type EarlyId = [u8; 16];

/// What is in a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerTicket {
    /// Seconds since the Unix epoch.
    pub(crate) issued: u64,
    pub(crate) early: Option<EarlyId>,
    /// The name that the client asked for, if it gave one.
    pub(crate) server_name: Box<str>,
    /// As TLS has it.
    pub(crate) session: Vec<u8>,
    /// The application's.
    pub(crate) data: Vec<u8>,
}

impl ServerTicket {
    /// For how long one is good, in seconds.
    pub(crate) const LIFETIME: u32 = SessionTickets::LIFETIME;

    /// Whether it is good at that time, in seconds since the Unix epoch. A clock may have been set back a little.
    pub(crate) fn is_good(&self, now: u64) -> bool {
        now.saturating_sub(self.issued) < u64::from(Self::LIFETIME)
    }

    /// `None` if there is no room for it.
    fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.issued.to_be_bytes());
        bytes.extend_from_slice(&self.early.unwrap_or_default());
        for part in [self.server_name.as_bytes(), &self.session] {
            bytes.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(&self.data);
        Some(bytes)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&format, rest) = bytes.split_first()?;
        let (issued, rest) = rest.split_first_chunk()?;
        let (early, rest) = rest.split_first_chunk::<16>()?;
        let (server_name, rest) = part(rest)?;
        let (session, data) = part(rest)?;
        (format == FORMAT).then_some(ServerTicket {
            issued: u64::from_be_bytes(*issued),
            early: Some(*early).filter(|id| *id != EarlyId::default()),
            server_name: std::str::from_utf8(server_name).ok()?.into(),
            session: session.to_vec(),
            data: data.to_vec(),
        })
    }
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*len).into())
}

impl Credential {
    /// Seals a ticket. `None` if these are a client's credentials, or it is too long.
    pub(crate) fn seal_ticket(&self, ticket: &ServerTicket) -> Option<Vec<u8>> {
        self.tickets.as_ref()?.encrypt(&ticket.encode()?)
    }

    /// Opens a ticket that was sealed with one of the keys. `None` if it was not.
    pub(crate) fn open_ticket(&self, sealed: &[u8]) -> Option<ServerTicket> {
        ServerTicket::decode(&self.tickets.as_ref()?.decrypt(sealed)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::*;

    fn ticket(early: Option<EarlyId>) -> ServerTicket {
        ServerTicket {
            issued: 1_000_000,
            early,
            server_name: "localhost".into(),
            session: b"a session".to_vec(),
            data: b"what the application knows".to_vec(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for early in [None, Some([7; 16])] {
            let bytes = ticket(early).encode().unwrap();
            assert_eq!(ServerTicket::decode(&bytes), Some(ticket(early)));
            let without_data = bytes.len() - ticket(early).data.len();
            for len in 0..without_data {
                assert_eq!(ServerTicket::decode(&bytes[..len]), None, "{len}");
            }
        }
        let bytes = ticket(None).encode().unwrap();
        assert_eq!(ServerTicket::decode(&[&[2], &bytes[1..]].concat()), None, "another format");
    }

    #[test]
    fn sessions_that_are_too_long_have_no_ticket() {
        let too_long = ServerTicket { session: vec![0; 70_000], ..ticket(None) };
        assert_eq!(too_long.encode(), None);
    }

    #[test]
    fn it_is_good_for_half_a_day() {
        let ticket = ticket(None);
        assert!(ticket.is_good(999_990) && ticket.is_good(1_000_000 + 43_199));
        assert!(!ticket.is_good(1_000_000 + 43_200));
    }
}
