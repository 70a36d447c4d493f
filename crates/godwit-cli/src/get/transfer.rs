//! One URL: the request, the response, and where its body goes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{IsTerminal, Write};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_LENGTH, CONTENT_RANGE, LOCATION, RANGE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame};

use super::connect::Network;
use super::explain;
use super::plan::{Exchange, Item, Plan, Versions};
use super::problem::Problem;
use super::redirect::{Hop, is_redirect};
use super::report::Report;
use super::resume::{self, Progress, Verdict};
use super::server::Server;
use super::session::{Answer, Error, Session};
use super::sink::{Destination, Sink};
use super::target::Origin;
use super::upload::{Source, Upload};
use crate::error::plain;
use crate::output::{instant_now, printable_bytes, unix_now};

/// How often a request is sent that the server says it has not processed.
const ATTEMPTS: u32 = 5;

/// What all transfers share.
pub(super) struct Job {
    pub(super) network: Arc<Network>,
    pub(super) plan: Plan,
    pub(super) report: Report,
    servers: Mutex<BTreeMap<(Origin, Versions), Arc<Server>>>,
}

impl Job {
    pub(super) fn new(network: Network, plan: Plan, report: Report) -> Job {
        Job { network: Arc::new(network), plan, report, servers: Mutex::default() }
    }

    /// The server of a URL: always the same, unless each request shall have its own connection.
    fn server(&self, origin: &Origin, versions: Versions) -> Arc<Server> {
        let server = || Arc::new(Server::new(origin.clone(), versions));
        if self.plan.fresh {
            return server();
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry((origin.clone(), versions)).or_insert_with(server))
    }

    /// Remembers what was learnt, and says goodbye.
    pub(super) async fn conclude(&self) {
        let servers: Vec<_> = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *servers).into_values().collect()
        };
        for server in &servers {
            server.conclude(&self.network).await;
        }
        if let Err(problem) = self.network.memory().save(unix_now()) {
            tracing::debug!(problem, "the memory of servers was not written");
        }
        self.network.close().await;
    }
}

/// How long things took, counted from the moment the URL's turn came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    begun: Instant,
    /// DNS and handshake, for the URL that made the connection.
    pub(super) connect: Option<(Duration, Duration)>,
    pub(super) first_byte: Option<Duration>,
    pub(super) total: Duration,
    pub(super) bytes: u64,
    /// The protocol of the last request.
    pub(super) version: Option<Version>,
}

impl Timing {
    pub(super) fn begin() -> Timing {
        let (connect, first_byte, version) = (None, None, None);
        Timing { begun: instant_now(), connect, first_byte, total: Duration::ZERO, bytes: 0, version }
    }
}

/// Fetches one URL. What it took is known also where it fails.
pub(super) async fn fetch(job: &Job, item: &Item, versions: Versions) -> (Timing, Result<(), Problem>) {
    let mut timing = Timing::begin();
    let exchange = &job.plan.exchange;
    let transfer = Transfer { job, exchange, item, versions };
    let outcome = match exchange.max_time {
        None => transfer.run(&mut timing).await,
        Some(limit) => match tokio::time::timeout(limit, transfer.run(&mut timing)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Problem::new(format!(
                "not finished in {}; give it more time with --max-time",
                explain::seconds(limit)
            ))),
        },
    };
    timing.total = timing.begun.elapsed();
    (timing, outcome)
}

#[derive(Clone, Copy)]
struct Transfer<'a> {
    job: &'a Job,
    exchange: &'a Exchange,
    item: &'a Item,
    versions: Versions,
}

/// What to do after a response's head.
enum Step {
    /// Read its body.
    Receive(Response<Answer>),
    /// Read the rest of it.
    Continue(Response<Answer>, Progress),
    /// Nothing is missing.
    Whole,
    /// Ask once more.
    Next(Hop),
}

