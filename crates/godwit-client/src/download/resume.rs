//! Continuing what an earlier run left: what has come so far stands in `.NAME.godwit.part`, and beside it a note says
//! of which URL and which state of it. The server is asked for the rest only if nothing has changed there
//! (`If-Range`, RFC 9110 section 13.1.5).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
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
    /// How long all of it is, in bytes, where the server has told.
    #[serde(default)]
    pub(super) length: Option<u64>,
}

/// What is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Bytes.
    pub(super) offset: u64,
    /// `None` for a file under its final name: it is only to be found out whether it is whole.
    pub(super) validator: Option<String>,
    /// Bytes of the whole, where that is known.
    pub(super) length: Option<u64>,
}

/// What a response means for what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the rest of so many bytes, if that is known.
    Rest { length: Option<u64> },
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
        let mut text = String::new();
        open_own(path, OpenOptions::new().read(true)).ok()?.take(MAX_NOTE).read_to_string(&mut text).ok()?;
        let note: Note = serde_json::from_str(&text).ok()?;
        (note.url == url && !note.validator.is_empty()).then_some(note)
    }

    /// Writes the note as a new file: what somebody else has put there is not written to.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())
    }
}

/// Opens a file that an earlier run has left under a name that others can guess. Whoever may write to the folder
/// may have put something else there: a link, a pipe, a file that has another name too or that belongs to somebody
/// else.
///
/// # Errors
/// `PermissionDenied` with the reason, if it is such a thing.
pub(super) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let refused = |what: &str| io::Error::new(io::ErrorKind::PermissionDenied, what.to_owned());
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.open(path) {
        Ok(file) => file,
        #[cfg(unix)]
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(refused("it is a link")),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is no regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.nlink() > 1 {
            return Err(refused("the file has another name besides"));
        }
        #[cfg(target_os = "linux")]
        if metadata.uid() != godwit_os::user::id() {
            return Err(refused("it belongs to another user"));
        }
    }
    Ok(file)
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

/// How long the content of a response is that is whole.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
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
            the_rest(progress, range, total, headers)
                .filter(|_| is_same(progress, headers))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn responses_are_judged() {
        let part = Progress { offset: 100, validator: Some("\"a\"".to_owned()), length: None };
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
        let file = Progress { offset: 100, validator: None, length: None };
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
        ask(&mut asked, &Progress { offset: 7, validator: Some("\"a\"".to_owned()), length: None });
        assert_eq!(
            (&asked[RANGE], &asked[IF_RANGE]),
            (&HeaderValue::from_static("bytes=7-"), &HeaderValue::from_static("\"a\""))
        );
    }

    #[test]
    fn notes_are_of_one_url() {
        let folder = tempfile::tempdir().unwrap();
        let path = note_path(&folder.path().join(".x.godwit.part"));
        let note = Note { url: "https://a/x".to_owned(), validator: "\"a\"".to_owned(), length: Some(5) };
        note.write(&path).unwrap();
        assert_eq!(Note::read(&path, "https://a/x"), Some(note));
        assert_eq!(Note::read(&path, "https://a/y"), None);
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(Note::read(&path, "https://a/x"), None);
    }

    #[test]
    fn notes_of_earlier_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, r#"{"url":"https://a/x","validator":"\"a\""}"#).unwrap();
        assert_eq!(Note::read(&path, "https://a/x").unwrap().length, None);
    }

    #[cfg(unix)]
    #[test]
    fn what_somebody_else_has_put_there_is_left_alone() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        let note = Note { url: "https://a/x".to_owned(), validator: "\"a\"".to_owned(), length: None };
        note.write(&target).unwrap();
        symlink(&target, &link).unwrap();
        assert_eq!(Note::read(&link, "https://a/x"), None);
        fs::write(&target, "precious").unwrap();
        note.write(&link).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        let refusal = |path: &Path| open_own(path, OpenOptions::new().append(true)).unwrap_err().to_string();
        let second = folder.path().join("second");
        fs::hard_link(&target, &second).unwrap();
        assert_eq!(refusal(&second), "the file has another name besides");
        let again = folder.path().join("again");
        symlink(&target, &again).unwrap();
        assert_eq!(refusal(&again), "it is a link");
        assert_eq!(refusal(Path::new("/dev/null")), "it is no regular file");
    }
}
