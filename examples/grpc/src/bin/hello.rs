//! A server and a client of tonic, over HTTP/3: the server says how it is, as gRPC's protocol for health has it.

use std::error::Error;
use std::time::Duration;

use godwit_client::{Client, Versions};
use godwit_front::Server;
use godwit_grpc::{Channel, DeadlineLayer};
use tonic::service::Routes;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::Layer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // What tonic generates is a service for our servers, here over all three protocols on one port.
    let (_reporter, health) = tonic_health::server::health_reporter();
    let service = DeadlineLayer.layer(Routes::new(health));
    let server = Server::builder().listen("127.0.0.1:0".parse()?).service("/", service).bind()?;
    let mut running = server.start().await?;
    let origin = format!("https://localhost:{}", running.addresses()[0].port());

    // And our client is a channel for what tonic generates. (The certificate is made by an authority of this user's own.)
    let client = Client::builder().versions(Versions::Http3).danger_accept_any_certificate().build()?;
    let channel = Channel::new(client.clone()).origin(origin.parse()?);
    let mut request = tonic::Request::new(HealthCheckRequest::default());
    request.set_timeout(Duration::from_secs(5));
    let response = HealthClient::new(channel).check(request).await?;
    println!("{}", response.into_inner().status().as_str_name());

    client.close().await;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
