//! Either process is killed during a hand-over, at any point of it: the one that is left serves.

use super::{LIMITS, Service, TOP, ended, responding};
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint};
use http::Request;
use http_body_util::{BodyExt, Empty};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// How long a hand-over has gone on when somebody is killed: from before the new program runs until after it has taken over,
/// on most machines.
const POINTS: [u64; 12] = [0, 1, 2, 4, 6, 8, 10, 13, 18, 30, 80, 300];

/// The process that this one has started, once it has.
async fn successor_of(process: u32) -> u32 {
    loop {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let children = threads.filter_map(|thread| {
            let children = std::fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
            children.split_whitespace().next()?.parse::<u32>().ok()
        });
        if let Some(child) = children.max() {
            return child;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn kill(process: u32) {
    assert!(Command::new("kill").args(["-s", "KILL", &process.to_string()]).status().unwrap().success());
}

async fn client(service: &Service) -> (Client, Endpoint) {
    let roots = std::fs::read(service.server.authority()).unwrap();
    let config = ClientConfig::with_roots_pem(&roots).alpn([ALPN]).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], service.server.port));
    (Client::connect(&endpoint, &config, address, "localhost").await.unwrap(), endpoint)
}

async fn ask(client: &Client) -> Option<Bytes> {
    let request = Request::get("https://localhost/").body(Empty::<Bytes>::new()).unwrap();
    Some(client.send(request).await.ok()?.into_body().collect().await.ok()?.to_bytes())
}

#[tokio::test]
async fn when_the_new_process_is_killed_the_old_one_goes_on() {
    let mut survived = 0;
    for point in POINTS {
        let mut service = Service::start(&format!("{TOP}{LIMITS}{}", responding("one")), |_| None);
        let old = *service.processes.last().unwrap();
        let (kept, endpoint) = client(&service).await;
        assert_eq!(ask(&kept).await.unwrap(), "one");
        service.signal("USR2");
        let new = successor_of(old).await;
        tokio::time::sleep(Duration::from_millis(point)).await;
        kill(new);
        let line = loop {
            let line = service.lines.recv().await.unwrap();
            if line.contains("this one goes on") || line.contains("has taken over") {
                break line;
            }
        };
        if !line.contains("this one goes on") {
            // From here on there is only what is in progress: that is what the old one is for.
            continue;
        }
        assert!(line.contains("signal: 9"), "{line}");
        survived += 1;
        assert_eq!(ask(&kept).await.unwrap(), "one", "who was there stays, {point} ms");
        // It is not to be waited for.
        drop(kept);
        endpoint.wait_idle().await;
        service.serves("one");
        // And it hands over, when that is wished again.
        service.hand_over().await;
        service.serves("one");
        service.elders_end().await;
        service.end().await;
    }
    assert!(survived > 0, "all were too late");
}

#[tokio::test]
async fn when_the_old_process_is_killed_the_new_one_takes_over_by_itself() {
    for point in POINTS {
        let mut service = Service::start(&format!("{TOP}{LIMITS}{}", responding("one")), |_| None);
        let old = *service.processes.last().unwrap();
        let (lost, endpoint) = client(&service).await;
        assert_eq!(ask(&lost).await.unwrap(), "one");
        service.configure(&format!("{TOP}{LIMITS}{}", responding("two")));
        service.signal("USR2");
        let new = successor_of(old).await;
        service.processes.push(new);
        tokio::time::sleep(Duration::from_millis(point)).await;
        kill(old);
        // Whoever comes meanwhile waits for it.
        service.serves("two");
        // Whoever was there is told, or is answered, at once: not after a silence of thirty seconds.
        let told = tokio::time::timeout(Duration::from_secs(20), ask(&lost)).await;
        assert!(told.is_ok(), "{point} ms: the client hangs");
        drop(lost);
        endpoint.wait_idle().await;
        service.processes = vec![new];
        service.signal("TERM");
        ended(new).await;
        service.processes.clear();
    }
}
