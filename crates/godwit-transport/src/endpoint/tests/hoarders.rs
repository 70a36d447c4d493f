//! Clients that have much held for them.

use super::*;
use crate::{ClientConfig, MemoryLimit, ReadChunk, StreamId, TransportConfig};
use bytes::Bytes;
use godwit_wire::Direction;

/// A client at an address, and its connection.
struct Client {
    endpoint: Endpoint,
    key: ConnKey,
    from: String,
    /// Its connection at the server.
    at: Option<ConnKey>,
}

impl Client {
    /// Its handshake is over.
    fn connected(rig: &mut Rig, seed: u64, from: &str) -> Client {
        let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed)));
        let mut endpoint = Endpoint::new(EndpointConfig::new(secrets), None, Box::new(SeededRng::new(seed)));
        let tls = godwit_tls::deterministic::client_config(&[b"test"]);
        let config = ClientConfig::new(tls, Arc::new(TransportConfig::default()));
        let path = PathKey { socket: SocketId(0), local: None, remote: CLIENT.parse().unwrap() };
        let name = godwit_tls::deterministic::SERVER_NAME;
        let key = endpoint.connect(rig.now, &config, path, name, None).unwrap();
        let mut client = Client { endpoint, key, from: from.to_owned(), at: None };
        client.talk(rig);
        client
    }

    /// Until neither has anything to say.
    fn talk(&mut self, rig: &mut Rig) {
        talk(rig, std::slice::from_mut(self));
    }

    fn said(&mut self, now: Time) -> Vec<Vec<u8>> {
        let mut batch = SendBatch::new(1 << 20);
        while self.endpoint.transmit(now, &mut batch) {}
        batch.datagrams().map(|(_, bytes)| bytes.to_vec()).collect()
    }

    fn hear(&mut self, rig: &Rig, word: &[u8]) {
        let mut batch = RecvBatch::new(1, 65_536);
        assert!(batch.push_datagram(meta(CLIENT), word));
        self.endpoint.receive(rig.now, rig.wall(), &mut batch);
    }

    /// Sends so many bytes on each of so many streams, which nobody reads.
    fn send(&mut self, rig: &mut Rig, streams: usize, bytes: usize) {
        for _ in 0..streams {
            let Some(connection) = self.endpoint.connection_mut(self.key) else { return };
            let Some(stream) = connection.open(Direction::Unidirectional) else { return };
            assert_eq!(connection.write(stream, Bytes::from(vec![7; bytes])), Ok(bytes));
            self.endpoint.touch(self.key);
            self.talk(rig);
        }
    }

    fn is_open(&self) -> bool {
        self.endpoint.connection(self.key).is_some_and(|connection| connection.is_open())
    }
}

/// Until nobody has anything to say.
fn talk(rig: &mut Rig, clients: &mut [Client]) {
    for _ in 0..100 {
        let mut silent = true;
        rig.now += Duration::from_millis(10);
        let mut answers = Vec::new();
        for client in &mut *clients {
            for word in client.said(rig.now) {
                silent = false;
                answers.extend(rig.receive_from(&client.from, &word));
            }
            while let Some(key) = rig.endpoint.next_incoming() {
                client.at = rig.endpoint.accept(rig.now, key, None).ok();
            }
        }
        rig.endpoint.on_timeout(rig.now);
        answers.extend(rig.sent());
        if silent && answers.is_empty() {
            return;
        }
        for (to, answer) in answers {
            // What others would hear is lost.
            if let Some(client) = clients.iter_mut().find(|client| to == client.from.parse().unwrap()) {
                client.hear(rig, &answer);
            }
        }
        clients.iter_mut().for_each(|client| client.endpoint.on_timeout(rig.now));
    }
}

#[test]
fn what_is_held_for_the_clients_of_a_network_is_limited_over_all_of_them() {
    let limit = MemoryLimit::new(3 << 20);
    let mut rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    let mut near: Vec<_> = (1..=5).map(|seed| Client::connected(&mut rig, seed, "198.51.100.1:7")).collect();
    near.iter_mut().for_each(|client| client.send(&mut rig, 4, 50 << 10));
    assert!(near.iter().all(Client::is_open));
    assert!(limit.held() > 900 << 10, "{}", limit.held());
    let mut one_more = Client::connected(&mut rig, 6, "198.51.100.200:7");
    assert!(one_more.is_open(), "who has nothing held is no burden");
    one_more.send(&mut rig, 20, 50 << 10);
    assert!(!one_more.is_open());
    let mut far = Client::connected(&mut rig, 7, "192.0.2.1:7");
    far.send(&mut rig, 4, 50 << 10);
    assert!(far.is_open() && near.iter().all(Client::is_open));
    drop(rig);
    assert_eq!(limit.held(), 0);
}

/// Bytes held with so many by what runs on the client's connection.
fn held_with(rig: &mut Rig, limit: &MemoryLimit, client: &Client, bytes: u64) -> u64 {
    let at = client.at.expect("accepted");
    rig.endpoint.with(at, |connection| connection.set_held_by_application(bytes)).expect("a connection");
    limit.held()
}

