//! Running other programs, and finding the project's root.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or(manifest.clone(), PathBuf::from)
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The profile to check and test with, as two words of a command line.
pub(crate) fn profile() -> [&'static str; 2] {
    let name = if std::env::var_os("CI").is_some() { "ci" } else { "dev" };
    ["--profile", name]
}

/// Where the programs are that a profile has built.
pub(crate) fn programs_of(profile: &str) -> Result<PathBuf, String> {
    Ok(target_dir()?.join(if profile == "dev" { "debug" } else { profile }))
}

/// Runs to the end with our own input and output; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    eprintln!("xtask: {}", describe(command));
    let status = command.status().map_err(|error| format!("cannot start {}: {error}", describe(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", describe(command))) }
}

/// Runs to the end and returns what it printed on its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start {}: {error}", describe(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} ended with {}\n{errors}", describe(command), output.status))
    }
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> Result<PathBuf, String> {
    let text = output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    folder.map(PathBuf::from).ok_or_else(|| "cargo metadata names no target directory".into())
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
