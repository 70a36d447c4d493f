//! Shards on tokio with real sockets on the loopback device.
#![allow(missing_docs, reason = "tests")]

mod common;

use common::{Echo, client, connected, exchange, exchange_on, server, socket, wait_for};
use godwit_base::{RecvBatch, SendBatch, SocketId};
use godwit_datapath::{
    Backend, Capabilities, Counters, Datapath, Progress, Received, Refused, Sent, SocketConfig, bind_group,
    memory::{Hub, MemorySocket},
};
use godwit_engine::{
    Driver, DriverConfig, Shard, ShardGroup, ShardHandle, Shards, Spin, Stopped, run_shards,
};

use godwit_transport::tls::{self, deterministic};
use godwit_transport::{ClientConfig, CongestionAlgorithm, TransportConfig};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;
use tokio::task::JoinHandle;

type Task = JoinHandle<Result<(), Stopped>>;

fn start(shard: Shard<Echo>, config: &DriverConfig) -> (ShardHandle<Echo>, Task) {
    let handle = ShardHandle::new(shard);
    let driver = Driver::new(&handle, config.clone()).unwrap();
    let task = tokio::spawn(driver);
    (handle, task)
}

async fn round_trip(bound: &str, asked: &str, socket_config: &SocketConfig, driver: &DriverConfig, len: u64) {
    let (server, server_task) = start(server(socket(bound, socket_config)), driver);
    let from = if asked.starts_with('[') { "[::1]:0" } else { "127.0.0.1:0" };
    let (client, client_task) = start(client(socket(from, socket_config)), driver);
    let mut remote: SocketAddr = asked.parse().unwrap();
    remote.set_port(server.local_addrs()[0].port());
    exchange(&client, remote, len).await;
    client.close(3, b"enough");
    wait_for(&server, |_, echo| (echo.closed == 1).then_some(())).await;
    drop(server);
    client_task.await.unwrap().unwrap();
    assert!(matches!(client.stopped(), Some(Stopped::Finished)));
    server_task.await.unwrap().unwrap();
}

#[tokio::test]
async fn bytes_come_back_on_every_backend_and_family() {
    for backend in [Backend::Native, Backend::Portable] {
        let mut config = SocketConfig::default();
        config.backend = backend;
        let driver = DriverConfig::default();
        round_trip("127.0.0.1:0", "127.0.0.1:0", &config, &driver, 2_000_000).await;
        round_trip("0.0.0.0:0", "127.0.0.5:0", &config, &driver, 100_000).await;
        round_trip("[::]:0", "[::1]:0", &config, &driver, 100_000).await;
        round_trip("[::]:0", "127.0.0.6:0", &config, &driver, 100_000).await;
    }
}

#[tokio::test]
async fn bytes_come_back_while_spinning_and_without_offload() {
    let mut plain = SocketConfig::default();
    (plain.gso, plain.gro) = (false, false);
    let mut driver = DriverConfig::default();
    for spin in [Spin::Auto, Spin::Always(Duration::from_millis(2))] {
        driver.spin = spin;
        round_trip("127.0.0.1:0", "127.0.0.1:0", &plain, &driver, 1_000_000).await;
    }
}

#[tokio::test]
async fn a_handler_that_panics_over_a_connection_costs_that_one_only() {
    let (config, driver) = (SocketConfig::default(), DriverConfig::default());
    let (server, server_task) = start(server(socket("127.0.0.1:0", &config)), &driver);
    let (client, _client_task) = start(client(socket("127.0.0.1:0", &config)), &driver);
    let remote = server.local_addrs()[0];
    let honest = exchange(&client, remote, 1000).await;
    let unlucky = connected(&client, remote, &common::client_config()).await;
    server.with(|_, echo| echo.panics = true);
    client.with(|cx, echo| common::request(cx, echo, unlucky, 1000));
    wait_for(&client, |_, echo| (echo.closed == 1).then_some(())).await;
    wait_for(&server, |_, echo| (echo.closed == 1).then_some(())).await;
    exchange_on(&client, honest, 1000).await;
    exchange(&client, remote, 1000).await;
    client.close(0, b"");
    drop(server);
    server_task.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_are_used_from_many_threads() {
    let config = DriverConfig::default();
    let (server, _server_task) = start(server(socket("127.0.0.1:0", &SocketConfig::default())), &config);
    let (client, _client_task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())), &config);
    let remote = server.local_addrs()[0];
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { exchange(&client, remote, 50_000).await })
        })
        .collect();
    let mut conns = Vec::new();
    for task in tasks {
        conns.push(task.await.unwrap());
    }
    conns.dedup();
    assert_eq!(conns.len(), 8);
}