impl Transfer<'_> {
    async fn run(self, timing: &mut Timing) -> Result<(), Problem> {
        // Before anything is asked for: that it cannot be kept is to be known early.
        let mut sink = match &self.item.destination {
            Destination::File(path) if self.exchange.continued => {
                Sink::open_continued(path, &self.item.target.to_string())?
            }
            destination => Sink::open(destination)?,
        };
        let mut progress = sink.progress();
        let mut hop = Hop::first(&self.item.target, self.exchange);
        let mut redirects = 0;
        // What is there already of what comes.
        let mut begun = 0;
        let response = loop {
            let response = self.response(&hop, progress.as_ref(), timing).await?;
            timing.first_byte = Some(timing.begun.elapsed());
            self.show_head(&response, &mut sink)?;
            match self.step(hop, response, &mut redirects, &mut progress, &mut sink)? {
                Step::Receive(response) => break response,
                Step::Continue(response, progress) => {
                    self.job.report.continues(&self.item.target, progress.offset, progress.length);
                    begun = progress.offset;
                    break response;
                }
                Step::Next(next) => hop = next,
                Step::Whole => {
                    self.job.report.remark(&self.item.target, "there is nothing more of it: it is whole");
                    return sink.already_whole();
                }
            }
        };
        let verdict = self.judge(&response);
        if verdict.is_err() && matches!(self.item.destination, Destination::File(_)) {
            return verdict;
        }
        self.receive(response, begun, &mut sink, timing).await?;
        sink.finish()?;
        verdict
    }

    fn step(
        self,
        hop: Hop,
        response: Response<Answer>,
        redirects: &mut u8,
        progress: &mut Option<Progress>,
        sink: &mut Sink,
    ) -> Result<Step, Problem> {
        let (status, headers) = (response.status(), response.headers());
        let location = headers.get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let (Some(most), Some(location)) = (self.exchange.redirects, location)
            && is_redirect(status)
        {
            if *redirects >= most {
                let remedy = "if they lead anywhere, allow more with --max-redirs";
                return Err(Problem::new(format!("redirected more than {most} times; {remedy}")));
            }
            *redirects += 1;
            return Ok(Step::Next(hop.next(status, &location).map_err(Problem::new)?));
        }
        let verdict = match progress {
            None if status == StatusCode::PARTIAL_CONTENT && !self.may_be_partial(&hop) => {
                let came = headers.get(CONTENT_RANGE).map(|range| range.as_bytes().escape_ascii());
                let came = came.map(|range| format!(" ({range})")).unwrap_or_default();
                return Err(Problem::new(format!(
                    "expected all of it, but the server sent a part{came} that was not asked for (206 Partial \
                     Content); its operator, or that of a cache before it, has to mend that"
                )));
            }
            None => Verdict::Anew,
            Some(progress) => resume::judge(progress, status, headers),
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
                sink.start_anew(resume::validator(headers), resume::length(headers))?
            }
            Verdict::Anew => {}
        }
        Ok(Step::Receive(response))
    }

    /// Whether a part of it is what was asked for.
    fn may_be_partial(self, hop: &Hop) -> bool {
        hop.headers.contains_key(RANGE) || hop.method == Method::HEAD
    }

    fn show_head(self, response: &Response<Answer>, sink: &mut Sink) -> Result<(), Problem> {
        if !self.exchange.print_head {
            return Ok(());
        }
        // A terminal would obey what a server may put there; a file shall have it as it came.
        let terminal = std::io::stdout().is_terminal();
        let head = head(response.status(), response.version(), response.headers(), terminal);
        if self.item.destination == Destination::Stdout { sink.push_aside(head) } else { print(&head) }
    }

    /// The response to a request, sent again if the server has not processed it.
    async fn response(
        self,
        hop: &Hop,
        progress: Option<&Progress>,
        timing: &mut Timing,
    ) -> Result<Response<Answer>, Problem> {
        let server = self.job.server(&hop.target.origin, self.versions);
        let replayable = hop.source != Some(Source::Stdin);
        let mut attempt = 1;
        loop {
            let share = server.session(&self.job.network).await?;
            let version = share.session.version();
            self.job.report.chosen(&hop.target, version, &share.why, share.fresh.is_some());
            timing.connect = timing.connect.or(share.fresh);
            timing.version = Some(version);
            let again = replayable && attempt < ATTEMPTS;
            let is_http3 = version == Version::HTTP_3;
            match self.send(hop, progress, share.session).await {
                // What HTTP/3 leads to does not serve this name: what the URL says itself does.
                Ok(response)
                    if again
                        && is_http3
                        && self.versions == Versions::Auto
                        && response.status() == StatusCode::MISDIRECTED_REQUEST =>
                {
                    server.distrust_http3(&self.job.network).await;
                }
                // It came too early for the server, which will take it once the handshake is over (RFC 8470).
                Ok(response) if again && is_http3 && response.status() == StatusCode::TOO_EARLY => {}
                Ok(response) => {
                    let values = response.headers().get_all(ALT_SVC).iter().cloned().collect();
                    server.on_alt_svc(&self.job.network, values).await;
                    if self.job.plan.fresh {
                        server.conclude(&self.job.network).await;
                    }
                    return Ok(response);
                }
                Err(Failed::Exchange(error)) => {
                    let lost = is_http3
                        && self.versions == Versions::Auto
                        && hop.method.is_safe()
                        && error.is_lost_connection();
                    if lost {
                        server.distrust_http3(&self.job.network).await;
                    }
                    if !again || !(lost || error.is_unprocessed()) {
                        return Err(explain::exchange(&error));
                    }
                }
                Err(Failed::Here(problem)) => return Err(problem),
            }
            attempt += 1;
        }
    }

    async fn send(
        self,
        hop: &Hop,
        progress: Option<&Progress>,
        session: Session,
    ) -> Result<Response<Answer>, Failed> {
        let unreadable = |problem: &str| Failed::Here(unreadable(hop, problem));
        let upload = Upload::open(hop.source.as_ref()).map_err(|error| unreadable(&plain(&error)))?;
        let fault = upload.fault();
        let mut request = request(hop, upload).map_err(Failed::Here)?;
        if let Some(progress) = progress {
            resume::ask(request.headers_mut(), progress);
        }
        let response = session.send(request).await;
        // The exchange is only told that it failed, the fault says why.
        response.map_err(|error| match fault.get() {
            Some(fault) => unreadable(fault),
            None => Failed::Exchange(error),
        })
    }

    /// Whether the status is what was hoped for.
    fn judge(self, response: &Response<Answer>) -> Result<(), Problem> {
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(Problem::new(format!("the server answered {}", in_words(status))));
        }
        if !status.is_redirection() {
            return Ok(());
        }
        let location = response.headers().get(LOCATION).map(|value| value.as_bytes().escape_ascii());
        let text = match location {
            Some(location) => {
                format!("the server answered {}; fetch {location} instead (-L does)", in_words(status))
            }
            None => format!("the server answered {}", in_words(status)),
        };
        if matches!(self.item.destination, Destination::File(_)) {
            return Err(Problem::new(text));
        }
        self.job.report.remark(&self.item.target, &text);
        Ok(())
    }

    async fn receive(
        self,
        response: Response<Answer>,
        begun: u64,
        sink: &mut Sink,
        timing: &mut Timing,
    ) -> Result<(), Problem> {
        let expected = self.expected_length(&response);
        self.job.report.expect(begun, expected);
        let mut body = pin!(response.into_body());
        while let Some(frame) = next_frame(body.as_mut(), sink).await? {
            let frame = frame.map_err(|error| broken_off(&error, begun, timing.bytes, expected))?;
            if let Ok(data) = frame.into_data() {
                timing.bytes += data.len() as u64;
                self.job.report.advance(data.len() as u64);
                sink.push(data)?;
            }
        }
        match expected {
            Some(expected) if expected != timing.bytes => Err(Problem::new(format!(
                "expected {expected} bytes, got {}; the server or something before it cut it short: try again",
                timing.bytes
            ))),
            _ => Ok(()),
        }
    }

    /// The length of the body that will come, where the response tells.
    fn expected_length(self, response: &Response<Answer>) -> Option<u64> {
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&response.status());
        if self.exchange.method == Method::HEAD || bodiless {
            return None;
        }
        response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

