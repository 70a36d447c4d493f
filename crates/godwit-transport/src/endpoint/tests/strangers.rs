//! What strangers take, and who gets in all the same.

use super::*;
use godwit_tls::deterministic;

/// The first half of a hello that never gets a second.
fn partial(dcid: ConnectionId, token: &[u8]) -> Vec<u8> {
    let hello = client_hello(1500);
    Initial { dcid, token, ..Initial::new(1, &hello[..900]) }.seal()
}

pub(super) fn number(n: u64) -> ConnectionId {
    ConnectionId::new(&n.to_be_bytes()).unwrap()
}

impl Rig {
    /// The id and the token of a Retry, if that is the only answer.
    fn retried(&mut self, from: &str, datagram: &[u8]) -> Option<(ConnectionId, Vec<u8>)> {
        let answers = self.receive_from(from, datagram);
        let [(_, answer)] = &answers[..] else { return None };
        matches!(header::parse(answer, 8), Ok(Packet::Retry { .. })).then(|| retry_of(answer))
    }

    /// A client with a whole hello gets in, by way of a Retry or without.
    fn lets_in(&mut self, from: &str, dcid: u64) -> bool {
        let hello = client_hello(0);
        let first = Initial { dcid: number(dcid), ..Initial::new(1, &hello) };
        if let Some((dcid, token)) = self.retried(from, &first.seal()) {
            let second = Initial { dcid, token: &token, ..Initial::new(1, &hello) };
            self.receive_from(from, &second.seal());
        }
        let from: SocketAddr = from.parse().unwrap();
        while let Some(key) = self.endpoint.next_incoming() {
            if self.endpoint.incoming(key).is_some_and(|incoming| incoming.remote() == from) {
                return true;
            }
        }
        false
    }
}

#[test]
fn early_data_of_nobody_takes_no_room_from_hellos() {
    let mut rig = Rig::new(false);
    for n in 0..3 {
        let from = format!("198.51.{n}.1:7");
        rig.receive_from(&from, &partial(number(n), &[]));
        let mut early =
            [&[0xd0, 0, 0, 0, 1, 8][..], number(n).as_bytes(), &[0, 0x80, 0, 0x9c, 0x2c]].concat();
        early.resize(40_000, 7);
        for _ in 0..15 {
            rig.receive_from(&from, &early);
        }
    }
    assert!(rig.lets_in("192.0.2.1:4000", 10));
    assert_eq!(rig.endpoint.incoming.len(), 4, "and the others are still waited for");
}

#[test]
fn who_has_proved_an_address_gets_in_whoever_waits() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 8);
    for n in 0..4 {
        rig.receive_from(&format!("198.51.{n}.1:7"), &partial(number(n), &[]));
    }
    // Strangers are asked for a token from here on; those have one, and say no more.
    for n in 4..8 {
        let from = format!("203.0.{}.{n}:7", n % 2);
        let (dcid, token) = rig.retried(&from, &partial(number(n), &[])).expect("a Retry");
        rig.receive_from(&from, &partial(dcid, &token));
    }
    assert_eq!(rig.endpoint.incoming.len(), 8, "every place is taken");
    for n in 0..8 {
        assert!(rig.lets_in(&format!("192.0.2.{}:7", n + 1), 100 + n), "client {n}");
    }
}

#[test]
fn neighbours_of_a_flood_get_in() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 1024);
    let mut retries = 0;
    for n in 0..270 {
        retries += u32::from(rig.retried("127.0.0.50:7", &partial(number(n), &[])).is_some());
    }
    assert!(retries >= 100, "a network has to prove itself long before it holds what it may");
    assert!(rig.lets_in("127.0.0.1:7", 1000));
}

/// A client of which we only have the first words.
fn hello_of(client: &mut Endpoint, now: Time, token: Option<Bytes>) -> Vec<Vec<u8>> {
    let tls = deterministic::client_config(&[b"test"]);
    let config = ClientConfig::new(tls, Arc::default());
    let path = PathKey { socket: SocketId(0), local: None, remote: CLIENT.parse().unwrap() };
    client.connect(now, &config, path, deterministic::SERVER_NAME, token).unwrap();
    said(client, now)
}

fn said(client: &mut Endpoint, now: Time) -> Vec<Vec<u8>> {
    let mut out = SendBatch::new(1 << 18);
    while client.transmit(now, &mut out) {}
    out.datagrams().map(|(_, bytes)| bytes.to_vec()).collect()
}

/// Begins a handshake from `from`, with a Retry if there is one, and has it accepted; then says nothing more.
pub(super) fn abandoned(rig: &mut Rig, seed: u64, from: &str) -> Option<ConnKey> {
    let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed)));
    let mut client = Endpoint::new(EndpointConfig::new(secrets), None, Box::new(SeededRng::new(seed)));
    let mut words = hello_of(&mut client, rig.now, None);
    for _ in 0..2 {
        let answers: Vec<_> =
            words.iter().flat_map(|word| rig.receive_from(from, word)).map(|(_, bytes)| bytes).collect();
        let retry = answers.iter().find(|it| matches!(header::parse(it, 8), Ok(Packet::Retry { .. })));
        let Some(retry) = retry else { break };
        let mut batch = RecvBatch::new(1, 65_536);
        batch.push_datagram(meta(CLIENT), retry);
        client.receive(rig.now, rig.wall(), &mut batch);
        words = said(&mut client, rig.now);
    }
    let key = rig.endpoint.next_incoming()?;
    let accepted = rig.endpoint.accept(rig.now, key, None).ok();
    rig.sent();
    accepted
}

