//! Continuing what an earlier run left: what has come so far stands in `.NAME.godwit.part`, and beside it a note says
//! of which URL and which state of it. The server is asked for the rest only if nothing has changed there
//! (`If-Range`, RFC 9110 section 13.1.5).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

/// A note larger than this was not written by this program.
const MAX_NOTE: u64 = 64 << 10;

/// What a part is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) url: String,
    /// The entity tag or date of what was being fetched.
    pub(super) validator: String,
}

/// What is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Bytes.
    pub(super) offset: u64,
    /// `None` for a file under its final name: it is only to be found out whether it is whole.
    pub(super) validator: Option<String>,
}

/// What a response means for what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the rest.
    Rest,
    /// It is everything, from the beginning.
    Anew,
    /// Nothing is missing.
    Whole,
    /// It is of no use: ask for everything.
    Again,
}

impl Note {
    /// The note beside a part, if it is about `url`.
    pub(super) fn read(path: &Path, url: &str) -> Option<Note> {
        if fs::metadata(path).ok()?.len() > MAX_NOTE {
            return None;
        }
        let note: Note = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        (note.url == url && !note.validator.is_empty()).then_some(note)
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_string(self)?)
    }
}

/// The note that belongs to a part.
pub(super) fn note_path(part: &Path) -> PathBuf {
    part.with_extension("note")
}

/// What a state of a resource is recognised by: an entity tag that is not weak, or a date.
pub(super) fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let tag = text(ETAG).filter(|tag| tag.starts_with('"'));
    tag.or_else(|| text(LAST_MODIFIED)).map(str::to_owned)
}

/// Asks for the rest.
pub(super) fn ask(headers: &mut HeaderMap, progress: &Progress) {
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
pub(super) fn judge(progress: &Progress, status: StatusCode, headers: &HeaderMap) -> Verdict {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let range = range.and_then(|range| range.strip_prefix("bytes ")).and_then(|range| range.split_once('/'));
    match (status, range) {
        (StatusCode::PARTIAL_CONTENT, Some((range, total))) if progress.validator.is_some() => {
            let is_rest = is_the_rest(progress.offset, range, total, headers);
            if is_rest && is_same(progress, headers) { Verdict::Rest } else { Verdict::Again }
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

/// Whether a range begins at `offset`, ends with the resource, and is as long as the content that comes.
fn is_the_rest(offset: u64, range: &str, total: &str, headers: &HeaderMap) -> bool {
    let ends =
        range.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let Some((first, last)): Option<(u64, u64)> = ends else { return false };
    let length = last.checked_sub(first).and_then(|length| length.checked_add(1));
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let to_the_end = total == "*" || last.checked_add(1) == total.parse().ok();
    first == offset && to_the_end && announced.is_some() && announced == length
}

/// Whether a response says nothing else of the state of the resource than what is known of the part: a server that
/// does not know `If-Range` sends the rest of whatever it has.
fn is_same(progress: &Progress, headers: &HeaderMap) -> bool {
    let said = validator(headers);
    said.is_none() || progress.validator.is_none() || said == progress.validator
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn responses_are_judged() {
        let part = Progress { offset: 100, validator: Some("\"a\"".to_owned()) };
        let of = |progress: &Progress, status: u16, range: &'static str| {
            let all = [("content-range", range), ("content-length", "100"), ("etag", "\"a\"")];
            judge(progress, StatusCode::from_u16(status).unwrap(), &headers(&all))
        };
        assert_eq!(of(&part, 206, "bytes 100-199/200"), Verdict::Rest);
        assert_eq!(of(&part, 206, "bytes 100-199/*"), Verdict::Rest);
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
        let file = Progress { offset: 100, validator: None };
        assert_eq!(of(&file, 206, "bytes 100-199/200"), Verdict::Again);
        assert_eq!(of(&file, 416, "bytes */100"), Verdict::Whole);
    }

    #[test]
    fn weak_tags_do_not_validate() {
        let date = "Sat, 21 Nov 2026 20:52:47 GMT";
        assert_eq!(validator(&headers(&[("etag", "\"a\""), ("last-modified", date)])).unwrap(), "\"a\"");
        assert_eq!(validator(&headers(&[("etag", "W/\"a\""), ("last-modified", date)])).unwrap(), date);
        assert_eq!(validator(&headers(&[("etag", "W/\"a\"")])), None);
    }

    #[test]
    fn the_rest_is_asked_for_on_condition() {
        let mut asked = HeaderMap::new();
        ask(&mut asked, &Progress { offset: 7, validator: Some("\"a\"".to_owned()) });
        assert_eq!(
            (&asked[RANGE], &asked[IF_RANGE]),
            (&HeaderValue::from_static("bytes=7-"), &HeaderValue::from_static("\"a\""))
        );
    }

    #[test]
    fn notes_are_of_one_url() {
        let folder = tempfile::tempdir().unwrap();
        let path = note_path(&folder.path().join(".x.godwit.part"));
        let note = Note { url: "https://a/x".to_owned(), validator: "\"a\"".to_owned() };
        note.write(&path).unwrap();
        assert_eq!(Note::read(&path, "https://a/x"), Some(note));
        assert_eq!(Note::read(&path, "https://a/y"), None);
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(Note::read(&path, "https://a/x"), None);
    }
}
