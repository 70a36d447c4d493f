//! Downloads: one URL fetched into a file or a writer, by way of redirects, and continued where an earlier run stopped
//! (`resume`); and many of them ([`Many`]), so many at a time ([`run_all`]), with what people write and read about them: headers
//! ([`HeaderLines`]), bodies ([`Data`]), names of files ([`file_names`]), figures ([`Timing`], [`Samples`], [`Tally`]),
//! lines ([`Narrator`]).
//!
//! No file stands under its final name before it is whole (`sink`).

mod batch;
mod data;
mod head;
mod header_lines;
mod many;
mod names;
mod narrator;
mod part_name;
mod resume;
mod samples;
mod sink;
mod tally;
mod timing;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, LOCATION, RANGE};
use http::uri::Authority;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::{Body, Frame};

use crate::body::BodySource;
use crate::client::Client;
use crate::decoding::{self, Decoded};
use crate::error::{Error, ErrorKind, Remedy};
use crate::exchange::SendOptions;
use crate::explain;
use crate::ranges::{self, Progress, Verdict};
use crate::redirect::{Hop, is_redirect};
use crate::route::Route;
use crate::server::Versions;
use crate::session::{ExchangeError, ResponseBody};
use crate::target::Target;
use sink::Sink;

pub use batch::{Batch, Rounds, run_all};
pub use data::Data;
pub use head::Head;
pub use header_lines::{HeaderLineError, HeaderLines};
pub use many::{Many, Place};
pub use names::file_names;
pub use narrator::{Narrator, Words};
pub use part_name::MAX_NAME;
pub use samples::Samples;
pub use sink::{Destination, remove_unfinished};
pub use tally::Tally;
pub use timing::{Timing, rate_in_words, version_name};

/// What is to be fetched, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Download {
    /// The URL.
    pub target: Target,
    /// The method. Default GET.
    pub method: Method,
    /// The request's headers. Default none.
    pub headers: HeaderMap,
    /// What the request names instead of the URL's host and port.
    pub authority: Option<Authority>,
    /// The request's body. Default none.
    pub body: BodySource,
    /// A file goes on where an earlier run stopped, if what it is of is still the same at the server; and if this run
    /// fails, a later one can go on.
    pub continued: bool,
    /// How many redirects are followed; `None`: they are not.
    pub redirects: Option<u8>,
    /// The most time for all of it. Default none.
    pub max_time: Option<Duration>,
    /// The versions of HTTP that may be spoken. Default what the client is set to.
    pub versions: Versions,
    /// Each request has a connection of its own.
    pub alone: bool,
    /// The response may come compressed, and is kept as it is meant; not where something is continued, nor where the
    /// headers ask for a range or a coding. Default false.
    pub compressed: bool,
}

/// Who follows a download. All functions do nothing by default.
pub trait Observer: Send + Sync {
    /// A request goes out on this connection.
    fn on_route(&self, route: &Route) {
        let _ = route;
    }

    /// The head of a response has come: also of those that redirect. What is returned is written to a
    /// [`Destination::Writer`] before the body.
    ///
    /// # Errors
    /// Any error ends the download.
    fn on_head(&self, head: &Head<'_>) -> Result<Option<Bytes>, Error> {
        let _ = head;
        Ok(None)
    }

    /// What comes is the rest of something that an earlier run began.
    fn on_continued(&self, offset: u64, length: Option<u64>) {
        let _ = (offset, length);
    }

    /// A body of this length comes. `begun`: what is there already.
    fn on_length(&self, begun: u64, length: Option<u64>) {
        let _ = (begun, length);
    }

    /// So many more bytes have come.
    fn on_data(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Something worth knowing that is no failure.
    fn on_remark(&self, remark: &Remark) {
        let _ = remark;
    }
}

impl Observer for () {}

/// Something worth knowing that is no failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Remark {
    /// The file was whole already.
    AlreadyWhole,
    /// The response redirects, which was not to be followed; its body was fetched.
    Redirects(Error),
}

impl Download {
    /// Fetches `target` with GET.
    pub fn new(target: Target) -> Download {
        Download {
            target,
            method: Method::GET,
            headers: HeaderMap::new(),
            authority: None,
            body: BodySource::empty(),
            continued: false,
            redirects: None,
            max_time: None,
            versions: Versions::Auto,
            alone: false,
            compressed: false,
        }
    }

