//! What a server says after the handshake, for clients whose TLS has gone: session tickets (RFC 8446 section 4.6.1), and
//! nothing else over QUIC (RFC 9001 sections 4.4 and 6).
//!
//! Messages are told apart by their headers alone (RFC 8446 section 4), and what is in them is not read.

use crate::WireError;
use godwit_tls::alert;
use godwit_wire::TransportErrorCode;

/// Bytes of a message's header: its type and its length.
const HEADER: u8 = 4;

/// The type of a session ticket.
const NEW_SESSION_TICKET: u8 = 4;

/// The type of a request for a client's certificate.
const CERTIFICATE_REQUEST: u8 = 13;

/// Bytes of a message's content at most, as TLS has it.
const MOST: u32 = 0xffff;

/// Where in the messages of a server the data is that came last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Messages {
    /// Bytes of the present message that are to come.
    left: u32,
    header: [u8; HEADER as usize],
    /// Bytes of the header that have come.
    header_len: u8,
    tickets: u8,
}

impl Messages {
    /// Session tickets that have come as a whole.
    pub(super) const fn tickets(&self) -> u8 {
        self.tickets
    }

    /// True if the last message has come as a whole.
    pub(super) const fn is_between(&self) -> bool {
        self.header_len == 0
    }

    /// Takes in what follows. Fails with the alert for messages that are none of tickets, and for those that are too long.
    pub(super) fn follow(&mut self, mut data: &[u8]) -> Result<(), WireError> {
        while let Some((first, rest)) = data.split_first() {
            if self.header_len < HEADER {
                data = rest;
                self.on_header_byte(*first)?;
            } else {
                let content = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len());
                data = data.get(content..).unwrap_or_default();
                self.left = self.left.saturating_sub(u32::try_from(content).unwrap_or(u32::MAX));
            }
            if self.header_len == HEADER && self.left == 0 {
                self.header_len = 0;
                self.tickets = self.tickets.saturating_add(1);
            }
        }
        Ok(())
    }

    fn on_header_byte(&mut self, byte: u8) -> Result<(), WireError> {
        if let Some(place) = self.header.get_mut(usize::from(self.header_len)) {
            *place = byte;
        }
        self.header_len = self.header_len.saturating_add(1);
        let [message_type, length @ ..] = self.header;
        if message_type == CERTIFICATE_REQUEST {
            // No alert: RFC 9001 section 4.4 has an error of QUIC for that.
            let reason = "a request for a certificate after the handshake";
            return Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        }
        if message_type != NEW_SESSION_TICKET {
            return Err(WireError::new(alert::UNEXPECTED_MESSAGE, "a TLS message after the handshake"));
        }
        if self.header_len == HEADER {
            let [high, middle, low] = length;
            self.left = u32::from_be_bytes([0, high, middle, low]);
        }
        if self.left > MOST {
            return Err(WireError::new(alert::DECODE_ERROR, "a TLS message that is too long"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticket(len: usize) -> Vec<u8> {
        let mut message = vec![NEW_SESSION_TICKET];
        message.extend_from_slice(&u32::try_from(len).unwrap().to_be_bytes()[1..]);
        message.resize(len + 4, 4);
        message
    }

    proptest! {
        #[test]
        fn tickets_are_counted_however_they_are_cut(
            lengths in prop::collection::vec(0usize..70_000, 0..4),
            cuts in prop::collection::vec(1usize..2000, 1..40),
        ) {
            let (mut messages, mut expected) = (Messages::default(), Ok(0));
            let stream: Vec<u8> = lengths.iter().flat_map(|len| ticket(*len)).collect();
            for len in lengths {
                expected = expected.and_then(|count| if len > 0xffff { Err(()) } else { Ok(count + 1) });
            }
            let (mut rest, mut cuts, mut result) = (&stream[..], cuts.iter().cycle(), Ok(()));
            while !rest.is_empty() && result.is_ok() {
                let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                result = messages.follow(now);
                rest = later;
            }
            prop_assert!(messages.is_between() || result.is_err());
            prop_assert_eq!(result.map(|()| messages.tickets()).map_err(drop), expected);
        }
    }

    #[test]
    fn other_messages_are_refused_at_their_first_byte() {
        for message_type in (0..=255).filter(|message_type| *message_type != NEW_SESSION_TICKET) {
            let mut messages = Messages::default();
            messages.follow(&ticket(3)).unwrap();
            let code = match message_type {
                CERTIFICATE_REQUEST => TransportErrorCode::PROTOCOL_VIOLATION,
                _ => alert::UNEXPECTED_MESSAGE,
            };
            assert_eq!(messages.follow(&[message_type]).unwrap_err().code, code);
        }
        let long = [NEW_SESSION_TICKET, 1, 0, 0];
        assert_eq!(Messages::default().follow(&long).unwrap_err().code, alert::DECODE_ERROR);
    }
}
