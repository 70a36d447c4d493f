//! How many bytes a handshake takes.

/// Bytes of TLS messages in CRYPTO frames of the handshake (RFC 9001 section 4.1.3), each counted once: Initial packets have the
/// two Hello messages, and Handshake packets all behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HandshakeBytes {
    /// Sent in Initial packets.
    pub initial_sent: u64,
    /// Received in Initial packets.
    pub initial_received: u64,
    /// Sent in Handshake packets.
    pub handshake_sent: u64,
    /// Received in Handshake packets.
    pub handshake_received: u64,
}
