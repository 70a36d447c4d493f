//! QUIC on the wire: varints, packet headers, frames and transport parameters of versions 1 and 2.
//!
//! Parsing borrows from the datagram, encoding writes into a slice; neither allocates. The crate knows
//! no keys, no time and no connection state: it says what the bytes are, not whether they are welcome.
//! (RFC 8999, RFC 9000 sections 12 and 16 to 19, RFC 9221, RFC 9369.)
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod cid;
pub mod codec;
pub mod constants;
mod error;
pub mod frame;
pub mod header;
pub mod packet_number;
mod stream_id;
pub mod transport_parameters;
pub mod version;

pub use cid::{ConnectionId, ResetToken};
pub use codec::{Malformed, NoRoom, Reader, Writer, varint_len};
pub use error::{TransportErrorCode, WireError};
pub use frame::Frame;
pub use stream_id::{Direction, Side, StreamId};
pub use transport_parameters::TransportParameters;
