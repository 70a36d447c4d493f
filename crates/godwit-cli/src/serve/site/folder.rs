//! A folder on disk: index pages, files compressed beforehand, ranges, conditional requests, links that stay
//! inside, no hidden files, a page for 404.
//!
//! The disk is asked on a thread for blocking work, once for a small file: it is read whole there and closed, so
//! that clients who are slow to take it hold no descriptor. Larger ones are [read in pieces](super::body).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue,
    LAST_MODIFIED, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};

use super::body::FileBody;
use super::conditions::{self, Modified, Verdict};
use super::pages;
use super::path::{self, Place};
use super::range::{self, Range};
use crate::error::{Failure, plain};
use crate::output::http_date;
use crate::serve::config::{Coding, Files};
use crate::serve::front::body::{ResponseBody, bare, boxed, empty, full};
use crate::serve::front::coding::{self, Accepted};

/// Up to this size a file (or the range of it that is asked for) is read at once.
const SMALL: u64 = 64 << 10;
/// A folder's own `404.html` is used up to this size.
const LARGEST_404: u64 = 1 << 20;
/// Files that were compressed beforehand can be as small as possible: brotli first.
const BEFOREHAND: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// A folder that is served. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Folder(Arc<Settings>);

#[derive(Debug)]
struct Settings {
    /// Canonical, so that "inside" can be told by comparing beginnings.
    root: PathBuf,
    index: Vec<String>,
    precompressed: bool,
    fallback: Option<PathBuf>,
}

impl Folder {
    /// # Errors
    /// If it is not a folder that can be read.
    pub(crate) fn open(settings: &Files) -> Result<Folder, Failure> {
        let path = &settings.folder;
        if path.is_file() {
            let problem = "it is a file, not a folder";
            return Err(Failure::file("cannot serve", path, problem, "give the folder that it is in"));
        }
        let open = || {
            let root = path.canonicalize()?;
            std::fs::read_dir(&root)?;
            Ok(root)
        };
        let remedy = "give a folder that exists and can be read, or none for the example site";
        let root =
            open().map_err(|error: io::Error| Failure::file("cannot serve", path, plain(&error), remedy))?;
        let fallback = settings.fallback.as_deref().and_then(path::relative).map(|(relative, _)| relative);
        Ok(Folder(Arc::new(Settings {
            root,
            index: settings.index.clone(),
            precompressed: settings.precompressed,
            fallback,
        })))
    }

    /// `prefix` is what was taken off the path.
    pub(crate) async fn respond(&self, request: Request<()>, prefix: &str) -> Response<ResponseBody> {
        let (settings, prefix) = (Arc::clone(&self.0), prefix.to_owned());
        let answer = tokio::task::spawn_blocking(move || settings.answer(&request, &prefix));
        let mut response = answer.await.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR));
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// A file, opened.
struct Found {
    file: File,
    length: u64,
    modified: Modified,
    /// Strong.
    tag: String,
    /// What it was compressed with beforehand.
    coding: Option<Coding>,
    content_type: HeaderValue,
}

impl Settings {
    /// Blocks.
    fn answer(&self, request: &Request<()>, prefix: &str) -> Response<ResponseBody> {
        let head = *request.method() == Method::HEAD;
        let Some((relative, slash)) = path::relative(request.uri().path()) else {
            return self.not_found(head);
        };
        let mut place = path::look(&self.root, &relative, slash, &self.index);
        if let (Ok(Place::Nothing), Some(fallback)) = (&place, &self.fallback) {
            place = path::look(&self.root, fallback, false, &[]);
        }
        let answer = match place {
            Ok(Place::File(path)) => self.open(path, request).and_then(|file| file.answer(request)),
            Ok(Place::Folder) => {
                let path = format!("{}{}", prefix.trim_end_matches('/'), request.uri().path());
                return pages::to_folder(&path, request.uri().query());
            }
            Ok(Place::Nothing) => return self.not_found(head),
            Err(error) => Err(error),
        };
        match answer {
            Ok(mut response) => {
                if self.precompressed {
                    coding::vary(response.headers_mut());
                }
                response
            }
            Err(error) if path::is_absence(&error) => self.not_found(head),
            Err(error) => {
                // Too many open files, perhaps: that passes.
                tracing::warn!(%error, path = request.uri().path(), "cannot read a file");
                pages::unavailable()
            }
        }
    }

