//! Peers that keep to the letter of the protocol, or nearly, to cost us memory, time or our good name.

use super::*;
use crate::cid::{LocalCids, RetiredId};
use crate::connection::input::{Datagram, PacketInfo};
use crate::part::Part;
use crate::path::{Arrival, PathId, PathSet};
use godwit_recovery::{SpaceId, TimerKind};
use godwit_tls::keys::{KeysUsed, PacketSpan, TAG_LEN};
use godwit_tls::resumption::MemorySessions;
use godwit_wire::header::{LongHeader, PacketType};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{Frame, Writer};
use std::collections::BTreeMap;

/// Where the client seems to have moved to.
const ELSEWHERE: &str = "10.9.9.9:999";

fn one_rtt_packet(dcid: ConnectionId) -> PacketInfo {
    PacketInfo {
        space: SpaceId::Data,
        packet_type: PacketType::OneRtt,
        number: 1000,
        dcid,
        path: PathId(0),
        keys: KeysUsed::Current,
        len: 100,
    }
}

/// Does for `connection` what its endpoint would; returns how many ids it asked for.
fn give_cids(connection: &mut Connection, next: &mut u8) -> usize {
    let mut asked = 0;
    while let Some(event) = connection.machine.next_endpoint_event() {
        if let EndpointEvent::NeedCids(count) = event {
            asked += count;
            for _ in 0..count {
                *next += 1;
                connection.machine.add_local_cid(cid(*next), ResetToken([*next; 16]));
            }
        }
    }
    asked
}

/// Datagrams that `connection` sends now.
pub(super) fn sent(connection: &mut Connection, now: Time, rng: &mut SeededRng) -> Vec<Vec<u8>> {
    let mut batch = SendBatch::new(1 << 20);
    while connection.machine.transmit(now, &mut batch, rng) == crate::connection::boundary::Transmitted::More
    {
    }
    batch.datagrams().map(|(_, datagram)| datagram.to_vec()).collect()
}

/// Lets `connection` alone until it is over. Fails if it wants to be called again and again for nothing.
fn must_come_to_rest(connection: &mut Connection, now: &mut Time, rng: &mut SeededRng) {
    for _ in 0..200 {
        sent(connection, *now, rng);
        let Some(at) = connection.deadline() else { return };
        *now = at.max(*now);
        connection.on_timeout(*now);
        if connection.is_drained() {
            return;
        }
    }
    panic!("still busy: {:?} at {now:?}", connection.deadline());
}

/// Leaves `connection` no more than `bytes` to send to its unproven peer.
fn leave_credit(connection: &mut Connection, bytes: u64) {
    let path = connection.machine.paths.active_mut();
    assert!(!path.is_validated());
    let excess = path.send_credit().saturating_sub(bytes);
    path.on_sent(usize::try_from(excess).unwrap());
}

/// A pair whose server believes that the client has moved, and has proof of nothing.
fn moved(transport: TransportConfig) -> Pair {
    let mut pair = Pair::new(transport);
    pair.run(30);
    pair.client.ping();
    pair.server_path = path("10.0.0.2:443", ELSEWHERE);
    pair.exchange(true);
    assert_eq!(pair.server.remote(), ELSEWHERE.parse().unwrap());
    pair
}

/// An Initial packet from `side`, filled up so that its datagram has `size` bytes.
pub(super) fn initial(side: Side, ids: (u8, u8), token: &[u8], frame: &Frame<'_>, size: usize) -> Vec<u8> {
    initial_with(side, ids, token, frame, size, |_| {})
}

/// The same, changed before it is sealed.
fn initial_with(
    side: Side,
    (dcid, scid): (u8, u8),
    token: &[u8],
    frame: &Frame<'_>,
    size: usize,
    change: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let keys = keys::initial(1, &cid(9), side).unwrap();
    let mut buffer = vec![0; size];
    let mut writer = Writer::new(&mut buffer);
    let number = TruncatedPacketNumber::new(7, None);
    let (dcid, scid) = (cid(dcid), cid(scid));
    let header = LongHeader { packet_type: PacketType::Initial, version: 1, dcid: &dcid, scid: &scid, token };
    let length = header.encode(&mut writer, number).unwrap();
    let pn_offset = length.packet_number_offset();
    let payload_at = writer.len();
    frame.encode(&mut writer).unwrap();
    length.patch(&mut buffer).unwrap();
    change(&mut buffer);
    let (head, payload) = buffer.split_at_mut(payload_at);
    keys.sealer.seal(0, 7, head, payload).unwrap();
    assert!(payload.len() > TAG_LEN);
    let span = PacketSpan { first: 0, pn_offset, pn_len: number.len() };
    keys.header_sealer.mask_batch(&[span], &mut buffer).unwrap();
    buffer
}

