//! From a URL's path to a file below the folder, and never to one outside.
//!
//! A path is refused (as if nothing were there) when a segment is `..`, hides a slash, a backslash, a NUL or
//! bytes that are not UTF-8 behind percent signs, or begins with a dot (`.git`, `.env`), except `.well-known`.
//! Symbolic links are followed as long as they end inside the folder.

use std::borrow::Cow;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

/// What lies at a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its canonical path.
    File(PathBuf),
    /// A folder, asked for without the slash at the end.
    Folder,
    Nothing,
}

/// The file name relative to the folder, and whether the path ends with a slash; `None` for refused paths.
pub(super) fn relative(path: &str) -> Option<(PathBuf, bool)> {
    let mut relative = PathBuf::new();
    let mut segments = 0_usize;
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let name = decode(segment)?;
        let hidden = name.starts_with('.') && !(segments == 0 && name == ".well-known");
        if hidden || name.contains(['/', '\\', '\0']) || (cfg!(windows) && name.contains(':')) {
            return None;
        }
        relative.push(name);
        segments += 1;
    }
    Some((relative, path.ends_with('/') || segments == 0))
}

/// Looks at the disk; where a folder is asked for, for the first of the `index` names. `root` is canonical. Blocks.
///
/// # Errors
/// If the disk cannot be asked: not because there is nothing.
pub(super) fn look(root: &Path, relative: &Path, slash: bool, index: &[String]) -> io::Result<Place> {
    let path = root.join(relative);
    if slash {
        for name in index {
            if let Some(file) = file_inside(root, &path.join(name))? {
                return Ok(Place::File(file));
            }
        }
        return Ok(Place::Nothing);
    }
    match inside(root, &path)? {
        Some((canonical, metadata)) if metadata.is_file() => Ok(Place::File(canonical)),
        Some((_, metadata)) if metadata.is_dir() => Ok(Place::Folder),
        // Neither a device nor a pipe is a page: opening one could block for ever.
        _ => Ok(Place::Nothing),
    }
}

/// The canonical path of a file inside `root`, if there is one. Blocks.
pub(super) fn file_inside(root: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    Ok(inside(root, path)?.filter(|(_, metadata)| metadata.is_file()).map(|(canonical, _)| canonical))
}

fn inside(root: &Path, path: &Path) -> io::Result<Option<(PathBuf, Metadata)>> {
    let look = || {
        let canonical = path.canonicalize()?;
        let metadata = canonical.metadata()?;
        Ok((canonical, metadata))
    };
    match look() {
        Ok((canonical, metadata)) => Ok(canonical.starts_with(root).then_some((canonical, metadata))),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error only says that there is nothing, or nothing for us.
pub(super) fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::PermissionDenied
            | Kind::NotADirectory
            | Kind::InvalidFilename
            | Kind::InvalidInput
    ) || is_loop(error)
}

/// Links that lead to each other.
fn is_loop(error: &io::Error) -> bool {
    cfg!(unix) && error.raw_os_error() == Some(libc::ELOOP)
}

/// Undoes percent-encoding; `None` if it is broken or the result is not UTF-8.
fn decode(segment: &str) -> Option<String> {
    let is_escape = |after: &str| {
        after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let whole = segment.split('%').skip(1).all(is_escape);
    whole.then(|| percent_decode_str(segment).decode_utf8().ok().map(Cow::into_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_paths_are_decoded() {
        let cases = [
            ("/", "", true),
            ("/a/b.txt", "a/b.txt", false),
            ("/a/", "a", true),
            ("//a///b", "a/b", false),
            ("/%61%20b", "a b", false),
            ("/caf%C3%A9", "café", false),
            ("/.well-known/security.txt", ".well-known/security.txt", false),
            ("/a..b/...c"[..6].into(), "a..b", true),
        ];
        for (path, expected, slash) in cases {
            assert_eq!(relative(path), Some((PathBuf::from(expected), slash)), "{path}");
        }
    }

    #[test]
    fn escapes_and_hidden_files_are_refused() {
        for path in [
            "/..",
            "/../etc/passwd",
            "/a/../../b",
            "/%2e%2e/etc/passwd",
            "/%2E./x",
            "/.%2e",
            "/a%2fb",
            "/..%2f..%2fetc",
            "/..%5c..%5cetc",
            "/a%00b",
            "/%ff",
            "/%zz",
            "/%+1",
            "/%4",
            "/.",
            "/.git/config",
            "/a/.env",
            "/a/.well-known/x",
        ] {
            assert_eq!(relative(path), None, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_may_not_lead_outside() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("page"), "p").unwrap();
        symlink("page", root.join("inside")).unwrap();
        symlink(outside.path().join("secret"), root.join("secret")).unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let index = ["index.html".to_owned(), "page".to_owned()];
        let at = |path: &str, slash| look(&root, Path::new(path), slash, &index).unwrap();
        assert_eq!(at("page", false), Place::File(root.join("page")));
        assert_eq!(at("inside", false), Place::File(root.join("page")));
        assert_eq!(at("", true), Place::File(root.join("page")));
        assert_eq!(at("sub", false), Place::Folder);
        for (path, slash) in [
            ("secret", false),
            ("out/secret", false),
            ("out", false),
            ("sub", true),
            ("page", true),
            ("page/x", false),
            (&"x".repeat(300), false),
            ("loop", false),
        ] {
            assert_eq!(at(path, slash), Place::Nothing, "{path}");
        }
        std::fs::write(outside.path().join("index.html"), "s").unwrap();
        assert_eq!(at("out", true), Place::Nothing);
    }
}