#[tokio::test]
async fn a_client_goes_on_from_another_socket() {
    let config = DriverConfig::default();
    let (server, _server_task) = start(server(socket("127.0.0.1:0", &SocketConfig::default())), &config);
    let (client, _client_task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())), &config);
    let conn = exchange(&client, server.local_addrs()[0], 1000).await;
    let before = client.local_addrs();
    client.replace_socket(socket("127.0.0.1:0", &SocketConfig::default()));
    assert_ne!(client.local_addrs(), before);
    exchange_on(&client, conn, 200_000).await;
}

#[tokio::test]
async fn the_end_of_a_driver_is_told() {
    let config = DriverConfig::default();
    let (stopped, task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())), &config);
    stopped.stop();
    task.await.unwrap().unwrap();
    assert!(matches!(stopped.stopped(), Some(Stopped::Finished)));
    stopped.with(|_, echo| assert!(echo.stopped.is_some()));

    let abandoned = ShardHandle::new(client(socket("127.0.0.1:0", &SocketConfig::default())));
    drop(Driver::new(&abandoned, config.clone()).unwrap());
    assert!(matches!(abandoned.stopped(), Some(Stopped::Abandoned)));

    let (failing, task) = start(client(Box::new(Failing)), &config);
    assert!(matches!(task.await.unwrap(), Err(Stopped::Socket(_))));
    wait_for(&failing, |_, echo| echo.stopped.clone()).await;
    assert!(failing.stopped().unwrap().to_string().contains("no such cable"));

    let (last, task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())), &config);
    drop(last);
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn deadlines_pass_although_nothing_is_heard() {
    let silent = socket("127.0.0.1:0", &SocketConfig::default());
    let (client, _task) =
        start(client(socket("127.0.0.1:0", &SocketConfig::default())), &DriverConfig::default());
    let mut transport = TransportConfig::default();
    transport.handshake_timeout = Duration::from_millis(30);
    let mut config = common::client_config();
    config.transport = Arc::new(transport);
    client.with(|cx, _| {
        let (now, path) = (cx.now(), cx.path_to(silent.local_addr()).unwrap());
        cx.endpoint_mut().connect(now, &config, path, deterministic::SERVER_NAME, None).unwrap();
    });
    wait_for(&client, |_, echo| (echo.closed == 1).then_some(())).await;
}

#[tokio::test]
async fn a_shard_on_memory_needs_no_socket() {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let hub = Hub::new(64);
    let config = DriverConfig::default();
    let (_server, _server_task) = start(server(Box::new(hub.socket(SocketId(0), there))), &config);
    let (client, _client_task) = start(client(Box::new(hub.socket(SocketId(0), here))), &config);
    exchange(&client, there, 300_000).await;
}

#[tokio::test]
async fn a_driver_that_has_nothing_to_do_makes_the_next_key_share() {
    let group = *tls::provider().kx_groups.first().unwrap();
    assert!(!tls::make_key_share_ready(), "no group was used");
    group.start().unwrap();
    assert!(tls::make_key_share_ready(), "nobody has done so yet");
    group.start().unwrap();
    let (_client, _task) =
        start(client(socket("127.0.0.1:0", &SocketConfig::default())), &DriverConfig::default());
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!tls::make_key_share_ready(), "it is ready");
}

#[derive(Debug)]
struct Failing;

impl Datapath for Failing {
    fn receive(&mut self, _: &mut RecvBatch) -> io::Result<Received> {
        Err(io::Error::other("no such cable"))
    }

    fn send(&mut self, _: &SendBatch, _: &mut Progress) -> io::Result<Sent> {
        Ok(Sent::Done)
    }

    fn id(&self) -> SocketId {
        SocketId(0)
    }

    fn local_addr(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }

    fn capabilities(&self) -> Capabilities {
        Hub::new(1).socket(SocketId(0), self.local_addr()).capabilities()
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }
}

/// A system that takes nothing for a while.
#[derive(Debug)]
struct Forbidding {
    inner: MemorySocket,
    /// What is sent from here arrives nowhere.
    aside: MemorySocket,
    /// Batches still to be refused.
    batches: Arc<AtomicUsize>,
    refused: VecDeque<Refused>,
}

