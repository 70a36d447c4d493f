//! `godwit serve` on several cores: what is of each, and what is of all together.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use crate::serve_support::{H1, Server, godwit};
use crate::serve_telemetry::figures;
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint};
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;

fn free() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// With a configuration file and what it says in `top`.
fn start(top: &str) -> Server {
    let data = Arc::new(tempfile::tempdir().unwrap());
    let site = "[[site]]\nhosts = [\"*\"]\n[[site.route]]\nrespond = { body = \"here\" }\n";
    let text = format!("listen = [\"127.0.0.1:0\"]\n{top}\n{site}");
    std::fs::write(data.path().join("godwit.toml"), text).unwrap();
    let mut command = godwit(data.path(), &["serve", "--quiet", "--config", "godwit.toml"]);
    command.current_dir(data.path());
    Server::spawn(command, data)
}

async fn over_http1(server: &Server) -> SendRequest<Empty<Bytes>> {
    let (sender, connection) = handshake(TokioIo::new(server.connect(H1).await)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(sender: &mut SendRequest<Empty<Bytes>>) {
    sender.ready().await.unwrap();
    let request = Request::get("/").header("host", "localhost").body(Empty::new()).unwrap();
    let body = sender.send_request(request).await.unwrap().into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "here");
}

/// The figures of a name, each with its labels.
fn values<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    text.lines().filter_map(move |line| {
        let (labels, value) = line.strip_prefix(name)?.strip_prefix('{')?.split_once("} ")?;
        Some((labels, value.parse().unwrap()))
    })
}

#[tokio::test]
async fn what_each_shard_does_is_told() {
    let metrics = free();
    let server = start(&format!("shards = 4\nmetrics = \"{metrics}\""));
    let mut clients = Vec::new();
    for _ in 0..64 {
        let mut client = over_http1(&server).await;
        ask(&mut client).await;
        ask(&mut client).await;
        clients.push(client);
    }
    let config = ClientConfig::with_roots_file(server.authority()).alpn([ALPN]).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let mut over_http3 = Vec::new();
    for _ in 0..40 {
        let client = Client::connect(&endpoint, &config, address, "localhost").await.unwrap();
        let request = Request::get("https://localhost/").body(Empty::<Bytes>::new()).unwrap();
        let body = client.send(request).await.unwrap().into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "here");
        over_http3.push(client);
    }
    // A request counts when its answer has left, which its client may have before that.
    let text = loop {
        let (_, text) = figures(&metrics, "/metrics").await;
        if values(&text, "godwit_shard_requests_total").map(|(_, count)| count).sum::<f64>() >= 168.0 {
            break text;
        }
    };
    for number in 0..4 {
        let of = |name: &str, protocol: &str| {
            let labels = format!("shard=\"{number}\",protocol=\"{protocol}\"");
            values(&text, name).find(|(found, _)| *found == labels).map_or(0.0, |(_, value)| value)
        };
        assert_eq!(of("godwit_shard_connections_open", "http/1.1"), 16.0, "{text}");
        assert_eq!(of("godwit_shard_connections_total", "http/1.1"), 16.0, "{text}");
        assert_eq!(of("godwit_shard_requests_total", "http/1.1"), 32.0, "{text}");
        let cpu = values(&text, "godwit_shard_cpu_seconds_total")
            .find(|(labels, _)| *labels == format!("shard=\"{number}\""));
        assert!(!cfg!(target_os = "linux") || cpu.is_some_and(|(_, ran)| ran > 0.0), "{text}");
        // All from one port. That 40 miss one of four by chance happens once in 25000 times; it is enough that they are not
        // all in one place.
        assert!(of("godwit_shard_requests_total", "h3") < 40.0 || !cfg!(target_os = "linux"), "{text}");
    }
    let h3 = values(&text, "godwit_shard_requests_total").filter(|(labels, _)| labels.ends_with("\"h3\""));
    assert_eq!(h3.map(|(_, count)| count).sum::<f64>(), 40.0, "{text}");
    let whole = values(&text, "godwit_http_requests_total").map(|(_, count)| count).sum::<f64>();
    assert_eq!(whole, 168.0, "{text}");
}

#[tokio::test]
async fn limits_are_of_all_shards_together() {
    let server = start("shards = 3\n[limits]\nconnections = 4");
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(over_http1(&server).await);
    }
    let mut waiting = pin!(async {
        let mut fifth = over_http1(&server).await;
        ask(&mut fifth).await;
    });
    // All shards get on with their work meanwhile, and accept nobody.
    let meanwhile = async {
        for _ in 0..100 {
            for client in &mut clients {
                ask(client).await;
            }
        }
    };
    tokio::select! {
        () = &mut waiting => panic!("a fifth of four was let in"),
        () = meanwhile => {}
    }
    clients.pop();
    waiting.await;
}
