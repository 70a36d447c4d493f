//! Everything about the code that can be checked without running it.

pub(crate) mod api;
mod cycles;
mod deny;
mod dependencies;
mod error_codes;
mod items;
mod manifests;
pub(crate) mod metadata;
mod modules;
mod order;
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
    findings.extend(crate::defences::findings()?);
    findings.extend(error_codes::findings(&shell::root())?);
    let workspace = Workspace::read()?;
    findings.extend(dependencies::findings(&workspace)?);
    findings.extend(deny::findings()?);
    findings.extend(manifests::findings(&workspace, &sources)?);
    findings.extend(api::findings(&workspace, api::Mode::Compare)?);
    let crates = crates(&workspace)?;
    findings.extend(
        crates.iter().flat_map(|one| order::findings(&one.name, one.root, &one.sources, &one.modules)),
    );
    findings.extend(cycles::findings(crates.iter().map(|one| (one.name.as_str(), &one.modules))));
    if findings.is_empty() {
        eprintln!(
            "xtask: structure: no file, function or type too large, no file cycles, all dependencies point down"
        );
        return Ok(());
    }
    Err(format!("structure:\n  {}", findings.join("\n  ")))
}

/// A library or program of ours.
struct Read {
    /// The name of its package.
    name: String,
    /// Its first file.
    root: &'static str,
    sources: Sources,
    modules: Crate,
}

/// Every library and program of ours.
fn crates(workspace: &Workspace) -> Result<Vec<Read>, String> {
    let mut crates = Vec::new();
    for package in &workspace.packages {
        let sources = sources(&package.folder.join("src"))?;
        for root in ["lib.rs", "main.rs"].into_iter().filter(|root| sources.contains_key(Path::new(root))) {
            let modules = Crate::read(&sources, root).map_err(|why| format!("{}: {why}", package.name))?;
            crates.push(Read { name: package.name.clone(), root, sources: sources.clone(), modules });
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
