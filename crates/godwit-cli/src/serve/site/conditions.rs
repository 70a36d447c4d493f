//! Conditional requests: `If-Match`, `If-None-Match` and `If-Range` against a file's entity tag
//! (RFC 9110 section 13). The conditions on dates are left to the file service, but for those that an entity tag
//! in the same request overrides.

use http::HeaderMap;
use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};

/// What a request's conditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer the request as its (possibly reduced) headers say.
    Proceed,
    /// 304: the client has it already.
    NotModified,
    /// 412: it is not what the client thinks.
    PreconditionFailed,
}

/// A strong entity tag: the time of the last change in nanoseconds and the length.
pub(super) fn file_tag(modified_nanos: u128, length: u64) -> String {
    format!("\"{modified_nanos:x}-{length:x}\"")
}

/// Judges the conditions on entity tags, and removes from the headers whatever they make void.
///
/// `modified` is the value of `Last-Modified`, where there is one.
pub(super) fn check(headers: &mut HeaderMap, tag: &str, modified: Option<&str>) -> Verdict {
    if headers.contains_key(IF_MATCH) {
        if !any_tag(headers, &IF_MATCH, |theirs| theirs == tag) {
            return Verdict::PreconditionFailed;
        }
        headers.remove(IF_UNMODIFIED_SINCE);
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if any_tag(headers, &IF_NONE_MATCH, |theirs| weak(theirs) == weak(tag)) {
            return Verdict::NotModified;
        }
        headers.remove(IF_MODIFIED_SINCE);
    }
    if let Some(value) = headers.remove(IF_RANGE) {
        let same = value.to_str().is_ok_and(|value| value == tag || Some(value) == modified);
        if !same {
            headers.remove(RANGE);
        }
    }
    Verdict::Proceed
}

fn weak(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Whether `*` or a tag for which `matches` holds stands in the lists of this header.
fn any_tag(headers: &HeaderMap, name: &HeaderName, matches: impl Fn(&str) -> bool) -> bool {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|list| {
        let mut rest = list.trim_matches([' ', '\t', ',']);
        if rest == "*" {
            return true;
        }
        while let Some((tag, after)) = split_tag(rest) {
            if matches(tag) {
                return true;
            }
            rest = after.trim_start_matches([' ', '\t', ',']);
        }
        false
    })
}

/// The entity tag at the beginning of `list` and what follows it. Commas may stand inside the quotes.
fn split_tag(list: &str) -> Option<(&str, &str)> {
    let quoted = weak(list).strip_prefix('"')?;
    let length = quoted.find('"')?;
    list.split_at_checked(list.len() - quoted.len() + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"5a-10\"";
    const DATE: &str = "Sat, 21 Nov 2026 20:52:47 GMT";

    fn judge(headers: &[(HeaderName, &str)]) -> (Verdict, HeaderMap) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), value.parse().unwrap());
        }
        let verdict = check(&mut map, TAG, Some(DATE));
        (verdict, map)
    }

    #[test]
    fn a_tag_changes_with_time_and_length() {
        assert_eq!(file_tag(0x5a, 16), TAG);
        assert_ne!(file_tag(0x5b, 16), TAG);
        assert_ne!(file_tag(0x5a, 17), TAG);
    }

    #[test]
    fn none_match_finds_the_tag_in_lists_and_weak_forms() {
        for value in [TAG, "W/\"5a-10\"", "\"x,y\" , \"5a-10\"", "\"a\",W/\"b\",\"5a-10\"", "*", " * "] {
            assert_eq!(judge(&[(IF_NONE_MATCH, value)]).0, Verdict::NotModified, "{value}");
        }
        for value in ["\"5a-11\"", "5a-10", "\"x,\"5a-10\"", "\"unclosed", ""] {
            assert_eq!(judge(&[(IF_NONE_MATCH, value)]).0, Verdict::Proceed, "{value}");
        }
        let twice = [(IF_NONE_MATCH, "\"a\""), (IF_NONE_MATCH, TAG)];
        assert_eq!(judge(&twice).0, Verdict::NotModified);
    }

    #[test]
    fn a_tag_that_differs_overrides_the_date() {
        let (verdict, left) = judge(&[(IF_NONE_MATCH, "\"old\""), (IF_MODIFIED_SINCE, DATE)]);
        assert_eq!(verdict, Verdict::Proceed);
        assert!(!left.contains_key(IF_MODIFIED_SINCE));
    }

    #[test]
    fn match_compares_strongly() {
        assert_eq!(judge(&[(IF_MATCH, TAG)]).0, Verdict::Proceed);
        assert_eq!(judge(&[(IF_MATCH, "*")]).0, Verdict::Proceed);
        assert_eq!(judge(&[(IF_MATCH, "W/\"5a-10\"")]).0, Verdict::PreconditionFailed);
        assert_eq!(judge(&[(IF_MATCH, "\"other\"")]).0, Verdict::PreconditionFailed);
    }

    #[test]
    fn a_range_of_another_version_is_dropped() {
        for (value, kept) in [(TAG, true), (DATE, true), ("\"old\"", false), ("W/\"5a-10\"", false)] {
            let (verdict, left) = judge(&[(IF_RANGE, value), (RANGE, "bytes=0-1")]);
            assert_eq!(verdict, Verdict::Proceed);
            assert_eq!(left.contains_key(RANGE), kept, "{value}");
        }
    }
}
