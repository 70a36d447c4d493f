//! Exchanging a server's process while its connections live.

use crate::programs::example;
use crate::support::{CERTIFICATE, Net, client_builder, client_config, echo, pattern, server_config};
use godwit::{ClientConfig, Connection, ConnectionErrorKind, Endpoint, Successor, TransportConfig};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The program, in all its generations: they share a folder, and the pipe into which they print.
struct Service {
    folder: TempDir,
    lines: mpsc::UnboundedReceiver<String>,
    /// By generation.
    processes: Vec<u32>,
    addr: SocketAddr,
}

impl Service {
    async fn start(shards: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("certificate.pem"), &CERTIFICATE.0).unwrap();
        std::fs::write(folder.path().join("key.pem"), &CERTIFICATE.1).unwrap();
        let mut command = Command::new(example("reload"));
        command.args(["certificate.pem", "key.pem", "127.0.0.1:0", &shards.to_string()]);
        command.current_dir(folder.path()).env("TMPDIR", folder.path()).stdout(Stdio::piped());
        let mut first = command.spawn().unwrap();
        let (sender, lines) = mpsc::unbounded_channel();
        let output = BufReader::new(first.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                let _ = sender.send(line.unwrap());
            }
            // All who could write are gone, the first one too: it is no longer needed.
            let _ = first.wait();
        });
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut service = Service { folder, lines, processes: Vec::new(), addr };
        service.addr = service.next_process().await;
        service
    }

    /// What the program prints next.
    async fn line(&mut self) -> String {
        self.lines.recv().await.expect("some generation lives")
    }

    /// Waits for a new generation. Its address.
    async fn next_process(&mut self) -> SocketAddr {
        let greeting = format!("generation {}: process ", self.processes.len());
        loop {
            let line = self.line().await;
            let Some(rest) = line.strip_prefix(&greeting) else { continue };
            let (process, addr) = rest.split_once(" listens on ").unwrap();
            self.processes.push(process.parse().unwrap());
            return addr.parse().unwrap();
        }
    }

    fn signal(&self, generation: usize, name: &str) {
        let process = self.processes[generation].to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    async fn hand_over(&mut self) {
        self.signal(self.processes.len() - 1, "-USR2");
        assert_eq!(self.next_process().await, self.addr);
    }

    /// Waits until a generation says that it is over; how many connections it served and cut off.
    async fn over(&mut self) -> (usize, usize, usize) {
        loop {
            let line = self.line().await;
            if line.contains(": over, ") {
                let numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
                let numbers: Vec<usize> = numbers.collect();
                return (numbers[0], numbers[1], numbers[2]);
            }
        }
    }

    /// Ends the last generation and sees to it that nothing is left of any.
    async fn end(mut self) {
        self.signal(self.processes.len() - 1, "-TERM");
        while self.lines.recv().await.is_some() {}
        for process in std::mem::take(&mut self.processes) {
            // One whose parent is gone may wait to be cleared away, but has no program any more.
            let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            assert!(command.is_empty(), "{}", String::from_utf8_lossy(&command));
        }
        let mut left: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["certificate.pem", "key.pem"]);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for process in &self.processes {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
    }
}

fn config() -> ClientConfig {
    let keep_alive = Some(Duration::from_secs(5));
    // However busy the machine is, nobody's patience ends here.
    let handshake_timeout = Duration::from_secs(300);
    let mut transport = TransportConfig::default();
    transport.keep_alive = keep_alive;
    transport.handshake_timeout = handshake_timeout;
    client_builder().alpn(["echo"]).transport(transport).build().unwrap()
}

async fn connect(client: &Endpoint, service: &Service) -> Connection {
    client.connect(&config(), service.addr, "localhost").unwrap().await.unwrap()
}

/// Sends something on a stream of its own and gets it back.
async fn exchange(connection: &Connection, seed: u64, len: usize) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&pattern(seed, len)).await.unwrap();
    send.finish().unwrap();
    assert!(recv.read_to_end(len + 1).await.unwrap() == pattern(seed, len));
}

/// A stream that lives until `end`: every so often something is sent on it and comes back.
async fn live(connection: Connection, seed: u64, mut end: watch::Receiver<bool>, rounds: Arc<AtomicU64>) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    for round in 0.. {
        let last = *end.borrow();
        let piece = pattern(seed << 32 | round, 100 + (seed * 37 + round * 91) as usize % 3000);
        send.write_all(&piece).await.unwrap();
        let mut back = vec![0; piece.len()];
        recv.read_exact(&mut back).await.unwrap();
        assert!(back == piece, "stream {seed}, round {round}");
        rounds.fetch_add(1, Ordering::Relaxed);
        if last {
            break;
        }
        let pause = Duration::from_millis(10 + (seed * 13 + round * 7) % 90);
        let _ = tokio::time::timeout(pause, end.changed()).await;
    }
    send.finish().unwrap();
    assert!(recv.read_to_end(1).await.unwrap().is_empty());
}

