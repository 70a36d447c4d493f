//! Upstreams, a front and clients.

use bytes::Bytes;
use godwit_proxy::{Body, BoxError, Peer, Proxy, Settings};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

pub type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

pub fn any<B>(body: B) -> AnyBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    AnyBody::new(body.map_err(Into::into))
}

/// A server on loopback that ends with its handle, connections included.
pub struct Server {
    pub addr: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn url(&self, scheme: &str) -> godwit_proxy::Upstream {
        format!("{scheme}://{}", self.addr).parse().unwrap()
    }
}

/// A server that does `act` with each connection.
pub async fn raw<F, Fut>(act: F) -> Server
where
    F: Fn(TcpStream, usize) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    raw_at("127.0.0.1:0".parse().unwrap(), act).await
}

pub async fn raw_at<F, Fut>(addr: SocketAddr, act: F) -> Server
where
    F: Fn(TcpStream, usize) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = loop {
        match TcpListener::bind(addr).await {
            Ok(listener) => break listener,
            // A server before it has not quite gone.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let addr = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let task = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tasks.spawn(act(stream, counted.fetch_add(1, Ordering::SeqCst)));
            while tasks.try_join_next().is_some() {}
        }
    });
    Server { addr, connections, task: task.abort_handle() }
}

/// A server for HTTP/1.1 and HTTP/2 with prior knowledge.
pub async fn server<F, Fut, B>(answer: F) -> Server
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    server_at("127.0.0.1:0".parse().unwrap(), answer).await
}

pub async fn server_at<F, Fut, B>(addr: SocketAddr, answer: F) -> Server
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    raw_at(addr, move |stream, _| {
        let answer = answer.clone();
        async move {
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { answer.await.map(|response| response.map(any)).map_err(std::io::Error::other) }
            });
            serve(stream, service).await;
        }
    })
    .await
}

async fn serve<S>(stream: TcpStream, service: S)
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<AnyBody>, Error = std::io::Error>
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    stream.set_nodelay(true).unwrap();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().enable_connect_protocol();
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}

/// A proxy as it faces clients.
pub async fn front(proxy: &Proxy) -> Server {
    let proxy = proxy.clone();
    raw(move |stream, _| {
        let proxy = proxy.clone();
        async move {
            let address = stream.peer_addr().unwrap();
            let service = service_fn(move |mut request: Request<Incoming>| {
                let proxy = proxy.clone();
                request.extensions_mut().insert(Peer::new(address, true));
                async move { Ok::<_, std::io::Error>(proxy.handle(request).await.map(any)) }
            });
            serve(stream, service).await;
        }
    })
    .await
}

pub fn settings(server: &Server, scheme: &str) -> Settings {
    let mut settings = Settings::to([server.url(scheme)]);
    settings.timeouts.connect = Duration::from_secs(10);
    settings
}

pub fn proxy(server: &Server, scheme: &str) -> Proxy {
    Proxy::new(settings(server, scheme)).unwrap()
}

pub fn get(path: &str) -> Request<AnyBody> {
    Request::get(path).header("host", "site.example").body(any(Empty::new())).unwrap()
}

pub fn post(path: &str, body: impl Into<Bytes>) -> Request<AnyBody> {
    Request::post(path).header("host", "site.example").body(any(Full::new(body.into()))).unwrap()
}

pub async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// A body whose frames are sent from elsewhere; its end is when the sender goes.
pub fn channel() -> (mpsc::Sender<Result<Frame<Bytes>, BoxError>>, AnyBody) {
    let (sender, mut receiver) = mpsc::channel(1);
    let stream = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    (sender, any(StreamBody::new(stream)))
}

pub fn data(bytes: impl Into<Bytes>) -> Result<Frame<Bytes>, BoxError> {
    Ok(Frame::data(bytes.into()))
}

/// A long body, with trailers, that counts what was taken.
pub struct Long {
    left: usize,
    trailers: bool,
    pub taken: Arc<AtomicUsize>,
}

impl Long {
    pub fn new(len: usize, trailers: bool) -> Self {
        Long { left: len, trailers, taken: Arc::default() }
    }
}

impl http_body::Body for Long {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let len = self.left.min(50_000);
        if len > 0 {
            self.left -= len;
            self.taken.fetch_add(len, Ordering::SeqCst);
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; len])))));
        }
        if std::mem::take(&mut self.trailers) {
            // The first are for header sections alone.
            let fields = [
                ("x-forwarded-for", "10.6.6.6"),
                ("authorization", "Basic eDp5"),
                ("early-data", "0"),
                ("x-sum", "12"),
            ];
            let fields = fields.map(|(name, value)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            });
            let trailers = http::HeaderMap::from_iter(fields);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        Poll::Ready(None)
    }
}

/// Waits until it is true.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a shard's own thread does with the proxy.
pub fn on_shard(number: u8, proxy: &Proxy, act: impl AsyncFnOnce(&Proxy) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            godwit_os::shard::enter(number);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(act(proxy));
        });
    });
}
