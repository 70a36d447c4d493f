//! A server that speaks HTTP/2 and HTTP/1.1 (with or without TLS), one that speaks HTTP/3, and a proxy.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use godwit_client::{Client, ClientBuilder};
use http::header::{AUTHORIZATION, HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// PEM.
    pub(crate) certificate: String,
    /// Connections that were made.
    pub(crate) connections: Arc<AtomicUsize>,
    secure: bool,
}

impl Server {
    pub(crate) async fn start(secure: bool) -> Server {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
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
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let service = service_fn(answer);
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
        Server { address, certificate: made.cert.pem(), connections, secure }
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

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
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
        "/large" => respond(StatusCode::OK, "x".repeat(1 << 20)),
        _ => respond(StatusCode::NOT_FOUND, "nothing here".to_owned()),
    })
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
