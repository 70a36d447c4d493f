//! The folder that is served and the one that is filled. Names come from the other end and stay within them.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use crate::Error;
use godwit_text::plain_error as plain;

/// The file that a path means, if there is one.
pub(super) fn open(root: &Path, path: &str) -> Option<File> {
    let file = File::open(root.join(inside(path)?)).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// A path as one below a folder; none if it would lead elsewhere.
fn inside(path: &str) -> Option<&Path> {
    let relative = Path::new(path.trim_start_matches('/'));
    relative.components().all(|part| matches!(part, Component::Normal(_))).then_some(relative)
}

/// Makes the file for what a URL's path gives, under the last part of the path.
pub(super) fn create(folder: &Path, path: &str) -> Result<File, Error> {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("index.html");
    let place: PathBuf = folder.join(name);
    File::create(&place).map_err(|error| {
        Error::file("cannot make", &place, plain(&error), "give a folder that can be written")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_served() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("www")).unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        std::fs::write(folder.path().join("www/file"), "x").unwrap();
        let root = folder.path().join("www");
        assert!(open(&root, "/file").is_some());
        for path in ["/../secret", "/./../secret", "/", "", "/missing", "//../secret"] {
            assert!(open(&root, path).is_none(), "{path}");
        }
    }
}
