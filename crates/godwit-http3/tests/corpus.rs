//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-http3 --test corpus` writes the seeds anew.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects, reason = "tests")]

#[path = "../../../fuzz/src/http3.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod checks;
#[path = "../../../fuzz/src/http3_connection.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod connection;
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

use checks::step::{CANCEL, INSERTS};
use connection::step::{END, RESET, STOP, UNI};
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
    ("webtransport", "08 01 33 01 ab603742 01 c0000000c671706a 05 94e9cd29 05", true),
    ("twice", "06 01 06 02", false),
    ("of_http2", "02 00", false),
    ("no_flag", "08 02", false),
    ("cut", "06", false),
];

/// The first byte is the size of the pieces in which the content comes.
const CAPSULES: &[Seed] = &[
    ("datagrams", "ff 00 03 616263 00 00", true),
    ("session_drains_and_ends", "01 800078ae 00 6843 08 0000002a 626c6168", true),
    ("nobody_knows_it", "03 21 04 61626364 800078ae 00", true),
    ("end_without_a_code", "ff 6843 02 0000", false),
    ("reason_that_is_no_text", "02 6843 05 00000000 ff", false),
    ("longest_length", "02 00 ffffffffffffffff 00", false),
    ("cut_in_the_value", "02 00 0a 6162", false),
];

