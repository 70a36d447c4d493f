//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit --test corpus` writes the seeds anew.

#[path = "../../../fuzz/src/sessions.rs"]
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
#[path = "../../../fuzz/src/scratch.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod scratch;

use replay::Target;
use std::path::{Path, PathBuf};

/// Name, bytes in hexadecimal ([`hex::bytes`]) of the entries, and whether the server is among them.
type Seed = (&'static str, &'static str, bool);

/// Server "a", "h3", version 1, network 0; then last use, group, tokens, tickets, and what is remembered.
const SESSIONS: &[Seed] = &[
    ("nothing", "", false),
    (
        "server",
        "00000001 61 00000001 00000002 6833 00000001 00*8 00000000 60000000 001d 00000000 00000000 00",
        true,
    ),
    (
        "token",
        "00000001 61 00000001 00000002 6833 00000001 00*8 00000000 60000000 001d 00000001 00000002 7474 00000000 00",
        true,
    ),
    (
        "ticket",
        "00000001 61 00000001 00000002 6833 00000001 00*8 00000000 60000000 0000 00000000 00000001 00 ff*7 01 \
         00000003 010203 00",
        true,
    ),
    (
        "remembered",
        "00000001 61 00000001 00000002 6833 00000001 00*8 ff*8 0000 00000000 00000000 02 00000000 01312d00 \
         00000000 00010000 00000000 00100000 00000002 6161",
        true,
    ),
    (
        "without_rate",
        "00000001 61 00000000 00000001 00*8 00*8 0000 00000000 00000000 01 00*8 00*8 00000000",
        false,
    ),
    ("name_is_no_text", "00000001 ff 00000000 00000001 00*8 00*8 0000 00000000 00000000 00", false),
    ("length_lies", "ffffffff 61", false),
    ("tokens_too_many", "00000001 61 00000000 00000001 00*8 00*8 0000 7fffffff", false),
    ("cut", "00000001 61 00000000 00000001 00*8", false),
];

/// The target and its seeds.
fn targets() -> [Target; 1] {
    let seeds = SESSIONS.iter().map(|(name, text, understood)| (*name, hex::bytes(text), *understood));
    [Target { name: "session_file", check: checks::session_file, seeds: seeds.collect() }]
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn the_seeds_are_understood_as_they_are_meant() {
    replay::seeds(&corpus(), &targets());
    scratch::clear();
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn what_is_made_of_the_corpus_holds_no_surprises() {
    // Each is a file.
    replay::surprises(&corpus(), &targets(), mutate::rounds() / 20);
    scratch::clear();
}
