//! Which files a package has, and where.
//!
//! A [`Tree`] is a folder in which an installation is laid out: `bin`, `lib` and so on below a prefix. Debian has libraries
//! of several processors beside one another, in a folder each; a tarball has them in `lib`.

use super::built::Built;
use super::needs;
use crate::shell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shells with completions, and where these are looked for under `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/godwit"),
    ("zsh", "share/zsh/vendor-completions/_godwit"),
    ("fish", "share/fish/vendor_completions.d/godwit.fish"),
];

/// A folder with what is to be installed.
pub(super) struct Tree<'a> {
    built: &'a Built,
    /// What `bin` is in.
    prefix: PathBuf,
    /// Where libraries are below the prefix.
    lib: String,
}

/// What can be installed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The program, its manual, completions, and units for systemd.
    Program,
    /// The shared library for C and C++.
    Library,
    /// Headers, the static library, and what build systems read.
    Development,
    /// The library in MsQuic's place.
    Msquic,
}

impl<'a> Tree<'a> {
    pub(super) fn new(built: &'a Built, prefix: PathBuf, lib: &str) -> Tree<'a> {
        Tree { built, prefix, lib: lib.to_owned() }
    }

    /// Adds the files of a part.
    pub(super) fn add(&self, part: Part) -> Result<(), String> {
        match part {
            Part::Program => self.add_program(),
            Part::Library => self.copy_binary("libgodwit_c.so", &self.in_lib("libgodwit.so.0")),
            Part::Development => self.add_development(),
            Part::Msquic => self.copy_binary("libmsquic.so", &self.in_lib("libmsquic.so.2")),
        }
    }

    /// Adds a text file.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let to = self.place(path)?;
        fs::write(&to, text).map_err(|error| format!("{}: {error}", to.display()))?;
        set_mode(&to, 0o644)
    }

    /// Adds a file of the source.
    pub(super) fn copy_source(&self, from: &str, path: &str) -> Result<(), String> {
        self.copy(&shell::root().join(from), path, 0o644)
    }

    fn add_program(&self) -> Result<(), String> {
        self.copy_binary("godwit", "bin/godwit")?;
        let program = self.built.file("godwit");
        let pages = self.place("share/man/man1/godwit.1")?;
        let folder = pages.parent().ok_or("a page without a folder")?;
        shell::run(Command::new(&program).arg("man").arg(folder))?;
        for page in files_of(folder)? {
            set_mode(&page, 0o644)?;
        }
        for (shell_name, path) in COMPLETIONS {
            let text = shell::output(Command::new(&program).args(["completions", shell_name]))?;
            self.write(path, &text)?;
        }
        let unit = read("packaging/godwit.service")?;
        let placed = unit.replace("/usr/local/bin/godwit", "/usr/bin/godwit");
        self.write("lib/systemd/system/godwit.service", &placed)?;
        self.copy_source("packaging/godwit.socket", "lib/systemd/system/godwit.socket")
    }

    fn add_development(&self) -> Result<(), String> {
        let headers = shell::root().join("crates/godwit-c/include");
        for header in files_of(&headers)? {
            let name = header.strip_prefix(&headers).map_err(|error| error.to_string())?;
            self.copy(&header, &format!("include/{}", name.display()), 0o644)?;
        }
        self.copy_binary("libgodwit_c.a", &self.in_lib("libgodwit.a"))?;
        let link = self.place(&self.in_lib("libgodwit.so"))?;
        symlink("libgodwit.so.0", &link).map_err(|error| format!("{}: {error}", link.display()))?;

        let system = needs::system_libraries(&self.built.file("libgodwit_c.so"))?;
        let options: Vec<String> = system.iter().map(|name| format!("-l{name}")).collect();
        // The prefix as seen from a folder that is beside the libraries.
        let up = vec![".."; self.lib.split('/').count().saturating_add(1)].join("/");
        for (from, to, libraries) in [
            ("packaging/godwit.pc.in", "pkgconfig/godwit.pc", options.join(" ")),
            ("packaging/cmake/GodwitConfig.cmake.in", "cmake/Godwit/GodwitConfig.cmake", system.join(";")),
            (
                "packaging/cmake/GodwitConfigVersion.cmake.in",
                "cmake/Godwit/GodwitConfigVersion.cmake",
                String::new(),
            ),
        ] {
            let words = [("UP", up.as_str()), ("LIB", &self.lib), ("SYSTEM_LIBRARIES", &libraries)];
            self.write(&self.in_lib(to), &self.built.fill(&read(from)?, &words)?)?;
        }
        Ok(())
    }

    fn in_lib(&self, name: &str) -> String {
        format!("{}/{name}", self.lib)
    }

    fn copy_binary(&self, name: &str, path: &str) -> Result<(), String> {
        let mode = if path.starts_with("bin/") { 0o755 } else { 0o644 };
        self.copy(&self.built.file(name), path, mode)
    }

    fn copy(&self, from: &Path, path: &str, mode: u32) -> Result<(), String> {
        let to = self.place(path)?;
        fs::copy(from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
        set_mode(&to, mode)
    }

    /// Where a file is to be, in a folder that there is from now on.
    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let place = self.prefix.join(path);
        let folder = place.parent().ok_or("a file without a folder")?;
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(place)
    }
}

/// A file of the source.
pub(super) fn read(path: &str) -> Result<String, String> {
    let path = shell::root().join(path);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// All files below a folder, in order.
pub(super) fn files_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        entries.push(entry.map_err(problem)?.path());
    }
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        if entry.is_dir() { files.extend(files_of(&entry)?) } else { files.push(entry) }
    }
    Ok(files)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{}: {error}", path.display()))
}
