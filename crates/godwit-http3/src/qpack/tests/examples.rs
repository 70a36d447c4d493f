//! The examples of RFC 9204 appendix B, read and written.

use super::super::table::Entry;
use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn stream(id: u64) -> StreamId {
    StreamId::from_u64(id)
}

fn read(decoder: &mut Decoder, id: u64, section: &str) -> Result<Vec<Owned>, DecodeError> {
    let mut fields = Vec::new();
    let mut sink = |field: Field<'_>| {
        fields.push((field.name.to_vec(), field.value.to_vec(), field.sensitive));
    };
    decoder.decode(stream(id), &hex(section), 1000, &mut sink)?;
    Ok(fields)
}

fn feedback(decoder: &mut Decoder) -> Vec<u8> {
    let mut out = Vec::new();
    decoder.take_feedback(&mut out);
    out
}

const SET_AND_INSERT: &str =
    "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
const INSERT_LITERAL: &str = "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565";
const DUPLICATE: &str = "02";
const INSERT_AND_EVICT: &str = "810d 6375 7374 6f6d 2d76 616c 7565 32";

#[test]
fn the_decoder_of_appendix_b() {
    let mut decoder = Decoder::with_table(220, 1);
    // B.1.
    assert_eq!(
        read(&mut decoder, 0, "0000 510b 2f69 6e64 6578 2e68 746d 6c").unwrap(),
        [field(":path", "/index.html")]
    );
    assert_eq!(feedback(&mut decoder), []);
    // B.2, with the section first.
    assert_eq!(read(&mut decoder, 4, "0381 10 11"), Err(DecodeError::Blocked));
    assert_eq!(decoder.next_ready(), None);
    assert_eq!(tell_decoder(&mut decoder, &hex(SET_AND_INSERT)).unwrap(), 3);
    assert_eq!((decoder.next_ready(), decoder.next_ready()), (Some(stream(4)), None));
    let fields = [field(":authority", "www.example.com"), field(":path", "/sample/path")];
    assert_eq!(read(&mut decoder, 4, "0381 10 11").unwrap(), fields);
    assert!(decoder.is_feedback_due());
    assert_eq!(feedback(&mut decoder), hex("84"));
    // B.3.
    assert_eq!(tell_decoder(&mut decoder, &hex(INSERT_LITERAL)).unwrap(), 1);
    assert!(decoder.is_feedback_due());
    assert_eq!(feedback(&mut decoder), hex("01"));
    assert!(!decoder.is_feedback_due());
    // B.4: what is cancelled, and what would have come of it.
    assert_eq!(read(&mut decoder, 8, "0500 80 c1 81"), Err(DecodeError::Blocked));
    decoder.cancel(stream(8));
    assert!(decoder.is_feedback_due());
    assert_eq!(feedback(&mut decoder), hex("48"));
    assert_eq!(tell_decoder(&mut decoder, &hex(DUPLICATE)).unwrap(), 1);
    assert_eq!(decoder.next_ready(), None, "nobody waits");
    let fields =
        [field(":authority", "www.example.com"), field(":path", "/"), field("custom-key", "custom-value")];
    assert_eq!(read(&mut decoder, 8, "0500 80 c1 81").unwrap(), fields);
    // B.5.
    assert_eq!(tell_decoder(&mut decoder, &hex(INSERT_AND_EVICT)).unwrap(), 1);
    assert_eq!(read(&mut decoder, 12, "0600 80 81 82 83").unwrap().len(), 4);
    assert!(matches!(read(&mut decoder, 12, "0600 84"), Err(DecodeError::Failed(_))), "the first has left");
    assert_eq!(read(&mut decoder, 16, "0600 80").unwrap(), [field("custom-key", "custom-value2")]);
}

/// The instructions are the same in one byte after another.
#[test]
fn instructions_may_be_cut_anywhere() {
    let all = [SET_AND_INSERT, INSERT_LITERAL, DUPLICATE, INSERT_AND_EVICT].map(hex).concat();
    for cut in 0..=all.len() {
        let mut decoder = Decoder::with_table(220, 0);
        let (head, tail) = all.split_at(cut);
        let count = tell_decoder(&mut decoder, head).unwrap() + tell_decoder(&mut decoder, tail).unwrap();
        assert_eq!(count, 6, "cut at {cut}");
        assert_eq!(read(&mut decoder, 0, "0600 80 83").unwrap()[1], field(":path", "/sample/path"));
    }
    let mut decoder = Decoder::with_table(220, 0);
    let count: u32 = all.iter().map(|byte| tell_decoder(&mut decoder, &[*byte]).unwrap()).sum();
    assert_eq!(count, 6);
}

/// What our encoder's parts say in the same place.
#[test]
fn the_encoder_of_appendix_b() {
    let mut out = Vec::new();
    instructions::put_capacity(220, &mut out);
    instructions::put_insert_named(true, 0, b"www.example.com", &mut out);
    instructions::put_insert_named(true, 1, b"/sample/path", &mut out);
    instructions::put_insert_literal(b"custom-key", b"custom-value", &mut out);
    instructions::put_duplicate(2, &mut out);
    instructions::put_insert_named(false, 1, b"custom-value2", &mut out);
    // Ours are Huffman-coded: the same for a decoder.
    let mut decoder = Decoder::with_table(220, 0);
    assert_eq!(tell_decoder(&mut decoder, &out).unwrap(), 6);
    assert_eq!(read(&mut decoder, 0, "0600 80 83").unwrap()[0], field("custom-key", "custom-value2"));
    assert!(out.starts_with(&hex("3fbd01 c0")));

    let mut table = table::Table::default();
    table.set_capacity(220);
    for (name, value) in [
        (":authority", "www.example.com"),
        (":path", "/sample/path"),
        ("custom-key", "custom-value"),
        (":authority", "www.example.com"),
    ] {
        assert!(table.insert(Entry::new(name.as_bytes(), value.as_bytes())));
    }
    assert_eq!(table.size(), 217);
    assert!(table.insert(Entry::new(b"custom-key", b"custom-value2")));
    assert_eq!((table.size(), table.dropped(), table.inserted()), (215, 1, 5));

    let prefix = |required, base| {
        let mut out = Vec::new();
        Written::new(required, 0, base, 220 / 32).put_prefix(&mut out);
        out
    };
    assert_eq!([prefix(0, 0), prefix(2, 0), prefix(4, 4)], ["0000", "0381", "0500"].map(hex));
    // Section 4.5.1.1: of 100 bytes, 9 is 9 modulo 6 and one more.
    let mut out = Vec::new();
    Written::new(9, 0, 9, 100 / 32).put_prefix(&mut out);
    assert_eq!(out, [4, 0]);
}