impl Datapath for Forbidding {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        self.inner.receive(batch)
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        let forbid = |left: usize| left.checked_sub(1);
        if self.batches.fetch_update(Ordering::Relaxed, Ordering::Relaxed, forbid).is_err() {
            return self.inner.send(batch, progress);
        }
        for (number, (run, _)) in batch.runs().enumerate().skip(progress.runs) {
            let datagrams = run.len.div_ceil(run.segment);
            self.refused.push_back(Refused::new(number, datagrams));
        }
        self.aside.send(batch, progress)
    }

    fn id(&self) -> SocketId {
        self.inner.id()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn next_refused(&mut self) -> Option<Refused> {
        self.refused.pop_front()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        self.inner.wake_on_arrival(waker);
    }
}

#[tokio::test]
async fn what_the_system_refuses_is_counted_and_does_not_narrow_the_window() {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let (hub, batches) = (Hub::new(64), Arc::<AtomicUsize>::default());
    let config = DriverConfig::default();
    let (_server, _server_task) = start(server(Box::new(hub.socket(SocketId(0), there))), &config);
    let socket = Forbidding {
        inner: hub.socket(SocketId(0), here),
        aside: Hub::new(1).socket(SocketId(0), here),
        batches: Arc::clone(&batches),
        refused: VecDeque::new(),
    };
    let (client, _client_task) = start(client(Box::new(socket)), &config);
    // A window that nothing narrows but losses and marks.
    let mut transport = TransportConfig::default();
    transport.congestion = CongestionAlgorithm::Cubic.into();
    let cubic = ClientConfig::new(deterministic::client_config(common::ALPN), Arc::new(transport));
    let conn = connected(&client, there, &cubic).await;
    exchange_on(&client, conn, 300_000).await;
    let stats = || client.peek(|cx, _| cx.endpoint().connection(conn).unwrap().stats());
    let before = stats();
    assert_eq!(before.datagrams_refused, 0);
    for round in 1..=3 {
        batches.store(4, Ordering::Relaxed);
        exchange_on(&client, conn, 300_000).await;
        assert!(stats().datagrams_refused >= 4 * round, "{round}");
    }
    let after = stats();
    assert!(after.bytes_lost > before.bytes_lost && after.ptos > before.ptos);
    assert_eq!(after.packets_lost, before.packets_lost);
    assert_eq!(
        (after.congestion_events, after.persistent_congestion),
        (before.congestion_events, before.persistent_congestion)
    );
    assert!(after.window >= before.window);
}

/// A path with the server at its end: what is sent over it is on its way for a while whenever it is looked at.
#[derive(Debug)]
struct Slow {
    ours: MemorySocket,
    server: Shard<Echo>,
    takes: Duration,
}