#[test]
fn what_runs_on_a_connection_holds_counts_with_it() {
    let limit = MemoryLimit::new(4 << 20);
    let mut rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    let from = |seed| format!("198.51.100.1:{seed}");
    let mut near: Vec<_> = (1..=3).map(|seed| Client::connected(&mut rig, seed, &from(seed))).collect();
    assert_eq!(held_with(&mut rig, &limit, &near[0], 1 << 20), 1 << 20);
    assert_eq!(held_with(&mut rig, &limit, &near[0], 500 << 10), 496 << 10, "in units of 16 KiB");
    assert_eq!(held_with(&mut rig, &limit, &near[0], 0), 0);
    // Half of the limit is the network's; then those that hold the most are slowed, and closed if they take more.
    assert_eq!(held_with(&mut rig, &limit, &near[0], 1 << 20), 1 << 20);
    assert_eq!(held_with(&mut rig, &limit, &near[1], 3 << 19), 5 << 19);
    let state = |rig: &Rig, client: &Client| {
        let connection = client.at.and_then(|at| rig.endpoint.connection(at)).unwrap();
        (connection.is_open(), connection.is_to_hold_little())
    };
    assert_eq!([state(&rig, &near[0]), state(&rig, &near[1])], [(true, false), (true, true)]);
    held_with(&mut rig, &limit, &near[1], 4 << 20);
    talk(&mut rig, &mut near);
    assert!(!near[1].is_open() && near[0].is_open() && near[2].is_open());
    assert_eq!(limit.held(), 1 << 20, "what it held is given up");
    // Another ends without a word of what it holds.
    let (key, now) = (near[0].key, rig.now);
    near[0].endpoint.with(key, |connection| connection.close(now, 0, b""));
    talk(&mut rig, &mut near);
    while rig.endpoint.next_event().is_some() {}
    rig.now += Duration::from_secs(10);
    rig.endpoint.on_timeout(rig.now);
    while rig.endpoint.next_event().is_some() {}
    assert_eq!((rig.endpoint.connections(), limit.held()), (1, 0));
}

/// What the server has to write to a client, in a stream.
struct Answer {
    at: ConnKey,
    stream: StreamId,
    left: usize,
}

impl Answer {
    fn begin(rig: &mut Rig, client: &Client, bytes: usize) -> Answer {
        let at = client.at.expect("accepted");
        let connection = rig.endpoint.connection_mut(at).expect("a connection");
        let mut answer =
            Answer { at, stream: connection.open(Direction::Unidirectional).unwrap(), left: bytes };
        answer.write(rig);
        answer
    }

    /// As much as is taken now.
    fn write(&mut self, rig: &mut Rig) -> usize {
        let Some(connection) = rig.endpoint.connection_mut(self.at) else { return 0 };
        let taken = connection.write(self.stream, Bytes::from(vec![7; self.left])).unwrap_or(0);
        self.left -= taken;
        rig.endpoint.touch(self.at);
        taken
    }
}

#[test]
fn those_who_hold_the_most_give_way_when_all_is_used_up() {
    let limit = MemoryLimit::new(512 << 10);
    let mut rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    // Each stays below what one network may hold.
    let mut greedy: Vec<_> =
        (1..=4).map(|seed| Client::connected(&mut rig, seed, &format!("10.{seed}.0.1:7"))).collect();
    greedy.iter_mut().for_each(|client| client.send(&mut rig, 6, 50 << 10));
    let held = limit.held();
    assert!(held <= 2 * limit.limit(), "{held}");
    let mut honest = Client::connected(&mut rig, 9, "192.0.2.1:7");
    honest.send(&mut rig, 4, 50 << 10);
    assert!(honest.is_open() && limit.held() <= 2 * limit.limit(), "{}", limit.held());
    let is_open = |client: &&Client| {
        let at = client.at.and_then(|at| rig.endpoint.connection(at));
        at.is_some_and(|connection| connection.is_open())
    };
    let open = greedy.iter().filter(is_open).count();
    assert!((1..4).contains(&open), "{open}");
}

#[test]
fn those_who_read_are_slowed_and_not_closed_where_their_network_has_more_than_its_part() {
    let limit = MemoryLimit::new(15 << 17);
    let mut rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    let mut clients: Vec<_> =
        (1..=8).map(|seed| Client::connected(&mut rig, seed, &format!("198.51.100.1:{seed}"))).collect();
    let mut answers: Vec<_> =
        clients.iter().map(|client| Answer::begin(&mut rig, client, 400 << 10)).collect();
    let begun = answers.iter().map(|answer| (400 << 10) - answer.left).sum::<usize>();
    assert_eq!(begun, 8 * (128 << 10), "as much as any connection may");
    let slowed: Vec<_> = rig.endpoint.slots.iter().map(|(_, slot)| slot.most_held > 0).collect();
    assert!(!slowed[0] && slowed[7], "{slowed:?}");
    let another = clients.last().map(|last| Answer::begin(&mut rig, last, 64 << 10)).unwrap();
    assert_eq!(another.left, 62 << 10, "another stream has little of its own");
    for _ in 0..100 {
        talk(&mut rig, &mut clients);
        for (client, answer) in clients.iter_mut().zip(&mut answers) {
            let at = client.endpoint.connection_mut(client.key).expect("it is open");
            while let Ok(ReadChunk::Data(_)) = at.read(rig.now, answer.stream, usize::MAX) {}
            client.endpoint.touch(client.key);
            answer.write(&mut rig);
        }
    }
    assert!(clients.iter().all(Client::is_open));
    assert!(answers.iter().all(|answer| answer.left == 0), "all of it came");
}
