//! A server and a client on loopback.

use bytes::{Buf, Bytes, BytesMut};
use godwit::{
    ClientConfig, ClientConfigBuilder, Endpoint, ServerConfig, ServerConfigBuilder, TransportConfig,
};
use godwit_h3::BidiStream;
use h3::error::ConnectionError;
use http::Request;
use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use tokio::task::JoinHandle;

/// A certificate for "localhost", and its key.
pub(crate) static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
});

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Requests = h3::client::SendRequest<godwit_h3::OpenStreams, Bytes>;
pub(crate) type ClientStream = h3::client::RequestStream<BidiStream<Bytes>, Bytes>;
pub(crate) type ServerStream = h3::server::RequestStream<BidiStream<Bytes>, Bytes>;
pub(crate) type ServerConnection = h3::server::Connection<godwit_h3::Connection, Bytes>;

pub(crate) const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) fn server_builder() -> ServerConfigBuilder {
    let (certificate, key) = &*CERTIFICATE;
    ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes()).alpn(["h3"])
}

pub(crate) fn client_builder() -> ClientConfigBuilder {
    ClientConfig::with_roots_pem(CERTIFICATE.0.as_bytes()).alpn(["h3"])
}

/// Both ends of a connection, and their endpoints.
pub(crate) struct Pair {
    pub(crate) client: godwit::Connection,
    pub(crate) server: godwit::Connection,
    pub(crate) client_endpoint: Endpoint,
    pub(crate) _server_endpoint: Endpoint,
}

/// A connection whose server has these settings.
pub(crate) async fn pair(transport: TransportConfig) -> Pair {
    let config = server_builder().transport(transport).build().unwrap();
    let server_endpoint = Endpoint::server(config, ANY_PORT).unwrap();
    let client_endpoint = Endpoint::client(ANY_PORT).unwrap();
    let address = server_endpoint.local_addr().unwrap();
    let connecting =
        client_endpoint.connect(&client_builder().build().unwrap(), address, "localhost").unwrap();
    let accepting = async { server_endpoint.accept().await.unwrap().await };
    let (client, server) = tokio::join!(connecting, accepting);
    Pair {
        client: client.unwrap(),
        server: server.unwrap(),
        client_endpoint,
        _server_endpoint: server_endpoint,
    }
}

/// A client of `h3`, and what its connection ends with.
pub(crate) async fn client(connection: godwit::Connection) -> (Requests, JoinHandle<ConnectionError>) {
    let (mut driver, requests) = h3::client::new(godwit_h3::Connection::new(connection)).await.unwrap();
    let driver = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    (requests, driver)
}

/// A server of `h3`: each request gets a task, and what goes wrong in it is only of interest to the client. Ends with the
/// connection.
pub(crate) fn serve<F>(
    connection: godwit::Connection,
    answer: impl Fn(Request<()>, ServerStream) -> F + Clone + Send + Sync + 'static,
) -> JoinHandle<Result<(), ConnectionError>>
where
    F: Future<Output = Result<(), BoxError>> + Send,
{
    tokio::spawn(async move {
        let mut connection = ServerConnection::new(godwit_h3::Connection::new(connection)).await?;
        while let Some(resolver) = connection.accept().await? {
            let answer = answer.clone();
            tokio::spawn(async move {
                let (request, stream) = resolver.resolve_request().await?;
                answer(request, stream).await
            });
        }
        Ok(())
    })
}

/// Sends every body back, and trailers after it.
pub(crate) async fn echo(_: Request<()>, mut stream: ServerStream) -> Result<(), BoxError> {
    stream.send_response(http::Response::new(())).await?;
    while let Some(mut data) = stream.recv_data().await? {
        stream.send_data(data.copy_to_bytes(data.remaining())).await?;
    }
    if let Some(trailers) = stream.recv_trailers().await? {
        stream.send_trailers(trailers).await?;
    }
    Ok(stream.finish().await?)
}

/// A connection with such a server, and its client.
pub(crate) async fn echoing(transport: TransportConfig) -> (Pair, Requests) {
    let pair = pair(transport).await;
    serve(pair.server.clone(), echo);
    let (requests, _) = client(pair.client.clone()).await;
    (pair, requests)
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}")).body(()).unwrap()
}

/// Asks without a body, and returns the body of the answer.
pub(crate) async fn ask(requests: &mut Requests, path: &str) -> Result<Bytes, BoxError> {
    let mut stream = requests.send_request(get(path)).await?;
    stream.finish().await?;
    answer(&mut stream).await
}

/// The body of the answer.
pub(crate) async fn answer(stream: &mut ClientStream) -> Result<Bytes, BoxError> {
    stream.recv_response().await?;
    let mut body = BytesMut::new();
    while let Some(data) = stream.recv_data().await? {
        body.extend_from_slice(&collect(data));
    }
    Ok(body.freeze())
}

pub(crate) fn collect(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

/// Bytes that are easy to make and unlikely to come about by accident.
pub(crate) fn pattern(seed: u64, len: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(step).collect()
}
