//! The endpoint against handshakes made by hand.

#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod first_packets;
mod forgetting;
mod greedy;
mod hoarders;
mod scarce;
mod settings;
mod shares;
mod strangers;
mod unfinished;

use super::*;
use crate::cid::Route;
use godwit_base::{Ecn, RecvBatch, RecvMeta, SeededRng, SendBatch, SocketId};
use godwit_tls::keys::{self, PacketSpan, TAG_LEN};
use godwit_tls::secrets::ServerSecrets;
use godwit_wire::frame::Frames;
use godwit_wire::header::{self, LongHeader, Packet, PacketType};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{Frame, Side, TransportErrorCode, Writer, version};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::time::Duration;

const CLIENT: &str = "192.0.2.1:4000";

/// An endpoint, and a client that has only its hands.
struct Rig {
    endpoint: Endpoint,
    now: Time,
}

impl Rig {
    fn new(retry: bool) -> Self {
        Rig::with(retry, |_| {})
    }

    fn with(retry: bool, change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mut config = EndpointConfig {
            shard: 3,
            generation: 4,
            max_connections: 10,
            max_incoming: 100,
            ..EndpointConfig::new(Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(99))))
        };
        change(&mut config);
        godwit_tls::deterministic::seed(1);
        let tls = godwit_tls::deterministic::server_config(&[b"test"]);
        let server = ServerConfig { retry, ..ServerConfig::new(tls, Arc::default()) };
        let endpoint = Endpoint::new(config, Some(Arc::new(server)), Box::new(SeededRng::new(1)));
        Rig { endpoint, now: Time::from_nanos(1_000_000_000) }
    }

    fn wall(&self) -> WallTime {
        WallTime::from_unix_micros(1_700_000_000_000_000 + self.now.as_micros())
    }

    /// One datagram goes in; the datagrams that come out.
    fn receive_from(&mut self, from: &str, datagram: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut batch = RecvBatch::new(1, 65_536);
        assert!(batch.push_datagram(meta(from), datagram));
        self.endpoint.receive(self.now, self.wall(), &mut batch);
        self.sent()
    }

    fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.receive_from(CLIENT, datagram).into_iter().map(|(_, datagram)| datagram).collect()
    }

    fn sent(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut batch, mut sent) = (SendBatch::new(1 << 20), Vec::new());
        loop {
            let more = self.endpoint.transmit(self.now, &mut batch);
            sent.extend(batch.datagrams().map(|(meta, bytes)| (meta.remote, bytes.to_vec())));
            batch.clear();
            if !more {
                return sent;
            }
        }
    }

    /// What is for other shards and generations.
    fn foreign(&mut self) -> Vec<(Foreign, Vec<u8>)> {
        let mut batch = ForeignBatch::new();
        self.endpoint.swap_foreign(&mut batch);
        batch.runs().map(|(foreign, run)| (*foreign, run.to_vec())).collect()
    }

    /// An id that looks like one of ours but is nobody's.
    fn forgotten_cid(&self) -> ConnectionId {
        self.endpoint.cid_codec().issue(&mut SeededRng::new(1234))
    }
}

fn meta(from: &str) -> RecvMeta {
    RecvMeta {
        socket: SocketId(0),
        local: None,
        remote: from.parse().unwrap(),
        ecn: Ecn::NotEct,
        len: 0,
        stride: 1,
    }
}

fn cid(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).unwrap()
}

/// A ClientHello that asks for a name and a protocol, made longer by an extension without meaning.
fn client_hello(padding: usize) -> Vec<u8> {
    fn vector<const LEN: usize>(content: &[u8]) -> Vec<u8> {
        let len = (content.len() as u64).to_be_bytes();
        [&len[8 - LEN..], content].concat()
    }
    let extension = |kind: u16, content: &[u8]| [&kind.to_be_bytes()[..], &vector::<2>(content)].concat();
    let name = vector::<2>(&[&[0][..], &vector::<2>(b"example.org")].concat());
    let alpn = vector::<2>(&vector::<1>(b"test"));
    let extensions = [extension(0, &name), extension(16, &alpn), extension(21, &vec![0; padding])].concat();
    let body = [
        &[3, 3][..],
        &[0x55; 32],
        &vector::<1>(&[]),
        &vector::<2>(&[0x13, 0x01]),
        &vector::<1>(&[0]),
        &vector::<2>(&extensions),
    ]
    .concat();
    [&[1][..], &vector::<3>(&body)].concat()
}

/// A client's Initial packet.
#[derive(Clone)]
struct Initial<'a> {
    version: u32,
    dcid: ConnectionId,
    token: &'a [u8],
    number: u64,
    offset: u64,
    crypto: &'a [u8],
    size: usize,
    first_byte_mask: u8,
}

impl<'a> Initial<'a> {
    fn new(dcid: u8, crypto: &'a [u8]) -> Self {
        Initial {
            version: version::V1,
            dcid: cid(dcid),
            token: &[],
            number: 0,
            offset: 0,
            crypto,
            size: 1200,
            first_byte_mask: 0xff,
        }
    }

