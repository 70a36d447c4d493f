//! Capsules (RFC 9297 section 3): what is said in the content of an extended CONNECT exchange, beside datagrams.
//!
//! A capsule has the layout of an HTTP/3 frame, type, length and value, and comes in any pieces. Only capsules that are known
//! here are held until they are whole, and only as long as they may be; all others are passed over as they come.

use crate::frame::{self, FrameReader, FrameType};
use bytes::{Buf, BufMut, Bytes};
use std::fmt;

/// The type of a DATAGRAM capsule (RFC 9297 section 3.5).
const DATAGRAM: u64 = 0x0;
/// Those of WebTransport (draft-ietf-webtrans-http3).
const CLOSE_SESSION: u64 = 0x2843;
const DRAIN_SESSION: u64 = 0x78ae;

/// Bytes that the reason of [`Capsule::CloseSession`] has at most.
pub const MAX_REASON: usize = 1024;

/// The largest datagram that a capsule may carry, in bytes: what UDP could.
pub const MAX_DATAGRAM: usize = 65_535;

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capsule {
    /// A datagram on its way as part of the stream, which loses nothing.
    Datagram(Bytes),
    /// A WebTransport session ends.
    CloseSession {
        /// The application's error code.
        code: u32,
        /// For people; at most [`MAX_REASON`] bytes.
        reason: String,
    },
    /// A WebTransport session is to end soon: nothing new should be begun in it.
    DrainSession,
}

/// A capsule that breaks the rules; the text says which. It makes the message malformed (RFC 9297 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapsuleError(&'static str);

impl fmt::Display for CapsuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for CapsuleError {}

impl Capsule {
    /// Appends it. A reason that is too long is cut where a character ends.
    pub fn encode(&self, out: &mut impl BufMut) {
        match self {
            Capsule::Datagram(data) => {
                frame::put_header(FrameType(DATAGRAM), data.len() as u64, out);
                out.put_slice(data);
            }
            Capsule::CloseSession { code, reason } => {
                let reason =
                    reason.as_bytes().get(..reason.floor_char_boundary(MAX_REASON)).unwrap_or_default();
                frame::put_header(FrameType(CLOSE_SESSION), (reason.len() as u64).saturating_add(4), out);
                out.put_u32(*code);
                out.put_slice(reason);
            }
            Capsule::DrainSession => frame::put_header(FrameType(DRAIN_SESSION), 0, out),
        }
    }

    /// The same, by itself.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(16);
        self.encode(&mut out);
        out.into()
    }

    /// Reads what a capsule of a known type carries.
    fn decode(capsule_type: u64, mut value: Bytes) -> Result<Self, CapsuleError> {
        match capsule_type {
            DATAGRAM => Ok(Capsule::Datagram(value)),
            CLOSE_SESSION => {
                let code = value.try_get_u32().map_err(|_| CapsuleError("a session's end without a code"))?;
                let reason = std::str::from_utf8(&value)
                    .map_err(|_| CapsuleError("the reason of a session's end is not UTF-8"))?;
                Ok(Capsule::CloseSession { code, reason: reason.to_owned() })
            }
            _ if value.is_empty() => Ok(Capsule::DrainSession),
            _ => Err(CapsuleError("a capsule with a value that has none")),
        }
    }
}

/// How long the value of a capsule may be that is held; `None` for those that are passed over.
fn longest(capsule_type: u64) -> Option<u64> {
    match capsule_type {
        DATAGRAM => Some(MAX_DATAGRAM as u64),
        CLOSE_SESSION => Some(const { MAX_REASON as u64 + 4 }),
        DRAIN_SESSION => Some(0),
        _ => None,
    }
}

/// Takes capsules off content that comes in pieces.
#[derive(Debug, Default)]
pub struct CapsuleReader(FrameReader);

