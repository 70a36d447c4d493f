//! Compression of responses as they pass.
//!
//! Compressed is what gains by it: text and its kin, of more than `LEAST` bytes or of unknown length, that is
//! neither encoded nor a part of something, and whose sender does not forbid it (`no-transform`). A strong entity
//! tag becomes weak, for the bytes are others. Streams stay streams: whenever the sender pauses, what it has sent so far
//! goes out. Events (`text/event-stream`) are left alone altogether.
//!
//! Each compression takes memory while it lasts, up to some megabytes, and clients may be slow. All together have
//! `MEMORY`; where it does not suffice for the coding that would be best, a cheaper one is taken, or none.
//!
//! Compression tells who watches the length of encrypted responses something about their content: where a page has a
//! secret and also text that somebody else may choose, it can be guessed piece by piece (BREACH). So what may hold a
//! secret of one user is left alone unless [that is wished](CompressionLayer::with_credentials): a response that sets a cookie,
//! and one to a request with a cookie or `Authorization`, unless it says that it is for everybody (`cache-control: public`)
//! or is known to be ([`SameForAll`]).

mod encoder;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, ETAG, HeaderMap, HeaderName, HeaderValue, SET_COOKIE,
};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use crate::coding::{self, Accepted, Coding};
use encoder::Encoder;
use godwit_body::{BoxBody, BoxError, FramePoll, boxed};

/// Below this many bytes a response is about as short as it gets.
const LEAST: u64 = 1024;
/// Memory for all compressions under way, in KiB.
const MEMORY: usize = 256 << 10;
/// Bytes that are compressed without a pause for others.
const SLICE: usize = 32 << 10;
/// Slices after which a pause is made even if nothing came out yet.
const SLICES: usize = 16;
/// Compressed bytes that are collected before they are passed on, while the sender does not pause.
const PIECE: usize = 16 << 10;

/// The memory that compressions may still take. Clones share it.
#[derive(Clone, Debug)]
pub struct CompressionMemory(Arc<Semaphore>);

impl Default for CompressionMemory {
    fn default() -> CompressionMemory {
        CompressionMemory(Arc::new(Semaphore::new(MEMORY)))
    }
}

/// Compresses the responses of a service.
#[derive(Clone, Debug)]
pub struct CompressionLayer {
    codings: Arc<[Coding]>,
    memory: CompressionMemory,
    /// Also what may hold a secret.
    with_credentials: bool,
}

impl CompressionLayer {
    /// Offers these codings, in this order of preference, and compresses within this memory.
    pub fn new(codings: &[Coding], memory: CompressionMemory) -> CompressionLayer {
        CompressionLayer { codings: codings.into(), memory, with_credentials: false }
    }

    /// Whether responses are compressed that set a cookie, or that answer a request with a cookie or `Authorization`.
    /// Default false. True is for services whose pages show nothing that strangers choose beside secrets, or that mask
    /// their secrets anew in each response.
    pub fn with_credentials(self, wished: bool) -> CompressionLayer {
        CompressionLayer { with_credentials: wished, ..self }
    }

    /// What matters of a request for the compression of its response, for whoever is no service:
    /// [`CompressionLayer::compress`] follows.
    pub fn preferences<B>(&self, request: &Request<B>) -> Preferences {
        Preferences { with_credentials: self.with_credentials, ..Preferences::of(request) }
    }

    /// The response to a request with these preferences, compressed if that makes sense and the client takes it.
    pub fn compress(&self, response: Response<BoxBody>, preferences: Preferences) -> Response<BoxBody> {
        compress(response, preferences, &self.codings, &self.memory)
    }
}

/// In the extensions of a response: it is the same for everybody, whoever asks and with what credentials, and so holds no
/// secret of a user. [`crate::files`] say so of theirs.
#[derive(Clone, Copy, Debug)]
pub struct SameForAll;

impl Default for CompressionLayer {
    fn default() -> CompressionLayer {
        CompressionLayer::new(&[Coding::Zstd, Coding::Brotli, Coding::Gzip], CompressionMemory::default())
    }
}

impl<S> Layer<S> for CompressionLayer {
    type Service = Compression<S>;

    fn layer(&self, inner: S) -> Compression<S> {
        Compression { inner, layer: self.clone() }
    }
}

/// A service whose responses are compressed.
#[derive(Clone, Debug)]
pub struct Compression<S> {
    inner: S,
    layer: CompressionLayer,
}

impl<S, B, R> Service<Request<B>> for Compression<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<BoxBody>;
    type Error = S::Error;
    type Future = CompressionFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let preferences = self.layer.preferences(&request);
        CompressionFuture { answer: self.inner.call(request), preferences, layer: self.layer.clone() }
    }
}

