//! What every request passes on its way from a connection to the service and back, whatever the protocol.
//!
//! On the way in the body gets a limit on how long its sender may keep us waiting (RFC 9110 section 15.5.9: status
//! 408); on the way out the connection learns whether the client has taken what it was given, and HTTP/1.1 clients
//! are told when a connection takes no further request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use godwit_body::{BoxBody, BoxError, Late, MinimumRate, Timed, boxed, full};
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use tower::Service;

use super::access::Logged;
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
    pace: Option<Arc<Progress>>,
    /// What a client has to send of a body.
    rate: MinimumRate,
    /// No further request is taken on this connection.
    leaving: Arc<AtomicBool>,
}

impl ConnectionService {
    /// `leaving` is set when every answer over HTTP/1.1 is to be the last of its connection.
    pub(super) fn new(
        front: Front,
        limits: &Limits,
        pace: Option<Arc<Progress>>,
        leaving: Arc<AtomicBool>,
    ) -> ConnectionService {
        let rate = MinimumRate::new(limits.send_timeout, limits.minimum_rate);
        ConnectionService(Arc::new(Inner { front, pace, rate, leaving }))
    }

    /// Has the request answered.
    pub(super) async fn answer<B>(self, request: Request<B>) -> Response<Departing>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let version = request.version();
        let underway = self.0.pace.clone().map(UnderWay::new);
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
        response.map(|body| Departing { body, underway })
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
        request.map(|body| boxed(Timed::new(body, self.0.rate, late)))
    }
}

fn too_late() -> Response<Logged> {
    let mut response =
        Response::new(full("408 Request Timeout: the request's body did not arrive in time\n").into());
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
    pace: Arc<Progress>,
    held: bool,
}

impl UnderWay {
    fn new(pace: Arc<Progress>) -> UnderWay {
        pace.on_request();
        UnderWay { pace, held: false }
    }

    fn set_held(&mut self, held: bool) {
        match (self.held, held) {
            (false, true) => self.pace.on_held(),
            (true, false) => self.pace.on_taken(),
            _ => {}
        }
        self.held = held;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.set_held(false);
        self.pace.on_response_over();
    }
}

/// A response's body on its way to the client.
pub(super) struct Departing {
    body: Logged,
    /// Of TCP connections.
    underway: Option<UnderWay>,
}

impl Departing {
    fn set_held(&mut self, held: bool) {
        if let Some(underway) = &mut self.underway {
            underway.set_held(held);
        }
    }
}

impl Body for Departing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        // Whoever asks for more has taken what there was.
        this.set_held(false);
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        this.set_held(matches!(frame, Some(Ok(_))));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use godwit_body::full;

    use super::*;

    #[test]
    fn a_response_that_waits_for_its_client_is_held() {
        let pace = Arc::new(Progress::default());
        let mut departing =
            Departing { body: full("abc").into(), underway: Some(UnderWay::new(Arc::clone(&pace))) };
        assert!(!pace.is_idle());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut departing).poll_frame(&mut cx), Poll::Ready(Some(Ok(_)))));
        assert!(departing.underway.as_ref().unwrap().held);
        assert!(matches!(Pin::new(&mut departing).poll_frame(&mut cx), Poll::Ready(None)));
        assert!(!departing.underway.as_ref().unwrap().held);
        drop(departing);
        assert!(pace.is_idle());
    }
}
