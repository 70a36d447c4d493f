//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-front --test corpus` writes the seeds anew.

#[path = "../../../fuzz/src/front.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod checks;
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

/// Name, text, and whether it is understood.
type Seed = (&'static str, &'static str, bool);

const CONFIG: &[Seed] = &[
    ("site", "[[site]]\nhosts = \"*\"\n[[site.route]]\nrespond = { body = \"hello\" }\n", true),
    (
        "limits",
        "listen = [\"127.0.0.1:1443\", \":2443\"]\nredirect_http = \":1080\"\nmetrics = \"127.0.0.1:9090\"\nshards = 3\n\
         drain = \"0s\"\n[access_log]\nfile = \"-\"\nformat = \"combined\"\nclient_address = \"none\"\n[limits]\n\
         connections = 7\nconnections_per_address = 2\nidle_connections = 3\nrequests_per_connection = 9\nheader_size = 10000\n\
         body_size = 5\nheader_timeout = \"1s\"\nidle_timeout = \"2s\"\nsend_timeout = \"3s\"\n\
         minimum_rate = \"none\"\n[[site]]\nhosts = \"*\"\n[[site.route]]\nrespond = { body = \"hello\" }\n",
        true,
    ),
    (
        "upstream",
        "[[site]]\nhosts = [\"a.test\", \"*.b.test\"]\ncompress = \"br\"\nadvertise = \"0.5%\"\n[[site.route]]\n\
         path = \"/api/*\"\nproxy = \"http://127.0.0.1:3000\"\n[[site.route]]\nfolder = \".\"\n",
        false,
    ),
    ("nothing", "", false),
    ("unknown_key", "lisen = \":443\"\n", false),
    ("twice", "drain = \"1s\"\ndrain = \"1s\"\n", false),
    ("number_too_large", "shards = 99999999999999999999\n", false),
    ("bracket_not_closed", "[[site]\nhosts = [", false),
    ("control_characters", "\u{1b}[31m = \"\\u001b]0;x\\u0007\"\n\"\\u001b\" = 1\n", false),
    ("deep", "a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", false),
];

const ADDRESSES: &[Seed] = &[
    ("port", "443", true),
    ("all", ":443", true),
    ("v6", "[::1]:443", true),
    ("v4", "127.0.0.1:443", true),
    ("url", "http://127.0.0.1:3000", true),
    ("url_of_a_name", "https://Example.COM", true),
    ("port_too_large", "65536", false),
    ("no_scheme", "localhost/x", false),
    ("user", "http://user:secret@a/", false),
];

/// The targets and their seeds.
fn targets() -> [Target; 2] {
    type Check = fn(&[u8]) -> bool;
    let targets: [(_, Check, _); 2] =
        [("config", checks::config, CONFIG), ("addresses", checks::addresses, ADDRESSES)];
    targets.map(|(name, check, seeds)| {
        let seeds =
            seeds.iter().map(|(name, text, understood)| (*name, text.as_bytes().to_vec(), *understood));
        Target { name, check, seeds: seeds.collect() }
    })
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
