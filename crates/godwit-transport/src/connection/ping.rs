//! PING: something that the peer has to acknowledge when there is nothing to say (RFC 9000 section 19.2).

use crate::packet::PacketBuilder;
use crate::part::{NoToken, Part};
use godwit_wire::Frame;

/// Whether a PING is to be sent.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    due: bool,
}

impl Ping {
    /// One is to be sent.
    pub(crate) fn send(&mut self) {
        self.due = true;
    }
}

impl Part for Ping {
    type Token = NoToken;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.due
    }

    fn write_frames<T: From<NoToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if packet.put_once(&Frame::Ping).is_ok() {
            self.due = false;
        }
    }
}
