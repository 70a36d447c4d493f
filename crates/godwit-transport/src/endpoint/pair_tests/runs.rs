//! Runs of datagrams: what comes of them is what would come of the datagrams one by one.

use super::*;
use godwit_base::Ecn;
use godwit_wire::constants::RESET_TOKEN_LEN;

/// How the datagrams of a run are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Together,
    OneByOne,
}

/// Two connections whose handshakes are over, as the client and as the server know them.
fn connected() -> (Pair, [[ConnKey; 2]; 2]) {
    let mut pair = Pair::new(false);
    let mut keys: Vec<[ConnKey; 2]> = Vec::new();
    for _ in 0..2 {
        let client = pair.connect();
        pair.run_millis(120);
        let known: Vec<ConnKey> = pair.server.slots.iter().map(|(key, _)| ConnKey(key)).collect();
        let server = known.into_iter().find(|key| keys.iter().all(|[_, seen]| seen != key)).unwrap();
        keys.push([client, server]);
    }
    events(&mut pair.client);
    events(&mut pair.server);
    (pair, keys.try_into().unwrap())
}

/// The datagrams with which `bytes` of a new stream leave `endpoint`.
fn written(endpoint: &mut Endpoint, now: Time, key: ConnKey, bytes: usize) -> Vec<Vec<u8>> {
    endpoint.with(key, |connection| {
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.write(id, Bytes::from(vec![9; bytes])).unwrap();
        connection.finish(id).unwrap();
    });
    let mut out = SendBatch::new(1 << 20);
    let (mut datagrams, mut at) = (Vec::new(), now);
    // As the pacer lets them go.
    for _ in 0..200 {
        out.clear();
        endpoint.on_timeout(at);
        endpoint.transmit(at, &mut out);
        datagrams.extend(out.datagrams().map(|(_, bytes)| bytes.to_vec()));
        at += Duration::from_micros(100);
    }
    datagrams
}

fn take_in(endpoint: &mut Endpoint, now: Time, remote: SocketAddr, datagrams: &[Vec<u8>], way: Way) {
    let bytes = datagrams.concat();
    let runs = match way {
        Way::Together => vec![(bytes.as_slice(), datagrams[0].len())],
        Way::OneByOne => datagrams.iter().map(|datagram| (datagram.as_slice(), datagram.len())).collect(),
    };
    let mut batch = RecvBatch::new(200, 1 << 18);
    for (run, stride) in runs {
        let meta =
            RecvMeta { socket: SocketId(0), local: None, remote, ecn: Ecn::NotEct, len: run.len(), stride };
        batch.free_slots()[0][..run.len()].copy_from_slice(run);
        batch.push(meta);
    }
    endpoint.receive(now, WallTime::from_unix_micros(deterministic::NOW * 1_000_000), &mut batch);
}

/// A datagram of `len` bytes that begins with a packet for which there are no keys any more, and ends with `short`.
fn behind_a_long_header(short: &[u8], len: usize) -> Vec<u8> {
    let dcid = &short[1..9];
    let rest = len - short.len() - (1 + 4 + 1 + 8 + 1 + 2);
    let length = (0x4000 | u16::try_from(rest).unwrap()).to_be_bytes();
    let datagram = [&[0xe0, 0, 0, 0, 1, 8], dcid, &[0], &length, &vec![5; rest], short].concat();
    assert_eq!(datagram.len(), len);
    datagram
}

