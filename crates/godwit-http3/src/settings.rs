//! The SETTINGS frame (RFC 9114 section 7.2.4; RFC 9204 section 5; RFC 9220; RFC 9297; draft-ietf-webtrans-http3).

use crate::error::{Error, ErrorCode};
use crate::frame::{self, FrameType};
use bytes::BufMut;
use godwit_wire::Reader;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;
const H3_DATAGRAM: u64 = 0x33;
/// The same before it was an RFC (draft-ietf-masque-h3-datagram-04).
const H3_DATAGRAM_DRAFT04: u64 = 0xffd277;
/// Support for WebTransport, by the draft that has it so.
const ENABLE_WEBTRANSPORT_DRAFT02: u64 = 0x2b603742;
const WEBTRANSPORT_MAX_SESSIONS_DRAFT07: u64 = 0xc671706a;
const WT_MAX_SESSIONS_DRAFT13: u64 = 0x14e9cd29;

/// The most settings read from one frame.
const MAX_COUNT: usize = 64;

/// The longest SETTINGS frame accepted, in bytes: 64 settings at their longest.
pub(crate) const MAX_FRAME_LEN: u64 = 16 * MAX_COUNT as u64;

/// One side's settings. The default is what holds until they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The largest field section its sender takes; `None` is unlimited.
    pub max_field_section_size: Option<u64>,
    /// The capacity of the dynamic table its sender's decoder has, in bytes.
    pub qpack_max_table_capacity: u64,
    /// How many streams its sender's decoder lets wait for the dynamic table.
    pub qpack_blocked_streams: u64,
    /// Its sender takes extended CONNECT requests (RFC 9220).
    pub enable_connect_protocol: bool,
    /// Its sender takes HTTP datagrams (RFC 9297).
    pub h3_datagram: bool,
    /// How many WebTransport sessions its sender takes at once; 0 if it has none of it. Drafts that say only whether it does
    /// mean 1.
    pub webtransport_max_sessions: u64,
}

impl Settings {
    /// Reads the payload of a SETTINGS frame.
    pub fn decode(payload: &[u8]) -> Result<Settings, Error> {
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let (Ok(identifier), Ok(value)) = (reader.varint(), reader.varint()) else {
                return Err(Error::new(ErrorCode::H3_FRAME_ERROR, "a SETTINGS frame ends within a setting"));
            };
            if seen.contains(&identifier) {
                return Err(Error::new(ErrorCode::H3_SETTINGS_ERROR, "a setting was sent twice"));
            }
            if seen.len() >= MAX_COUNT {
                return Err(Error::new(ErrorCode::H3_EXCESSIVE_LOAD, "too many settings"));
            }
            seen.push(identifier);
            settings.set(identifier, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, identifier: u64, value: u64) -> Result<(), Error> {
        match identifier {
            QPACK_MAX_TABLE_CAPACITY => self.qpack_max_table_capacity = value,
            MAX_FIELD_SECTION_SIZE => self.max_field_section_size = Some(value),
            QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = flag(value)?,
            H3_DATAGRAM | H3_DATAGRAM_DRAFT04 => self.h3_datagram |= flag(value)?,
            ENABLE_WEBTRANSPORT_DRAFT02 => {
                let sessions = u64::from(flag(value)?);
                self.webtransport_max_sessions = self.webtransport_max_sessions.max(sessions);
            }
            WEBTRANSPORT_MAX_SESSIONS_DRAFT07 | WT_MAX_SESSIONS_DRAFT13 => {
                self.webtransport_max_sessions = self.webtransport_max_sessions.max(value);
            }
            0x0 | 0x2 | 0x3 | 0x4 | 0x5 => {
                return Err(Error::new(ErrorCode::H3_SETTINGS_ERROR, "a setting that only HTTP/2 has"));
            }
            // Unknown and reserved settings mean nothing.
            _ => {}
        }
        Ok(())
    }

    /// Appends a SETTINGS frame; with one reserved setting if `grease` is set.
    pub fn encode(&self, grease: bool, out: &mut impl BufMut) {
        let payload = self.payload(grease);
        frame::put_header(FrameType::SETTINGS, payload.len() as u64, out);
        out.put_slice(&payload);
    }

    /// What [`Settings::decode`] reads, to be kept for another connection to the same server.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.payload(false)
    }

