//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-transport --test corpus` writes the seeds anew.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

#[path = "../../../fuzz/src/transport.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod checks;
#[path = "../../../fuzz/src/hex.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod hex;
#[path = "../../../fuzz/src/mutate.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod mutate;
#[path = "../../../fuzz/src/program.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod program;
#[path = "../../../fuzz/src/replay.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod replay;

use checks::step::*;
use replay::Target;
use std::path::{Path, PathBuf};

/// Name, steps with what they need in hexadecimal ([`hex::bytes`]), and whether the server begins a connection.
type Seed = (&'static str, &'static [(u8, &'static str)], bool);

/// A ClientHello with a name and a protocol, and no key that TLS could use.
const HELLO_TEXT: &str = "01 00004c 0303 55*32 00 0002 1301 01 00 0023 0000000a0008000005612e746573 0010000700050466757a7a 00150004 00*4";

const SEEDS: &[Seed] = &[
    ("handshake", &[(CONNECT, ""), (EXCHANGE, ""), (EXCHANGE, ""), (EXCHANGE, ""), (CLOSE, "")], true),
    (
        "handshake_with_retry",
        &[
            (POLICY, "01"),
            (CONNECT, ""),
            (EXCHANGE, ""),
            (EXCHANGE, ""),
            (POLICY, "00"),
            (EXCHANGE, ""),
            (EXCHANGE, ""),
        ],
        true,
    ),
    (
        "handshake_spoiled",
        &[(CONNECT, ""), (EXCHANGE, ""), (SPOIL, "0032 01"), (EXCHANGE, ""), (WAIT, "0400")],
        true,
    ),
    ("refused", &[(POLICY, "02"), (CONNECT, ""), (EXCHANGE, ""), (EXCHANGE, "")], false),
    ("unknown_version", &[(TO_SERVER, "c0 1a2a3a4a 08 01*8 08 02*8 00*1180")], false),
    ("stateless_reset", &[(TO_SERVER, "40 07*100"), (TO_CLIENT, "40 07*100")], false),
    ("hello", &[(HELLO, HELLO_TEXT), (WAIT, "1000")], false),
    ("half_a_hello", &[(HELLO, "01 00004c 0303 55*10"), (WAIT, "1000")], false),
    (
        "frames_of_every_space",
        &[(FRAMES, "01 02 00 00 00 00 1c 0a 00 00"), (0x10 | FRAMES_OF_2, "1e")],
        false,
    ),
    (
        "hello_in_odd_order",
        &[(FRAMES, "06 05 02 0000 06 00 05 0100004c03"), (FRAMES, "06 4400 01 00")],
        false,
    ),
    ("token_of_nobody", &[(TOKEN, "a7 00*90"), (0x20 | TOKEN, "5c 11*90")], false),
    ("retried", &[(POLICY, "01"), (HELLO, HELLO_TEXT), (RETRIED, ""), (RETRIED, "00 01")], false),
    ("retry_to_client", &[(CONNECT, ""), (RETRY, "aabbcc"), (RETRY, "aabbcc"), (EXCHANGE, "")], true),
    ("versions_to_client", &[(CONNECT, ""), (VERSIONS, "0a0a0a0a 6b3343cf"), (EXCHANGE, "")], true),
    ("no_versions", &[(CONNECT, ""), (VERSIONS, ""), (VERSIONS, "ff*4"), (EXCHANGE, "")], true),
    (
        "closed_by_who_sees_it",
        &[(CONNECT, ""), (FRAMES_TO_CLIENT, "02 00 00 00 00 06 00 01 02"), (FRAMES_TO_CLIENT, "1c 02 00 00")],
        false,
    ),
];

fn targets() -> [Target; 1] {
    let write = |(name, steps, understood): &Seed| {
        let steps: Vec<_> = steps.iter().map(|(what, text)| (*what, hex::bytes(text))).collect();
        (*name, program::program(&steps), *understood)
    };
    let seeds = SEEDS.iter().map(write).collect();
    [Target { name: "endpoints", check: checks::endpoints, seeds }]
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
    replay::surprises(&corpus(), &targets(), mutate::rounds());
}
