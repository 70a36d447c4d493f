//! Shards kept going by hand, over a network in memory.
#![allow(missing_docs, reason = "tests")]

mod common;

use common::{client, connect, request, server};
use godwit_base::{RecvBatch, SendBatch, SocketId};
use godwit_datapath::memory::{Hub, MemorySocket};
use godwit_datapath::{Capabilities, Counters, Datapath, Progress, Received, Sent, SocketConfig, bind};
use godwit_engine::{Clock, OtherProcesses, Shard, ShardHandle, TakenIn, poll_turn};
use godwit_transport::Foreign;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Turns both until `done`, sleeping until the next deadline where neither has anything to do.
fn run(
    a: &mut Shard<common::Echo>,
    b: &mut Shard<common::Echo>,
    mut done: impl FnMut(&mut Shard<common::Echo>) -> bool,
) {
    let clock = Clock::new();
    let mut idle = 0;
    while !done(a) {
        let turns = [a.turn().unwrap(), b.turn().unwrap()];
        idle = if turns.iter().any(|turn| turn.more || turn.blocked.is_some()) { 0 } else { idle + 1 };
        if idle > 3 {
            let deadline = turns.iter().filter_map(|turn| turn.deadline).min().expect("something is awaited");
            std::thread::sleep(deadline.saturating_since(clock.now()));
            idle = 0;
        }
    }
}

#[test]
fn an_exchange_without_a_runtime() {
    // Few slots, so that the senders are blocked again and again.
    let addrs: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:443".parse().unwrap()];
    let hub = Hub::new(2);
    let mut client = client(Box::new(hub.socket(SocketId(0), addrs[0])));
    let mut server = server(Box::new(hub.socket(SocketId(0), addrs[1])));
    let conn = client.with(|cx, _| connect(cx, addrs[1]));
    run(&mut client, &mut server, |client| client.with(|_, echo| echo.connected.contains(&conn)));
    let len = 3_000_000;
    let id = client.with(|cx, echo| request(cx, echo, conn, len));
    run(&mut client, &mut server, |client| client.with(|_, echo| echo.streams[&(conn, id)].finished));
    client.with(|_, echo| {
        let flow = &echo.streams[&(conn, id)];
        assert_eq!((flow.received, flow.correct), (len, true));
    });
    assert!(client.counters()[0].send_blocked + server.counters()[0].send_blocked > 0);
    client.with(|cx, _| {
        let now = cx.now();
        cx.endpoint_mut().close_all(now, 7, b"done");
    });
    run(&mut client, &mut server, |client| {
        client.with(|cx, echo| echo.closed == 1 && cx.endpoint().is_idle())
    });
}

/// A probe timeout is due, and again, while the socket takes nothing.
#[test]
fn what_is_due_on_a_full_socket_is_no_reason_to_hurry() {
    let addrs: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:443".parse().unwrap()];
    let hub = Hub::new(1);
    let mut client = client(Box::new(hub.socket(SocketId(0), addrs[0])));
    let _deaf = hub.socket(SocketId(0), addrs[1]);
    client.with(|cx, _| connect(cx, addrs[1]));
    let begin = Clock::new().now();
    let mut blocked = 0;
    for millis in (0..9_000).step_by(100) {
        let now = begin + Duration::from_millis(millis);
        let mut nothing = |client: &mut Shard<common::Echo>| client.next_event().is_some();
        let turn = poll_turn(&mut client, |client| client, now, &mut nothing).unwrap();
        if turn.blocked.is_some() {
            blocked += 1;
            assert!(!turn.more && turn.deadline.is_some_and(|deadline| deadline > now), "{millis}: {turn:?}");
        }
    }
    assert!(blocked > 50, "{blocked}");
}

/// Counts how often something is sent.
#[derive(Debug)]
struct Counting {
    socket: MemorySocket,
    sends: Arc<AtomicUsize>,
}

impl Datapath for Counting {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        self.socket.receive(batch)
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        self.sends.fetch_add(1, Relaxed);
        self.socket.send(batch, progress)
    }

    fn id(&self) -> SocketId {
        self.socket.id()
    }

    fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        self.socket.capabilities()
    }

    fn counters(&self) -> Counters {
        self.socket.counters()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }
}

/// Can wait for datagrams, and counts how often it was asked to, and how often for what is there.
#[derive(Debug)]
struct Patient {
    socket: MemorySocket,
    waits: Arc<AtomicUsize>,
    looks: Arc<AtomicUsize>,
}