    fn seal(&self) -> Vec<u8> {
        self.seal_with(&Frame::Crypto { offset: self.offset, data: self.crypto })
    }

    fn seal_with(&self, frame: &Frame<'_>) -> Vec<u8> {
        let mut frames = vec![0; self.size];
        let mut writer = Writer::new(&mut frames);
        frame.encode(&mut writer).unwrap();
        let len = writer.len();
        self.seal_raw(&frames[..len])
    }

    /// With these frames, encoded.
    fn seal_raw(&self, frames: &[u8]) -> Vec<u8> {
        let keys = keys::initial(self.version, &self.dcid, Side::Client).unwrap();
        let mut buffer = vec![0; self.size];
        let mut writer = Writer::new(&mut buffer);
        let number = TruncatedPacketNumber::new(self.number, None);
        let header = LongHeader {
            packet_type: PacketType::Initial,
            version: self.version,
            dcid: &self.dcid,
            scid: &cid(0xcc),
            token: self.token,
        };
        let slot = header.encode(&mut writer, number).unwrap();
        let payload_at = writer.len();
        writer.space(frames.len()).unwrap().copy_from_slice(frames);
        writer.space(self.size - TAG_LEN - writer.len()).unwrap().fill(0);
        slot.fill(&mut writer, TAG_LEN).unwrap();
        writer.space(TAG_LEN).unwrap();
        writer.written_mut()[0] &= self.first_byte_mask;
        let (header, payload) = writer.written_mut().split_at_mut(payload_at);
        keys.sealer.seal(0, self.number, header, payload).unwrap();
        let span = PacketSpan { first: 0, pn_offset: slot.packet_number_offset(), pn_len: number.len() };
        keys.header_sealer.mask_batch(&[span], writer.written_mut()).unwrap();
        buffer
    }
}

fn first_initial(dcid: u8) -> Vec<u8> {
    Initial::new(dcid, &client_hello(0)).seal()
}

/// The code of a close that the endpoint sent in answer to a packet to `client_dcid`.
fn close_code(datagram: &[u8], client_dcid: &ConnectionId) -> TransportErrorCode {
    let mut datagram = datagram.to_vec();
    let Ok(Packet::Long { version, packet_number_offset, .. }) = header::parse(&datagram, 8) else {
        panic!("not a long header");
    };
    let keys = keys::initial(version, client_dcid, Side::Client).unwrap();
    let (_, number) = keys.header_opener.unmask(&mut datagram, packet_number_offset).unwrap();
    let (head, payload) = datagram.split_at_mut(packet_number_offset + number.len());
    let len = keys.opener.open(0, number.expand(0), head, payload).unwrap();
    match Frames::new(&payload[..len]).next() {
        Some(Ok(Frame::ConnectionClose { code, .. })) => code,
        other => panic!("{other:?}"),
    }
}

fn retry_of(datagram: &[u8]) -> (ConnectionId, Vec<u8>) {
    match header::parse(datagram, 8) {
        Ok(Packet::Retry { scid, token, .. }) => (scid, datagram[token].to_vec()),
        other => panic!("{other:?}"),
    }
}

fn short_packet(dcid: &ConnectionId, len: usize) -> Vec<u8> {
    let mut bytes = [&[0x40], dcid.as_bytes()].concat();
    bytes.resize(len, 0xaa);
    bytes
}

#[test]
fn an_unknown_version_is_answered_once_and_only_if_it_is_long() {
    let mut rig = Rig::new(false);
    let mut datagram = first_initial(1);
    datagram[1..5].copy_from_slice(&0x0a1a_2a3a_u32.to_be_bytes());
    let answers = rig.receive(&datagram);
    let [answer] = &answers[..] else { panic!("{} answers", answers.len()) };
    let Ok(Packet::VersionNegotiation { dcid, scid, .. }) = header::parse(answer, 8) else { panic!() };
    assert_eq!((dcid, scid), (cid(0xcc), cid(1)));
    assert!(rig.receive(&datagram[..1199]).is_empty());
    let mut negotiation = answer.clone();
    negotiation.resize(1200, 0);
    assert!(rig.receive(&negotiation).is_empty(), "never in answer to its like");
    assert!(rig.endpoint.is_idle());
    rig.endpoint.server = None;
    assert!(rig.receive(&datagram).is_empty(), "a client speaks when it is spoken to");
}

#[test]
fn nobody_begins_where_services_answer_to_anybody() {
    let mut rig = Rig::new(false);
    let socket = meta(CLIENT).socket;
    let mut unknown = first_initial(2);
    unknown[1..5].copy_from_slice(&0x0a1a_2a3a_u32.to_be_bytes());
    let forgotten = short_packet(&rig.forgotten_cid(), 100);
    for (number, datagram) in [first_initial(1), unknown, forgotten].iter().enumerate() {
        assert!(rig.receive_from("192.0.2.1:53", datagram).is_empty());
        assert_eq!(rig.endpoint.discarded_at(socket), number as u64 + 1);
    }
    assert!(rig.endpoint.is_idle());
    assert_eq!(rig.receive_from("192.0.2.1:54", &first_initial(1)).len(), 0, "it waits for its fate");
    assert!(rig.endpoint.next_incoming().is_some());
    assert_eq!(rig.endpoint.discarded_at(socket), 3);
}

