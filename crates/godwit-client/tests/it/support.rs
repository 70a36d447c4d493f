//! A server that speaks HTTP/2 and HTTP/1.1 (with or without TLS), one that speaks HTTP/3, and a proxy.

use std::convert::Infallible;
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use godwit::{Endpoint, ServerConfig, http3};
use godwit_client::{Client, ClientBuilder};
use http::header::{ALT_SVC, AUTHORIZATION, HOST, IF_RANGE, LOCATION, PROXY_AUTHORIZATION, RANGE};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// The names in its certificate.
const NAMES: [&str; 3] = ["localhost", "first.test", "pinned.test"];

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// PEM.
    pub(crate) certificate: String,
    pub(crate) leaf: CertificateDer<'static>,
    key: String,
    /// Connections that were made.
    pub(crate) connections: Arc<AtomicUsize>,
    secure: bool,
    manner: Arc<Manner>,
}

/// What may change while a server runs.
#[derive(Default)]
struct Manner {
    alt_svc: Mutex<Option<String>>,
    /// New connections get no answer.
    is_stalled: AtomicBool,
    /// It is a server of DNS over HTTPS too.
    #[cfg(feature = "dns")]
    zone: Mutex<Option<Arc<crate::dns::Zone>>>,
}

impl Server {
    pub(crate) async fn start(secure: bool) -> Server {
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned)).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(godwit_tls::rustls_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let manner = Arc::<Manner>::default();
        let shared = Arc::clone(&manner);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, manner) = (acceptor.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    if manner.is_stalled.load(Ordering::SeqCst) {
                        std::future::pending::<()>().await;
                    }
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let service = service_fn(move |request| advertising(request, Arc::clone(&manner)));
                    let _ = match secure {
                        true => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            builder.serve_connection(TokioIo::new(stream), service).await
                        }
                        false => builder.serve_connection(TokioIo::new(stream), service).await,
                    };
                });
            }
        });
        let (certificate, leaf) = (made.cert.pem(), made.cert.der().clone());
        let key = made.signing_key.serialize_pem();
        Server { address, certificate, leaf, key, connections, secure, manner }
    }

    /// Says from now on that HTTP/3 is at this port.
    pub(crate) fn advertise(&self, port: u16) {
        *self.manner.alt_svc.lock().unwrap() = Some(format!("h3=\":{port}\""));
    }

    /// Answers questions for names from now on.
    #[cfg(feature = "dns")]
    pub(crate) fn answer_names(&self, zone: Arc<crate::dns::Zone>) {
        *self.manner.zone.lock().unwrap() = Some(zone);
    }

    /// Answers on no new connection from now on.
    pub(crate) fn stall(&self) {
        self.manner.is_stalled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://localhost:{}{path}", self.address.port())
    }

    pub(crate) fn client(&self) -> ClientBuilder {
        Client::builder().root_pem(self.certificate.clone())
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// The same over HTTP/3, at a port of its own.
pub(crate) struct Http3 {
    pub(crate) address: SocketAddr,
    /// Something comes for each connection that has ended.
    pub(crate) closed: UnboundedReceiver<()>,
    connections: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Http3 {
    pub(crate) fn start(server: &Server) -> Http3 {
        Http3::telling(server, |_| Vec::new())
    }

    /// One that says at its port for which origins it answers.
    pub(crate) fn telling(server: &Server, origins: impl Fn(u16) -> Vec<String>) -> Http3 {
        let config = ServerConfig::from_pem(server.certificate.as_bytes(), server.key.as_bytes());
        let config = config.alpn([http3::ALPN]).build().unwrap();
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = endpoint.local_addr().unwrap();
        let (connections, gate) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let (tell, closed) = unbounded_channel();
        let (count, shared) = (Arc::clone(&connections), Arc::clone(&gate));
        let mut protocol = http3::Config::default();
        protocol.origins = origins(address.port());
        let server = http3::Server::new().config(protocol);
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let (count, gate, tell) = (Arc::clone(&count), Arc::clone(&shared), tell.clone());
                let server = server.clone();
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    let service = tower::service_fn(move |request| over_http3(request, Arc::clone(&gate)));
                    let _ = server.serve_connection(connection, service).await;
                    let _ = tell.send(());
                });
            }
        });
        Http3 { address, closed, connections, gate }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Lets one response to `/gated` end.
    pub(crate) fn open_gate(&self) {
        self.gate.add_permits(1);
    }
}

async fn over_http3(
    request: Request<http3::Body>,
    gate: Arc<Semaphore>,
) -> Result<Response<Gated>, Infallible> {
    if request.uri().path() == "/gated" {
        let gate = Box::pin(async move { gate.acquire().await.unwrap().forget() });
        return Ok(Response::new(Gated { data: Some("the beginning".into()), gate: Some(gate) }));
    }
    let (head, body) = answer(request).await?.into_parts();
    let data = Some(body.collect().await.unwrap().to_bytes());
    Ok(Response::from_parts(head, Gated { data, gate: None }))
}