pub(super) const CLOSE: Frame<'static> = Frame::ConnectionClose {
    code: TransportErrorCode::CONNECTION_REFUSED,
    frame_type: 0,
    reason: b"go away, and do not come back before tea",
};

#[test]
fn ids_retired_over_and_over_are_replaced_once() {
    let mut pair = Pair::new(TransportConfig::default());
    let mut next = 20;
    for _ in 0..10 {
        pair.run(2);
        give_cids(&mut pair.server, &mut next);
    }
    let held = pair.server.machine.parts.local_cids.len();
    assert!(held > 1 && held <= LocalCids::WANTED);
    let info = one_rtt_packet(cid(2));
    for _ in 0..100 {
        for sequence in [1, 2] {
            pair.server.machine.on_frame(pair.now, &info, Frame::RetireConnectionId { sequence }).unwrap();
        }
    }
    assert_eq!(give_cids(&mut pair.server, &mut next), 2, "one for each id that is gone");
    assert_eq!(pair.server.machine.parts.local_cids.len(), held);
}

#[test]
fn no_rest_is_lost_for_a_keep_alive_that_may_not_be_sent() {
    let keep_alive = Some(Duration::from_secs(1));
    let mut pair = moved(TransportConfig { keep_alive, ..TransportConfig::default() });
    sent(&mut pair.server, pair.now, &mut pair.rng);
    leave_credit(&mut pair.server, 0);
    // Something came after the last that went: the time to keep alive begins anew.
    pair.server.machine.timers.on_received(pair.now);
    must_come_to_rest(&mut pair.server, &mut pair.now, &mut pair.rng);
}

#[test]
fn no_rest_is_lost_for_credit_too_small_to_use() {
    for credit in [1, 17, 30, 45, 60, 90, 119] {
        let mut pair = moved(TransportConfig::default());
        leave_credit(&mut pair.server, credit);
        must_come_to_rest(&mut pair.server, &mut pair.now, &mut pair.rng);
    }
}

#[test]
fn a_server_that_never_confirms_the_handshake_does_not_keep_it_going() {
    let transport =
        TransportConfig { max_idle_timeout: Duration::from_secs(5), ..TransportConfig::default() };
    let mut pair = Pair::new(transport);
    pair.exchange(true);
    pair.exchange(false);
    for mut datagram in sent(&mut pair.client, pair.now, &mut pair.rng) {
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
    }
    assert!(!pair.server.is_handshaking());
    pair.server
        .machine
        .parts
        .announcements
        .on_acked(crate::connection::announcements::AnnouncementToken::HandshakeDone);
    let until = pair.now + Duration::from_secs(60);
    let mut rounds = 0;
    while pair.now < until && pair.client.is_open() {
        rounds += 1;
        pair.run(1);
        let deadlines = [pair.client.deadline(), pair.server.deadline()].into_iter().flatten();
        pair.now = deadlines.min().unwrap_or(until).max(pair.now);
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
    }
    let told = events(&mut pair.client);
    assert!(told.contains(&Event::Confirmed), "by what it acknowledges: {told:?} after {rounds} rounds");
    assert!(!pair.client.is_open(), "{rounds} rounds, {:?}", pair.client.stats());
}

#[test]
fn a_new_path_keeps_to_what_the_peer_declared_and_finds_its_mtu() {
    let max_ack_delay = Duration::from_millis(90);
    let config = TransportConfig { max_ack_delay, ..TransportConfig::default() };
    let mut pair = moved(config);
    let recovery = &pair.server.machine.paths.active().recovery;
    assert_eq!(recovery.pto(), recovery.rtt().pto() + max_ack_delay);
    assert_eq!(recovery.mtu(), 1200);
    pair.run(60);
    assert_eq!(pair.server.stats().mtu, 1472);
}

