//! A copy of the working tree in which the code may be changed.

use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The copy.
pub(super) struct Tree(PathBuf);

impl Tree {
    /// Copies what git knows, or would not ignore. What is there already and the same is left alone, so that it is not
    /// built again.
    pub(super) fn copy(root: &Path, folder: &Path) -> Result<Self, String> {
        let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let files = shell::output(Command::new("git").args(listed).current_dir(root))?;
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let (from, to) = (root.join(file), folder.join(file));
            // It may have been deleted.
            let Ok(bytes) = std::fs::read(&from) else { continue };
            if std::fs::read(&to).is_ok_and(|there| there == bytes) {
                continue;
            }
            let written = to.parent().map_or(Ok(()), std::fs::create_dir_all);
            written.and_then(|()| std::fs::copy(&from, &to)).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok(Tree(folder.to_owned()))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Does something while `file` says `new` in place of `old`, which is there once.
    pub(super) fn with<T>(
        &self,
        file: &str,
        (old, new): (&str, &str),
        act: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let path = super::at(&self.0, file);
        let failed = |error: std::io::Error| format!("{file}: {error}");
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        std::fs::write(&path, text.replacen(old, new, 1)).map_err(failed)?;
        let done = act();
        std::fs::write(&path, text).map_err(failed)?;
        done
    }
}
