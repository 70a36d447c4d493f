//! HTTP/3 frames on a stream (RFC 9114 section 7): headers, and payloads that arrive in any pieces.

use bytes::{Buf, BufMut, Bytes};
use godwit_wire::{Reader, varint_len};

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameType(pub u64);

impl FrameType {
    /// Content.
    pub const DATA: FrameType = FrameType(0x0);
    /// A field section.
    pub const HEADERS: FrameType = FrameType(0x1);
    /// A push is not wanted, or will not come.
    pub const CANCEL_PUSH: FrameType = FrameType(0x3);
    /// The sender's parameters.
    pub const SETTINGS: FrameType = FrameType(0x4);
    /// The request that a push will answer.
    pub const PUSH_PROMISE: FrameType = FrameType(0x5);
    /// The sender is shutting down.
    pub const GOAWAY: FrameType = FrameType(0x7);
    /// The origins for which the server answers on this connection (RFC 9412).
    pub const ORIGIN: FrameType = FrameType(0xc);
    /// How many pushes the client takes.
    pub const MAX_PUSH_ID: FrameType = FrameType(0xd);

    /// True for the types that HTTP/2 uses and HTTP/3 forbids (section 7.2.8).
    pub const fn is_forbidden(self) -> bool {
        matches!(self.0, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// The `n`-th of the numbers reserved to be ignored, for settings, frames and streams alike.
pub const fn reserved(n: u64) -> u64 {
    n.saturating_mul(0x1f).saturating_add(0x21)
}

/// Appends a variable-length integer. Values of 2^62 and more, which cannot be written, become 2^62 - 1.
pub fn put_varint(value: u64, out: &mut impl BufMut) {
    let value = value.min(godwit_wire::codec::VARINT_MAX);
    match varint_len(value) {
        1 => out.put_u8(value as u8),
        2 => out.put_u16(value as u16 | 0x4000),
        4 => out.put_u32(value as u32 | 0x8000_0000),
        _ => out.put_u64(value | 0xc000_0000_0000_0000),
    }
}

/// Bytes that [`put_header`] appends.
pub(crate) fn header_len(frame_type: FrameType, len: u64) -> usize {
    varint_len(frame_type.0).saturating_add(varint_len(len))
}

/// Appends the header of a frame whose payload has `len` bytes.
pub fn put_header(frame_type: FrameType, len: u64, out: &mut impl BufMut) {
    put_varint(frame_type.0, out);
    put_varint(len, out);
}

/// Appends a frame whose payload is one variable-length integer.
pub fn put_id_frame(frame_type: FrameType, id: u64, out: &mut impl BufMut) {
    put_header(frame_type, varint_len(id) as u64, out);
    put_varint(id, out);
}

/// A variable-length integer cut anywhere.
#[derive(Debug, Default)]
pub struct PartialVarint {
    bytes: [u8; 8],
    len: usize,
}

impl PartialVarint {
    /// Takes what it needs from the front of `input`; the value once it is complete.
    pub fn push(&mut self, input: &mut Bytes) -> Option<u64> {
        while input.has_remaining() {
            if let Some(slot) = self.bytes.get_mut(self.len) {
                *slot = input.get_u8();
                self.len = self.len.saturating_add(1);
            }
            if let Ok(value) = Reader::new(self.bytes.get(..self.len)?).varint() {
                self.len = 0;
                return Some(value);
            }
        }
        None
    }

    /// True if nothing of an integer has come yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The frame that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// Its type.
    pub frame_type: FrameType,
    /// The length of its payload.
    pub len: u64,
    /// Bytes of the payload not yet read.
    pub remaining: u64,
}

/// Takes frames off a stream that arrives in pieces.
///
/// Between frames, [`FrameReader::header`] reads the next header. After that one of
/// [`FrameReader::take`], [`FrameReader::skip`] and [`FrameReader::collect`] is called until it says that
/// the frame is over. Only `collect` holds bytes; whoever calls it has judged the length first.
#[derive(Debug, Default)]
pub struct FrameReader {
    partial: PartialVarint,
    frame_type: Option<FrameType>,
    current: Option<Current>,
    collected: Vec<u8>,
}

impl FrameReader {
    /// A reader at a frame's beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// The frame whose payload is being read.
    pub fn current(&self) -> Option<Current> {
        self.current
    }

    /// True if no frame has begun: the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.current.is_none() && self.frame_type.is_none() && self.partial.is_empty()
    }

    /// Whether the header that is being read may become one of this type.
    pub(crate) fn may_be(&self, frame_type: FrameType) -> bool {
        self.frame_type.is_none_or(|known| known == frame_type)
    }

    /// Bytes held by an incomplete [`FrameReader::collect`].
    pub fn collected_len(&self) -> usize {
        self.collected.len()
    }

    /// Reads the next frame's header; `None` if `input` ends before it does.
    pub fn header(&mut self, input: &mut Bytes) -> Option<Current> {
        let frame_type = match self.frame_type {
            Some(frame_type) => frame_type,
            None => *self.frame_type.insert(FrameType(self.partial.push(input)?)),
        };
        let len = self.partial.push(input)?;
        self.frame_type = None;
        self.current = Some(Current { frame_type, len, remaining: len });
        self.current
    }

    /// The next piece of the payload, of at most `max` bytes; `None` once the frame is over. Empty if
    /// `input` is.
    pub fn take(&mut self, input: &mut Bytes, max: usize) -> Option<Bytes> {
        let current = self.current.as_mut()?;
        if current.remaining == 0 {
            self.current = None;
            return None;
        }
        let len = usize::try_from(current.remaining).unwrap_or(usize::MAX).min(input.len()).min(max);
        current.remaining = current.remaining.saturating_sub(len as u64);
        Some(input.split_to(len))
    }

    /// Drops as much of the payload as has come and returns how much that was, and whether the frame is
    /// over.
    pub fn skip(&mut self, input: &mut Bytes) -> (u64, bool) {
        let skipped = self.take(input, usize::MAX).map_or(0, |bytes| bytes.len() as u64);
        let over = self.current.is_none_or(|current| current.remaining == 0);
        if over {
            self.current = None;
        }
        (skipped, over)
    }

    /// The whole payload, once all of it has come.
    pub fn collect(&mut self, input: &mut Bytes) -> Option<Bytes> {
        let piece = self.take(input, usize::MAX).unwrap_or_default();
        let whole = match self.current {
            Some(current) if current.remaining > 0 => {
                self.collected.extend_from_slice(&piece);
                return None;
            }
            _ if self.collected.is_empty() => piece,
            _ => {
                self.collected.extend_from_slice(&piece);
                Bytes::from(std::mem::take(&mut self.collected))
            }
        };
        self.current = None;
        Some(whole)
    }
}

/// The one variable-length integer that is the whole of `payload`.
pub fn parse_id(payload: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(payload);
    reader.varint().ok().filter(|_| reader.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_header(FrameType(frame_type), payload.len() as u64, &mut out);
        out.extend_from_slice(payload);
        out
    }

    /// All frames in `pieces`, read in the way that the frame's type modulo 3 says.
    fn read_all(pieces: &[&[u8]]) -> (Vec<(u64, Vec<u8>)>, bool) {
        let (mut reader, mut frames) = (FrameReader::new(), Vec::<(u64, Vec<u8>)>::new());
        for piece in pieces {
            let mut input = Bytes::copy_from_slice(piece);
            loop {
                let Some(current) = reader.current() else {
                    let Some(header) = reader.header(&mut input) else { break };
                    frames.push((header.frame_type.0, Vec::new()));
                    continue;
                };
                let (_, payload) = frames.last_mut().unwrap();
                let over = match current.frame_type.0 % 3 {
                    0 => match reader.take(&mut input, 2) {
                        Some(bytes) if bytes.is_empty() => false,
                        Some(bytes) => {
                            payload.extend_from_slice(&bytes);
                            true
                        }
                        None => true,
                    },
                    1 => match reader.collect(&mut input) {
                        Some(bytes) => {
                            *payload = bytes.to_vec();
                            true
                        }
                        None => false,
                    },
                    _ => reader.skip(&mut input).1,
                };
                if !over {
                    break;
                }
            }
            assert!(input.is_empty());
        }
        (frames, reader.is_between_frames())
    }

    #[test]
    fn frames_cut_at_every_byte() {
        let expected: Vec<(u64, Vec<u8>)> = vec![
            (0, b"content".to_vec()),
            (1, b"fields".to_vec()),
            (1, vec![]),
            (0, vec![]),
            (5, vec![]),
            (0x4001, vec![7; 70]),
            (reserved(1 << 40) / 3 * 3, b"x".to_vec()),
        ];
        let bytes: Vec<u8> = expected.iter().flat_map(|(kind, payload)| frame(*kind, payload)).collect();
        let normal: Vec<_> = expected
            .iter()
            .map(|(kind, payload)| (*kind, if kind % 3 == 2 { vec![] } else { payload.clone() }))
            .collect();
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(read_all(&[head, tail]), (normal.clone(), true), "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read_all(&single), (normal, true));
    }

    #[test]
    fn an_end_within_a_frame_is_noticed() {
        let bytes = frame(0x4001, b"abc");
        for cut in 0..=bytes.len() {
            let (_, between) = read_all(&[&bytes[..cut]]);
            assert_eq!(between, cut == 0 || cut == bytes.len(), "cut at {cut}");
        }
    }

    #[test]
    fn single_integers() {
        assert_eq!(parse_id(&[0x40, 0x05]), Some(5));
        assert_eq!(parse_id(&[0x40]), None);
        assert_eq!(parse_id(&[0x05, 0x00]), None);
        assert_eq!(parse_id(&[]), None);
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..100), size in 1_usize..9) {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(read_all(&pieces), read_all(&[&bytes]));
        }

        #[test]
        fn varints(value in 0..=godwit_wire::codec::VARINT_MAX, small in 0_u64..100_000) {
            for value in [value, small] {
                let mut out = Vec::new();
                put_varint(value, &mut out);
                prop_assert_eq!(out.len(), varint_len(value));
                prop_assert_eq!(parse_id(&out), Some(value));
            }
        }
    }
}
