//! What packages are made of: programs and libraries that cargo has built, and what they are called elsewhere.

use crate::shell::{self, cargo};
use std::path::PathBuf;
use std::process::Command;

/// Crates whose results are packed.
const CRATES: [&str; 3] = ["godwit-cli", "godwit-c", "godwit-libmsquic"];

/// What was built, and from what.
pub(super) struct Built {
    /// The folder with the results.
    pub(super) folder: PathBuf,
    pub(super) version: String,
    /// As Rust names the processor.
    pub(super) processor: &'static str,
    /// Seconds since 1970: the time of the last commit.
    pub(super) time: String,
}

impl Built {
    /// Builds with this profile, for this machine.
    pub(super) fn with(profile: &str) -> Result<Built, String> {
        if !cfg!(target_os = "linux") {
            return Err("packages are made for Linux, on Linux".into());
        }
        let mut build = cargo();
        build.args(["build", "--quiet", "--locked", "--profile", profile]);
        for name in CRATES {
            build.args(["--package", name]);
        }
        shell::run(&mut build)?;
        let mut last = Command::new("git");
        last.args(["log", "-1", "--format=%ct"]).current_dir(shell::root());
        // In an unpacked archive there is no history.
        let time = shell::output(&mut last).map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned());
        Ok(Built {
            folder: shell::programs_of(profile)?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: std::env::consts::ARCH,
            time,
        })
    }

    /// A result by its name.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// As Debian names the processor.
    pub(super) fn debian_architecture(&self) -> Result<&'static str, String> {
        match self.processor {
            "x86_64" => Ok("amd64"),
            "aarch64" => Ok("arm64"),
            "riscv64" => Ok("riscv64"),
            other => Err(format!("what Debian calls the processor {other} is not known here")),
        }
    }

    /// Has a text's `@VERSION@` and whatever else there is of that kind filled in.
    pub(super) fn fill(&self, text: &str, words: &[(&str, &str)]) -> Result<String, String> {
        let minor: Vec<&str> = self.version.split('.').take(2).collect();
        let mut filled = text.replace("@VERSION@", &self.version).replace("@MAJOR_MINOR@", &minor.join("."));
        for (word, value) in words {
            filled = filled.replace(&format!("@{word}@"), value);
        }
        match filled.split('@').nth(1) {
            Some(word)
                if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') =>
            {
                Err(format!("nothing is known for @{word}@"))
            }
            _ => Ok(filled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_left_in_a_text() {
        let built =
            Built { folder: PathBuf::new(), version: "1.2.3".into(), processor: "x86_64", time: "0".into() };
        let filled = built.fill("@VERSION@ @MAJOR_MINOR@ @A@ x@localhost", &[("A", "b")]);
        assert_eq!(filled.as_deref(), Ok("1.2.3 1.2 b x@localhost"));
        assert!(built.fill("@OTHER_WORD@", &[]).unwrap_err().contains("OTHER_WORD"));
    }
}
