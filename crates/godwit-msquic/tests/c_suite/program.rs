//! The programs in C, compiled with the system's compiler, and the library that they load.

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// The cases, `*.c` of this folder.
    Suite,
    /// The caller without sense, in `random`.
    Random,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Suite => "c_suite",
            Self::Random => "c_random",
        }
    }

    fn sources(self) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c_suite");
        let folder = match self {
            Self::Suite => folder,
            Self::Random => folder.join("random"),
        };
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut sources: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|ending| ending == "c")).collect();
        sources.sort();
        sources
    }

    /// Compiles into a folder; nothing where there is no compiler.
    pub(crate) fn compile(self, into: &Path) -> Option<PathBuf> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let built = into.join(self.name());
        let mut command = Command::new(&compiler);
        command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I"]);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
        if let Ok(sanitizers) = std::env::var("GODWIT_SUITE_SANITIZE") {
            command.arg(format!("-fsanitize={sanitizers}")).arg("-fno-omit-frame-pointer");
        }
        let output = command.args(self.sources()).arg("-o").arg(&built).args(["-ldl", "-lpthread"]).output();
        let Ok(output) = output else {
            eprintln!("SKIPPED: there is no C compiler {compiler:?}, so that no case was run");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(built)
    }
}

/// The library to test, or what to do to have one.
pub(crate) fn library() -> Result<PathBuf, String> {
    let (path, why) = match std::env::var_os("GODWIT_MSQUIC_LIBRARY") {
        Some(named) => (PathBuf::from(named), "GODWIT_MSQUIC_LIBRARY names it"),
        None => (beside_this_test(), "GODWIT_MSQUIC_LIBRARY is not set"),
    };
    if path.is_file() {
        return path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    }
    Err(format!(
        "there is no library {} ({why}): build it with `cargo build -p godwit-libmsquic` and the profile of this test",
        path.display()
    ))
}

/// `target/PROFILE/libmsquic.so`; tests are in `target/PROFILE/deps`.
fn beside_this_test() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap_or(Path::new("")).join("libmsquic.so")
}
