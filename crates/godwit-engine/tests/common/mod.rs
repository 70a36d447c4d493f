//! An application for tests: the server sends back what it gets, the client sends a pattern and checks it.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "tests, each of which uses some of it")]

use bytes::Bytes;
use godwit_base::SocketId;
use godwit_datapath::{Datapath, SocketConfig, bind};
use godwit_engine::{Handler, OsRng, Shard, ShardCx, ShardHandle, Stopped};
use godwit_transport::tls::deterministic;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{
    ClientConfig, ConnKey, Direction, Endpoint, EndpointConfig, Event, ServerConfig, StreamId,
    TransportConfig,
};
use godwit_transport::{ReadChunk, ReadError};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::task::{Poll, Waker};

pub const ALPN: &[&[u8]] = &[b"echo"];

/// Both sides of an echo, told apart by who opened the stream.
#[derive(Debug, Default)]
pub struct Echo {
    pub streams: BTreeMap<(ConnKey, StreamId), Flow>,
    pub connected: Vec<ConnKey>,
    pub closed: usize,
    pub stopped: Option<Stopped>,
    pub wakers: Vec<Waker>,
    /// It panics over the next stream that a peer opens.
    pub panics: bool,
}

#[derive(Debug, Default)]
pub struct Flow {
    pub received: u64,
    pub finished: bool,
    pub correct: bool,
    to_send: VecDeque<Bytes>,
    finish: bool,
}

