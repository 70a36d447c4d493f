//! What is refused of instructions and references, and that nothing is held without bound.

use super::*;
use crate::error::ErrorCode;

/// Capacity 220 of 220, and insertions of `:path: /a` and `:path: /b`.
fn decoder() -> Decoder {
    let mut decoder = Decoder::with_table(220, 1);
    tell_decoder(&mut decoder, &[0x3f, 0xbd, 1, 0xc1, 2, b'/', b'a', 0xc1, 2, b'/', b'b']).unwrap();
    decoder
}

fn decode(decoder: &mut Decoder, section: &[u8]) -> Result<u64, DecodeError> {
    decoder.decode(STREAM, section, 1000, &mut |_| {})
}

#[test]
fn references_beyond_what_there_is() {
    for (section, why) in [
        (&[3, 0, 0x82][..], "below the first entry"),
        (&[3, 0, 0x42, 0], "a name below the first entry"),
        (&[3, 0, 0x10], "at the Required Insert Count"),
        (&[3, 0, 0x00, 0], "a name at the Required Insert Count"),
        (&[2, 0x80, 0x11], "an entry that is there, and not declared"),
        (&[2, 1, 0x80], "the same, below the Base"),
        (&[3, 0x82, 0x10], "Base below 0"),
        (&[3, 0, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f], "far below"),
        (&[3, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f], "far above"),
        (&[13, 0], "more than twice the most entries"),
        (&[1, 0], "a Required Insert Count of 0 that is not 0 on the wire"),
        (&[12, 0], "more than there can be, one round before"),
        (&[0, 0, 0x80], "none is needed"),
    ] {
        assert!(matches!(decode(&mut decoder(), section), Err(DecodeError::Failed(_))), "{why}");
    }
    for section in
        [&[3, 0, 0x81, 0x80][..], &[3, 0x81, 0x10, 0x11], &[2, 0, 0x80], &[3, 5, 0x85, 0x45, 1, b'x']]
    {
        decode(&mut decoder(), section).unwrap();
    }
    assert_eq!(decode(&mut decoder(), &[5, 0]), Err(DecodeError::Blocked));
}

#[test]
fn instructions_that_are_refused() {
    for (bytes, why) in [
        (&[0x3f, 0xbe, 1][..], "capacity 221"),
        (&[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "an endless capacity"),
        (&[0xff, 36], "static entry 99, before its value has come"),
        (&[0x82, 0], "a name below the first entry"),
        (&[0x02], "a duplicate of what is not there"),
        (
            &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            "a duplicate of what cannot be there",
        ),
        (&[0xc1, 0x7f, 0x7f], "a value larger than the capacity, before it has come"),
        (&[0x5f, 0xff, 0x7f], "the same of a name"),
        (&[0xc1, 0xff, 0xff, 0x7f], "the same, Huffman-coded"),
        (&[0xc1, 0x81, 0xff], "padding that is none"),
        (&[0x20, 0xc1, 0], "anything where the capacity is 0"),
        (&[0x20, 0x41, b'a', 0], "the same, with a name"),
        (&[0x20, 0x00], "a duplicate of what has left"),
    ] {
        let error = tell_decoder(&mut decoder(), bytes).expect_err(why);
        assert_eq!(error.code, ErrorCode::QPACK_ENCODER_STREAM_ERROR, "{why}");
        let mut decoder = decoder();
        assert!(bytes.iter().any(|byte| tell_decoder(&mut decoder, &[*byte]).is_err()), "{why}");
    }
    let error = tell_decoder(&mut Decoder::new(), &[0xc1, 1, b'a']).unwrap_err();
    assert_eq!(error.code, ErrorCode::QPACK_ENCODER_STREAM_ERROR);
    assert_eq!(tell_decoder(&mut Decoder::new(), &[0x20, 0x20]).unwrap(), 2);
}

#[test]
fn an_instruction_that_cannot_fit_is_refused_by_its_lengths() {
    // The longest name and value that can still fit, Huffman-coded at 30 bits a byte.
    let mut decoder = Decoder::with_table(4096, 0);
    tell_decoder(&mut decoder, &[0x3f, 0xe1, 0x1f]).unwrap();
    let mut name = Vec::new();
    prefix_int::encode(15_240, 5, 0b0110_0000, &mut name);
    tell_decoder(&mut decoder, &name).unwrap();
    for _ in 0..15_240 {
        tell_decoder(&mut decoder, &[0xff]).unwrap();
    }
    let mut value = Vec::new();
    prefix_int::encode(10, 7, 0, &mut value);
    assert!(tell_decoder(&mut decoder, &value).is_err(), "nothing more fits beside it");
    let mut name = Vec::new();
    prefix_int::encode(15_250, 5, 0b0110_0000, &mut name);
    let mut decoder = Decoder::with_table(4096, 0);
    tell_decoder(&mut decoder, &[0x3f, 0xe1, 0x1f]).unwrap();
    assert!(tell_decoder(&mut decoder, &name).is_err());
}

/// An encoder that has sent a section on stream 4 that needs its one insertion.
fn encoder() -> TableEncoder {
    let mut encoder = TableEncoder::new(4096);
    encoder.on_settings(4096, 16);
    for (stream, name, value) in [(0, &b":method"[..], &b"GET"[..]), (4, b"x-name", b"a value")] {
        let mut lines = Vec::new();
        let mut section = encoder.section(None, &mut lines);
        section.field(name, value, false);
        let written = section.finish();
        encoder.on_sent(StreamId::from_u64(stream), &written);
        assert_eq!(encoder.could_block(&written), stream == 4);
    }
    assert!(encoder.instructions().starts_with(&[0x3f, 0xe1, 0x1f, 0x40 | 0x20 | 5]));
    encoder
}

#[test]
fn answers_that_are_refused() {
    for (bytes, expected) in [
        (&[0x84][..], Ok(0)),
        (&[0x01], Ok(0)),
        (&[0x44], Ok(0)),
        (&[0x44, 0x44, 0x40], Ok(2)),
        (&[0x01, 0x84], Ok(0)),
        (&[0x84, 0x84], Err("acknowledged twice")),
        (&[0x80], Err("a section without references")),
        (&[0x44, 0x84], Err("a section that was cancelled")),
        (&[0x00], Err("an increment of 0")),
        (&[0x02], Err("more insertions than there were")),
        (&[0x84, 0x01], Err("the same, together with a section")),
        (&[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], Err("an endless increment")),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Err("an endless stream")),
    ] {
        let whole = tell_encoder(&mut encoder(), bytes).map_err(|error| error.code);
        let mut encoder = encoder();
        let by_byte = bytes.chunks(1).try_fold(0, |sum, byte| {
            tell_encoder(&mut encoder, byte).map(|count| sum + count).map_err(|error| error.code)
        });
        assert_eq!(whole, by_byte, "{bytes:02x?}");
        match expected {
            Ok(useless) => assert_eq!(whole, Ok(useless), "{bytes:02x?}"),
            Err(why) => assert_eq!(whole, Err(ErrorCode::QPACK_DECODER_STREAM_ERROR), "{why}"),
        }
    }
}

