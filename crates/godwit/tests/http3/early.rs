//! Requests in 0-RTT packets, with sessions that were kept in a file.

use crate::support::{
    AnyService, CERTIFICATE, World, client_builder, client_endpoint, echo, ok, service, text,
};
use bytes::Bytes;
use godwit::http3::{
    ALPN, Body, Client, Config, ConnectionInfo, EarlyRequests, ErrorCode, ErrorKind, Server,
};
use godwit::resumption::FileSessionStore;
use godwit::{EarlyDataStatus, ServerConfig, TransportConfig};
use http::{Request, StatusCode};
use http_body_util::Full;
use std::path::Path;
use std::sync::Arc;

/// With a register of sessions of its own.
fn early_server() -> ServerConfig {
    let (certificate, key) = &*CERTIFICATE;
    ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes())
        .alpn([ALPN])
        .early_data(10)
        .build()
        .unwrap()
}

/// A client that comes back: its connection, before the handshake is over if there is a ticket.
async fn come_back(world: &World, sessions: &Arc<FileSessionStore>) -> (godwit::Endpoint, Client) {
    come_back_from(client_endpoint(), world, sessions).await
}

async fn come_back_from(
    endpoint: godwit::Endpoint,
    world: &World,
    sessions: &Arc<FileSessionStore>,
) -> (godwit::Endpoint, Client) {
    assert_eq!(sessions.problem(), None);
    let config = client_builder().alpn([ALPN]).early_data(true).sessions(sessions.clone()).build().unwrap();
    let connection = match endpoint.connect(&config, world.addr, "localhost").unwrap().into_early() {
        Ok(early) => early,
        Err(connecting) => connecting.await.unwrap(),
    };
    let client = Client::on_connection(connection, "localhost", Config::default()).unwrap();
    (endpoint, client)
}

/// What another process does that knows the file only.
async fn visit(world: &World, sessions: &Path) -> EarlyDataStatus {
    let store = Arc::new(FileSessionStore::open(sessions));
    let (endpoint, client) = come_back(world, &store).await;
    let request = || Request::get("/").body(Full::new(Bytes::from_static(b"hello"))).unwrap();
    assert_eq!(text(client.send(request()).await.unwrap()).await, "hello");
    let status = client.connection().connected().await.unwrap();
    // Once this is answered, the tickets for the next visit have come.
    assert_eq!(text(client.send(request()).await.unwrap()).await, "hello");
    assert_eq!(client.connection().is_resumed(), status == EarlyDataStatus::Accepted);
    client.close();
    endpoint.wait_idle().await;
    store.flush();
    status
}

#[tokio::test]
async fn requests_leave_with_the_first_packets_and_are_sent_again_if_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    let world = World::new(echo());
    world.endpoint.set_server_config(&early_server());
    assert_eq!(visit(&world, &sessions).await, EarlyDataStatus::NotTried);
    assert_eq!(visit(&world, &sessions).await, EarlyDataStatus::Accepted);
    assert_eq!(visit(&world, &sessions).await, EarlyDataStatus::Accepted);
    // The server has forgotten all sessions.
    world.endpoint.set_server_config(&early_server());
    assert_eq!(visit(&world, &sessions).await, EarlyDataStatus::Rejected);
}

/// Says by which method it was asked, whether that was early when it was, and whether it is at the end, when the
/// handshake is over.
fn telling() -> AnyService {
    service(|request: Request<Body>| async move {
        let info = request.extensions().get::<ConnectionInfo>().unwrap().clone();
        let marked = request.extensions().get::<godwit_body::EarlyData>().cloned();
        let may_be_replay = marked.as_ref().is_some_and(godwit_body::EarlyData::may_be_replay);
        assert_eq!(may_be_replay, info.is_early());
        let (early, name) = (info.is_early(), info.server_name().map(str::to_owned));
        assert_eq!(name.as_deref(), Some("localhost"));
        assert!(info.confirmed().await);
        assert!(!info.is_early() && !marked.is_some_and(|marked| marked.may_be_replay()));
        ok(Body::from(format!("{} {early}", request.method())))
    })
}

/// The answers to a safe and an unsafe request in 0-RTT packets, and to both when the handshake is over.
async fn answers(requests: EarlyRequests) -> Vec<(StatusCode, String)> {
    let folder = tempfile::tempdir().unwrap();
    let sessions = Arc::new(FileSessionStore::open(folder.path().join("sessions")));
    let server = Server::new().early_requests(requests);
    let world = World::with(server, TransportConfig::default(), telling());
    world.endpoint.set_server_config(&early_server());
    let ask = async |client: &Client, method: &str| {
        let request = Request::builder().method(method).uri("/").body(Body::from("body")).unwrap();
        let response = client.send(request).await.unwrap();
        (response.status(), text(response).await)
    };
    let (endpoint, client) = come_back(&world, &sessions).await;
    assert_eq!(ask(&client, "POST").await, (StatusCode::OK, "POST false".to_owned()));
    client.close();
    endpoint.wait_idle().await;
    let (_endpoint, client) = come_back(&world, &sessions).await;
    let (safe, harmful) = tokio::join!(ask(&client, "GET"), ask(&client, "POST"));
    assert_eq!(client.connection().connected().await.unwrap(), EarlyDataStatus::Accepted);
    vec![safe, harmful, ask(&client, "GET").await, ask(&client, "POST").await]
}

