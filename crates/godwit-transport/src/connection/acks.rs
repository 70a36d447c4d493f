//! Writing ACK frames (RFC 9000 section 19.3), and going on with what was acknowledged before there was a connection.

use super::Connection;
use crate::recovery_token::RecoveryToken;
use godwit_base::{Ecn, Time};
use godwit_recovery::AckTracker;
use godwit_wire::constants::DEFAULT_ACK_DELAY_EXPONENT;
use godwit_wire::frame::EcnCounts;
use godwit_wire::{Frame, Writer};

/// Writes an ACK frame if anything has been received since the last one, and counts it in `frames`.
#[inline]
pub(super) fn write(
    acks: &mut AckTracker,
    now: Time,
    writer: &mut Writer<'_>,
    tokens: &mut Vec<RecoveryToken>,
    frames: &mut u64,
) {
    if !acks.has_news() {
        return;
    }
    let Some((largest, received)) = acks.largest() else { return };
    let micros = u64::try_from(now.saturating_since(received).as_micros()).unwrap_or(u64::MAX);
    let counts = acks.ecn_counts();
    let counts = EcnCounts { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce };
    let counts = Some(counts).filter(|counts| *counts != EcnCounts::default());
    if Frame::encode_ack(writer, micros >> DEFAULT_ACK_DELAY_EXPONENT, acks.ranges(), counts).is_ok() {
        acks.on_ack_sent(now);
        super::stats::increment(frames);
        tokens.push(RecoveryToken::Ack { largest });
    }
}

/// What the endpoint answered to a client's first packets before there was a connection.
#[derive(Debug)]
pub(crate) struct BegunInitials {
    /// Initial packets sent, with the numbers from 0: nothing but acknowledgements.
    pub(crate) packets: u64,
    /// Their bytes.
    pub(crate) bytes: usize,
    /// Initial packets received that said nothing new, and are not received again.
    pub(crate) repeated: Vec<(u64, Ecn)>,
}

impl Connection {
    /// Goes on where the endpoint has begun. To be called before anything is received.
    pub(crate) fn continue_initials(&mut self, now: Time, begun: &BegunInitials) {
        let Some(initial) = &mut self.spaces.initial else { return };
        initial.space.recovery.begin_at(begun.packets);
        for (number, ecn) in &begun.repeated {
            initial.space.acks.on_packet_received(*number, now, true, *ecn);
        }
        self.paths.active_mut().on_sent(begun.bytes);
    }
}
