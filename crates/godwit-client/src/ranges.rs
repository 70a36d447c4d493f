//! The rest of what has come in part: how it is asked for, and whether what comes is that rest (`Range` and `If-Range`, RFC
//! 9110 sections 13.1.5 and 14).

use godwit_text::parse_http_date;
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, StatusCode};

/// A date of change this much older than the response, in seconds, is of one state only (RFC 9110 section 8.8.2.2).
const SETTLED: i64 = 60;

/// What is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Bytes.
    pub(crate) offset: u64,
    /// `None` for a file under its final name: it is only to be found out whether it is whole.
    pub(crate) validator: Option<String>,
    /// Bytes of the whole, where that is known.
    pub(crate) length: Option<u64>,
    /// How what is there is coded (`Content-Encoding`).
    pub(crate) coding: Option<HeaderValue>,
}

/// What a response means for what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the rest of so many bytes, if that is known.
    Rest { length: Option<u64> },
    /// It is everything, from the beginning.
    Anew,
    /// Nothing is missing.
    Whole,
    /// It is of no use: ask for everything.
    Again,
}

/// What a state of a resource is recognised by: an entity tag that is not weak, or a date.
pub(crate) fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let tag = text(ETAG).filter(|tag| tag.starts_with('"'));
    tag.or_else(|| text(LAST_MODIFIED)).map(str::to_owned)
}

/// What the state of a resource is recognised by without a doubt: an entity tag that is not weak, or a date that was long past
/// when the response was made.
pub(crate) fn strong_validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let date = |name| text(name).and_then(parse_http_date);
    if let Some(tag) = text(ETAG) {
        return tag.starts_with('"').then(|| tag.to_owned());
    }
    let changed = text(LAST_MODIFIED)?;
    let age = date(DATE)?.checked_sub(date(LAST_MODIFIED)?)?;
    (age >= SETTLED).then(|| changed.to_owned())
}

/// How long the content of a response is that is whole.
pub(crate) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Where a range (the value of `Content-Range`) begins, and how long the whole is, if the range goes to its end.
pub(crate) fn to_the_end(range: &str) -> Option<(u64, u64)> {
    let (range, length) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, length): (u64, u64, u64) =
        (first.parse().ok()?, last.parse().ok()?, length.parse().ok()?);
    (first <= last && last.checked_add(1) == Some(length)).then_some((first, length))
}

/// Asks for the rest.
pub(crate) fn ask(headers: &mut HeaderMap, progress: &Progress) {
    let offset = progress.offset;
    headers.insert(
        RANGE,
        HeaderValue::try_from(format!("bytes={offset}-")).unwrap_or(HeaderValue::from_static("bytes=0-")),
    );
    let validator = progress.validator.as_deref().map(HeaderValue::try_from);
    if let Some(Ok(validator)) = validator {
        headers.insert(IF_RANGE, validator);
    }
}

/// What came of it.
pub(crate) fn judge(progress: &Progress, status: StatusCode, headers: &HeaderMap) -> Verdict {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let range = range.and_then(|range| range.strip_prefix("bytes ")).and_then(|range| range.split_once('/'));
    match (status, range) {
        (StatusCode::PARTIAL_CONTENT, Some((range, total))) if progress.validator.is_some() => {
            the_rest(progress, range, total, headers)
                .filter(|_| is_same(progress, headers) && is_coded_alike(progress, headers))
                .unwrap_or(Verdict::Again)
        }
        (StatusCode::RANGE_NOT_SATISFIABLE, Some(("*", total)))
            if total.parse() == Ok(progress.offset) && is_same(progress, headers) =>
        {
            Verdict::Whole
        }
        (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, _) => Verdict::Again,
        _ => Verdict::Anew,
    }
}

/// Whether a range begins where the part ends, ends with the resource, is as long as the content that comes, and
/// does not contradict what was said of the whole.
fn the_rest(progress: &Progress, range: &str, total: &str, headers: &HeaderMap) -> Option<Verdict> {
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    let total = if total == "*" { progress.length } else { Some(total.parse::<u64>().ok()?) };
    let fits = first == progress.offset
        && total.is_none_or(|total| total == end)
        && progress.length.is_none_or(|length| length == end)
        && end.checked_sub(first).is_some_and(|length| self::length(headers) == Some(length));
    fits.then_some(Verdict::Rest { length: total })
}

/// Whether a response says nothing else of the state of the resource than what is known of the part: a server that
/// does not know `If-Range` sends the rest of whatever it has.
fn is_same(progress: &Progress, headers: &HeaderMap) -> bool {
    let said = validator(headers);
    said.is_none() || progress.validator.is_none() || said == progress.validator
}

