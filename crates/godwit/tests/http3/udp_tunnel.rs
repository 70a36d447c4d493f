//! UDP through HTTP (RFC 9298): proxy and client of ours.

use crate::support::{AnyService, World, client_config, client_endpoint, echo, get, service, text};
use godwit::http3::udp_tunnel::{TunnelError, UdpForwarder, UdpTarget, UdpTunnel};
use godwit::http3::{Body, Client, Config, ErrorKind, Server};
use godwit::{DatagramConfig, Endpoint, TransportConfig};
use http::{Request, StatusCode};
use std::time::Duration;
use tokio::net::UdpSocket;

fn config() -> Config {
    let mut config = Config::default();
    (config.enable_connect_protocol, config.enable_datagrams) = (true, true);
    config
}

fn forwarding(forwarder: UdpForwarder) -> AnyService {
    service(move |request: Request<Body>| {
        let forwarder = forwarder.clone();
        async move { Ok(forwarder.answer(request).await) }
    })
}

fn to_loopback() -> UdpForwarder {
    UdpForwarder::new(|target, addr| target.port() != 9 && addr.ip().is_loopback())
}

async fn proxy(forwarder: UdpForwarder, transport: TransportConfig) -> (World, Client) {
    let world = World::with(Server::new().config(config()), transport, forwarding(forwarder));
    let to = (world.addr, "localhost");
    let client = Client::connect_with(&client_endpoint(), &client_config(), to, config()).await.unwrap();
    (world, client)
}

async fn tunnel(client: &Client, port: u16) -> Result<UdpTunnel, TunnelError> {
    UdpTunnel::connect(client, "localhost", &UdpTarget::new("127.0.0.1", port).unwrap()).await
}

async fn status(client: &Client, host: &str, port: u16) -> StatusCode {
    let target = UdpTarget::new(host, port).unwrap();
    match UdpTunnel::connect(client, "localhost", &target).await {
        Ok(_) => StatusCode::OK,
        Err(TunnelError::Refused(response)) => response.status(),
        Err(error) => panic!("{error}"),
    }
}

/// A socket that sends everything back, and its port.
async fn echoing() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_535];
        loop {
            let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
            socket.send_to(&buffer[..len], from).await.unwrap();
        }
    });
    port
}

#[tokio::test]
async fn payloads_go_there_and_back() {
    let (_world, client) = proxy(to_loopback(), TransportConfig::default()).await;
    let (one, two) = (echoing().await, echoing().await);
    let (one, two) = (tunnel(&client, one).await.unwrap(), tunnel(&client, two).await.unwrap());
    for payload in [&b"hello"[..], b"", &[7; 1000], &[8; 1200]] {
        one.send(payload).unwrap();
        two.send(&[payload, b"2"].concat()).ok();
        assert_eq!(one.receive().await.unwrap(), payload);
    }
    assert_eq!(two.receive().await.unwrap(), &b"hello2"[..]);
    let error = one.send(&[0; 60_000]).unwrap_err();
    assert!(matches!(error, godwit::http3::DatagramError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn what_no_datagram_has_room_for_goes_in_capsules() {
    let mut transport = TransportConfig::default();
    let mut datagrams = DatagramConfig::default();
    datagrams.max_frame_size = 500;
    transport.datagrams = datagrams;
    let (_world, client) = proxy(to_loopback(), transport).await;
    let tunnel = tunnel(&client, echoing().await).await.unwrap();
    assert!(tunnel.max_datagram_len().unwrap() < 500);
    for payload in [&[1; 100][..], &[2; 1200], &[3; 900]] {
        tunnel.send(payload).unwrap();
        assert_eq!(tunnel.receive().await.unwrap(), payload);
    }
    assert!(tunnel.send(&[4; 1201]).is_err());
}

#[tokio::test]
async fn who_is_not_permitted_or_not_there_is_not_reached() {
    let (_world, client) = proxy(to_loopback().max_tunnels(1), TransportConfig::default()).await;
    assert_eq!(status(&client, "127.0.0.1", 9).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&client, "192.0.2.1", 443).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&client, "nobody.invalid", 443).await, StatusCode::BAD_GATEWAY);
    // Neither of them has taken the place of another.
    let tunnel = tunnel(&client, echoing().await).await.unwrap();
    assert_eq!(status(&client, "127.0.0.1", 443).await, StatusCode::SERVICE_UNAVAILABLE);
    drop(tunnel);
    let answer = client.send(get("/.well-known/masque/udp/127.0.0.1/443/")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "an ordinary request");
}

#[tokio::test]
async fn a_tunnel_ends_with_either_end() {
    let (_world, client) = proxy(to_loopback().max_tunnels(1), TransportConfig::default()).await;
    let port = echoing().await;
    let first = tunnel(&client, port).await.unwrap();
    drop(first);
    // The place becomes free when the proxy has heard of it.
    let second = loop {
        match tunnel(&client, port).await {
            Ok(tunnel) => break tunnel,
            Err(TunnelError::Refused(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    second.send(b"there").unwrap();
    assert_eq!(second.receive().await.unwrap(), &b"there"[..]);
    client.close();
    assert!(second.receive().await.is_err());
}

#[tokio::test]
async fn a_silent_tunnel_ends() {
    let (_world, client) =
        proxy(to_loopback().idle_timeout(Duration::from_millis(20)), TransportConfig::default()).await;
    let tunnel = tunnel(&client, echoing().await).await.unwrap();
    let error = tunnel.receive().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Reset), "{error}");
}

#[tokio::test]
async fn quic_goes_through_it() {
    let target = World::new(echo());
    let (_world, client) = proxy(to_loopback(), TransportConfig::default()).await;
    let tunnel = tunnel(&client, target.addr.port()).await.unwrap();
    let endpoint = Endpoint::builder()
        .bind("0.0.0.0:0".parse().unwrap())
        .datapaths(tunnel.into_carrier(target.addr).into_factory())
        .build()
        .unwrap();
    let inner = Client::connect(&endpoint, &client_config(), target.addr, "localhost").await.unwrap();
    let content = vec![b'x'; 2_000_000];
    let request = Request::post("/").body(Body::from(content.clone())).unwrap();
    let answer = text(inner.send(request).await.unwrap()).await;
    assert!(answer.into_bytes() == content);
}
