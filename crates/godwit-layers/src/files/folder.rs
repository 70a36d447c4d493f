//! A folder on disk: index pages, files compressed beforehand, ranges, conditional requests, links that stay
//! inside, no hidden files, a page for 404.
//!
//! What the system has in memory is sent from where the request is answered; for anything else the disk is asked on a
//! thread for blocking work, once for a small file: it is read whole there and closed, so
//! that clients who are slow to take it hold no descriptor, as long as there is [memory for that](super::memory), and
//! opened for each piece otherwise. Others are [read in pieces](super::body) while they are open, or opened for each piece
//! as well where [too many are open](super::open).

use std::convert::Infallible;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Instant, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};

use super::beneath::{self, Beneath, Entry, Reach};
use super::body::{FileBody, Source};
use super::closed::ClosedFile;
use super::conditions::{self, Modified, Verdict};
use super::memory::FileMemory;
use super::open;
use super::page_cache;
use super::pages;
use super::path::{self, Place};
use super::range::{self, Range};
use super::recent::{self, FolderNumber};
use crate::coding::{self, Accepted, Coding};
use crate::compression::SameForAll;
use godwit_body::{BoxBody, ClientNetwork, NetworkShares, Peer, bare, boxed, full};
use godwit_text::{http_date, instant_now, plain_error};

/// Up to this size a file (or the range of it that is asked for) is read at once, if there is room for it.
const SMALL: u64 = 64 << 10;
/// A folder's own `404.html` is used up to this size.
const LARGEST_404: u64 = 1 << 20;
/// Files that were compressed beforehand can be as small as possible: brotli first.
const BEFOREHAND: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// A folder that is served. Clones are cheap.
///
/// A [`Peer`] in a request's extensions is whose network's share of the memory for files, and of the open ones, a file counts
/// for.
#[derive(Clone, Debug)]
pub struct Folder(Arc<Shared>);

/// What is served of a folder, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderSettings {
    /// Where it is. If that is a link, or the way there has one, it is followed for each request: who exchanges it serves what it
    /// leads to then, and what is being sent already comes from where it led before.
    pub folder: PathBuf,
    /// What stands for a folder, in this order.
    pub index: Vec<String>,
    /// Whether `.zst`, `.br` and `.gz` files beside a file are sent in its place.
    pub precompressed: bool,
    /// Path of the file to send where there is none, with status 200.
    pub fallback: Option<String>,
}

impl FolderSettings {
    /// `index.html` stands for a folder; the rest is off.
    pub fn new(folder: impl Into<PathBuf>) -> FolderSettings {
        FolderSettings {
            folder: folder.into(),
            index: vec!["index.html".to_owned()],
            precompressed: false,
            fallback: None,
        }
    }
}

/// Why a folder cannot be served.
#[derive(Debug)]
#[non_exhaustive]
pub enum FolderError {
    /// It is a file.
    File(PathBuf),
    /// It does not exist, or cannot be read.
    Unreadable(PathBuf, io::Error),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderError::File(path) => {
                write!(
                    f,
                    "cannot serve {}: it is a file, not a folder; give the folder that it is in",
                    path.display()
                )
            }
            FolderError::Unreadable(path, error) => {
                let (path, error) = (path.display(), plain_error(error));
                write!(f, "cannot serve {path}: {error}; give a folder that exists and can be read")
            }
        }
    }
}

impl std::error::Error for FolderError {}

#[derive(Debug)]
struct Shared {
    number: FolderNumber,
    /// Perhaps a link, or beyond one: where it leads is seen anew for each answer.
    root: Arc<Path>,
    index: Vec<String>,
    precompressed: bool,
    fallback: Option<PathBuf>,
    memory: FileMemory,
    open: NetworkShares,
}