#[test]
fn a_server_ignores_initial_packets_in_small_datagrams() {
    for (size, heard) in [(1199, false), (1200, true)] {
        let mut pair = Pair::new(TransportConfig::default());
        let mut datagram = initial(Side::Client, (9, 1), &[], &CLOSE, size);
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
        assert_eq!(pair.server.is_open(), !heard, "{size} bytes");
    }
}

#[test]
fn packets_without_the_quic_bit_are_ignored_unless_we_said_otherwise() {
    for (bit, grease_quic_bit, heard) in [(0, false, false), (0x40, false, true), (0, true, true)] {
        let mut pair = Pair::new(TransportConfig { grease_quic_bit, ..TransportConfig::default() });
        let change = |packet: &mut [u8]| packet[0] = packet[0] & !0x40 | bit;
        let mut datagram = initial_with(Side::Client, (9, 1), &[], &CLOSE, 1200, change);
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
        assert_eq!(pair.server.is_open(), !heard);
    }
}

#[test]
fn a_client_ignores_initial_packets_with_a_token() {
    for (token, heard) in [(&b"token"[..], false), (b"", true)] {
        let mut pair = Pair::new(TransportConfig::default());
        let mut datagram = initial(Side::Server, (1, 2), token, &CLOSE, 1200);
        pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut datagram);
        assert_eq!(pair.client.is_open(), !heard);
    }
}

#[test]
fn a_token_that_leaves_no_room_is_not_taken() {
    for (len, taken) in [(1025, false), (1024, true)] {
        let mut pair = Pair::new(TransportConfig::default());
        let mut config = ClientConfig::new(deterministic::client_config(&[b"test"]), Arc::default());
        config.resumption.store = Some(Arc::new(MemorySessions::new(1)));
        let memory = ServerMemory::new(&config, &[], deterministic::SERVER_NAME).unwrap();
        pair.client.machine.negotiation.memory = Some(memory.clone());
        let mut buffer = vec![0; 1400];
        let mut writer = Writer::new(&mut buffer);
        godwit_wire::header::encode_retry(&mut writer, 1, &cid(1), &cid(5), &vec![7; len], 0).unwrap();
        let tag = keys::retry_integrity_tag(1, &cid(9), writer.written()).unwrap();
        writer.bytes(&tag).unwrap();
        let mut retry = writer.written().to_vec();
        pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut retry);
        assert_eq!(pair.client.machine.negotiation.token.len(), if taken { len } else { 0 });
        assert!(!sent(&mut pair.client, pair.now, &mut pair.rng).is_empty(), "the client goes on");
        let frame = Frame::NewToken { token: &vec![7; len] };
        pair.client.machine.on_frame(pair.now, &one_rtt_packet(cid(1)), frame).unwrap();
        assert_eq!(memory.take_token().is_some(), taken);
    }
}

#[test]
fn a_server_acknowledges_although_it_has_no_credit_for_its_messages() {
    let mut pair = Pair::new(TransportConfig::default());
    for mut datagram in sent(&mut pair.client, pair.now, &mut pair.rng) {
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram);
    }
    pair.server.machine.on_batch_end(pair.now);
    leave_credit(&mut pair.server, 600);
    let datagrams = sent(&mut pair.server, pair.now, &mut pair.rng);
    assert_eq!(datagrams.len(), 1);
    assert!(datagrams[0].len() < 200, "an acknowledgement and no more: {}", datagrams[0].len());
    assert!(pair.server.machine.spaces.ack_deadline().is_none());
    let mut padded = initial(Side::Client, (9, 1), &[], &Frame::Ping, 1200);
    pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut padded);
    pair.server.machine.on_batch_end(pair.now);
    let lengths: Vec<usize> = sent(&mut pair.server, pair.now, &mut pair.rng).iter().map(Vec::len).collect();
    assert_eq!(lengths[0], 1200, "the messages follow with the credit: {lengths:?}");
}

