//! What is served, over whichever protocol: a place to send bytes to, answers of a few kilobytes, and the same answers from
//! an origin further away.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

/// Bytes of an answer's body.
pub(super) const ANSWER: usize = 4000;
/// Paths: uploads are counted under the number that follows.
pub(super) const UPLOAD: &str = "/upload/";
pub(super) const ASK: &str = "/answer";
pub(super) const ASK_ORIGIN: &str = "/origin";

/// What arrived, by the number of the upload.
#[derive(Clone, Debug, Default)]
pub(super) struct Uploads(Arc<Mutex<HashMap<u64, Arc<AtomicU64>>>>);

impl Uploads {
    /// The counter of an upload.
    pub(super) fn of(&self, number: u64) -> Arc<AtomicU64> {
        let mut uploads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(uploads.entry(number).or_default())
    }
}

/// The way from a server to the origin: one connection that stays open, HTTP/2 over TCP.
#[derive(Debug)]
pub(super) struct Origin {
    address: SocketAddr,
    connection: OnceCell<SendRequest<Full<Bytes>>>,
}

impl Origin {
    pub(super) fn new(address: SocketAddr) -> Arc<Origin> {
        Arc::new(Origin { address, connection: OnceCell::new() })
    }

    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn ask(&self, body: Bytes) -> io::Result<Bytes> {
        let mut sender = self.connection.get_or_try_init(|| self.connect()).await?.clone();
        sender.ready().await.map_err(io::Error::other)?;
        let request = Request::post(format!("http://{}{ASK}", self.address)).body(Full::new(body));
        let response =
            sender.send_request(request.map_err(io::Error::other)?).await.map_err(io::Error::other)?;
        Ok(response.into_body().collect().await.map_err(io::Error::other)?.to_bytes())
    }
}

/// The service. It can stand before an origin.
#[derive(Clone, Debug, Default)]
pub(super) struct Service {
    pub(super) uploads: Uploads,
    pub(super) origin: Option<Arc<Origin>>,
}

impl Service {
    pub(super) async fn answer<B>(self, request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path();
        if let Some(number) = path.strip_prefix(UPLOAD).and_then(|number| number.parse().ok()) {
            let count = self.uploads.of(number);
            while let Some(Ok(frame)) = body.frame().await {
                let len = frame.data_ref().map_or(0, Bytes::len);
                count.fetch_add(len as u64, Ordering::Relaxed);
            }
            return Ok(Response::new(Full::default()));
        }
        let Ok(body) = body.collect().await else { return Ok(status(StatusCode::BAD_REQUEST)) };
        if path == ASK {
            return Ok(Response::new(Full::new(Bytes::from_static(&[b'a'; ANSWER]))));
        }
        match &self.origin {
            Some(origin) if path == ASK_ORIGIN => match origin.ask(body.to_bytes()).await {
                Ok(answer) => Ok(Response::new(Full::new(answer))),
                Err(_) => Ok(status(StatusCode::BAD_GATEWAY)),
            },
            _ => Ok(status(StatusCode::NOT_FOUND)),
        }
    }
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = code;
    response
}
