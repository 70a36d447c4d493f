//! The same over HTTP: a POST whose path says how many bytes are asked for, and whose body is the upload.

use crate::kernel;
use crate::repeat::{Place, repeat};
use crate::tls::{Server, Target};
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use peer_perf::{CONNECTION_WINDOW, Measure, Outcome, STREAM_WINDOW, STREAMS, Serve, Work, next_chunk};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};
use tokio::task::spawn_local;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

impl Version {
    fn alpn(self) -> &'static str {
        match self {
            Version::One => "http/1.1",
            Version::Two => "h2",
        }
    }
}

/// Zeros, so many of them.
struct Zeros(u64);

impl Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = next_chunk(self.0);
        self.0 -= chunk.len() as u64;
        Poll::Ready((!chunk.is_empty()).then(|| Ok(Frame::data(Bytes::from_static(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

/// Zeros until a time; then it says how many there were.
struct Upload {
    until: Instant,
    bytes: u64,
    told: Option<tokio::sync::oneshot::Sender<u64>>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if Instant::now() >= self.until {
            let bytes = self.bytes;
            if let Some(told) = self.told.take() {
                let _ = told.send(bytes);
            }
            return Poll::Ready(None);
        }
        let chunk = next_chunk(u64::MAX);
        self.bytes += chunk.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(chunk)))))
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Zeros>> {
    let wanted = request.uri().path().trim_start_matches('/').parse()?;
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(Response::new(Zeros(wanted)))
}

pub async fn serve(options: &Serve, version: Version) -> Result<()> {
    let tls = Server::new(options, version.alpn())?;
    let listener = kernel::listen(options.listen)?;
    loop {
        let (stream, tls) = (kernel::accept(&listener).await?, tls.clone());
        // Whoever has measured enough goes away.
        spawn_local(async move {
            let stream = TokioIo::new(tls.accept(stream).await?);
            match version {
                Version::One => {
                    server::conn::http1::Builder::new().serve_connection(stream, service_fn(answer)).await?;
                }
                Version::Two => {
                    let mut http = server::conn::http2::Builder::new(TokioExecutor::new());
                    http.initial_stream_window_size(STREAM_WINDOW);
                    http.initial_connection_window_size(CONNECTION_WINDOW);
                    http.max_concurrent_streams(STREAMS).max_send_buf_size(8 << 20);
                    http.serve_connection(stream, service_fn(answer)).await?;
                }
            }
            anyhow::Ok(())
        });
    }
}

type Sent = UnsyncBoxBody<Bytes, Infallible>;

/// A connection that requests go over.
enum Sender {
    One(http1::SendRequest<Sent>),
    Two(http2::SendRequest<Sent>),
}

impl Sender {
    async fn connect(target: &Target, version: Version) -> Result<Self> {
        let stream = TokioIo::new(target.connect().await?);
        Ok(match version {
            Version::One => {
                let (sender, connection) = http1::handshake(stream).await?;
                spawn_local(connection);
                Sender::One(sender)
            }
            Version::Two => {
                let mut http = http2::Builder::new(TokioExecutor::new());
                http.initial_stream_window_size(STREAM_WINDOW);
                http.initial_connection_window_size(CONNECTION_WINDOW);
                http.initial_max_send_streams(STREAMS as usize).max_send_buf_size(8 << 20);
                let (sender, connection) = http.handshake(stream).await?;
                spawn_local(connection);
                Sender::Two(sender)
            }
        })
    }

    async fn post(&mut self, wanted: u64, body: Sent) -> Result<Incoming> {
        let request = Request::post(format!("https://localhost/{wanted}")).header("host", "localhost");
        let request = request.body(body)?;
        let response = match self {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        ensure!(response.status().is_success(), "the server answers {}", response.status());
        Ok(response.into_body())
    }
}

pub async fn measure(options: &Measure, version: Version) -> Result<Outcome> {
    let target = Target::new(options.remote, version.alpn())?;
    let mut sender = Sender::connect(&target, version).await?;
    match options.work {
        Work::Download(time) => download(&mut sender, time).await,
        Work::Upload(time) => upload(&mut sender, time).await,
        Work::Requests(wanted) => {
            let message = Bytes::from(vec![0; wanted.request]);
            let mut places = Vec::new();
            for _ in 0..wanted.streams {
                let sender = match &sender {
                    // A connection has one request under way.
                    Sender::One(_) => Sender::connect(&target, version).await?,
                    Sender::Two(sender) => Sender::Two(sender.clone()),
                };
                places.push(Requests { sender, message: message.clone(), response: wanted.response });
            }
            Ok(Outcome::requests(repeat(places, wanted.time).await?))
        }
        _ => bail!("that is measured without HTTP"),
    }
}

async fn download(sender: &mut Sender, time: Duration) -> Result<Outcome> {
    let start = Instant::now();
    // More than there is time for, but no more than a length of HTTP/1.1 may be.
    let mut body = sender.post(u64::MAX >> 1, Full::default().boxed_unsync()).await?;
    let mut bytes = 0;
    while start.elapsed() < time {
        let frame = body.frame().await.context("the server ended the download")??;
        bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
    }
    Ok(Outcome::download(bytes, start.elapsed()))
}

async fn upload(sender: &mut Sender, time: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let (told, bytes) = tokio::sync::oneshot::channel();
    let upload = Upload { until: start + time, bytes: 0, told: Some(told) };
    let mut body = sender.post(0, upload.boxed_unsync()).await?;
    while let Some(frame) = body.frame().await {
        frame?;
    }
    let took = start.elapsed();
    Ok(Outcome::upload(bytes.await?, took))
}

struct Requests {
    sender: Sender,
    message: Bytes,
    response: u64,
}

impl Place for Requests {
    async fn once(&mut self) -> Result<()> {
        let body = Full::new(self.message.clone()).boxed_unsync();
        let mut body = self.sender.post(self.response, body).await?;
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            bytes += frame?.data_ref().map_or(0, Bytes::len) as u64;
        }
        ensure!(bytes == self.response, "{bytes} bytes came, {} were asked for", self.response);
        Ok(())
    }
}
