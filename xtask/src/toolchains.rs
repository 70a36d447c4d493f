//! Chores that need more than the compiler that everything is built with: the oldest one that will do, Miri, `cargo
//! deny`, and what a registry would get.

use crate::check::metadata::Workspace;
use crate::shell::{self, cargo};
use std::process::Command;

/// Crates whose tests Miri can run: they call nothing outside Rust.
const FOR_MIRI: [&str; 4] = ["godwit-base", "godwit-wire", "godwit-link", "godwit-recovery"];
/// Those of them that take no more than a minute or so.
const SHORT_UNDER_MIRI: [&str; 2] = ["godwit-base", "godwit-wire"];

/// Builds everything with the oldest compiler that the manifests promise. Where that is the one that builds
/// everything else, there is nothing more to do.
pub(crate) fn oldest() -> Result<(), String> {
    let workspace = Workspace::read()?;
    let promised = workspace.rust_version().ok_or("no package promises a rust-version")?;
    let now = shell::output(cargo().arg("--version"))?;
    if now.split_whitespace().nth(1).is_some_and(|version| is_release_of(version, promised)) {
        eprintln!("xtask: the oldest compiler, {promised}, is the one that builds everything");
        return Ok(());
    }
    let Some(toolchain) = toolchains()?.into_iter().find(|name| is_release_of(name, promised)) else {
        eprintln!(
            "xtask: Rust {promised} is not installed (rustup toolchain install {promised}): not checked"
        );
        return Ok(());
    };
    let folder = shell::target_dir()?.join("oldest");
    let mut command = with_toolchain(&toolchain);
    command.args(["check", "--workspace", "--quiet", "--target-dir"]).arg(folder);
    shell::run(&mut command)
}

/// Runs the unit tests of the crates that allow it under Miri, with one case of each property.
pub(crate) fn miri(filter: &[&str]) -> Result<(), String> {
    let nightly = nightly_with_miri()?;
    let folder = shell::target_dir()?.join("miri");
    for name in FOR_MIRI.iter().filter(|name| filter.is_empty() || filter.contains(name)) {
        let mut command = with_toolchain(&nightly);
        command.args(["miri", "test", "--quiet", "--lib", "-p", name, "--target-dir"]).arg(&folder);
        // proptest looks for cases that failed before in files. What it draws is the same in every run, by its
        // cheapest generator: it would spend most of the time on the usual one.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "1");
        command.env("PROPTEST_RNG_ALGORITHM", "xs").env("PROPTEST_RNG_SEED", "1");
        shell::run(&mut command)?;
    }
    Ok(())
}

/// The same for the crates that do not take long, where Miri is installed; elsewhere nothing is checked.
pub(crate) fn miri_if_installed() -> Result<(), String> {
    match nightly_with_miri() {
        Ok(_) => miri(&SHORT_UNDER_MIRI),
        Err(why) => {
            eprintln!("xtask: {}: not checked", why.lines().next().unwrap_or_default());
            Ok(())
        }
    }
}

/// The nightly toolchain that has Miri, or in one line what to do to get it, and below why it is asked for.
fn nightly_with_miri() -> Result<String, String> {
    let installed = toolchains()?.into_iter().find(|name| name.starts_with("nightly"));
    let nightly = installed.ok_or(
        "Miri needs a nightly compiler (rustup toolchain install nightly --component miri --component rust-src)",
    )?;
    shell::output(with_toolchain(&nightly).args(["miri", "--version"])).map_err(|why| {
        format!("Miri is not installed (rustup component add miri rust-src --toolchain {nightly})\n{why}")
    })?;
    Ok(nightly)
}

/// Holds the dependencies against the published advisories, and all else that `deny.toml` says, where `cargo deny` is
/// installed; elsewhere no advisory is looked at. What needs no download is checked with the structure, everywhere.
pub(crate) fn advisories() -> Result<(), String> {
    if shell::output(cargo().args(["deny", "--version"])).is_err() {
        eprintln!(
            "xtask: cargo deny is not installed (cargo install cargo-deny): advisories are not checked"
        );
        return Ok(());
    }
    shell::run(cargo().args(["deny", "--workspace", "check"]))
}

/// Packs every published crate as it would go to a registry; `verify` also builds each from its package.
pub(crate) fn package(verify: bool) -> Result<(), String> {
    let mut command = cargo();
    command.args(["package", "--workspace", "--allow-dirty", "--quiet"]);
    for package in Workspace::read()?.packages.iter().filter(|package| !package.is_published) {
        command.args(["--exclude", &package.name]);
    }
    if !verify {
        command.arg("--no-verify");
    }
    shell::run(&mut command)
}

/// Whether a version or the name of a toolchain (`1.95.0-x86_64-…`) is a release of `1.95`.
fn is_release_of(version: &str, promised: &str) -> bool {
    version.strip_prefix(promised).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn toolchains() -> Result<Vec<String>, String> {
    let listed = shell::output(Command::new("rustup").args(["toolchain", "list"]))?;
    Ok(listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn with_toolchain(name: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", name, "cargo"]).current_dir(shell::root());
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    command
}

#[cfg(test)]
mod tests {
    use super::is_release_of;

    #[test]
    fn releases_are_told_by_their_numbers() {
        assert!(is_release_of("1.95.0", "1.95") && is_release_of("1.95.0-x86_64-unknown-linux-gnu", "1.95"));
        assert!(!is_release_of("1.950.0", "1.95") && !is_release_of("1.96.0", "1.95"));
    }
}
