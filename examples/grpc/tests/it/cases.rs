//! The cases of gRPC's interoperation tests, between every client and every server.

use crate::support::{Front, Http3, LIMIT, routes};
use godwit_client::Versions;
use godwit_grpc::Channel;
use grpc::cases::{self, NAMES};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

async fn all(channel: impl cases::Channel, except: &[&str]) {
    for name in NAMES.iter().filter(|name| !except.contains(name)) {
        let verdict = tokio::time::timeout(LIMIT, cases::run(name, channel.clone())).await;
        verdict.expect(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[tokio::test]
async fn a_connection_is_a_channel_as_it_is() {
    let server = Http3::serve(routes());
    // Deadlines are kept by whoever wraps it.
    all(server.client().await, &["timeout_on_sleeping_server"]).await;
    all(Channel::new(server.client().await), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_threads_are_no_different() {
    let server = Http3::serve(routes());
    all(Channel::new(server.client().await), &[]).await;
}

#[tokio::test]
async fn the_client_is_a_channel_to_the_server_for_sites() {
    let mut server = Front::serve(routes()).await;
    for versions in [Versions::Http3, Versions::Http2, Versions::Auto] {
        let client =
            godwit_client::Client::builder().versions(versions).root_file(&server.authority).build().unwrap();
        all(Channel::new(client.clone()).origin(server.origin()), &[]).await;
        client.close().await;
    }
    server.running.shutdown(LIMIT).await;
}

#[tokio::test]
async fn a_client_of_tonics_own_reaches_the_server_for_sites() {
    let mut server = Front::serve(routes()).await;
    let authority = Certificate::from_pem(std::fs::read(&server.authority).unwrap());
    let endpoint = Endpoint::from(server.origin());
    let endpoint = endpoint.tls_config(ClientTlsConfig::new().ca_certificate(authority)).unwrap();
    let channel = endpoint.connect().await.unwrap();
    // Its code for a deadline is CANCELLED, and requests go on when nobody wants their responses any more.
    all(channel.clone(), &["timeout_on_sleeping_server", "cancel_after_first_response"]).await;
    drop(channel);
    server.running.shutdown(LIMIT).await;
}