#[test]
fn what_is_good_for_nothing_is_counted_where_it_came() {
    let mut rig = Rig::new(false);
    let socket = meta(CLIENT).socket;
    let short_id = [&[0xc0, 0, 0, 0, 1, 3, 1, 2, 3][..], &[0; 1200]].concat();
    let all: [&[u8]; 3] = [&[0x40], &first_initial(1)[..1199], &short_id];
    all.iter().for_each(|datagram| assert!(rig.receive(datagram).is_empty()));
    assert_eq!(rig.endpoint.discarded_at(socket), 3);
    assert_eq!(rig.endpoint.discarded_at(SocketId(77)), 0);
}

#[test]
fn versions_can_be_others_from_now_on() {
    let mut rig = Rig::new(false);
    let hello = client_hello(0);
    let datagram = |version| Initial { version, ..Initial::new(1, &hello) }.seal();
    rig.endpoint.set_versions(vec![version::DRAFT_29], None);
    assert!(matches!(
        header::parse(&rig.receive(&datagram(version::V1))[0], 8),
        Ok(Packet::VersionNegotiation { .. })
    ));
    assert!(rig.receive(&datagram(version::DRAFT_29)).is_empty());
    assert!(rig.endpoint.next_incoming().is_some());
}

#[test]
fn a_known_version_that_is_not_wanted_counts_as_unknown() {
    let mut rig = Rig::with(false, |config| config.versions = vec![version::V1]);
    let hello = client_hello(0);
    let datagram = Initial { version: version::V2, ..Initial::new(1, &hello) }.seal();
    assert!(matches!(header::parse(&rig.receive(&datagram)[0], 8), Ok(Packet::VersionNegotiation { .. })));
    assert_eq!(rig.endpoint.next_incoming(), None);
}

#[test]
fn the_application_sees_who_wants_what() {
    for version in [version::V1, version::V2] {
        let mut rig = Rig::new(false);
        let hello = client_hello(0);
        assert!(rig.receive(&Initial { version, ..Initial::new(1, &hello) }.seal()).is_empty());
        let key = rig.endpoint.next_incoming().unwrap();
        let incoming = rig.endpoint.incoming(key).unwrap();
        assert_eq!(incoming.server_name(), Some("example.org"));
        assert_eq!(incoming.alpn().collect::<Vec<_>>(), [b"test"]);
        assert_eq!(incoming.remote(), CLIENT.parse().unwrap());
        assert_eq!(incoming.version(), version);
        assert!(!incoming.is_validated());
        assert_eq!(rig.endpoint.next_incoming(), None, "shown once");
    }
}

#[test]
fn what_cannot_be_a_first_packet_makes_no_state() {
    let mut rig = Rig::new(false);
    let hello = client_hello(0);
    let whole = first_initial(1);
    let small = Initial { size: 1199, ..Initial::new(1, &hello) }.seal();
    let short_id = Initial { dcid: ConnectionId::new(&[1; 7]).unwrap(), ..Initial::new(1, &hello) }.seal();
    let mut forged = whole.clone();
    forged[600] ^= 1;
    for datagram in
        [small, short_id, forged, whole[..1100].to_vec(), [&[0xc0, 0, 0, 0, 1, 8][..], &[0; 1194]].concat()]
    {
        assert!(rig.receive(&datagram).is_empty());
        assert!(rig.endpoint.is_idle());
    }
    let nonsense = Initial::new(1, &[2, 0, 0, 0]).seal();
    let answers = rig.receive(&nonsense);
    assert_eq!(close_code(&answers[0], &cid(1)), TransportErrorCode::PROTOCOL_VIOLATION);
    assert!(rig.endpoint.is_idle());
}

#[test]
fn what_is_missing_of_a_client_hello_finds_room() {
    let hello = client_hello(1500);
    let (front, back) = hello.split_at(900);
    let front = Initial::new(1, front).seal();
    let back = Initial { number: 1, offset: 900, ..Initial::new(1, back) }.seal();
    let mut damaged = back.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let mut rig = Rig::new(false);
    for _ in 0..30 {
        rig.receive(&front);
        rig.receive(&damaged);
    }
    // The connection would not read it (RFC 9000 section 14.1).
    let small = Initial { number: 1, offset: 900, size: 1199, ..Initial::new(1, &hello[900..]) }.seal();
    assert!(rig.receive(&small).is_empty(), "nor is it acknowledged");
    assert_eq!(rig.endpoint.next_incoming(), None);
    rig.receive(&back);
    let key = rig.endpoint.next_incoming().unwrap();
    assert_eq!(rig.endpoint.incoming(key).unwrap().datagrams.len(), 2);
}

