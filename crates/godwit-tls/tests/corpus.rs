//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-tls --test corpus` writes the seeds anew.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects, reason = "tests")]

#[path = "../../../fuzz/src/tls.rs"]
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

/// Name, bytes in hexadecimal ([`hex::bytes`]), and whether they are understood. The first byte says where the
/// message is cut in two.
type Seed = (&'static str, &'static str, bool);

const CLIENT_HELLOS: &[Seed] = &[
    (
        "usual",
        "10 01 00005e 0303 07*32 00 0002 1301 01 00 0033002b000302030400000014001200000f5757572e4578616d706c652e6f726700100010000e0268330a68712d696e7465726f70",
        true,
    ),
    ("no_extensions", "00 01 00002b 0303 07*32 00 0002 1301 01 00 0000", true),
    (
        "early_data_and_parameters",
        "ff 01 000043 0303 07*32 00 0002 1301 01 00 001800000006000400000161002a000000390006040480100000",
        true,
    ),
    ("more_behind", "30 01 000034 0303 07*32 00 0002 1301 01 00 0009001000050003026833 0101", true),
    ("name_of_another_type", "20 01 000035 0303 07*32 00 0002 1301 01 00 000a00000006000401000178", true),
    ("cut", "05 01 00003f 0303 07*32 00 0002 1301 01 00 001400000010000e00000b6578616d706c652e6f", false),
    ("not_a_client_hello", "00 02 000000", false),
    ("longest", "01 01 ffffff", false),
    ("too_short", "00 01 000001 00", false),
    (
        "two_names",
        "00 01 00003f 0303 07*32 00 0002 1301 01 00 00140000000600040000016100000006000400000162",
        false,
    ),
    (
        "not_a_name",
        "00 01 00003e 0303 07*32 00 0002 1301 01 00 00130000000f000d00000a6e6f742061206e616d65",
        false,
    ),
    ("empty_protocol", "00 01 000032 0303 07*32 00 0002 1301 01 00 000700100003000100", false),
];

/// Format, cipher suite, time of issue, lifetime, addition to its age, 0-RTT; ticket, secret, parameters, certificates.
const SESSION_TICKETS: &[Seed] = &[
    (
        "usual",
        "01 1301 0000000070dbd880 0000a8c0 01020304 01 05 aabbccddee 20 07*32 06 040480100000 03 308201 02 3000",
        true,
    ),
    ("no_early_data", "01 1302 0000000070dbd880 ffffffff 00000000 00 01 aa 00 00 01 30", true),
    ("long_lengths", "01 1301 0000000070dbd880 0000a8c0 01020304 01 4001 aa 80000000 00 01 30", true),
    ("issued_in_the_end", "01 1303 ff*8 ff*4 ff*4 01 01 aa 00 00 00", true),
    ("no_certificate", "01 1301 0000000070dbd880 0000a8c0 01020304 01 01 aa 00 00", false),
    ("no_ticket", "01 1301 0000000070dbd880 0000a8c0 01020304 01 00 00 00 01 30", false),
    ("another_format", "02 1301 0000000070dbd880 0000a8c0 01020304 01 01 aa 00 00 01 30", false),
    ("neither_yes_nor_no", "01 1301 0000000070dbd880 0000a8c0 01020304 02 01 aa 00 00 01 30", false),
    ("length_lies", "01 1301 0000000070dbd880 0000a8c0 01020304 01 bfffffff aa", false),
];

/// The length that was announced, and a stream of zlib.
const CERTIFICATES: &[Seed] = &[
    ("stored", "0003 7801 01 0300 fcff 616263 024d0127", true),
    ("repeated", "0064 789c 4b4ca43d00 00 601225e5", false),
    ("fixed_codes", "000a 789c 4b84030014e103cb", true),
    ("empty", "0000 789c 03 00000000 01", true),
    ("more_than_announced", "0002 7801 01 0300 fcff 616263 024d0127", false),
    ("less_than_announced", "0004 7801 01 0300 fcff 616263 024d0127", false),
    ("wrong_sum", "0003 7801 01 0300 fcff 616263 024d0128", false),
    ("nothing", "ffff", false),
];

fn targets() -> [Target; 4] {
    type Check = fn(&[u8]) -> bool;
    let read = |seeds: &'static [Seed]| {
        let read = seeds.iter().map(|(name, text, understood)| (*name, hex::bytes(text), *understood));
        read.collect::<Vec<_>>()
    };
    let sealed = checks::sealed_ticket();
    let forged = sealed.iter().map(|byte| byte ^ 1).collect();
    let sealed =
        vec![("cut", sealed[..20].to_vec(), false), ("sealed", sealed, true), ("forged", forged, false)];
    let targets: [(_, Check, _); 4] = [
        ("client_hello", checks::client_hello, read(CLIENT_HELLOS)),
        ("session_ticket", checks::session_ticket, read(SESSION_TICKETS)),
        ("server_ticket", checks::server_ticket, sealed),
        ("compressed_certificate", checks::compressed_certificate, read(CERTIFICATES)),
    ];
    targets.map(|(name, check, seeds)| Target { name, check, seeds })
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