pin_project! {
    /// The response of a [`Compression`], to come.
    #[derive(Debug)]
    pub struct CompressionFuture<F> {
        #[pin]
        answer: F,
        preferences: Preferences,
        layer: CompressionLayer,
    }
}

impl<F, R, E> Future for CompressionFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Output = Result<Response<BoxBody>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.answer.poll(cx))?.map(boxed);
        Poll::Ready(Ok(this.layer.compress(response, *this.preferences)))
    }
}

/// What of a request matters for the compression of its response.
#[derive(Clone, Copy, Debug)]
pub struct Preferences {
    accepted: Accepted,
    head: bool,
    /// The response may be a tunnel, or the client wants the bytes as they are.
    never: bool,
    /// It says who sent it.
    has_credentials: bool,
    /// What may hold a secret is compressed all the same.
    with_credentials: bool,
}

impl Preferences {
    fn of<B>(request: &Request<B>) -> Preferences {
        let never = request.method() == Method::CONNECT || has_no_transform(request.headers());
        let accepted = if never { Accepted::default() } else { Accepted::of(request.headers()) };
        let headers = request.headers();
        let has_credentials = headers.contains_key(COOKIE) || headers.contains_key(AUTHORIZATION);
        let head = request.method() == Method::HEAD;
        Preferences { accepted, head, never, has_credentials, with_credentials: false }
    }
}

/// Compresses a response if that makes sense and the client takes one of `offered`.
fn compress(
    mut response: Response<BoxBody>,
    preferences: Preferences,
    offered: &[Coding],
    memory: &CompressionMemory,
) -> Response<BoxBody> {
    if preferences.never || offered.is_empty() || !is_worth_it(&response, preferences.head) {
        return response;
    }
    coding::vary(response.headers_mut());
    if !preferences.with_credentials && may_hold_secret(&response, preferences.has_credentials) {
        return response;
    }
    let length = length(&response);
    let ranked = preferences.accepted.ranked(offered);
    let first_with_room = ranked.into_iter().find_map(|coding| {
        let cost = encoder::cost(coding, length);
        Some((coding, Arc::clone(&memory.0).try_acquire_many_owned(cost).ok()?))
    });
    let Some((coding, permit)) = first_with_room else { return response };
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    weaken(headers);
    if preferences.head {
        return response;
    }
    response.map(|body| Compressed::new(body, coding, length, permit).boxed_unsync())
}

/// What most responses fail comes first.
fn is_worth_it(response: &Response<BoxBody>, head: bool) -> bool {
    let long = match length(response) {
        Some(length) => length >= LEAST,
        None => !head && !response.body().is_end_stream(),
    };
    let headers = response.headers();
    long && has_all(response.status())
        && headers.get(CONTENT_TYPE).is_some_and(is_compressible)
        && !headers.keys().any(|name| FOR_THESE_BYTES.contains(name))
        && !has_no_transform(headers)
}

/// Whether responses of this status have the whole content.
fn has_all(status: StatusCode) -> bool {
    !status.is_informational()
        && !matches!(
            status,
            StatusCode::NO_CONTENT
                | StatusCode::RESET_CONTENT
                | StatusCode::PARTIAL_CONTENT
                | StatusCode::NOT_MODIFIED
        )
}

/// What is said of bytes as they are, or shows that they are not.
static FOR_THESE_BYTES: [HeaderName; 6] = [
    CONTENT_RANGE,
    CONTENT_ENCODING,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Whether a response may hold what its client alone should know, beside what others had the client send.
fn may_hold_secret(response: &Response<BoxBody>, asked_with_credentials: bool) -> bool {
    if response.extensions().get::<SameForAll>().is_some() {
        return false;
    }
    let headers = response.headers();
    headers.contains_key(SET_COOKIE) || (asked_with_credentials && !has_cache_control(headers, "public"))
}

/// The length of the body, if it is known.
fn length(response: &Response<BoxBody>) -> Option<u64> {
    let said = response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    said.or_else(|| response.body().size_hint().exact().filter(|length| *length > 0))
}

fn has_no_transform(headers: &HeaderMap) -> bool {
    has_cache_control(headers, "no-transform")
}

fn has_cache_control(headers: &HeaderMap, wanted: &str) -> bool {
    let lists = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
}

fn is_compressible(content_type: &HeaderValue) -> bool {
    let Ok(text) = content_type.to_str() else { return false };
    let kind = text.split(';').next().unwrap_or(text).trim().to_ascii_lowercase();
    let Some((class, name)) = kind.split_once('/') else { return false };
    match class {
        "text" => name != "event-stream",
        "application" => {
            const NAMES: [&str; 16] = [
                "json",
                "javascript",
                "x-javascript",
                "ecmascript",
                "xml",
                "wasm",
                "x-ndjson",
                "jsonl",
                "graphql",
                "yaml",
                "x-yaml",
                "toml",
                "sql",
                "rtf",
                "vnd.ms-fontobject",
                "x-font-ttf",
            ];
            let suffixes = ["+json", "+xml", "+yaml", "+text"];
            NAMES.contains(&name) || suffixes.iter().any(|suffix| name.ends_with(suffix))
        }
        "image" => matches!(name, "svg+xml" | "bmp" | "x-icon" | "vnd.microsoft.icon"),
        "font" => matches!(name, "ttf" | "otf" | "collection"),
        "model" => name.ends_with("+json") || name.ends_with("+xml") || name == "obj",
        _ => false,
    }
}

/// The tag is of the bytes before compression: equal in meaning only (RFC 9110 section 8.8.1).
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG) else { return };
    if !tag.as_bytes().starts_with(b"W/") {
        match HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
            Ok(weak) => drop(headers.insert(ETAG, weak)),
            Err(_) => drop(headers.remove(ETAG)),
        }
    }
}

