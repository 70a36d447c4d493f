//! Conditional requests: `If-Match`, `If-None-Match`, `If-Range` and the conditions on dates against a file's tag
//! and date (RFC 9110 section 13). Conditions on tags override those on dates.

use http::HeaderMap;
use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};

/// What a request's conditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer the request as its headers say, perhaps without `Range`.
    Proceed,
    /// 304: the client has it already.
    NotModified,
    /// 412: it is not what the client thinks.
    PreconditionFailed,
}

/// When a file was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modified {
    /// Since 1970.
    pub(super) seconds: i64,
    /// The same as `Last-Modified` has it.
    pub(super) date: String,
}

/// A strong entity tag: the time of the last change in nanoseconds, the length, and how it is encoded.
pub(super) fn file_tag(modified_nanos: u128, length: u64, coding: Option<&str>) -> String {
    match coding {
        Some(coding) => format!("\"{modified_nanos:x}-{length:x}-{coding}\""),
        None => format!("\"{modified_nanos:x}-{length:x}\""),
    }
}

/// Judges the conditions, and removes `Range` from the headers where a condition makes it void.
pub(super) fn check(headers: &mut HeaderMap, tag: &str, modified: Option<&Modified>) -> Verdict {
    let newer_than = |name: &HeaderName, headers: &HeaderMap| {
        let date = godwit_text::parse_http_date(headers.get(name)?.to_str().ok()?)?;
        Some(modified?.seconds > date)
    };
    if headers.contains_key(IF_MATCH) {
        if !any_tag(headers, &IF_MATCH, |theirs| theirs == tag) {
            return Verdict::PreconditionFailed;
        }
    } else if newer_than(&IF_UNMODIFIED_SINCE, headers) == Some(true) {
        return Verdict::PreconditionFailed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if any_tag(headers, &IF_NONE_MATCH, |theirs| weak(theirs) == weak(tag)) {
            return Verdict::NotModified;
        }
    } else if newer_than(&IF_MODIFIED_SINCE, headers) == Some(false) {
        return Verdict::NotModified;
    }
    if let Some(value) = headers.remove(IF_RANGE) {
        let date = modified.map(|modified| modified.date.as_str());
        let same = value.to_str().is_ok_and(|value| value == tag || Some(value) == date);
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
    const BEFORE: &str = "Sat, 21 Nov 2026 20:52:46 GMT";
    const AFTER: &str = "Sat, 21 Nov 2026 20:52:48 GMT";

    fn judge(headers: &[(HeaderName, &str)]) -> (Verdict, HeaderMap) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), value.parse().unwrap());
        }
        let modified = Modified { seconds: 1_795_294_367, date: DATE.to_owned() };
        let verdict = check(&mut map, TAG, Some(&modified));
        (verdict, map)
    }

    #[test]
    fn a_tag_changes_with_time_and_length() {
        assert_eq!(file_tag(0x5a, 16, None), TAG);
        assert_ne!(file_tag(0x5b, 16, None), TAG);
        assert_ne!(file_tag(0x5a, 17, None), TAG);
        assert_eq!(file_tag(0x5a, 16, Some("br")), "\"5a-10-br\"");
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
        for (tag, verdict) in [("\"old\"", Verdict::Proceed), (TAG, Verdict::NotModified)] {
            assert_eq!(judge(&[(IF_NONE_MATCH, tag), (IF_MODIFIED_SINCE, DATE)]).0, verdict);
        }
        for (tag, verdict) in [("\"old\"", Verdict::PreconditionFailed), (TAG, Verdict::Proceed)] {
            assert_eq!(judge(&[(IF_MATCH, tag), (IF_UNMODIFIED_SINCE, BEFORE)]).0, verdict);
        }
    }

    #[test]
    fn dates_are_compared_by_the_second() {
        for (name, date, verdict) in [
            (IF_MODIFIED_SINCE, BEFORE, Verdict::Proceed),
            (IF_MODIFIED_SINCE, DATE, Verdict::NotModified),
            (IF_MODIFIED_SINCE, AFTER, Verdict::NotModified),
            (IF_MODIFIED_SINCE, "yesterday", Verdict::Proceed),
            (IF_UNMODIFIED_SINCE, BEFORE, Verdict::PreconditionFailed),
            (IF_UNMODIFIED_SINCE, DATE, Verdict::Proceed),
            (IF_UNMODIFIED_SINCE, AFTER, Verdict::Proceed),
            (IF_UNMODIFIED_SINCE, "yesterday", Verdict::Proceed),
        ] {
            assert_eq!(judge(&[(name.clone(), date)]).0, verdict, "{name} {date}");
        }
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
