//! `cargo xtask dist`: the program and the libraries as people install them.
//!
//! Builds them, and makes a tarball that works wherever it is unpacked, and Debian packages where `dpkg-deb` is there:
//! `godwit` (the program), `libgodwit0` and `libgodwit-dev` (C and C++), `godwit-msquic` (the library in MsQuic's place).
//! What is in which is said in [`tree`]. All files bear the time of the last commit, so that the same source with the same
//! compiler gives the same packages.

mod built;
mod check;
mod debian;
mod needs;
mod tarball;
mod tree;

use crate::shell;
use built::Built;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile that packages are built with.
const PROFILE: &str = "dist";

/// Packages of what the profile of tests builds, and whether a program can be built with what they hold.
pub(crate) fn test() -> Result<(), String> {
    let [_, profile] = shell::profile();
    let folder = shell::target_dir()?.join("packages-of-tests");
    let built = Built::with(profile)?;
    make(&built, &folder)?;
    check::run(&built, &folder)
}

/// `cargo xtask dist [--out DIR]`.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let folder = match words {
        [] => shell::target_dir()?.join("packages"),
        ["--out", folder] => PathBuf::from(folder),
        _ => return Err("usage: cargo xtask dist [--out DIR]".into()),
    };
    let built = Built::with(PROFILE)?;
    for package in make(&built, &folder)? {
        println!("{}", package.display());
    }
    Ok(())
}

/// Puts all packages into an empty folder.
fn make(built: &Built, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(problem)?;
    }
    std::fs::create_dir_all(folder).map_err(problem)?;
    let mut packages = vec![tarball::make(built, folder)?];
    if Command::new("dpkg-deb").arg("--version").output().is_ok_and(|output| output.status.success()) {
        packages.extend(debian::make(built, folder)?);
    } else {
        eprintln!("xtask: dpkg-deb is not installed: no Debian packages");
    }
    Ok(packages)
}