/// The id that a packet of ours tells the client, the packet's number, and what it says.
fn initial_of(datagram: &[u8], client_dcid: &ConnectionId) -> (ConnectionId, u64, Vec<String>) {
    let mut datagram = datagram.to_vec();
    let Ok(Packet::Long { version, scid, packet_number_offset, .. }) = header::parse(&datagram, 8) else {
        panic!("not a long header");
    };
    let keys = keys::initial(version, client_dcid, Side::Client).unwrap();
    let (_, number) = keys.header_opener.unmask(&mut datagram, packet_number_offset).unwrap();
    let (head, payload) = datagram.split_at_mut(packet_number_offset + number.len());
    let number = number.expand(0);
    let len = keys.opener.open(0, number, head, payload).unwrap();
    let frames = Frames::new(&payload[..len]).map(|frame| match frame.unwrap() {
        Frame::Ack(ack) => {
            format!("{:?} {:?}", ack.ranges.into_iter().collect::<Vec<_>>(), ack.ecn.map(|ecn| ecn.ect0))
        }
        frame => format!("{frame:?}"),
    });
    (scid, number, frames.collect())
}

#[test]
fn the_beginning_of_a_client_hello_is_acknowledged() {
    let hello = client_hello(1500);
    let (front, back) = hello.split_at(900);
    let sealed = |number| Initial { number, ..Initial::new(1, front) }.seal();
    let mut rig = Rig::new(false);
    let first = initial_of(&rig.receive(&sealed(0))[0], &cid(1));
    assert_eq!((first.1, &first.2[..]), (0, &["[0..=0] None".to_owned()][..]));
    assert!(matches!(rig.endpoint.codec.route(first.0.as_bytes()), Route::Ours));
    let repeated = initial_of(&rig.receive(&sealed(2))[0], &cid(1));
    assert_eq!(repeated, (first.0, 1, vec!["[2..=2, 0..=0] None".to_owned()]));
    // The rest comes to the id that was told; the connection goes on where this ended.
    let back = Initial { number: 3, offset: 900, ..Initial::new(1, back) }.seal();
    assert!(rig.receive(&back).is_empty());
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(!rig.endpoint.incoming(key).unwrap().may_retry() && !rig.endpoint.retry(key));
    assert!(rig.endpoint.refuse(key));
    let refused = initial_of(&rig.sent()[0].1, &cid(1));
    assert_eq!((refused.0, refused.1), (first.0, 2));
    assert!(refused.2[0].starts_with("ConnectionClose"), "{refused:?}");
    assert_eq!(rig.endpoint.demux.initial_len(), 0);
}

#[test]
fn what_cannot_be_kept_is_not_acknowledged() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 1);
    let hello = client_hello(6500);
    let mut answers: Vec<_> = (0..)
        .zip(hello.chunks(1000))
        .map(|(number, crypto)| {
            let initial = Initial { number, offset: number * 1000, ..Initial::new(1, crypto) };
            initial_of(&rig.receive(&initial.seal()).remove(0), &cid(1)).2.remove(0)
        })
        .take(6)
        .collect();
    let refused = answers.pop().unwrap();
    assert!(refused.starts_with("ConnectionClose"), "{refused}");
    assert_eq!(answers.last().map(String::as_str), Some("[0..=4] None"));
    assert!(rig.endpoint.is_idle());
}

#[test]
fn a_client_hello_that_comes_in_one_batch_is_not_acknowledged_in_parts() {
    let hello = client_hello(1500);
    let (front, back) = hello.split_at(900);
    let mut batch = RecvBatch::new(2, 65_536);
    assert!(batch.push_datagram(meta(CLIENT), &Initial::new(1, front).seal()));
    let back = Initial { number: 1, offset: 900, ..Initial::new(1, back) }.seal();
    assert!(batch.push_datagram(meta(CLIENT), &back));
    let mut rig = Rig::new(false);
    let wall = rig.wall();
    rig.endpoint.receive(rig.now, wall, &mut batch);
    assert!(rig.sent().is_empty());
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(rig.endpoint.retry(key));
}

#[test]
fn a_client_hello_may_span_datagrams_in_any_order() {
    let hello = client_hello(1500);
    let (front, back) = hello.split_at(900);
    let front = Initial::new(1, front).seal();
    let back = Initial { number: 1, offset: 900, ..Initial::new(1, back) }.seal();
    for datagrams in [[&front, &back], [&back, &front]] {
        let mut rig = Rig::new(false);
        rig.receive(datagrams[0]);
        assert_eq!(rig.endpoint.next_incoming(), None);
        rig.receive_from("192.0.2.9:4000", datagrams[1]);
        assert_eq!(rig.endpoint.next_incoming(), None, "from elsewhere");
        rig.receive(datagrams[1]);
        let key = rig.endpoint.next_incoming().unwrap();
        assert_eq!(rig.endpoint.incoming(key).unwrap().server_name(), Some("example.org"));
        assert_eq!(rig.endpoint.incoming(key).unwrap().datagrams.len(), 2);
        for _ in 0..30 {
            rig.receive(datagrams[0]);
        }
        assert_eq!(rig.endpoint.incoming(key).unwrap().datagrams.len(), 16, "bounded");
    }
}

