//! What a server says when it gives out a ticket (RFC 8446 section 4.6.1): read beside TLS, which keeps it to itself, and
//! written for clients that are to get another ticket than the one that TLS has made.

use godwit_wire::{Malformed, Reader};
use std::collections::VecDeque;

/// A NewSessionTicket message is one of this type (RFC 8446 section 4).
const NEW_SESSION_TICKET: u8 = 4;
/// The extension that permits 0-RTT with as much data as flow control permits (RFC 9001 section 4.6.1).
const EARLY_DATA: [u8; 8] = [0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff];
/// Bytes of type and length before every message.
const HEADER: usize = 4;
/// Longer messages are not put together from pieces.
const MAX_MESSAGE: usize = 64 << 10;

/// A NewSessionTicket message (RFC 8446 section 4.6.1) without its extensions.
///
/// The session's secret follows from the handshake and the nonce, whatever the ticket is: a server may put another one in
/// its place, if it finds the session again by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// For how many seconds the ticket is good.
    pub lifetime: u32,
    /// What the client adds to the age that it tells.
    pub age_add: u32,
    /// What tells the tickets of a connection apart, at most 255 bytes.
    pub nonce: Vec<u8>,
    /// By what the server will find the session again, 1 to 65,535 bytes.
    pub ticket: Vec<u8>,
}

impl NewSession {
    /// The first of these messages, and what follows it. `None` if it is not a whole one, or of another kind.
    pub fn read(messages: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, body, rest) = message(messages)?;
        let session = (kind == NEW_SESSION_TICKET).then(|| parse(body).ok()).flatten()?;
        Some((session, rest))
    }

    /// The message, which permits 0-RTT or not as QUIC does it (RFC 9001 section 4.6.1). `None` if nonce or ticket are too
    /// long for one, or the ticket is empty.
    pub fn to_message(&self, early: bool) -> Option<Vec<u8>> {
        let extensions: &[u8] = if early { &EARLY_DATA } else { &[] };
        let mut body = Vec::new();
        body.extend_from_slice(&self.lifetime.to_be_bytes());
        body.extend_from_slice(&self.age_add.to_be_bytes());
        body.push(u8::try_from(self.nonce.len()).ok()?);
        body.extend_from_slice(&self.nonce);
        body.extend_from_slice(&u16::try_from(self.ticket.len()).ok().filter(|len| *len > 0)?.to_be_bytes());
        body.extend_from_slice(&self.ticket);
        body.extend_from_slice(&u16::try_from(extensions.len()).ok()?.to_be_bytes());
        body.extend_from_slice(extensions);
        let mut message = u32::try_from(body.len()).ok()?.to_be_bytes();
        if let Some(kind) = message.first_mut() {
            *kind = NEW_SESSION_TICKET;
        }
        Some([&message[..], &body].concat())
    }
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
    let nonce = reader.bytes(nonce.into())?.to_vec();
    let len = reader.u16()?;
    let ticket = reader.bytes(len.into())?.to_vec();
    Ok(NewSession { lifetime, age_add, nonce, ticket })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::*;

    fn session(number: u8) -> NewSession {
        NewSession { lifetime: 7200, age_add: 0xfedc_ba98, nonce: vec![number], ticket: vec![number; 200] }
    }

    #[test]
    fn tickets_are_found_however_the_stream_is_cut() {
        let sessions: Vec<NewSession> = (0..3).map(session).collect();
        let mut stream: Vec<u8> = sessions.iter().flat_map(|one| one.to_message(true).unwrap()).collect();
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
        reader.read(&session(1).to_message(false).unwrap());
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn malformed_tickets_are_none() {
        let whole = session(1).to_message(true).unwrap();
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
