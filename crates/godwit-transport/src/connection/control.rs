//! Frames that belong to no other component: HANDSHAKE_DONE, NEW_TOKEN, PING and those about acknowledgements.

use super::ack_frequency::AckFrequency;
use crate::recovery_token::RecoveryToken;
use bytes::Bytes;
use godwit_wire::{Frame, Writer};

/// What is to be said once, and again if it is lost.
#[derive(Debug, Default)]
pub(crate) struct Control {
    handshake_done: bool,
    new_token: Option<Bytes>,
    new_token_pending: bool,
    ping: bool,
    /// Wishes about acknowledgements.
    pub(crate) acks: AckFrequency,
}

impl Control {
    /// The server tells the client that the handshake is confirmed.
    pub(crate) fn send_handshake_done(&mut self) {
        self.handshake_done = true;
    }

    /// The server gives the client a token for its next connection.
    pub(crate) fn send_new_token(&mut self, token: Bytes) {
        self.new_token_pending = !token.is_empty();
        self.new_token = Some(token);
    }

    /// Something ack-eliciting is to be sent even if there is nothing to say.
    pub(crate) fn send_ping(&mut self) {
        self.ping = true;
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        self.handshake_done || self.new_token_pending || self.ping || self.acks.wants_to_send()
    }

    /// Writes what is due and fits.
    pub(crate) fn write(&mut self, writer: &mut Writer<'_>, tokens: &mut Vec<RecoveryToken>) {
        self.acks.write(writer, tokens);
        if self.handshake_done && Frame::HandshakeDone.encode(writer).is_ok() {
            self.handshake_done = false;
            tokens.push(RecoveryToken::HandshakeDone);
        }
        if let Some(token) = self.new_token.as_ref().filter(|_| self.new_token_pending)
            && (Frame::NewToken { token }).encode(writer).is_ok()
        {
            self.new_token_pending = false;
            tokens.push(RecoveryToken::NewToken);
        }
        if self.ping && Frame::Ping.encode(writer).is_ok() {
            self.ping = false;
            tokens.push(RecoveryToken::Ping);
        }
    }

    pub(crate) fn on_acked(&mut self, token: RecoveryToken) {
        match token {
            RecoveryToken::HandshakeDone => self.handshake_done = false,
            RecoveryToken::NewToken => {
                self.new_token = None;
                self.new_token_pending = false;
            }
            RecoveryToken::AckFrequency { sequence } => self.acks.on_acked(sequence),
            _ => {}
        }
    }

    pub(crate) fn on_lost(&mut self, token: RecoveryToken) {
        match token {
            RecoveryToken::HandshakeDone => self.handshake_done = true,
            RecoveryToken::NewToken => self.new_token_pending = self.new_token.is_some(),
            RecoveryToken::AckFrequency { sequence } => self.acks.on_lost(sequence),
            _ => {}
        }
    }
}
