//! The library with features switched off, and with the other library of cryptography. The other stages cannot see
//! that: where the whole workspace is built, every feature that any crate wants is on.

use crate::shell::{self, cargo};

/// What of `godwit` is built beside its default features: the rows of the table in its README.
const PARTS: [&str; 3] = ["tokio", "hand-over", "http3"];

/// The crates whose tests run with ring: what differs, and all of the library end to end in a program that has no
/// runtime.
const WITH_RING: [&str; 2] = ["godwit-tls", "godwit-polled-tests"];

/// What must not be there with ring.
const AWS_LC: &str = "aws-lc-sys";

/// Tests with ring, and builds every part of the library with it.
pub(crate) fn test() -> Result<(), String> {
    for program in ["godwit-polled-tests", "godwit-cli"] {
        without_aws_lc(program)?;
    }
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--no-default-features", "--features", "ring"]).args(shell::profile());
    for name in WITH_RING {
        tests.args(["--package", name]);
    }
    shell::run(&mut tests)?;
    for part in PARTS {
        let features = format!("ring,{part}");
        let mut lints = cargo();
        lints.args([
            "clippy",
            "--quiet",
            "--package",
            "godwit",
            "--no-default-features",
            "--features",
            &features,
        ]);
        shell::run(lints.args(shell::profile()).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// Whether a crate with ring does without the default library.
fn without_aws_lc(program: &str) -> Result<(), String> {
    let features = ["--no-default-features", "--features", "ring"];
    let tree = shell::output(
        cargo().args(["tree", "--quiet", "--package", program, "--prefix", "none"]).args(features),
    )?;
    match tree.lines().find(|line| line.starts_with(AWS_LC)) {
        Some(_) => Err(format!("{program} with ring is built with {AWS_LC} as well: cargo tree -i {AWS_LC}")),
        None => Ok(()),
    }
}