#[tokio::test]
async fn early_requests_are_seen_and_those_that_change_something_wait() {
    let told = |text: &str| (StatusCode::OK, text.to_owned());
    let late = [told("GET false"), told("POST false")];
    let waited = [told("GET true"), told("POST false")];
    assert_eq!(answers(EarlyRequests::Safe).await, [waited, late.clone()].concat());
    let both = [told("GET true"), told("POST true")];
    assert_eq!(answers(EarlyRequests::All).await, [both, late.clone()].concat());
    assert_eq!(answers(EarlyRequests::Later).await, [late.clone(), late].concat());
}

/// Tokens are for the address that they were given to, and sessions for whoever has them.
#[tokio::test]
async fn requests_of_an_address_that_is_not_proved_wait() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = Arc::new(FileSessionStore::open(folder.path().join("sessions")));
    let server = Server::new().early_requests(EarlyRequests::All);
    let world = World::with(server, TransportConfig::default(), telling());
    world.endpoint.set_server_config(&early_server());
    let request = || Request::get("/").body(Body::empty()).unwrap();
    let mut answers = Vec::new();
    for from in ["127.0.0.1:0", "127.0.0.1:0", "127.0.0.2:0"] {
        let endpoint = godwit::Endpoint::client(from.parse().unwrap()).unwrap();
        let (endpoint, client) = come_back_from(endpoint, &world, &sessions).await;
        let answer = text(client.send(request()).await.unwrap()).await;
        answers.push((client.connection().connected().await.unwrap(), answer));
        assert_eq!(text(client.send(request()).await.unwrap()).await, "GET false");
        client.close();
        endpoint.wait_idle().await;
        sessions.flush();
    }
    let expected = [
        (EarlyDataStatus::NotTried, "GET false".to_owned()),
        (EarlyDataStatus::Accepted, "GET true".to_owned()),
        (EarlyDataStatus::Accepted, "GET false".to_owned()),
    ];
    assert_eq!(answers, expected);
}

/// A request with so many bytes of fields, to a server that comes after another with the same tickets or with its own, and permits
/// so much; as soon as the client is back.
async fn later_server(
    permits: u64,
    same: bool,
    bytes: usize,
) -> Result<EarlyDataStatus, (ErrorKind, Option<ErrorCode>)> {
    let folder = tempfile::tempdir().unwrap();
    let sessions = Arc::new(FileSessionStore::open(folder.path().join("sessions")));
    let world = |permits: u64| {
        let mut config = Config::default();
        config.max_field_section_size = permits;
        World::with(Server::new().config(config), TransportConfig::default(), echo())
    };
    let tickets = early_server();
    let first = world(10_000);
    first.endpoint.set_server_config(&tickets);
    let request =
        |bytes: usize| Request::get("/").header("x", "x".repeat(bytes)).body(Body::empty()).unwrap();
    let (endpoint, client) = come_back(&first, &sessions).await;
    for _ in 0..2 {
        assert_eq!(client.send(request(1)).await.unwrap().status(), StatusCode::OK);
    }
    client.close();
    endpoint.wait_idle().await;
    let second = world(permits);
    second.endpoint.set_server_config(&if same { tickets } else { early_server() });
    let (_endpoint, client) = come_back(&second, &sessions).await;
    let answer = client.send(request(bytes)).await;
    let status = client.connection().connected().await.unwrap();
    assert!(status != EarlyDataStatus::NotTried);
    // By then the server's settings have come.
    let answer = match answer {
        Ok(_) => client.send(request(1)).await,
        failed => failed,
    };
    answer.map(|_| status).map_err(|error| (error.kind(), error.code()))
}

#[tokio::test]
async fn early_requests_keep_to_the_settings_that_came_with_the_ticket() {
    let (accepted, rejected) = (Ok(EarlyDataStatus::Accepted), Ok(EarlyDataStatus::Rejected));
    assert_eq!(later_server(10_000, true, 5000).await, accepted);
    assert_eq!(later_server(20_000, true, 5000).await, accepted);
    let too_large = later_server(20_000, true, 11_000).await;
    assert_eq!(too_large, Err((ErrorKind::Message, None)), "more may be sent once that is known");
    // It breaks its word.
    let broken = later_server(9000, true, 5000).await;
    assert_eq!(broken, Err((ErrorKind::Protocol, Some(ErrorCode::H3_SETTINGS_ERROR))));
    // It has given none.
    assert_eq!(later_server(9000, false, 5000).await, rejected);
}
