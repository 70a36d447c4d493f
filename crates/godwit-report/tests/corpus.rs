//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-report --test corpus` writes the seeds anew.

#[path = "../../../fuzz/src/report.rs"]
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

/// Name, text, and whether it is understood.
type Seed = (&'static str, &'static str, bool);

const ACCESS_LOGS: &[Seed] = &[
    (
        "usual",
        r#"{"time":"2026-11-21T23:21:41.123Z","client":"192.0.2.7:5000","family":"ipv4","protocol":"h3","method":"GET","host":"a.example","path":"/a?b","status":200,"request":1,"tls":"full","response_bytes":1234,"first_byte_ms":1.25,"last_byte_ms":3.5,"delivered_ms":20.125,"outcome":"ok"}"#,
        true,
    ),
    (
        "two_lines",
        "{\"time\":\"2026-11-21T00:00:00Z\",\"protocol\":\"h2\",\"status\":404,\"why_not_h3\":\"x\",\"user\":\"me\"}\n{\"time\":\"2026-11-21T23:59:59Z\",\"protocol\":\"http/1.1\",\"status\":101,\"upstream_ms\":0}",
        true,
    ),
    (
        "odd_strings",
        r#"{"path":"\u00e9\ud800\"\\\/\b","time":"2026-11-21T23:21:41Z","protocol":"h3","status":200,"client":"[2001:db8::1]:1"}"#,
        true,
    ),
    (
        "unknown_members",
        r#"{"x":{"y":[1,-2.5e3,true,null,{"z":""}]},"time":"2026-11-21T23:21:41Z","protocol":"h3","status":200}"#,
        true,
    ),
    ("never_answered", r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3","outcome":"gone"}"#, true),
    ("no_status", r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3"}"#, false),
    ("cut", r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3","sta"#, false),
    ("nested_deeply", r#"{"x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["#, false),
    ("largest", r#"{"time":"9999-99-99T99:99:99","protocol":"h3","status":65536}"#, false),
    ("not_json", "127.0.0.1 - - \"GET / HTTP/1.1\" 200", false),
];

const QLOGS: &[Seed] = &[
    (
        "usual",
        "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"serialization_format\":\"application/qlog+json-seq\"}\n\u{1e}{\"time\":0.5,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_number\":1}}}\n\u{1e}{\"time\":1.5,\"name\":\"http:frame_parsed\",\"data\":{}}\n",
        true,
    ),
    (
        "deltas",
        "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"common_fields\":{\"time_format\":\"relative_to_previous_event\"}}}\n\u{1e}{\"time\":1e3,\"name\":\"recovery:metrics_updated\",\"data\":{\"smoothed_rtt\":20}}\n",
        true,
    ),
    (
        "since_the_epoch",
        "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"common_fields\":{\"reference_time\":{\"clock_type\":\"system\"}}}}\n\u{1e}{\"time\":1780000000000.25,\"name\":\"quic:a\"}\n",
        true,
    ),
    ("cut_off", "\u{1e}{\"qlog_format\":\"JSON-SEQ\"}\n\u{1e}{\"time\":1,\"name\":\"qui", false),
    ("no_time", "\u{1e}{\"qlog_format\":\"JSON-SEQ\"}\n\u{1e}{\"name\":\"quic:a\"}\n", false),
    (
        "impossible_time",
        "\u{1e}{\"qlog_format\":\"JSON-SEQ\"}\n\u{1e}{\"time\":1e300,\"name\":\"quic:a\"}\n",
        false,
    ),
    ("another_format", "\u{1e}{\"qlog_format\":\"JSON\"}\n", false),
    ("empty", "", false),
];

/// In hexadecimal.
const SKETCHES: &[Seed] = &[
    ("empty", "00", true),
    ("one", "01 05 01", true),
    ("several", "03 00 01 0a 07 20 ac02", true),
    ("count_of_zero", "01 05 00", false),
    ("counts_without_end", "02 05 ff*9 01 01 ff*9 01", true),
    ("cut", "03 00 01 0a", false),
    ("beyond_the_last_bin", "01 ffffff7f 01", false),
    ("more_behind", "01 05 01 00", false),
    ("endless_integer", "ff*12", false),
];

fn targets() -> [Target; 3] {
    type Check = fn(&[u8]) -> bool;
    let texts = |seeds: &'static [Seed]| {
        seeds.iter().map(|(name, text, understood)| (*name, text.as_bytes().to_vec(), *understood)).collect()
    };
    let sketches =
        SKETCHES.iter().map(|(name, text, understood)| (*name, hex::bytes(text), *understood)).collect();
    let targets: [(_, Check, _); 3] = [
        ("access_log", checks::access_log, texts(ACCESS_LOGS)),
        ("qlog", checks::qlog, texts(QLOGS)),
        ("sketch", checks::sketch, sketches),
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
