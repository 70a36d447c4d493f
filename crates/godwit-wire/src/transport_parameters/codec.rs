//! Reading and writing the parameters.

use super::{
    CibirEncoding, ParameterError, PreferredAddress, Timestamps, TransportParameters, VersionInformation,
    VersionList,
};
use crate::codec::{Malformed, VARINT_MAX, varint_len};
use crate::{ConnectionId, NoRoom, Reader, ResetToken, Side, Writer};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::time::Duration;

/// Parameter numbers as they stand on the wire.
mod id {
    pub(super) const ORIGINAL_DESTINATION_CID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CID: u64 = 0x10;
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    pub(super) const RESET_STREAM_AT: u64 = 0x1d;
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    pub(super) const CIBIR_ENCODING: u64 = 0x1000;
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    pub(super) const DISABLE_1RTT_ENCRYPTION: u64 = 0xbaad;
    pub(super) const ENABLE_TIMESTAMP: u64 = 0x7158;
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
}

/// The most streams of one kind that can exist (RFC 9000 section 4.6).
const MAX_STREAMS: u64 = 1 << 60;

impl From<Malformed> for ParameterError {
    fn from(Malformed: Malformed) -> Self {
        ParameterError { reason: "cut short, or of the wrong length" }
    }
}

const fn refused(reason: &'static str) -> ParameterError {
    ParameterError { reason }
}

pub(super) fn decode(bytes: &[u8], sender: Side) -> Result<TransportParameters, ParameterError> {
    let mut parameters = TransportParameters::default();
    let mut reader = Reader::new(bytes);
    let mut seen = 0_u64;
    while !reader.is_empty() {
        let number = reader.varint()?;
        let mut value = Reader::new(reader.prefixed()?);
        let Some(bit) = bit_of(number) else { continue };
        if seen & bit != 0 {
            return Err(refused("a parameter comes twice"));
        }
        seen |= bit;
        if sender == Side::Client && is_server_only(number) {
            return Err(refused("the client sent a parameter that only servers may send"));
        }
        decode_one(&mut parameters, number, &mut value, sender)?;
        if !value.is_empty() {
            return Err(refused("a parameter is longer than its value"));
        }
    }
    let cid_is_empty = parameters.initial_source_cid.is_some_and(|cid| cid.is_empty());
    if parameters.preferred_address.is_some() && cid_is_empty {
        return Err(refused("a preferred address from a server with a zero-length connection id"));
    }
    if parameters.min_ack_delay.is_some_and(|min| min > parameters.max_ack_delay) {
        return Err(refused("min_ack_delay is above max_ack_delay"));
    }
    Ok(parameters)
}

