//! The form of a path that routes are compared with, so that no spelling of a path slips past its route.
//!
//! Percent-encoding is undone, backslashes and runs of slashes become one slash, dot segments are resolved. A path
//! that needed the last, or has a control character, is [`doubtful`](Normal::doubtful): browsers resolve dot
//! segments themselves, and whoever sends one means to have two programs read one path in two ways. Such paths are
//! answered by files (which refuse them) but go to nobody else.

use std::borrow::Cow;

use http::uri::{PathAndQuery, Uri};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// A path as it is compared with routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Normal<'a> {
    /// Begins with a slash, and has no two in a row.
    pub(crate) path: Cow<'a, str>,
    /// It has dot segments or control characters.
    pub(crate) doubtful: bool,
}

/// The normal form of a request's path.
pub(crate) fn normal(raw: &str) -> Normal<'_> {
    let bytes = raw.as_bytes();
    let plain = bytes.first() == Some(&b'/')
        && bytes.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'\\' | b';'))
        && !bytes.windows(2).any(|pair| matches!(pair, b"//" | b"/."));
    if plain {
        return Normal { path: Cow::Borrowed(raw), doubtful: false };
    }
    let decoded = decode(bytes);
    let mut doubtful = decoded.iter().any(u8::is_ascii_control);
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut folder = true;
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        // Some servers take what follows a semicolon for parameters, and `..;` for a dot segment with some: a route is
        // for the path as they read it.
        let name = segment.split(|byte| *byte == b';').next().unwrap_or(segment);
        folder = true;
        match name {
            b"." => doubtful = true,
            b".." => {
                doubtful = true;
                segments.pop();
            }
            _ if name.is_empty() => {}
            _ => {
                segments.push(name);
                folder = false;
            }
        }
    }
    let mut path = String::with_capacity(raw.len());
    for segment in &segments {
        path.push('/');
        path.push_str(&String::from_utf8_lossy(segment));
    }
    if folder {
        path.push('/');
    }
    Normal { path: Cow::Owned(path), doubtful }
}

/// Undoes percent-encoding once; what is not an escape stays. The overlong UTF-8 forms of ASCII count as what lenient
/// decoders take them for.
fn decode(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&first, after)) = rest.split_first() {
        let escape = (first == b'%').then(|| after.split_at_checked(2)).flatten();
        match escape.and_then(|(digits, after)| Some((hex(digits)?, after))) {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
        let (length, high, low) = match bytes.as_slice() {
            [.., high @ (0xc0 | 0xc1), low @ 0x80..=0xbf] => (2, high, low),
            [.., 0xe0, high @ (0x80 | 0x81), low @ 0x80..=0xbf] => (3, high, low),
            [.., 0xf0, 0x80, high @ (0x80 | 0x81), low @ 0x80..=0xbf] => (4, high, low),
            _ => continue,
        };
        let meant = (high & 1) << 6 | (low & 0x3f);
        bytes.truncate(bytes.len().saturating_sub(length));
        bytes.push(meant);
    }
    bytes
}

fn hex(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(text, 16).ok()
}