/// A body that ends when its gate is open.
struct Gated {
    data: Option<Bytes>,
    gate: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Body for Gated {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match (self.data.take(), &mut self.gate) {
            (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
            (None, Some(gate)) => gate.as_mut().poll(cx).map(|()| None),
            (None, None) => Poll::Ready(None),
        }
    }
}

async fn advertising(
    request: Request<Incoming>,
    manner: Arc<Manner>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    #[cfg(feature = "dns")]
    if request.uri().path() == "/dns-query" {
        let zone = manner.zone.lock().unwrap().clone().unwrap();
        let asked = request.into_body().collect().await.unwrap().to_bytes();
        let answer = zone.answer(&asked, false).await.unwrap();
        let response = Response::builder().header("content-type", "application/dns-message");
        return Ok(response.body(Full::new(answer.into())).unwrap());
    }
    let mut response = answer(request).await?;
    if let Some(alt_svc) = &*manner.alt_svc.lock().unwrap() {
        response.headers_mut().insert(ALT_SVC, alt_svc.parse().unwrap());
    }
    Ok(response)
}

async fn answer<B>(request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible>
where
    B: Body,
    B::Error: Debug,
{
    let path = request.uri().path().to_owned();
    let respond = |status: StatusCode, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    };
    Ok(match path.as_str() {
        "/echo" => {
            let method = request.method().clone();
            let text = request.into_body().collect().await.unwrap().to_bytes();
            respond(StatusCode::OK, format!("{method} {}", String::from_utf8_lossy(&text)))
        }
        "/who" => {
            let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let authorization = header(AUTHORIZATION.as_str()).unwrap_or_default();
            let host = header(HOST.as_str()).or(request.uri().authority().map(ToString::to_string));
            respond(StatusCode::OK, format!("{} {authorization}", host.unwrap()))
        }
        // Not for this name.
        "/misdirected" => respond(StatusCode::MISDIRECTED_REQUEST, String::new()),
        "/alternative" => {
            let used = request.headers().get("alt-used").map(|value| value.to_str().unwrap().to_owned());
            respond(StatusCode::OK, used.unwrap_or_else(|| "none".to_owned()))
        }
        #[cfg(feature = "decompression")]
        "/coded" => {
            let plain = "zip ".repeat(10_000);
            let asked = request.headers().get("accept-encoding");
            match asked.is_some_and(|asked| asked.to_str().unwrap().contains("gzip")) {
                true => coded(&plain),
                false => respond(StatusCode::OK, plain),
            }
        }
        #[cfg(feature = "decompression")]
        "/miscoded" => {
            let mut response = respond(StatusCode::OK, "as it is".to_owned());
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            response
        }
        "/redirect" => {
            let mut response = respond(StatusCode::FOUND, "elsewhere".to_owned());
            response.headers_mut().insert(LOCATION, "/echo".parse().unwrap());
            response
        }
        "/circle" => {
            let mut response = respond(StatusCode::FOUND, String::new());
            response.headers_mut().insert(LOCATION, "/circle".parse().unwrap());
            response
        }
        "/slow" => std::future::pending().await,
        // Later.
        "/soon" => {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            respond(StatusCode::OK, "here".to_owned())
        }
        "/tagged" => tagged(request.headers()),
        "/large" => respond(StatusCode::OK, "x".repeat(1 << 20)),
        _ => respond(StatusCode::NOT_FOUND, "nothing here".to_owned()),
    })
}

/// Bytes of `/tagged`.
pub(crate) const TAGGED: usize = 8 << 20;

/// What `/tagged` consists of.
pub(crate) fn tagged_contents() -> Bytes {
    (0..TAGGED as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A response that has an entity tag, or the rest of it.
fn tagged(headers: &http::HeaderMap) -> Response<Full<Bytes>> {
    let whole = tagged_contents();
    let range = headers.get(RANGE).filter(|_| headers.get(IF_RANGE).is_none_or(|tag| tag == TAG));
    let first = range.and_then(|range| {
        let range = range.to_str().unwrap().strip_prefix("bytes=")?.strip_suffix('-')?;
        range.parse::<usize>().ok()
    });
    let response = Response::builder().header("etag", TAG);
    let response = match first {
        Some(first) => response
            .status(StatusCode::PARTIAL_CONTENT)
            .header("content-range", format!("bytes {first}-{}/{TAGGED}", TAGGED - 1))
            .body(whole.slice(first..).into()),
        None => response.body(whole.into()),
    };
    response.unwrap()
}

/// The entity tag of `/tagged`.
const TAG: &str = "\"a tag\"";

#[cfg(feature = "decompression")]
fn coded(plain: &str) -> Response<Full<Bytes>> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, plain.as_bytes()).unwrap();
    let response = Response::builder().header("content-encoding", "gzip");
    response.body(Full::new(gzip.finish().unwrap().into())).unwrap()
}

/// A proxy that makes tunnels and fetches plain URLs.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// What it was asked for, and by whom.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// `wanted`: the value of `Proxy-Authorization`.
    pub(crate) async fn start(wanted: Option<&'static str>) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let log = Arc::clone(&log);
                tokio::spawn(async move {
                    let service = service_fn(move |request| pass(request, Arc::clone(&log), wanted));
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
                });
            }
        });
        Proxy { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn pass(
    request: Request<Incoming>,
    log: Arc<Mutex<Vec<String>>>,
    wanted: Option<&'static str>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    log.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
    let came = request.headers().get(PROXY_AUTHORIZATION).map(|value| value.to_str().unwrap());
    if came != wanted {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        return Ok(response);
    }
    let port = request.uri().port_u16().unwrap();
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return Ok(response);
    };
    if request.method() == Method::CONNECT {
        tokio::spawn(async move {
            let mut client = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
        return Ok(Response::new(Full::default()));
    }
    // Plain HTTP: one exchange, in origin form.
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(server)).await.unwrap();
    tokio::spawn(connection);
    let (mut head, body) = request.into_parts();
    head.uri = head.uri.path().parse().unwrap();
    head.headers.remove(PROXY_AUTHORIZATION);
    let body = Full::new(body.collect().await.unwrap().to_bytes());
    let response = sender.send_request(Request::from_parts(head, body)).await.unwrap();
    let (head, body) = response.into_parts();
    Ok(Response::from_parts(head, Full::new(body.collect().await.unwrap().to_bytes())))
}
