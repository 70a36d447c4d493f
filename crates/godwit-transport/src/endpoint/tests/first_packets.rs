//! What first packets may be, what is kept of them, and who makes room for whom.

use super::strangers::{abandoned, number};
use super::*;
use crate::address_token::RetryToken;

/// A 0-RTT packet of client 1, with this first byte.
fn early(first: u8, len: usize) -> Vec<u8> {
    let length = (0x4000 | len as u16).to_be_bytes();
    let mut packet = [&[first, 0, 0, 0, 1, 8][..], cid(1).as_bytes(), &[0], &length].concat();
    packet.resize(packet.len() + len, 7);
    packet
}

const EARLY: u8 = 0xd0;

/// A token that proves this address.
fn proof(rig: &Rig, from: &str) -> Vec<u8> {
    let token = RetryToken { remote: from.parse().unwrap(), original_dcid: cid(9), issued: rig.wall() };
    token.seal(&rig.endpoint.config.secrets, &mut SeededRng::new(1)).unwrap().to_vec()
}

/// The handshake to which packets with this id go.
fn waiting(rig: &Rig, dcid: &ConnectionId) -> Option<IncomingKey> {
    match rig.endpoint.demux.find(dcid, true) {
        Some(demux::Target::Incoming(key)) => Some(key),
        _ => None,
    }
}

/// Datagrams that are kept of client 1.
fn kept(rig: &Rig) -> usize {
    let key = waiting(rig, &cid(1)).unwrap();
    rig.endpoint.incoming(key).unwrap().datagrams.len()
}

/// One byte of a hello, in a datagram of this size.
fn piece(at: u64, size: usize) -> Vec<u8> {
    let hello = client_hello(1500);
    Initial { number: at, offset: at, size, ..Initial::new(1, &hello[at as usize..][..1]) }.seal()
}

#[test]
fn the_keys_with_which_a_hello_was_read_are_those_of_the_connection() {
    let mut rig = Rig::new(false);
    let mut keys_of = |client: u8, version: u32| {
        rig.receive(&first_initial(client));
        let key = waiting(&rig, &cid(client)).unwrap();
        rig.endpoint.incoming.remove(key).unwrap().take_keys(version)
    };
    assert!(keys_of(1, 1).is_some());
    assert!(keys_of(2, godwit_wire::version::V2).is_none(), "they are of another version");
}

/// A server that accepts so many bytes early.
fn accepting_early(bytes: u32) -> Rig {
    let mut rig = Rig::new(false);
    let mut server = (**rig.endpoint.server.as_ref().unwrap()).clone();
    Arc::make_mut(&mut server.tls).max_early_data_size = bytes;
    rig.endpoint.server = Some(Arc::new(server));
    rig
}

#[test]
fn what_comes_before_the_first_packet_is_kept_if_it_may_be_accepted() {
    for (bytes, accepting, expected) in [(0, true, 1), (1, true, 2), (1, false, 1), (0, false, 1)] {
        let mut rig = accepting_early(bytes);
        rig.endpoint.accepting = accepting;
        assert!(rig.receive(&early(EARLY, 500)).is_empty());
        rig.endpoint.accepting = true;
        rig.receive(&first_initial(1));
        assert_eq!(kept(&rig), expected, "{bytes} bytes, accepting: {accepting}");
    }
}

#[test]
fn what_comes_early_may_lack_the_quic_bit_if_clients_are_told_so() {
    for (grease, first, expected) in
        [(true, EARLY, 2), (true, EARLY ^ 0x40, 2), (false, EARLY, 2), (false, EARLY ^ 0x40, 1)]
    {
        let mut rig = accepting_early(1);
        let mut server = (**rig.endpoint.server.as_ref().unwrap()).clone();
        Arc::make_mut(&mut server.transport).grease_quic_bit = grease;
        rig.endpoint.server = Some(Arc::new(server));
        rig.receive(&early(first, 500));
        rig.receive(&first_initial(1));
        assert_eq!(kept(&rig), expected, "{grease} {first:#x}");
    }
}

#[test]
fn a_first_packet_may_be_larger_than_the_least() {
    for size in [1200, 1201, 1472] {
        let mut rig = Rig::new(false);
        rig.receive(&Initial { size, ..Initial::new(1, &client_hello(0)) }.seal());
        assert!(rig.endpoint.next_incoming().is_some(), "{size} bytes");
    }
}

