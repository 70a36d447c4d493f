//! The decoders of `godwit-http3`. Each function panics if what they give does not hold together, and returns whether
//! the bytes were understood to their end.

use bytes::Bytes;
use godwit_http3::capsule::{Capsule, CapsuleReader, MAX_DATAGRAM, MAX_REASON};
use godwit_http3::frame::FrameReader;
use godwit_http3::qpack::{DecodeError, Decoder, Encoder, TableEncoder, field_size};
use godwit_http3::{Direction, Settings, Side, StreamId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

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

/// What a step of [`qpack`] is for, beside the stream's number in the low four bits.
pub mod step {
    /// Bytes of the encoder stream; otherwise a field section.
    pub const INSERTS: u8 = 0x80;
    /// The stream is given up.
    pub const CANCEL: u8 = 0x40;
}

/// Field sections and an encoder stream, as a program: the size of a section is that of its fields, it does not matter in what
/// pieces the encoder stream comes, and fields that are written again read the same.
pub fn qpack(bytes: &[u8]) -> bool {
    let (mut whole, mut pieces) =
        (Decoder::with_table(CAPACITY, BLOCKED), Decoder::with_table(CAPACITY, BLOCKED));
    let mut again = Again::new();
    let mut waiting: BTreeMap<StreamId, &[u8]> = BTreeMap::new();
    let steps = super::program::steps(bytes);
    for (what, bytes) in &steps {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, u64::from(what & 0x0f));
        if what & step::CANCEL != 0 {
            whole.cancel(id);
            pieces.cancel(id);
            waiting.remove(&id);
        } else if what & step::INSERTS != 0 {
            let at_once = tell(&mut whole, [*bytes].into_iter());
            let by_byte = tell(&mut pieces, bytes.chunks(1));
            assert_eq!(at_once, by_byte, "an encoder stream reads the same in pieces");
            if !at_once.0 {
                return false;
            }
            while let Some(ready) = whole.next_ready() {
                assert_eq!(pieces.next_ready(), Some(ready));
                let section = waiting.remove(&ready).expect("who is named has waited");
                let Ok(fields) = decoded(&mut whole, ready, section) else { return false };
                assert_eq!(decoded(&mut pieces, ready, section).as_ref(), Ok(&fields));
                again.write(&fields);
            }
        } else if let Entry::Vacant(place) = waiting.entry(id) {
            let fields = decoded(&mut whole, id, bytes);
            assert_eq!(decoded(&mut pieces, id, bytes), fields, "two that have had the same read the same");
            match fields {
                Ok(fields) => again.write(&fields),
                Err(DecodeError::Blocked) => drop(place.insert(bytes)),
                Err(_) => return false,
            }
            assert!(waiting.len() <= BLOCKED, "no more wait than may");
        }
    }
    !steps.is_empty() && waiting.is_empty()
}

/// Gives the decoder its encoder stream in these pieces: whether that is understood, and how long the instructions were.
fn tell<'a>(decoder: &mut Decoder, mut pieces: impl Iterator<Item = &'a [u8]>) -> (bool, Vec<usize>) {
    let mut instructions = Vec::new();
    let mut account = |len| {
        instructions.push(len);
        Ok(())
    };
    let is_understood = pieces.all(|piece| decoder.on_encoder_stream(piece, &mut account).is_ok());
    (is_understood, instructions)
}

const CAPACITY: u64 = 220;
const BLOCKED: usize = 3;

/// Name, value and whether it is sensitive.
type Field = (Vec<u8>, Vec<u8>, bool);

fn decoded(decoder: &mut Decoder, id: StreamId, bytes: &[u8]) -> Result<Vec<Field>, DecodeError> {
    let mut fields: Vec<Field> = Vec::new();
    let mut sink = |field: godwit_http3::qpack::Field<'_>| {
        fields.push((field.name.to_vec(), field.value.to_vec(), field.sensitive));
    };
    let size = decoder.decode(id, bytes, LIMIT, &mut sink)?;
    let counted: u64 = fields.iter().map(|(name, value, _)| field_size(name, value)).sum();
    assert!(size == counted && size <= LIMIT, "the size of a section is that of its fields");
    Ok(fields)
}

/// An encoder and a decoder of its own, between which everything arrives at once.
struct Again {
    encoder: TableEncoder,
    decoder: Decoder,
}

impl Again {
    fn new() -> Again {
        let mut encoder = TableEncoder::new(CAPACITY);
        encoder.on_settings(CAPACITY, BLOCKED as u64);
        Again { encoder, decoder: Decoder::with_table(CAPACITY, BLOCKED) }
    }

    /// A section that was read can be written, alone and with a table.
    fn write(&mut self, fields: &[Field]) {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
        let mut alone = Vec::new();
        let mut encoder = Encoder::new(&mut alone);
        for (name, value, sensitive) in fields {
            encoder.field(name, value, *sensitive);
        }
        assert_eq!(
            decoded(&mut Decoder::new(), id, &alone).as_deref(),
            Ok(fields),
            "what was read can be written"
        );

        let mut lines = Vec::new();
        let mut section = self.encoder.section(Some(id), &mut lines);
        for (name, value, sensitive) in fields {
            section.field(name, value, *sensitive);
        }
        let written = section.finish();
        self.encoder.on_sent(id, &written);
        let mut bytes = Vec::new();
        written.put_prefix(&mut bytes);
        bytes.extend(lines);
        self.decoder
            .on_encoder_stream(self.encoder.instructions(), |_| Ok(()))
            .expect("what ours say is understood");
        self.encoder.instructions().clear();
        assert_eq!(decoded(&mut self.decoder, id, &bytes).as_deref(), Ok(fields), "with a table, too");
        let mut answers = Vec::new();
        self.decoder.take_feedback(&mut answers);
        self.encoder.on_decoder_stream(&answers, |_| Ok(false)).expect("what ours answer is understood");
    }
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

/// Capsules in content: it does not matter in what pieces they come, and what is read can be written. The first byte is the
/// size of the pieces.
pub fn capsules(bytes: &[u8]) -> bool {
    let Some((piece, content)) = bytes.split_first() else { return false };
    let (capsules, over) = read_capsules(content, content.len().max(1));
    let pieces = read_capsules(content, usize::from(*piece).max(1));
    assert_eq!(pieces, (capsules.clone(), over), "capsules read the same in pieces");
    let mut written = Vec::new();
    for capsule in &capsules {
        capsule.encode(&mut written);
        match capsule {
            Capsule::Datagram(data) => assert!(data.len() <= MAX_DATAGRAM),
            Capsule::CloseSession { reason, .. } => assert!(reason.len() <= MAX_REASON),
            _ => {}
        }
    }
    assert_eq!(
        read_capsules(&written, written.len().max(1)),
        (capsules, Some(true)),
        "capsules can be written"
    );
    over == Some(true)
}

/// The capsules, and whether the content may end behind them; `None` if it is not as it has to be.
fn read_capsules(content: &[u8], piece: usize) -> (Vec<Capsule>, Option<bool>) {
    let mut reader = CapsuleReader::new();
    let mut capsules = Vec::new();
    for piece in content.chunks(piece) {
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            match reader.next(&mut input) {
                Ok(Some(capsule)) => capsules.push(capsule),
                Ok(None) => break,
                Err(_) => return (capsules, None),
            }
        }
        assert!(input.is_empty(), "a reader takes everything");
    }
    (capsules, Some(reader.is_between_capsules()))
}