/// `begun`: what an earlier run has got.
fn broken_off(error: &Error, begun: u64, got: u64, expected: Option<u64>) -> Problem {
    let of = expected.map(|expected| format!(" of {}", begun.saturating_add(expected))).unwrap_or_default();
    let got = begun.saturating_add(got);
    Problem::new(format!("broken off after {got}{of} bytes: {}", explain::exchange(error)))
}

/// Why there is no response.
enum Failed {
    Exchange(Error),
    /// The request could not be made.
    Here(Problem),
}

fn request(hop: &Hop, upload: Upload) -> Result<Request<Upload>, Problem> {
    let malformed = |error: http::Error| Problem::new(format!("the request cannot be sent: {error}"));
    let uri = hop.target.uri(hop.authority.as_ref()).map_err(malformed)?;
    let length = upload.length();
    let request = Request::builder().method(hop.method.clone()).uri(uri);
    let mut request = request.body(upload).map_err(malformed)?;
    *request.headers_mut() = hop.headers.clone();
    if let Some(length) = length {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(request)
}

/// The body to send cannot be read.
fn unreadable(hop: &Hop, problem: &str) -> Problem {
    Problem::new(match &hop.source {
        Some(Source::File(path)) => {
            format!("cannot read {}: {problem}; --data @FILE takes a file to send", path.display())
        }
        _ => format!("cannot read the standard input: {problem}"),
    })
}

/// The next piece of the body. While there is none, what has come is made visible.
async fn next_frame(
    mut body: Pin<&mut Answer>,
    sink: &mut Sink,
) -> Result<Option<Result<Frame<Bytes>, Error>>, Problem> {
    poll_fn(|cx| match body.as_mut().poll_frame(cx) {
        Poll::Ready(frame) => Poll::Ready(Ok(frame)),
        Poll::Pending => match sink.on_idle() {
            Ok(()) => Poll::Pending,
            Err(problem) => Poll::Ready(Err(problem)),
        },
    })
    .await
}

/// `404 Not Found`.
fn in_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// The head of a response as HTTP/1.1 would write it. For a terminal with nothing in it that is not to be seen.
fn head(status: StatusCode, version: Version, headers: &HeaderMap, terminal: bool) -> Bytes {
    let mut text = match version {
        Version::HTTP_3 => format!("HTTP/3 {}\r\n", status.as_u16()),
        Version::HTTP_2 => format!("HTTP/2 {}\r\n", status.as_u16()),
        version => {
            format!("{version:?} {} {}\r\n", status.as_u16(), status.canonical_reason().unwrap_or(""))
        }
    }
    .into_bytes();
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        match terminal {
            true => text.extend_from_slice(printable_bytes(value.as_bytes()).as_bytes()),
            false => text.extend_from_slice(value.as_bytes()),
        }
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text.into()
}

fn print(head: &[u8]) -> Result<(), Problem> {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_all(head).and_then(|()| stdout.flush());
    printed.map_err(|error| Problem::writing(&"the standard output", 0, &error))
}

/// Does all transfers, so many at a time.
pub(super) async fn fetch_all(job: Arc<Job>) {
    let work = job.plan.work();
    let workers = usize::try_from(work).unwrap_or(usize::MAX).min(job.plan.parallel);
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (job, next) = (Arc::clone(&job), Arc::clone(&next));
        tasks.spawn(async move {
            while let Some((item, versions)) = job.plan.task(next.fetch_add(1, Ordering::Relaxed)) {
                let (timing, outcome) = fetch(&job, item, versions).await;
                job.report.done(&item.target, &timing, outcome);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_commands_no_terminal() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"a\x9b2J\xe2\x80\xaeb \xc3\xbc").unwrap());
        let of = |terminal| head(StatusCode::OK, Version::HTTP_11, &headers, terminal);
        assert_eq!(of(true), "HTTP/1.1 200 OK\r\nx-a: a\\x9b2J\\u{202e}b ü\r\n\r\n");
        assert_eq!(&of(false)[..], b"HTTP/1.1 200 OK\r\nx-a: a\x9b2J\xe2\x80\xaeb \xc3\xbc\r\n\r\n");
    }
}
