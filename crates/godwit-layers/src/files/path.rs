//! From a URL's path to a file below the folder, and never to one outside.
//!
//! A path is refused (as if nothing were there) when a segment is `..`, hides a slash, a backslash, a NUL or
//! bytes that are not UTF-8 behind percent signs, or begins with a dot (`.git`, `.env`), except `.well-known`.
//! Symbolic links are followed as long as they end [inside the folder](super::beneath).

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::beneath::{Beneath, Entry};

/// What lies at a path.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, for one answer")]
pub(super) enum Place {
    /// A file, opened, and its path below the folder as it was asked for.
    File(PathBuf, File, Metadata),
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

/// Looks at the disk; where a folder is asked for, for the first of the `index` names.
///
/// # Errors
/// As [`Beneath::entry`].
pub(super) fn look(beneath: &Beneath<'_>, path: PathBuf, slash: bool, index: &[String]) -> io::Result<Place> {
    if slash {
        for name in index {
            let path = path.join(name);
            if let Some(Entry::File(file, metadata)) = beneath.entry(&path)? {
                return Ok(Place::File(path, file, metadata));
            }
        }
        return Ok(Place::Nothing);
    }
    Ok(match beneath.entry(&path)? {
        Some(Entry::File(file, metadata)) => Place::File(path, file, metadata),
        Some(Entry::Folder) => Place::Folder,
        None => Place::Nothing,
    })
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
    use std::path::Path;

    use super::super::beneath::Reach;
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

    #[test]
    fn an_index_page_is_below_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("page"), "p").unwrap();
        let beneath = Beneath::open(&root, Reach::Disk).unwrap();
        let index = ["index.html".to_owned(), "page".to_owned()];
        let at = |path: &str, slash| look(&beneath, PathBuf::from(path), slash, &index).unwrap();
        let is_page = |place| matches!(place, Place::File(path, ..) if path == Path::new("page"));
        assert!(is_page(at("page", false)) && is_page(at("", true)));
        assert!(matches!(at("sub", false), Place::Folder));
        for (path, slash) in [("sub", true), ("page", true), ("nothing", false)] {
            assert!(matches!(at(path, slash), Place::Nothing), "{path}");
        }
    }
}
