//! What every request passes on its way from a connection to the service and back, whatever the protocol.
//!
//! On the way in the body gets a limit on how long its sender may keep us waiting (RFC 9110 section 15.5.9: status
//! 408); on the way out the connection learns whether the client has taken what it was given, and HTTP/1.1 clients
//! are told when a connection takes no further request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Sleep;
use tower::Service;

use super::config::Limits;
use super::front::Front;
use super::front::body::{BoxError, RequestBody, ResponseBody, boxed, full};
use super::pace::{Pace, least};
use crate::output::instant_now;

/// The service as one connection sees it. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Door(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    front: Front,
    /// Of TCP connections: HTTP/3 looks after slow clients itself.
    pace: Option<Arc<Pace>>,
    patience: Patience,
    /// No further request is taken on this connection.
    leaving: Arc<AtomicBool>,
}

/// How long a client may take to send a body.
#[derive(Clone, Copy, Debug)]
struct Patience {
    timeout: Duration,
    minimum_rate: u64,
}

impl Door {
    /// `leaving` is set when every answer over HTTP/1.1 is to be the last of its connection.
    pub(super) fn new(
        front: Front,
        limits: &Limits,
        pace: Option<Arc<Pace>>,
        leaving: Arc<AtomicBool>,
    ) -> Door {
        let patience = Patience { timeout: limits.send_timeout, minimum_rate: limits.minimum_rate };
        Door(Arc::new(Inner { front, pace, patience, leaving }))
    }

    /// Has the request answered.
    pub(super) async fn answer<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let version = request.version();
        let underway = self.0.pace.clone().map(UnderWay::new);
        let late = Arc::new(AtomicBool::new(false));
        let request = self.limit(request, &late);
        let mut front = self.0.front.clone();
        let Ok(mut response) = front.call(request).await;
        if late.load(Ordering::Relaxed) && !response.status().is_success() {
            response = too_late();
        }
        if version <= Version::HTTP_11 && (self.0.leaving.load(Ordering::Relaxed) || is_too_late(&response)) {
            close_after(&mut response);
        }
        match underway {
            Some(underway) => response.map(|body| Departing { body, underway }.boxed_unsync()),
            None => response,
        }
    }

    /// A tunnel may be silent for as long as it likes.
    fn limit<B>(&self, request: Request<B>, late: &Arc<AtomicBool>) -> Request<RequestBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if request.method() == Method::CONNECT || request.body().is_end_stream() {
            return request.map(boxed);
        }
        let (patience, late) = (self.0.patience, Arc::clone(late));
        request.map(|body| boxed(Arriving::new(boxed(body), patience, late)))
    }
}

fn too_late() -> Response<ResponseBody> {
    let mut response =
        Response::new(full("408 Request Timeout: the request's body did not arrive in time\n"));
    *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, text);
    response
}

fn is_too_late(response: &Response<ResponseBody>) -> bool {
    response.status() == StatusCode::REQUEST_TIMEOUT
}

fn close_after(response: &mut Response<ResponseBody>) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// A request whose response is not over, and whether the transport holds a piece of it.
#[derive(Debug)]
struct UnderWay {
    pace: Arc<Pace>,
    held: bool,
}

impl UnderWay {
    fn new(pace: Arc<Pace>) -> UnderWay {
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
struct Departing {
    body: ResponseBody,
    underway: UnderWay,
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
        this.underway.set_held(false);
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        this.underway.set_held(matches!(frame, Some(Ok(_))));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request's body, which fails if its sender keeps us waiting. Only time in which somebody wants it counts.
struct Arriving {
    body: RequestBody,
    patience: Patience,
    /// Set when it fails.
    late: Arc<AtomicBool>,
    waiting: Option<Instant>,
    waited: Duration,
    /// Bytes since `waited` was nothing.
    moved: u64,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    fn new(body: RequestBody, patience: Patience, late: Arc<AtomicBool>) -> Arriving {
        let (waiting, waited, moved, sleep) = (None, Duration::ZERO, 0, None);
        Arriving { body, patience, late, waiting, waited, moved, sleep }
    }

    fn on_arrival(&mut self, bytes: usize) {
        let Some(since) = self.waiting.take() else { return };
        self.waited += instant_now().saturating_duration_since(since);
        self.moved = self.moved.saturating_add(bytes as u64);
        if self.moved >= least(self.patience.minimum_rate, self.patience.timeout) {
            (self.waited, self.moved) = (Duration::ZERO, 0);
        }
    }

    /// Ready when it has been waited for long enough.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let first = self.waiting.is_none();
        let since = *self.waiting.get_or_insert_with(instant_now);
        let end = tokio::time::Instant::from_std(since + self.patience.timeout.saturating_sub(self.waited));
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if first {
            sleep.as_mut().reset(end);
        }
        sleep.as_mut().poll(cx)
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
                this.on_arrival(data.map_or(0, Bytes::len));
                Poll::Ready(frame)
            }
            Poll::Pending => {
                ready!(this.poll_late(cx));
                this.late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err("the request's body did not arrive in time".into())))
            }
        }
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
    use http_body_util::Full;
    use tokio::sync::mpsc;

    use super::*;

    /// A body that yields what is sent to it.
    struct Channel(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Channel {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }

    fn arriving(rate: u64) -> (mpsc::UnboundedSender<Bytes>, Arriving, Arc<AtomicBool>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let late = Arc::new(AtomicBool::new(false));
        let patience = Patience { timeout: Duration::from_secs(10), minimum_rate: rate };
        (sender, Arriving::new(boxed(Channel(receiver)), patience, Arc::clone(&late)), late)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_fails() {
        let (sender, mut body, late) = arriving(0);
        sender.send(Bytes::from_static(b"abc")).unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
        assert!(!late.load(Ordering::Relaxed));
        assert!(body.frame().await.unwrap().is_err());
        assert!(late.load(Ordering::Relaxed));
        drop(sender);
    }

    #[tokio::test]
    async fn a_body_at_once_is_never_late() {
        let late = Arc::new(AtomicBool::new(false));
        let patience = Patience { timeout: Duration::ZERO, minimum_rate: u64::MAX };
        let body = Arriving::new(boxed(Full::new(Bytes::from_static(b"abc"))), patience, Arc::clone(&late));
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        assert!(!late.load(Ordering::Relaxed));
    }

    #[test]
    fn a_response_that_waits_for_its_client_is_held() {
        let pace = Arc::new(Pace::default());
        let mut departing = Departing { body: full("abc"), underway: UnderWay::new(Arc::clone(&pace)) };
        assert!(!pace.is_idle());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(Pin::new(&mut departing).poll_frame(&mut cx), Poll::Ready(Some(Ok(_)))));
        assert!(departing.underway.held);
        assert!(matches!(Pin::new(&mut departing).poll_frame(&mut cx), Poll::Ready(None)));
        assert!(!departing.underway.held);
        drop(departing);
        assert!(pace.is_idle());
    }
}
