//! Figures that RFC 9000 fixes for every endpoint, each once.

pub use crate::codec::VARINT_MAX;

/// The largest UDP payload, in bytes, that every path must carry (RFC 9000 section 14): where the search for a path's
/// MTU begins, and the size to which datagrams are expanded that validate a path (section 8.2.1).
pub const MIN_DATAGRAM: usize = 1200;

/// The least size in bytes of a datagram with an Initial packet that must be expanded (RFC 9000 section 14.1).
pub const MIN_INITIAL_DATAGRAM: usize = MIN_DATAGRAM;

/// The exponent of ACK delays unless the transport parameter says otherwise (RFC 9000 section 18.2).
pub const DEFAULT_ACK_DELAY_EXPONENT: u8 = 3;

/// Bytes of the longest packet number (RFC 9000 section 17.1).
pub const MAX_PACKET_NUMBER_LEN: usize = 4;

/// Bytes of a stateless reset token, with which a datagram ends (RFC 9000 section 10.3).
pub const RESET_TOKEN_LEN: usize = 16;