impl Datapath for Slow {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        std::thread::sleep(self.takes);
        self.server.turn()?;
        let received = self.ours.receive(batch)?;
        Ok(Received::new(received.runs, received.runs > 0))
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        self.ours.send(batch, progress)
    }

    fn id(&self) -> SocketId {
        self.ours.id()
    }

    fn local_addr(&self) -> SocketAddr {
        self.ours.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        self.ours.capabilities()
    }

    fn counters(&self) -> Counters {
        self.ours.counters()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

#[tokio::test]
async fn an_answer_that_comes_within_a_turn_took_its_time() {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let (hub, takes) = (Hub::new(100), Duration::from_millis(3));
    let server = server(Box::new(hub.socket(SocketId(0), there)));
    let path = Slow { ours: hub.socket(SocketId(0), here), server, takes };
    let mut config = DriverConfig::default();
    config.batches_per_poll = 1000;
    let (client, _task) = start(client(Box::new(path)), &config);
    let conn = exchange(&client, there, 50_000).await;
    let stats = client.peek(|cx, _| cx.endpoint().connection(conn).unwrap().stats());
    assert!(stats.min_rtt >= takes, "{:?}", stats.min_rtt);
}

#[tokio::test]
async fn the_first_words_go_with_the_end_of_the_handshake() {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let (hub, config) = (Hub::new(64), DriverConfig::default());
    let (_server, _server_task) = start(server(Box::new(hub.socket(SocketId(0), there))), &config);
    let (client, _client_task) = start(client(Box::new(hub.socket(SocketId(0), here))), &config);
    let conn = connected(&client, there, &common::client_config()).await;
    let sent = || client.peek(|cx, _| cx.endpoint().connection(conn).unwrap().stats().packets_sent_by_type);
    let before = sent();
    assert_eq!((before.handshake, before.one_rtt), (0, 0));
    exchange_on(&client, conn, 100).await;
    assert!(sent().handshake > 0);
}

#[tokio::test]
async fn acknowledgements_go_with_what_is_said_next() {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let (hub, config) = (Hub::new(64), DriverConfig::default());
    let (_server, _server_task) = start(server(Box::new(hub.socket(SocketId(0), there))), &config);
    let (client, _client_task) = start(client(Box::new(hub.socket(SocketId(0), here))), &config);
    let conn = exchange(&client, there, 100_000).await;
    let sent = || client.peek(|cx, _| cx.endpoint().connection(conn).unwrap().stats().packets_sent);
    let before = sent();
    for _ in 0..20 {
        exchange_on(&client, conn, 5_000).await;
    }
    // Each takes four packets.
    assert!(sent() - before < 90, "{}", sent() - before);
}

#[tokio::test]
async fn a_client_that_leaves_at_once_was_connected() {
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let (hub, config) = (Hub::new(64), DriverConfig::default());
    let (server, _server_task) = start(server(Box::new(hub.socket(SocketId(0), there))), &config);
    let (client, _client_task) = start(client(Box::new(hub.socket(SocketId(0), here))), &config);
    connected(&client, there, &common::client_config()).await;
    client.close(3, b"enough");
    wait_for(&server, |_, echo| (echo.closed == 1).then_some(())).await;
    server.peek(|_, echo| assert_eq!(echo.connected.len(), 1));
}

/// Servers on one address, one per thread, with or without the kernel's help in finding the right one.
#[cfg(target_os = "linux")]
fn servers(count: usize, steer: bool) -> (Shards<Echo>, SocketAddr) {
    use godwit_transport::CidCodec;
    let any = "127.0.0.1:0".parse().unwrap();
    let sockets = bind_group(SocketId(0), any, count, &SocketConfig::default()).unwrap();
    let addr = sockets[0].local_addr();
    if steer {
        let key = CidCodec::new(common::secrets().cid_key(), 8, 0, 0).steering_key();
        godwit_datapath::steering::attach(sockets[0].socket().unwrap(), key, count).unwrap();
    }
    let mut sockets = sockets.into_iter();
    let group = ShardGroup::new(count, 0);
    let make = |number: usize| {
        let socket = sockets.next().ok_or_else(|| io::Error::other("a socket for each shard"))?;
        let endpoint = common::server_endpoint(number as u8);
        let shard = Shard::new(endpoint, vec![socket], Echo::default());
        // One or the other, so that each has to do it alone.
        Ok(if steer { shard } else { shard.in_group(group.clone()) })
    };
    let cores = godwit_os::affinity::allowed_cores();
    let shards = run_shards(count, Some(cores), &DriverConfig::default(), make, |_, _| async {}).unwrap();
    (shards, addr)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_stay_with_their_shard_when_the_client_moves() {
    for steer in [true, false] {
        let (servers, addr) = servers(3, steer);
        let config = DriverConfig::default();
        let (client, client_task) = start(client(socket("127.0.0.1:0", &SocketConfig::default())), &config);
        let mut conns = Vec::new();
        for _ in 0..6 {
            conns.push(exchange(&client, addr, 5000).await);
        }
        for _ in 0..3 {
            client.replace_socket(socket("127.0.0.1:0", &SocketConfig::default()));
            for conn in &conns {
                exchange_on(&client, *conn, 5000).await;
            }
        }
        let served: Vec<usize> =
            servers.handles().iter().map(|shard| shard.with(|_, echo| echo.connected.len())).collect();
        assert_eq!(served.iter().sum::<usize>(), 6, "no connection began anew: {served:?}");
        client.close(0, b"");
        client_task.await.unwrap().unwrap();
        servers.close(0, b"");
        servers.join().unwrap();
    }
}

/// They come in batches as others do, and between batches it is somebody else's turn.
#[tokio::test]
async fn datagrams_of_no_bytes_keep_nobody_waiting() {
    let handle = ShardHandle::new(server(socket("127.0.0.1:0", &SocketConfig::default())));
    let mut driver = Box::pin(Driver::new(&handle, DriverConfig::default()).unwrap());
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..400 {
        sender.send_to(&[], handle.local_addrs()[0]).unwrap();
    }
    let mut calls = 0;
    while calls < 20 {
        let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(driver.as_mut().poll(cx)));
        assert!(poll.await.is_pending());
        let now = handle.counters()[0].receive_calls;
        assert!(now <= calls + 1, "{calls}, {now}");
        calls = now;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(handle.counters()[0].runs_received, 0);
}