#[test]
fn a_retry_proves_the_address() {
    let mut rig = Rig::new(true);
    let hello = client_hello(0);
    let answers = rig.receive(&first_initial(1));
    let (retry_scid, token) = retry_of(&answers[0]);
    assert!(rig.endpoint.is_idle(), "no state is kept");
    let second = Initial { dcid: retry_scid, token: &token, ..Initial::new(1, &hello) };
    rig.now += Duration::from_secs(14);
    assert!(rig.receive(&second.seal()).is_empty());
    let key = rig.endpoint.next_incoming().unwrap();
    let incoming = rig.endpoint.incoming(key).unwrap();
    assert!(incoming.is_validated());
    assert_eq!(incoming.first.original_dcid, cid(1));
    assert_eq!(incoming.first.retry_scid, Some(retry_scid));
    assert_eq!(incoming.first.client_dcid, retry_scid);
    assert!(!rig.endpoint.retry(key), "twice is once too often");
    assert!(rig.endpoint.incoming(key).is_some());
}

#[test]
fn a_retry_token_that_does_not_hold_is_refused() {
    let mut rig = Rig::new(true);
    let hello = client_hello(0);
    let (retry_scid, token) = retry_of(&rig.receive(&first_initial(1))[0]);
    let second = Initial { dcid: retry_scid, token: &token, ..Initial::new(1, &hello) };
    let mut garbled = token.clone();
    garbled[20] ^= 1;
    let elsewhere = rig.receive_from("192.0.2.1:4001", &second.seal());
    let garbled = rig.receive(&Initial { token: &garbled, ..second.clone() }.seal());
    rig.now += Duration::from_secs(16);
    let expired = rig.receive(&second.seal());
    for answer in [&elsewhere[0].1, &garbled[0], &expired[0]] {
        assert_eq!(close_code(answer, &retry_scid), TransportErrorCode::INVALID_TOKEN);
    }
    let unknown = rig.receive(&Initial { token: b"of another server", ..second }.seal());
    retry_of(&unknown[0]);
    assert!(rig.endpoint.is_idle());
}

#[test]
fn a_token_for_later_proves_the_address() {
    let mut rig = Rig::new(true);
    let remote: SocketAddr = CLIENT.parse().unwrap();
    let token = crate::address_token::NewToken { address: remote.ip(), issued: rig.wall(), path: None };
    let token = token.seal(&rig.endpoint.config.secrets, &mut SeededRng::new(1)).unwrap();
    let hello = client_hello(0);
    rig.receive_from("192.0.2.1:9", &Initial { token: &token, ..Initial::new(1, &hello) }.seal());
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(rig.endpoint.incoming(key).unwrap().is_validated());
    let elsewhere =
        rig.receive_from("192.0.2.2:9", &Initial { token: &token, ..Initial::new(2, &hello) }.seal());
    retry_of(&elsewhere[0].1);
}

#[test]
fn every_decision_ends_an_incoming_handshake() {
    let mut rig = Rig::new(false);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(rig.endpoint.refuse(key) && !rig.endpoint.refuse(key) && !rig.endpoint.ignore(key));
    assert!(!rig.endpoint.retry(key));
    let sent = rig.sent();
    assert_eq!(close_code(&sent[0].1, &cid(1)), TransportErrorCode::CONNECTION_REFUSED);

    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(rig.endpoint.ignore(key));
    assert!(rig.sent().is_empty());

    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(rig.endpoint.retry(key));
    retry_of(&rig.sent()[0].1);
    assert_eq!(rig.endpoint.accept(rig.now, key, None), Err(AcceptError::Gone));
    assert!(rig.endpoint.is_idle());
}

#[test]
fn an_accepted_handshake_is_a_connection() {
    let mut rig = Rig::with(false, |config| config.max_connections = 1);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    let conn = rig.endpoint.accept(rig.now, key, None).unwrap();
    assert_eq!(rig.endpoint.connections(), 1);
    assert!(rig.endpoint.incoming(key).is_none());
    let found = rig.endpoint.demux.find(&cid(1), true);
    assert_eq!(found, Some(demux::Target::Connection(conn)), "repeated first packets are its own");
    let local = rig.endpoint.slots.get(conn.0).unwrap().cids[0];
    assert_eq!(rig.endpoint.codec.route(local.as_bytes()), Route::Ours);
    assert_eq!(rig.endpoint.demux.find(&local, false), Some(demux::Target::Connection(conn)));
    assert_eq!(
        rig.endpoint.demux.find(&cid(1), false),
        None,
        "a client's choice counts in long headers only"
    );

    rig.sent();
    rig.receive(&first_initial(2));
    let key = rig.endpoint.next_incoming().unwrap();
    assert_eq!(rig.endpoint.accept(rig.now, key, None), Err(AcceptError::TooManyConnections));
    let refusal = rig.sent().pop().unwrap().1;
    assert_eq!(close_code(&refusal, &cid(2)), TransportErrorCode::CONNECTION_REFUSED);
}

