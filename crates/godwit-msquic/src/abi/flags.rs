//! The flags and modes that calls take and events carry.

use super::layout::{codes, flags};

flags! {
    /// How a stream is opened; also what an application answers when the peer has opened one.
    StreamOpenFlags(u32), "QUIC_STREAM_OPEN_FLAGS" {
        /// A stream for both directions, of which nothing else is known.
        NONE = 0, "QUIC_STREAM_OPEN_FLAG_NONE";
        /// The stream carries data from its opener only.
        UNIDIRECTIONAL = 0x1, "QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL";
        /// It may be, or has been, opened in 0-RTT packets.
        ZERO_RTT = 0x2, "QUIC_STREAM_OPEN_FLAG_0_RTT";
        /// The peer may open another stream in its place only once the application has closed it.
        DELAY_ID_FC_UPDATES = 0x4, "QUIC_STREAM_OPEN_FLAG_DELAY_ID_FC_UPDATES";
        /// Data is received into buffers that the application provides (preview).
        APP_OWNED_BUFFERS = 0x8, "QUIC_STREAM_OPEN_FLAG_APP_OWNED_BUFFERS";
    }
}

flags! {
    /// How a stream is started.
    StreamStartFlags(u32), "QUIC_STREAM_START_FLAGS" {
        /// The peer learns of it with the first data.
        NONE = 0, "QUIC_STREAM_START_FLAG_NONE";
        /// The peer is told at once, without data.
        IMMEDIATE = 0x1, "QUIC_STREAM_START_FLAG_IMMEDIATE";
        /// It fails where the peer allows no more streams now, in place of waiting.
        FAIL_BLOCKED = 0x2, "QUIC_STREAM_START_FLAG_FAIL_BLOCKED";
        /// A failure shuts the stream down.
        SHUTDOWN_ON_FAIL = 0x4, "QUIC_STREAM_START_FLAG_SHUTDOWN_ON_FAIL";
        /// There is an event when the peer comes to allow a stream that it did not allow when it was started.
        INDICATE_PEER_ACCEPT = 0x8, "QUIC_STREAM_START_FLAG_INDICATE_PEER_ACCEPT";
        /// It is done before other work of the connection.
        PRIORITY_WORK = 0x10, "QUIC_STREAM_START_FLAG_PRIORITY_WORK";
    }
}

flags! {
    /// How a stream is shut down.
    StreamShutdownFlags(u32), "QUIC_STREAM_SHUTDOWN_FLAGS" {
        /// Not at all.
        NONE = 0, "QUIC_STREAM_SHUTDOWN_FLAG_NONE";
        /// Sending ends behind what has been given; goes with neither abort, nor with `IMMEDIATE`.
        GRACEFUL = 0x1, "QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL";
        /// Sending ends at once (RESET_STREAM).
        ABORT_SEND = 0x2, "QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND";
        /// Receiving ends at once (STOP_SENDING).
        ABORT_RECEIVE = 0x4, "QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE";
        /// Both at once.
        ABORT = 0x6, "QUIC_STREAM_SHUTDOWN_FLAG_ABORT";
        /// The application is told that it is over without waiting for the peer; goes with both aborts, and nothing else.
        IMMEDIATE = 0x8, "QUIC_STREAM_SHUTDOWN_FLAG_IMMEDIATE";
        /// It is done within the call, whose callbacks may come within it, too.
        INLINE = 0x10, "QUIC_STREAM_SHUTDOWN_FLAG_INLINE";
    }
}

flags! {
    /// What is known of data, or of a datagram, that was received.
    ReceiveFlags(u32), "QUIC_RECEIVE_FLAGS" {
        /// Nothing else.
        NONE = 0, "QUIC_RECEIVE_FLAG_NONE";
        /// It came in a 0-RTT packet, and may have been sent again by a stranger.
        ZERO_RTT = 0x1, "QUIC_RECEIVE_FLAG_0_RTT";
        /// Nothing follows.
        FIN = 0x2, "QUIC_RECEIVE_FLAG_FIN";
    }
}

flags! {
    /// How data on a stream, or a datagram, is sent.
    SendFlags(u32), "QUIC_SEND_FLAGS" {
        /// As usual.
        NONE = 0, "QUIC_SEND_FLAG_NONE";
        /// 0-RTT packets may carry it.
        ALLOW_ZERO_RTT = 0x1, "QUIC_SEND_FLAG_ALLOW_0_RTT";
        /// The stream is started first.
        START = 0x2, "QUIC_SEND_FLAG_START";
        /// Sending on the stream ends behind it.
        FIN = 0x4, "QUIC_SEND_FLAG_FIN";
        /// A datagram that goes before others.
        DGRAM_PRIORITY = 0x8, "QUIC_SEND_FLAG_DGRAM_PRIORITY";
        /// More follows soon: wait for it.
        DELAY_SEND = 0x10, "QUIC_SEND_FLAG_DELAY_SEND";
        /// The stream is given up when some of it is lost.
        CANCEL_ON_LOSS = 0x20, "QUIC_SEND_FLAG_CANCEL_ON_LOSS";
        /// It is done before other work of the connection.
        PRIORITY_WORK = 0x40, "QUIC_SEND_FLAG_PRIORITY_WORK";
        /// A datagram that is dropped when it cannot be sent now.
        CANCEL_ON_BLOCKED = 0x80, "QUIC_SEND_FLAG_CANCEL_ON_BLOCKED";
    }
}