pub(super) fn version_information_of(
    bytes: &[u8],
    sender: Side,
) -> Result<Option<VersionInformation>, ParameterError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let (number, value) = (reader.varint()?, reader.prefixed()?);
        if number == id::VERSION_INFORMATION {
            return version_information(&mut Reader::new(value), sender).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn offers_no_encryption(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    while let (Ok(number), Ok(value)) = (reader.varint(), reader.prefixed()) {
        if number == id::DISABLE_1RTT_ENCRYPTION {
            return value.is_empty();
        }
    }
    false
}

/// The bit in which it is noted that the parameter was seen; `None` for unknown ones.
const fn bit_of(number: u64) -> Option<u64> {
    match number {
        ..=id::VERSION_INFORMATION | id::RESET_STREAM_AT | id::MAX_DATAGRAM_FRAME_SIZE => Some(1 << number),
        id::GREASE_QUIC_BIT => Some(1 << 63),
        id::MIN_ACK_DELAY => Some(1 << 62),
        id::DISABLE_1RTT_ENCRYPTION => Some(1 << 61),
        id::ENABLE_TIMESTAMP => Some(1 << 58),
        id::CIBIR_ENCODING => Some(1 << 57),
        _ => None,
    }
}

const fn is_server_only(number: u64) -> bool {
    matches!(
        number,
        id::ORIGINAL_DESTINATION_CID
            | id::STATELESS_RESET_TOKEN
            | id::PREFERRED_ADDRESS
            | id::RETRY_SOURCE_CID
    )
}

fn decode_one(
    to: &mut TransportParameters,
    number: u64,
    value: &mut Reader<'_>,
    sender: Side,
) -> Result<(), ParameterError> {
    match number {
        id::ORIGINAL_DESTINATION_CID => to.original_destination_cid = Some(cid(value)?),
        id::STATELESS_RESET_TOKEN => to.stateless_reset_token = Some(ResetToken(value.array()?)),
        id::DISABLE_ACTIVE_MIGRATION => to.disable_active_migration = true,
        id::PREFERRED_ADDRESS => to.preferred_address = Some(preferred_address(value)?),
        id::INITIAL_SOURCE_CID => to.initial_source_cid = Some(cid(value)?),
        id::RETRY_SOURCE_CID => to.retry_source_cid = Some(cid(value)?),
        id::VERSION_INFORMATION => to.version_information = Some(version_information(value, sender)?),
        id::CIBIR_ENCODING => to.cibir_encoding = Some(cibir_encoding(value)?),
        id::GREASE_QUIC_BIT => to.grease_quic_bit = true,
        id::RESET_STREAM_AT => to.reset_stream_at = true,
        id::DISABLE_1RTT_ENCRYPTION => to.disable_1rtt_encryption = true,
        _ => decode_number(to, number, value.varint()?)?,
    }
    Ok(())
}

fn decode_number(to: &mut TransportParameters, number: u64, value: u64) -> Result<(), ParameterError> {
    match number {
        id::MAX_IDLE_TIMEOUT => to.max_idle_timeout = Duration::from_millis(value),
        id::MAX_UDP_PAYLOAD_SIZE if value < 1200 => {
            return Err(refused("max_udp_payload_size is below 1200"));
        }
        id::MAX_UDP_PAYLOAD_SIZE => to.max_udp_payload_size = value,
        id::INITIAL_MAX_DATA => to.initial_max_data = value,
        id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => to.initial_max_stream_data_bidi_local = value,
        id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => to.initial_max_stream_data_bidi_remote = value,
        id::INITIAL_MAX_STREAM_DATA_UNI => to.initial_max_stream_data_uni = value,
        id::INITIAL_MAX_STREAMS_BIDI | id::INITIAL_MAX_STREAMS_UNI if value > MAX_STREAMS => {
            return Err(refused("a stream limit is above 2^60"));
        }
        id::INITIAL_MAX_STREAMS_BIDI => to.initial_max_streams_bidi = value,
        id::INITIAL_MAX_STREAMS_UNI => to.initial_max_streams_uni = value,
        id::ACK_DELAY_EXPONENT => match u8::try_from(value) {
            Ok(exponent @ ..=20) => to.ack_delay_exponent = exponent,
            _ => return Err(refused("ack_delay_exponent is above 20")),
        },
        id::MAX_ACK_DELAY if value >= 1 << 14 => return Err(refused("max_ack_delay is 2^14 or more")),
        id::MAX_ACK_DELAY => to.max_ack_delay = Duration::from_millis(value),
        id::ACTIVE_CID_LIMIT if value < 2 => {
            return Err(refused("active_connection_id_limit is below 2"));
        }
        id::ACTIVE_CID_LIMIT => to.active_cid_limit = value,
        id::MAX_DATAGRAM_FRAME_SIZE => to.max_datagram_frame_size = value,
        id::MIN_ACK_DELAY => to.min_ack_delay = Some(Duration::from_micros(value)),
        id::ENABLE_TIMESTAMP => {
            to.timestamps = Timestamps::from_number(value).ok_or(refused("enable_timestamp is above 3"))?;
        }
        _ => {}
    }
    Ok(())
}

fn cid(value: &mut Reader<'_>) -> Result<ConnectionId, ParameterError> {
    let bytes = value.bytes(value.remaining())?;
    ConnectionId::new(bytes).ok_or(refused("a connection id is longer than 20 bytes"))
}

fn cibir_encoding(value: &mut Reader<'_>) -> Result<CibirEncoding, ParameterError> {
    let (length, offset) = (u8::try_from(value.varint()?), u8::try_from(value.varint()?));
    match (length, offset) {
        (Ok(length @ 1..), Ok(offset)) if length.checked_add(offset).is_some() => {
            Ok(CibirEncoding { length, offset })
        }
        _ => Err(refused("cibir_encoding is of no bytes, or reaches beyond 255")),
    }
}

fn preferred_address(value: &mut Reader<'_>) -> Result<PreferredAddress, ParameterError> {
    let ipv4 = SocketAddrV4::new(Ipv4Addr::from(value.array::<4>()?), value.u16()?);
    let ipv6 = SocketAddrV6::new(Ipv6Addr::from(value.array::<16>()?), value.u16()?, 0, 0);
    let len = usize::from(value.u8()?);
    let cid = ConnectionId::new(value.bytes(len)?).filter(|cid| !cid.is_empty());
    Ok(PreferredAddress {
        ipv4: (ipv4 != NO_IPV4).then_some(ipv4),
        ipv6: (ipv6 != NO_IPV6).then_some(ipv6),
        cid: cid.ok_or(refused("the preferred address has a connection id of a forbidden length"))?,
        reset_token: ResetToken(value.array()?),
    })
}

/// What stands for "no address" on the wire (RFC 9000 section 18.2).
const NO_IPV4: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
const NO_IPV6: SocketAddrV6 = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);