/// The target without `prefix` at the beginning of its path, for handlers that shall not see it. The rest begins
/// with a slash. `None` if the path does not begin with it.
pub(crate) fn without_prefix(uri: &Uri, prefix: &str) -> Option<Uri> {
    let prefix = prefix.trim_end_matches('/');
    let below = |path: &str| {
        let rest = path.strip_prefix(prefix)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
    };
    let path = uri.path();
    let rest = below(path).or_else(|| after_spelling_of(prefix, path).map(str::to_owned));
    // A very odd spelling of the prefix costs the rest its own spelling, which nobody will miss.
    let rest = rest.or_else(|| below(&normal(path).path).map(|rest| encode(&rest)))?;
    let slash = if rest.is_empty() { "/" } else { "" };
    let target = match uri.query() {
        Some(query) => format!("{slash}{rest}?{query}"),
        None => format!("{slash}{rest}"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

/// What comes after `prefix` in a path, as it is spelled there: the prefix may have escapes.
fn after_spelling_of<'a>(prefix: &str, path: &'a str) -> Option<&'a str> {
    // Whoever escapes every byte needs three for each. Nothing longer is read again and again.
    let longest = prefix.len().saturating_mul(3);
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let mut parts = ends.take_while(|at| *at <= longest).filter_map(|at| path.split_at_checked(at));
    parts.find(|(front, _)| normal(front).path == prefix).map(|(_, rest)| rest)
}

/// What may stand neither in a path nor in a query (RFC 3986 section 3.3), but for the marks that divide them.
pub(crate) const INVALID: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Encodes what may not stand in a path, and what would be read as something else there.
pub(crate) fn encode(path: &str) -> String {
    const SPECIAL: &AsciiSet = &INVALID.add(b'#').add(b'%').add(b'?');
    utf8_percent_encode(path, SPECIAL).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_paths_are_left_alone() {
        for path in ["/", "/a", "/a/", "/a/b.html", "/a=1/b", "/~me/a,b"] {
            assert_eq!(normal(path), Normal { path: Cow::Borrowed(path), doubtful: false });
        }
    }

    #[test]
    fn every_spelling_of_a_path_becomes_the_same() {
        for path in [
            "/%61dmin/x",
            "//admin//x",
            "/admin%2fx",
            "/admin%2Fx",
            "\\admin\\x",
            "/admin%5Cx",
            "admin/x",
            "/admin;a=1/x",
            "/;/admin/x",
            "/admin%3bb/x;c",
            "/%c1%a1dmin%c0%afx",
            "/admin%e0%80%afx",
            "/admin%f0%80%81%9cx",
        ] {
            assert_eq!(normal(path), Normal { path: "/admin/x".into(), doubtful: false }, "{path}");
        }
        assert_eq!(normal("/caf%c3%a9").path, "/caf\u{e9}");
        assert_eq!(normal("/%zz%4").path, "/%zz%4");
        assert_eq!(normal("/%252e%252e/x").path, "/%2e%2e/x", "once only");
        assert_eq!(normal("/.well-known/x"), Normal { path: "/.well-known/x".into(), doubtful: false });
        assert_eq!(normal("/a/...").path, "/a/...");
    }

    #[test]
    fn dot_segments_and_control_characters_are_doubtful() {
        for (path, expected) in [
            ("/a/../admin/x", "/admin/x"),
            ("/a/%2e%2e/admin/x", "/admin/x"),
            ("/a/.%2E/admin/x", "/admin/x"),
            ("/a/..%2fadmin/x", "/admin/x"),
            ("/a/..\\admin/x", "/admin/x"),
            ("/a%2f..%5c/admin/x", "/admin/x"),
            ("/./admin/x", "/admin/x"),
            ("/a/..;/admin/x", "/admin/x"),
            ("/%c0%ae%c0%ae/admin/x", "/admin/x"),
            ("/a/%e0%80%ae%f0%80%80%ae/admin/x", "/admin/x"),
            ("/a%c0%80", "/a\0"),
            ("/../../..", "/"),
            ("/a/..", "/"),
            ("/a/b/.", "/a/b/"),
            ("/a%00", "/a\0"),
            ("/a%0d%0ab", "/a\r\nb"),
        ] {
            assert_eq!(normal(path), Normal { path: expected.into(), doubtful: true }, "{path}");
        }
    }

    #[test]
    fn a_prefix_is_taken_off_and_the_rest_left_as_it_was() {
        let strip = |target: &str, prefix: &str| {
            without_prefix(&target.parse().unwrap(), prefix).map(|uri| uri.to_string())
        };
        assert_eq!(strip("/api/a%2fb?x=1", "/api").as_deref(), Some("/a%2fb?x=1"));
        assert_eq!(strip("/api", "/api").as_deref(), Some("/"));
        assert_eq!(strip("/api?x", "/api/").as_deref(), Some("/?x"));
        assert_eq!(strip("https://h/api/x", "/api").as_deref(), Some("https://h/x"));
        assert_eq!(strip("/%61pi/x%20y", "/api").as_deref(), Some("/x%20y"));
        assert_eq!(strip("/a%20b/x%2fy;z=1//%ff?q", "/a b").as_deref(), Some("/x%2fy;z=1//%ff?q"));
        assert_eq!(strip("/a%20b", "/a b").as_deref(), Some("/"));
        assert_eq!(strip("//%61%70%69;v=1/x%2fy", "/api").as_deref(), Some("/x/y"));
        assert_eq!(strip("/%61pi%2fx", "/api").as_deref(), Some("/x"));
        assert_eq!(strip("/apis/x", "/api"), None);
        assert_eq!(strip("/x", "/api"), None);
    }

    proptest! {
        #[test]
        fn the_normal_form_has_no_dots_and_no_double_slashes(path in "/([./\\\\%a;]|%2e|%2f|%5c|%c0%ae){0,20}") {
            let form = normal(&path);
            prop_assert!(form.path.starts_with('/'));
            prop_assert!(!form.path.contains("//"));
            prop_assert!(!form.path.split('/').any(|segment| segment == ".." || segment == "."));
        }

        #[test]
        fn any_target_can_be_normalised_and_stripped(path in "/[!-~]{0,30}") {
            let form = normal(&path);
            prop_assert!(form.path.starts_with('/'));
            if let Ok(uri) = path.parse::<Uri>()
                && let Some(rest) = without_prefix(&uri, "/a")
            {
                prop_assert!(rest.path().starts_with('/'));
                prop_assert_eq!(rest.query(), uri.query());
            }
        }
    }
}
