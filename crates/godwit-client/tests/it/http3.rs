//! Requests over HTTP/3, and how they come to it.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use godwit_client::{ErrorKind, Response, TriedOutcome, Versions};
use http::Version;
use http_body_util::BodyExt;
use rustls::ProtocolVersion;

use crate::support::{Http3, Server};

/// No test waits for it; it only keeps a broken one from hanging.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn it_is_spoken_where_it_is_asked_for() {
    let server = Server::start(true).await;
    let http3 = Http3::start(&server);
    let client = server.client().versions(Versions::Http3).build().unwrap();
    for _ in 0..2 {
        let response = client.post(http3.url("/echo")).body("hello").send().await.unwrap();
        assert_eq!(response.version(), Version::HTTP_3);
        let route = response.route();
        assert_eq!((route.remote(), route.tls_version()), (http3.address, Some(ProtocolVersion::TLSv1_3)));
        assert_eq!(route.certificates(), std::slice::from_ref(&server.leaf));
        assert_eq!(route.quic().unwrap().remote_address(), http3.address);
        assert_eq!(response.text().await.unwrap(), "POST hello");
    }
    assert_eq!((http3.connections(), server.connections()), (1, 0));
    client.close().await;
}

#[tokio::test]
async fn a_server_that_offers_it_is_moved_to_and_remembered() {
    let server = Server::start(true).await;
    let http3 = Http3::start(&server);
    server.advertise(http3.address.port());
    let folder = tempfile::tempdir().unwrap();
    let client = || {
        let client = server.client().memory_file(folder.path().join("memory"));
        client.session_file(folder.path().join("sessions")).build().unwrap()
    };
    let get = async |client: &godwit_client::Client| -> Response {
        client.get(server.url("/who")).send().await.unwrap()
    };

    // The first request learns of it, the second begins to connect, and one after that goes over it.
    let first = client();
    assert_eq!(get(&first).await.version(), Version::HTTP_2);
    let moved = async {
        loop {
            let response = get(&first).await;
            if response.version() == Version::HTTP_3 {
                return response;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let moved = tokio::time::timeout(LONG, moved).await.unwrap();
    assert!(moved.route().reason.contains("QUIC, begun in the background"), "{}", moved.route().reason);
    assert!(!moved.route().quic().unwrap().is_resumed());
    assert_eq!(moved.text().await.unwrap(), format!("localhost:{} ", server.address.port()));
    assert_eq!((http3.connections(), server.connections()), (1, 1));
    first.close().await;

    // Another client, which knows all that: its first request goes over HTTP/3, however slow QUIC is, because TCP is
    // slower still.
    server.stall();
    let second = client();
    let response = get(&second).await;
    assert_eq!(response.version(), Version::HTTP_3, "{}", response.route().reason);
    assert!(
        response.route().reason.starts_with("the server has offered HTTP/3"),
        "{}",
        response.route().reason
    );
    assert!(response.route().quic().unwrap().is_resumed());
    assert_eq!(http3.connections(), 2);
}

/// Nobody has addresses for these names: who finds them has not looked.
#[tokio::test]
async fn a_server_that_says_that_it_is_another_too_is_asked_for_it_if_its_certificate_says_so() {
    let server = Server::start(true).await;
    let http3 = Http3::telling(&server, |port| {
        ["first.test", "foreign.test"].map(|name| format!("https://{name}:{port}")).to_vec()
    });
    let port = http3.address.port();
    let client = || server.client().versions(Versions::Http3).build().unwrap();
    let get = async |client: &godwit_client::Client, name: &str, path: &str| {
        client.get(format!("https://{name}:{port}{path}")).send().await
    };
    let first = client();
    get(&first, "localhost", "/who").await.unwrap();
    for _ in 0..2 {
        let response = get(&first, "first.test", "/who").await.unwrap();
        let reason = response.route().reason.clone();
        assert!(
            reason.contains(&format!("the server of https://localhost:{port} answers for it too")),
            "{reason}"
        );
        assert_eq!(response.text().await.unwrap(), format!("first.test:{port} "));
    }
    // The certificate is not for the one, and the server says nothing of the other.
    for name in ["foreign.test", "pinned.test"] {
        assert_eq!(get(&first, name, "/who").await.unwrap_err().kind(), ErrorKind::Resolve, "{name}");
    }
    // It does not answer for it after all: it is looked for elsewhere, and is from then on.
    let second = client();
    get(&second, "localhost", "/who").await.unwrap();
    get(&second, "first.test", "/who").await.unwrap();
    for path in ["/misdirected", "/who"] {
        assert_eq!(get(&second, "first.test", path).await.unwrap_err().kind(), ErrorKind::Resolve, "{path}");
    }
    // Where it is, is said already; and a server that is believed whatever its certificate says can say nothing.
    let pinned =
        server.client().versions(Versions::Http3).resolve("first.test", port, "127.0.0.2".parse().unwrap());
    let anybody = godwit_client::Client::builder().danger_accept_any_certificate().versions(Versions::Http3);
    for client in [pinned, anybody] {
        let client = client.connect_timeout(Duration::from_millis(300)).build().unwrap();
        get(&client, "localhost", "/who").await.unwrap();
        assert!(get(&client, "first.test", "/who").await.is_err());
    }
    assert_eq!(http3.connections(), 4);
}

#[tokio::test]
async fn nothing_goes_over_udp_where_that_is_asked_for() {
    let server = Server::start(true).await;
    let http3 = Http3::start(&server);
    server.advertise(http3.address.port());
    let client = server.client().versions(Versions::Tcp).build().unwrap();
    for _ in 0..3 {
        let response = client.get(server.url("/who")).send().await.unwrap();
        assert_eq!((response.version(), response.route().quic().is_some()), (Version::HTTP_2, false));
        assert_eq!(response.route().certificates(), std::slice::from_ref(&server.leaf));
    }
    assert_eq!(http3.connections(), 0);
}

#[tokio::test]
async fn connections_that_nobody_needs_are_closed() {
    let server = Server::start(true).await;
    let mut http3 = Http3::start(&server);
    let client = server.client().versions(Versions::Http3).idle_timeout(Duration::from_millis(1));
    let client = client.build().unwrap();
    for connections in [1, 2] {
        let response = client.get(http3.url("/who")).send().await.unwrap();
        assert_eq!(http3.connections(), connections);
        drop(response);
        tokio::time::timeout(LONG, http3.closed.recv()).await.unwrap().unwrap();
    }
    // What is being read is needed.
    let response = client.get(http3.url("/gated")).send().await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "the beginning");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(http3.closed.try_recv().is_err());
    http3.open_gate();
    assert!(body.frame().await.is_none());
    drop(body);
    tokio::time::timeout(LONG, http3.closed.recv()).await.unwrap().unwrap();
    assert_eq!(http3.connections(), 3);
}

#[tokio::test]
async fn what_was_tried_is_told() {
    let server = Server::start(true).await;
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (alive, dead) = (silent.local_addr().unwrap(), "127.0.0.1:1".parse().unwrap());
    let tried = async |versions, address| {
        let client = server.client().versions(versions).addresses("localhost", [address]);
        let client = client.connect_timeout(Duration::from_millis(300)).build().unwrap();
        let error = client.get("https://localhost/").send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        let [tried] = error.tried() else { panic!("{error:?}") };
        assert_eq!((tried.address, tried.text.as_str()), (address, error.text()));
        tried.outcome
    };
    assert_eq!(tried(Versions::Http3, alive).await, TriedOutcome::Silent);
    assert_eq!(tried(Versions::Tcp, dead).await, TriedOutcome::NobodyListens);
    // The same server by an address that its name does not lead to.
    let client = server.client().addresses("localhost", [server.address]).build().unwrap();
    let response = client.get("https://localhost:1/who").send().await.unwrap();
    assert_eq!(response.route().remote(), server.address);
    assert_eq!(response.text().await.unwrap(), "localhost:1 ");
}