/// Whether a rest is coded as the part is. A response with a range need not say so again (RFC 9110 section 15.3.7); whether it
/// means the same bytes is then told by an entity tag, which each coding has its own of, and not by a date.
fn is_coded_alike(progress: &Progress, headers: &HeaderMap) -> bool {
    match (&progress.coding, headers.get(CONTENT_ENCODING)) {
        (coding, Some(said)) => coding.as_ref() == Some(said),
        (Some(_), None) => progress.validator.as_deref().is_some_and(|validator| validator.starts_with('"')),
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn responses_are_judged() {
        let part = Progress { offset: 100, validator: Some("\"a\"".to_owned()), length: None, coding: None };
        let of = |progress: &Progress, status: u16, range: &'static str| {
            let all = [("content-range", range), ("content-length", "100"), ("etag", "\"a\"")];
            judge(progress, StatusCode::from_u16(status).unwrap(), &headers(&all))
        };
        assert_eq!(of(&part, 206, "bytes 100-199/200"), Verdict::Rest { length: Some(200) });
        assert_eq!(of(&part, 206, "bytes 100-199/*"), Verdict::Rest { length: None });
        let known = Progress { length: Some(200), ..part.clone() };
        assert_eq!(of(&known, 206, "bytes 100-199/*"), Verdict::Rest { length: Some(200) });
        let longer = Progress { length: Some(300), ..part.clone() };
        assert_eq!(of(&longer, 206, "bytes 100-199/*"), Verdict::Again, "not the length that was told");
        assert_eq!(of(&longer, 206, "bytes 100-199/200"), Verdict::Again, "not the length that was told");
        assert_eq!(of(&part, 206, "bytes 0-199/200"), Verdict::Again);
        assert_eq!(of(&part, 206, "nonsense"), Verdict::Again);
        assert_eq!(of(&part, 206, "bytes 100-199/300"), Verdict::Again, "not to the end");
        assert_eq!(of(&part, 206, "bytes 100-198/199"), Verdict::Again, "not what is announced");
        let other = [("content-range", "bytes 100-199/200"), ("content-length", "100"), ("etag", "\"b\"")];
        assert_eq!(judge(&part, StatusCode::PARTIAL_CONTENT, &headers(&other)), Verdict::Again);
        assert_eq!(judge(&part, StatusCode::PARTIAL_CONTENT, &headers(&other[..1])), Verdict::Again);
        assert_eq!(of(&part, 416, "bytes */100"), Verdict::Whole);
        assert_eq!(of(&part, 416, "bytes */99"), Verdict::Again);
        assert_eq!(judge(&part, StatusCode::OK, &HeaderMap::new()), Verdict::Anew);
        assert_eq!(judge(&part, StatusCode::NOT_FOUND, &HeaderMap::new()), Verdict::Anew);
        // Without a validator the rest may be that of something else.
        let file = Progress { offset: 100, validator: None, length: None, coding: None };
        assert_eq!(of(&file, 206, "bytes 100-199/200"), Verdict::Again);
        assert_eq!(of(&file, 416, "bytes */100"), Verdict::Whole);
    }

    #[test]
    fn a_rest_is_coded_as_the_part_is() {
        let date = "Sat, 21 Nov 2026 20:52:47 GMT";
        let rest = |validator: &str, coding: Option<&'static str>, said: &[(&'static str, &'static str)]| {
            let coding = coding.map(HeaderValue::from_static);
            let part = Progress { offset: 100, validator: Some(validator.to_owned()), length: None, coding };
            let all = [&[("content-range", "bytes 100-199/200"), ("content-length", "100")], said].concat();
            judge(&part, StatusCode::PARTIAL_CONTENT, &headers(&all)) != Verdict::Again
        };
        assert!(
            rest("\"a\"", Some("gzip"), &[]) && rest(date, Some("gzip"), &[("content-encoding", "gzip")])
        );
        assert!(!rest(date, Some("gzip"), &[]), "the date is that of the plain file as well");
        assert!(!rest(date, Some("gzip"), &[("content-encoding", "br")]));
        assert!(!rest("\"a\"", None, &[("content-encoding", "gzip")]));
    }

    #[test]
    fn weak_tags_do_not_validate() {
        let date = "Sat, 21 Nov 2026 20:52:47 GMT";
        assert_eq!(validator(&headers(&[("etag", "\"a\""), ("last-modified", date)])).unwrap(), "\"a\"");
        assert_eq!(validator(&headers(&[("etag", "W/\"a\""), ("last-modified", date)])).unwrap(), date);
        assert_eq!(validator(&headers(&[("etag", "W/\"a\"")])), None);
    }

    #[test]
    fn a_state_is_recognised_without_a_doubt_or_not_at_all() {
        let strong = |pairs: &[_]| strong_validator(&headers(pairs));
        let (then, later) = ("Sat, 21 Nov 2026 20:52:47 GMT", "Sat, 21 Nov 2026 20:53:47 GMT");
        assert_eq!(strong(&[("etag", "\"a\""), ("last-modified", then)]).unwrap(), "\"a\"");
        assert_eq!(strong(&[("etag", "W/\"a\""), ("last-modified", then), ("date", later)]), None);
        assert_eq!(strong(&[("last-modified", then), ("date", later)]).unwrap(), then);
        assert_eq!(strong(&[("last-modified", then), ("date", "Sat, 21 Nov 2026 20:53:46 GMT")]), None);
        assert_eq!(strong(&[("last-modified", then)]), None);
    }

    #[test]
    fn ranges_to_the_end_are_told_from_others() {
        assert_eq!(to_the_end("bytes 5-9/10"), Some((5, 10)));
        for other in ["bytes 5-8/10", "bytes 5-9/*", "bytes 9-5/6", "items 5-9/10", "bytes */10", ""] {
            assert_eq!(to_the_end(other), None, "{other}");
        }
        assert_eq!(to_the_end("bytes 0-18446744073709551615/0"), None);
    }

    #[test]
    fn the_rest_is_asked_for_on_condition() {
        let mut asked = HeaderMap::new();
        ask(
            &mut asked,
            &Progress { offset: 7, validator: Some("\"a\"".to_owned()), length: None, coding: None },
        );
        assert_eq!(
            (&asked[RANGE], &asked[IF_RANGE]),
            (&HeaderValue::from_static("bytes=7-"), &HeaderValue::from_static("\"a\""))
        );
    }
}
