//! A copy of the working tree in which the code may be changed.

use crate::shell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The copy.
pub(super) struct Tree(PathBuf);

impl Tree {
    /// Copies what git knows, or would not ignore. What is there already and the same is left alone, so that it is not
    /// built again; what is there besides is removed.
    pub(super) fn copy(root: &Path, folder: &Path) -> Result<Self, String> {
        let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let files = shell::output(Command::new("git").args(listed).current_dir(root))?;
        let mut copied = HashSet::new();
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let (from, to) = (root.join(file), folder.join(file));
            // It may have been deleted.
            let Ok(bytes) = std::fs::read(&from) else { continue };
            copied.insert(to.clone());
            if std::fs::read(&to).is_ok_and(|there| there == bytes) {
                continue;
            }
            let written = to.parent().map_or(Ok(()), std::fs::create_dir_all);
            written.and_then(|()| std::fs::copy(&from, &to)).map_err(|error| format!("{file}: {error}"))?;
        }
        remove_others(folder, &copied).map_err(|error| format!("{}: {error}", folder.display()))?;
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

/// Removes all files below a folder but these.
fn remove_others(folder: &Path, kept: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_from_the_code_is_gone_from_its_copy() {
        let folder = std::env::temp_dir().join(format!("godwit-tree-{}", std::process::id()));
        let [kept, moved] = ["a/kept.rs", "a/b/moved.rs"].map(|file| folder.join(file));
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        for file in [&kept, &moved] {
            std::fs::write(file, "").unwrap();
        }
        remove_others(&folder, &HashSet::from([kept.clone()])).unwrap();
        assert!(kept.exists() && !moved.exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
