//! What an endpoint is told by the application, and tells it.

use super::*;
use crate::{ClientConfig, ConnectError};
use godwit_tls::deterministic;
use std::error::Error;

fn path() -> PathKey {
    PathKey { socket: SocketId(0), local: None, remote: CLIENT.parse().unwrap() }
}

impl Rig {
    fn connect(&mut self) -> Result<ConnKey, ConnectError> {
        let config = ClientConfig::new(deterministic::client_config(&[b"test"]), Arc::default());
        self.endpoint.connect(self.now, &config, path(), deterministic::SERVER_NAME, None)
    }

    fn accept(&mut self, n: u8) -> ConnKey {
        self.receive(&first_initial(n));
        let key = self.endpoint.next_incoming().unwrap();
        let conn = self.endpoint.accept(self.now, key, None).unwrap();
        self.sent();
        conn
    }

    /// Takes a connection out.
    fn end(&mut self, key: ConnKey) {
        self.endpoint.on_endpoint_event(key, EndpointEvent::Drained);
        self.endpoint.settle(key);
        while self.endpoint.next_event().is_some() {}
        assert!(self.endpoint.connection(key).is_none());
    }
}

#[test]
fn keys_are_numbers_and_small_indices_of_which_none_comes_twice() {
    let mut rig = Rig::new(false);
    let keys = [0; 3].map(|_| rig.connect().unwrap());
    assert_eq!(keys.map(ConnKey::index), [0, 1, 2]);
    assert_eq!(keys.map(ConnKey::as_u64), [0, 1, 2]);
    rig.end(keys[1]);
    let again = rig.connect().unwrap();
    assert_eq!((again.index(), again.as_u64()), (1, 1 << 32 | 1), "the place is used again, the key is not");
    for key in [keys[0], keys[2], again] {
        assert_eq!(ConnKey::from_u64(key.as_u64()), key);
        assert!(rig.endpoint.connection(ConnKey::from_u64(key.as_u64())).is_some());
    }
    assert!(rig.endpoint.connection(ConnKey::from_u64(1)).is_none());
}

#[test]
fn the_versions_are_those_of_the_configuration_in_their_order() {
    let versions = vec![version::V2, version::V1];
    let rig = Rig::with(false, |config| config.versions = versions.clone());
    assert_eq!(rig.endpoint.versions(), versions);
}

#[test]
fn without_a_server_configuration_nobody_is_heard_until_there_is_one_again() {
    let mut rig = Rig::new(false);
    let server = rig.endpoint.server.clone();
    rig.endpoint.set_server_config(None);
    assert!(rig.receive(&first_initial(1)).is_empty() && rig.endpoint.next_incoming().is_none());
    rig.endpoint.set_server_config(server);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    rig.endpoint.set_server_config(None);
    assert_eq!(rig.endpoint.accept(rig.now, key, None), Err(AcceptError::NoConfig));
    assert!(rig.endpoint.incoming(key).is_some(), "it can be decided with another");
}

#[test]
fn how_many_are_let_in_without_proof_can_be_changed() {
    let mut rig = Rig::with(false, |config| config.handshakes_before_retry = 0);
    retry_of(&rig.receive(&first_initial(1))[0]);
    assert!(rig.endpoint.demands_proof());
    rig.endpoint.set_handshakes_before_retry(1);
    assert!(!rig.endpoint.demands_proof());
    assert!(rig.receive(&first_initial(1)).is_empty());
    assert_eq!(rig.endpoint.incoming.len(), 1);
    retry_of(&rig.receive(&first_initial(2))[0]);
    assert_eq!(rig.endpoint.incoming.len(), 1, "what waits counts");
    assert!(rig.endpoint.demands_proof());
}

#[test]
fn how_many_connections_there_may_be_can_be_changed() {
    let mut rig = Rig::with(false, |config| config.max_connections = 1);
    rig.connect().unwrap();
    assert_eq!(rig.connect(), Err(ConnectError::TooManyConnections));
    rig.endpoint.set_max_connections(2);
    rig.connect().unwrap();
    assert_eq!(rig.connect(), Err(ConnectError::TooManyConnections));
    rig.endpoint.set_max_connections(0);
    assert_eq!(rig.endpoint.connections(), 2, "those that exist stay");
}

#[test]
fn an_endpoint_is_idle_that_has_neither_connections_nor_handshakes_nor_anything_to_send() {
    let mut rig = Rig::new(false);
    assert!(rig.endpoint.is_idle());
    rig.receive(&first_initial(1));
    assert!(!rig.endpoint.is_idle() && rig.endpoint.has_incoming(), "a handshake waits");
    let key = rig.endpoint.next_incoming().unwrap();
    let conn = rig.endpoint.accept(rig.now, key, None).unwrap();
    rig.sent();
    assert!(!rig.endpoint.is_idle() && !rig.endpoint.has_incoming(), "there is a connection");
    rig.end(conn);
    rig.sent();
    assert!(rig.endpoint.is_idle());
    rig.endpoint.outbox.push(&path(), Some(vec![1; 10]));
    assert!(!rig.endpoint.is_idle(), "there is something to send");
    assert_eq!(rig.sent(), [(CLIENT.parse().unwrap(), vec![1; 10])]);
    assert!(rig.endpoint.is_idle());
}

