//! Transport parameters (RFC 9000 section 18, RFC 9221 section 3, RFC 9287 section 3, RFC 9368 section 3,
//! draft-ietf-quic-reliable-stream-reset section 3, draft-huitema-quic-ts section 3, and MsQuic's parameter for 1-RTT packets
//! without protection).
//!
//! A parameter that was not sent has the value that the RFC gives it by default, so
//! [`TransportParameters::default`] is what an empty list means. Values are checked while reading: what
//! [`TransportParameters::decode`] gives is within the RFC's ranges. That the connection ids are the ones
//! seen in the handshake is for the connection to compare.

mod codec;

#[cfg(test)]
mod tests;

use crate::{ConnectionId, NoRoom, ResetToken, Side, Writer};
use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

/// Everything an endpoint declares about itself during the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportParameters {
    /// The destination connection id of the client's first Initial packet. Servers only.
    pub original_destination_cid: Option<ConnectionId>,
    /// Idle timeout, in whole milliseconds; zero is none. Default zero.
    pub max_idle_timeout: Duration,
    /// The token that resets the connection whose id the handshake chose. Servers only.
    pub stateless_reset_token: Option<ResetToken>,
    /// Largest UDP payload accepted, in bytes, 1200 or more. Default 65527.
    pub max_udp_payload_size: u64,
    /// Bytes the receiver of the parameter may send on the whole connection. Default 0.
    pub initial_max_data: u64,
    /// The same for each bidirectional stream that the sender of the parameter opens. Default 0.
    pub initial_max_stream_data_bidi_local: u64,
    /// The same for each bidirectional stream that the receiver of the parameter opens. Default 0.
    pub initial_max_stream_data_bidi_remote: u64,
    /// The same for each unidirectional stream that the receiver of the parameter opens. Default 0.
    pub initial_max_stream_data_uni: u64,
    /// Bidirectional streams the receiver of the parameter may open, at most 2^60. Default 0.
    pub initial_max_streams_bidi: u64,
    /// Unidirectional streams the receiver of the parameter may open, at most 2^60. Default 0.
    pub initial_max_streams_uni: u64,
    /// ACK delays are in units of 2^this microseconds; at most 20. Default 3.
    pub ack_delay_exponent: u8,
    /// The sender of the parameter delays acknowledgements at most this long: whole milliseconds, below
    /// 2^14. Default 25 ms.
    pub max_ack_delay: Duration,
    /// The sender of the parameter does not support migration to its handshake address. Default false.
    pub disable_active_migration: bool,
    /// An address the server would rather be reached at. Servers only.
    pub preferred_address: Option<PreferredAddress>,
    /// Connection ids the sender of the parameter is willing to store, 2 or more. Default 2.
    pub active_cid_limit: u64,
    /// The source connection id of the sender's first Initial packet.
    pub initial_source_cid: Option<ConnectionId>,
    /// The source connection id of the Retry packet, if there was one. Servers only.
    pub retry_source_cid: Option<ConnectionId>,
    /// Largest DATAGRAM frame accepted, type and length included; 0 is none (RFC 9221). Default 0.
    pub max_datagram_frame_size: u64,
    /// The sender of the parameter accepts packets whose QUIC bit is 0 (RFC 9287). Default false.
    pub grease_quic_bit: bool,
    /// The sender of the parameter accepts RESET_STREAM_AT frames. Default false.
    pub reset_stream_at: bool,
    /// The sender of the parameter can be asked to acknowledge less often, and delays acknowledgements at least this
    /// long, in whole microseconds and at most `max_ack_delay` (draft-ietf-quic-ack-frequency, section 3).
    pub min_ack_delay: Option<Duration>,
    /// The sender of the parameter sends 1-RTT packets **without any protection**, and takes them so, if the other end says the
    /// same. No standard has it: the number is MsQuic's. Default false.
    pub disable_1rtt_encryption: bool,
    /// What the sender of the parameter does with TIMESTAMP frames (draft-huitema-quic-ts). Default nothing.
    pub timestamps: Timestamps,
    /// Where connection ids of both ends are to have an identifier that stays (draft-banks-quic-cibir). Default none.
    pub cibir_encoding: Option<CibirEncoding>,
    /// The version in use and those the sender could use (RFC 9368).
    pub version_information: Option<VersionInformation>,
}