#[test]
fn secrets_are_not_inserted() {
    let fields: [(&[u8], &[u8], bool); 5] = [
        (b"authorization", b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", false),
        (b"proxy-authorization", b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", false),
        (b"cookie", b"pin=1234", false),
        (b"set-cookie", b"pin=1234", false),
        (b"x-key", b"sensitive, whatever its length", true),
    ];
    let mut encoder = TableEncoder::new(4096);
    encoder.on_settings(4096, 16);
    for _ in 0..4 {
        let mut lines = Vec::new();
        let mut section = encoder.section(None, &mut lines);
        for (name, value, sensitive) in fields {
            section.field(name, value, sensitive);
        }
        assert_eq!(section.finish().required, 0);
        assert!(encoder.instructions().is_empty());
    }
    // Nobody guesses a long one.
    encoder.section(None, &mut Vec::new()).field(b"cookie", b"session=0123456789abcdef", false);
    assert!(!encoder.instructions().is_empty());
}

/// Sends a section with one field on the stream with this number; whether it refers to an entry.
fn refers(encoder: &mut TableEncoder, number: u64) -> bool {
    let mut lines = Vec::new();
    let mut section = encoder.section(None, &mut lines);
    section.field(b"x-name", b"a value", false);
    let written = section.finish();
    encoder.on_sent(StreamId::from_u64(number * 4), &written);
    written.required > 0
}

#[test]
fn sections_that_nobody_answers_are_held_within_bounds() {
    let mut encoder = TableEncoder::new(4096);
    encoder.on_settings(4096, 1 << 20);
    let with_references = (0..3000).filter(|number| refers(&mut encoder, *number)).count();
    assert_eq!(with_references, 1024);
    assert!(encoder.held() < 64 << 10, "{}", encoder.held());
    // Each answer makes room for one.
    let first =
        (0..3000).find(|number| tell_encoder(&mut encoder, &acknowledgement(*number)).is_ok()).unwrap();
    assert_eq!(first, 0);
    assert!(refers(&mut encoder, 3000) && !refers(&mut encoder, 3001));
}

/// A Section Acknowledgment of the stream with this number, below 31.
fn acknowledgement(number: u64) -> [u8; 1] {
    [0x80 | (number * 4) as u8]
}
