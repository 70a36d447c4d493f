//! A client endpoint and a server endpoint of `godwit-transport`, and whatever datagrams come to them: of a stranger, of one
//! who knows what everybody sees, and of the two themselves. The function panics if they panic, send more than they may to
//! whom they do not know, are busy with nothing, or keep anything for ever; it returns whether the server began a connection.

use super::program::steps;
use godwit_base::{Ecn, RecvBatch, RecvMeta, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_transport::tls::deterministic;
use godwit_transport::tls::keys::{self, PacketSpan, TAG_LEN};
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{
    ClientConfig, ConnKey, ConnectionId, Endpoint, EndpointConfig, PathKey, ServerConfig, Side,
    TransportConfig,
};
use godwit_wire::header::{self, LongHeader, Packet, PacketType};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{Frame, Writer, version};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a step does, in its low four bits; the two above say who a stranger seems to be.
pub mod step {
    /// A datagram to the server.
    pub const TO_SERVER: u8 = 0;
    /// A datagram to the client, as from the server.
    pub const TO_CLIENT: u8 = 1;
    /// The client begins its connection.
    pub const CONNECT: u8 = 2;
    /// What both have sent arrives.
    pub const EXCHANGE: u8 = 3;
    /// The same, changed: these bytes are exclusive-ored onto each datagram, from the place that the first two say.
    pub const SPOIL: u8 = 4;
    /// A first Initial packet with these frames, under the right keys, to the server.
    pub const FRAMES: u8 = 5;
    /// The next bytes of a stranger's ClientHello.
    pub const HELLO: u8 = 6;
    /// An Initial packet with this token.
    pub const TOKEN: u8 = 7;
    /// An Initial packet with the token of the last Retry, onto which these bytes are exclusive-ored.
    pub const RETRIED: u8 = 8;
    /// A Retry packet to the client with this token, and the right tag.
    pub const RETRY: u8 = 9;
    /// A Version Negotiation packet to the client with these versions.
    pub const VERSIONS: u8 = 10;
    /// An Initial packet with these frames, under the right keys, to the client.
    pub const FRAMES_TO_CLIENT: u8 = 11;
    /// So many milliseconds pass.
    pub const WAIT: u8 = 12;
    /// As [`FRAMES`], in version 2.
    pub const FRAMES_OF_2: u8 = 13;
    /// The server closes everything.
    pub const CLOSE: u8 = 14;
    /// From now on the server accepts, asks for a token, refuses or ignores, by the first byte.
    pub const POLICY: u8 = 15;
}

const ALPN: &[u8] = b"fuzz";
const SERVER: &str = "10.0.0.2:443";

/// Runs a program of datagrams and time.
pub fn endpoints(bytes: &[u8]) -> bool {
    let mut world = World::new();
    for (what, with) in steps(bytes) {
        world.step(what, with);
        world.settle();
    }
    world.end();
    world.accepted > 0
}

/// What came from an address and what went there.
#[derive(Default)]
struct Book {
    received: usize,
    sent: usize,
    /// It has shown that it gets what is sent there.
    proved: bool,
}

struct World {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    connection: Option<ConnKey>,
    /// On their way to the server and to the client.
    flying: [Vec<Vec<u8>>; 2],
    /// The Destination Connection ID that the client chose first, and its own.
    client_cids: Option<(ConnectionId, ConnectionId)>,
    /// The token of the last Retry, the id that came with it, and the address it was sent to.
    retry: Option<(Vec<u8>, ConnectionId, SocketAddr)>,
    /// What has been sent of a stranger's ClientHello.
    hello: u64,
    number: u64,
    policy: u8,
    books: BTreeMap<SocketAddr, Book>,
    accepted: usize,
    out: SendBatch,
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn home() -> SocketAddr {
    address("10.0.0.1:1")
}

fn stranger(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + number % 2], 1000 + u16::from(number / 2)))
}

fn cid(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("eight bytes are an id")
}

