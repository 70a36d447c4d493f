//! The clients of one network have a share of an upstream's connections, and the others the rest.

use crate::crowds::{LONG, once_there_is_room, upstream};
use crate::support::{AnyBody, Server, channel, get, settings, text};
use crate::tunnels::{agreeable, extended};
use godwit_proxy::{Peer, Problem, ProblemKind, Proxy};
use http::Request;
use std::time::Duration;

fn proxy(server: &Server, share: u8, wait: Duration) -> Proxy {
    let mut settings = settings(server, "http");
    settings.max_connections = 8;
    settings.network_share = share;
    settings.timeouts.connect = wait;
    settings.trust_forwarded = vec!["192.0.2.0/24".parse().unwrap()];
    Proxy::new(settings).unwrap()
}

fn from(address: &str, path: &str) -> Request<AnyBody> {
    of(address, get(path))
}

fn of(address: &str, mut request: Request<AnyBody>) -> Request<AnyBody> {
    request
        .extensions_mut()
        .insert(Peer::new((address.parse::<std::net::IpAddr>().unwrap(), 1).into(), true));
    request
}

#[tokio::test]
async fn one_network_does_not_take_all_connections() {
    let server = upstream().await;
    let proxy = proxy(&server, 25, Duration::from_millis(50));
    let mut hanging = Vec::new();
    for address in ["198.51.100.1", "::ffff:198.51.100.2"] {
        hanging.push(proxy.handle(from(address, "/hang")).await);
    }
    let refused = proxy.handle(from("198.51.100.3", "/")).await;
    assert_eq!(refused.extensions().get::<Problem>().unwrap().kind(), ProblemKind::Busy);
    assert!(refused.status() == 503 && refused.headers().contains_key("retry-after"));
    assert!(!proxy.status()[0].avoided && proxy.status()[0].failures == 0, "it is not at fault");
    for address in ["203.0.113.1", "2001:db8::1", "127.0.0.1", "192.0.2.1"] {
        assert_eq!(proxy.handle(from(address, "/")).await.status(), 200, "{address}");
    }
    hanging.pop();
    assert_eq!(text(once_there_is_room(&proxy, || from("198.51.100.4", "/")).await).await, "");
}

#[tokio::test]
async fn whoever_waits_for_its_own_network_holds_up_nobody() {
    let server = upstream().await;
    let proxy = proxy(&server, 1, LONG);
    let hanging = proxy.handle(from("198.51.100.1", "/hang")).await;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let proxy = proxy.clone();
            tokio::spawn(async move { text(proxy.handle(from("198.51.100.1", "/")).await).await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(proxy.handle(from("203.0.113.1", "/")).await.status(), 200);
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    drop(hanging);
    for answer in waiting {
        assert_eq!(answer.await.unwrap(), "");
    }
}

#[tokio::test]
async fn a_tunnel_has_its_place_until_it_ends() {
    let server = agreeable().await;
    let proxy = proxy(&server, 1, Duration::from_millis(50));
    let (sender, body) = channel();
    let tunnel = proxy.handle(of("198.51.100.1", extended("echo", body))).await;
    assert_eq!(tunnel.status(), 200);
    let ask = || of("198.51.100.2", extended("echo", channel().1));
    assert_eq!(proxy.handle(ask()).await.status(), 503);
    drop((tunnel, sender));
    assert_eq!(once_there_is_room(&proxy, ask).await.status(), 200);
}

#[tokio::test]
async fn this_machine_and_whom_it_trusts_are_no_network() {
    let server = upstream().await;
    for (address, share) in [("127.0.0.1", 25), ("::1", 25), ("192.0.2.1", 25), ("198.51.100.1", 100)] {
        let proxy = proxy(&server, share, LONG);
        let mut hanging = Vec::new();
        for _ in 0..8 {
            hanging.push(proxy.handle(from(address, "/hang")).await);
        }
        assert!(hanging.iter().all(|response| response.status() == 200), "{address}");
    }
}

#[test]
fn a_share_is_a_percentage() {
    for share in [0, 101] {
        let mut settings = godwit_proxy::Settings::to(["http://127.0.0.1:1".parse().unwrap()]);
        settings.network_share = share;
        assert_eq!(Proxy::new(settings).unwrap_err().field(), "network_share");
    }
}
