//! Everything in one archive, to be unpacked wherever it is wanted.

use super::built::Built;
use super::tree::{Part, Tree};
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Texts that come with it.
const TEXTS: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "crates/godwit-msquic/README.md",
];

/// Makes it in `folder`; its files are in a folder of its own name.
pub(super) fn make(built: &Built, folder: &Path) -> Result<PathBuf, String> {
    let name = format!("godwit-{}-{}-linux", built.version, built.processor);
    let tree = Tree::new(built, folder.join(&name), "lib");
    for part in [Part::Program, Part::Library, Part::Development, Part::Msquic] {
        tree.add(part)?;
    }
    for text in TEXTS {
        let name = if text.contains("msquic") { "msquic.md" } else { text };
        tree.copy_source(text, &format!("share/doc/godwit/{name}"))?;
    }
    let file = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", built.time)).args(["--use-compress-program=gzip -n"]);
    tar.arg("--create").arg("--file").arg(&file).arg("--directory").arg(folder).arg(&name);
    shell::run(&mut tar)?;
    Ok(file)
}