#[test]
fn the_id_of_a_preferred_address_can_be_withdrawn() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    let server = Negotiation::server(cid(2), cid(9), None, cid(1));
    let mut parameters = server.parameters(&TransportConfig::default(), 1, &[1]);
    parameters.preferred_address = Some(godwit_wire::transport_parameters::PreferredAddress {
        ipv4: Some("10.0.0.3:443".parse().unwrap()),
        ipv6: None,
        cid: cid(30),
        reset_token: ResetToken([30; 16]),
    });
    let encoded = negotiation::encode(&parameters, 1).unwrap();
    pair.client.machine.on_peer_parameters(pair.now, &encoded).unwrap();
    let (cid, reset_token) = (cid(31), ResetToken([31; 16]));
    let frame = Frame::NewConnectionId { sequence: 2, retire_prior_to: 2, cid, reset_token };
    pair.client.machine.on_frame(pair.now, &one_rtt_packet(self::cid(1)), frame).unwrap();
    assert_eq!(*pair.client.machine.parts.remote_cids.active(), cid);
    let cids = &mut pair.client.machine.parts.remote_cids;
    let (_, tokens, ()) =
        crate::packet::testing::payload::<RetiredId, _>(100, |packet| cids.write_frames(packet));
    assert_eq!(tokens, [1, 0].map(RetiredId));
}

#[test]
fn memory_for_a_huge_acknowledgement_is_given_back() {
    let mut pair = Pair::new(TransportConfig::default());
    let outcome = (Outcome::Acked, RecoveryToken::Ack { largest: 0 });
    pair.client.machine.outcomes = vec![outcome; 100_000];
    pair.client.machine.dispatch_outcomes(SpaceId::Data);
    assert!(pair.client.machine.outcomes.capacity() < 10_000);
}

#[test]
fn parameters_that_name_another_version_are_refused() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    let server = Negotiation::server(cid(2), cid(9), None, cid(1));
    for (version, fine) in [(godwit_wire::version::V1, true), (godwit_wire::version::V2, false)] {
        let mut parameters = server.parameters(&TransportConfig::default(), version, &[1]);
        parameters.stateless_reset_token = Some(ResetToken([2; 16]));
        let encoded = negotiation::encode(&parameters, 1).unwrap();
        let result = pair.client.machine.on_peer_parameters(pair.now, &encoded).map_err(|error| error.code);
        let expected = if fine { Ok(()) } else { Err(TransportErrorCode::VERSION_NEGOTIATION_ERROR) };
        assert_eq!(result, expected);
    }
}

/// What the server sends now reaches the client if it goes there. Returns what goes elsewhere.
fn sent_elsewhere(pair: &mut Pair) -> Vec<(SocketAddr, usize)> {
    let home = pair.server_path.remote;
    let mut batch = SendBatch::new(1 << 20);
    while pair.server.machine.transmit(pair.now, &mut batch, &mut pair.rng)
        == crate::connection::boundary::Transmitted::More
    {}
    let mut elsewhere = Vec::new();
    for (meta, datagram) in batch.datagrams() {
        if meta.remote == home {
            pair.client.machine.receive(pair.now, pair.client_path, Ecn::NotEct, &mut datagram.to_vec());
        } else {
            elsewhere.push((meta.remote, datagram.len()));
        }
    }
    pair.client.machine.on_batch_end(pair.now);
    elsewhere
}

