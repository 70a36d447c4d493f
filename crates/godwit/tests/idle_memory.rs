//! What a server and a client spend on a connection that is idle: resident memory and live heap, over many connections
//! whose other ends live in another process.
//!
//! 2,000 connections with GODWIT_BARS=1, otherwise a tenth of them. The resident memory is printed; only the heap,
//! which the system's moods do not touch, can fail the test.

use godwit::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Live heap bytes per connection that are permitted, at a server and at a client. The contexts of the cryptographic
/// library, which does not use the program's allocator, come on top where there are any.
const MOST_AT_SERVER: usize = 7 * 1024 + 256;
const MOST_AT_CLIENT: usize = 8 * 1024 + 256;
/// Tells the second process what it has to know: the clients', where the server is and how many they are.
const TOLD: &str = "GODWIT_IDLE_MEMORY";
/// Handshakes under way at one time.
const AT_ONCE: usize = 16;

/// Held by the test that measures.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn count() -> usize {
    if std::env::var_os("GODWIT_BARS").is_some_and(|value| value == "1") { 2000 } else { 200 }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_mins(10);
    transport
}

fn server() -> Endpoint {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let config = ServerConfig::from_pem(chain.as_bytes(), key.as_bytes()).alpn(["idle"]);
    let config = config.transport(transport()).build().unwrap();
    Endpoint::server(config, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap()
}

#[tokio::test]
async fn an_idle_connection_takes_few_bytes_of_its_server() {
    let _alone = ALONE.lock().await;
    let endpoint = server();
    // The first connections fill what all share: tables, buffers, the cryptographic library.
    let (first, _first_clients) = serve_clients(&endpoint, AT_ONCE).await;
    let before = Memory::now();
    let (many, _clients) = serve_clients(&endpoint, count()).await;
    before.check(&first, &many, MOST_AT_SERVER);
}

#[tokio::test]
async fn an_idle_connection_takes_few_bytes_of_its_client() {
    let _alone = ALONE.lock().await;
    let mut server = Other::start("server_of_the_other_test", "");
    let address = server.wait_for("serving ").trim().parse().unwrap();
    let endpoint = Endpoint::client(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let first = connect(&endpoint, address, 2 * AT_ONCE).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = Memory::now();
    let many = connect(&endpoint, address, count()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(server.process.try_wait().unwrap().is_none(), "the server is gone");
    before.check(&first, &many, MOST_AT_CLIENT);
}

/// What this process has at one time.
struct Memory {
    live: usize,
    resident: Option<usize>,
}

impl Memory {
    fn now() -> Memory {
        Memory { live: live(), resident: resident() }
    }

    /// What `many` connections have taken since then.
    fn check(&self, first: &[Connection], many: &[Connection], most: usize) {
        let live = live().saturating_sub(self.live) / many.len();
        let resident = resident().map(|now| now.saturating_sub(self.resident.unwrap_or(now)) / many.len());
        println!("{} connections: {live} bytes of heap each, {resident:?} bytes resident each", many.len());
        let mut all = first.iter().chain(many);
        assert!(all.all(|connection| connection.close_reason().is_none()), "some have ended");
        assert!(live <= most, "{live} bytes of heap for an idle connection, {most} are permitted");
    }
}

/// Accepts `count` connections from a process of their own, and waits until each has done what it does.
async fn serve_clients(endpoint: &Endpoint, count: usize) -> (Vec<Connection>, Other) {
    let server = endpoint.local_addr().unwrap();
    let mut clients = Other::start("clients_of_the_other_test", &format!("{server} {count}"));
    let mut kept = Vec::with_capacity(count);
    while kept.len() < count {
        let incoming = endpoint.accept().await.expect("the endpoint is open");
        kept.push(incoming.await.unwrap());
    }
    let mut clients = tokio::task::spawn_blocking(move || {
        clients.wait_for("all are connected");
        clients
    })
    .await
    .unwrap();
    // Late acknowledgements, session tickets, timers of the handshake.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(clients.process.try_wait().unwrap().is_none(), "the clients are gone");
    (kept, clients)
}

/// `count` connections to a server.
async fn connect(endpoint: &Endpoint, server: SocketAddr, count: usize) -> Vec<Connection> {
    let config =
        ClientConfig::danger_accept_any_certificate().alpn(["idle"]).transport(transport()).build().unwrap();
    let mut kept = Vec::with_capacity(count);
    while kept.len() < count {
        let batch = AT_ONCE.min(count - kept.len());
        let connecting: Vec<_> =
            (0..batch).map(|_| endpoint.connect(&config, server, "localhost").unwrap()).collect();
        for connecting in connecting {
            kept.push(connecting.await.unwrap());
        }
    }
    kept
}

/// The process of the other ends, which ends with its standard input.
struct Other {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(test: &str, told: &str) -> Other {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env(TOLD, told)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Other { process, lines }
    }

    /// The rest of a line of its output, after these words.
    fn wait_for(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the other process has ended");
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_owned();
            }
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Until standard input ends.
async fn wait_for_the_end() {
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await;
}

#[tokio::test]
#[ignore = "the second process of the server's test"]
async fn clients_of_the_other_test() {
    let Ok(words) = std::env::var(TOLD) else { return };
    let (server, count) = words.split_once(' ').unwrap();
    let endpoint = Endpoint::client(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let _kept = connect(&endpoint, server.parse().unwrap(), count.parse().unwrap()).await;
    println!("all are connected");
    wait_for_the_end().await;
}

#[tokio::test]
#[ignore = "the second process of the client's test"]
async fn server_of_the_other_test() {
    if std::env::var_os(TOLD).is_none() {
        return;
    }
    let endpoint = server();
    println!("serving {}", endpoint.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some(incoming) = endpoint.accept().await {
            kept.push(incoming.await.unwrap());
        }
    });
    wait_for_the_end().await;
    serving.abort();
}

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Bytes of this process that are resident and its own, where the system tells.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? * 1024)
}
