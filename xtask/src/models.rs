//! The models of `models/`: what threads do to one another, in every order.
//!
//! They are a workspace of their own, because what they need is needed by nothing else, and their target folder is ours.

use crate::shell::{self, cargo};

const FOLDER: &str = "models";

/// Tries them all.
pub(crate) fn run() -> Result<(), String> {
    let folder = shell::root().join(FOLDER);
    shell::run(cargo().args(["fmt", "--check"]).current_dir(&folder))?;
    let mut test = cargo();
    test.args(["test", "--quiet", "--locked"]).args(shell::profile()).current_dir(&folder);
    shell::run(test.env("CARGO_TARGET_DIR", shell::target_dir()?))
}