#[test]
fn a_drained_connection_leaves_nothing_behind() {
    let mut rig = Rig::new(false);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    let conn = rig.endpoint.accept(rig.now, key, None).unwrap();
    rig.sent();
    let local = rig.endpoint.slots.get(conn.0).unwrap().cids[0];
    let remote = CLIENT.parse().unwrap();
    for n in 0..20 {
        let token = godwit_wire::ResetToken([n; 16]);
        rig.endpoint.on_endpoint_event(conn, EndpointEvent::PeerResetToken { remote, token });
    }
    assert_eq!(rig.endpoint.demux.find_reset(remote, [0; 16]), None, "only the newest are kept");
    assert_eq!(rig.endpoint.demux.find_reset(remote, [19; 16]), Some(conn));
    rig.endpoint.on_endpoint_event(conn, EndpointEvent::Drained);
    rig.endpoint.settle(conn);
    assert_eq!(rig.endpoint.demux.find_reset(remote, [19; 16]), None);
    assert!(!rig.endpoint.demux.is_taken(&local) && !rig.endpoint.demux.is_taken(&cid(1)));
    while rig.endpoint.next_event().is_some() {}
    assert!(rig.endpoint.connection(conn).is_none());
    assert_eq!(rig.endpoint.deadline(), None);
    rig.sent();
    assert!(rig.endpoint.is_idle());
}

#[test]
fn ids_come_and_go() {
    let mut rig = Rig::new(false);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    let conn = rig.endpoint.accept(rig.now, key, None).unwrap();
    rig.endpoint.on_endpoint_event(conn, EndpointEvent::NeedCids(1_000_000));
    let cids = rig.endpoint.slots.get(conn.0).unwrap().cids.clone();
    assert_eq!(cids.len(), 1, "the connection has no use for more yet");
    assert!(rig.endpoint.demux.is_taken(&cids[0]));
    rig.endpoint.on_endpoint_event(conn, EndpointEvent::RetiredCid(cids[0]));
    assert!(!rig.endpoint.demux.is_taken(&cids[0]));
}

#[test]
fn an_undecided_handshake_expires() {
    let mut rig = Rig::new(false);
    rig.receive(&first_initial(1));
    let key = rig.endpoint.next_incoming().unwrap();
    let deadline = rig.endpoint.deadline().unwrap();
    assert_eq!(deadline, rig.now + Duration::from_secs(10));
    rig.endpoint.on_timeout(deadline - Duration::from_nanos(1));
    assert!(rig.endpoint.incoming(key).is_some());
    rig.endpoint.on_timeout(deadline);
    assert!(rig.endpoint.incoming(key).is_none() && rig.endpoint.is_idle());
    rig.receive(&first_initial(1));
    assert!(rig.endpoint.next_incoming().is_some_and(|again| again != key));
}

#[test]
fn a_first_packet_needs_the_quic_bit() {
    for (first_byte_mask, heard) in [(!0x40, false), (0xff, true)] {
        let mut rig = Rig::new(false);
        rig.receive(&Initial { first_byte_mask, ..Initial::new(1, &client_hello(0)) }.seal());
        assert_eq!(rig.endpoint.next_incoming().is_some(), heard);
    }
}

#[test]
fn a_client_with_a_token_may_clear_the_quic_bit() {
    let mut rig = Rig::new(false);
    let remote: SocketAddr = CLIENT.parse().unwrap();
    let token = crate::address_token::NewToken { address: remote.ip(), issued: rig.wall(), path: None };
    let token = token.seal(&rig.endpoint.config.secrets, &mut SeededRng::new(1)).unwrap();
    let hello = client_hello(0);
    let greased = Initial { first_byte_mask: !0x40, token: &token, ..Initial::new(1, &hello) }.seal();
    rig.receive(&greased);
    assert!(rig.endpoint.next_incoming().is_some());
    let mut server = (**rig.endpoint.server.as_ref().unwrap()).clone();
    Arc::make_mut(&mut server.transport).grease_quic_bit = false;
    let mut rig = Rig::new(false);
    rig.endpoint.server = Some(Arc::new(server));
    rig.receive(&greased);
    assert!(rig.endpoint.next_incoming().is_none(), "it was not told that it may");
}

