//! What every request passes on its way from a connection to the service and back, whatever the protocol.
//!
//! On the way in the body gets a limit on how long its sender may keep us waiting (RFC 9110 section 15.5.9: status
//! 408), which rests while the response is under way; on the way out the connection learns whether the client has taken what
//! it was given, what HTTP/2 connections hold has [bounds](super::response_memory), and HTTP/1.1 clients are told when a
//! connection takes no further request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use godwit_body::{
    BoxBody, BoxError, Exchange, FramePoll, MinimumRate, ResponseUnderWay, Timed, Wrapped, Wrapper, boxed,
    empty, full,
};
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;

use super::access::{Logged, unlogged};
use super::client::Client;
use super::interim::Interim;
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

    /// Has a request answered that has come at `arrived`, or before.
    pub(super) async fn answer<B>(self, request: Request<B>, arrived: Instant) -> Response<OutgoingBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let version = request.version();
        let underway = self.0.progress.clone().map(UnderWay::new);
        let (request, exchange) = self.limit(request);
        let client =
            request.extensions().get::<Arc<Client>>().filter(|client| client.interim().is_some()).cloned();
        let at_service = client.as_ref().and_then(|client| client.interim()).map(Interim::begin);
        let mut response = self.0.front.clone().respond(request, arrived).await;
        if let Some(at_service) = at_service {
            at_service.let_out().await;
        }
        if exchange.as_ref().is_some_and(Exchange::is_late) && !response.status().is_success() {
            response = too_late();
        }
        if version <= Version::HTTP_11 && (self.0.leaving.load(Ordering::Relaxed) || is_too_late(&response)) {
            close_after(&mut response);
        }
        let response_under_way = exchange.as_ref().map(Exchange::begin_response);
        let held = HeldResponse::new(self.0.memory.clone());
        response.map(|body| {
            let mark = HeldMark { underway, _response: response_under_way };
            Wrapped::with(Wrapped::with(body, mark), held)
        })
    }

    /// The request, whose body keeps its sender's time if it has one. A tunnel may be silent for as long as it likes.
    fn limit<B>(&self, request: Request<B>) -> (Request<BoxBody>, Option<Exchange>)
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if request.method() == Method::CONNECT {
            return (request.map(boxed), None);
        }
        if request.body().is_end_stream() {
            return (request.map(|_| empty()), None);
        }
        let exchange = Exchange::default();
        let request = request.map(|body| boxed(Timed::new(body.map_err(Into::into), self.0.rate, &exchange)));
        (request, Some(exchange))
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

/// What the transport holds of a response, and that the response is under way.
pub(super) struct HeldMark {
    /// Of TCP connections.
    underway: Option<UnderWay>,
    /// Of requests with a body.
    _response: Option<ResponseUnderWay>,
}

impl HeldMark {
    fn set_held(&mut self, held: bool) {
        if let Some(underway) = &mut self.underway {
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
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::time::Duration;

    use godwit_text::instant_now;
    use http_body::Frame;
    use tokio::sync::mpsc;

    use super::*;
    use crate::RouteService;
    use crate::access::Observer;
    use crate::settings::{Handler, Settings, Site};

    /// A body that yields what is sent to it.
    struct Channel(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Channel {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll<Infallible> {
            self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }

    /// What a connection has of a service that answers with what comes: as it comes, or when it is whole.
    fn echo(at_once: bool) -> ConnectionService {
        let service = tower::service_fn(move |request: Request<BoxBody>| async move {
            let mut body = request.into_body();
            if !at_once {
                body = full(body.collect().await?.to_bytes());
            }
            Ok::<_, BoxError>(Response::new(body))
        });
        let sites = vec![Site::catch_all(Handler::Service(RouteService::new(service)))];
        let settings = Settings { sites, ..Settings::default() };
        let front = Front::new(&settings, Observer::quiet()).unwrap();
        ConnectionService::new(front, &settings.limits, None, None, Arc::default())
    }

    fn post(version: Version) -> (mpsc::UnboundedSender<Bytes>, Request<Channel>) {
        let (sender, body) = mpsc::unbounded_channel();
        let request = Request::post("https://a.test/").header("host", "a.test").version(version);
        (sender, request.body(Channel(body)).unwrap())
    }

    const MESSAGE: Bytes = Bytes::from_static(&[b'm'; 50]);

    #[tokio::test(start_paused = true)]
    async fn messages_go_both_ways_at_their_leisure() {
        for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
            let (sender, request) = post(version);
            let mut body = echo(true).answer(request, instant_now()).await.into_body();
            for _ in 0..30 {
                let later = async {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    sender.send(MESSAGE).unwrap();
                };
                // Whoever passes it on waits all the time.
                let frame = tokio::join!(body.frame(), later).0.unwrap();
                assert_eq!(frame.unwrap().into_data().unwrap(), MESSAGE, "{version:?}");
            }
            let silence = tokio::time::timeout(Duration::from_secs(300), body.frame()).await;
            assert!(silence.is_err(), "{version:?}");
            drop(sender);
            assert!(body.frame().await.is_none(), "{version:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_response_messages_have_to_come_faster() {
        for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
            let (sender, request) = post(version);
            let began = tokio::time::Instant::now();
            let mut answer = std::pin::pin!(echo(false).answer(request, instant_now()));
            let response = loop {
                let next = tokio::time::timeout(Duration::from_secs(10), &mut answer).await;
                match next {
                    Ok(response) => break response,
                    Err(_) => sender.send(MESSAGE).unwrap(),
                }
            };
            assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT, "{version:?}");
            assert_eq!(began.elapsed().as_secs(), 60, "{version:?}");
        }
    }

    #[test]
    fn a_response_that_waits_for_its_client_is_held() {
        let progress = Arc::new(Progress::default());
        let underway = UnderWay::new(Arc::clone(&progress));
        let mark = HeldMark { underway: Some(underway), _response: None };
        let mut body = Wrapped::with(unlogged(full("abc")), mark);
        let is_held = |body: &Marked| body.wrapper().underway.as_ref().unwrap().held;
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