impl Folder {
    /// # Errors
    /// If it is not a folder that can be read.
    pub fn open(settings: &FolderSettings) -> Result<Folder, FolderError> {
        let path = &settings.folder;
        if path.is_file() {
            return Err(FolderError::File(path.clone()));
        }
        let open = || {
            std::fs::read_dir(path)?;
            std::path::absolute(path)
        };
        let root = open().map_err(|error| FolderError::Unreadable(path.clone(), error))?;
        let fallback = settings.fallback.as_deref().and_then(path::relative).map(|(relative, _)| relative);
        Ok(Folder(Arc::new(Shared {
            number: FolderNumber::next(),
            root: root.into(),
            index: settings.index.clone(),
            precompressed: settings.precompressed,
            fallback,
            memory: FileMemory::of_process(),
            open: open::of_process(),
        })))
    }

    /// `prefix` is what was taken off the path. The request had `arrived` by then, if that is known: what the system was asked
    /// for another one after that is not asked again.
    pub async fn respond(
        &self,
        request: Request<()>,
        prefix: &str,
        arrived: Option<Instant>,
    ) -> Response<BoxBody> {
        match self.respond_from_memory(&request, prefix, arrived) {
            Some(response) => response,
            None => self.respond_from_disk(request, prefix.to_owned()).await,
        }
    }

    /// As [`Folder::respond`], if the system has in memory what that takes.
    pub fn respond_from_memory(
        &self,
        request: &Request<()>,
        prefix: &str,
        arrived: Option<Instant>,
    ) -> Option<Response<BoxBody>> {
        let wanted = arrived.filter(|_| wants_whole_file(request));
        if let Some(response) = wanted.and_then(|arrived| self.0.answer_again(request, arrived)) {
            return Some(response);
        }
        let since = instant_now();
        let mut response = finished(self.0.answer(request, prefix, Reach::Memory)?);
        if let Some(WholeFile(content)) = response.extensions_mut().remove().filter(|_| wanted.is_some()) {
            let answer = recent::Answer { headers: response.headers().clone(), content };
            recent::keep(self.0.number, request.uri().path(), self.0.accepted(request), since, answer);
        }
        Some(response)
    }

    /// As [`Folder::respond`], wherever the files are: on a thread that may wait for them.
    pub fn respond_from_disk(
        &self,
        request: Request<()>,
        prefix: String,
    ) -> impl Future<Output = Response<BoxBody>> + Send + 'static {
        let shared = Arc::clone(&self.0);
        async move {
            let answer = tokio::task::spawn_blocking(move || shared.answer(&request, &prefix, Reach::Disk));
            let answer = answer.await.ok().flatten();
            finished(answer.unwrap_or_else(|| bare(StatusCode::INTERNAL_SERVER_ERROR)))
        }
    }
}

impl<B: Send + 'static> tower::Service<Request<B>> for Folder {
    type Response = Response<BoxBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<BoxBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let folder = self.clone();
        let request = request.map(drop);
        Box::pin(async move {
            Ok(match *request.method() {
                Method::GET | Method::HEAD => folder.respond(request, "", None).await,
                _ => pages::only_to_read(),
            })
        })
    }
}

/// An answer with what all of them have.
fn finished(mut response: Response<BoxBody>) -> Response<BoxBody> {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.extensions_mut().insert(SameForAll);
    response
}

/// A file, opened.
struct Found {
    file: File,
    /// The same, to be opened later.
    closed: ClosedFile,
    length: u64,
    modified: Modified,
    /// Strong.
    tag: String,
    /// What it was compressed with beforehand.
    coding: Option<Coding>,
    content_type: HeaderValue,
}

/// In the extensions of an answer from memory: the content of a whole file, which is small.
#[derive(Clone, Debug)]
struct WholeFile(Bytes);

/// Whether nothing but a file's whole content will do for a request, if there is one.
fn wants_whole_file(request: &Request<()>) -> bool {
    let conditions = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
    *request.method() == Method::GET && !request.headers().keys().any(|name| conditions.contains(name))
}

impl Shared {
    /// What was answered a moment ago, if the system was asked for that after the request had arrived.
    fn answer_again(&self, request: &Request<()>, arrived: Instant) -> Option<Response<BoxBody>> {
        let known = recent::find(self.number, request.uri().path(), self.accepted(request), arrived)?;
        let length = known.content.len();
        let room = Some(self.memory_for(request).room(length)).filter(|room| room.bytes() == length)?;
        let mut response = Response::new(full(room.filled(known.content)));
        *response.headers_mut() = known.headers;
        response.extensions_mut().insert(SameForAll);
        Some(response)
    }