fn version_information(value: &mut Reader<'_>, sender: Side) -> Result<VersionInformation, ParameterError> {
    let chosen = value.u32()?;
    let (versions, odd) = value.bytes(value.remaining())?.as_chunks::<4>();
    if !odd.is_empty() {
        return Err(refused("version_information has an odd length"));
    }
    let available = || versions.iter().map(|bytes| u32::from_be_bytes(*bytes));
    if chosen == 0 || available().any(|version| version == 0) {
        return Err(refused("version_information names version 0"));
    }
    if sender == Side::Client && !available().any(|version| version == chosen) {
        return Err(refused("version_information does not offer the version it chose"));
    }
    Ok(VersionInformation { chosen, available: VersionList::new(available()) })
}

pub(super) fn encode(from: &TransportParameters, writer: &mut Writer<'_>, grease: u64) -> Result<(), NoRoom> {
    encode_numbers(from, writer)?;
    let cids = [
        (id::ORIGINAL_DESTINATION_CID, &from.original_destination_cid),
        (id::INITIAL_SOURCE_CID, &from.initial_source_cid),
        (id::RETRY_SOURCE_CID, &from.retry_source_cid),
    ];
    for (number, cid) in cids {
        if let Some(cid) = cid {
            bytes(writer, number, cid.as_bytes())?;
        }
    }
    if let Some(token) = &from.stateless_reset_token {
        bytes(writer, id::STATELESS_RESET_TOKEN, &token.0)?;
    }
    if from.disable_active_migration {
        bytes(writer, id::DISABLE_ACTIVE_MIGRATION, &[])?;
    }
    if from.grease_quic_bit {
        bytes(writer, id::GREASE_QUIC_BIT, &[])?;
    }
    if from.reset_stream_at {
        bytes(writer, id::RESET_STREAM_AT, &[])?;
    }
    if from.disable_1rtt_encryption {
        bytes(writer, id::DISABLE_1RTT_ENCRYPTION, &[])?;
    }
    if let Some(delay) = from.min_ack_delay {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX).min(VARINT_MAX);
        writer.varint(id::MIN_ACK_DELAY)?;
        writer.varint(varint_len(micros) as u64)?;
        writer.varint(micros)?;
    }
    if let Some(CibirEncoding { length, offset }) = from.cibir_encoding {
        let (length, offset) = (u64::from(length), u64::from(offset));
        writer.varint(id::CIBIR_ENCODING)?;
        writer.varint(varint_len(length).saturating_add(varint_len(offset)) as u64)?;
        writer.varint(length)?;
        writer.varint(offset)?;
    }
    if let Some(address) = &from.preferred_address {
        encode_preferred_address(address, writer)?;
    }
    if let Some(versions) = &from.version_information {
        let available = versions.available.as_slice();
        writer.varint(id::VERSION_INFORMATION)?;
        writer.varint((available.len() as u64).saturating_add(1).saturating_mul(4))?;
        writer.u32(versions.chosen)?;
        available.iter().try_for_each(|version| writer.u32(*version))?;
    }
    encode_grease(writer, grease)
}