impl CapsuleReader {
    /// A reader at the beginning of the content.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next capsule that is known, from the front of `input`; `None` once all of that is taken.
    ///
    /// # Errors
    /// If one is not as it has to be. Nothing can be read behind it.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Capsule>, CapsuleError> {
        loop {
            let Some(capsule) = self.0.current().or_else(|| self.0.header(input)) else { return Ok(None) };
            match longest(capsule.frame_type.0) {
                Some(longest) if capsule.len > longest => {
                    return Err(CapsuleError("a capsule is longer than it may be"));
                }
                Some(_) => {
                    let Some(value) = self.0.collect(input) else { return Ok(None) };
                    return Capsule::decode(capsule.frame_type.0, value).map(Some);
                }
                None => {
                    if !self.0.skip(input).1 {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// True if no capsule has begun: the content may end here.
    pub fn is_between_capsules(&self) -> bool {
        self.0.is_between_frames()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> (Vec<Capsule>, Result<bool, CapsuleError>) {
        let mut reader = CapsuleReader::new();
        let mut capsules = Vec::new();
        for piece in bytes.chunks(piece) {
            let mut input = Bytes::copy_from_slice(piece);
            loop {
                match reader.next(&mut input) {
                    Ok(Some(capsule)) => capsules.push(capsule),
                    Ok(None) => break,
                    Err(error) => return (capsules, Err(error)),
                }
            }
            assert!(input.is_empty());
        }
        (capsules, Ok(reader.is_between_capsules()))
    }

    #[test]
    fn capsules_read_as_they_were_written_in_any_pieces() {
        let capsules = [
            Capsule::Datagram(Bytes::from_static(b"hello")),
            Capsule::DrainSession,
            Capsule::Datagram(Bytes::new()),
            Capsule::CloseSession { code: 0xdead_beef, reason: "that was all".to_owned() },
        ];
        let mut bytes = Vec::new();
        for capsule in &capsules {
            capsule.encode(&mut bytes);
            // Between any two, one that nobody knows.
            frame::put_header(FrameType(frame::reserved(7)), 3, &mut bytes);
            bytes.extend_from_slice(b"abc");
        }
        for piece in [1, 2, 7, bytes.len()] {
            assert_eq!(read(&bytes, piece), (capsules.to_vec(), Ok(true)), "{piece}");
        }
        assert_eq!(read(&bytes[..bytes.len() - 1], 5).1, Ok(false), "cut");
    }

    #[test]
    fn what_is_not_as_it_has_to_be_is_an_error() {
        let capsule = |capsule_type, value: &[u8]| {
            let mut bytes = Vec::new();
            frame::put_header(FrameType(capsule_type), value.len() as u64, &mut bytes);
            bytes.extend_from_slice(value);
            read(&bytes, 3).1
        };
        assert!(capsule(CLOSE_SESSION, &[0, 0, 1]).is_err(), "no code");
        assert!(capsule(CLOSE_SESSION, &[0, 0, 0, 1, 0xff]).is_err(), "not UTF-8");
        assert!(capsule(CLOSE_SESSION, &[b'a'; MAX_REASON + 5]).is_err(), "too long");
        assert_eq!(capsule(CLOSE_SESSION, &[b'a'; MAX_REASON + 4]), Ok(true));
        assert!(capsule(DRAIN_SESSION, &[0]).is_err(), "a value");
        assert!(capsule(DATAGRAM, &vec![0; MAX_DATAGRAM + 1]).is_err(), "too long");
        assert_eq!(capsule(0x1234, &vec![0; 100_000]), Ok(true), "nobody holds what nobody knows");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = format!("a{}", "ä".repeat(MAX_REASON));
        let mut bytes = Capsule::CloseSession { code: 1, reason }.to_bytes();
        let Ok(Some(Capsule::CloseSession { reason, .. })) = CapsuleReader::new().next(&mut bytes) else {
            panic!("it reads");
        };
        assert_eq!(reason.len(), MAX_REASON - 1);
    }
}
