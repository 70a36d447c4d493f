//! Calls to services that answer late, badly or not at all, in a time of their own.

use bytes::Bytes;
use godwit_grpc::{Channel, DeadlineLayer};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::{Layer, ServiceExt, service_fn};

type BoxError = Box<dyn Error + Send + Sync>;

fn call(timeout: &str) -> Request<Empty<Bytes>> {
    let request = Request::post("/service/Method").header("content-type", "application/grpc");
    request.header("grpc-timeout", timeout).body(Empty::new()).unwrap()
}

fn status<B>(response: &Response<B>) -> &str {
    response.headers()["grpc-status"].to_str().unwrap()
}

/// A body of one piece of data and then `last`, or silence.
#[derive(Clone)]
struct Begun(Option<Bytes>, Option<h2::Reason>);

impl Body for Begun {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match (self.0.take(), self.1) {
            (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
            (None, Some(reason)) => Poll::Ready(Some(Err(reason.into()))),
            (None, None) => Poll::Pending,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_silent_is_dropped_at_the_deadline() {
    let silent = service_fn(|_| std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>());
    let start = tokio::time::Instant::now();
    let response = DeadlineLayer.layer(silent).oneshot(call("250m")).await.unwrap();
    assert_eq!(status(&response), "4");
    assert!(response.body().is_end_stream());
    let response = Channel::new(silent).oneshot(call("2S")).await.unwrap();
    assert_eq!(status(&response), "4");
    assert_eq!(start.elapsed().as_secs_f64().round(), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_falls_silent_ends_at_the_deadline() {
    let service =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(Begun(Some(Bytes::from("data")), None))) });
    for is_server in [true, false] {
        let response = match is_server {
            true => DeadlineLayer.layer(service).oneshot(call("1S")).await.unwrap(),
            false => Channel::new(service).oneshot(call("1S")).await.unwrap(),
        };
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "4");
        assert_eq!(body.to_bytes(), "data");
    }
}

/// A body that always has more.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from("more")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_never_pauses_ends_at_the_deadline() {
    let service = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Endless)) });
    let mut body = DeadlineLayer.layer(service).oneshot(call("250m")).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "4");
    assert!(body.frame().await.is_none());
}

/// The server's time is over at the same time, and its reset may come before our timer.
#[tokio::test(start_paused = true)]
async fn what_breaks_when_time_is_over_was_too_late() {
    let late = async || tokio::time::advance(std::time::Duration::from_micros(1001)).await;
    let service = service_fn(move |_| async move {
        late().await;
        Err::<Response<Empty<Bytes>>, h2::Error>(h2::Reason::INTERNAL_ERROR.into())
    });
    let response = Channel::new(service).oneshot(call("1m")).await.unwrap();
    assert_eq!(status(&response), "4");
    let begun = Begun(Some(Bytes::from("data")), Some(h2::Reason::INTERNAL_ERROR));
    let service = service_fn(move |_| std::future::ready(Ok::<_, Infallible>(Response::new(begun.clone()))));
    let mut body = Channel::new(service).oneshot(call("1m")).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    late().await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_trailers().unwrap()["grpc-status"], "4");
}

#[tokio::test]
async fn what_breaks_has_a_code() {
    let service =
        service_fn(|_| async { Err::<Response<Empty<Bytes>>, _>(h2::Error::from(h2::Reason::CANCEL)) });
    let response = Channel::new(service).oneshot(call("1H")).await.unwrap();
    assert_eq!(status(&response), "1");
    let service = service_fn(|_| async {
        let body = Begun(Some(Bytes::from("data")), Some(h2::Reason::ENHANCE_YOUR_CALM));
        Ok::<_, Infallible>(Response::new(body))
    });
    let body = Channel::new(service).oneshot(call("1H")).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "8");
}

#[tokio::test]
async fn what_is_not_about_the_exchange_is_left_alone() {
    let service = service_fn(|_| async { Err::<Response<Empty<Bytes>>, _>(BoxError::from("my own")) });
    let error = Channel::new(service).oneshot(call("1H")).await.unwrap_err();
    assert_eq!(error.to_string(), "my own");

    let body = || {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", 5.into());
        Empty::<Bytes>::new().with_trailers(async move { Some(Ok(trailers)) })
    };
    let service = service_fn(move |_| async move { Ok::<_, Infallible>(Response::new(body())) });
    let body = DeadlineLayer.layer(service).oneshot(call("1H")).await.unwrap();
    let body = body.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "5");
}

#[tokio::test]
async fn timeouts_that_make_no_sense_are_told_and_those_of_others_are_not_read() {
    let service = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) });
    let response = DeadlineLayer.layer(service).oneshot(call("soon")).await.unwrap();
    assert_eq!(status(&response), "13");
    let other = Request::get("/").header("grpc-timeout", "0n").body(Empty::<Bytes>::new()).unwrap();
    let response = DeadlineLayer.layer(service).oneshot(other).await.unwrap();
    assert!(!response.headers().contains_key("grpc-status"));
}
