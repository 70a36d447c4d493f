//! One URL: the request, the response, and where its body goes.

use std::future::poll_fn;
use std::io::Write;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use godwit::http3;
use http::header::{CONTENT_LENGTH, LOCATION};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};

use super::connect::Network;
use super::explain;
use super::plan::{Exchange, Item};
use super::problem::Problem;
use super::report::Report;
use super::server::{Server, Session};
use super::sink::{Destination, Sink};
use super::upload::{Source, Upload};
use crate::error::plain;
use crate::output::instant_now;

/// How often a request is sent that the server says it has not processed.
const ATTEMPTS: u32 = 5;

/// What all transfers share.
pub(super) struct Job {
    pub(super) network: Network,
    pub(super) exchange: Exchange,
    pub(super) report: Report,
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
}

impl Timing {
    fn begin() -> Timing {
        Timing { begun: instant_now(), connect: None, first_byte: None, total: Duration::ZERO, bytes: 0 }
    }
}

/// Fetches one URL. What it took is known also where it fails.
pub(super) async fn fetch(job: &Job, server: &Server, item: &Item) -> (Timing, Result<(), Problem>) {
    let mut timing = Timing::begin();
    let transfer = Transfer { job, server, item };
    let outcome = match job.exchange.max_time {
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
    server: &'a Server,
    item: &'a Item,
}

impl Transfer<'_> {
    async fn run(self, timing: &mut Timing) -> Result<(), Problem> {
        // Before anything is asked for: that it cannot be kept is to be known early.
        let mut sink = Sink::open(&self.item.destination)?;
        let response = self.response(timing).await?;
        timing.first_byte = Some(timing.begun.elapsed());
        if self.job.exchange.print_head {
            let head = head(&response);
            if self.item.destination == Destination::Stdout {
                sink.push_aside(head)?;
            } else {
                print(&head)?;
            }
        }
        let verdict = self.judge(&response);
        if verdict.is_err() && matches!(self.item.destination, Destination::File(_)) {
            return verdict;
        }
        self.receive(response, &mut sink, timing).await?;
        sink.finish()?;
        verdict
    }

    /// The response to the request, sent again if the server has not processed it.
    async fn response(self, timing: &mut Timing) -> Result<Response<http3::Body>, Problem> {
        let mut attempt = 1;
        loop {
            let session = self.server.session(&self.job.network).await?;
            timing.connect = timing.connect.or(session.fresh);
            let problem = match self.send(&session).await {
                Ok(response) => return Ok(response),
                Err(problem) => problem,
            };
            let replayable = self.job.exchange.source != Some(Source::Stdin);
            if !(problem.is_unprocessed() && replayable && attempt < ATTEMPTS) {
                return Err(problem);
            }
            attempt += 1;
        }
    }

    async fn send(self, session: &Session) -> Result<Response<http3::Body>, Problem> {
        let exchange = &self.job.exchange;
        let upload =
            Upload::open(exchange.source.as_ref()).map_err(|error| self.unreadable(&plain(&error)))?;
        let fault = upload.fault();
        let request = self.request(upload)?;
        let response = session.client.send(request).await;
        // The exchange is only told that it failed, the fault says why.
        response.map_err(|error| match fault.get() {
            Some(fault) => self.unreadable(fault),
            None => explain::exchange(&error),
        })
    }

    fn request(self, upload: Upload) -> Result<Request<Upload>, Problem> {
        let exchange = &self.job.exchange;
        let malformed = |error: http::Error| Problem::new(format!("the request cannot be sent: {error}"));
        let uri = self.item.target.uri(exchange.authority.as_ref()).map_err(malformed)?;
        let length = upload.length();
        let request = Request::builder().method(exchange.method.clone()).uri(uri);
        let mut request = request.body(upload).map_err(malformed)?;
        *request.headers_mut() = exchange.headers.clone();
        if let Some(length) = length {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(request)
    }

    /// The body to send cannot be read.
    fn unreadable(self, problem: &str) -> Problem {
        Problem::new(match &self.job.exchange.source {
            Some(Source::File(path)) => {
                format!("cannot read {}: {problem}; --data @FILE takes a file to send", path.display())
            }
            _ => format!("cannot read the standard input: {problem}"),
        })
    }

    /// Whether the status is what was hoped for.
    fn judge(self, response: &Response<http3::Body>) -> Result<(), Problem> {
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(Problem::new(format!("the server answered {}", in_words(status))));
        }
        if !status.is_redirection() {
            return Ok(());
        }
        let location = response.headers().get(LOCATION).map(|value| value.as_bytes().escape_ascii());
        let text = match location {
            Some(location) => format!("the server answered {}; fetch {location} instead", in_words(status)),
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
        response: Response<http3::Body>,
        sink: &mut Sink,
        timing: &mut Timing,
    ) -> Result<(), Problem> {
        let expected = self.expected_length(&response);
        self.job.report.expect(expected);
        let mut body = pin!(response.into_body());
        while let Some(frame) = next_frame(body.as_mut(), sink).await? {
            let frame = frame.map_err(|error| self.broken_off(&error, timing.bytes, expected))?;
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
    fn expected_length(self, response: &Response<http3::Body>) -> Option<u64> {
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&response.status());
        if self.job.exchange.method == Method::HEAD || bodiless {
            return None;
        }
        response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    fn broken_off(self, error: &http3::Error, got: u64, expected: Option<u64>) -> Problem {
        let of = expected.map(|expected| format!(" of {expected}")).unwrap_or_default();
        Problem::new(format!("broken off after {got}{of} bytes: {}", explain::exchange(error)))
    }
}

/// The next piece of the body. While there is none, what has come is made visible.
async fn next_frame(
    mut body: Pin<&mut http3::Body>,
    sink: &mut Sink,
) -> Result<Option<Result<Frame<Bytes>, http3::Error>>, Problem> {
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

/// The head of a response as HTTP/1.1 would write it.
fn head(response: &Response<http3::Body>) -> Bytes {
    let mut text = format!("HTTP/3 {}\r\n", response.status().as_u16()).into_bytes();
    for (name, value) in response.headers() {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
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
pub(super) async fn fetch_all(job: Arc<Job>, items: Vec<(Item, Arc<Server>)>, parallel: usize) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let workers = parallel.min(items.len());
    let (items, next) = (Arc::new(items), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (job, items, next) = (Arc::clone(&job), Arc::clone(&items), Arc::clone(&next));
        tasks.spawn(async move {
            while let Some((item, server)) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (timing, outcome) = fetch(&job, server, item).await;
                job.report.done(&item.target, &server.origin, &timing, outcome);
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