flags! {
    /// How a connection is shut down.
    ConnectionShutdownFlags(u32), "QUIC_CONNECTION_SHUTDOWN_FLAGS" {
        /// The peer is told.
        NONE = 0, "QUIC_CONNECTION_SHUTDOWN_FLAG_NONE";
        /// The peer is not told.
        SILENT = 0x1, "QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT";
    }
}

flags! {
    /// How a resumption ticket is sent.
    SendResumptionFlags(u32), "QUIC_SEND_RESUMPTION_FLAGS" {
        /// More may follow.
        NONE = 0, "QUIC_SEND_RESUMPTION_FLAG_NONE";
        /// It is the last one: the state of TLS is not needed any more.
        FINAL = 0x1, "QUIC_SEND_RESUMPTION_FLAG_FINAL";
    }
}

flags! {
    /// What a pool of connections does (preview).
    ConnectionPoolFlags(u32), "QUIC_CONNECTION_POOL_FLAGS" {
        /// Connections that were made are left when a later one fails.
        NONE = 0, "QUIC_CONNECTION_POOL_FLAG_NONE";
        /// They are closed when a later one fails.
        CLOSE_ON_FAILURE = 0x1, "QUIC_CONNECTION_POOL_FLAG_CLOSE_ON_FAILURE";
    }
}

codes! {
    /// What a server offers to clients that come back.
    ServerResumptionLevel(u8), "uint8_t" {
        /// Nothing.
        NO_RESUME = 0, "QUIC_SERVER_NO_RESUME";
        /// Resumption.
        RESUME_ONLY = 1, "QUIC_SERVER_RESUME_ONLY";
        /// Resumption with 0-RTT.
        RESUME_AND_ZERO_RTT = 2, "QUIC_SERVER_RESUME_AND_ZERORTT";
    }
}

codes! {
    /// Which of several streams is sent first.
    StreamSchedulingScheme(u32), "QUIC_STREAM_SCHEDULING_SCHEME" {
        /// The one that had data first, to its end.
        FIFO = 0, "QUIC_STREAM_SCHEDULING_SCHEME_FIFO";
        /// All in turn.
        ROUND_ROBIN = 1, "QUIC_STREAM_SCHEDULING_SCHEME_ROUND_ROBIN";
        /// How many there are.
        COUNT = 2, "QUIC_STREAM_SCHEDULING_SCHEME_COUNT";
    }
}

codes! {
    /// Congestion control, as the setting of that name holds it.
    CongestionControlAlgorithm(u16), "uint16_t" {
        /// CUBIC (RFC 9438).
        CUBIC = 0, "QUIC_CONGESTION_CONTROL_ALGORITHM_CUBIC";
        /// BBR (preview).
        BBR = 1, "QUIC_CONGESTION_CONTROL_ALGORITHM_BBR";
        /// How many there are, those of previews among them.
        MAX = 2, "QUIC_CONGESTION_CONTROL_ALGORITHM_MAX";
    }
}

codes! {
    /// What has become of a datagram.
    DatagramSendState(u32), "QUIC_DATAGRAM_SEND_STATE" {
        /// It was not sent yet.
        UNKNOWN = 0, "QUIC_DATAGRAM_SEND_UNKNOWN";
        /// It was sent; from here on its memory is the application's again.
        SENT = 1, "QUIC_DATAGRAM_SEND_SENT";
        /// It is probably lost.
        LOST_SUSPECT = 2, "QUIC_DATAGRAM_SEND_LOST_SUSPECT";
        /// It is lost, and forgotten.
        LOST_DISCARDED = 3, "QUIC_DATAGRAM_SEND_LOST_DISCARDED";
        /// It has arrived.
        ACKNOWLEDGED = 4, "QUIC_DATAGRAM_SEND_ACKNOWLEDGED";
        /// It has arrived after it was taken for lost.
        ACKNOWLEDGED_SPURIOUS = 5, "QUIC_DATAGRAM_SEND_ACKNOWLEDGED_SPURIOUS";
        /// It was given up before it was sent.
        CANCELED = 6, "QUIC_DATAGRAM_SEND_CANCELED";
    }
}

impl DatagramSendState {
    /// Whether no event about the datagram follows. In C: `QUIC_DATAGRAM_SEND_STATE_IS_FINAL`.
    pub const fn is_final(self) -> bool {
        self.0 >= Self::LOST_DISCARDED.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_put_together_and_strange_ones_are_seen() {
        let both = StreamShutdownFlags::ABORT_SEND | StreamShutdownFlags::ABORT_RECEIVE;
        assert_eq!(both, StreamShutdownFlags::ABORT);
        assert!(both.contains(StreamShutdownFlags::ABORT_SEND));
        assert!(!StreamShutdownFlags::ABORT_SEND.contains(both));
        assert_eq!(StreamShutdownFlags(0x1f).unknown(), 0);
        assert_eq!(StreamShutdownFlags(0x8000_0025).unknown(), 0x8000_0020);
    }

    #[test]
    fn a_datagram_that_is_suspected_lost_may_still_arrive() {
        let known = (0..7).map(DatagramSendState);
        let last: Vec<_> = known.filter(|state| state.is_final()).map(|state| state.0).collect();
        assert_eq!(last, [3, 4, 5, 6]);
    }
}
