//! File names made from URLs. What a server or a list of URLs says never leads out of the folder.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;

use super::part_name::{MAX_NAME, shorten};

/// For a URL whose path ends in `/`.
const INDEX: &str = "index.html";

/// One file name for each path of a URL, in the order given: its last part, unescaped, without what could lead out of a
/// folder, and `index.html` where there is none. A name that was used before gets `.1`, `.2` and so on.
pub fn file_names<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut unique = |path| {
        let name = file_name(path);
        let numbered = (1_u64..).map(|number| {
            let suffix = format!(".{number}");
            format!("{}{suffix}", shorten(&name, MAX_NAME - suffix.len()))
        });
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        candidates.find(|candidate| used.insert(candidate.clone())).unwrap_or(name)
    };
    paths.into_iter().map(&mut unique).collect()
}

/// The end of a path as a file name: unescaped, without separators and control characters.
fn file_name(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or("");
    let decoded = percent_decode_str(last).decode_utf8_lossy();
    let name: String = decoded.chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    match name.as_str() {
        "" | "." | ".." => INDEX.to_owned(),
        name => keep_extension(name),
    }
}

fn is_unsafe(c: char) -> bool {
    // The last group is what Windows refuses, and harmless to lose elsewhere but for `:` and `*`.
    c.is_control() || matches!(c, '/' | '\\' | '\u{fffd}') || (cfg!(windows) && "<>:\"|?*".contains(c))
}

/// Cuts the middle out of a name that is too long, so that its extension stays.
fn keep_extension(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let extension = name.rfind('.').and_then(|dot| name.get(dot..));
    let extension = extension.filter(|extension| extension.len() <= 16).unwrap_or_default();
    format!("{}{extension}", shorten(name, MAX_NAME - extension.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_end_of_the_path() {
        let cases = [
            ("/a/b.txt", "b.txt"),
            ("/", "index.html"),
            ("/a/", "index.html"),
            ("/a/..", "index.html"),
            ("/a/%2e%2E", "index.html"),
            ("/a/.", "index.html"),
            ("/%2e%2e%2fetc%2fpasswd", ".._etc_passwd"),
            ("/..%5C..%5Cx", ".._.._x"),
            ("/a%00b%0ac%1b%7f", "a_b_c__"),
            ("/%C3%BC.txt", "ü.txt"),
            ("/%ff.bin", "_.bin"),
            ("/100%", "100%"),
            ("/%4", "%4"),
            ("/two%20words", "two words"),
            ("/.profile", ".profile"),
        ];
        for (path, name) in cases {
            assert_eq!(file_name(path), name, "{path}");
        }
    }

    #[test]
    fn names_are_not_used_twice() {
        let names = file_names(["/a/x", "/b/x", "/x.1", "/c/x", "/", "/d/"]);
        assert_eq!(names, ["x", "x.1", "x.1.1", "x.2", "index.html", "index.html.1"]);
    }

    #[test]
    fn names_fit_the_file_system() {
        let long = format!("/{}.tar", "ü".repeat(200));
        let names = file_names([long.as_str(), long.as_str()]);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME), "{names:?}");
        assert!(names[0].ends_with(".tar"));
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        use proptest::prelude::*;
        proptest!(|(path in "/(\\PC|%[0-9a-fA-F]{2}|[./%]){0,300}")| {
            let name = file_name(&path);
            prop_assert!(!name.contains(['/', '\\', '\0']) && !matches!(name.as_str(), "" | "." | ".."));
            prop_assert!(name.len() <= MAX_NAME);
        });
    }
}
