//! The body of a response: what comes from the upstream as it is asked for, or a tunnel, or a short text.

use crate::BoxError;
use crate::backend::Lease;
use crate::headers;
use crate::problem::{Problem, ProblemKind, chain};
use crate::reason::Reason;
use crate::time::UpstreamTime;
use crate::tunnel::Stream;
use bytes::Bytes;
use godwit_body::FramePoll;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The body of a response.
///
/// It is read from the upstream as it is asked for. Dropped before its end, it gives up the exchange with the
/// upstream. If the upstream breaks off it ends with an error, which is a [`Problem`]: what came must not be
/// passed on as complete.
#[derive(Debug, Default)]
pub struct Body(Inner);

#[derive(Default)]
enum Inner {
    #[default]
    Empty,
    Text(Bytes),
    Arriving(Box<Arriving>),
    Tunnel(Box<Stream>),
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Inner::Empty => "Empty",
            Inner::Text(_) => "Text",
            Inner::Arriving(_) => "Arriving",
            Inner::Tunnel(_) => "Tunnel",
        })
    }
}

/// A body that comes from an upstream.
struct Arriving {
    incoming: Incoming,
    /// Until the end.
    lease: Option<Lease>,
    time: UpstreamTime,
    waiting_since: Option<Instant>,
    limit: Option<Duration>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Body {
    /// A body of no bytes.
    pub fn empty() -> Self {
        Body::default()
    }

    pub(crate) fn arriving(
        incoming: Incoming,
        lease: Lease,
        time: UpstreamTime,
        limit: Option<Duration>,
    ) -> Self {
        let mut arriving =
            Arriving { incoming, lease: Some(lease), time, waiting_since: None, limit, alarm: None };
        match arriving.incoming.is_end_stream() {
            true => {
                arriving.finish();
                Body::empty()
            }
            false => Body(Inner::Arriving(Box::new(arriving))),
        }
    }

    pub(crate) fn tunnel(stream: Stream) -> Self {
        Body(Inner::Tunnel(Box::new(stream)))
    }
}

impl Arriving {
    fn poll(&mut self, cx: &mut Context<'_>) -> FramePoll {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            self.waiting_since.get_or_insert_with(Instant::now);
            return self.poll_alarm(cx);
        };
        self.note_wait();
        match frame {
            None => {
                self.finish();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                if self.incoming.is_end_stream() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(headers::passing(frame))))
            }
            Some(Err(error)) => {
                let detail = format!("the response broke off: {}", chain(&error));
                Poll::Ready(Some(Err(self.fail(ProblemKind::Broken, detail))))
            }
        }
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> FramePoll {
        let (Some(limit), Some(since)) = (self.limit, self.waiting_since) else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(since + limit)));
        if alarm.deadline() < since + limit {
            alarm.as_mut().reset(since + limit);
        }
        if alarm.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.note_wait();
        let detail = format!("nothing of the response's body came for {limit:?}");
        Poll::Ready(Some(Err(self.fail(ProblemKind::BodyTimeout, detail))))
    }

    fn note_wait(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            self.time.add(since.elapsed());
        }
    }

    fn finish(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.finish();
        }
    }

    fn fail(&mut self, kind: ProblemKind, detail: String) -> BoxError {
        let mut problem = Problem::new(kind, detail);
        if kind == ProblemKind::Broken {
            problem = problem.because(Reason::BrokeOff);
        }
        if let Some(lease) = self.lease.take() {
            lease.backend.on_failure();
            problem = problem.at(&lease.backend.name);
        }
        self.time.on_broken(&problem);
        tracing::debug!(%problem, "a response was not passed on to its end");
        Box::new(problem)
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.note_wait();
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        match &mut self.0 {
            Inner::Empty => Poll::Ready(None),
            Inner::Text(text) => {
                let text = std::mem::take(text);
                self.0 = Inner::Empty;
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            Inner::Arriving(arriving) => arriving.poll(cx),
            Inner::Tunnel(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Empty => true,
            Inner::Text(_) | Inner::Tunnel(_) => false,
            Inner::Arriving(arriving) => arriving.lease.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Text(text) => SizeHint::with_exact(text.len() as u64),
            Inner::Arriving(arriving) => arriving.incoming.size_hint(),
            Inner::Tunnel(_) => SizeHint::default(),
        }
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        if text.is_empty() { Body::empty() } else { Body(Inner::Text(text.into())) }
    }
}

impl Problem {
    /// The answer to the client.
    pub(crate) fn into_response(self) -> Response<Body> {
        let text = format!("{}\n", self.status());
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response.extensions_mut().insert(self);
        response
    }
}
