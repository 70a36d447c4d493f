//! Requests in 0-RTT packets, with sessions that were kept in a file.

use crate::support::{CERTIFICATE, World, client_builder, client_endpoint, echo, text};
use bytes::Bytes;
use godwit::http3::{ALPN, Client, Config};
use godwit::resumption::FileSessionStore;
use godwit::{EarlyDataStatus, ServerConfig};
use http::Request;
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

/// What another process does that knows the file only.
async fn visit(world: &World, sessions: &Path) -> EarlyDataStatus {
    let store = Arc::new(FileSessionStore::open(sessions));
    assert_eq!(store.problem(), None);
    let config = client_builder().alpn([ALPN]).early_data(true).sessions(store).build().unwrap();
    let endpoint = client_endpoint();
    let connection = match endpoint.connect(&config, world.addr, "localhost").unwrap().into_early() {
        Ok(early) => early,
        Err(connecting) => connecting.await.unwrap(),
    };
    let client = Client::on_connection(connection, "localhost", Config::default()).unwrap();
    let request = Request::put("/").body(Full::new(Bytes::from_static(b"hello"))).unwrap();
    assert_eq!(text(client.send(request).await.unwrap()).await, "hello");
    let status = client.connection().connected().await.unwrap();
    assert_eq!(client.connection().is_resumed(), status == EarlyDataStatus::Accepted);
    client.close();
    endpoint.wait_idle().await;
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
