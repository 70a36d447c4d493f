//! What a packet carried, in a form small enough to remember until it is acknowledged or lost.
//!
//! Loss recovery knows no frames: it keeps these tokens in order of sending and hands them back with
//! an outcome. The connection then tells the component that wrote the frame.

use godwit_wire::{Direction, StreamId};

/// One retransmittable thing that a packet carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryToken {
    /// An ACK frame whose largest packet number was this.
    Ack {
        /// The largest packet number it acknowledged.
        largest: u64,
    },
    /// CRYPTO data of the packet's own encryption level.
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// STREAM data.
    Stream {
        /// The stream.
        id: StreamId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Whether it ended the stream.
        fin: bool,
    },
    /// RESET_STREAM.
    ResetStream {
        /// The stream.
        id: StreamId,
    },
    /// RESET_STREAM_AT.
    ResetStreamAt {
        /// The stream.
        id: StreamId,
        /// The size up to which its data is still delivered: an application may lower it.
        reliable_size: u64,
    },
    /// DATAGRAM: never sent again.
    Datagram {
        /// The application's name for it, if its outcome is asked for.
        tag: Option<u64>,
    },
    /// STOP_SENDING.
    StopSending {
        /// The stream.
        id: StreamId,
    },
    /// MAX_DATA.
    MaxData,
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// The stream.
        id: StreamId,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// The direction of the streams.
        direction: Direction,
    },
    /// DATA_BLOCKED, STREAM_DATA_BLOCKED and STREAMS_BLOCKED: informative.
    Blocked,
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// The id's sequence number.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// The id's sequence number.
        sequence: u64,
    },
    /// NEW_TOKEN.
    NewToken,
    /// ACK_FREQUENCY.
    AckFrequency {
        /// Its sequence number.
        sequence: u64,
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// PING and IMMEDIATE_ACK: nothing to resend.
    Ping,
    /// PATH_CHALLENGE and PATH_RESPONSE: never resent as they are (RFC 9000 section 13.3).
    Path,
}

impl RecoveryToken {
    /// Makes one token of this and of `next`, if both are data of one stream that follow on each other.
    #[inline]
    pub(crate) fn absorb(&mut self, next: RecoveryToken) -> bool {
        if let (
            RecoveryToken::Stream { id, offset, len, fin },
            RecoveryToken::Stream { id: next_id, offset: next_offset, len: next_len, fin: next_fin },
        ) = (self, next)
            && *id == next_id
            && !*fin
            && offset.saturating_add(u64::from(*len)) == next_offset
            && let Some(sum) = len.checked_add(next_len)
        {
            (*len, *fin) = (sum, next_fin);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(id: u64, offset: u64, len: u32, fin: bool) -> RecoveryToken {
        RecoveryToken::Stream { id: StreamId::from_u64(id), offset, len, fin }
    }

    #[test]
    fn data_that_follows_on_data_is_told_of_at_once() {
        let mut token = data(4, 100, 20, false);
        assert!(token.absorb(data(4, 120, 5, false)));
        assert!(token.absorb(data(4, 125, 0, true)));
        assert_eq!(token, data(4, 100, 25, true));
    }

    #[test]
    fn other_tokens_stay_apart() {
        for (first, second) in [
            (data(4, 0, 20, false), data(8, 20, 5, false)),
            (data(4, 0, 20, false), data(4, 21, 5, false)),
            (data(4, 20, 20, false), data(4, 0, 20, false)),
            (data(4, 0, 20, true), data(4, 20, 0, true)),
            (data(4, 0, u32::MAX, false), data(4, u64::from(u32::MAX), 1, false)),
            (data(4, 0, 20, false), RecoveryToken::Ping),
            (RecoveryToken::Ping, RecoveryToken::Ping),
        ] {
            let mut token = first;
            assert!(!token.absorb(second), "{first:?} {second:?}");
            assert_eq!(token, first);
        }
    }
}