    /// Fetches it into `destination`. What it took is known also where it fails.
    pub async fn run(
        &self,
        client: &Client,
        destination: Destination,
        observer: &dyn Observer,
    ) -> (Timing, Result<(), Error>) {
        let mut timing = Timing::begin();
        let is_file = matches!(destination, Destination::File(_));
        let transfer = Transfer { client, download: self, is_file, observer };
        let outcome = match self.max_time {
            None => transfer.run(destination, &mut timing).await,
            Some(limit) => {
                let run = transfer.run(destination, &mut timing);
                tokio::time::timeout(limit, run).await.unwrap_or_else(|_| Err(Error::too_slow(limit)))
            }
        };
        timing.total = timing.begun.elapsed();
        (timing, outcome)
    }
}

#[derive(Clone, Copy)]
struct Transfer<'a> {
    client: &'a Client,
    download: &'a Download,
    is_file: bool,
    observer: &'a dyn Observer,
}

/// What to do after a response's head.
enum Step {
    /// Read its body.
    Receive(Response<ResponseBody>),
    /// Read the rest of it.
    Continue(Response<ResponseBody>, Progress),
    /// Nothing is missing.
    Whole,
    /// Ask once more.
    Next(Hop),
}

impl Transfer<'_> {
    async fn run(self, destination: Destination, timing: &mut Timing) -> Result<(), Error> {
        // Before anything is asked for: that it cannot be kept is to be known early.
        let mut sink = match destination {
            Destination::File(path) if self.download.continued => {
                Sink::open_continued(&path, &self.download.target.to_string())?
            }
            destination => Sink::open(destination)?,
        };
        let mut progress = sink.progress();
        let mut hop = self.first_hop();
        let mut redirects = 0;
        // What is there already of what comes.
        let mut begun = 0;
        let response = loop {
            let response = self.response(&hop, progress.as_ref(), timing).await?;
            timing.first_byte = Some(timing.begun.elapsed());
            if let Some(head) = self.observer.on_head(&Head::of(&response))? {
                sink.push_aside(head)?;
            }
            match self.step(hop, response, &mut redirects, &mut progress, &mut sink)? {
                Step::Receive(response) => break response,
                Step::Continue(response, progress) => {
                    self.observer.on_continued(progress.offset, progress.length);
                    begun = progress.offset;
                    break response;
                }
                Step::Next(next) => hop = next,
                Step::Whole => {
                    self.observer.on_remark(&Remark::AlreadyWhole);
                    return sink.already_whole();
                }
            }
        };
        let verdict = self.judge(&response);
        if verdict.is_err() && self.is_file {
            return verdict;
        }
        self.receive(response, begun, &mut sink, timing).await?;
        sink.finish()?;
        verdict
    }

    fn first_hop(self) -> Hop {
        let Download { target, method, headers, authority, body, .. } = self.download;
        let mut headers = headers.clone();
        if self.may_decode() {
            decoding::ask(method, &mut headers);
        }
        Hop {
            target: target.clone(),
            method: method.clone(),
            headers,
            authority: authority.clone(),
            body: body.clone(),
        }
    }

    /// Whether what comes is asked for, and kept, without its coding.
    fn may_decode(self) -> bool {
        let Download { headers, compressed, continued, .. } = self.download;
        *compressed && !continued && !headers.contains_key(ACCEPT_ENCODING) && !headers.contains_key(RANGE)
    }

    async fn response(
        self,
        hop: &Hop,
        progress: Option<&Progress>,
        timing: &mut Timing,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut further = HeaderMap::new();
        if let Some(progress) = progress {
            ranges::ask(&mut further, progress);
        }
        let Download { versions, alone, .. } = *self.download;
        let mut on_route = |route: Route| {
            self.observer.on_route(&route);
            timing.connect = timing.connect.or(route.connect);
            timing.version = Some(route.version);
        };
        let options = SendOptions { versions, alone, further: &further };
        self.client.exchanges().response(hop, options, &mut on_route).await
    }

    fn step(
        self,
        hop: Hop,
        response: Response<ResponseBody>,
        redirects: &mut u8,
        progress: &mut Option<Progress>,
        sink: &mut Sink,
    ) -> Result<Step, Error> {
        let (status, headers) = (response.status(), response.headers());
        let location = headers.get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let (Some(most), Some(location)) = (self.download.redirects, location)
            && is_redirect(status)
        {
            if *redirects >= most {
                let text = format!("redirected more than {most} times");
                return Err(Error::new(ErrorKind::Redirect, text).remedy_of(Remedy::MoreRedirects));
            }
            *redirects = redirects.saturating_add(1);
            return Ok(Step::Next(hop.next(status, &location)?));
        }
        let verdict = match progress {
            None if status == StatusCode::PARTIAL_CONTENT && !self.may_be_partial(&hop) => {
                let came = headers.get(CONTENT_RANGE).map(|range| range.as_bytes().escape_ascii());
                let came = came.map(|range| format!(" ({range})")).unwrap_or_default();
                return Err(Error::new(
                    ErrorKind::Response,
                    format!(
                        "expected all of it, but the server sent a part{came} that was not asked for (206 Partial \
                     Content); its operator, or that of a cache before it, has to mend that"
                    ),
                ));
            }
            None => Verdict::Anew,
            Some(progress) => ranges::judge(progress, status, headers),
        };
        match verdict {
            Verdict::Rest { length } => {
                if let Some(progress) = progress.take() {
                    return Ok(Step::Continue(response, Progress { length, ..progress }));
                }
            }
            Verdict::Whole => return Ok(Step::Whole),
            Verdict::Again => {
                *progress = None;
                return Ok(Step::Next(hop));
            }
            Verdict::Anew if status.is_success() => {
                sink.start_anew(ranges::validator(headers), ranges::length(headers))?
            }
            Verdict::Anew => {}
        }
        Ok(Step::Receive(response))
    }

    /// Whether a part of it is what was asked for.
    fn may_be_partial(self, hop: &Hop) -> bool {
        hop.headers.contains_key(RANGE) || hop.method == Method::HEAD
    }

    /// Whether the status is what was hoped for.
    fn judge(self, response: &Response<ResponseBody>) -> Result<(), Error> {
        let status = response.status();
        let text = format!("the server answered {}", explain::status_in_words(status));
        if status.is_client_error() || status.is_server_error() {
            return Err(Error::new(ErrorKind::Status, text));
        }
        if !status.is_redirection() {
            return Ok(());
        }
        let location = response.headers().get(LOCATION).map(|value| value.as_bytes().escape_ascii());
        let error = match location {
            Some(location) => Error::new(ErrorKind::Redirect, format!("{text}; fetch {location} instead"))
                .remedy_of(Remedy::FollowRedirects),
            None => Error::new(ErrorKind::Redirect, text),
        };
        if self.is_file {
            return Err(error);
        }
        self.observer.on_remark(&Remark::Redirects(error));
        Ok(())
    }

    async fn receive(
        self,
        response: Response<ResponseBody>,
        begun: u64,
        sink: &mut Sink,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        let (mut head, body) = response.into_parts();
        let body = match self.may_decode() {
            true => Decoded::of(body, head.status, &mut head.headers),
            false => Decoded::plain(body),
        };
        let expected = self.expected_length(head.status, &head.headers);
        self.observer.on_length(begun, expected);
        let mut body = pin!(body);
        while let Some(frame) = next_frame(body.as_mut(), sink).await? {
            if let Some(route) = body.body.take_news() {
                self.observer.on_route(&route);
            }
            let frame = frame.map_err(|error| broken_off(&error, begun, timing.bytes, expected))?;
            if let Ok(data) = frame.into_data() {
                timing.bytes = timing.bytes.saturating_add(data.len() as u64);
                self.observer.on_data(data.len() as u64);
                sink.push(data)?;
            }
        }
        match expected {
            Some(expected) if expected != timing.bytes => Err(Error::new(
                ErrorKind::Response,
                format!(
                    "expected {expected} bytes, got {}; the server or something before it cut it short: try again",
                    timing.bytes
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The length of the body that will come, where the response tells.
    fn expected_length(self, status: StatusCode, headers: &HeaderMap) -> Option<u64> {
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if self.download.method == Method::HEAD || bodiless {
            return None;
        }
        headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

/// `begun`: what an earlier run has got.
fn broken_off(error: &ExchangeError, begun: u64, got: u64, expected: Option<u64>) -> Error {
    let of = expected.map(|expected| format!(" of {}", begun.saturating_add(expected))).unwrap_or_default();
    let got = begun.saturating_add(got);
    Error::new(
        ErrorKind::Exchange,
        format!("broken off after {got}{of} bytes: {}", explain::exchange_text(error)),
    )
}

/// The next piece of the body. While there is none, what has come is made visible.
async fn next_frame(
    mut body: Pin<&mut Decoded>,
    sink: &mut Sink,
) -> Result<Option<Result<Frame<Bytes>, ExchangeError>>, Error> {
    poll_fn(|cx| match body.as_mut().poll_frame(cx) {
        Poll::Ready(frame) => Poll::Ready(Ok(frame)),
        Poll::Pending => match sink.on_idle() {
            Ok(()) => Poll::Pending,
            Err(problem) => Poll::Ready(Err(problem)),
        },
    })
    .await
}
