//! A server and clients on loopback.

use bytes::Bytes;
use godwit::http3::{ALPN, Body, Client, Server};
use godwit::{ClientConfig, ClientConfigBuilder, Endpoint, ServerConfig, TransportConfig};
use http::{Request, Response};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::LazyLock;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::util::BoxCloneService;

/// A certificate for "localhost", and its key.
pub static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
});

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;
pub type AnyService = BoxCloneService<Request<Body>, Response<AnyBody>, BoxError>;

/// Any body as one of the same type.
pub fn any<B>(body: B) -> AnyBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    http_body_util::BodyExt::boxed_unsync(http_body_util::BodyExt::map_err(body, Into::into))
}

/// A function as a service.
pub fn service<F, Fut, B>(answer: F) -> AnyService
where
    F: Fn(Request<Body>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    BoxCloneService::new(tower::service_fn(move |request| {
        let answer = answer(request);
        async move { answer.await.map(|response| response.map(any)) }
    }))
}

/// Answers every request with what came.
pub fn echo() -> AnyService {
    service(|request: Request<Body>| async move { Ok(Response::new(request.into_body())) })
}

/// A server under way.
pub struct World {
    pub endpoint: Endpoint,
    pub addr: SocketAddr,
    transport: TransportConfig,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl World {
    pub fn new(service: AnyService) -> World {
        World::with(Server::new(), TransportConfig::default(), service)
    }

    pub fn with(server: Server, transport: TransportConfig, service: AnyService) -> World {
        World::on(server_endpoint(&transport, &[ALPN]), server, transport, service)
    }

    /// On this endpoint, made with the settings of `transport`.
    pub fn on(endpoint: Endpoint, server: Server, transport: TransportConfig, service: AnyService) -> World {
        let addr = endpoint.local_addr().unwrap();
        let (shutdown, told) = oneshot::channel::<()>();
        let serving = tokio::spawn({
            let endpoint = endpoint.clone();
            async move {
                let told = async {
                    if told.await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                server.serve_until(&endpoint, service, told).await;
            }
        });
        World { endpoint, addr, transport, shutdown: Some(shutdown), serving }
    }

    pub async fn client(&self) -> Client {
        let config = client_builder().transport(self.transport.clone()).build().unwrap();
        Client::connect(&client_endpoint(), &config, self.addr, "localhost").await.unwrap()
    }

    pub fn begin_shutdown(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    pub async fn shut_down(self) {
        self.serving.await.unwrap();
    }
}

pub fn server_endpoint(transport: &TransportConfig, alpn: &[&[u8]]) -> Endpoint {
    Endpoint::server(server_config(transport, alpn), "127.0.0.1:0".parse().unwrap()).unwrap()
}

pub fn server_config(transport: &TransportConfig, alpn: &[&[u8]]) -> ServerConfig {
    let (certificate, key) = &*CERTIFICATE;
    let config = ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes());
    config.alpn(alpn).transport(transport.clone()).build().unwrap()
}

pub fn client_endpoint() -> Endpoint {
    Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap()
}

/// Trusts the server, and names no protocol.
pub fn client_builder() -> ClientConfigBuilder {
    ClientConfig::with_roots_pem(CERTIFICATE.0.as_bytes())
}

/// The same, as they are.
pub fn client_config() -> ClientConfig {
    client_builder().build().unwrap()
}

pub fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// A response's body as text.
pub async fn text(response: Response<Body>) -> String {
    let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn ok<B>(body: B) -> Result<Response<B>, BoxError> {
    Ok(Response::new(body))
}