/// A run for the server of everything that may be in one, and whose stride is that of full packets.
fn mixed(pair: &mut Pair, [one, other]: [ConnKey; 2]) -> Vec<Vec<u8>> {
    let short = written(&mut pair.client, pair.now, one, 10).pop().unwrap();
    let mut own = written(&mut pair.client, pair.now, one, 12_000);
    let full = own.iter().map(Vec::len).max().unwrap();
    let strange = written(&mut pair.client, pair.now, other, 12_000);
    let strange = strange.into_iter().filter(|datagram| datagram.len() == full);
    own.retain(|datagram| datagram.len() == full);
    assert!(own.len() > 7 && short.len() < full / 2);
    let mut damaged = own[3].clone();
    damaged[100] ^= 1;
    let mut nobodys = own[4].clone();
    nobodys[1..9].fill(0xee);
    let mut run: Vec<Vec<u8>> = own.clone();
    run.insert(2, damaged);
    run.insert(4, nobodys);
    run.insert(6, vec![0x40; full]);
    run.splice(5..5, strange.take(3));
    run.insert(3, behind_a_long_header(&short, full));
    // Once more, and the last one too short to be a packet.
    run.push(own[0].clone());
    run.push(own[1][..20].to_vec());
    run
}

#[test]
fn a_run_of_all_kinds_of_datagrams_is_taken_in_as_if_they_came_alone() {
    let seen = |way| {
        let (mut pair, [[one, server_one], [other, server_other]]) = connected();
        let run = mixed(&mut pair, [one, other]);
        let stride = run[0].len();
        let connection = &pair.server.slots.get(server_one.0).unwrap().connection;
        let ahead = connection.machine.masks_ahead(&run[1..].concat(), stride).unwrap();
        assert!(ahead.of(run.len() - 2).is_some(), "there are masks for all of it");
        let (now, from) = (pair.now, pair.client_address);
        take_in(&mut pair.server, now, from, &run, way);
        let stats = [server_one, server_other].map(|key| {
            let stats = pair.server.connection(key).unwrap().stats();
            format!("{stats:?}")
        });
        let mut out = SendBatch::new(1 << 20);
        pair.server.transmit(pair.now, &mut out);
        let answers: Vec<Vec<u8>> = out.datagrams().map(|(_, bytes)| bytes.to_vec()).collect();
        (stats, answers, events(&mut pair.server))
    };
    let (together, alone) = (seen(Way::Together), seen(Way::OneByOne));
    assert_eq!(together, alone);
    assert!(heard(&together.2) == 2, "{:?}", together.2);
}

#[test]
fn a_stateless_reset_in_the_midst_of_a_run_is_heard() {
    for way in [Way::Together, Way::OneByOne] {
        let (mut pair, [[client, server], _]) = connected();
        let mut run = written(&mut pair.server, pair.now, server, 12_000);
        run.sort_by_key(|datagram| std::cmp::Reverse(datagram.len()));
        let to_server = written(&mut pair.client, pair.now, client, 10).remove(0);
        let used = ConnectionId::new(&to_server[1..9]).unwrap();
        let token = pair.server.config.secrets.reset_token(&used);
        let mut reset = run[0].clone();
        let at = reset.len() - RESET_TOKEN_LEN;
        reset[at..].copy_from_slice(&token.0);
        run.insert(4, reset);
        take_in(&mut pair.client, pair.now, SERVER.parse().unwrap(), &run, way);
        let events = events(&mut pair.client);
        assert!(events.contains(&Event::Closed { reason: ConnectionError::Reset }), "{way:?} {events:?}");
    }
}

#[test]
fn what_strangers_send_in_runs_makes_no_masks_with_the_keys_of_an_idle_connection() {
    let (mut pair, [[client, server], _]) = connected();
    let run = written(&mut pair.client, pair.now, client, 12_000).concat();
    let ahead = |pair: &Pair| {
        let slot = pair.server.slots.get(server.0).unwrap();
        slot.connection.machine.masks_ahead(&run, 1200).is_some()
    };
    assert!(ahead(&pair));
    pair.lost = (0..1_000_000).collect();
    for _ in 0..20 {
        pair.now += Duration::from_millis(500);
        pair.server.on_timeout(pair.now);
    }
    assert!(pair.server.connection(server).is_some_and(|connection| connection.is_open()));
    assert!(!ahead(&pair));
}
