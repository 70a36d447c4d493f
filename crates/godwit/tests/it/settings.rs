//! Settings that change while connections live. Where time has to pass, it is skipped.

use crate::polled::{Side, client, connect, server, until};
use crate::support::{Net, client_builder, client_config, on_every_net, server_builder};
use godwit::polled::{ConnKey, ConnectionError, Event, PolledEvent, TransportErrorCode};
use godwit::{ConnectionErrorKind, Direction, Endpoint, TransportConfig};
use std::time::Duration;

const BIDI: Direction = Direction::Bidirectional;

on_every_net! {
    a_server_takes_other_settings_for_new_clients,
    connections_can_be_limited_later,
    endpoints_of_one_builder_share_what_connections_may_hold,
}

async fn a_server_takes_other_settings_for_new_clients(net: Net) {
    let (server, client) = (net.server(), net.client());
    let addr = server.local_addr().unwrap();
    let connect = async |alpn| {
        let config = client_builder().alpn([alpn]).build().unwrap();
        let connecting = client.connect(&config, addr, "localhost").unwrap();
        let (ours, theirs) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        ours.map(|ours| (ours, theirs.unwrap()))
    };
    let (old, _old_peer) = connect("test").await.unwrap();
    let mut few = TransportConfig::default();
    few.max_uni_streams = 1;
    server.set_server_config(&server_builder().alpn(["next"]).transport(few).build().unwrap());
    let (new, new_peer) = connect("next").await.unwrap();
    let _first = new.open_uni().await.unwrap();
    let mut second = Box::pin(new.open_uni());
    let soon = tokio::time::timeout(Duration::from_millis(20), &mut second);
    assert!(soon.await.is_err(), "the new settings permit one stream");
    new_peer.set_max_streams(Direction::Unidirectional, 2);
    second.await.unwrap();
    let _many = [old.open_uni().await.unwrap(), old.open_uni().await.unwrap()];
    let connecting = client.connect(&client_config(), addr, "localhost").unwrap();
    let accepting = tokio::spawn(async move { server.accept().await.unwrap().await });
    assert_eq!(connecting.await.unwrap_err().kind(), ConnectionErrorKind::Tls);
    assert!(accepting.await.unwrap().is_err());
    assert!(old.close_reason().is_none());
}

async fn connections_can_be_limited_later(net: Net) {
    let (server, client) = (net.server(), net.client());
    let addr = server.local_addr().unwrap();
    let connecting = client.connect(&client_config(), addr, "localhost").unwrap();
    let (first, accepted) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    let (first, _accepted) = (first.unwrap(), accepted.unwrap());
    server.set_max_connections(1);
    let connecting = client.connect(&client_config(), addr, "localhost").unwrap();
    assert!(server.accept().await.unwrap().await.is_err());
    assert_eq!(connecting.await.unwrap_err().kind(), ConnectionErrorKind::Refused);
    client.set_max_connections(1);
    assert!(client.connect(&client_config(), addr, "localhost").is_err());
    assert!(first.close_reason().is_none());
}

async fn endpoints_of_one_builder_share_what_connections_may_hold(net: Net) {
    const LIMIT: u64 = 512 << 10;
    let mut roomy = TransportConfig::default();
    roomy.initial_stream_window = 1 << 20;
    let config = server_builder().transport(roomy).build().unwrap();
    let builder = net.builder().server(config).memory_limit(LIMIT);
    let (client, mut connections) = (net.client(), Vec::new());
    for server in [builder.clone(), builder].map(|builder| builder.build().unwrap()) {
        let connecting = client.connect(&client_config(), server.local_addr().unwrap(), "localhost").unwrap();
        let (ours, theirs) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        let mut stream = ours.open_uni().await.unwrap();
        // Nobody reads it. The clients of one network may not have more than the limit: one such stream is no burden, and two
        // are too much, before all is written perhaps.
        let _ = stream.write_all(&[7; 400 << 10]).await;
        connections.push((server, ours, theirs, stream));
    }
    let [(_, _, one, _), (_, _, other, _)] = &connections[..] else { unreachable!() };
    let error = tokio::select! {
        error = one.closed() => error,
        error = other.closed() => error,
    };
    assert_eq!(error.transport_code(), Some(TransportErrorCode::INTERNAL_ERROR.0), "{error:?}");
}

