//! HTTP datagrams of extended CONNECT exchanges (RFC 9297).

use crate::extended::{extended, pieces};
use crate::support::{AnyService, World, client_config, client_endpoint, service};
use godwit::TransportConfig;
use godwit::http3::{Body, Client, Config, DatagramError, DatagramFlow, Server};
use http::{Request, Response};

fn config() -> Config {
    let mut config = Config::default();
    (config.enable_connect_protocol, config.enable_datagrams) = (true, true);
    config
}

async fn client(world: &World, config: Config) -> Client {
    Client::connect_with(&client_endpoint(), &client_config(), (world.addr, "localhost"), config)
        .await
        .unwrap()
}

/// Sends datagrams back, and what is said in the body, until the exchange ends.
fn echo() -> AnyService {
    service(|request: Request<Body>| async move {
        if let Some(flow) = request.extensions().get::<DatagramFlow>().cloned() {
            tokio::spawn(async move {
                while let Ok(datagram) = flow.receive().await {
                    flow.send(&datagram).unwrap();
                }
            });
        }
        Ok(Response::new(request.into_body()))
    })
}

#[tokio::test]
async fn they_go_both_ways_beside_the_bodies() {
    let world = World::with(Server::new().config(config()), TransportConfig::default(), echo());
    let client = client(&world, config()).await;
    let (say, body) = pieces();
    let mut response = client.send(extended("anything", body)).await.unwrap();
    let flow = response.extensions().get::<DatagramFlow>().unwrap().clone();
    flow.send(b"datagram").unwrap();
    assert_eq!(flow.receive().await.unwrap(), &b"datagram"[..]);
    say.send("stream").await.unwrap();
    assert_eq!(response.body_mut().data().await.unwrap().unwrap(), "stream");
    let max = flow.max_len().unwrap();
    assert!(max > 1000 && flow.send(&vec![0; max]).is_ok());
    assert_eq!(flow.receive().await.unwrap().len(), max);
    // With the exchange they end, at both ends.
    drop(say);
    assert!(response.body_mut().data().await.unwrap().is_none());
    assert!(flow.receive().await.is_err());
    assert_eq!(flow.send(b"late"), Err(DatagramError::Closed));
}

#[tokio::test]
async fn both_ends_have_to_take_them() {
    let mut without = config();
    without.enable_datagrams = false;
    for (ours, theirs) in [(config(), without.clone()), (without, config())] {
        let takes = ours.enable_datagrams;
        let world = World::with(Server::new().config(theirs), TransportConfig::default(), echo());
        let client = client(&world, ours).await;
        let (_say, body) = pieces();
        let response = client.send(extended("anything", body)).await.unwrap();
        match response.extensions().get::<DatagramFlow>() {
            Some(flow) => {
                assert!(takes);
                assert_eq!((flow.max_len(), flow.send(b"x")), (None, Err(DatagramError::Unsupported)));
            }
            None => assert!(!takes),
        }
    }
}

#[tokio::test]
async fn other_requests_have_none() {
    let world = World::with(Server::new().config(config()), TransportConfig::default(), echo());
    let client = client(&world, config()).await;
    let response = client.send(crate::support::get("/")).await.unwrap();
    assert!(response.extensions().get::<DatagramFlow>().is_none());
}
