//! Endpoints that the test polls itself, without a runtime.

use crate::support::{client_builder, client_config, pattern, server_config};
use bytes::Bytes;
use godwit::polled::{ConnKey, ConnectionError, Event, PolledEndpoint, PolledEvent, ReadChunk, ReadError};
use godwit::{Direction, Endpoint, EndpointBuilder, MigrateError, PathState, TransportConfig};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// An endpoint, and what has happened there and was not looked at yet.
pub(crate) struct Side {
    pub(crate) endpoint: PolledEndpoint,
    pub(crate) events: VecDeque<PolledEvent>,
    /// How far its time is ahead of the clock.
    pub(crate) ahead: Duration,
    /// For when it wants to be polled.
    pub(crate) until: Option<Instant>,
}

impl Side {
    pub(crate) fn new(builder: EndpointBuilder) -> Self {
        let endpoint = builder.bind("127.0.0.1:0".parse().unwrap()).build_polled().unwrap();
        Side { endpoint, events: VecDeque::new(), ahead: Duration::ZERO, until: None }
    }

    #[expect(clippy::disallowed_methods, reason = "whoever polls reads the clock")]
    pub(crate) fn now(&self) -> Instant {
        Instant::now() + self.ahead
    }

    pub(crate) fn poll(&mut self) {
        let now = self.now();
        let events = &mut self.events;
        let wait = self.endpoint.poll(now, |_, event| events.push_back(event)).unwrap();
        self.until = wait.until;
        if wait.until.is_none() {
            assert!(self.endpoint.is_idle(), "only an idle endpoint waits for nothing but its sockets");
        }
    }

    fn connection_event(&mut self) -> Option<(ConnKey, Event)> {
        match self.events.pop_front()? {
            PolledEvent::Connection(key, event) => Some((key, event)),
            other => panic!("{other:?}"),
        }
    }
}

/// Polls both until `found` returns something.
pub(crate) fn until<R>(
    a: &mut Side,
    b: &mut Side,
    mut found: impl FnMut(&mut Side, &mut Side) -> Option<R>,
) -> R {
    loop {
        a.poll();
        b.poll();
        if let Some(found) = found(a, b) {
            return found;
        }
    }
}

pub(crate) fn server() -> Side {
    Side::new(Endpoint::builder().server(server_config()))
}

pub(crate) fn client() -> Side {
    Side::new(Endpoint::builder())
}

/// Connects them; the keys are the client's and the server's.
pub(crate) fn connect(client: &mut Side, server: &mut Side) -> (ConnKey, ConnKey) {
    let addr = server.endpoint.local_addr().unwrap();
    let ours = client.endpoint.connect(&client_config(), addr, "localhost").unwrap();
    let theirs = until(client, server, |_, server| match server.events.pop_front()? {
        PolledEvent::Incoming(key) => {
            assert_eq!(server.endpoint.incoming(key).unwrap().server_name(), Some("localhost"));
            Some(server.endpoint.accept(key).unwrap())
        }
        other => panic!("{other:?}"),
    });
    until(client, server, |client, server| {
        let is_connected =
            |side: &Side, key| side.events.contains(&PolledEvent::Connection(key, Event::Connected));
        (is_connected(client, ours) && is_connected(server, theirs)).then_some(())
    });
    (ours, theirs)
}

/// Reads what there is. True at the end of the stream.
fn read(side: &mut Side, key: ConnKey, id: godwit::StreamId, into: &mut Vec<u8>) -> bool {
    let mut connection = side.endpoint.connection(key).unwrap();
    loop {
        match connection.read(id, 10_000).unwrap() {
            ReadChunk::Data(data) => into.extend_from_slice(&data),
            ReadChunk::Finished => return true,
            ReadChunk::Blocked => return false,
        }
    }
}

#[test]
fn a_rebound_endpoint_takes_its_connections_along() {
    let (mut client, mut server) = (client(), server());
    let (ours, theirs) = connect(&mut client, &mut server);
    let first = client.endpoint.local_addr().unwrap();
    let second = client.endpoint.rebind("127.0.0.1:0".parse().unwrap()).unwrap();
    assert_eq!(client.endpoint.sockets().count(), 2);
    // Three probe timeouts after the move the old path is forgotten, and with it the socket.
    until(&mut client, &mut server, |client, _| (client.endpoint.sockets().count() == 1).then_some(()));
    assert_eq!(client.endpoint.local_addr().unwrap(), second);
    let moved = |event: &PolledEvent| {
        let PolledEvent::Connection(_, Event::Path(update)) = event else { return false };
        update.state == PathState::Active
    };
    assert!(client.events.iter().any(moved));
    let [path] = client.endpoint.paths(ours)[..] else { panic!("one path is left") };
    assert!(path.local == second && path.validated);
    // The server has followed, or does so with the next packet.
    until(&mut client, &mut server, |client, server| {
        client.endpoint.connection(ours).unwrap().ping();
        (server.endpoint.paths(theirs)[0].remote == second).then_some(())
    });
    assert_eq!(client.endpoint.migrate(ours, first), Err(MigrateError::NoSocket));
    assert_eq!(
        server.endpoint.migrate(theirs, server.endpoint.local_addr().unwrap()),
        Err(MigrateError::NotClient)
    );
}