/// Polls both, skipping the time for which neither has anything to do, until one of them has something to tell or `time`
/// has passed.
fn skip(a: &mut Side, b: &mut Side, time: Duration) -> Duration {
    let (began, mut idle) = (a.now(), 0);
    while a.events.is_empty() && b.events.is_empty() && a.now() - began < time {
        a.poll();
        b.poll();
        let next = [a.until, b.until].into_iter().flatten().min().unwrap();
        let wait = next.saturating_duration_since(a.now());
        // What is on its way is not overtaken by time: loopback takes a moment at most.
        idle = if wait.is_zero() { 0 } else { idle + 1 };
        if idle > 3 {
            std::thread::sleep(Duration::from_millis(1));
            let wait = wait.min(time.saturating_sub(a.now() - began));
            a.ahead += wait;
            b.ahead += wait;
            idle = 0;
        }
    }
    a.now() - began
}

/// A client and a server that are connected, and have had nothing more to say for a second.
fn quiet_pair() -> (Side, Side, ConnKey, ConnKey) {
    let (mut client, mut server) = (client(), server());
    let (ours, theirs) = connect(&mut client, &mut server);
    let second = Duration::from_secs(1);
    while skip(&mut client, &mut server, second) < second {
        client.events.clear();
        server.events.clear();
    }
    (client, server, ours, theirs)
}

fn end(side: &mut Side) -> Option<ConnectionError> {
    side.events.drain(..).find_map(|event| match event {
        PolledEvent::Connection(_, Event::Closed { reason }) => Some(reason),
        _ => None,
    })
}

#[test]
fn a_connection_is_kept_alive_for_as_long_as_wanted() {
    let (mut client, mut server, ours, _) = quiet_pair();
    client.endpoint.connection(ours).unwrap().transport().0.set_keep_alive(Some(Duration::from_secs(10)));
    skip(&mut client, &mut server, Duration::from_secs(200));
    assert_eq!((end(&mut client), end(&mut server)), (None, None));
    client.endpoint.connection(ours).unwrap().transport().0.set_keep_alive(None);
    let survived = skip(&mut client, &mut server, Duration::from_secs(200));
    let ends = (end(&mut client), end(&mut server));
    // The idle timeout of 30 s began with the last PING, up to 10 s before.
    assert!(
        ends.0.or(ends.1) == Some(ConnectionError::TimedOut) && (19..31).contains(&survived.as_secs()),
        "{survived:?}"
    );
}

#[test]
fn an_idle_connection_is_closed_earlier_than_agreed_with_a_word() {
    let (mut client, mut server, ours, _) = quiet_pair();
    let mut connection = client.endpoint.connection(ours).unwrap();
    connection.transport().0.set_idle_limit(Some(Duration::from_secs(5)));
    drop(connection);
    let survived = skip(&mut client, &mut server, Duration::from_secs(200));
    assert!((2..6).contains(&survived.as_secs()), "{survived:?}");
    assert_eq!(end(&mut client), Some(ConnectionError::TimedOut));
    let told = until(&mut client, &mut server, |_, server| end(server));
    let ConnectionError::PeerTransport { code, .. } = told else { panic!("{told:?}") };
    assert_eq!(code, TransportErrorCode::NO_ERROR);
}

#[test]
fn the_peer_may_open_more_streams_later() {
    let mut transport = TransportConfig::default();
    transport.max_bidi_streams = 1;
    let config = server_builder().transport(transport).build().unwrap();
    let (mut client, mut server) = (client(), Side::new(Endpoint::builder().server(config)));
    let (ours, theirs) = connect(&mut client, &mut server);
    let mut connection = client.endpoint.connection(ours).unwrap();
    assert!(connection.open(BIDI).is_some() && connection.open(BIDI).is_none());
    drop(connection);
    server.endpoint.connection(theirs).unwrap().transport().0.set_max_streams(BIDI, 3);
    until(&mut client, &mut server, |client, _| {
        let event = PolledEvent::Connection(ours, Event::StreamsAvailable { direction: BIDI });
        client.events.contains(&event).then_some(())
    });
    let mut connection = client.endpoint.connection(ours).unwrap();
    assert!(connection.open(BIDI).is_some() && connection.open(BIDI).is_some());
    assert!(connection.open(BIDI).is_none());
}
