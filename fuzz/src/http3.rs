//! The decoders of `godwit-http3`. Each function panics if what they give does not hold together, and returns whether
//! the bytes were understood to their end.

use bytes::Bytes;
use godwit_http3::Settings;
use godwit_http3::frame::FrameReader;
use godwit_http3::qpack::{Decoder, Encoder, field_size};

/// What fields of a section may come to.
const LIMIT: u64 = 65_536;

/// Frames on a stream: it does not matter in what pieces they come. The first byte is the size of the pieces.
pub fn frames(bytes: &[u8]) -> bool {
    let Some((piece, stream)) = bytes.split_first() else { return false };
    let whole = read(stream, stream.len().max(1));
    assert_eq!(read(stream, usize::from(*piece).max(1)), whole, "frames read the same in pieces");
    whole.1
}

/// The types and payloads of the frames, and whether the stream may end behind them.
fn read(stream: &[u8], piece: usize) -> (Vec<(u64, Bytes)>, bool) {
    let mut reader = FrameReader::new();
    let mut frames = Vec::new();
    for piece in stream.chunks(piece) {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(current) = reader.current().or_else(|| reader.header(&mut input)) {
            assert!(current.remaining <= current.len);
            let Some(payload) = reader.collect(&mut input) else { break };
            assert_eq!(payload.len() as u64, current.len, "a payload has the length that was announced");
            frames.push((current.frame_type.0, payload));
        }
        assert!(input.is_empty(), "a reader takes everything");
    }
    (frames, reader.is_between_frames())
}

/// A field section: its size is that of its fields, and fields that are written again read the same.
pub fn qpack(bytes: &[u8]) -> bool {
    let Some(fields) = decoded(bytes) else { return false };
    let mut section = Vec::new();
    let mut encoder = Encoder::new(&mut section);
    for (name, value, sensitive) in &fields {
        encoder.field(name, value, *sensitive);
    }
    assert_eq!(decoded(&section), Some(fields), "a section that was read can be written");
    true
}

/// Name, value and whether it is sensitive.
type Field = (Vec<u8>, Vec<u8>, bool);

fn decoded(bytes: &[u8]) -> Option<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::new();
    let mut sink = |field: godwit_http3::qpack::Field<'_>| {
        fields.push((field.name.to_vec(), field.value.to_vec(), field.sensitive));
    };
    let Ok(size) = Decoder::new().decode(bytes, LIMIT, &mut sink) else { return None };
    let counted: u64 = fields.iter().map(|(name, value, _)| field_size(name, value)).sum();
    assert!(size == counted && size <= LIMIT, "the size of a section is that of its fields");
    Some(fields)
}

/// The payload of a SETTINGS frame: what is understood can be written and reads the same again.
pub fn settings(bytes: &[u8]) -> bool {
    let Ok(settings) = Settings::decode(bytes) else { return false };
    let mut written = Vec::new();
    settings.encode(false, &mut written);
    let mut input = Bytes::from(written);
    let mut reader = FrameReader::new();
    let header = reader.header(&mut input).expect("a frame begins with its header");
    let payload = reader.collect(&mut input).expect("the frame is whole");
    assert_eq!(header.len, payload.len() as u64);
    assert_eq!(Settings::decode(&payload), Ok(settings), "settings read the same again");
    true
}
