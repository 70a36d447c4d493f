//! What is remembered of the streams' frames in a packet.

use crate::{Direction, StreamId};

/// A frame of the streams that is sent again if it is lost. DATA_BLOCKED, STREAM_DATA_BLOCKED and STREAMS_BLOCKED are
/// not: they only inform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamToken {
    /// STREAM data.
    Data {
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
    Reset {
        /// The stream.
        id: StreamId,
    },
    /// RESET_STREAM_AT.
    ResetAt {
        /// The stream.
        id: StreamId,
        /// The size up to which its data is still delivered: an application may lower it.
        reliable_size: u64,
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
}

impl StreamToken {
    /// Makes one token of this and of `next`, if both are data of one stream that follow on each other.
    #[inline]
    pub(super) fn absorb(&mut self, next: StreamToken) -> bool {
        if let (
            StreamToken::Data { id, offset, len, fin },
            StreamToken::Data { id: next_id, offset: next_offset, len: next_len, fin: next_fin },
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