#[test]
fn challenges_from_everywhere_are_answered_within_what_came_from_there() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    let (mut rng, mut host, mut next) = (SeededRng::new(3), 0, 20);
    let mut books = BTreeMap::<_, (usize, usize)>::new();
    for round in 0..1_000 {
        if rng.below(10) == 0 {
            host = rng.below(9);
        }
        let key = path("10.0.0.2:443", &format!("10.9.9.{host}:999"));
        let len = 30 + rng.below(600) as usize;
        let arrival = pair.server.machine.paths.on_datagram(&key, len);
        let path = match arrival {
            Arrival::Known(id) => id,
            Arrival::New => {
                let origin = Datagram { key, arrival, ecn: Ecn::NotEct, len, at: pair.now };
                pair.server.machine.adopt_path(pair.now, &origin).unwrap()
            }
            Arrival::Ignored => panic!("the handshake is confirmed"),
        };
        books.entry(key.remote).or_default().0 += len;
        let info = PacketInfo { path, ..one_rtt_packet(cid(2)) };
        for _ in 0..20 {
            let data = rng.next_u64().to_be_bytes();
            pair.server.machine.on_frame(pair.now, &info, Frame::PathChallenge { data }).unwrap();
        }
        let sent = sent_elsewhere(&mut pair);
        assert!(sent.len() <= PathSet::MAX_OTHERS, "{sent:?}");
        for (remote, len) in sent {
            books.entry(remote).or_default().1 += len;
        }
        for (remote, (received, sent)) in &books {
            assert!(*sent <= 3 * received, "round {round}: {sent} bytes to {remote} for {received}");
        }
        // The client is still there, and has ids for all those paths.
        give_cids(&mut pair.client, &mut next);
        pair.client.ping();
        pair.exchange(true);
        pair.now += Duration::from_millis(rng.below(100));
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
    }
    assert!(books.values().all(|(_, sent)| *sent > 2_000), "{books:?}");
    assert!(pair.server.is_open() && pair.server.remote() == pair.server_path.remote);
}

#[test]
fn no_id_goes_to_two_addresses_of_a_client_that_moves_by_its_own_will() {
    for (deliberate, has_ids) in [(true, false), (true, true), (false, false)] {
        let mut pair = Pair::new(TransportConfig::default());
        let mut next = 20;
        for _ in 0..10 {
            pair.run(2);
            give_cids(&mut pair.server, &mut next);
            if has_ids {
                give_cids(&mut pair.client, &mut next);
            }
        }
        assert_eq!(pair.server.machine.parts.remote_cids.can_assign(None), has_ids);
        let (home, id) = (pair.server_path.remote, *pair.server.machine.parts.remote_cids.active());
        if deliberate {
            assert!(pair.client.machine.parts.remote_cids.rotate());
        }
        pair.client.ping();
        pair.server_path = path("10.0.0.2:443", ELSEWHERE);
        pair.exchange(true);
        // A NAT may have given the client another address. But if it changed its own id as well, it moved, and
        // an id that it did not give cannot be used where it is now (RFC 9000 section 9.5).
        let follows = !deliberate || has_ids;
        assert_eq!(pair.server.remote() != home, follows, "{deliberate} {has_ids}");
        assert_eq!(*pair.server.machine.parts.remote_cids.active() == id, !has_ids);
        pair.run(20);
        assert!(pair.client.is_open() && pair.server.is_open());
        if !follows {
            let mut next = 60;
            give_cids(&mut pair.client, &mut next);
            pair.run(4);
            pair.client.ping();
            pair.exchange(true);
            assert_eq!(pair.server.remote(), ELSEWHERE.parse().unwrap(), "there are ids now");
            assert_ne!(*pair.server.machine.parts.remote_cids.active(), id);
        }
    }
}

#[test]
fn a_client_whose_old_path_is_dead_is_followed_even_without_an_id_for_it() {
    let mut pair = Pair::new(TransportConfig::default());
    let mut next = 20;
    for _ in 0..10 {
        pair.run(2);
        give_cids(&mut pair.server, &mut next);
    }
    let id = *pair.server.machine.parts.remote_cids.active();
    assert!(pair.client.machine.parts.remote_cids.rotate());
    let stream = pair.server.open(Direction::Unidirectional).unwrap();
    pair.server.write(stream, Bytes::from_static(&[7; 5_000])).unwrap();
    pair.server_path = path("10.0.0.2:443", ELSEWHERE);
    for timeouts in 0..=2 {
        pair.client.ping();
        pair.exchange(true);
        assert_eq!(pair.server.remote() == pair.server_path.remote, timeouts == 2);
        if timeouts < 2 {
            // To nobody.
            sent(&mut pair.server, pair.now, &mut pair.rng);
            pair.now = pair.server.machine.loss_timer(pair.server.machine.paths.active()).unwrap().0;
            pair.server.on_timeout(pair.now);
        }
    }
    assert_eq!(
        (pair.server.remote(), *pair.server.machine.parts.remote_cids.active()),
        (ELSEWHERE.parse().unwrap(), id)
    );
    for _ in 0..10 {
        pair.run(2);
        give_cids(&mut pair.client, &mut next);
    }
    assert_ne!(
        *pair.server.machine.parts.remote_cids.active(),
        id,
        "it has one of its own as soon as possible"
    );
    assert!(pair.client.read(pair.now, stream, 10_000).is_ok() && pair.server.is_open());
}

