#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod cancellations;
mod exchange;
mod interleaving;
mod limits;
mod memory;
mod permission;
mod remembered;
mod rules;
mod sessions;
mod table;

use super::Connection;
use crate::frame::{self, FrameType};
use crate::qpack::Encoder;
use crate::{Config, Event, Settings};
use bytes::Bytes;
use godwit_wire::Side;
use memory::{End, World};

/// A connection on its end of a memory transport.
struct Peer {
    connection: Connection,
    io: End,
}

impl Peer {
    fn new(side: Side, world: &World, config: Config) -> Peer {
        let mut peer = Peer { connection: Connection::new(side, config), io: world.end(side) };
        peer.connection.start(&mut peer.io);
        peer
    }

    /// Tells the connection what has happened; false if that was nothing.
    fn pump(&mut self) -> bool {
        let mut any = false;
        while let Some(notice) = self.io.next_notice() {
            any = true;
            memory::deliver(&mut self.connection, &mut self.io, notice);
        }
        any
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.connection.poll_event()).collect()
    }
}

/// Both ends, started.
fn pair(world: &World) -> (Peer, Peer) {
    pair_of(world, &Config::default())
}

/// Both ends without a dynamic table, so that the same fields always take the same bytes.
fn static_pair(world: &World) -> (Peer, Peer) {
    pair_of(world, &without_table())
}

fn without_table() -> Config {
    Config { qpack_max_table_capacity: 0, qpack_blocked_streams: 0, ..Config::default() }
}

fn pair_of(world: &World, config: &Config) -> (Peer, Peer) {
    let mut client = Peer::new(Side::Client, world, config.clone());
    let mut server = Peer::new(Side::Server, world, config.clone());
    pump(&mut client, &mut server);
    assert!(matches!(client.events()[..], [Event::Settings]));
    assert!(matches!(server.events()[..], [Event::Settings]));
    (client, server)
}

fn pump(client: &mut Peer, server: &mut Peer) {
    while client.pump() | server.pump() {}
}

fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_header(FrameType(frame_type), payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

fn id_frame(frame_type: FrameType, id: u64) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_id_frame(frame_type, id, &mut out);
    out
}

fn data(content: &[u8]) -> Vec<u8> {
    frame(FrameType::DATA.0, content)
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    let mut encoder = Encoder::new(&mut section);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), false);
    }
    frame(FrameType::HEADERS.0, &section)
}

fn get(more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];
    headers(&[&fields[..], more].concat())
}

fn settings() -> Vec<u8> {
    let mut out = Vec::new();
    Settings::default().encode(true, &mut out);
    out
}

/// The start of a control stream.
fn control() -> Vec<u8> {
    [vec![0], settings()].concat()
}

fn join(parts: &[Vec<u8>]) -> Bytes {
    Bytes::from(parts.concat())
}