    /// Which codings the client takes, where that matters.
    fn accepted(&self, request: &Request<()>) -> Option<Accepted> {
        self.precompressed.then(|| Accepted::of(request.headers()))
    }

    /// The answer, unless that is beyond the reach; the disk always has one.
    fn answer(&self, request: &Request<()>, prefix: &str, reach: Reach) -> Option<Response<BoxBody>> {
        let beneath = Beneath::open(&self.root, reach);
        let Some((relative, slash)) = path::relative(request.uri().path()) else {
            return match beneath {
                Err(error) if is_beyond(reach, &error) => None,
                beneath => self.not_found(beneath.ok().as_ref(), reach, request),
            };
        };
        let beneath = match beneath {
            Ok(beneath) => beneath,
            Err(error) => return self.trouble(None, reach, request, &error),
        };
        let mut place = path::look(&beneath, relative, slash, &self.index);
        if let (Ok(Place::Nothing), Some(fallback)) = (&place, &self.fallback) {
            place = path::look(&beneath, fallback.clone(), false, &[]);
        }
        let answer = match place {
            Ok(Place::File(path, file, metadata)) => {
                let found = self.preferred(&beneath, path, (file, metadata), request);
                found.and_then(|found| found.answer(request, self, reach))
            }
            Ok(Place::Folder) => {
                let path = format!("{}{}", prefix.trim_end_matches('/'), request.uri().path());
                return Some(pages::to_folder(&path, request.uri().query()));
            }
            Ok(Place::Nothing) => return self.not_found(Some(&beneath), reach, request),
            Err(error) => Err(error),
        };
        match answer {
            Ok(mut response) => {
                if self.precompressed {
                    coding::vary(response.headers_mut());
                }
                Some(response)
            }
            Err(error) => self.trouble(Some(&beneath), reach, request, &error),
        }
    }

    /// The file, or one beside it that the client prefers.
    fn preferred(
        &self,
        beneath: &Beneath<'_>,
        path: PathBuf,
        (file, metadata): (File, Metadata),
        request: &Request<()>,
    ) -> io::Result<Found> {
        if self.precompressed {
            for coding in Accepted::of(request.headers()).ranked(&BEFOREHAND) {
                let mut name = path.clone().into_os_string();
                name.push(coding.suffix());
                match beneath.entry(Path::new(&name)) {
                    Ok(Some(Entry::File(file, metadata))) => {
                        let closed = ClosedFile::new(&self.root, name.into(), &metadata);
                        return Ok(Found::new((file, closed), &metadata, Some(coding), &path));
                    }
                    Err(error) if is_beyond(beneath.reach(), &error) => return Err(error),
                    _ => {}
                }
            }
        }
        let closed = ClosedFile::new(&self.root, path.clone(), &metadata);
        Ok(Found::new((file, closed), &metadata, None, &path))
    }

    /// The answer where there is an error, unless that is beyond the reach.
    fn trouble(
        &self,
        beneath: Option<&Beneath<'_>>,
        reach: Reach,
        request: &Request<()>,
        error: &io::Error,
    ) -> Option<Response<BoxBody>> {
        if is_beyond(reach, error) {
            return None;
        }
        if beneath::is_absence(error) {
            return self.not_found(beneath, reach, request);
        }
        // Too many open files, perhaps: that passes.
        tracing::warn!(%error, path = request.uri().path(), "cannot read a file");
        Some(pages::unavailable())
    }

    /// With the folder's own page, if it has one.
    fn not_found(
        &self,
        beneath: Option<&Beneath<'_>>,
        reach: Reach,
        request: &Request<()>,
    ) -> Option<Response<BoxBody>> {
        let own = match self.own_page(beneath, reach, request) {
            Err(error) if is_beyond(reach, &error) => return None,
            own => own.ok().flatten(),
        };
        Some(pages::not_found(own, *request.method() == Method::HEAD))
    }