    /// The file, or one beside it that the client prefers.
    fn open(&self, path: PathBuf, request: &Request<()>) -> io::Result<Found> {
        if self.precompressed {
            for coding in Accepted::of(request.headers()).ranked(&BEFOREHAND) {
                let mut name = path.clone().into_os_string();
                name.push(coding.suffix());
                if let Ok(Some(beside)) = path::file_inside(&self.root, Path::new(&name))
                    && let Ok(found) = Found::open(&beside, Some(coding), &path)
                {
                    return Ok(found);
                }
            }
        }
        Found::open(&path, None, &path)
    }

    fn not_found(&self, head: bool) -> Response<ResponseBody> {
        let own = || {
            let path = path::file_inside(&self.root, &self.root.join("404.html")).ok()??;
            let file = File::open(path).ok()?;
            let mut page = Vec::new();
            file.take(LARGEST_404 + 1).read_to_end(&mut page).ok()?;
            (page.len() as u64 <= LARGEST_404).then(|| Bytes::from(page))
        };
        pages::not_found(own(), head)
    }
}

impl Found {
    /// `named` is the file whose name tells the type.
    fn open(path: &Path, coding: Option<Coding>, named: &Path) -> io::Result<Found> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let length = metadata.len();
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let since = since.unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(0);
        let modified = Modified { seconds, date: http_date(seconds) };
        let tag = conditions::file_tag(since.as_nanos(), length, coding.map(Coding::name));
        Ok(Found { file, length, modified, tag, coding, content_type: content_type(named) })
    }

    /// Blocks.
    fn answer(self, request: &Request<()>) -> io::Result<Response<ResponseBody>> {
        let mut headers = request.headers().clone();
        let verdict = conditions::check(&mut headers, &self.tag, Some(&self.modified));
        match verdict {
            Verdict::Proceed => {}
            Verdict::NotModified => return Ok(self.head(StatusCode::NOT_MODIFIED)),
            Verdict::PreconditionFailed => return Ok(bare(StatusCode::PRECONDITION_FAILED)),
        }
        let is_head = *request.method() == Method::HEAD;
        let range = if is_head { Range::Whole } else { range::asked(&headers, self.length) };
        let (status, first, length) = match range {
            Range::Whole => (StatusCode::OK, 0, self.length),
            Range::Part { first, length } => (StatusCode::PARTIAL_CONTENT, first, length),
            Range::Beyond => {
                let mut response = bare(StatusCode::RANGE_NOT_SATISFIABLE);
                let range = format!("bytes */{}", self.length);
                response
                    .headers_mut()
                    .extend(HeaderValue::try_from(range).map(|range| (CONTENT_RANGE, range)));
                response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
                return Ok(response);
            }
        };
        let mut response = self.head(status);
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, self.content_type.clone());
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
        fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(coding) = self.coding {
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {first}-{}/{}", first + length.saturating_sub(1), self.length);
            fields.extend(HeaderValue::try_from(range).map(|range| (CONTENT_RANGE, range)));
        }
        *response.body_mut() = if is_head { empty() } else { self.body(first, length)? };
        Ok(response)
    }

    /// What is said of every version of the file that the client may have.
    fn head(&self, status: StatusCode) -> Response<ResponseBody> {
        let mut response = bare(status);
        let fields = response.headers_mut();
        fields.extend(HeaderValue::from_str(&self.tag).map(|tag| (ETAG, tag)));
        fields.extend(HeaderValue::from_str(&self.modified.date).map(|date| (LAST_MODIFIED, date)));
        response
    }

    fn body(mut self, first: u64, length: u64) -> io::Result<ResponseBody> {
        if first > 0 {
            self.file.seek(SeekFrom::Start(first))?;
        }
        if length > SMALL {
            return Ok(boxed(FileBody::new(self.file, length)));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.file.read_exact(&mut bytes)?;
        Ok(full(bytes))
    }
}

/// By the name's ending. Text is taken to be UTF-8: browsers would otherwise guess a legacy encoding.
fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream");
    if guess.starts_with("text/") && !guess.contains("charset") {
        return HeaderValue::try_from(format!("{guess}; charset=utf-8"))
            .unwrap_or(HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    HeaderValue::from_static(guess)
}

#[cfg(test)]
mod tests;
