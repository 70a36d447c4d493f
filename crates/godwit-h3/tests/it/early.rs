//! Requests in 0-RTT packets.

use crate::support::{ANY_PORT, ask, client, client_builder, echo, serve, server_builder};
use godwit::{ClientConfig, EarlyDataStatus, Endpoint};
use std::net::SocketAddr;

/// A server that accepts 0-RTT. If `at_once`, it answers before it is known who is there.
fn server(at_once: bool) -> Endpoint {
    let config = server_builder().early_data(10).build().unwrap();
    let endpoint = Endpoint::server(config, ANY_PORT).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            let connection = match incoming.accept().into_early() {
                Ok(early) if at_once => early,
                Ok(early) => {
                    early.connected().await.unwrap();
                    early
                }
                Err(connecting) => connecting.await.unwrap(),
            };
            serve(connection, echo);
        }
    });
    endpoint
}

/// Connects, and has two requests answered, the first one early if that can be.
async fn visit(config: &ClientConfig, address: SocketAddr) -> EarlyDataStatus {
    let endpoint = Endpoint::client(ANY_PORT).unwrap();
    let connection = match endpoint.connect(config, address, "localhost").unwrap().into_early() {
        Ok(early) => early,
        Err(connecting) => connecting.await.unwrap(),
    };
    let (mut requests, driver) = client(connection.clone()).await;
    assert_eq!(ask(&mut requests, "/").await.unwrap(), "");
    let status = connection.connected().await.unwrap();
    // Once this is answered, the tickets for the next visit have come.
    assert_eq!(ask(&mut requests, "/").await.unwrap(), "");
    drop(requests);
    assert!(driver.await.unwrap().is_h3_no_error());
    status
}

async fn comes_back(at_once: bool) {
    let server = server(at_once);
    let address = server.local_addr().unwrap();
    let config = client_builder().early_data(true).build().unwrap();
    assert_eq!(visit(&config, address).await, EarlyDataStatus::NotTried);
    assert_eq!(visit(&config, address).await, EarlyDataStatus::Accepted);
    // The server has forgotten all sessions: what was sent early is sent again, and `h3` does not notice.
    server.set_server_config(&server_builder().early_data(10).build().unwrap());
    assert_eq!(visit(&config, address).await, EarlyDataStatus::Rejected);
}

#[tokio::test]
async fn requests_leave_with_the_first_packets() {
    comes_back(true).await;
}

#[tokio::test]
async fn a_server_can_wait_until_it_knows_that_nobody_repeats_them() {
    comes_back(false).await;
}