    /// The folder's own page for what is not there, and its length.
    fn own_page(
        &self,
        beneath: Option<&Beneath<'_>>,
        reach: Reach,
        request: &Request<()>,
    ) -> io::Result<Option<(u64, BoxBody)>> {
        let page = beneath.map(|beneath| beneath.entry(Path::new("404.html"))).transpose()?.flatten();
        let Some(Entry::File(file, metadata)) = page else { return Ok(None) };
        let length = metadata.len();
        if length > LARGEST_404 {
            return Ok(None);
        }
        let closed = ClosedFile::new(&self.root, "404.html".into(), &metadata);
        let (page, _) = read_small(file, closed, length, (self.memory_for(request), reach))?;
        Ok(Some((length, page)))
    }

    fn memory_for(&self, request: &Request<()>) -> FileMemory {
        self.memory.for_network(network_of(request))
    }
}

impl Found {
    /// `named` is the file whose name tells the type.
    fn new(
        (file, closed): (File, ClosedFile),
        metadata: &Metadata,
        coding: Option<Coding>,
        named: &Path,
    ) -> Found {
        let length = metadata.len();
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let since = since.unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(0);
        let modified = Modified { seconds, date: http_date(seconds) };
        let tag = conditions::file_tag(since.as_nanos(), length, coding.map(Coding::name));
        Found { file, closed, length, modified, tag, coding, content_type: content_type(named) }
    }

    /// # Errors
    /// If the file cannot be read, or that is beyond the reach.
    fn answer(
        mut self,
        request: &Request<()>,
        shared: &Shared,
        reach: Reach,
    ) -> io::Result<Response<BoxBody>> {
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
        if !is_head {
            if first > 0 {
                self.file.seek(SeekFrom::Start(first))?;
            }
            self.closed.at = first;
            let memory = shared.memory_for(request);
            *response.body_mut() = match length {
                ..=SMALL => {
                    let (body, content) = read_small(self.file, self.closed, length, (memory, reach))?;
                    if let Some(content) = content
                        && (status, reach) == (StatusCode::OK, Reach::Memory)
                    {
                        response.extensions_mut().insert(WholeFile(content));
                    }
                    body
                }
                _ => {
                    let source = match shared.open.take(1, network_of(request)) {
                        Some(place) => Source::Open(self.file, place),
                        None => Source::Closed(self.closed.settled(reach)?),
                    };
                    boxed(FileBody::new(source, length, memory))
                }
            };
        }
        Ok(response)
    }

    /// What is said of every version of the file that the client may have.
    fn head(&self, status: StatusCode) -> Response<BoxBody> {
        let mut response = bare(status);
        let fields = response.headers_mut();
        fields.extend(HeaderValue::from_str(&self.tag).map(|tag| (ETAG, tag)));
        fields.extend(HeaderValue::from_str(&self.modified.date).map(|date| (LAST_MODIFIED, date)));
        response
    }
}

/// Where the request comes from, if the server says so.
fn network_of(request: &Request<()>) -> Option<ClientNetwork> {
    request.extensions().get::<Peer>().and_then(|peer| ClientNetwork::of(peer.address.ip()))
}

/// Whether what is asked for may be had by reaching further.
fn is_beyond(reach: Reach, error: &io::Error) -> bool {
    reach == Reach::Memory && error.kind() == io::ErrorKind::WouldBlock
}

/// So many bytes from where the file stands, which holds no descriptor, and the same as they are if they were read.
fn read_small(
    mut file: File,
    closed: ClosedFile,
    length: u64,
    (memory, reach): (FileMemory, Reach),
) -> io::Result<(BoxBody, Option<Bytes>)> {
    let small = usize::try_from(length).ok().filter(|_| length <= SMALL);
    let room = small.map(|length| memory.room(length)).filter(|room| room.bytes() as u64 == length);
    let Some(room) = room else {
        let closed = closed.settled(reach)?;
        return Ok((boxed(FileBody::new(Source::Closed(closed), length, memory)), None));
    };
    let mut bytes = vec![0; room.bytes()];
    match reach {
        Reach::Memory => page_cache::read(&file, &mut bytes)?,
        Reach::Disk => file.read_exact(&mut bytes)?,
    }
    let bytes = Bytes::from(bytes);
    Ok((full(room.filled(bytes.clone())), Some(bytes)))
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
