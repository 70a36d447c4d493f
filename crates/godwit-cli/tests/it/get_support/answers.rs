//! What the server answers, over any protocol.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, IF_RANGE, RANGE};
use http::{HeaderValue, Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::Notify;

use super::{contents, sha256};

/// The entity tag of everything that has one.
const TAG: &str = "\"one\"";

/// What a server has seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// The numbers of the QUIC connections on which requests came.
    connections: Mutex<BTreeSet<u64>>,
    tcp: AtomicUsize,
    quic: AtomicUsize,
    resumed: AtomicUsize,
    early: AtomicUsize,
    too_early: AtomicUsize,
    quic_came: Notify,
    /// Connections over TCP are to be cut off, without a word of TLS.
    pub(super) cut: Notify,
    /// What was asked for with a `Range` header.
    pub(crate) ranges: Mutex<Vec<String>>,
}

impl Seen {
    pub(crate) fn on_request(&self, number: Option<u64>) {
        self.connections.lock().unwrap().extend(number);
    }

    pub(crate) fn on_tcp(&self) {
        self.tcp.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn on_quic(&self) {
        self.quic.fetch_add(1, Ordering::SeqCst);
        self.quic_came.notify_waiters();
    }

    pub(crate) fn on_session(&self, resumed: bool, early: bool) {
        self.resumed.fetch_add(resumed.into(), Ordering::SeqCst);
        self.early.fetch_add(early.into(), Ordering::SeqCst);
    }

    /// QUIC connections that resumed a session, and those among them with 0-RTT.
    pub(crate) fn sessions(&self) -> (usize, usize) {
        (self.resumed.load(Ordering::SeqCst), self.early.load(Ordering::SeqCst))
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// TCP connections.
    pub(crate) fn tcp(&self) -> usize {
        self.tcp.load(Ordering::SeqCst)
    }

    /// Complete QUIC handshakes.
    pub(crate) fn quic(&self) -> usize {
        self.quic.load(Ordering::SeqCst)
    }

    async fn until_quic(&self) {
        while self.quic() == 0 {
            let _ = tokio::time::timeout(Duration::from_millis(20), self.quic_came.notified()).await;
        }
    }
}

/// A response's body.
pub(crate) enum Reply {
    Whole(Option<Bytes>),
    /// Something, and after a while an error.
    Broken(Option<Bytes>, Pin<Box<tokio::time::Sleep>>),
    /// Something, and after a while the connection is cut off.
    Cut(Option<Bytes>, Pin<Box<tokio::time::Sleep>>, Arc<Seen>),
    /// Something, and then nothing any more, and no end.
    Stuck(Option<Bytes>),
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let (Reply::Whole(data) | Reply::Broken(data, _) | Reply::Cut(data, ..) | Reply::Stuck(data)) =
            &mut *self;
        if let Some(data) = data.take().filter(|data| !data.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut *self {
            Reply::Whole(_) => Poll::Ready(None),
            Reply::Broken(_, pause) => {
                pause.as_mut().poll(cx).map(|()| Some(Err(std::io::Error::other("broken on purpose"))))
            }
            Reply::Cut(_, pause, seen) => {
                std::task::ready!(pause.as_mut().poll(cx));
                seen.cut.notify_waiters();
                Poll::Pending
            }
            Reply::Stuck(_) => Poll::Pending,
        }
    }
}

pub(crate) async fn answer<B>(
    request: Request<B>,
    seen: Arc<Seen>,
    alt_svc: Option<HeaderValue>,
) -> Result<Response<Reply>, Infallible>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let path = request.uri().path().to_owned();
    let is_head = request.method() == Method::HEAD;
    let number = path.rsplit('/').next().and_then(|last| last.parse::<usize>().ok());
    let mut response = Response::builder();
    if let Some(value) = alt_svc {
        response = response.header("alt-svc", value);
    }
    let whole = |data: Bytes| Reply::Whole(Some(data));
    let kind = path.split('/').nth(1).unwrap_or("");
    let header =
        |name: &str| request.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
    let response = match (kind, number) {
        ("bytes", Some(length)) => response.header("content-length", length).body(whole(contents(length))),
        ("chunked", Some(length)) => response.body(whole(contents(length))),
        ("status", Some(status)) => {
            if (300..400).contains(&status) {
                response = response.header("location", "/elsewhere");
            }
            response.status(u16::try_from(status).unwrap()).body(whole(format!("page of {status}\n").into()))
        }
        // So many redirects, and then a file.
        ("redirect", Some(0)) => {
            response.status(302).header("location", "../file/0").body(whole(Bytes::new()))
        }
        ("redirect", Some(left)) => {
            let next = format!("./{}", left - 1);
            response.status(301).header("location", next).body(whole(Bytes::from_static(b"moved\n")))
        }
        // To the same server under its other name, with this status.
        ("away", Some(status)) => {
            let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
            let port = authority.unwrap_or_else(|| header("host")).rsplit(':').next().unwrap().to_owned();
            let location = format!("https://localhost:{port}/echo");
            response
                .status(u16::try_from(status).unwrap())
                .header("location", location)
                .body(whole(Bytes::new()))
        }
        ("to", _) => {
            let location = request.uri().query().unwrap();
            response.status(302).header("location", location).body(whole(Bytes::new()))
        }
        ("file", Some(number)) => response.body(whole(format!("file {number}\n").into())),
        ("wait", Some(ms)) => {
            tokio::time::sleep(Duration::from_millis(ms as u64)).await;
            response.body(whole(Bytes::from_static(b"waited\n")))
        }
        ("until-quic", _) => {
            seen.until_quic().await;
            response.body(whole(Bytes::from_static(b"QUIC has come\n")))
        }
        // Of the first two the first half, unless the second is asked for.
        ("flaky" | "vanished" | "tagged", Some(length)) => flaky(&request, &seen, response, kind, length),
        ("echo", _) => {
            let head = format!(
                "{} {} x-test={} authorization={} content-type={} content-length={}",
                request.method(),
                request.uri(),
                header("x-test"),
                header(AUTHORIZATION.as_str()),
                header("content-type"),
                header("content-length"),
            );
            let body = request.into_body().collect().await.unwrap().to_bytes();
            response.body(whole(format!("{head}\n{} {}\n", body.len(), sha256(&body)).into()))
        }
        ("broken", _) => {
            let pause = Box::pin(tokio::time::sleep(Duration::from_millis(200)));
            response.header("content-length", 200_000).body(Reply::Broken(Some(contents(100_000)), pause))
        }
        // The first time it is too early.
        ("too-early", _) => match seen.too_early.fetch_add(1, Ordering::SeqCst) {
            0 => response.status(425).body(whole(Bytes::from_static(b"too early\n"))),
            _ => response.body(whole(Bytes::from_static(b"late enough\n"))),
        },
        ("cut", _) => {
            let pause = Box::pin(tokio::time::sleep(Duration::from_millis(200)));
            let reply = Reply::Cut(Some(contents(100_000)), pause, Arc::clone(&seen));
            response.header("content-length", 200_000).body(reply)
        }
        // What it announces is not what it sends.
        ("short", _) => response.header("content-length", 200_000).body(whole(contents(100_000))),
        ("stuck", _) => response.body(Reply::Stuck(Some(contents(100_000)))),
        _ => response.status(404).body(whole(Bytes::from_static(b"nothing here\n"))),
    };
    let response = response.unwrap();
    Ok(if is_head { response.map(|_| Reply::Whole(None)) } else { response })
}

fn flaky<B>(
    request: &Request<B>,
    seen: &Seen,
    response: http::response::Builder,
    kind: &str,
    length: usize,
) -> http::Result<Response<Reply>> {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let data = contents(length);
    // What is called vanished has another tag each time.
    let tag = if kind != "vanished" {
        TAG.to_owned()
    } else {
        format!("\"{}\"", seen.ranges.lock().unwrap().len())
    };
    let response = response.header("etag", &tag);
    let Some(range) = text(RANGE) else {
        if kind == "tagged" {
            return response.header("content-length", length).body(Reply::Whole(Some(data)));
        }
        let pause = Box::pin(tokio::time::sleep(Duration::from_millis(100)));
        let half = data.slice(..length / 2);
        return response.header("content-length", length).body(Reply::Broken(Some(half), pause));
    };
    seen.ranges.lock().unwrap().push(range.clone());
    if text(IF_RANGE).is_some_and(|wanted| wanted != tag) {
        return response.header("content-length", length).body(Reply::Whole(Some(data)));
    }
    let first: usize = range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse().unwrap();
    if first >= length {
        return response
            .status(416)
            .header("content-range", format!("bytes */{length}"))
            .body(Reply::Whole(None));
    }
    let rest = data.slice(first..);
    response
        .status(206)
        .header("content-length", rest.len())
        .header("content-range", format!("bytes {first}-{}/{length}", length - 1))
        .body(Reply::Whole(Some(rest)))
}
