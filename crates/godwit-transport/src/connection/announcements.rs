//! What a server says once, and again if it is lost: HANDSHAKE_DONE and NEW_TOKEN (RFC 9000 sections 19.7 and 19.20).

use crate::packet::PacketBuilder;
use crate::part::Part;
use bytes::Bytes;
use godwit_wire::Frame;

/// What is to be said once.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    handshake_done: bool,
    new_token: Option<Bytes>,
    new_token_pending: bool,
    /// Counts tokens: what becomes of an older one is no matter of the present one.
    number: u8,
}

/// Which of them a packet carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnnouncementToken {
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// NEW_TOKEN, by its number.
    NewToken(u8),
}

impl Announcements {
    /// The handshake is confirmed.
    pub(crate) fn send_handshake_done(&mut self) {
        self.handshake_done = true;
    }

    /// The client gets a token for its next connection.
    pub(crate) fn send_new_token(&mut self, token: Bytes) {
        self.number = self.number.wrapping_add(1);
        self.new_token_pending = !token.is_empty();
        self.new_token = Some(token);
    }
}

impl Part for Announcements {
    type Token = AnnouncementToken;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.handshake_done || self.new_token_pending
    }

    fn write_frames<T: From<AnnouncementToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if self.handshake_done && packet.put(&Frame::HandshakeDone, AnnouncementToken::HandshakeDone).is_ok()
        {
            self.handshake_done = false;
        }
        if let Some(token) = self.new_token.as_ref().filter(|_| self.new_token_pending)
            && packet.put(&Frame::NewToken { token }, AnnouncementToken::NewToken(self.number)).is_ok()
        {
            self.new_token_pending = false;
        }
    }

    fn on_acked(&mut self, token: AnnouncementToken) {
        match token {
            AnnouncementToken::HandshakeDone => self.handshake_done = false,
            AnnouncementToken::NewToken(number) if number == self.number => {
                self.new_token = None;
                self.new_token_pending = false;
            }
            AnnouncementToken::NewToken(_) => {}
        }
    }

    fn repeat(&mut self, token: AnnouncementToken) {
        match token {
            AnnouncementToken::HandshakeDone => self.handshake_done = true,
            AnnouncementToken::NewToken(number) if number == self.number => {
                self.new_token_pending = self.new_token.is_some();
            }
            AnnouncementToken::NewToken(_) => {}
        }
    }
}