#[test]
fn handshakes_that_nobody_looks_at_are_forgotten() {
    let mut rig = Rig::new(false);
    for _ in 0..300 {
        rig.receive(&first_initial(1));
        rig.now = rig.endpoint.deadline().unwrap();
        rig.endpoint.on_timeout(rig.now);
    }
    assert!(rig.endpoint.incoming.waiting() < 100, "{}", rig.endpoint.incoming.waiting());
    rig.receive(&first_initial(1));
    assert!(rig.endpoint.next_incoming().is_some() && rig.endpoint.next_incoming().is_none());
}

#[test]
fn when_many_wait_strangers_must_prove_their_address() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 8);
    let mut retries = 0;
    for n in 1..=12 {
        for (_, answer) in rig.receive_from(&format!("10.0.{n}.1:7"), &first_initial(n)) {
            retry_of(&answer);
            retries += 1;
        }
    }
    assert_eq!(retries, 8);
    assert_eq!(std::iter::from_fn(|| rig.endpoint.next_incoming()).count(), 4);
}

#[test]
fn a_graceful_shutdown_refuses_newcomers() {
    let mut rig = Rig::new(true);
    rig.endpoint.reject_new();
    let answers = rig.receive(&first_initial(1));
    assert_eq!(close_code(&answers[0], &cid(1)), TransportErrorCode::CONNECTION_REFUSED);
    assert!(rig.endpoint.is_idle());
}

#[test]
fn a_forgotten_connection_is_reset() {
    let mut rig = Rig::new(false);
    let dcid = rig.forgotten_cid();
    let token = rig.endpoint.config.secrets.reset_token(&dcid);
    for (len, answered) in [(20, false), (21, false), (22, true), (1200, true)] {
        let answers = rig.receive(&short_packet(&dcid, len));
        assert_eq!(answers.len(), usize::from(answered), "{len} bytes");
        for answer in answers {
            assert!(answer.len() < len && answer.ends_with(&token.0) && answer[0] >> 6 == 1);
        }
    }
    let long = [&[0xe0, 0, 0, 0, 1, 8], dcid.as_bytes(), &[0; 100]].concat();
    assert!(rig.receive(&long).is_empty(), "never in answer to a long header");
    let many: usize = (0..300).map(|_| rig.receive(&short_packet(&dcid, 100)).len()).sum();
    assert_eq!(many, 48, "limited");
}

#[test]
fn two_endpoints_do_not_reset_each_other_for_ever() {
    let mut rig = Rig::new(false);
    let mut datagram = short_packet(&rig.forgotten_cid(), 1200);
    let mut exchanged = 0;
    loop {
        datagram[1..9].copy_from_slice(rig.forgotten_cid().as_bytes());
        match rig.receive(&datagram).pop() {
            Some(answer) => datagram = answer,
            None => break,
        }
        exchanged += 1;
    }
    // Each answer is shorter than the one before, from at most 49 bytes down to 21.
    assert!((1..30).contains(&exchanged), "{exchanged}");
}

#[test]
fn foreign_ids_are_handed_on_before_anything_else() {
    let mut rig = Rig::new(false);
    let mut other = Rig::with(false, |config| config.shard = 5);
    let dcid = other.forgotten_cid();
    assert!(rig.receive(&short_packet(&dcid, 500)).is_empty());
    let (foreign, mut datagram) = rig.foreign().pop().unwrap();
    assert_eq!((foreign.shard, foreign.generation), (5, 4));
    assert_eq!(datagram, short_packet(&dcid, 500));
    assert!(rig.foreign().is_empty());
    // The right shard does not know it either, and says so.
    let (now, wall) = (other.now, other.wall());
    other.endpoint.receive_forwarded(now, wall, [(foreign.meta, &mut datagram[..])].into_iter());
    assert!(other.foreign().is_empty());
    assert_eq!(other.sent().len(), 1);
    // Handed to the wrong one it does not travel for ever.
    rig.endpoint.receive_forwarded(now, wall, [(foreign.meta, &mut datagram[..])].into_iter());
    assert!(rig.foreign().is_empty());
    assert_eq!(rig.sent().len(), 1);
    rig.endpoint.reject_foreign(now, &foreign, &datagram);
    assert_eq!(rig.sent().len(), 1);
    for _ in 0..2000 {
        rig.receive(&short_packet(&dcid, 1200));
    }
    let kept: usize = rig.foreign().iter().map(|(_, run)| run.len()).sum();
    assert_eq!(kept, ForeignBatch::MAX_BYTES / 1200 * 1200);
}

#[test]
fn every_datagram_of_a_foreign_run_that_nobody_knows_is_answered() {
    let mut rig = Rig::new(false);
    let dcid = Rig::with(false, |config| config.generation = 9).forgotten_cid();
    for _ in 0..3 {
        rig.receive(&short_packet(&dcid, 500));
    }
    let (foreign, run) = rig.foreign().pop().unwrap();
    assert_eq!((foreign.generation, run.len()), (9, 1500));
    rig.endpoint.reject_foreign(rig.now, &foreign, &run);
    assert_eq!(rig.sent().len(), 3);
}

