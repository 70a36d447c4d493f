//! What a server spends on a connection that is idle: resident memory and live heap, over many connections whose
//! clients live in another process.
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

/// Live heap bytes per connection that are permitted. The contexts of the cryptographic library come on top: it does
/// not use the program's allocator.
const MOST: usize = 7 * 1024 + 256;
/// Tells the second process where the server is.
const SERVER: &str = "GODWIT_IDLE_MEMORY_SERVER";
/// Handshakes under way at one time.
const AT_ONCE: usize = 16;

fn count() -> usize {
    if std::env::var_os("GODWIT_BARS").is_some_and(|value| value == "1") { 2000 } else { 200 }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_mins(10);
    transport
}

#[tokio::test]
async fn an_idle_connection_takes_few_bytes_of_its_server() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let config = ServerConfig::from_pem(chain.as_bytes(), key.as_bytes()).alpn(["idle"]);
    let config = config.transport(transport()).build().unwrap();
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let endpoint = Endpoint::server(config, address).unwrap();
    // The first connections fill what all share: tables, buffers, the cryptographic library.
    let (first, _first_clients) = serve_clients(&endpoint, AT_ONCE).await;
    let (live_before, resident_before) = (live(), resident());
    let (many, _clients) = serve_clients(&endpoint, count()).await;
    let live = live().saturating_sub(live_before) / count();
    let resident = resident().map(|now| now.saturating_sub(resident_before.unwrap_or(now)) / count());
    println!("{} connections: {live} bytes of heap each, {resident:?} bytes resident each", count());
    let mut all = first.iter().chain(&many);
    assert!(all.all(|connection| connection.close_reason().is_none()), "some have ended");
    assert!(live <= MOST, "{live} bytes of heap for an idle connection, {MOST} are permitted");
}

/// Accepts `count` connections from a process of their own, and waits until each has done what it does.
async fn serve_clients(endpoint: &Endpoint, count: usize) -> (Vec<Connection>, Clients) {
    let mut clients = Clients::start(endpoint.local_addr().unwrap(), count);
    let mut kept = Vec::with_capacity(count);
    while kept.len() < count {
        let incoming = endpoint.accept().await.expect("the endpoint is open");
        kept.push(incoming.await.unwrap());
    }
    let mut clients = tokio::task::spawn_blocking(move || {
        clients.wait_until_connected();
        clients
    })
    .await
    .unwrap();
    // Late acknowledgements, session tickets, timers of the handshake.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(clients.process.try_wait().unwrap().is_none(), "the clients are gone");
    (kept, clients)
}

/// The clients' process, which ends with its standard input.
struct Clients {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Clients {
    fn start(server: SocketAddr, count: usize) -> Clients {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["clients_of_the_other_test", "--exact", "--ignored", "--nocapture"])
            .env(SERVER, format!("{server} {count}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Clients { process, lines }
    }

    fn wait_until_connected(&mut self) {
        let mut line = String::new();
        while !line.contains("all are connected") {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the clients' process has ended");
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

#[tokio::test]
#[ignore = "the second process of the other test"]
async fn clients_of_the_other_test() {
    let Ok(words) = std::env::var(SERVER) else { return };
    let (server, count) = words.split_once(' ').unwrap();
    let (server, count): (SocketAddr, usize) = (server.parse().unwrap(), count.parse().unwrap());
    let endpoint = Endpoint::client(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
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
    println!("all are connected");
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await;
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
