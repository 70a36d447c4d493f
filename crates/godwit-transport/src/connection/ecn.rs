//! Explicit congestion notification (RFC 9000 section 13.4): the packets that try out whether a path carries
//! marks. What they show is judged by [`godwit_recovery::ecn`]; what follows from it, the mark on everything
//! else, is seen to where runs are built.
//!
//! A probe has a datagram of its own and says nothing but PING. It is sent only when the handshake is confirmed:
//! before, there is little to mark and much to lose.

use super::Connection;
use super::boundary::Transmitted;
use super::paths::meta_for;
use crate::keys::TAG_LEN;
use godwit_base::{Ecn, Rng, SendBatch, Time};
use godwit_wire::{Frame, Writer};

/// Room for a probe with the longest header, in bytes.
const ROOM: usize = 64;

impl Connection {
    /// A packet with ECT(0) of which nobody waits for the contents.
    #[cold]
    pub(super) fn transmit_ecn_probe(
        &mut self,
        now: Time,
        batch: &mut SendBatch,
        rng: &mut dyn Rng,
    ) -> Transmitted {
        if !self.lifecycle.is_confirmed() || !self.paths.active().is_validated() {
            return Transmitted::Idle;
        }
        let Some(room) = batch.reserve(ROOM) else { return Transmitted::More };
        let Some(datagram) = room.get_mut(..ROOM) else { return Transmitted::Idle };
        self.scratch.ecn = Ecn::Ect0;
        let len = self.build_ecn_probe(now, datagram, rng);
        if len > 0 {
            self.paths.active_mut().on_sent(len);
            batch.commit(len, len, meta_for(self.paths.active().key(), Ecn::Ect0));
            self.stats.on_sent(len, len);
            self.observe_recovery();
        }
        Transmitted::Idle
    }

    fn build_ecn_probe(&mut self, now: Time, datagram: &mut [u8], rng: &mut dyn Rng) -> usize {
        self.scratch.tokens.clear();
        self.scratch.spans.clear();
        let dcid = *self.remote_cids.active();
        let Some(limit) = datagram.len().checked_sub(TAG_LEN) else { return 0 };
        let Some(room) = datagram.get_mut(..limit) else { return 0 };
        let mut writer = Writer::new(room);
        let Some(mut packet) = self.begin_short(now, 0, &dcid, &mut writer, rng) else { return 0 };
        if Frame::Ping.encode(&mut writer).is_err() {
            return 0;
        }
        packet.payload_end = writer.len();
        packet.pad_for_sample(datagram);
        // Its loss is no congestion, and nothing has to be sent again in its place.
        (packet.ack_eliciting, packet.padded) = (false, false);
        let len = packet.end();
        self.seal_and_record(now, &packet, datagram, 0);
        self.mask_run(now, datagram);
        len
    }
}
