#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod errors;
mod examples;
mod together;

use super::*;
use crate::error::Error;
use godwit_wire::{Direction, Side, StreamId};
use proptest::prelude::*;

type Owned = (Vec<u8>, Vec<u8>, bool);

const STREAM: StreamId = StreamId::new(Side::Client, Direction::Bidirectional, 0);

/// Gives the decoder a piece of the encoder stream; how many instructions that completes.
fn tell_decoder(decoder: &mut Decoder, input: &[u8]) -> Result<u32, Error> {
    let mut count = 0;
    let result = decoder.on_encoder_stream(input, |len| {
        assert!(len > 0);
        count += 1;
        Ok(())
    });
    result.map(|()| count)
}

/// Gives the encoder a piece of the decoder stream; how many of the cancellations in it are without effect.
fn tell_encoder(encoder: &mut TableEncoder, input: &[u8]) -> Result<u32, Error> {
    let mut useless = 0;
    let result = encoder.on_decoder_stream(input, |cancelled| {
        useless += u32::from(!cancelled.had_effect);
        Ok(true)
    });
    result.map(|()| useless)
}

fn encoded(fields: &[Owned]) -> (Vec<u8>, u64) {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    for (name, value, sensitive) in fields {
        encoder.field(name, value, *sensitive);
    }
    let size = encoder.size();
    (out, size)
}

fn decoded(section: &[u8], limit: u64) -> Result<Vec<Owned>, DecodeError> {
    let mut fields = Vec::new();
    let mut sink = |field: Field<'_>| {
        fields.push((field.name.to_vec(), field.value.to_vec(), field.sensitive));
    };
    let size = Decoder::new().decode(STREAM, section, limit, &mut sink)?;
    let sum: u64 = fields.iter().map(|(name, value, _)| field_size(name, value)).sum();
    assert_eq!(size, sum);
    Ok(fields)
}

fn field(name: &str, value: &str) -> Owned {
    (name.into(), value.into(), false)
}

/// RFC 9204 appendix B.1.
#[test]
fn literal_with_static_name() {
    let section = [&[0, 0, 0x51, 0x0b][..], b"/index.html"].concat();
    assert_eq!(decoded(&section, 1000).unwrap(), [field(":path", "/index.html")]);
}

#[test]
fn what_the_encoder_writes() {
    let (bytes, size) = encoded(&[field(":method", "GET"), field(":path", "/"), field(":status", "999")]);
    // Index 17; index 1; name at index 24, the first, which is 15 + 9; "999" is no shorter Huffman-coded.
    assert_eq!(bytes, [0, 0, 0xc0 | 17, 0xc0 | 1, 0x5f, 24 - 15, 3, b'9', b'9', b'9']);
    assert_eq!(size, (7 + 3 + 32) + (5 + 1 + 32) + (7 + 3 + 32));
}

#[test]
fn sensitive_fields_are_never_indexed() {
    let fields = [
        (b"authorization".to_vec(), b"secret".to_vec(), true),
        (b":method".to_vec(), b"GET".to_vec(), true),
        (b"x-key".to_vec(), b"secret".to_vec(), true),
    ];
    let (bytes, _) = encoded(&fields);
    assert_eq!(bytes[2] & 0b1111_0000, 0b0111_0000);
    assert_eq!(decoded(&bytes, 1000).unwrap(), fields);
    // Nor are they remembered: the same without the mark is another line, whichever comes first.
    let marked = fields[0].clone();
    let open = field("authorization", "secret");
    for fields in [[marked.clone(), open.clone()], [open, marked]] {
        assert_eq!(decoded(&encoded(&fields).0, 1000).unwrap(), fields);
    }
}

#[test]
fn dynamic_references_and_bad_sections_fail() {
    for (section, why) in [
        (&[][..], "empty"),
        (&[0], "no base"),
        (&[0x03, 0x81, 0x10], "appendix B.2"),
        (&[0x05, 0x00, 0x80, 0xc1, 0x81], "appendix B.4"),
        (&[0, 0x80], "negative base"),
        (&[0, 0, 0x80], "dynamic index"),
        (&[0, 0, 0x10], "post-base index"),
        (&[0, 0, 0x00, 0x00], "post-base name"),
        (&[0, 0, 0x40, 0x00], "dynamic name"),
        (&[0, 0, 0xff, 36], "static index 99"),
        (&[0, 0, 0xff], "index cut short"),
        (&[0, 0, 0x51, 0x0b, b'/'], "value cut short"),
        (&[0, 0, 0x51, 0x81, 0xff], "Huffman padding"),
        (&[0, 0, 0x23, b'a', b'b'], "name cut short"),
    ] {
        assert!(matches!(decoded(section, 1000), Err(DecodeError::Failed(_))), "{why}");
    }
    for section in [
        &[0, 0, 0x51, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
        &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ] {
        assert_eq!(decoded(section, 1000), Err(DecodeError::IntegerTooLarge), "{section:02x?}");
    }
    assert_eq!(decoded(&[0, 0x7f, 0x00, 0xc1], 1000).unwrap(), [field(":path", "/")], "a Base above 0");
}

#[test]
fn size_is_limited_before_it_is_spent() {
    let (bytes, size) = encoded(&[field("cookie", &"0".repeat(1000)), field("cookie", "x")]);
    assert!(bytes.len() < 700, "Huffman-coded");
    assert_eq!(decoded(&bytes, size - 1), Err(DecodeError::TooLarge));
    assert_eq!(decoded(&bytes, 900), Err(DecodeError::TooLarge));
    assert_eq!(decoded(&bytes, size).unwrap().len(), 2);
    // A thousand one-byte references to a long static field.
    let bomb = [&[0, 0][..], &[0xc0 | 57; 1000]].concat();
    assert_eq!(decoded(&bomb, 64 << 10), Err(DecodeError::TooLarge));
}

fn fields() -> impl Strategy<Value = Vec<Owned>> {
    let name = prop_oneof![
        Just(b"content-type".to_vec()),
        Just(b":path".to_vec()),
        Just(b":status".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    let value = prop_oneof![
        Just(b"200".to_vec()),
        Just(b"text/plain".to_vec()),
        prop::collection::vec(any::<u8>(), 0..300),
    ];
    prop::collection::vec((name, value, any::<bool>()), 0..12)
}

proptest! {
    #[test]
    fn round_trip(fields in fields()) {
        let (bytes, size) = encoded(&fields);
        prop_assert_eq!(decoded(&bytes, size), Ok(fields));
    }

    #[test]
    fn truncation_never_invents_fields(fields in fields(), cut in any::<prop::sample::Index>()) {
        let (bytes, size) = encoded(&fields);
        if let Ok(some) = decoded(&bytes[..cut.index(bytes.len())], size) {
            prop_assert!(some.len() <= fields.len());
            prop_assert_eq!(&some[..], &fields[..some.len()]);
        }
    }

    #[test]
    fn arbitrary_bytes_stay_within_the_limit(mut bytes in prop::collection::vec(any::<u8>(), 0..200), limit in 0_u64..2000) {
        bytes.splice(0..0, [0, 0]);
        let mut size = 0;
        let _ = Decoder::new().decode(STREAM, &bytes, limit, &mut |field| size += field_size(field.name, field.value));
        prop_assert!(size <= limit);
    }
}
