//! Unidirectional streams of ours that the peer does not let flow, or not open.

use super::memory::World;
use super::*;
use crate::{Direction, ErrorCode, StreamId, Transport};
use http::Request;
use memory::Notice;

/// The client's encoder stream.
const ENCODER: StreamId = StreamId::new(Side::Client, Direction::Unidirectional, 1);

fn request() -> Request<()> {
    Request::get("https://www.a.example/").header("x-agent", "one of a kind").body(()).unwrap()
}

fn send(client: &mut Peer) -> StreamId {
    client.connection.send_request(&mut client.io, &request(), true).unwrap()
}

fn requests(peer: &mut Peer) -> usize {
    peer.events().iter().filter(|event| matches!(event, Event::Request { .. })).count()
}

#[test]
fn insertions_that_are_not_taken_are_not_referred_to() {
    // The encoder stream takes its type and the capacity, and of the insertions hardly more. Nobody reads it.
    let world = World::new(10, usize::MAX);
    let (mut client, mut server) = pair(&world);
    for _ in 0..4 {
        send(&mut client);
    }
    let mut events = Vec::new();
    while let Some(notice) = server.io.next_notice() {
        let is_kept = match notice {
            Notice::Opened(direction) => direction == Direction::Unidirectional,
            Notice::Readable(id) => id == ENCODER,
            _ => false,
        };
        if !is_kept {
            memory::deliver(&mut server.connection, &mut server.io, notice);
        }
        while client.pump() {}
        events.extend(server.events());
    }
    assert!(world.queued(ENCODER, Side::Client) == 10, "it has taken what it holds");
    assert_eq!((events.len(), world.closed()), (4, None), "all requests can be read without it");
}

#[test]
fn insertions_that_are_not_let_out_are_not_referred_to() {
    let world = World::new(1 << 20, usize::MAX);
    let (mut client, mut server) = pair(&world);
    // From now on streams take all, and nothing of it comes out of them.
    world.limit_uni(0);
    let lens: Vec<usize> = (0..4)
        .map(|_| {
            let id = send(&mut client);
            world.queued(id, Side::Client)
        })
        .collect();
    let written = world.queued(ENCODER, Side::Client);
    assert!(written > 20, "insertions");
    pump(&mut client, &mut server);
    assert_eq!(requests(&mut server), 4, "none of them waits for what the peer has not permitted");
    assert!(lens.iter().all(|len| *len == lens[0]) && world.queued(ENCODER, Side::Client) == written);
    // When it is permitted they can be referred to at once.
    world.let_out(ENCODER, Side::Client, 1 << 20);
    let id = send(&mut client);
    assert!(world.queued(id, Side::Client) < lens[0] / 2);
    pump(&mut client, &mut server);
    assert_eq!((requests(&mut server), world.closed()), (1, None));
}

#[test]
fn the_control_stream_is_the_first_to_be_opened() {
    let world = World::new(1 << 20, usize::MAX);
    world.limit_uni_streams(0);
    let mut server = Peer::new(Side::Server, &world, Config::default());
    let mut io = world.end(Side::Client);
    world.limit_uni_streams(2);
    let uni = memory::ids(&mut io, Direction::Unidirectional, 2);
    world.limit_uni_streams(0);
    io.put(uni[0], &control());
    io.put(uni[1], &[2, 0x3f, 0xe1, 0x1f, 0xc1, 2, b'/', b'a']);
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &get(&[]));
    server.pump();
    assert_eq!(requests(&mut server), 1);
    // There is something to be said on the decoder stream, and one stream is permitted.
    world.limit_uni_streams(1);
    let response = http::Response::new(());
    server.connection.send_response(&mut server.io, id, &response, true).unwrap();
    server.connection.on_streams_available(&mut server.io, Direction::Unidirectional);
    let first = StreamId::new(Side::Server, Direction::Unidirectional, 0);
    assert_eq!(io.drain(first)[..2], [0, 4], "the control stream with the settings");
    world.limit_uni_streams(2);
    server.connection.on_streams_available(&mut server.io, Direction::Unidirectional);
    let second = StreamId::new(Side::Server, Direction::Unidirectional, 1);
    assert_eq!(io.drain(second), [3, 1], "then the decoder stream");
    assert_eq!(world.closed(), None);
}

#[test]
fn our_streams_must_not_be_refused() {
    let world = World::new(1 << 20, usize::MAX);
    let (mut client, mut server) = pair(&world);
    for _ in 0..2 {
        send(&mut client);
    }
    pump(&mut client, &mut server);
    assert!(world.has(ENCODER, Side::Client));
    let mut io = world.end(Side::Server);
    io.stop_sending(ENCODER, 0);
    client.pump();
    assert_eq!(world.closed(), Some((Side::Client, ErrorCode::H3_CLOSED_CRITICAL_STREAM.0)));
}