#[test]
fn more_than_the_buffers_hold_goes_through() {
    let (mut client, mut server) = (client(), server());
    let (ours, theirs) = connect(&mut client, &mut server);
    let sent = pattern(1, 12 << 20);
    let mut unsent = Bytes::from(sent.clone());
    let id = client.endpoint.connection(ours).unwrap().open(Direction::Unidirectional).unwrap();
    let (mut received, mut refused) = (Vec::new(), 0);
    until(&mut client, &mut server, |client, server| {
        let mut connection = client.endpoint.connection(ours).unwrap();
        let writable = client
            .events
            .drain(..)
            .any(|event| event == PolledEvent::Connection(ours, Event::Writable { id }));
        if (writable || refused == 0) && !unsent.is_empty() {
            let taken = connection.write(id, unsent.clone()).unwrap();
            unsent = unsent.split_off(taken);
            refused += 1;
            if unsent.is_empty() {
                connection.finish(id).unwrap();
            }
        }
        drop(connection);
        let readable = server.events.drain(..).any(|event| {
            matches!(event, PolledEvent::Connection(_, Event::StreamOpened { .. } | Event::Readable { .. }))
        });
        if readable {
            server.endpoint.connection(theirs).unwrap().accept(Direction::Unidirectional);
            return read(server, theirs, id, &mut received).then_some(());
        }
        None
    });
    assert!(refused > 2, "the send buffer was never full");
    assert!(received == sent);
}

#[test]
fn what_had_come_can_be_read_when_the_connection_is_over() {
    let (mut client, mut server) = (client(), server());
    let (ours, theirs) = connect(&mut client, &mut server);
    server.events.clear();
    let mut connection = client.endpoint.connection(ours).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    assert_eq!(connection.write(id, Bytes::from_static(b"last words")), Ok(10));
    drop(connection);
    until(&mut client, &mut server, |_, server| (!server.events.is_empty()).then_some(()));
    client.endpoint.close(7, b"done");
    assert!(client.endpoint.connect(&client_config(), "127.0.0.1:1".parse().unwrap(), "localhost").is_err());
    let mut said = Vec::new();
    let reason = loop {
        client.poll();
        let mut over = None;
        #[expect(clippy::disallowed_methods, reason = "whoever polls reads the clock")]
        let now = Instant::now();
        let on_event = |endpoint: &mut PolledEndpoint, event| {
            if let PolledEvent::Connection(key, Event::Closed { reason }) = event {
                assert_eq!(key, theirs);
                let mut connection = endpoint.connection(key).unwrap();
                assert_eq!(connection.accept(Direction::Unidirectional), Some(id));
                while let Ok(ReadChunk::Data(data)) = connection.read(id, 3) {
                    said.extend_from_slice(&data);
                }
                over = Some(reason);
            }
        };
        server.endpoint.poll(now, on_event).unwrap();
        if let Some(reason) = over {
            break reason;
        }
    };
    assert_eq!(said, b"last words");
    assert!(matches!(reason, ConnectionError::PeerApplication { code: 7, .. }), "{reason:?}");
    until(&mut client, &mut server, |client, server| {
        (client.endpoint.is_idle() && server.endpoint.is_idle()).then_some(())
    });
    assert!(client.endpoint.connection(ours).is_none() && server.endpoint.connection(theirs).is_none());
}

#[test]
fn a_client_can_be_turned_away_and_a_stream_given_up() {
    let (mut client, mut server) = (client(), server());
    let addr = server.endpoint.local_addr().unwrap();
    let turned_away = client.endpoint.connect(&client_config(), addr, "localhost").unwrap();
    let (key, event) = until(&mut client, &mut server, |client, server| {
        if let Some(PolledEvent::Incoming(key)) = server.events.pop_front() {
            assert!(server.endpoint.refuse(key) && !server.endpoint.refuse(key));
        }
        client.connection_event()
    });
    assert!(key == turned_away && matches!(event, Event::Closed { .. }), "{event:?}");
    let (ours, theirs) = connect(&mut client, &mut server);
    let mut connection = server.endpoint.connection(theirs).unwrap();
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, Bytes::from_static(b"never mind")).unwrap();
    connection.reset(id, 9).unwrap();
    assert_eq!((connection.key(), connection.alpn()), (theirs, Some(&b"test"[..])));
    drop(connection);
    client.events.clear();
    until(&mut client, &mut server, |client, _| {
        let mut connection = client.endpoint.connection(ours)?;
        connection.accept(Direction::Bidirectional)
    });
    let mut connection = client.endpoint.connection(ours).unwrap();
    assert_eq!(connection.read(id, 100), Err(ReadError::Reset(9)));
}

#[test]
fn time_passes_only_as_the_caller_says() {
    let mut impatient = TransportConfig::default();
    impatient.handshake_timeout = Duration::from_secs(3600);
    let mut client = client();
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = client_builder().transport(impatient).build().unwrap();
    let ours = client.endpoint.connect(&config, nobody.local_addr().unwrap(), "localhost").unwrap();
    #[expect(clippy::disallowed_methods, reason = "whoever polls reads the clock")]
    let mut now = Instant::now();
    let began = now;
    let mut closed = false;
    // An hour of probes that nobody answers, in no time.
    while !closed {
        let wait = client.endpoint.poll(now, |_, event| {
            closed |= matches!(event, PolledEvent::Connection(key, Event::Closed { .. }) if key == ours);
        });
        now = wait.unwrap().until.unwrap_or(now).max(now);
    }
    assert!(now - began >= Duration::from_secs(30), "{:?}", now - began);
    let wait = client.endpoint.poll(now, |_, event| panic!("{event:?}")).unwrap();
    assert_eq!((wait.timeout(now), client.endpoint.is_idle()), (None, true));
}