impl Default for TransportParameters {
    fn default() -> Self {
        TransportParameters {
            original_destination_cid: None,
            max_idle_timeout: Duration::ZERO,
            stateless_reset_token: None,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: crate::constants::DEFAULT_ACK_DELAY_EXPONENT,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            preferred_address: None,
            active_cid_limit: 2,
            initial_source_cid: None,
            retry_source_cid: None,
            max_datagram_frame_size: 0,
            grease_quic_bit: false,
            reset_stream_at: false,
            min_ack_delay: None,
            disable_1rtt_encryption: false,
            timestamps: Timestamps::default(),
            cibir_encoding: None,
            version_information: None,
        }
    }
}

impl TransportParameters {
    /// No encoding is longer than this, the reserved parameter included.
    pub const MAX_LEN: usize = 400;

    /// Reads the parameters that `sender` sent. Those with unknown numbers are skipped.
    ///
    /// # Errors
    ///
    /// A connection error TRANSPORT_PARAMETER_ERROR: something cut short or out of range, a known
    /// parameter twice, or one from the client that only servers may send.
    pub fn decode(bytes: &[u8], sender: Side) -> Result<Self, ParameterError> {
        codec::decode(bytes, sender)
    }

    /// What the parameters that `sender` sent say of versions (RFC 9368 section 3), whatever the others say: for whoever
    /// has to choose a version before it reads them all.
    ///
    /// # Errors
    ///
    /// Where [`TransportParameters::decode`] finds something wrong with that parameter, or cannot get to it.
    pub fn version_information_of(
        bytes: &[u8],
        sender: Side,
    ) -> Result<Option<VersionInformation>, ParameterError> {
        codec::version_information_of(bytes, sender)
    }

    /// Whether encoded parameters have [`TransportParameters::disable_1rtt_encryption`] among them, whatever the
    /// others say: for whoever decides before the connection reads them. False where they cannot be read.
    pub fn offers_no_encryption(bytes: &[u8]) -> bool {
        codec::offers_no_encryption(bytes)
    }

    /// Writes the parameters that differ from their defaults, and one with a reserved number, to be
    /// ignored, whose number and content follow from `grease` (RFC 9000 section 18.1). If they do not
    /// fit, or if a value is out of the RFC's range for numbers, the writer is left as it was.
    pub fn encode(&self, writer: &mut Writer<'_>, grease: u64) -> Result<(), NoRoom> {
        let start = writer.len();
        codec::encode(self, writer, grease).inspect_err(|NoRoom| writer.truncate(start))
    }
}

/// A server's preferred address (RFC 9000 section 9.6), with the connection id to use there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreferredAddress {
    /// The IPv4 address, if there is one. Address and port of zero on the wire are none.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address, if there is one. Flow label and scope are not transmitted.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection id with sequence number 1; not empty.
    pub cid: ConnectionId,
    /// Its stateless reset token.
    pub reset_token: ResetToken,
}

/// The version_information parameter (RFC 9368 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version the connection uses; never 0.
    pub chosen: u32,
    /// The versions the sender could use.
    pub available: VersionList,
}

/// What an endpoint does with TIMESTAMP frames (draft-huitema-quic-ts, section 3). Neither is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// It would like to receive them (1).
    pub receive: bool,
    /// It is able to send them (2).
    pub send: bool,
}

impl Timestamps {
    /// As the parameter's number says it.
    pub(crate) const fn from_number(number: u64) -> Option<Self> {
        match number {
            0..=3 => Some(Timestamps { receive: number & 1 != 0, send: number & 2 != 0 }),
            _ => None,
        }
    }

    /// The number that says it in the parameter.
    pub const fn number(self) -> u64 {
        self.receive as u64 | (self.send as u64) << 1
    }
}

/// Where an identifier stands in connection ids by which datagrams for several servers with one port are told apart
/// (draft-banks-quic-cibir). Length and offset together are at most 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CibirEncoding {
    /// Its length in bytes; not 0.
    pub length: u8,
    /// The bytes in front of it.
    pub offset: u8,
}

/// Up to 16 versions in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VersionList {
    len: u8,
    versions: [u32; Self::CAPACITY],
}

impl VersionList {
    /// The most versions kept.
    pub const CAPACITY: usize = 16;

    /// The first 16 of `versions`; the rest is forgotten.
    pub fn new(versions: impl IntoIterator<Item = u32>) -> Self {
        let mut list = VersionList::default();
        for (slot, version) in list.versions.iter_mut().zip(versions) {
            *slot = version;
            list.len = list.len.saturating_add(1);
        }
        list
    }

    /// The versions.
    pub fn as_slice(&self) -> &[u32] {
        self.versions.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Transport parameters that cannot be accepted: a connection error TRANSPORT_PARAMETER_ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterError {
    /// What is wrong, for people.
    pub reason: &'static str,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transport parameters: {}", self.reason)
    }
}

impl std::error::Error for ParameterError {}