fn half_open(rig: &Rig) -> usize {
    let open = |slot: &&ConnectionSlot| slot.connection.is_handshaking() && slot.connection.is_open();
    rig.endpoint.slots.iter().map(|(_, slot)| slot).filter(open).count()
}

#[test]
fn handshakes_that_are_never_finished_are_few_and_keep_nobody_out() {
    let mut rig = Rig::with(false, |config| {
        config.max_connections = 1000;
        config.max_handshakes = 40;
        config.handshakes_before_retry = 10;
    });
    for n in 0..200 {
        abandoned(&mut rig, n, "198.51.100.1:7");
        assert!(half_open(&rig) <= 16, "one network has its share");
    }
    assert!(abandoned(&mut rig, 1000, "192.0.2.1:7").is_some(), "another network");
    for n in 0..10 {
        for net in 0..8 {
            abandoned(&mut rig, 2000 + n * 8 + net, &format!("10.{net}.0.1:7"));
        }
    }
    assert_eq!(half_open(&rig), 40, "all have theirs");
    assert!(abandoned(&mut rig, 5000, "192.0.2.1:7").is_some(), "whose network has fewer");
    assert!(abandoned(&mut rig, 5001, "10.1.0.1:7").is_none(), "those of others may still go on");
    rig.now += Duration::from_secs(3);
    assert!(abandoned(&mut rig, 5002, "10.1.0.1:7").is_some(), "and had time enough to");
    assert_eq!(half_open(&rig), 40);
}

#[test]
fn beyond_so_many_handshakes_nothing_is_acknowledged_without_proof() {
    let mut rig = Rig::with(false, |config| {
        config.max_connections = 1000;
        config.handshakes_before_retry = 3;
    });
    for n in 0..3 {
        assert!(abandoned(&mut rig, n, &format!("10.{n}.0.1:7")).is_some());
    }
    assert!(rig.retried("10.9.0.1:7", &partial(number(9), &[])).is_some(), "the first half of a hello");
    assert!(rig.endpoint.incoming.is_empty());
    // Handshakes that end, however they do, do not count.
    rig.endpoint.close_all(rig.now, 0, b"");
    rig.endpoint.accepting = true;
    assert!(rig.retried("10.9.0.1:7", &partial(number(10), &[])).is_none());
}

/// Takes out what has ended, and looks whether the places that are taken are those that are counted.
fn check_places(rig: &mut Rig) {
    while rig.endpoint.next_event().is_some() {}
    let sources: Vec<_> = rig.endpoint.slots.iter().map(|(_, slot)| slot.source.unwrap()).collect();
    assert_eq!(rig.endpoint.places.held(), sources.len());
    for source in &sources {
        let neighbours = sources.iter().filter(|other| other.narrow() == source.narrow()).count();
        assert_eq!(rig.endpoint.places.held_by_neighbours(*source), neighbours);
    }
}

#[test]
fn a_flood_makes_nobody_look_at_all_that_wait() {
    let mut rig = Rig::with(false, |config| {
        config.max_incoming = 4000;
        config.max_handshakes = 10_000;
        config.handshakes_before_retry = 10_000;
    });
    // Everything is full of hellos without an end; then strangers who have proved their address go on and on.
    let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(99)));
    let wall = rig.wall();
    let seal = |from: &str, n: u64| {
        let remote = from.parse().unwrap();
        let token = crate::address_token::RetryToken { remote, original_dcid: number(n), issued: wall };
        token.seal(&secrets, &mut SeededRng::new(n)).unwrap()
    };
    let begin = |rig: &mut Rig, n: u64| {
        let from = format!("10.{}.{}.1:7", n % 8, n / 8 % 256);
        rig.receive_from(&from, &partial(number(n), &seal(&from, n)));
    };
    (0..4000).for_each(|n| begin(&mut rig, n));
    let (counted, there, before) = rig.endpoint.incoming.incomplete();
    assert_eq!((counted, there, before), (4000, 4000, 0), "all places are taken");
    (4000..5000).for_each(|n| begin(&mut rig, n));
    let (counted, there, looked_at) = rig.endpoint.incoming.incomplete();
    assert_eq!((counted, there), (4000, 4000));
    assert!((1000..=64_000).contains(&looked_at), "{looked_at} for 1000 datagrams");
    // And all of it is forgotten in time.
    rig.now += Duration::from_secs(61);
    rig.endpoint.on_timeout(rig.now);
    assert_eq!(rig.endpoint.incoming.incomplete(), (0, 0, looked_at));
}

