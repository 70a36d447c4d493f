//! What QUIC has and TCP has not, taken away: settings for measurements of what it is worth.
//!
//! They are there for `godwit wan mechanisms` and for nothing else, and cost what is sent and received without them a boolean
//! each.

use crate::ack_tracker::MAX_REPORTED;
use std::time::Duration;

/// Mechanisms of QUIC that are taken away, for measurements in the laboratory only: they are made to be worse where packets
/// are lost, and not tested for use. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Laboratory {
    /// For the laboratory only: what was sent more than once is ambiguous when it is acknowledged, as where what is sent
    /// again has the numbers that it had. It gives no round-trip time sample, does not end the back-off of the timer unless
    /// something else gives one (Karn's algorithm, RFC 6298 sections 3 and 5), and never shows that a loss was none. So is
    /// what carries no bytes of a stream or of the handshake.
    /// Default false.
    pub ambiguous_repeats: bool,
    /// For the laboratory only: a retransmission timer of TCP (RFC 6298) takes the place of the probe timeout. The
    /// variation counts for no less than this, which is 200 ms in Linux, and the peer's delay for nothing. When it goes
    /// off, all that is under way is given up for lost and the window falls to its least. Unlike TCP's it begins anew with
    /// every packet that is sent. Default none.
    pub retransmission_timer: Option<Duration>,
    /// For the laboratory only: an ACK frame has no more ranges than this, at least 1. Four are what TCP can say with
    /// timestamps: all up to some byte, and three SACK blocks. Default 128, which is the most.
    pub most_ack_ranges: u8,
    /// For the laboratory only: what the window permits leaves at once. Default false.
    pub unpaced: bool,
}

impl Default for Laboratory {
    fn default() -> Self {
        Laboratory {
            ambiguous_repeats: false,
            retransmission_timer: None,
            most_ack_ranges: MAX_REPORTED,
            unpaced: false,
        }
    }
}
