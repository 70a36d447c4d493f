//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-wire --test corpus` writes the seeds anew.
#![allow(clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "../../../fuzz/src/wire.rs"]
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

/// Name, bytes in hexadecimal ([`hex::bytes`]), and whether they are understood.
type Seed = (&'static str, &'static str, bool);

const FRAMES: &[Seed] = &[
    ("padding_and_ping", "00*20 01", true),
    ("ack", "02 4064 32 01 05 03 04", true),
    ("ack_ecn", "03 3f 00 00 3f 05 00 4001", true),
    ("ack_many_ranges", "02 3f 00 0a 00 01*20", true),
    ("ack_below_zero", "02 05 00 01 02 02 00", false),
    ("ack_count_lies", "02 3f 00 ff*8 00 00 00", false),
    ("reset_stream", "04 04 4101 8000ffff", true),
    ("stop_sending", "05 08 00", true),
    ("crypto", "06 00 05 0102030405", true),
    ("crypto_beyond_the_end", "06 ff*8 01 00", false),
    ("new_token", "07 03 aabbcc", true),
    ("new_token_empty", "07 00", false),
    ("stream_to_the_end", "08 04 68656c6c6f", true),
    ("stream_all_fields", "0f 4407 7bbd 03 616263 01", true),
    ("stream_empty_fin", "0b 00 00", true),
    ("limits", "10 bfffffff 11 00 40ff 12 04 13 05", true),
    ("blocked", "14 00 15 04 7fff 16 20 17 21", true),
    ("streams_beyond_the_limit", "12 d0 00*6 01", false),
    ("new_connection_id", "18 02 01 08 a1a2a3a4a5a6a7a8 77*16", true),
    ("new_connection_id_bad", "18 01 02 08 a1a2a3a4a5a6a7a8 77*16", false),
    ("retire_connection_id", "19 01", true),
    ("path", "1a 11*8 1b 22*8", true),
    ("close", "1c 0a 06 04 6f6f7073", true),
    ("application_close", "1d 4100 00 1e", true),
    ("datagrams", "31 02 6162 30 63646566", true),
    ("reset_stream_at", "24 04 4101 8000ffff 4064", true),
    ("reset_stream_at_beyond_the_end", "24 00 07 05 06", false),
    ("acknowledgement_wishes", "40af 05 0a 53e8 03 1f", true),
    ("ack_frequency_extreme", "40af ff*32 1f", true),
    ("ack_frequency_cut", "40af 05 0a 53e8", false),
    ("timestamp", "42f5 8000ffff 02 05 00 00 05", true),
    ("timestamp_cut", "42f5 8000ff", false),
    ("type_not_shortest", "4001", false),
    ("type_unknown", "01 21", false),
];

/// The first byte is the length of connection ids in short headers.
const HEADERS: &[Seed] = &[
    ("initial_v1", "08 c3 00000001 08 8394c8f03e515708 00 00 4016 00*22", true),
    ("initial_v2", "08 d3 6b3343cf 08 8394c8f03e515708 00 00 4016 00*22", true),
    ("initial_token", "08 c0 00000001 08 11*8 04 22*4 4005 74*5 15 33*21", true),
    ("coalesced", "04 c0 00000001 00 00 00 02 aaaa e0 00000001 00 00 02 bbbb 40 11*4 cc*20", true),
    ("zero_rtt_v1", "08 d0 00000001 08 11*8 00 4014 33*20", true),
    ("zero_rtt_v2", "08 e0 6b3343cf 08 11*8 00 4014 33*20", true),
    ("handshake_v1", "08 e1 00000001 00 08 f067a5502a4262b5 4015 33*21", true),
    ("handshake_v2", "08 f1 6b3343cf 00 08 f067a5502a4262b5 4015 33*21", true),
    ("retry_v1", "08 ff 00000001 00 08 f067a5502a4262b5 746f6b656e 04a265ba2eff4d829058fb3f0f2496ba", true),
    ("retry_v2", "08 cf 6b3343cf 00 08 f067a5502a4262b5 746f6b656e c8646ce8bfe33952d955543665dcc7b6", true),
    ("retry_without_token", "08 ff 00000001 00 00 55*16", false),
    ("version_negotiation", "08 c5 00000000 08 11*8 04 22*4 00000001 6b3343cf 1a2a3a4a", true),
    ("version_negotiation_empty", "08 c5 00000000 00 00", false),
    ("version_negotiation_odd", "08 c5 00000000 00 00 0000000100", false),
    ("unknown_version", "08 c0 ff000020 08 11*8 08 22*8 00*40", true),
    ("unknown_version_long_cids", "08 c0 1a2a3a4a ff 11*255 ff 22*255", true),
    ("cid_too_long", "08 c0 00000001 15 11*21 00 00 01 00", false),
    ("length_too_long", "08 c0 00000001 00 00 00 4400 00*30", false),
    ("short", "08 41 11*8 99*30", true),
    ("short_spin_no_cid", "00 60 99*30", true),
    ("short_cut", "14 40 11*19", false),
];