#[test]
fn a_handshake_of_another_shard_is_handed_on() {
    let mut rig = Rig::new(false);
    let dcid = Rig::with(false, |config| config.generation = 9).forgotten_cid();
    // The client's keys follow from its very first id, which only the right endpoint knows.
    let mut datagram = first_initial(1);
    datagram[6..14].copy_from_slice(dcid.as_bytes());
    assert!(rig.receive(&datagram).is_empty());
    assert_eq!(rig.foreign().pop().unwrap().0.generation, 9);
    datagram[0] = 0xe0;
    assert!(rig.receive(&datagram).is_empty());
    assert_eq!(rig.foreign().pop().unwrap().1, datagram, "a Handshake packet, too");
    assert!(rig.endpoint.is_idle());
}

#[test]
fn what_an_older_generation_has_begun_it_goes_on_with() {
    let mut older = Rig::with(false, |config| config.generation = 8);
    let hello = client_hello(1500);
    let (front, back) = hello.split_at(900);
    let front = Initial::new(1, front).seal();
    let mut back = Initial { number: 1, offset: 900, ..Initial::new(1, back) }.seal();
    assert_eq!(older.receive(&front).len(), 1, "an acknowledgement");
    assert!(older.endpoint.next_incoming().is_none(), "half of it has not come");
    let begun: Vec<Begun> = older.endpoint.handshakes(older.now).collect();
    assert_eq!(begun.iter().map(|begun| (begun.generation, begun.shard)).collect::<Vec<_>>(), [(8, 3)]);
    older.endpoint.reject_new();
    // The newer one gets the other half. Without the list it would begin with it.
    let mut newer = Rig::with(false, |config| config.generation = 9);
    let now = newer.now;
    newer.endpoint.adopt_handshakes(now, begun.into_iter());
    assert!(newer.receive(&back).is_empty());
    assert!(!newer.endpoint.has_incoming());
    let (foreign, run) = newer.foreign().pop().unwrap();
    assert_eq!((foreign.generation, foreign.shard, &run), (8, 3, &back));
    let wall = older.wall();
    older.endpoint.receive_forwarded(now, wall, [(foreign.meta, &mut back[..])].into_iter());
    let key = older.endpoint.next_incoming().unwrap();
    older.endpoint.accept(now, key, None).unwrap();
    assert_eq!(older.endpoint.connections(), 1);
    // A still newer one hears of it as well, as long as that may matter.
    assert_eq!(newer.endpoint.handshakes(now).count(), 1);
    assert_eq!(newer.endpoint.handshakes(now + Duration::from_secs(60)).count(), 0);
    // Another client is the newer one's own.
    newer.receive(&first_initial(2));
    assert!(newer.endpoint.next_incoming().is_some());
}

#[test]
fn a_run_of_datagrams_is_taken_apart() {
    let mut rig = Rig::new(false);
    let hello = client_hello(1500);
    let (front, back) = hello.split_at(900);
    let front = Initial::new(1, front).seal();
    let back = Initial { number: 1, offset: 900, ..Initial::new(1, back) }.seal();
    let run = [front, back, first_initial(2), b"tail".to_vec()].concat();
    let mut batch = RecvBatch::new(1, 65_536);
    batch.free_slots()[0][..run.len()].copy_from_slice(&run);
    batch.push(RecvMeta { len: run.len(), stride: 1200, ..meta(CLIENT) });
    rig.endpoint.receive(rig.now, rig.wall(), &mut batch);
    assert_eq!(std::iter::from_fn(|| rig.endpoint.next_incoming()).count(), 2);
}

proptest! {
    #[test]
    fn any_datagrams_are_survived(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        long in any::<bool>(),
    ) {
        let mut rig = Rig::new(false);
        for mut datagram in datagrams {
            if long {
                datagram.resize(1250, 0);
                let first = datagram[0] | 0xc0;
                datagram[..6].copy_from_slice(&[first, 0, 0, 0, 1, 8]);
            }
            if !datagram.is_empty() {
                rig.receive(&datagram);
            }
        }
        prop_assert_eq!(rig.endpoint.connections(), 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(order in prop::collection::vec((0..4_u8, 1..20_u8), 0..30)) {
        let [mut one, mut two] = [Rig::with(false, |config| config.max_incoming = 8), Rig::with(false, |config| config.max_incoming = 8)];
        for (kind, n) in order {
            let datagram = match kind {
                0 | 1 => first_initial(n),
                2 => short_packet(&one.forgotten_cid(), 40 + usize::from(n)),
                _ => {
                    let mut datagram = first_initial(n);
                    datagram[4] = 77;
                    datagram
                }
            };
            prop_assert_eq!(one.receive(&datagram), two.receive(&datagram));
            let keys = [one.endpoint.next_incoming(), two.endpoint.next_incoming()];
            prop_assert_eq!(keys[0], keys[1]);
            if let Some(key) = keys[0].filter(|_| n % 2 == 0) {
                prop_assert_eq!(one.endpoint.refuse(key), two.endpoint.refuse(key));
            }
        }
    }
}
