//! From a URL's path to a file below the folder, and never to one outside.
//!
//! A path is refused (as if nothing were there) when a segment is `..`, hides a slash, a backslash, a NUL or
//! bytes that are not UTF-8 behind percent signs, or begins with a dot (`.git`, `.env`), except `.well-known`.
//! Symbolic links are followed as long as they end inside the folder.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// What lies at a path.
#[derive(Debug)]
pub(super) enum Target {
    File(Metadata),
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

/// Looks at the disk. `root` is canonical. Blocks.
pub(super) fn look(root: &Path, relative: &Path, slash: bool) -> Target {
    let mut path = root.join(relative);
    if slash {
        path.push("index.html");
    }
    let Ok(canonical) = path.canonicalize() else { return Target::Nothing };
    if !canonical.starts_with(root) {
        return Target::Nothing;
    }
    match canonical.metadata() {
        Ok(metadata) if metadata.is_file() => Target::File(metadata),
        Ok(metadata) if metadata.is_dir() && !slash => Target::Folder,
        // Neither a device nor a pipe is a page: opening one could block for ever.
        _ => Target::Nothing,
    }
}

/// Undoes percent-encoding; `None` if it is broken or the result is not UTF-8.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
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
        let at = |path: &str, slash| look(&root, Path::new(path), slash);
        assert!(matches!(at("page", false), Target::File(_)));
        assert!(matches!(at("inside", false), Target::File(_)));
        assert!(matches!(at("sub", false), Target::Folder));
        for (path, slash) in
            [("secret", false), ("out/secret", false), ("out", false), ("sub", true), ("page", true)]
        {
            assert!(matches!(at(path, slash), Target::Nothing), "{path}");
        }
    }
}
