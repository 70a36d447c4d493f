//! Writing ACK frames (RFC 9000 section 19.3).

use super::parts::{Packet, RecoveryToken};
use super::stats::increment;
use crate::packet::PacketBuilder;
use godwit_recovery::AckTracker;
use godwit_wire::Frame;
use godwit_wire::constants::DEFAULT_ACK_DELAY_EXPONENT;
use godwit_wire::frame::EcnCounts;

/// Packets that only acknowledge, in a row, before one of them asks to be acknowledged itself, so that
/// old ranges can be forgotten (RFC 9000 section 13.2.4).
const ACK_ONLY_BEFORE_PING: u32 = 32;

/// Writes an ACK frame if anything has been received since the last one, and counts it in `frames`; behind a TIMESTAMP frame
/// with `stamp`, if there is one and both fit.
#[inline]
pub(super) fn write(acks: &mut AckTracker, packet: &mut Packet<'_>, frames: &mut u64, stamp: Option<u64>) {
    if !acks.has_news() {
        return;
    }
    let Some((largest, received)) = acks.largest() else { return };
    let now = packet.now();
    let micros = u64::try_from(now.saturating_since(received).as_micros()).unwrap_or(u64::MAX);
    let counts = acks.ecn_counts();
    let counts = EcnCounts { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce };
    let counts = Some(counts).filter(|counts| *counts != EcnCounts::default());
    let delay = micros >> DEFAULT_ACK_DELAY_EXPONENT;
    let start = packet.writer().len();
    let stamped = stamp.is_some_and(|micros| Frame::Timestamp { micros }.encode(packet.writer()).is_ok());
    let mut written = Frame::encode_ack(packet.writer(), delay, acks.ranges(), counts);
    if stamped && written.is_err() {
        packet.writer().truncate(start);
        written = Frame::encode_ack(packet.writer(), delay, acks.ranges(), counts);
    }
    if written.is_ok() {
        acks.on_ack_sent(now);
        increment(frames);
        packet.carries_quietly(RecoveryToken::Ack { largest });
    }
}

/// Packets in a row that only acknowledged.
#[derive(Debug, Default)]
pub(crate) struct AckOnlyRun {
    packets: u32,
}

impl AckOnlyRun {
    /// Adds a PING to one in many packets that would only acknowledge.
    #[inline]
    pub(super) fn elicit_now_and_then<T>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if packet.is_ack_eliciting() {
            self.packets = 0;
        } else if packet.has_payload() {
            self.packets = self.packets.saturating_add(1);
            if self.packets >= ACK_ONLY_BEFORE_PING && packet.put_once(&Frame::Ping).is_ok() {
                self.packets = 0;
            }
        }
    }
}
