//! What is compressed, how it decompresses, and when it goes out.

use std::io::Read;

use http::header::{ACCEPT_ENCODING, VARY};
use proptest::prelude::*;
use tokio::sync::mpsc;

use super::*;
use godwit_body::{boxed, empty, full};

const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

fn preferences(accept: &str) -> Preferences {
    Preferences::of(&Request::get("/").header(ACCEPT_ENCODING, accept).body(()).unwrap())
}

fn decompress(coding: Coding, data: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        Coding::Zstd => zstd::stream::read::Decoder::new(data).unwrap().read_to_end(&mut plain).unwrap(),
        Coding::Brotli => brotli::Decompressor::new(data, 4096).read_to_end(&mut plain).unwrap(),
        Coding::Gzip => flate2::read::GzDecoder::new(data).read_to_end(&mut plain).unwrap(),
    };
    plain
}

fn html(text: impl Into<Bytes>) -> Response<BoxBody> {
    let mut response = Response::new(full(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// A body whose frames are sent while it is read.
struct Fed(mpsc::UnboundedReceiver<Frame<Bytes>>);

impl Body for Fed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

fn fed() -> (mpsc::UnboundedSender<Frame<Bytes>>, BoxBody) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, boxed(Fed(receiver)))
}

#[tokio::test]
async fn each_coding_gives_back_what_was_put_in() {
    let text = "All that is gold does not glitter. ".repeat(9000);
    for coding in ALL {
        let mut response = html(text.clone());
        response.headers_mut().insert(ETAG, HeaderValue::from_static("\"tag\""));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
        response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let response = compress(response, preferences(coding.name()), &ALL, &CompressionMemory::default());
        let headers = response.headers();
        assert_eq!(headers[CONTENT_ENCODING], coding.name());
        assert_eq!(headers[VARY], "accept-encoding");
        assert_eq!(headers[ETAG], "W/\"tag\"");
        assert!(!headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(ACCEPT_RANGES));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.len() < text.len() / 20, "{} bytes", body.len());
        assert_eq!(decompress(coding, &body), text.as_bytes());
    }
}

#[test]
fn what_may_hold_a_secret_is_left_alone_unless_that_is_wished() {
    let compressed = |request: &[(&str, &str)], response: &[(&str, &str)], same_for_all, wished| {
        let mut asked = Request::get("/").header(ACCEPT_ENCODING, "gzip");
        for (name, value) in request {
            asked = asked.header(*name, *value);
        }
        let mut answer = html("x".repeat(2000));
        for (name, value) in response {
            let name: http::HeaderName = name.parse().unwrap();
            answer.headers_mut().append(name, value.parse().unwrap());
        }
        if same_for_all {
            answer.extensions_mut().insert(SameForAll);
        }
        let mut answer = Some(answer);
        let service = tower::service_fn(move |_: Request<()>| {
            std::future::ready(Ok::<_, std::convert::Infallible>(answer.take().unwrap()))
        });
        let layer = CompressionLayer::default().with_credentials(wished);
        let mut answering = std::pin::pin!(layer.layer(service).call(asked.body(()).unwrap()));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Ok(answer)) = answering.as_mut().poll(&mut context) else { panic!("it waits") };
        assert_eq!(answer.headers()[VARY], "accept-encoding", "it could have been");
        answer.headers().contains_key(CONTENT_ENCODING)
    };
    assert!(compressed(&[], &[], false, false));
    for (request, response) in [
        (&[("cookie", "session=1")][..], &[][..]),
        (&[("authorization", "Basic eDp5")], &[]),
        (&[], &[("set-cookie", "session=1")]),
        (&[("cookie", "a=b")], &[("cache-control", "private, max-age=5")]),
        // Whatever it says of itself: it is for one user.
        (&[], &[("cache-control", "public"), ("set-cookie", "session=1")]),
    ] {
        assert!(!compressed(request, response, false, false), "{request:?} {response:?}");
        assert!(compressed(request, response, false, true), "{request:?} {response:?}");
        assert!(compressed(request, response, true, false), "{request:?} {response:?}");
    }
    assert!(compressed(&[("cookie", "a=b")], &[("cache-control", "max-age=5, Public")], false, false));
}

