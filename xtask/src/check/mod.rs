//! Everything about the code that can be checked without running it.

mod dependencies;
mod metadata;
mod size;

use crate::shell::{self, cargo};
use metadata::Workspace;

/// All static checks, the cheap ones first.
pub(crate) fn run() -> Result<(), String> {
    structure()?;
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    shell::run(cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    shell::run(
        cargo().args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// What is seen without a compiler: sizes, cycles, dependencies.
pub(crate) fn structure() -> Result<(), String> {
    let mut findings = size::findings()?;
    let workspace = Workspace::read()?;
    findings.extend(dependencies::findings(&workspace)?);
    if findings.is_empty() {
        eprintln!(
            "xtask: structure: no file, function or type too large, all dependencies point down"
        );
        return Ok(());
    }
    Err(format!("structure:\n  {}", findings.join("\n  ")))
}
