//! What every request passes on its way from a connection to the service and back, whatever the protocol.
//!
//! On the way in the body gets a limit on how long its sender may keep us waiting (RFC 9110 section 15.5.9: status
//! 408); on the way out the connection learns whether the client has taken what it was given, what HTTP/2 connections hold
//! has [bounds](super::response_memory), and HTTP/1.1 clients are told when a connection takes no further request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use godwit_body::{BoxBody, BoxError, FramePoll, Late, MinimumRate, Timed, Wrapped, Wrapper, boxed, full};
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;
use tower::Service;

use super::access::{Logged, unlogged};
use super::response_memory::{HeldResponse, ResponseMemory};
use super::settings::Limits;
use super::sites::Front;
use godwit_body::Progress;

/// The service as one connection sees it. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct ConnectionService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    front: Front,
    /// Of TCP connections: HTTP/3 looks after slow clients itself.
    progress: Option<Arc<Progress>>,
    /// Of HTTP/2 connections: for what the client does not take.
    memory: Option<ResponseMemory>,
    /// What a client has to send of a body.
    rate: MinimumRate,
    /// No further request is taken on this connection.
    leaving: Arc<AtomicBool>,
}

impl ConnectionService {
    /// `memory` is of HTTP/2 connections, `leaving` is set when every answer over HTTP/1.1 is to be the last of its
    /// connection.
    pub(super) fn new(
        front: Front,
        limits: &Limits,
        progress: Option<Arc<Progress>>,
        memory: Option<ResponseMemory>,
        leaving: Arc<AtomicBool>,
    ) -> ConnectionService {
        let rate = MinimumRate::new(limits.send_timeout, limits.minimum_rate);
        ConnectionService(Arc::new(Inner { front, progress, memory, rate, leaving }))
    }

    /// Has the request answered.
    pub(super) async fn answer<B>(self, request: Request<B>) -> Response<OutgoingBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let version = request.version();
        let underway = self.0.progress.clone().map(UnderWay::new);
        let late = Late::default();
        let request = self.limit(request, &late);
        let mut front = self.0.front.clone();
        let Ok(mut response) = front.call(request).await;
        if late.is_so() && !response.status().is_success() {
            response = too_late();
        }
        if version <= Version::HTTP_11 && (self.0.leaving.load(Ordering::Relaxed) || is_too_late(&response)) {
            close_after(&mut response);
        }
        let held = HeldResponse::new(self.0.memory.clone());
        response.map(|body| Wrapped::with(Wrapped::with(body, HeldMark(underway)), held))
    }

    /// A tunnel may be silent for as long as it likes.
    fn limit<B>(&self, request: Request<B>, late: &Late) -> Request<BoxBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if request.method() == Method::CONNECT || request.body().is_end_stream() {
            return request.map(boxed);
        }
        request.map(|body| boxed(Timed::new(body.map_err(Into::into), self.0.rate, late)))
    }
}

fn too_late() -> Response<Logged> {
    let text = "408 Request Timeout: the request's body did not arrive in time\n";
    let mut response = Response::new(unlogged(full(text)));
    *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, text);
    response
}

fn is_too_late(response: &Response<Logged>) -> bool {
    response.status() == StatusCode::REQUEST_TIMEOUT
}

fn close_after(response: &mut Response<Logged>) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// A request whose response is not over, and whether the transport holds a piece of it.
#[derive(Debug)]
struct UnderWay {
    progress: Arc<Progress>,
    held: bool,
}

impl UnderWay {
    fn new(progress: Arc<Progress>) -> UnderWay {
        progress.on_request();
        UnderWay { progress, held: false }
    }

    fn set_held(&mut self, held: bool) {
        match (self.held, held) {
            (false, true) => self.progress.on_held(),
            (true, false) => self.progress.on_taken(),
            _ => {}
        }
        self.held = held;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.set_held(false);
        self.progress.on_response_over();
    }
}

/// A response's body on its way to the client. While there is no room for more of it, its mark stays as it is: what is
/// held is for the client to take.
pub(super) type OutgoingBody = Wrapped<Marked, HeldResponse>;

type Marked = Wrapped<Logged, HeldMark>;

/// Of TCP connections: what the transport holds.
pub(super) struct HeldMark(Option<UnderWay>);

impl HeldMark {
    fn set_held(&mut self, held: bool) {
        if let Some(underway) = &mut self.0 {
            underway.set_held(held);
        }
    }
}

impl<E> Wrapper<E> for HeldMark {
    /// Whoever asks for more has taken what there was.
    fn on_asked(&mut self) {
        self.set_held(false);
    }

    fn on_answer(&mut self, answer: FramePoll<E>, _: &mut Context<'_>) -> FramePoll<E> {
        self.set_held(matches!(answer, Poll::Ready(Some(Ok(_)))));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    #[test]
    fn a_response_that_waits_for_its_client_is_held() {
        let progress = Arc::new(Progress::default());
        let underway = UnderWay::new(Arc::clone(&progress));
        let mut body = Wrapped::with(unlogged(full("abc")), HeldMark(Some(underway)));
        let is_held = |body: &Marked| body.wrapper().0.as_ref().unwrap().held;
        assert!(!progress.is_idle());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut cx), Poll::Ready(Some(Ok(_)))));
        assert!(is_held(&body));
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut cx), Poll::Ready(None)));
        assert!(!is_held(&body));
        drop(body);
        assert!(progress.is_idle());
    }
}
