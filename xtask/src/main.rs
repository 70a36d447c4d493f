//! The project's own chores, as `cargo xtask COMMAND`.
//!
//! `test` is the one test command. Every other command is one of its parts, to be run alone.

#![expect(clippy::disallowed_methods, reason = "a program that waits for other programs reads the clock")]

mod bench;
mod check;
mod coverage;
mod dashboard;
mod defences;
mod dist;
mod features;
mod flood;
mod fuzz;
mod gate;
mod grpc;
mod history;
mod interop;
mod models;
mod outside;
mod patience;
mod peers;
mod profile;
mod python;
mod shell;
mod test;
mod toolchains;
mod wan;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--full]     all tests; --full adds real peers, browsers and the long simulations
  check [--structure]
                    structure, dependencies, formatting, lints, documentation; --structure stops before what needs
                    the compiler
  api [--bless]     what each library shows to the world against its api.txt
  features          the library with features switched off, and with ring
  msrv              everything built with the oldest compiler that is promised, where it is installed
  miri [CRATES]     unit tests of the crates that call nothing outside Rust, under Miri
  loom              models of the places where threads wake one another, with every order of their steps
  coverage          how many lines of wire, recovery, transport and http3 their own tests run, by cargo llvm-cov; 92 % at
                    least
  advisories        the dependencies against published advisories, where cargo deny is installed
  package [--verify]
                    every crate as it would go to a registry; --verify builds each from its package
  dist [--out DIR | --check]
                    a tarball of program, libraries and headers, and Debian packages of the same, in target/packages;
                    --check makes them of what the tests build, and builds programs with what they hold
  gate              instruction and allocation counts against the checked-in baseline
  perf-baseline REASON
                    makes the counts of now the baseline of the gate, and prints a message for the commit
  wan [--smoke | --full | --bless [--seeds N]]
                    how much of 1230 emulated networks is used, and how long requests take, against the checked-in
                    baselines; --smoke is 60 networks with three controllers, --full also simulates those at full
                    length that are shortened
  bench [--rounds N] [--seconds S] [--only WORDS] [--scenario WORDS] [--cipher aes128|aes256] [--idle N] [--cross]
        [--syscalls] [--http] [--json FILE] [--programs DIR] [--build-only DIR]
                    godwit perf, and the polled API, beside quinn, s2n-quic, quiche, tquic, quic-go and TLS over TCP,
                    interleaved, 5 rounds of 2 s, as tables; only programs, or scenarios, whose names contain one of the
                    words, which are separated by commas; --cross also has Godwit at one end and another at the other;
                    --syscalls counts system calls in a run of its own; --http measures HTTP servers in place of all
                    that (docs/perf.md); --json writes all figures to a file; --build-only puts everything into a folder,
                    from which `DIR/xtask bench --programs DIR` measures without the source
  history --bench FILE
                    adds to perf/history what bench --json has measured of a commit, with the counts and the use of emulated
                    networks that the commit has checked in
  dashboard [--picture]
                    the pages of perf/history in target/dashboard; --picture takes docs/dashboard.png of the first
  profile SCENARIO  where a server's time goes, as a flame graph (SVG), whose file is named: download, upload, rps, hps,
                    http-h1, http-h2 or http-h3; by perf, or where that is missing by callgrind
  defences [WORDS]  takes each defence against a known attack out of the code, one at a time, and demands that its test
                    fails; only those whose names contain one of the words
  flood [WORDS] [--seconds N] [--count N] [--server NAMES]
                    what strangers do to godwit serve, on loopback, 20 s each, and what an honest client has of it
                    meanwhile, as a table; only those whose names contain one of the words. --server names servers that
                    get the same, separated by commas: godwit, quinn, quic-go, caddy, aioquic
  fuzz [TARGETS] [--seconds N] [--seed N] [--minimise]
                    the fuzz targets under libFuzzer, N seconds each (30), with their executions as a table; --minimise
                    takes what runs have found into the checked-in corpus, as far as it adds to it
  grpc              the tests of examples/grpc: services and clients of tonic on Godwit
  outside           the programs of examples/outside, built on what the libraries show and run against one another
  python [--wheel DIR]
                    the Python package: its wheel, built and installed into an environment of its own, and its tests there;
                    --wheel builds it as packages hold it, and puts it into the folder
  peers             install the peers that test --full talks to (pinned versions)
  peers --test [WORDS]
                    only the tests against them, or those whose name contains WORDS
  interop [--peer NAMES] [--case NAMES] [--role client|server] [--parallel N] [--times N]
                    the interop runner's cases against the peers, as a matrix; names are separated by commas,
                    the role is Godwit's";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test::run(test::Tier::Quick),
        ["test", "--full"] => test::run(test::Tier::Full),
        ["check"] => check::run(),
        ["check", "--structure"] => check::structure(),
        ["api"] => check::api::run(check::api::Mode::Compare),
        ["api", "--bless"] => check::api::run(check::api::Mode::Bless),
        ["features"] => features::test(),
        ["msrv"] => toolchains::oldest(),
        ["miri", words @ ..] => toolchains::miri(words),
        ["coverage"] => coverage::run(),
        ["loom"] => models::run(),
        ["advisories"] => toolchains::advisories(),
        ["package"] => toolchains::package(false),
        ["package", "--verify"] => toolchains::package(true),
        ["wan", words @ ..] => wan::run(words),
        ["bench", words @ ..] => bench::run(words),
        ["history", words @ ..] => history::run(words),
        ["dashboard", words @ ..] => dashboard::run(words),
        ["dist", "--check"] => dist::test(),
        ["dist", words @ ..] => dist::run(words),
        ["gate"] => gate::run(gate::Mode::Compare),
        ["perf-baseline"] => {
            Err("why? `cargo xtask perf-baseline REASON` makes the figures of now the baseline".into())
        }
        ["perf-baseline", reason @ ..] => gate::run(gate::Mode::Renew(&reason.join(" "))),
        ["defences", words @ ..] => defences::run(words),
        ["flood", words @ ..] => flood::run(words),
        ["fuzz", words @ ..] => fuzz::run(words),
        ["grpc"] => grpc::test(),
        ["outside"] => outside::run(),
        ["profile", words @ ..] => profile::run(words),
        ["python", words @ ..] => python::run(words),
        ["peers"] => peers::install(),
        ["peers", "--test", filter @ ..] => peers::test_matching(&filter.join(" ")),
        ["interop", words @ ..] => interop::run(words),
        _ => Err(format!("unknown command: {:?}\n{USAGE}", words.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
