//! Replays seeds of the fuzzers' corpus, and inputs made of them by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-http3 --test corpus` writes the seeds for the fuzzers to begin with.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects, reason = "tests")]

#[path = "../../../fuzz/src/http3.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod checks;
#[path = "../../../fuzz/src/mutate.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod mutate;

use std::fs;
use std::path::{Path, PathBuf};

/// Name, bytes in hexadecimal, and whether they are understood to their end.
type Seed = (&'static str, &'static str, bool);
/// Name, check and seeds of a fuzz target.
type Target = (&'static str, fn(&[u8]) -> bool, &'static [Seed]);

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

const TARGETS: [Target; 3] = [
    ("http3_frames", checks::frames, FRAMES),
    ("http3_settings", checks::settings, SETTINGS),
    ("qpack", checks::qpack, QPACK),
];

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn seeds_are_understood_as_they_are_meant() {
    for (target, check, seeds) in TARGETS {
        for (name, hex, understood) in seeds {
            let bytes = bytes_of(hex);
            if std::env::var_os("GODWIT_WRITE_CORPUS").is_some() {
                fs::create_dir_all(folder(target)).expect("the corpus can be written");
                fs::write(folder(target).join(name), &bytes).expect("the corpus can be written");
            }
            assert_eq!(check(&bytes), *understood, "{target}/{name}");
            assert_eq!(
                fs::read(folder(target).join(name)).ok(),
                Some(bytes),
                "{target}/{name} is checked in"
            );
        }
    }
}

/// Every seed cut at every byte, and inputs made of the seeds by chance, the same in every run.
#[test]
fn what_is_made_of_the_seeds_holds_no_surprises() {
    for (target, check, seeds) in TARGETS {
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|(_, hex, _)| bytes_of(hex)).collect();
        for seed in &seeds {
            for end in 0..=seed.len() {
                check(&seed[..end]);
            }
        }
        let understood =
            (0..mutate::rounds()).filter(|round| check(&mutate::mutated(&seeds, *round))).count();
        assert!(understood > 0, "{target}: some of them are understood");
    }
}
