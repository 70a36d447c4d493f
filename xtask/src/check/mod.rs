//! Everything about the code that can be checked without running it.

pub(crate) mod api;
mod cycles;
mod deny;
mod dependencies;
mod manifests;
pub(crate) mod metadata;
mod modules;
mod size;

use crate::shell::{self, cargo};
use metadata::Workspace;
use modules::{Crate, Sources};
use std::path::{Path, PathBuf};

/// All static checks, the cheap ones first.
pub(crate) fn run() -> Result<(), String> {
    structure()?;
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet"];
    shell::run(cargo().args(clippy).args(shell::profile()).args(["--", "-D", "warnings"]))?;
    shell::run(
        cargo()
            .args(["doc", "--workspace", "--no-deps", "--quiet", "--all-features"])
            .args(shell::profile())
            .env("RUSTDOCFLAGS", "--cfg docsrs -D warnings"),
    )
}

/// What is seen without a compiler: sizes, cycles, dependencies.
pub(crate) fn structure() -> Result<(), String> {
    let mut findings = size::findings()?;
    let workspace = Workspace::read()?;
    findings.extend(dependencies::findings(&workspace)?);
    findings.extend(deny::findings()?);
    findings.extend(manifests::findings(&workspace, &sources)?);
    findings.extend(api::findings(&workspace, api::Mode::Compare)?);
    findings.extend(cycles::findings(&crates(&workspace)?));
    if findings.is_empty() {
        eprintln!(
            "xtask: structure: no file, function or type too large, no file cycles, all dependencies point down"
        );
        return Ok(());
    }
    Err(format!("structure:\n  {}", findings.join("\n  ")))
}

/// The modules of every library and program of ours, with the name of the package.
fn crates(workspace: &Workspace) -> Result<Vec<(String, Crate)>, String> {
    let mut crates = Vec::new();
    for package in &workspace.packages {
        let folder = package.folder.join("src");
        let sources = sources(&folder)?;
        for root in ["lib.rs", "main.rs"].into_iter().filter(|root| sources.contains_key(Path::new(root))) {
            let read = Crate::read(&sources, root).map_err(|why| format!("{}: {why}", package.name))?;
            crates.push((package.name.clone(), read));
        }
    }
    Ok(crates)
}

/// The text of every source file below a folder.
fn sources(folder: &Path) -> Result<Sources, String> {
    let mut files = Vec::new();
    size::collect(folder, &mut files);
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok((file.strip_prefix(folder).unwrap_or(&file).to_path_buf(), text))
    };
    files.into_iter().map(read).collect()
}