/// Sends without a pause until `end`, so that something is always on its way.
async fn flood(connection: Connection, end: watch::Receiver<bool>, bytes: Arc<AtomicU64>) {
    for seed in 0.. {
        exchange(&connection, seed, 100_000).await;
        bytes.fetch_add(100_000, Ordering::Relaxed);
        if *end.borrow() {
            return;
        }
    }
}

/// Comes and goes until `end`, so that a handshake is always under way.
async fn come_and_go(client: Endpoint, addr: SocketAddr, end: watch::Receiver<bool>, count: Arc<AtomicU64>) {
    while !*end.borrow() {
        let connection = client.connect(&config(), addr, "localhost").unwrap().await.unwrap();
        exchange(&connection, 7, 1000).await;
        connection.close(0, b"");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_thousand_streams_outlive_twenty_hand_overs() {
    const HAND_OVERS: usize = 20;
    let mut service = Service::start(2).await;
    let client = Net::NATIVE_V4.client();
    let (end, ending) = watch::channel(false);
    let (rounds, flooded, visits) =
        (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (mut streams, mut others) = (JoinSet::new(), JoinSet::new());
    for number in 0..50 {
        let connection = connect(&client, &service).await;
        for stream in 0..20 {
            let seed = number * 100 + stream;
            streams.spawn(live(connection.clone(), seed, ending.clone(), Arc::clone(&rounds)));
        }
    }
    let first = connect(&client, &service).await;
    others.spawn(flood(first, ending.clone(), Arc::clone(&flooded)));
    others.spawn(come_and_go(client.clone(), service.addr, ending.clone(), Arc::clone(&visits)));
    for number in 1..=HAND_OVERS {
        let (before, visited) = (rounds.load(Ordering::Relaxed), visits.load(Ordering::Relaxed));
        service.hand_over().await;
        let connection = connect(&client, &service).await;
        for stream in 0..5 {
            let seed = (1000 + number as u64) * 100 + stream;
            streams.spawn(live(connection.clone(), seed, ending.clone(), Arc::clone(&rounds)));
        }
        // The streams go on, and clients come, before the next one follows.
        let enough = before + streams.len() as u64;
        while rounds.load(Ordering::Relaxed) < enough || visits.load(Ordering::Relaxed) < visited + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert_eq!(streams.len(), 1000 + 5 * HAND_OVERS, "none has ended");
    end.send(true).unwrap();
    while let Some(stream) = streams.join_next().await {
        stream.unwrap();
    }
    while let Some(other) = others.join_next().await {
        other.unwrap();
    }
    client.close(0, b"");
    client.wait_idle().await;
    let mut over = Vec::new();
    for _ in 0..HAND_OVERS {
        over.push(service.over().await);
    }
    over.sort();
    for (generation, (number, served, cut_off)) in over.into_iter().enumerate() {
        assert_eq!((number, cut_off), (generation, 0));
        assert!(served > if generation == 0 { 50 } else { 0 }, "generation {generation} served {served}");
    }
    let [rounds, flooded, visits] = [rounds, flooded, visits].map(|count| count.load(Ordering::Relaxed));
    println!("{rounds} rounds on streams that lived throughout, {flooded} bytes besides, {visits} visits");
    service.end().await;
}

#[tokio::test]
async fn a_successor_that_cannot_start_changes_nothing() {
    let mut service = Service::start(1).await;
    let client = Net::NATIVE_V4.client();
    let connection = connect(&client, &service).await;
    let key = service.folder.path().join("key.pem");
    std::fs::write(&key, "not yet").unwrap();
    service.signal(0, "-USR2");
    let line = service.line().await;
    assert!(line.starts_with("generation 0: still serving: the successor ended before"), "{line}");
    exchange(&connection, 1, 200_000).await;
    exchange(&connect(&client, &service).await, 2, 1000).await;
    std::fs::write(&key, &CERTIFICATE.1).unwrap();
    service.hand_over().await;
    exchange(&connection, 3, 200_000).await;
    exchange(&connect(&client, &service).await, 4, 1000).await;
    client.close(0, b"");
    client.wait_idle().await;
    assert_eq!(service.over().await, (0, 2, 0));
    service.end().await;
}

/// Sends something and waits for the stateless reset that this provokes.
async fn is_reset(connection: &Connection) {
    // An acknowledgement on its way may have provoked it before.
    if let Ok((mut send, _recv)) = connection.open_bi().await {
        let _ = send.write_all(b"anybody?").await;
    }
    assert_eq!(connection.closed().await.kind(), ConnectionErrorKind::Reset);
}

#[tokio::test]
async fn an_older_generation_that_dies_takes_only_its_own_connections_with_it() {
    let mut service = Service::start(1).await;
    let client = Net::NATIVE_V4.client();
    let lost = connect(&client, &service).await;
    service.hand_over().await;
    let kept = connect(&client, &service).await;
    service.hand_over().await;
    exchange(&lost, 1, 1000).await;
    service.signal(0, "-KILL");
    is_reset(&lost).await;
    exchange(&kept, 2, 100_000).await;
    exchange(&connect(&client, &service).await, 3, 1000).await;
    client.close(0, b"");
    client.wait_idle().await;
    assert_eq!(service.over().await, (1, 1, 0));
    service.end().await;
}

#[tokio::test]
async fn when_the_newest_generation_dies_an_older_one_receives_for_itself() {
    let mut service = Service::start(1).await;
    let client = Net::NATIVE_V4.client();
    let kept = connect(&client, &service).await;
    service.hand_over().await;
    let lost = connect(&client, &service).await;
    exchange(&kept, 1, 1000).await;
    service.signal(1, "-KILL");
    exchange(&kept, 2, 100_000).await;
    is_reset(&lost).await;
    // It was told to end, and takes nobody in any more.
    let refused = client.connect(&config(), service.addr, "localhost").unwrap().await.unwrap_err();
    assert_eq!(refused.kind(), ConnectionErrorKind::Refused);
    kept.close(0, b"");
    assert_eq!(service.over().await, (0, 1, 0));
    while service.lines.recv().await.is_some() {}
}

#[tokio::test]
async fn programs_that_do_not_take_over_are_not_waited_for() {
    let server = Net::NATIVE_V4.server_with(server_config());
    let client = Net::NATIVE_V4.client();
    let addr = server.local_addr().unwrap();
    let serving = tokio::spawn({
        let server = server.clone();
        async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(echo(incoming.await.unwrap()));
            }
        }
    });
    let visit = async || {
        let connection = client.connect(&client_config(), addr, "localhost").unwrap().await.unwrap();
        exchange(&connection, 5, 50_000).await;
        connection
    };
    let first = visit().await;
    let missing = server.hand_over(Successor::new(Command::new("/no/such/program"))).await;
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let ended = server.hand_over(Successor::new(Command::new("true"))).await.unwrap_err();
    assert!(ended.to_string().contains("ended before it had taken over: exit status: 0"), "{ended}");
    let mut idler = Command::new("sleep");
    idler.arg("1000");
    let patience = Duration::from_millis(50);
    let late = server.hand_over(Successor::new(idler).timeout(patience)).await;
    assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    exchange(&first, 6, 50_000).await;
    let second = visit().await;
    // Draining: whoever is there stays until the limit.
    let drained = tokio::join!(server.drain(Duration::from_millis(50)), serving);
    assert_eq!(drained.0, 2);
    drained.1.unwrap();
    for connection in [first, second] {
        assert_eq!(connection.closed().await.application_code(), Some(0));
    }
    assert_eq!(server.drain(Duration::from_secs(3600)).await, 0, "nobody is left");
}

/// Whether a process runs.
fn lives(process: &str) -> bool {
    std::fs::read(format!("/proc/{}/cmdline", process.trim())).is_ok_and(|command| !command.is_empty())
}

#[tokio::test]
async fn a_successor_that_is_not_wanted_any_more_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (note, server) = (folder.path().join("process"), Net::NATIVE_V4.server_with(server_config()));
    for wait in [0, 1, 10, 50] {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > process; exec sleep 1000"]).current_dir(folder.path());
        let mut handing_over = Box::pin(server.hand_over(Successor::new(command)));
        assert!(std::future::poll_fn(|cx| Poll::Ready(handing_over.as_mut().poll(cx).is_pending())).await);
        let _ = tokio::time::timeout(Duration::from_millis(wait), &mut handing_over).await;
        drop(handing_over);
        // It may never have come so far as to write, and if it has, it is on its way out.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let Ok(process) = std::fs::read_to_string(&note) else { continue };
        // Between making the file and writing to it, it leaves an empty one.
        while !process.is_empty() && lives(&process) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        std::fs::remove_file(&note).unwrap();
    }
}

/// What was started is not what takes over, and being killed does not reach the latter.
#[tokio::test]
async fn a_successor_that_comes_too_late_learns_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("certificate.pem"), &CERTIFICATE.0).unwrap();
    std::fs::write(folder.path().join("key.pem"), &CERTIFICATE.1).unwrap();
    let server = Net::NATIVE_V4.server_with(server_config());
    let script =
        "(while ! test -e go; do sleep 0.01; done; \"$0\" certificate.pem key.pem 127.0.0.1:0 1 > said 2>&1
        echo $? > end; mv end over) & wait";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(example("reload")).current_dir(folder.path());
    let patience = Duration::from_millis(50);
    let late = server.hand_over(Successor::new(command).timeout(patience)).await;
    assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    std::fs::write(folder.path().join("go"), "").unwrap();
    while !folder.path().join("over").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let [over, said] =
        ["over", "said"].map(|file| std::fs::read_to_string(folder.path().join(file)).unwrap());
    assert_eq!(over.trim(), "1", "{said}");
    assert!(said.contains("goes on itself"), "{said}");
}
