//! Clients that have much held for them.

use super::*;
use crate::{ClientConfig, MemoryLimit, TransportConfig};
use bytes::Bytes;
use godwit_wire::Direction;

/// A client at an address, and its connection.
struct Client {
    endpoint: Endpoint,
    key: ConnKey,
    from: &'static str,
}

impl Client {
    /// Its handshake is over.
    fn connected(rig: &mut Rig, seed: u64, from: &'static str) -> Client {
        let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed)));
        let mut endpoint = Endpoint::new(EndpointConfig::new(secrets), None, Box::new(SeededRng::new(seed)));
        let tls = godwit_tls::deterministic::client_config(&[b"test"]);
        let config = ClientConfig::new(tls, Arc::new(TransportConfig::default()));
        let path = PathKey { socket: SocketId(0), local: None, remote: CLIENT.parse().unwrap() };
        let name = godwit_tls::deterministic::SERVER_NAME;
        let key = endpoint.connect(rig.now, &config, path, name, None).unwrap();
        let mut client = Client { endpoint, key, from };
        client.talk(rig);
        client
    }

    /// Until neither has anything to say.
    fn talk(&mut self, rig: &mut Rig) {
        for _ in 0..100 {
            let mut batch = SendBatch::new(1 << 20);
            while self.endpoint.transmit(rig.now, &mut batch) {}
            let said: Vec<_> = batch.datagrams().map(|(_, bytes)| bytes.to_vec()).collect();
            rig.now += Duration::from_millis(10);
            let mut answers: Vec<_> =
                said.iter().flat_map(|word| rig.receive_from(self.from, word)).collect();
            while let Some(key) = rig.endpoint.next_incoming() {
                let _ = rig.endpoint.accept(rig.now, key, None);
            }
            rig.endpoint.on_timeout(rig.now);
            answers.extend(rig.sent());
            if said.is_empty() && answers.is_empty() {
                return;
            }
            for (_, answer) in answers {
                let mut batch = RecvBatch::new(1, 65_536);
                assert!(batch.push_datagram(meta(CLIENT), &answer));
                self.endpoint.receive(rig.now, rig.wall(), &mut batch);
            }
            self.endpoint.on_timeout(rig.now);
        }
    }

    /// Has the server hold 200 KiB more, in streams that nobody reads.
    fn send(&mut self, rig: &mut Rig) {
        for _ in 0..4 {
            let Some(connection) = self.endpoint.connection_mut(self.key) else { return };
            let Some(stream) = connection.open(Direction::Unidirectional) else { return };
            assert_eq!(connection.write(stream, Bytes::from(vec![7; 50 << 10])), Ok(50 << 10));
            self.endpoint.touch(self.key);
            self.talk(rig);
        }
    }

    fn is_open(&self) -> bool {
        self.endpoint.connection(self.key).is_some_and(|connection| connection.is_open())
    }
}

#[test]
fn what_is_held_for_the_clients_of_a_network_is_limited_over_all_of_them() {
    let limit = MemoryLimit::new(2 << 20);
    let mut rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    let mut near: Vec<_> = (1..=5).map(|seed| Client::connected(&mut rig, seed, "198.51.100.1:7")).collect();
    near.iter_mut().for_each(|client| client.send(&mut rig));
    assert!(near.iter().all(Client::is_open));
    assert!(limit.held() > 900 << 10, "{}", limit.held());
    let mut one_more = Client::connected(&mut rig, 6, "198.51.100.200:7");
    assert!(one_more.is_open(), "who has nothing held is no burden");
    one_more.send(&mut rig);
    assert!(!one_more.is_open());
    let mut far = Client::connected(&mut rig, 7, "192.0.2.1:7");
    far.send(&mut rig);
    assert!(far.is_open() && near.iter().all(Client::is_open));
    drop(rig);
    assert_eq!(limit.held(), 0);
}