#[test]
fn noise_keeps_no_path_alive() {
    let mut pair = moved(TransportConfig::default());
    let home = path("10.0.0.2:443", "10.0.0.1:1");
    let mut noise = [0x40; 60];
    noise[1..9].fill(2);
    for _ in 0..100 {
        pair.run(1);
        pair.server.machine.receive(pair.now, home, Ecn::NotEct, &mut noise.clone());
        pair.now += Duration::from_millis(50);
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
    }
    assert_eq!(
        pair.server.paths().map(|path| path.key.remote).collect::<Vec<_>>(),
        [ELSEWHERE.parse().unwrap()]
    );
}

#[test]
fn a_code_that_cannot_be_told_is_told_as_the_largest_that_can() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    pair.client.close(pair.now, u64::MAX, b"");
    pair.run(2);
    let told = events(&mut pair.server);
    let Some(Event::Closed { reason: crate::ConnectionError::PeerApplication { code, .. } }) = told.last()
    else {
        panic!("{told:?}")
    };
    assert_eq!(*code, (1 << 62) - 1);
}

/// A server that has sent to where its client is no more, and follows it.
fn followed(mut pair: Pair) -> (Pair, StreamId) {
    let stream = pair.server.open(Direction::Unidirectional).unwrap();
    pair.server.write(stream, Bytes::from_static(&[7; 8_000])).unwrap();
    sent(&mut pair.server, pair.now, &mut pair.rng);
    // So much that the server may answer.
    let moved = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(moved, Bytes::from_static(&[8; 1_000])).unwrap();
    pair.server_path = path("10.0.0.2:443", ELSEWHERE);
    pair.exchange(true);
    assert_eq!(pair.server.remote(), ELSEWHERE.parse().unwrap());
    (pair, stream)
}

/// The loss timer of the path that was left.
fn timer_left(pair: &Pair) -> Option<(Time, TimerKind)> {
    let machine = &pair.server.machine;
    machine.loss_timer(machine.paths.all().nth(1).unwrap())
}

#[test]
fn the_books_of_two_paths_stay_apart_when_numbers_come_again() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    // So many addresses the client has come from.
    (0..u16::MAX).for_each(|_| _ = pair.server.machine.migration.next_recovery_id());
    let (mut pair, stream) = followed(pair);
    pair.run(200);
    assert!(matches!(pair.client.read(pair.now, stream, 10_000), Ok(ReadChunk::Data(_))));
    assert!(pair.server.paths().all(|path| path.bytes_in_flight == 0));
}

#[test]
fn a_path_that_was_left_calls_for_what_is_in_flight_on_it() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    let (mut pair, _) = followed(pair);
    let Some((probe_at, TimerKind::Pto(SpaceId::Data))) = timer_left(&pair) else {
        panic!("no probe timeout")
    };
    assert!(pair.server.deadline() <= Some(probe_at));
    // The client is nearer where it is now, so that what it acknowledges comes before the time threshold.
    pair.delay = Duration::from_millis(2);
    pair.exchange(false);
    pair.exchange(true);
    let Some((lost_at, TimerKind::LossTime(SpaceId::Data))) = timer_left(&pair) else {
        panic!("none is late")
    };
    assert_eq!(pair.server.deadline(), Some(lost_at));
    pair.server.on_timeout(lost_at);
    assert_eq!(timer_left(&pair), None);
    assert_eq!(pair.server.paths().nth(1).unwrap().bytes_in_flight, 0);
}

#[test]
fn no_rest_is_lost_for_what_is_in_flight_where_a_client_was() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(30);
    let (mut pair, _) = followed(pair);
    // Probes would go where the client seems to be now, and may not.
    assert!(timer_left(&pair).is_some());
    leave_credit(&mut pair.server, 100);
    assert_eq!(timer_left(&pair), None);
    must_come_to_rest(&mut pair.server, &mut pair.now, &mut pair.rng);
}
