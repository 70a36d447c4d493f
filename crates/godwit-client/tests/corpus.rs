//! Plays the fuzzers' checked-in corpus, and inputs made of it by chance, through the checks of the fuzz targets.
//!
//! `GODWIT_WRITE_CORPUS=1 cargo test -p godwit-client --test corpus` writes the seeds anew.

#[path = "../../../fuzz/src/client.rs"]
#[expect(unreachable_pub, reason = "it is public where it stands")]
mod checks;
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

const ALT_SVC: &[Seed] = &[
    ("usual", "h3=\":443\"; ma=86400", true),
    ("clear", "clear", true),
    ("several", "h3=\"alt.example.com:8443\"; ma=3600; persist=1, h2=\":443\", h3-29=\":443\"", true),
    ("address", "h3=\"[2001:db8::1]:443\"", true),
    ("commas_in_quotes", "h3=\":443\"; x=\"a,b;c\\\"\"; ma=1, h2=\":80\"", true),
    ("spaces", " h3 = \"Example.ORG:1\" ;ma = \"7\" ; unknown ,, ", true),
    ("longest_age", "h3=\":1\"; ma=18446744073709551615", true),
    ("not_quoted", "h3=:443", false),
    ("no_port", "h3=\"example.com\"", false),
    ("port_zero", "h3=\":0\"", false),
    ("no_host", "h3=\"exa mple:443\"", false),
    ("age_is_no_number", "h3=\":443\"; ma=soon", false),
    ("quote_not_closed", "h3=\":443", false),
    ("quotes_in_the_protocol", "h\"3,h\"3=\":443\"", false),
    ("no_protocol", "=\":443\"", false),
];

/// A URL, and a reference on the next line.
const URLS: &[Seed] = &[
    ("usual", "https://example.com/a/b?c=d#e\n../x?y", true),
    ("port", "http://example.com:8080\n/x", true),
    ("address", "https://[2001:db8::1]:4433/x\n//192.0.2.1:1/y", true),
    ("ends_in_a_dot", "https://Example.COM.\n?q", true),
    ("letters_to_escape", "https://a_b.c/%20 \u{fc}\"{}\nd/./../e/..", true),
    ("another_scheme", "https://a/\nhttp://b/#f", true),
    ("reference_to_nothing", "https://a/b/c\n../../../..", true),
    ("mail", "https://a/\nmailto:b", false),
    ("no_scheme", "example.com", false),
    ("password", "https://user:secret@example.com/", false),
    ("no_host", "https:///path", false),
    ("port_too_large", "https://example.com:65536/", false),
    ("bracket_not_closed", "https://[::1/", false),
    ("label_too_long", "https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/", false),
];

/// The targets and their seeds.
fn targets() -> [Target; 2] {
    type Check = fn(&[u8]) -> bool;
    let targets: [(_, Check, _); 2] = [("alt_svc", checks::alt_svc, ALT_SVC), ("url", checks::url, URLS)];
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
fn the_seeds_are_understood_as_they_are_meant() {
    replay::seeds(&corpus(), &targets());
}

#[test]
fn what_is_made_of_the_corpus_holds_no_surprises() {
    replay::surprises(&corpus(), &targets(), mutate::rounds());
}