impl World {
    fn new() -> Self {
        deterministic::seed(1);
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout = Duration::from_secs(5);
        transport.handshake_timeout = Duration::from_secs(3);
        let transport = Arc::new(transport);
        let config = |seed| {
            let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed)));
            let mut config = EndpointConfig::new(secrets);
            (config.max_connections, config.max_incoming) = (32, 16);
            config
        };
        let tls = deterministic::server_config(&[ALPN]);
        let server = Arc::new(ServerConfig::new(tls, transport.clone()));
        World {
            now: Time::from_nanos(1_000_000_000),
            client: Endpoint::new(config(1), None, Box::new(SeededRng::new(1))),
            server: Endpoint::new(config(2), Some(server), Box::new(SeededRng::new(2))),
            config: ClientConfig::new(deterministic::client_config(&[ALPN]), transport),
            connection: None,
            flying: Default::default(),
            client_cids: None,
            retry: None,
            hello: 0,
            number: 0,
            policy: 0,
            books: BTreeMap::new(),
            accepted: 0,
            out: SendBatch::new(1 << 16),
        }
    }

    fn step(&mut self, what: u8, with: &[u8]) {
        let from = stranger(what >> 4 & 3);
        match what & 15 {
            step::TO_SERVER => self.tell_server(from, with),
            step::TO_CLIENT => self.tell_client(with),
            step::CONNECT => self.connect(),
            step::EXCHANGE => self.exchange(|_| {}),
            step::SPOIL => {
                let Some((at, change)) = with.split_first_chunk() else { return };
                let at = usize::from(u16::from_be_bytes(*at));
                self.exchange(|datagram| apply(datagram, at, change));
            }
            step::FRAMES => self.initial(from, version::V1, &[], cid(9), &[], with),
            step::FRAMES_OF_2 => self.initial(from, version::V2, &[], cid(9), &[], with),
            step::HELLO => {
                let mut head = [0; 32];
                let mut writer = Writer::new(&mut head);
                let offset = self.hello;
                let frame = Frame::Crypto { offset, data: &[] };
                frame.encode(&mut writer).expect("there is room");
                let length = writer.len() - 1;
                writer.truncate(length);
                let with = &with[..with.len().min(1000)];
                writer.varint(with.len() as u64).expect("there is room");
                self.hello += with.len() as u64;
                let head = writer.written().to_vec();
                self.initial(from, version::V1, &[], cid(9), &head, with);
            }
            step::TOKEN => self.initial(from, version::V1, with, cid(9), &[1], &[]),
            step::RETRIED => {
                let Some((token, id, to)) = &mut self.retry else { return };
                let (mut token, id, to) = (token.clone(), *id, *to);
                apply(&mut token, 0, with);
                // Whoever has it was sent it.
                self.books.entry(to).or_default().proved = true;
                self.initial(to, version::V1, &token, id, &[1], &[]);
            }
            step::RETRY => self.retry_to_client(with),
            step::VERSIONS => self.versions_to_client(with),
            step::FRAMES_TO_CLIENT => {
                let Some((chosen, own)) = self.client_cids else { return };
                let packet = self.seal(Side::Server, version::V1, &chosen, (&own, &cid(5)), &[], &[with]);
                self.tell_client(&packet);
            }
            step::WAIT => {
                let millis = with.iter().take(2).fold(0, |millis, byte| millis << 8 | u64::from(*byte));
                self.now += Duration::from_millis(millis);
            }
            step::CLOSE => self.server.close_all(self.now, 7, b"enough"),
            _ => self.policy = with.first().copied().unwrap_or_default(),
        }
    }

    fn connect(&mut self) {
        if self.connection.is_none() {
            let path = PathKey { socket: SocketId(0), local: None, remote: address(SERVER) };
            let begun = self.client.connect(self.now, &self.config, path, deterministic::SERVER_NAME, None);
            self.connection = begun.ok();
        }
    }

    /// What is on its way arrives.
    fn exchange(&mut self, change: impl Fn(&mut [u8])) {
        let [to_server, to_client] = std::mem::take(&mut self.flying);
        for mut datagram in to_server {
            change(&mut datagram);
            // It is there, and gets its answers.
            self.books.entry(home()).or_default().proved = true;
            self.tell_server(home(), &datagram);
        }
        for mut datagram in to_client {
            change(&mut datagram);
            self.tell_client(&datagram);
        }
    }

    fn tell_server(&mut self, from: SocketAddr, datagram: &[u8]) {
        if datagram.is_empty() {
            return;
        }
        self.books.entry(from).or_default().received += datagram.len().min(2048);
        receive(&mut self.server, self.now, from, datagram);
    }

    fn tell_client(&mut self, datagram: &[u8]) {
        receive(&mut self.client, self.now, address(SERVER), datagram);
    }

    /// An Initial packet of a stranger with these frames, padded to a datagram of 1200 bytes.
    fn initial(
        &mut self,
        from: SocketAddr,
        version: u32,
        token: &[u8],
        dcid: ConnectionId,
        head: &[u8],
        frames: &[u8],
    ) {
        let token = &token[..token.len().min(600)];
        let datagram = self.seal(Side::Client, version, &dcid, (&dcid, &cid(4)), token, &[head, frames]);
        self.tell_server(from, &datagram);
    }

    /// An Initial packet from `sender`, with keys that follow from `chosen`.
    fn seal(
        &mut self,
        sender: Side,
        version: u32,
        chosen: &ConnectionId,
        (dcid, scid): (&ConnectionId, &ConnectionId),
        token: &[u8],
        frames: &[&[u8]],
    ) -> Vec<u8> {
        let mut buffer = [0; 1200];
        let mut writer = Writer::new(&mut buffer);
        let number = TruncatedPacketNumber::new(self.number, None);
        let header = LongHeader { packet_type: PacketType::Initial, version, dcid, scid, token };
        let slot = header.encode(&mut writer, number).expect("a header fits");
        let payload_at = writer.len();
        for frames in frames {
            let room = writer.remaining() - TAG_LEN;
            writer.bytes(&frames[..frames.len().min(room)]).expect("so much fits");
        }
        let padding = writer.remaining() - TAG_LEN;
        writer.space(padding).expect("so much is left").fill(0);
        slot.fill(&mut writer, TAG_LEN).expect("1200 bytes have a length");
        let _ = writer.space(TAG_LEN);
        let keys = keys::initial(version, chosen, sender).expect("a known version");
        let (header, payload) = buffer.split_at_mut(payload_at);
        keys.sealer.seal(0, self.number, header, payload).expect("sealed");
        let span = PacketSpan { first: 0, pn_offset: slot.packet_number_offset(), pn_len: number.len() };
        keys.header_sealer.mask_batch(&[span], &mut buffer).expect("masked");
        self.number += 1;
        buffer.to_vec()
    }

    fn retry_to_client(&mut self, token: &[u8]) {
        let Some((chosen, own)) = self.client_cids else { return };
        let mut buffer = vec![0; token.len() + 100];
        let mut writer = Writer::new(&mut buffer);
        header::encode_retry(&mut writer, version::V1, &own, &cid(5), token, 0).expect("it fits");
        let tag = keys::retry_integrity_tag(version::V1, &chosen, writer.written()).expect("a known version");
        writer.bytes(&tag).expect("it fits");
        let packet = writer.written().to_vec();
        self.tell_client(&packet);
    }

    fn versions_to_client(&mut self, versions: &[u8]) {
        let Some((chosen, own)) = self.client_cids else { return };
        let versions: Vec<u32> =
            versions.as_chunks().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        let mut buffer = vec![0; versions.len() * 4 + 100];
        let mut writer = Writer::new(&mut buffer);
        let (to, from) = (own.as_bytes(), chosen.as_bytes());
        header::encode_version_negotiation(&mut writer, to, from, &versions, 0).expect("it fits");
        let packet = writer.written().to_vec();
        self.tell_client(&packet);
    }

    /// Both have their say, until they wait for something.
    fn settle(&mut self) {
        for turn in 0.. {
            assert!(
                turn < 64,
                "they do not come to rest: {:?} and {:?} at {:?}",
                self.client.deadline(),
                self.server.deadline(),
                self.now
            );
            self.decide();
            let busy = self.transmit(Side::Client) | self.transmit(Side::Server);
            while self.client.next_event().is_some() {}
            while self.server.next_event().is_some() {}
            let due = [self.client.deadline(), self.server.deadline()].into_iter().flatten();
            if !busy && due.min().is_none_or(|due| due > self.now) {
                break;
            }
            self.client.on_timeout(self.now);
            self.server.on_timeout(self.now);
        }
    }

    /// Those who want to connect are answered.
    fn decide(&mut self) {
        while let Some(incoming) = self.server.next_incoming() {
            let may_retry = self.server.incoming(incoming).is_some_and(|incoming| incoming.may_retry());
            match self.policy & 3 {
                1 if may_retry => drop(self.server.retry(incoming)),
                2 => drop(self.server.refuse(incoming)),
                3 => drop(self.server.ignore(incoming)),
                _ => self.accepted += usize::from(self.server.accept(self.now, incoming, None).is_ok()),
            }
        }
    }

    /// True if there was anything.
    fn transmit(&mut self, sender: Side) -> bool {
        let is_client = sender == Side::Client;
        let mut out = std::mem::replace(&mut self.out, SendBatch::new(0));
        out.clear();
        let endpoint = if is_client { &mut self.client } else { &mut self.server };
        let more = endpoint.transmit(self.now, &mut out);
        let mut any = false;
        for (meta, datagram) in out.datagrams() {
            any = true;
            if is_client {
                self.on_sent_by_client(datagram);
            } else {
                self.on_sent_by_server(meta.remote, datagram);
            }
        }
        self.out = out;
        any || more
    }

    fn on_sent_by_client(&mut self, datagram: &[u8]) {
        if let Ok(Packet::Long { dcid, scid, .. }) = header::parse(datagram, 8) {
            self.client_cids.get_or_insert((dcid, scid));
        }
        keep(&mut self.flying[0], datagram);
    }

    fn on_sent_by_server(&mut self, to: SocketAddr, datagram: &[u8]) {
        let book = self.books.entry(to).or_default();
        book.sent += datagram.len();
        assert!(
            book.proved || book.sent <= 3 * book.received,
            "{} bytes to {to} for {}",
            book.sent,
            book.received
        );
        if let Ok(Packet::Retry { token, scid, .. }) = header::parse(datagram, 8) {
            self.retry = Some((datagram[token].to_vec(), scid, to));
        }
        if to == home() {
            keep(&mut self.flying[1], datagram);
        }
    }

    /// Nothing comes any more: everything ends.
    fn end(&mut self) {
        for _ in 0..400 {
            let left = self.client.connections() + self.server.connections();
            if left == 0 && self.server.is_idle() {
                return;
            }
            let due = [self.client.deadline(), self.server.deadline()].into_iter().flatten().min();
            self.now = due.unwrap_or(self.now).max(self.now + Duration::from_millis(1));
            self.client.on_timeout(self.now);
            self.server.on_timeout(self.now);
            self.settle();
        }
        panic!("{} and {} connections are kept", self.client.connections(), self.server.connections());
    }
}

/// What is in flight has a bound.
fn keep(flying: &mut Vec<Vec<u8>>, datagram: &[u8]) {
    if flying.len() < 64 {
        flying.push(datagram.to_vec());
    }
}

fn apply(bytes: &mut [u8], at: usize, change: &[u8]) {
    for (byte, change) in bytes.iter_mut().skip(at).zip(change) {
        *byte ^= change;
    }
}

fn receive(endpoint: &mut Endpoint, now: Time, remote: SocketAddr, datagram: &[u8]) {
    let mut batch = RecvBatch::new(1, 2048);
    let (socket, ecn) = (SocketId(0), Ecn::NotEct);
    let meta = RecvMeta { socket, local: None, remote, ecn, len: 0, stride: 1 };
    batch.push_datagram(meta, &datagram[..datagram.len().min(2048)]);
    endpoint.receive(now, WallTime::from_unix_micros(1_780_000_000_000_000), &mut batch);
}