#[test]
fn frames_that_no_initial_packet_may_carry_end_a_handshake() {
    let initial = Initial::new(1, &[]);
    for frame in [Frame::HandshakeDone, Frame::MaxData { limit: 1 }, Frame::Datagram { data: b"x" }] {
        let mut rig = Rig::new(false);
        let answers = rig.receive(&initial.seal_with(&frame));
        assert_eq!(close_code(&answers[0], &cid(1)), TransportErrorCode::PROTOCOL_VIOLATION, "{frame:?}");
        assert!(rig.endpoint.is_idle());
    }
    let mut rig = Rig::new(false);
    let (_, _, frames) = initial_of(&rig.receive(&initial.seal_with(&Frame::Ping))[0], &cid(1));
    assert_eq!(frames, ["[0..=0] None"], "a PING may come first");
    assert!(rig.endpoint.has_incoming());
}

#[test]
fn each_datagram_of_a_run_goes_to_whom_its_id_names() {
    let mut rig = Rig::new(false);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    rig.endpoint.accept(rig.now, key, None).unwrap();
    let run = [first_initial(1), first_initial(2)].concat();
    let mut batch = RecvBatch::new(1, 65_536);
    batch.free_slots()[0][..run.len()].copy_from_slice(&run);
    batch.push(RecvMeta { len: run.len(), stride: 1200, ..meta(CLIENT) });
    rig.endpoint.receive(rig.now, rig.wall(), &mut batch);
    assert!(waiting(&rig, &cid(2)).is_some() && rig.endpoint.next_incoming().is_some());
}

#[test]
fn a_hello_has_20_datagrams_with_what_comes_early_at_most() {
    let mut rig = Rig::new(false);
    rig.receive(&piece(0, 1200));
    (0..20).for_each(|_| _ = rig.receive(&early(EARLY, 500)));
    assert_eq!(kept(&rig), 16);
    for n in 1..8 {
        rig.receive(&piece(n, 1200));
        assert_eq!(kept(&rig), 16 + (n as usize).min(4), "{n} more pieces");
    }
}

#[test]
fn a_hello_that_is_not_complete_has_24_kib_of_datagrams_and_what_comes_early_is_apart() {
    for (last, expected) in [(8192, 3), (8193, 2)] {
        let mut rig = Rig::new(false);
        [8192, 8192, last].into_iter().zip(0..).for_each(|(size, at)| _ = rig.receive(&piece(at, size)));
        assert_eq!(kept(&rig), expected);
        if expected == 3 {
            rig.receive(&early(EARLY, 500));
            assert_eq!(kept(&rig), 4);
            rig.receive(&piece(3, 1200));
            assert_eq!(kept(&rig), 4, "nothing more of the hello");
        }
    }
}

#[test]
fn a_hello_waits_for_ten_seconds_from_when_it_is_complete() {
    let hello = client_hello(1500);
    let mut rig = Rig::new(false);
    rig.receive(&Initial::new(1, &hello[..900]).seal());
    assert_eq!(rig.endpoint.deadline(), Some(rig.now + Duration::from_secs(30)));
    rig.now += Duration::from_secs(29);
    rig.receive(&Initial { number: 1, offset: 900, ..Initial::new(1, &hello[900..]) }.seal());
    assert_eq!(rig.endpoint.deadline(), Some(rig.now + Duration::from_secs(10)));
}

#[test]
fn a_hello_whose_end_finds_no_room_is_not_counted_any_more() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 1);
    let hello = client_hello(5300);
    let mut answers = Vec::new();
    for (number, part) in (0..).zip(hello.chunks(1000)) {
        let offset = 1000 * number;
        assert_eq!(rig.endpoint.incoming.incomplete().0, usize::from(number > 0));
        answers = rig.receive(&Initial { number, offset, ..Initial::new(1, part) }.seal());
    }
    assert_eq!(hello.chunks(1000).len(), 6, "of which five have room");
    let (_, _, frames) = initial_of(&answers[0], &cid(1));
    assert!(frames[0].starts_with("ConnectionClose"), "{frames:?}");
    let (counted, there, _) = rig.endpoint.incoming.incomplete();
    assert_eq!((counted, there), (0, 0));
}

#[test]
fn who_proves_its_address_and_finds_no_room_is_not_asked_again() {
    let hello = client_hello(0);
    let large = Initial { size: 6001, ..Initial::new(1, &hello) };
    let mut rig = Rig::with(false, |config| config.max_incoming = 1);
    retry_of(&rig.receive(&large.seal())[0]);
    let token = proof(&rig, CLIENT);
    assert!(rig.receive(&Initial { token: &token, ..large.clone() }.seal()).is_empty());
    assert!(rig.endpoint.is_idle());
    rig.receive(&Initial { token: &token, size: 6000, ..large }.seal());
    assert!(rig.endpoint.next_incoming().is_some(), "so much has room");
}