fn encode_numbers(from: &TransportParameters, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let unsent = TransportParameters::default();
    let numbers = |of: &TransportParameters| {
        [
            (id::MAX_IDLE_TIMEOUT, millis(of.max_idle_timeout)),
            (id::MAX_UDP_PAYLOAD_SIZE, of.max_udp_payload_size),
            (id::INITIAL_MAX_DATA, of.initial_max_data),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, of.initial_max_stream_data_bidi_local),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, of.initial_max_stream_data_bidi_remote),
            (id::INITIAL_MAX_STREAM_DATA_UNI, of.initial_max_stream_data_uni),
            (id::INITIAL_MAX_STREAMS_BIDI, of.initial_max_streams_bidi),
            (id::INITIAL_MAX_STREAMS_UNI, of.initial_max_streams_uni),
            (id::ACK_DELAY_EXPONENT, u64::from(of.ack_delay_exponent)),
            (id::MAX_ACK_DELAY, millis(of.max_ack_delay)),
            (id::ACTIVE_CID_LIMIT, of.active_cid_limit),
            (id::MAX_DATAGRAM_FRAME_SIZE, of.max_datagram_frame_size),
            (id::ENABLE_TIMESTAMP, of.timestamps.number()),
        ]
    };
    for ((number, value), (_, default)) in numbers(from).into_iter().zip(numbers(&unsent)) {
        if value != default {
            writer.varint(number)?;
            writer.varint(varint_len(value) as u64)?;
            writer.varint(value)?;
        }
    }
    Ok(())
}

/// Whole milliseconds; a time too long for the wire becomes the longest there is.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(VARINT_MAX)
}

fn bytes(writer: &mut Writer<'_>, number: u64, value: &[u8]) -> Result<(), NoRoom> {
    writer.varint(number)?;
    writer.prefixed(value)
}

fn encode_preferred_address(address: &PreferredAddress, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    const LEN_WITHOUT_CID: usize = 4 + 2 + 16 + 2 + 1 + 16;
    let (ipv4, ipv6) = (address.ipv4.unwrap_or(NO_IPV4), address.ipv6.unwrap_or(NO_IPV6));
    writer.varint(id::PREFERRED_ADDRESS)?;
    writer.varint(LEN_WITHOUT_CID.saturating_add(address.cid.len()) as u64)?;
    writer.bytes(&ipv4.ip().octets())?;
    writer.u16(ipv4.port())?;
    writer.bytes(&ipv6.ip().octets())?;
    writer.u16(ipv6.port())?;
    writer.u8(address.cid.len() as u8)?;
    writer.bytes(address.cid.as_bytes())?;
    writer.bytes(&address.reset_token.0)
}

/// Numbers of the form 31 * n + 27 are reserved to be ignored (RFC 9000 section 18.1).
fn encode_grease(writer: &mut Writer<'_>, grease: u64) -> Result<(), NoRoom> {
    const HIGHEST: u64 = (VARINT_MAX - 27) / 31;
    let number = (grease >> 8).min(HIGHEST).saturating_mul(31).saturating_add(27);
    let content = grease.to_le_bytes();
    let len = usize::from(grease as u8 & 0x7);
    bytes(writer, number, content.get(..len).unwrap_or_default())
}
