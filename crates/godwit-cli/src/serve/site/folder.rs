//! A folder on disk. `tower-http` reads the files (ranges, content types, streaming in pieces); this adds what it
//! lacks: strong entity tags, links that stay inside, hidden files, a page for 404.

use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED, RANGE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tower::ServiceExt;
use tower_http::services::ServeDir;

use super::body::Body;
use super::conditions::{self, Verdict};
use super::pages;
use super::path::{self, Target};
use crate::error::{Failure, plain};
use crate::output::http_date;
use crate::serve::config::Files;
use crate::serve::front::body::{ResponseBody, bare, boxed};

/// How much of a file is read at a time: also the most that one response holds in memory.
const PIECE: usize = 128 << 10;
/// A folder's own `404.html` is used up to this size.
const LARGEST_404: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Folder {
    /// Canonical, so that "inside" can be told by comparing beginnings.
    root: PathBuf,
    files: ServeDir,
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
            let files = ServeDir::new(&root).with_buf_chunk_size(PIECE);
            Ok(Folder { root, files })
        };
        let remedy = "give a folder that exists and can be read, or none for the example site";
        open().map_err(|error: io::Error| Failure::file("cannot serve", path, plain(&error), remedy))
    }

    pub(crate) async fn respond(&self, mut request: Request<()>, _prefix: &str) -> Response<ResponseBody> {
        let head = *request.method() == Method::HEAD;
        let Some((relative, slash)) = path::relative(request.uri().path()) else {
            return self.not_found(head).await;
        };
        let metadata = match self.look(relative, slash).await {
            Target::File(metadata) => metadata,
            Target::Folder => return pages::to_folder(request.uri().path(), request.uri().query()),
            Target::Nothing => return self.not_found(head).await,
        };
        let length = metadata.len();
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let since = since.unwrap_or_default();
        let tag = conditions::file_tag(since.as_nanos(), length);
        let modified = http_date(i64::try_from(since.as_secs()).unwrap_or(0));
        match conditions::check(request.headers_mut(), &tag, Some(&modified)) {
            Verdict::Proceed => {}
            Verdict::NotModified => return with_tag(bare(StatusCode::NOT_MODIFIED), &tag, &modified),
            Verdict::PreconditionFailed => return bare(StatusCode::PRECONDITION_FAILED),
        }
        if is_beyond_us(request.headers(), length) {
            request.headers_mut().remove(RANGE);
        }
        let response = match self.files.clone().oneshot(request).await {
            Ok(response) if head => response.map(|body| boxed(Body::file(body, None))),
            Ok(response) => {
                let announced = content_length(response.headers());
                response.map(|body| boxed(Body::file(body, announced)))
            }
            Err(never) => match never {},
        };
        match response.status() {
            // The file went away in between.
            StatusCode::NOT_FOUND => self.not_found(head).await,
            StatusCode::OK if length_differs(response.headers(), length) => response,
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED => {
                with_charset(with_tag(response, &tag, &modified))
            }
            _ => response,
        }
    }

    async fn look(&self, relative: PathBuf, slash: bool) -> Target {
        let root = self.root.clone();
        let look = tokio::task::spawn_blocking(move || path::look(&root, &relative, slash));
        look.await.unwrap_or(Target::Nothing)
    }

    async fn not_found(&self, head: bool) -> Response<ResponseBody> {
        let page = PathBuf::from("404.html");
        let own = match self.look(page.clone(), false).await {
            Target::File(metadata) if metadata.len() <= LARGEST_404 => {
                tokio::fs::read(self.root.join(page)).await.ok().map(Bytes::from)
            }
            _ => None,
        };
        pages::not_found(own, head)
    }
}

/// Whether the file was replaced between our look at it and its opening: the tag is not this version's then.
fn length_differs(headers: &HeaderMap, length: u64) -> bool {
    content_length(headers) != Some(length)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether a range is asked for that the file service does not answer well: several at once, or one of a file
/// without bytes. It is ignored then, as a server may (RFC 9110 section 14.2).
fn is_beyond_us(headers: &HeaderMap, length: u64) -> bool {
    headers.get(RANGE).is_some_and(|range| length == 0 || range.as_bytes().contains(&b','))
}

fn with_tag(mut response: Response<ResponseBody>, tag: &str, modified: &str) -> Response<ResponseBody> {
    let headers = response.headers_mut();
    if let (Ok(tag), Ok(modified)) = (HeaderValue::from_str(tag), HeaderValue::from_str(modified)) {
        headers.insert(ETAG, tag);
        headers.insert(LAST_MODIFIED, modified);
    }
    headers.entry(ACCEPT_RANGES).or_insert(HeaderValue::from_static("bytes"));
    response
}

/// Text is taken to be UTF-8: browsers would otherwise guess a legacy encoding.
fn with_charset(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if let Some(value) = response.headers_mut().get_mut(CONTENT_TYPE)
        && let Ok(text) = value.to_str()
        && text.starts_with("text/")
        && !text.contains("charset")
        && let Ok(with) = HeaderValue::try_from(format!("{text}; charset=utf-8"))
    {
        *value = with;
    }
    response
}