    fn payload(&self, grease: bool) -> Vec<u8> {
        let mut payload = Vec::with_capacity(32);
        let mut put = |identifier, value| {
            frame::put_varint(identifier, &mut payload);
            frame::put_varint(value, &mut payload);
        };
        // Settings at their initial value need not be sent.
        for (identifier, value) in [
            (QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity),
            (QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams),
            (ENABLE_CONNECT_PROTOCOL, u64::from(self.enable_connect_protocol)),
            (H3_DATAGRAM, u64::from(self.h3_datagram)),
            (ENABLE_WEBTRANSPORT_DRAFT02, self.webtransport_max_sessions.min(1)),
            (WEBTRANSPORT_MAX_SESSIONS_DRAFT07, self.webtransport_max_sessions),
            (WT_MAX_SESSIONS_DRAFT13, self.webtransport_max_sessions),
        ] {
            if value > 0 {
                put(identifier, value);
            }
        }
        if let Some(size) = self.max_field_section_size {
            put(MAX_FIELD_SECTION_SIZE, size);
        }
        if grease {
            put(frame::reserved(1), 0);
        }
        payload
    }

    /// Whether a server that has taken 0-RTT data keeps to what it had told before, by which the client has acted (RFC 9114
    /// section 7.2.4.2, RFC 9204 section 3.2.3).
    pub(crate) fn keep_to(&self, told: &Settings) -> Result<(), Error> {
        let size = |settings: &Settings| settings.max_field_section_size.unwrap_or(u64::MAX);
        let table = told.qpack_max_table_capacity;
        if table > 0 && self.qpack_max_table_capacity != table {
            let reason = "another capacity of the QPACK table than 0-RTT requests were sent under";
            return Err(Error::new(ErrorCode::QPACK_DECODER_STREAM_ERROR, reason));
        }
        let reduced = size(self) < size(told)
            || self.qpack_blocked_streams < told.qpack_blocked_streams
            || (told.enable_connect_protocol && !self.enable_connect_protocol)
            || (told.h3_datagram && !self.h3_datagram);
        if reduced {
            let reason = "settings that permit less than those under which 0-RTT requests were sent";
            return Err(Error::new(ErrorCode::H3_SETTINGS_ERROR, reason));
        }
        Ok(())
    }
}

fn flag(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::new(ErrorCode::H3_SETTINGS_ERROR, "a setting that is 0 or 1 has another value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn codes(payload: &[u8]) -> Result<Settings, ErrorCode> {
        Settings::decode(payload).map_err(|error| error.code)
    }

    #[test]
    fn bad_settings() {
        for identifier in [0, 2, 3, 4, 5] {
            assert_eq!(codes(&[identifier, 0]), Err(ErrorCode::H3_SETTINGS_ERROR), "{identifier:#x}");
        }
        assert_eq!(codes(&[6, 0, 6, 0]), Err(ErrorCode::H3_SETTINGS_ERROR));
        assert_eq!(codes(&[0x21, 0, 0x21, 0]), Err(ErrorCode::H3_SETTINGS_ERROR));
        assert_eq!(codes(&[8, 2]), Err(ErrorCode::H3_SETTINGS_ERROR));
        assert_eq!(codes(&[0x33, 2]), Err(ErrorCode::H3_SETTINGS_ERROR));
        assert_eq!(codes(&[6]), Err(ErrorCode::H3_FRAME_ERROR));
        assert_eq!(codes(&[6, 0x40]), Err(ErrorCode::H3_FRAME_ERROR));
        assert_eq!(codes(&[]), Ok(Settings::default()));
        // Drafts say it in different ways.
        let sessions = |bytes| codes(bytes).map(|settings| settings.webtransport_max_sessions);
        assert_eq!(sessions(&[0xab, 0x60, 0x37, 0x42, 1]), Ok(1));
        assert_eq!(sessions(&[0xab, 0x60, 0x37, 0x42, 1, 0xc0, 0, 0, 0, 0xc6, 0x71, 0x70, 0x6a, 5]), Ok(5));
        assert_eq!(sessions(&[0x94, 0xe9, 0xcd, 0x29, 7, 0xab, 0x60, 0x37, 0x42, 1]), Ok(7));
        assert_eq!(sessions(&[0xab, 0x60, 0x37, 0x42, 2]), Err(ErrorCode::H3_SETTINGS_ERROR));
        let many: Vec<u8> = (0..100).flat_map(|n: u8| [0x40, 100 + n, 0]).collect();
        assert_eq!(codes(&many), Err(ErrorCode::H3_EXCESSIVE_LOAD));
    }

    proptest! {
        #[test]
        fn round_trip(size in prop::option::of(0..1_u64 << 62), table in 0_u64..1 << 30, blocked in 0_u64..200, sessions in 0..1_u64 << 62, flags in any::<[bool; 3]>()) {
            let settings = Settings {
                max_field_section_size: size,
                qpack_max_table_capacity: table,
                qpack_blocked_streams: blocked,
                enable_connect_protocol: flags[0],
                h3_datagram: flags[1],
                webtransport_max_sessions: sessions,
            };
            let mut out = Vec::new();
            settings.encode(flags[2], &mut out);
            prop_assert_eq!(usize::from(out[1]), out[2..].len());
            prop_assert_eq!(Settings::decode(&out[2..]), Ok(settings));
        }
    }
}