#[test]
fn datagrams_of_the_endpoints_own_are_256_at_most() {
    let mut rig = Rig::new(false);
    for n in 0..300 {
        assert_eq!(rig.endpoint.outbox.is_full(), n >= 256, "{n}");
        rig.endpoint.outbox.push(&path(), Some(vec![1; 10]));
    }
    assert_eq!(rig.sent().len(), 256);
    assert!(!rig.endpoint.outbox.is_full());
}

#[test]
fn that_a_path_was_left_is_told_once() {
    let mut rig = Rig::new(false);
    let conn = rig.connect().unwrap();
    assert!(!rig.endpoint.take_paths_left());
    for event in [EndpointEvent::PathLeft, EndpointEvent::Drained] {
        rig.endpoint.on_endpoint_event(conn, event);
        assert!(rig.endpoint.take_paths_left() && !rig.endpoint.take_paths_left());
    }
}

#[test]
fn a_socket_is_used_that_a_connection_has_a_path_on() {
    let mut rig = Rig::new(false);
    assert!(!rig.endpoint.uses_socket(SocketId(0)));
    rig.connect().unwrap();
    assert!(rig.endpoint.uses_socket(SocketId(0)) && !rig.endpoint.uses_socket(SocketId(1)));
}

#[test]
fn there_is_something_for_others_until_it_is_fetched() {
    let mut rig = Rig::new(false);
    let dcid = Rig::with(false, |config| config.shard = 5).forgotten_cid();
    assert!(!rig.endpoint.has_foreign());
    rig.receive(&short_packet(&dcid, 100));
    assert!(rig.endpoint.has_foreign());
    assert_eq!(rig.foreign().len(), 1);
    assert!(!rig.endpoint.has_foreign());
}

#[test]
fn an_id_that_is_taken_is_not_given_again() {
    let mut rig = Rig::new(false);
    let conn = rig.connect().unwrap();
    let mut rng = SeededRng::new(5);
    let [first, second, third] = [0; 3].map(|_| rig.endpoint.codec.issue(&mut rng));
    let fresh = |rig: &mut Rig| {
        rig.endpoint.rng = Box::new(SeededRng::new(5));
        rig.endpoint.fresh_cid(&Shown::default())
    };
    assert_eq!(fresh(&mut rig), first);
    rig.endpoint.demux.insert_issued(first, conn);
    assert_eq!(fresh(&mut rig), second);
    rig.endpoint.demux.insert_initial(second, demux::Target::Connection(conn));
    assert_eq!(fresh(&mut rig), third);
}

#[test]
fn the_time_of_day_goes_on_between_batches_and_not_back() {
    let mut rig = Rig::new(false);
    let (now, wall) = (rig.now, rig.wall());
    rig.endpoint.set_time(now, wall);
    rig.endpoint.on_timeout(now + Duration::from_secs(5));
    let clock = |rig: &Rig| (rig.endpoint.clock.at, rig.endpoint.clock.wall);
    let later = (now + Duration::from_secs(5), wall + Duration::from_secs(5));
    assert_eq!(clock(&rig), later);
    rig.endpoint.on_timeout(now);
    assert_eq!(clock(&rig), later);
}

#[test]
fn a_preferred_address_comes_with_an_id_for_there() {
    for (preferred, ids) in [(None, 1), (Some("203.0.113.5:443".parse().unwrap()), 2)] {
        let mut rig = Rig::new(false);
        let mut server = (**rig.endpoint.server.as_ref().unwrap()).clone();
        Arc::make_mut(&mut server.transport).migration.preferred_address = (preferred, None);
        rig.receive(&first_initial(1));
        let key = rig.endpoint.next_incoming().unwrap();
        let conn = rig.endpoint.accept(rig.now, key, Some(Arc::new(server))).unwrap();
        let cids = &rig.endpoint.slots.get(conn.0).unwrap().cids;
        assert_eq!(cids.len(), ids);
        let found = |cid: &ConnectionId| rig.endpoint.demux.find(cid, false);
        assert!(cids.iter().all(|cid| found(cid) == Some(demux::Target::Connection(conn))));
    }
}

#[test]
fn an_endpoint_says_how_many_connections_it_has_and_no_secrets() {
    let mut rig = Rig::new(false);
    rig.connect().unwrap();
    rig.accept(1);
    assert_eq!(format!("{:?}", rig.endpoint), "Endpoint { connections: 2, .. }");
}

#[test]
fn errors_of_accepting_say_what_is_wrong_and_why() {
    let why = ConnectError::Tls("no certificate".to_owned());
    let config = AcceptError::Config(why.clone());
    assert_eq!(
        [&AcceptError::Gone, &AcceptError::NoConfig, &AcceptError::TooManyConnections, &config]
            .map(ToString::to_string),
        [
            "the incoming handshake is gone",
            "the endpoint has no server configuration",
            "the endpoint is at its limit of connections",
            "the server configuration cannot be used: TLS configuration: no certificate",
        ]
    );
    let source = config.source().unwrap();
    assert_eq!(source.downcast_ref::<ConnectError>(), Some(&why));
    assert!(AcceptError::Gone.source().is_none());
}
