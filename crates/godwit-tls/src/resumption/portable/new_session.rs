//! What a server says when it gives out a ticket, read beside TLS, which keeps it to itself.

use godwit_wire::{Malformed, Reader};
use std::collections::VecDeque;

/// A NewSessionTicket message is one of this type (RFC 8446 section 4).
const NEW_SESSION_TICKET: u8 = 4;
/// Bytes of type and length before every message.
const HEADER: usize = 4;
/// Longer messages are not put together from pieces.
const MAX_MESSAGE: usize = 64 << 10;

/// A NewSessionTicket message (RFC 8446 section 4.6.1), as far as it is of use here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewSession {
    /// Seconds.
    pub(super) lifetime: u32,
    pub(super) age_add: u32,
    pub(super) ticket: Vec<u8>,
}

/// Finds the tickets among the messages that come after the handshake.
#[derive(Debug, Default)]
pub(super) struct NewSessions {
    /// The beginning of a message.
    partial: Vec<u8>,
    found: VecDeque<NewSession>,
    /// Something was too long: what follows cannot be told apart.
    lost: bool,
}

impl NewSessions {
    /// The next bytes of the stream, just before TLS gets them.
    pub(super) fn read(&mut self, data: &[u8]) {
        // TLS has taken, or refused, what came before.
        self.found.clear();
        let mut joined = std::mem::take(&mut self.partial);
        let mut rest = if joined.is_empty() {
            data
        } else {
            joined.extend_from_slice(data);
            &joined
        };
        while !self.lost && !rest.is_empty() {
            let Some((kind, body, next)) = message(rest) else {
                self.lost = rest.len() > MAX_MESSAGE;
                self.partial = if self.lost { Vec::new() } else { rest.to_vec() };
                return;
            };
            if kind == NEW_SESSION_TICKET
                && let Ok(session) = parse(body)
            {
                self.found.push_back(session);
            }
            rest = next;
        }
    }

    /// The ticket that TLS reads next.
    pub(super) fn next(&mut self) -> Option<NewSession> {
        self.found.pop_front()
    }
}

/// Type and body of the first message, and what follows it. `None` if it is not complete.
fn message(data: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = data.split_first_chunk::<HEADER>()?;
    let [kind, high, middle, low] = *header;
    let len = usize::try_from(u32::from_be_bytes([0, high, middle, low])).ok()?;
    let (body, rest) = rest.split_at_checked(len)?;
    Some((kind, body, rest))
}

fn parse(body: &[u8]) -> Result<NewSession, Malformed> {
    let mut reader = Reader::new(body);
    let (lifetime, age_add) = (reader.u32()?, reader.u32()?);
    let nonce = reader.u8()?;
    reader.bytes(nonce.into())?;
    let len = reader.u16()?;
    let ticket = reader.bytes(len.into())?.to_vec();
    Ok(NewSession { lifetime, age_add, ticket })
}

/// Such a message, whose nonce means nothing. 0-RTT is permitted as QUIC does it (RFC 9001 section 4.6.1). `None` if
/// the ticket is too long for one.
pub(super) fn message_of(session: &NewSession, early: bool) -> Option<Vec<u8>> {
    const EARLY_DATA: [u8; 8] = [0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff];
    let extensions: &[u8] = if early { &EARLY_DATA } else { &[] };
    let mut body = Vec::new();
    body.extend_from_slice(&session.lifetime.to_be_bytes());
    body.extend_from_slice(&session.age_add.to_be_bytes());
    body.extend_from_slice(&[1, 0]);
    body.extend_from_slice(&u16::try_from(session.ticket.len()).ok()?.to_be_bytes());
    body.extend_from_slice(&session.ticket);
    body.extend_from_slice(&u16::try_from(extensions.len()).ok()?.to_be_bytes());
    body.extend_from_slice(extensions);
    let mut message = u32::try_from(body.len()).ok()?.to_be_bytes();
    if let Some(kind) = message.first_mut() {
        *kind = NEW_SESSION_TICKET;
    }
    Some([&message[..], &body].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::*;

    fn session(number: u8) -> NewSession {
        NewSession { lifetime: 7200, age_add: 0xfedc_ba98, ticket: vec![number; 200] }
    }

    #[test]
    fn tickets_are_found_however_the_stream_is_cut() {
        let sessions: Vec<NewSession> = (0..3).map(session).collect();
        let mut stream: Vec<u8> = sessions.iter().flat_map(|one| message_of(one, true).unwrap()).collect();
        // Another message in between.
        let other = [20, 0, 0, 3, 1, 2, 3];
        stream.splice(0..0, other);
        for size in [1, 2, 3, 5, 100, 217, 218, 219, stream.len()] {
            let mut reader = NewSessions::default();
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                reader.read(piece);
                found.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(found, sessions, "pieces of {size}");
        }
    }

    #[test]
    fn what_never_ends_is_given_up() {
        let mut reader = NewSessions::default();
        reader.read(&[4, 0xff, 0xff, 0xff]);
        for _ in 0..100 {
            reader.read(&[0; 1000]);
        }
        assert!(reader.partial.capacity() == 0 && reader.lost);
        reader.read(&message_of(&session(1), false).unwrap());
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn malformed_tickets_are_none() {
        let whole = message_of(&session(1), true).unwrap();
        for len in HEADER..whole.len() - 10 {
            let mut cut = whole[..len].to_vec();
            let body = u32::try_from(len - HEADER).unwrap().to_be_bytes();
            cut[1..4].copy_from_slice(&body[1..]);
            let mut reader = NewSessions::default();
            reader.read(&cut);
            assert_eq!(reader.next(), None, "{len}");
        }
    }
}