#[test]
fn a_hello_whose_client_has_proved_its_address_finds_room_for_its_end() {
    let hello = client_hello(1500);
    let mut rig = Rig::with(false, |config| config.max_incoming = 2);
    let other = |rig: &mut Rig, at: u64| drop(rig.receive_from("10.0.0.1:7", &piece(at, 1200)));
    (0..8).for_each(|at| other(&mut rig, at));
    let token = proof(&rig, CLIENT);
    let mine = Initial { token: &token, ..Initial::new(2, &hello[..900]) };
    rig.receive(&mine.seal());
    other(&mut rig, 8);
    assert_eq!(rig.endpoint.incoming.len(), 2, "every byte is taken: ten datagrams of 1200");
    rig.receive(&Initial { number: 1, offset: 900, crypto: &hello[900..], ..mine }.seal());
    assert!(waiting(&rig, &cid(1)).is_none(), "who has proved nothing gives way");
    let key = rig.endpoint.next_incoming().unwrap();
    assert_eq!(Some(key), waiting(&rig, &cid(2)));
}

#[test]
fn nobody_gives_way_who_is_not_in_the_way() {
    let hello = client_hello(1500);
    let mut rig = Rig::with(false, |config| {
        config.max_incoming = 64;
        config.handshakes_before_retry = 1000;
    });
    let half = |dcid: u64, token: &[u8]| {
        Initial { dcid: number(dcid), token, ..Initial::new(1, &hello[..900]) }.seal()
    };
    rig.receive_from("192.0.2.9:7", &half(100, &[]));
    let prove = |rig: &mut Rig, n: u64| {
        let from = format!("198.51.100.{n}:7");
        rig.now += Duration::from_millis(1);
        let token = proof(rig, &from);
        rig.receive_from(&from, &half(n, &token));
    };
    (1..=16).for_each(|n| prove(&mut rig, n));
    assert_eq!(rig.endpoint.incoming.len(), 17, "a network has its share");
    prove(&mut rig, 17);
    let there = |n: &u64| waiting(&rig, &number(*n)).is_some();
    assert_eq!((1..=17).filter(there).collect::<Vec<_>>(), (2..=17).collect::<Vec<_>>());
    assert!(there(&100), "it has proved nothing, and is of another network");
}

#[test]
fn who_was_told_nothing_is_turned_away_without_a_word() {
    let mut rig = Rig::with(false, |config| {
        config.max_handshakes = 1;
        config.handshakes_before_retry = 1000;
    });
    rig.receive_from("10.1.0.1:7", &first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    abandoned(&mut rig, 1, "10.0.0.1:7").unwrap();
    assert_eq!(rig.endpoint.accept(rig.now, key, None), Err(AcceptError::TooManyConnections));
    let us: SocketAddr = "10.1.0.1:7".parse().unwrap();
    assert!(rig.sent().iter().all(|(to, _)| *to != us), "it comes again with all it has sent");
    assert!(rig.endpoint.incoming(key).is_none());
}

#[test]
fn a_half_open_connection_gives_way_to_a_network_that_has_as_many_after_two_seconds() {
    let mut rig = Rig::with(false, |config| {
        config.max_handshakes = 2;
        config.handshakes_before_retry = 1000;
    });
    abandoned(&mut rig, 1, "10.0.0.1:7").unwrap();
    abandoned(&mut rig, 2, "10.1.0.1:7").unwrap();
    rig.now += Duration::from_secs(2) - Duration::from_nanos(1);
    rig.receive_from("10.0.0.9:7", &first_initial(1));
    assert_eq!(rig.endpoint.next_incoming(), None);
    rig.now += Duration::from_nanos(1);
    rig.receive_from("10.0.0.9:7", &first_initial(1));
    assert!(rig.endpoint.next_incoming().is_some());
}

#[test]
fn each_part_of_a_hello_gives_it_half_a_minute_but_not_more_than_a_minute_in_all() {
    let hello = client_hello(1500);
    let mut rig = Rig::new(false);
    let began = rig.now;
    for (number, (after, until)) in (0..).zip([(0, 30), (5, 35), (29, 59), (31, 60), (59, 60)]) {
        rig.now = began + Duration::from_secs(after);
        let offset = 100 * number;
        let part = &hello[offset as usize..][..100];
        rig.receive(&Initial { number, offset, ..Initial::new(1, part) }.seal());
        assert_eq!(rig.endpoint.deadline(), Some(began + Duration::from_secs(until)), "after {after} s");
    }
}