#[test]
fn what_gains_nothing_or_is_forbidden_stays_as_it_is() {
    let long = "x".repeat(2000);
    let encoding = |response: Response<BoxBody>, accept: &str| {
        let response = compress(response, preferences(accept), &ALL, &CompressionMemory::default());
        let value =
            |name| response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned());
        (value(CONTENT_ENCODING), value(VARY))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(encoding(html(long.clone()), "gzip"), (some("gzip"), some("accept-encoding")));
    assert_eq!(
        encoding(html(long.clone()), "identity"),
        (None, some("accept-encoding")),
        "it could have been"
    );
    assert_eq!(encoding(html("short"), "gzip"), (None, None));
    for (name, value) in [
        (CONTENT_TYPE, "image/png"),
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (CONTENT_TYPE, "application/grpc"),
        (CONTENT_ENCODING, "br"),
        (CONTENT_RANGE, "bytes 0-1/2"),
        (CACHE_CONTROL, "public, No-Transform"),
        (http::HeaderName::from_static("content-digest"), "sha-256=:x:"),
    ] {
        let mut response = html(long.clone());
        response.headers_mut().insert(name.clone(), value.parse().unwrap());
        let expected = (name == CONTENT_ENCODING).then(|| value.to_owned());
        assert_eq!(encoding(response, "gzip"), (expected, None), "{name}: {value}");
    }
    for status in [204, 206, 304] {
        let mut response = html(long.clone());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        assert_eq!(encoding(response, "gzip"), (None, None), "{status}");
    }
    let tunnel = Preferences::of(&Request::connect("/").header(ACCEPT_ENCODING, "gzip").body(()).unwrap());
    let response = compress(html(long.clone()), tunnel, &ALL, &CompressionMemory::default());
    assert!(!response.headers().contains_key(CONTENT_ENCODING));
    let response = compress(html(long), preferences("gzip"), &[], &CompressionMemory::default());
    assert!(response.headers().len() == 1, "it is switched off");
}

#[test]
fn a_head_is_told_the_same_as_a_get() {
    let mut response = html(empty_text());
    *response.body_mut() = empty();
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(5000));
    let head = Preferences::of(&Request::head("/").header(ACCEPT_ENCODING, "br").body(()).unwrap());
    let response = compress(response, head, &ALL, &CompressionMemory::default());
    assert_eq!(response.headers()[CONTENT_ENCODING], "br");
    assert!(response.body().is_end_stream() && !response.headers().contains_key(CONTENT_LENGTH));
}

fn empty_text() -> Bytes {
    Bytes::new()
}

#[tokio::test]
async fn what_was_sent_goes_out_when_the_sender_pauses() {
    for coding in ALL {
        let (sender, body) = fed();
        let response = html("").map(|_| body);
        let mut body =
            compress(response, preferences(coding.name()), &ALL, &CompressionMemory::default()).into_body();
        let mut received = Vec::new();
        for number in 0..3 {
            sender.send(Frame::data(format!("message {number}\n").into())).unwrap();
            let frame = body.frame().await.unwrap().unwrap();
            received.extend_from_slice(&frame.into_data().unwrap());
            assert!(futures_are_pending(&mut body), "nothing more to say");
        }
        sender.send(Frame::trailers(HeaderMap::from_iter([(ETAG, "x".parse().unwrap())]))).unwrap();
        drop(sender);
        let rest = body.collect().await.unwrap();
        assert_eq!(rest.trailers().unwrap().len(), 1);
        received.extend_from_slice(&rest.to_bytes());
        assert_eq!(decompress(coding, &received), b"message 0\nmessage 1\nmessage 2\n");
    }
}

fn futures_are_pending(body: &mut BoxBody) -> bool {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    Pin::new(body).poll_frame(&mut cx).is_pending()
}

#[tokio::test]
async fn a_sender_who_fails_is_not_taken_for_one_who_ended() {
    struct Broken(bool);
    impl Body for Broken {
        type Data = Bytes;
        type Error = BoxError;
        fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> FramePoll {
            let first = std::mem::replace(&mut self.0, false);
            Poll::Ready(Some(if first { Ok(Frame::data("x".into())) } else { Err("broken".into()) }))
        }
    }
    let response = html("").map(|_| boxed(Broken(true)));
    let response = compress(response, preferences("zstd"), &ALL, &CompressionMemory::default());
    assert_eq!(response.headers()[CONTENT_ENCODING], "zstd");
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn compressions_share_a_limited_room() {
    let room = CompressionMemory::default();
    let mut under_way = Vec::new();
    let ask = |accept: &str| {
        let response = compress(html("x".repeat(100_000)), preferences(accept), &ALL, &room);
        let coding = response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap().to_owned());
        (coding, response)
    };
    let mut codings = Vec::new();
    loop {
        let (coding, response) = ask("zstd, gzip");
        under_way.push(response);
        assert!(under_way.len() < 1000);
        match coding {
            Some(coding) => codings.push(coding),
            None => break,
        }
    }
    assert!(codings.len() > 100 && codings.is_sorted_by(|a, b| a >= b), "zstd first, then gzip: {codings:?}");
    assert_eq!(codings.last().map(String::as_str), Some("gzip"));
    drop(under_way.pop());
    let one = under_way.remove(0);
    drop(one.into_body().collect().await.unwrap());
    assert_eq!(ask("zstd, gzip").0.as_deref(), Some("zstd"), "an end makes room");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_frames_survive(frames in prop::collection::vec(prop::collection::vec(0..4_u8, 0..70_000), 0..5), which in 0..3_usize) {
        let coding = ALL[which];
        let (sender, body) = fed();
        let whole: Vec<u8> = frames.concat();
        for frame in frames {
            sender.send(Frame::data(frame.into())).unwrap();
        }
        drop(sender);
        let response = compress(html("").map(|_| body), preferences(coding.name()), &ALL, &CompressionMemory::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
        prop_assert_eq!(decompress(coding, &body), whole);
    }
}
