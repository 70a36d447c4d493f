//! Shards whose packets others protect, kept going by hand.
#![allow(missing_docs, reason = "tests")]

mod common;

use common::{ALPN, Echo, client, connect_with, request, server, transport};
use godwit_base::SocketId;
use godwit_datapath::memory::Hub;
use godwit_engine::{Clock, SealingThreads, Shard};
use godwit_transport::tls::deterministic;
use godwit_transport::{ClientConfig, CongestionAlgorithm, ConnKey, TransportConfig};
use std::net::SocketAddr;
use std::sync::Arc;

/// Turns both until `done`, sleeping until the next deadline where neither has anything to do.
fn run(a: &mut Shard<Echo>, b: &mut Shard<Echo>, mut done: impl FnMut(&mut Shard<Echo>) -> bool) {
    let clock = Clock::new();
    while !done(a) {
        let turns = [a.turn().unwrap(), b.turn().unwrap()];
        if !turns.iter().any(|turn| turn.more || turn.blocked.is_some()) {
            let deadline = turns.iter().filter_map(|turn| turn.deadline).min();
            deadline.into_iter().for_each(|at| std::thread::sleep(at.saturating_since(clock.now())));
        }
    }
}

/// A client and a server, both with `threads`, which are connected by queues of so many runs.
fn connected(threads: &SealingThreads, queue: usize) -> (Shard<Echo>, Shard<Echo>, ConnKey) {
    let addrs: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:443".parse().unwrap()];
    let hub = Hub::new(queue);
    let [near, far] = addrs.map(|addr| Box::new(hub.socket(SocketId(0), addr)));
    let mut client = client(near).with_sealing_threads(threads.clone());
    let mut server = server(far).with_sealing_threads(threads.clone());
    // It has a large window soon, where nothing is lost, and sends large runs.
    let mut config = TransportConfig::clone(&transport());
    config.congestion = CongestionAlgorithm::Cubic.into();
    let config = ClientConfig::new(deterministic::client_config(ALPN), Arc::new(config));
    let conn = client.with(|cx, _| connect_with(cx, addrs[1], &config));
    run(&mut client, &mut server, |client| client.with(|_, echo| echo.connected.contains(&conn)));
    (client, server, conn)
}

/// Has `len` bytes sent there and back, and returns how many runs others have protected.
fn transferred(threads: &SealingThreads, queue: usize, len: u64) -> u64 {
    let (mut client, mut server, conn) = connected(threads, queue);
    let id = client.with(|cx, echo| request(cx, echo, conn, len));
    run(&mut client, &mut server, |client| client.with(|_, echo| echo.streams[&(conn, id)].finished));
    client.with(|cx, echo| {
        let flow = &echo.streams[&(conn, id)];
        assert_eq!((flow.received, flow.correct), (len, true));
        let stats = cx.endpoint().connection(conn).unwrap().stats();
        assert_eq!(stats.packets_lost, 0, "nothing was lost or overtaken");
    });
    let blocked = client.counters()[0].send_blocked + server.counters()[0].send_blocked;
    assert!(queue > 100 || blocked > 0, "the socket was full now and then");
    client.report().runs_sealed_by_threads + server.report().runs_sealed_by_threads
}

/// Transfers until others have protected something: when a thread gets to run is not certain.
fn until_used(threads: &SealingThreads, queue: usize) {
    while transferred(threads, queue, 8_000_000) == 0 {}
}

#[test]
fn a_transfer_arrives_that_others_have_protected_in_part() {
    until_used(&SealingThreads::start(1).unwrap(), 1000);
}

#[test]
fn what_is_protected_waits_in_order_for_a_full_socket() {
    until_used(&SealingThreads::start(2).unwrap(), 3);
}

#[test]
fn little_is_not_given_to_others() {
    let threads = SealingThreads::start(1).unwrap();
    let (mut client, mut server, conn) = connected(&threads, 1000);
    for _ in 0..5 {
        let id = client.with(|cx, echo| request(cx, echo, conn, 10_000));
        run(&mut client, &mut server, |client| client.with(|_, echo| echo.streams[&(conn, id)].finished));
    }
    assert_eq!(client.report().runs_sealed_by_threads + server.report().runs_sealed_by_threads, 0);
}

#[test]
fn a_connection_that_is_closed_in_the_middle_of_a_transfer_is_over_at_both_ends() {
    let threads = SealingThreads::start(1).unwrap();
    let (mut client, mut server, conn) = connected(&threads, 3);
    let id = client.with(|cx, echo| request(cx, echo, conn, 50_000_000));
    run(&mut client, &mut server, |client| {
        client.with(|_, echo| echo.streams[&(conn, id)].received > 1_000_000)
    });
    client.with(|cx, _| {
        let now = cx.now();
        cx.endpoint_mut().close_all(now, 7, b"done");
    });
    run(&mut client, &mut server, |client| {
        client.with(|cx, echo| echo.closed == 1 && cx.endpoint().is_idle())
    });
    run(&mut server, &mut client, |server| {
        server.with(|cx, echo| echo.closed == 1 && cx.endpoint().is_idle())
    });
    drop(threads);
}