#[test]
fn a_flood_makes_nobody_look_at_all_that_are_half_open() {
    let mut rig = Rig::with(false, |config| {
        config.max_connections = 10_000;
        config.max_handshakes = 256;
        config.handshakes_before_retry = 10_000;
    });
    for n in 0..256 {
        assert!(abandoned(&mut rig, n, &format!("10.{}.0.1:7", n % 16)).is_some());
    }
    let hello = client_hello(0);
    for n in 0..1000 {
        let from = format!("10.{}.0.1:7", n % 16);
        rig.receive_from(&from, &Initial { dcid: number(1000 + n), ..Initial::new(1, &hello) }.seal());
    }
    let looked_at = rig.endpoint.half_open.looked_at();
    assert!((1000..=64_000).contains(&looked_at), "{looked_at} for 1000 datagrams");
    assert_eq!(half_open(&rig), 256);
}

#[test]
fn no_network_takes_the_places_of_all_connections() {
    let mut rig = Rig::with(false, |config| config.max_connections = 200);
    let taken = |rig: &mut Rig, from: &str, seed: u64| usize::from(abandoned(rig, seed, from).is_some());
    let one: usize = (0..150).map(|n| taken(&mut rig, "198.51.100.1:7", n)).sum();
    assert_eq!(one, 100, "a network has half of what there is");
    check_places(&mut rig);
    let wide: usize = (0..150).map(|n| taken(&mut rig, &format!("198.51.{}.1:7", n % 90), 1000 + n)).sum();
    assert_eq!(one + wide, 150, "and with its neighbours three quarters");
    for n in 0..20 {
        assert_eq!(taken(&mut rig, &format!("10.{n}.0.1:7"), 2000 + n), 1, "everybody else gets in: {n}");
    }
    check_places(&mut rig);
    for key in rig.endpoint.slots.iter().map(|(key, _)| ConnKey(key)).step_by(3).collect::<Vec<_>>() {
        rig.endpoint.with(key, |connection| connection.abort(rig.now, "test"));
    }
    check_places(&mut rig);
    rig.endpoint.close_all(rig.now, 0, b"");
    while let Some(deadline) = rig.endpoint.deadline() {
        rig.now = deadline;
        rig.endpoint.on_timeout(deadline);
        rig.sent();
        check_places(&mut rig);
    }
    assert_eq!((rig.endpoint.slots.len(), rig.endpoint.places.held()), (0, 0));
}

#[test]
fn a_token_of_an_earlier_connection_is_no_answer() {
    let mut rig = Rig::new(false);
    rig.endpoint.set_time(rig.now, rig.wall());
    let token = rig.endpoint.new_token("192.0.2.1".parse().unwrap(), None);
    let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(7)));
    let mut client = Endpoint::new(EndpointConfig::new(secrets), None, Box::new(SeededRng::new(7)));
    let first = hello_of(&mut client, rig.now, token);
    first.iter().for_each(|word| drop(rig.receive(word)));
    let key = rig.endpoint.next_incoming().unwrap();
    let key = rig.endpoint.accept(rig.now, key, None).unwrap();
    let shown = |rig: &Rig| {
        let connection = rig.endpoint.connection(key).unwrap();
        (connection.is_peer_validated(), connection.has_peer_answered())
    };
    assert_eq!(shown(&rig), (true, false), "whoever has recorded the token could have sent this");
    let mut batch = RecvBatch::new(16, 65_536);
    rig.sent().iter().for_each(|(_, answer)| assert!(batch.push_datagram(meta(CLIENT), answer)));
    client.receive(rig.now, rig.wall(), &mut batch);
    said(&mut client, rig.now).iter().for_each(|word| drop(rig.receive(word)));
    assert_eq!(shown(&rig), (true, true), "only who has the server's packets has its keys");
    let mut rig = Rig::new(true);
    let key = abandoned(&mut rig, 9, CLIENT).unwrap();
    assert!(rig.endpoint.connection(key).unwrap().has_peer_answered(), "it came back from a Retry");
}

#[test]
fn a_token_for_later_does_not_prove_for_ever() {
    let shard = |used: &crate::UsedTokens| {
        let mut rig = Rig::with(false, |config| {
            config.max_incoming = 10_000;
            config.used_tokens = used.clone();
        });
        rig.endpoint.set_time(rig.now, rig.wall());
        rig
    };
    let used = crate::UsedTokens::new();
    let (mut one, mut other) = (shard(&used), shard(&used));
    let token = one.endpoint.new_token("192.0.2.1".parse().unwrap(), None).unwrap();
    let hello = client_hello(0);
    let validated = |rig: &mut Rig, times: u64| {
        for n in 0..times {
            rig.receive(&Initial { dcid: number(n), token: &token, ..Initial::new(1, &hello) }.seal());
        }
        let keys = std::iter::from_fn(|| rig.endpoint.next_incoming()).collect::<Vec<_>>();
        keys.into_iter().filter(|key| rig.endpoint.incoming(*key).unwrap().is_validated()).count()
    };
    assert_eq!(validated(&mut one, 5), 5);
    assert_eq!(validated(&mut other, 1000), 3, "a few uses of one token, wherever");
    assert_eq!(validated(&mut shard(&crate::UsedTokens::new()), 10), 8);
}