/// The first byte is odd for a client's parameters, even for a server's.
const PARAMETERS: &[Seed] = &[
    ("empty", "01", true),
    ("numbers", "01 01 04 80007530 03 02 45c8 04 04 80100000 05 02 7fff 06 02 7fff 07 02 7fff", true),
    ("limits", "01 08 02 4064 09 01 03 0a 01 14 0b 02 7fff 0e 01 08 20 04 8000ffff", true),
    ("client", "01 0f 04 01020304 0c 00 6ab2 00", true),
    ("server_cids", "00 00 08 8394c8f03e515708 0f 08 f067a5502a4262b5 10 00", true),
    ("reset_token", "00 02 10 77*16", true),
    ("reset_token_from_client", "01 02 10 77*16", false),
    ("reset_token_short", "00 02 0f 77*15", false),
    ("preferred_address", "00 0d 2d 7f000001 01bb 00*15 01 01bb 04 01020304 77*16", true),
    ("preferred_address_none", "00 0d 2a 00*24 01 aa 77*16", true),
    ("preferred_address_no_cid", "00 0d 29 00*25 77*16", false),
    ("versions_client", "01 11 0c 00000001 6b3343cf 00000001", true),
    ("versions_client_not_offered", "01 11 08 00000001 6b3343cf", false),
    ("versions_server", "00 11 10 6b3343cf 00000001 6b3343cf 1a2a3a4a", true),
    ("versions_many", "00 11 4050 00000001 22*76", true),
    ("versions_zero", "00 11 08 00000001 00000000", false),
    ("reserved", "01 1b 03 010203 403a 00 ffffffffffffffff 01 00", true),
    ("reset_stream_at_and_min_ack_delay", "01 1d 00 c0000000ff04de1b 02 43e8", true),
    ("min_ack_delay_above_max_ack_delay", "01 c0000000ff04de1b 04 80010000", false),
    ("min_ack_delay_twice", "01 c0000000ff04de1b 01 05 c0000000ff04de1b 01 05", false),
    ("timestamps", "01 80007158 01 03", true),
    ("cibir", "01 5000 02 06 00", true),
    ("cibir_of_no_bytes", "01 5000 02 00 05", false),
    ("cibir_up_to_the_end", "00 5000 03 40c8 37", true),
    ("cibir_beyond_the_end", "00 5000 03 40c8 38", false),
    ("cibir_too_long", "00 5000 03 4100 00", false),
    ("no_encryption", "01 8000baad 00", true),
    ("no_encryption_with_a_value", "00 8000baad 01 00", false),
    ("no_encryption_twice", "00 8000baad 00 8000baad 00", false),
    ("timestamps_none", "00 80007158 01 00", true),
    ("timestamps_above_three", "00 80007158 01 04", false),
    ("timestamps_twice", "00 80007158 01 01 80007158 01 01", false),
    ("twice", "01 04 01 05 04 01 05", false),
    ("value_too_long", "01 01 02 0505", false),
    ("udp_payload_too_small", "01 03 02 44af", false),
    ("ack_delay_exponent_too_large", "01 0a 01 15", false),
    ("cut_short", "01 04 08 c0000000", false),
];

/// The targets, and their seeds with the bytes in hexadecimal. What is compared with quinn begins with the same seeds, so
/// that no parameter of ours is left to chance there.
fn targets() -> [Target; 4] {
    type Check = fn(&[u8]) -> bool;
    let targets: [(_, Check, _); 4] = [
        ("frames", checks::frames, FRAMES),
        ("header", checks::header, HEADERS),
        ("transport_parameters", checks::transport_parameters, PARAMETERS),
        ("quinn_transport_parameters", checks::transport_parameters, PARAMETERS),
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
    replay::surprises(&corpus(), &targets(), mutate::rounds());
}
