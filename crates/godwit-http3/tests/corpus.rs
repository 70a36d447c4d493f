//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-http3 --test corpus` writes the seeds anew.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects, reason = "tests")]

#[path = "../../../fuzz/src/http3.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod checks;
#[path = "../../../fuzz/src/hex.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod hex;
#[path = "../../../fuzz/src/mutate.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod mutate;
#[path = "../../../fuzz/src/replay.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod replay;

use replay::Target;
use std::path::{Path, PathBuf};

/// Name, bytes in hexadecimal, and whether they are understood to their end.
type Seed = (&'static str, &'static str, bool);

/// The first byte is the size of the pieces in which the stream comes.
const FRAMES: &[Seed] = &[
    ("data", "ff 00 03 616263", true),
    ("headers_then_data_in_pieces", "01 01 04 0000d1d7 00 05 68656c6c6f", true),
    ("settings_and_goaway", "03 04 04 01500620 07 01 04", true),
    ("long_type", "02 8000ffff 4002 aabb", true),
    ("empty", "05 00 00 01 00", true),
    ("cut_in_the_header", "02 00 40", false),
    ("cut_in_the_payload", "02 00 0a 6162", false),
    ("longest_length", "02 00 ffffffffffffffff 00", false),
];

const SETTINGS: &[Seed] = &[
    ("usual", "01 5000 06 8000ffff 07 10 08 01 33 01", true),
    ("empty", "", true),
    ("unknown", "21 00 4040 05", true),
    ("twice", "06 01 06 02", false),
    ("of_http2", "02 00", false),
    ("no_flag", "08 02", false),
    ("cut", "06", false),
];

const QPACK: &[Seed] = &[
    ("static_fields", "0000 d1 d7 c1", true),
    ("static_name", "0000 50 0b 7777772e6578616d706c65", true),
    ("literal", "0000 23 666f6f 03 626172", true),
    ("huffman", "0000 50 8c f1e3c2e5f23a6ba0ab90f4ff", true),
    ("sensitive", "0000 33 666f6f 03 626172", true),
    ("empty", "0000", true),
    ("wants_the_dynamic_table", "0100 d1", false),
    ("beyond_the_static_table", "0000 ff40", false),
    ("cut_in_a_value", "0000 50 0b 7777", false),
    ("endless_integer", "0000 ff ffffffffffffffffff", false),
];

/// The targets, and their seeds with the bytes in hexadecimal.
fn targets() -> [Target; 3] {
    type Check = fn(&[u8]) -> bool;
    let targets: [(_, Check, _); 3] = [
        ("http3_frames", checks::frames, FRAMES),
        ("http3_settings", checks::settings, SETTINGS),
        ("qpack", checks::qpack, QPACK),
    ];
    targets.map(|(name, check, seeds)| {
        let seeds =
            seeds.iter().map(|(name, text, understood)| (*name, hex::bytes(text), *understood)).collect();
        Target { name, check, seeds }
    })
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

#[test]
fn the_seeds_are_understood_as_they_are_meant() {
    replay::seeds(&corpus(), &targets());
}

#[test]
fn what_is_made_of_the_corpus_holds_no_surprises() {
    replay::surprises(&corpus(), &targets());
}