/// A name, the steps of the program, and whether they are understood to their end.
type Program = (&'static str, &'static [(u8, &'static str)], bool);

/// The capacity 220, and the insertions of RFC 9204 appendix B.2.
const TWO: (u8, &str) = (INSERTS, "3fbd01 c00f 7777772e6578616d706c652e636f6d c10c 2f73616d706c652f70617468");

const QPACK: &[Program] = &[
    ("static_fields", &[(0, "0000 d1 d7 c1")], true),
    ("static_name", &[(0, "0000 50 0b 7777772e6578616d706c65")], true),
    ("literal", &[(0, "0000 23 666f6f 03 626172")], true),
    ("huffman", &[(0, "0000 50 8c f1e3c2e5f23a6ba0ab90f4ff")], true),
    ("sensitive", &[(0, "0000 33 666f6f 03 626172")], true),
    ("empty", &[(0, "0000")], true),
    ("wants_the_dynamic_table", &[(0, "0200 80")], false),
    ("beyond_the_static_table", &[(0, "0000 ff40")], false),
    ("cut_in_a_value", &[(0, "0000 50 0b 7777")], false),
    ("endless_integer", &[(0, "0000 ff ffffffffffffffffff")], false),
    ("indexed", &[TWO, (1, "0300 80 81"), (2, "0381 10 11")], true),
    ("named", &[TWO, (1, "0300 40 0161 60 0162"), (2, "0381 00 0161 09 0162")], true),
    ("waits", &[(1, "0381 10 11"), (2, "0280 10"), TWO], true),
    ("cancelled", &[(1, "0381 10 11"), (1 | CANCEL, ""), TWO], true),
    ("too_many_wait", &[(1, "0300 80"), (2, "0300 80"), (3, "0300 80"), (4, "0300 80"), TWO], false),
    (
        "inserted_named_and_duplicated",
        &[TWO, (INSERTS, "4a 637573746f6d2d6b6579 0c 637573746f6d2d76616c7565 02"), (3, "0500 80 c1 81")],
        true,
    ),
    (
        "evicted",
        &[
            TWO,
            (INSERTS, "4a 637573746f6d2d6b6579 0c 637573746f6d2d76616c7565 02"),
            (INSERTS, "81 0d 637573746f6d2d76616c756532"),
            (4, "0600 80 83"),
            (4, "0600 84"),
        ],
        false,
    ),
    ("cleared", &[TWO, (INSERTS, "20 3f01"), (1, "0300 80")], false),
    (
        "cut_in_an_instruction",
        &[TWO, (INSERTS, "4a 6375"), (INSERTS, "73746f6d2d6b6579 01 61"), (1, "0400 80")],
        true,
    ),
    ("needs_more_than_there_can_be", &[TWO, (1, "0e00 80")], false),
    ("not_declared", &[TWO, (1, "0200 80 11")], false),
    ("negative_base", &[TWO, (1, "0382 10")], false),
];

const SERVER: u8 = 1;
const CLIENT: u8 = 0;

/// The peer's settings on its control stream, which is its first.
const CONTROL: (u8, &str) = (UNI, "00 04 03 015006");

/// A name, whose connection it is, its peer's steps, and whether a message is understood and the connection lives.
type Exchange = (&'static str, u8, &'static [(u8, &'static str)], bool);

const EXCHANGES: &[Exchange] = &[
    ("get", SERVER, &[CONTROL, (END, "01 0e 0000 d1 d7 c1 50 07 612e746573740a")], false),
    ("get_of_a_host", SERVER, &[CONTROL, (END, "01 0d 0000 d1 d7 c1 50 06 612e74657374")], true),
    (
        "post_with_trailers",
        SERVER,
        &[
            CONTROL,
            (1, "01 0d 0000 d4 d7 c1 50 06 612e74657374 00 05 68656c6c6f"),
            (1 | END, "00 00 21 01 00 01 0a 0000 23 666f6f 03 626172"),
        ],
        true,
    ),
    (
        "content_of_another_length",
        SERVER,
        &[CONTROL, (END, "01 10 0000 d4 d7 c1 50 06 612e74657374 54 01 33 00 02 6162")],
        true,
    ),
    ("reset", SERVER, &[CONTROL, (2, "01 0d 0000 d1 d7 c1 50 06 612e74657374"), (2 | RESET, "")], true),
    ("stopped", SERVER, &[CONTROL, (END | STOP, "01 0d 0000 d1 d7 c1 50 06 612e74657374")], true),
    (
        "streams_of_every_type",
        SERVER,
        &[CONTROL, (UNI | 1, "02"), (UNI | 2, "03"), (UNI | 3, "21 616263"), (UNI, "07 01 04 0d 01 08")],
        false,
    ),
    (
        "priority",
        SERVER,
        &[CONTROL, (UNI, "800f0700 08 00 753d332c2069 "), (END, "01 0d 0000 d1 d7 c1 50 06 612e74657374")],
        true,
    ),
    ("cancellations_and_worse", SERVER, &[CONTROL, (UNI | 1, "03 44*1001 80")], false),
    (
        "session_with_streams",
        SERVER,
        &[
            CONTROL,
            (UNI | 1, "4054 00 68656c6c6f"),
            (
                0,
                "01 25 0000 cf d7 50 06 612e74657374 c1 27 02 3a70726f746f636f6c 0c 7765627472616e73706f7274 00 01 00",
            ),
            (1, "4041 00 68656c6c6f"),
            (UNI | 2, "4054 00"),
            (2, "4041 08"),
        ],
        true,
    ),
    ("stream_of_no_session", SERVER, &[CONTROL, (UNI | 1, "4054 02")], false),
    ("data_first", SERVER, &[CONTROL, (0, "00 01 61")], false),
    ("settings_on_a_request", SERVER, &[CONTROL, (0, "04 00")], false),
    ("control_ends", SERVER, &[CONTROL, (UNI | END, "")], false),
    ("two_control_streams", SERVER, &[CONTROL, (UNI | 1, "00 04 00")], false),
    ("answer", CLIENT, &[CONTROL, (END, "01 03 0000 d9 00 02 6869")], true),
    (
        "early_hints",
        CLIENT,
        &[CONTROL, (0, "01 03 0000 d8"), (END, "01 03 0000 d9 00 02 6869"), (1 | END, "01 03 0000 d9")],
        true,
    ),
    ("going_away", CLIENT, &[CONTROL, (END, "01 03 0000 d9"), (UNI, "07 01 04")], true),
    ("pushed", CLIENT, &[CONTROL, (UNI | 1, "01 00"), (0, "05 03 00 0000")], false),
    (
        "waits_for_insertions",
        SERVER,
        &[
            CONTROL,
            (END, "01 08 0200 d1 d7 80 50 0161"),
            (UNI | 1, "02 3fe11f c104 2f6c6f6e"),
            (1 | END, "01 08 0200 d1 d7 80 50 0161"),
            (UNI | 2, "03"),
        ],
        true,
    ),
    ("acknowledges_what_was_not_sent", CLIENT, &[CONTROL, (UNI | 1, "03 80")], false),
    ("name_with_capitals", CLIENT, &[CONTROL, (END, "01 0b 0000 d9 23 466f6f 03 626172")], false),
];

fn exchanges() -> Vec<(&'static str, Vec<u8>, bool)> {
    let write = |(name, side, steps, understood): &Exchange| {
        (*name, [vec![*side], written(steps)].concat(), *understood)
    };
    EXCHANGES.iter().map(write).collect()
}

/// The program of steps whose bytes are in hexadecimal.
fn written(steps: &[(u8, &str)]) -> Vec<u8> {
    let steps: Vec<_> = steps.iter().map(|(what, text)| (*what, hex::bytes(text))).collect();
    program::program(&steps)
}

/// The targets, and their seeds with the bytes in hexadecimal.
fn targets() -> [Target; 5] {
    type Check = fn(&[u8]) -> bool;
    let targets: [(_, Check, _); 3] = [
        ("http3_frames", checks::frames, FRAMES),
        ("http3_settings", checks::settings, SETTINGS),
        ("http3_capsules", checks::capsules, CAPSULES),
    ];
    let [frames, settings, capsules] = targets.map(|(name, check, seeds)| {
        let seeds =
            seeds.iter().map(|(name, text, understood)| (*name, hex::bytes(text), *understood)).collect();
        Target { name, check, seeds }
    });
    let qpack = QPACK.iter().map(|(name, steps, understood)| (*name, written(steps), *understood)).collect();
    let qpack = Target { name: "qpack", check: checks::qpack, seeds: qpack };
    let connection = Target { name: "http3_connection", check: connection::connection, seeds: exchanges() };
    [frames, settings, capsules, qpack, connection]
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