impl Datapath for Patient {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        self.looks.fetch_add(1, Relaxed);
        self.socket.receive(batch)
    }

    fn receive_within(&mut self, batch: &mut RecvBatch, _: Duration) -> io::Result<Option<Received>> {
        self.waits.fetch_add(1, Relaxed);
        self.socket.receive(batch).map(Some)
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        self.socket.send(batch, progress)
    }

    fn id(&self) -> SocketId {
        self.socket.id()
    }

    fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        self.socket.capabilities()
    }

    fn counters(&self) -> Counters {
        self.socket.counters()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }
}

#[cfg(unix)]
#[test]
fn what_came_while_waiting_is_taken_in_without_looking_for_more() {
    let addrs: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:443".parse().unwrap()];
    let hub = Hub::new(64);
    let (waits, looks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let socket = hub.socket(SocketId(0), addrs[1]);
    let socket = Patient { socket, waits: Arc::clone(&waits), looks: Arc::clone(&looks) };
    let (mut client, mut server) =
        (client(Box::new(hub.socket(SocketId(0), addrs[0]))), server(Box::new(socket)));
    client.with(|cx, _| connect(cx, addrs[1]));
    client.turn().unwrap();
    let clock = Clock::new();
    server.wait(Some(clock.now()), None).unwrap();
    assert_eq!(waits.load(Relaxed), 0, "the time has come");
    server.wait(None, None).unwrap();
    server.wait(None, None).unwrap();
    assert_eq!(waits.load(Relaxed), 1, "what has come is to be taken in first");
    let turn = server.turn().unwrap();
    assert_eq!((looks.load(Relaxed), turn.more), (0, false));
    assert!(server.counters()[0].datagrams_sent > 0, "it was answered");
    server.turn().unwrap();
    assert_eq!(looks.load(Relaxed), 1);
}

#[cfg(unix)]
#[test]
fn a_data_path_without_a_socket_is_not_waited_for_in_vain() {
    let hub = Hub::new(64);
    let mut server = server(Box::new(hub.socket(SocketId(0), "10.0.0.2:443".parse().unwrap())));
    assert_eq!(server.wait(None, None).unwrap_err().kind(), io::ErrorKind::Unsupported);
}

#[cfg(unix)]
#[test]
fn what_another_process_receives_is_not_waited_for() {
    let (waits, looks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let socket = Hub::new(2).socket(SocketId(0), "10.0.0.2:443".parse().unwrap());
    let socket = Patient { socket, waits: Arc::clone(&waits), looks };
    let mut server = server(Box::new(socket)).sharing_with(Box::new(Damaged(Arc::default())));
    assert_eq!(server.wait(None, None).unwrap_err().kind(), io::ErrorKind::Unsupported);
    assert_eq!(waits.load(Relaxed), 0);
}

/// Another call may have taken the socket's error, and left in the queue what explains it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_left_in_an_error_queue_ends_one_wait_and_no_more() {
    let any = "127.0.0.1:0".parse().unwrap();
    let mut config = SocketConfig::default();
    config.report_unreachable = true;
    let socket = bind(SocketId(0), any, &config).unwrap();
    let same = socket.socket().unwrap().try_clone().unwrap();
    let nobody = UdpSocket::bind(any).unwrap().local_addr().unwrap();
    same.send_to(b"nobody takes this", nobody).unwrap();
    while same.take_error().unwrap().is_none() {}
    let mut server = server(socket);
    server.wait(None, None).unwrap();
    let clock = Clock::new();
    let until = clock.now() + Duration::from_millis(30);
    server.wait(Some(until), None).unwrap();
    assert!(clock.now() >= until);
}

/// TLS takes long: what it has produced does not wait until the next connection has had it work as long.
#[test]
fn each_flight_of_a_handshake_leaves_before_the_next_one_is_made() {
    let addrs: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:443".parse().unwrap()];
    let hub = Hub::new(64);
    let sends = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
    let socket = |at: usize| {
        let (socket, sends) = (hub.socket(SocketId(0), addrs[at]), Arc::clone(&sends[at]));
        Box::new(Counting { socket, sends })
    };
    let (mut client, mut server) = (client(socket(0)), server(socket(1)));
    client.with(|cx, _| [0; 3].map(|_| connect(cx, addrs[1])));
    client.turn().unwrap();
    server.turn().unwrap();
    assert_eq!(sends[1].load(Relaxed), 3, "each of the server's flights by itself");
    for completed in 1..=3 {
        let before = sends[0].load(Relaxed);
        let turn = client.turn().unwrap();
        assert_eq!(client.with(|_, echo| echo.connected.len()), completed);
        assert!(sends[0].load(Relaxed) > before, "its Finished has left");
        assert!(completed == 3 || turn.more);
    }
}

#[tokio::test]
async fn who_begins_a_connection_sends_its_first_packet_at_once() {
    let addrs: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:443".parse().unwrap()];
    let hub = Hub::new(64);
    let mut there = hub.socket(SocketId(0), addrs[1]);
    let client = ShardHandle::new(client(Box::new(hub.socket(SocketId(0), addrs[0]))));
    for _ in 0..2 {
        client.with(|cx, _| connect(cx, addrs[1]));
        let mut batch = RecvBatch::new(8, 2000);
        assert_eq!(there.receive(&mut batch).unwrap().runs, 1, "there is no driver that would send it");
    }
}

/// Says that it has sent everything, and does not say how far it came.
#[derive(Debug, Default)]
struct Forgetful {
    calls: u64,
}

impl Datapath for Forgetful {
    fn receive(&mut self, _: &mut RecvBatch) -> io::Result<Received> {
        Ok(Received::default())
    }

    fn send(&mut self, _: &SendBatch, _: &mut Progress) -> io::Result<Sent> {
        self.calls += 1;
        assert!(self.calls < 1_000, "it is asked again and again");
        Ok(Sent::Done)
    }

    fn id(&self) -> SocketId {
        SocketId(0)
    }

    fn local_addr(&self) -> SocketAddr {
        "10.0.0.1:1000".parse().unwrap()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("forgetful")
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }
}

#[test]
fn a_data_path_that_does_not_say_how_far_it_came_holds_up_no_turn() {
    let mut client = client(Box::new(Forgetful::default()));
    client.with(|cx, _| connect(cx, "10.0.0.2:443".parse().unwrap()));
    let turn = client.turn().unwrap();
    assert!(turn.blocked.is_none() && turn.deadline.is_some(), "{turn:?}");
}

/// Can keep departure times, or not, and counts how often it was asked to.
#[derive(Debug)]
struct Timed {
    id: SocketId,
    can: bool,
    asked: Arc<AtomicUsize>,
}

fn timed(id: u32, can: bool) -> (Box<dyn Datapath>, Arc<AtomicUsize>) {
    let asked = Arc::default();
    (Box::new(Timed { id: SocketId(id), can, asked: Arc::clone(&asked) }), asked)
}

impl Datapath for Timed {
    fn receive(&mut self, _: &mut RecvBatch) -> io::Result<Received> {
        Ok(Received::default())
    }

    fn send(&mut self, _: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        progress.finish_run();
        Ok(Sent::Done)
    }

    fn id(&self) -> SocketId {
        self.id
    }

    fn local_addr(&self) -> SocketAddr {
        "10.0.0.1:1000".parse().unwrap()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new("timed");
        capabilities.departure_times = self.can;
        capabilities
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn keep_departure_times(&mut self, zero: i64) {
        // The engine counts from an hour before it was started.
        assert!(zero > -3_700_000_000_000, "{zero}");
        self.asked.fetch_add(1, Relaxed);
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }
}

#[test]
fn departure_times_are_used_where_every_socket_keeps_them() {
    let (able, asked) = timed(0, true);
    let mut shard = client(able);
    assert_eq!(asked.load(Relaxed), 1);
    let (unable, never_asked) = timed(1, false);
    shard.replace_socket(unable);
    assert_eq!((asked.load(Relaxed), never_asked.load(Relaxed)), (1, 0));
    let (able, asked_as_well) = timed(1, true);
    shard.replace_socket(able);
    assert_eq!((asked.load(Relaxed), asked_as_well.load(Relaxed)), (2, 1));
}

/// Another process, whose relay is damaged.
#[derive(Debug)]
struct Damaged(Arc<AtomicUsize>);

impl OtherProcesses for Damaged {
    fn hand_on(&self, _: &Foreign, _: Duration, _: &[u8]) -> Option<bool> {
        None
    }

    fn take_in(&mut self, _: &mut RecvBatch) -> io::Result<TakenIn> {
        self.0.fetch_add(1, Relaxed);
        Err(io::ErrorKind::ConnectionReset.into())
    }

    fn on_receiving(&mut self) {}

    #[cfg(unix)]
    fn readiness(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

#[test]
fn a_relay_that_cannot_be_read_costs_no_shard() {
    let address: SocketAddr = "10.0.0.2:443".parse().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let socket = Hub::new(2).socket(SocketId(0), address);
    let mut server = server(Box::new(socket)).sharing_with(Box::new(Damaged(Arc::clone(&asked))));
    for _ in 0..3 {
        server.turn().unwrap();
    }
    assert_eq!(asked.load(Relaxed), 1, "and it is not asked again");
}
