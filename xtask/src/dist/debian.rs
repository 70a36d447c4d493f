//! Debian packages, which `dpkg-deb` puts together.
//!
//! They have no scripts: nothing is started, nobody is added. `systemctl enable --now godwit.socket` is for whoever wants the
//! server to run.

use super::built::Built;
use super::needs;
use super::tree::{Part, Tree, files_of, read};
use crate::shell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of MsQuic that the library is compatible with.
const MSQUIC_VERSION: &str = "2.6.0";

/// A package, what it holds, and the built file whose needs are its own.
const PACKAGES: [(&str, Part, Option<&str>); 4] = [
    ("godwit", Part::Program, Some("godwit")),
    ("libgodwit0", Part::Library, Some("libgodwit_c.so")),
    ("libgodwit-dev", Part::Development, None),
    ("godwit-msquic", Part::Msquic, Some("libmsquic.so")),
];

/// Makes them in `folder`.
pub(super) fn make(built: &Built, folder: &Path) -> Result<Vec<PathBuf>, String> {
    PACKAGES.iter().map(|(name, part, binary)| package(built, folder, name, *part, *binary)).collect()
}

fn package(
    built: &Built,
    folder: &Path,
    name: &str,
    part: Part,
    binary: Option<&str>,
) -> Result<PathBuf, String> {
    let architecture = built.debian_architecture()?;
    let root = folder.join(name);
    let tree = Tree::new(built, root.join("usr"), &format!("lib/{}-linux-gnu", built.processor));
    tree.add(part)?;
    tree.write(&format!("share/doc/{name}/copyright"), &copyright()?)?;

    let depends = binary.map(|binary| needs::debian_packages(&built.file(binary))).transpose()?;
    let size = kibibytes(&root)?.to_string();
    let words = [
        ("ARCHITECTURE", architecture),
        ("INSTALLED_SIZE", &size),
        ("DEPENDS", depends.as_deref().unwrap_or_default()),
        ("MSQUIC_VERSION", MSQUIC_VERSION),
    ];
    let control = built.fill(&read(&format!("packaging/debian/{name}.control.in"))?, &words)?;
    let sums = shell::output(
        Command::new("sh")
            .args(["-c", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"])
            .current_dir(&root),
    )?;
    let outside = Tree::new(built, root.clone(), "lib");
    outside.write("DEBIAN/control", &control)?;
    outside.write("DEBIAN/md5sums", &sums)?;
    // The system's loader learns of a library by this.
    if matches!(part, Part::Library | Part::Msquic) {
        outside.write("DEBIAN/triggers", "activate-noawait ldconfig\n")?;
    }

    let file = folder.join(format!("{name}_{}_{architecture}.deb", built.version));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "-z4", "--build"]).arg(&root).arg(&file);
    shell::run(build.env("SOURCE_DATE_EPOCH", &built.time).stdout(std::process::Stdio::null()))?;
    fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(file)
}

/// What the files take, as Debian counts it.
fn kibibytes(root: &Path) -> Result<u64, String> {
    let mut sum = 0_u64;
    for file in files_of(root)? {
        let about = fs::symlink_metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        sum = sum.saturating_add(about.len().div_ceil(1024));
    }
    Ok(sum)
}

/// Who may do what with it, in Debian's format.
fn copyright() -> Result<String, String> {
    // The text of the other licence is on every Debian system.
    let lines: Vec<String> = read("LICENSE-MIT")?
        .lines()
        .map(|line| if line.trim().is_empty() { " .".to_owned() } else { format!(" {}", line.trim()) })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n\
         Copyright: The Godwit developers\nLicense: MIT or Apache-2.0\n\nLicense: MIT\n{}\n\nLicense: Apache-2.0\n \
         On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n",
        lines.join("\n")
    ))
}