/// Byte `at` of the pattern.
fn pattern(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

pub fn pattern_bytes(len: u64) -> Bytes {
    (0..len).map(pattern).collect()
}

impl Echo {
    fn pump(&mut self, cx: &mut ShardCx<'_>, conn: ConnKey, id: StreamId) {
        let Some(flow) = self.streams.get_mut(&(conn, id)) else { return };
        cx.endpoint_mut().with(conn, |connection| {
            while let Some(chunk) = flow.to_send.front_mut() {
                match connection.write(id, chunk.clone()) {
                    Ok(accepted) if accepted == chunk.len() => drop(flow.to_send.pop_front()),
                    Ok(0) | Err(_) => return,
                    Ok(accepted) => *chunk = chunk.slice(accepted..),
                }
            }
            if flow.finish && connection.finish(id).is_ok() {
                flow.finish = false;
            }
        });
    }

    fn drain(&mut self, cx: &mut ShardCx<'_>, conn: ConnKey, id: StreamId, echo: bool) {
        let now = cx.now();
        let flow =
            self.streams.entry((conn, id)).or_insert_with(|| Flow { correct: true, ..Flow::default() });
        cx.endpoint_mut().with(conn, |connection| {
            loop {
                match connection.read(now, id, 1 << 16) {
                    Ok(ReadChunk::Data(data)) => {
                        let expected = (flow.received..).zip(&data).all(|(at, byte)| *byte == pattern(at));
                        flow.correct &= expected;
                        flow.received += data.len() as u64;
                        if echo {
                            flow.to_send.push_back(data);
                        }
                    }
                    Ok(ReadChunk::Finished) => {
                        flow.finished = true;
                        flow.finish = echo;
                        return;
                    }
                    Ok(ReadChunk::Blocked) | Err(ReadError::Reset(_)) | Err(_) => return,
                }
            }
        });
        self.pump(cx, conn, id);
    }
}

impl Handler for Echo {
    fn on_event(&mut self, cx: &mut ShardCx<'_>, conn: ConnKey, event: Event) {
        match event {
            Event::Connected => self.connected.push(conn),
            Event::StreamOpened { direction } => {
                assert!(!std::mem::take(&mut self.panics), "as the test asked");
                while let Some(id) = cx.endpoint_mut().with(conn, |c| c.accept(direction)).flatten() {
                    self.drain(cx, conn, id, true);
                }
            }
            Event::Readable { id } => {
                let echo = !is_client(cx, conn);
                self.drain(cx, conn, id, echo);
            }
            Event::Writable { id } => self.pump(cx, conn, id),
            Event::Closed { .. } => {
                self.closed += 1;
                self.streams.retain(|(owner, _), _| *owner != conn || is_client(cx, conn));
            }
            _ => {}
        }
        self.wakers.drain(..).for_each(|waker| cx.wake(waker));
    }

    fn on_stopped(&mut self, cx: &mut ShardCx<'_>, why: &Stopped) {
        assert!(self.stopped.is_none(), "told once");
        self.stopped = Some(why.clone());
        self.wakers.drain(..).for_each(|waker| cx.wake(waker));
    }
}

fn is_client(cx: &ShardCx<'_>, conn: ConnKey) -> bool {
    cx.endpoint().connection(conn).is_some_and(|c| c.side() == godwit_transport::Side::Client)
}

/// Waits until `ready` finds what it looks for.
pub async fn wait_for<R>(
    handle: &ShardHandle<Echo>,
    mut ready: impl FnMut(&mut ShardCx<'_>, &mut Echo) -> Option<R>,
) -> R {
    poll_fn(|task| {
        handle.with(|cx, echo| match ready(cx, echo) {
            Some(found) => Poll::Ready(found),
            None => {
                echo.wakers.push(task.waker().clone());
                Poll::Pending
            }
        })
    })
    .await
}

pub fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_mtu = 1472;
    Arc::new(transport)
}

/// The secrets that all shards of this process share.
pub fn secrets() -> Arc<ServerSecrets> {
    static SECRETS: LazyLock<Arc<ServerSecrets>> =
        LazyLock::new(|| Arc::new(ServerSecrets::from_rng(&mut OsRng::new())));
    Arc::clone(&SECRETS)
}

pub fn endpoint_config(shard: u8) -> EndpointConfig {
    let mut config = EndpointConfig::new(secrets());
    config.shard = shard;
    config.max_connections = 1000;
    config.max_incoming = 100;
    config.versions = vec![1];
    config
}

pub fn server_endpoint(shard: u8) -> Endpoint {
    let server = ServerConfig::new(deterministic::server_config(ALPN), transport());
    Endpoint::new(endpoint_config(shard), Some(Arc::new(server)), Box::new(OsRng::new()))
}

pub fn client_endpoint() -> Endpoint {
    Endpoint::new(endpoint_config(0), None, Box::new(OsRng::new()))
}

pub fn client_config() -> ClientConfig {
    ClientConfig::new(deterministic::client_config(ALPN), transport())
}

pub fn socket(addr: &str, config: &SocketConfig) -> Box<dyn Datapath> {
    bind(SocketId(0), addr.parse().unwrap(), config).unwrap()
}

pub fn server(socket: Box<dyn Datapath>) -> Shard<Echo> {
    Shard::new(server_endpoint(0), vec![socket], Echo::default())
}

pub fn client(socket: Box<dyn Datapath>) -> Shard<Echo> {
    Shard::new(client_endpoint(), vec![socket], Echo::default())
}

pub fn connect(cx: &mut ShardCx<'_>, remote: SocketAddr) -> ConnKey {
    connect_with(cx, remote, &client_config())
}

pub fn connect_with(cx: &mut ShardCx<'_>, remote: SocketAddr, config: &ClientConfig) -> ConnKey {
    let (now, path) = (cx.now(), cx.path_to(remote).unwrap());
    cx.endpoint_mut().connect(now, config, path, deterministic::SERVER_NAME, None).unwrap()
}

/// Opens a stream and sends `len` bytes of the pattern on it.
pub fn request(cx: &mut ShardCx<'_>, echo: &mut Echo, conn: ConnKey, len: u64) -> StreamId {
    let id = cx.endpoint_mut().with(conn, |c| c.open(Direction::Bidirectional)).flatten().unwrap();
    let to_send = VecDeque::from([pattern_bytes(len)]);
    echo.streams.insert((conn, id), Flow { correct: true, to_send, finish: true, ..Flow::default() });
    echo.pump(cx, conn, id);
    id
}

/// Connects, has `len` bytes sent back, and checks them.
pub async fn exchange(handle: &ShardHandle<Echo>, remote: SocketAddr, len: u64) -> ConnKey {
    let conn = connected(handle, remote, &client_config()).await;
    exchange_on(handle, conn, len).await;
    conn
}

/// Connects.
pub async fn connected(handle: &ShardHandle<Echo>, remote: SocketAddr, config: &ClientConfig) -> ConnKey {
    let conn = handle.with(|cx, _| connect_with(cx, remote, config));
    wait_for(handle, |_, echo| echo.connected.contains(&conn).then_some(())).await;
    conn
}

/// Has `len` bytes sent back over a connection, and checks them.
pub async fn exchange_on(handle: &ShardHandle<Echo>, conn: ConnKey, len: u64) {
    let id = handle.with(|cx, echo| request(cx, echo, conn, len));
    let flow = wait_for(handle, |_, echo| {
        let finished = echo.streams.get(&(conn, id)).is_some_and(|flow| flow.finished);
        finished.then(|| echo.streams.remove(&(conn, id))).flatten()
    })
    .await;
    assert_eq!((flow.received, flow.correct), (len, true));
}