/// A body that is compressed as it is read.
struct Compressed {
    body: BoxBody,
    /// Made with the first data, gone after the last.
    encoder: Option<Encoder>,
    coding: Coding,
    length: Option<u64>,
    /// What was read and is not compressed yet.
    input: Bytes,
    /// The encoder has got bytes since it was last flushed.
    dirty: bool,
    end: End,
    permit: Option<OwnedSemaphorePermit>,
}

/// How far the end has come.
enum End {
    NotYet,
    /// All is read; these trailers are still to be passed on.
    Read(Option<HeaderMap>),
    /// All is compressed.
    Compressed(Option<HeaderMap>),
}

impl Compressed {
    fn new(body: BoxBody, coding: Coding, length: Option<u64>, permit: OwnedSemaphorePermit) -> Compressed {
        Compressed {
            body,
            encoder: None,
            coding,
            length,
            input: Bytes::new(),
            dirty: false,
            end: End::NotYet,
            permit: Some(permit),
        }
    }

    /// Compresses up to a slice of the input; the output when there is enough of it.
    fn compress_slice(&mut self) -> Result<Option<Bytes>, BoxError> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::new(self.coding, self.length)?),
        };
        let slice = self.input.get(..SLICE.min(self.input.len())).unwrap_or_default();
        encoder.write(slice)?;
        let count = slice.len();
        self.input.advance(count);
        self.dirty = true;
        Ok((encoder.ready() >= PIECE).then(|| encoder.take()))
    }

    /// What the encoder has kept back.
    fn flush(&mut self) -> Result<Option<Bytes>, BoxError> {
        self.dirty = false;
        let Some(encoder) = &mut self.encoder else { return Ok(None) };
        encoder.flush()?;
        Ok(Some(encoder.take()).filter(|output| !output.is_empty()))
    }

    fn finish(&mut self, trailers: Option<HeaderMap>) -> Result<Option<Bytes>, BoxError> {
        self.end = End::Compressed(trailers);
        self.permit = None;
        // Even of nothing something has to be made, if it is said to be encoded.
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => Encoder::new(self.coding, Some(0))?,
        };
        Ok(Some(encoder.finish()?).filter(|output| !output.is_empty()))
    }

    /// One step: `Ok(None)` if it gave nothing to pass on.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BoxError>> {
        if !self.input.is_empty() {
            return Poll::Ready(self.compress_slice());
        }
        if let End::Read(trailers) = &mut self.end {
            let trailers = trailers.take();
            return Poll::Ready(self.finish(trailers));
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending if self.dirty => match self.flush() {
                Ok(None) => Poll::Pending,
                output => Poll::Ready(output),
            },
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.end = End::Read(None);
                Poll::Ready(Ok(None))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
            Poll::Ready(Some(Ok(frame))) => {
                match frame.into_data() {
                    Ok(data) => self.input = data,
                    Err(frame) => self.end = End::Read(frame.into_trailers().ok()),
                }
                Poll::Ready(Ok(None))
            }
        }
    }
}

impl Body for Compressed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        let this = self.get_mut();
        for _ in 0..SLICES {
            if let End::Compressed(trailers) = &mut this.end {
                return Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            if let Some(output) = ready!(this.step(cx)).transpose() {
                return Poll::Ready(Some(output.map(Frame::data)));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.end, End::Compressed(None))
    }
}

#[cfg(test)]
mod tests;
