//! Streams that are given up while their sections refer to the dynamic table, and what may be said of them.

use super::memory::World;
use super::*;
use crate::{Direction, ErrorCode, StreamId, Transport};
use http::{Request, Response};
use memory::ids;

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

/// A Stream Cancellation (RFC 9204 section 4.4.2).
fn cancellation(id: StreamId) -> Vec<u8> {
    let mut bytes = vec![0x7f];
    let mut rest = id.as_u64().saturating_sub(63);
    if id.as_u64() < 63 {
        return vec![0x40 | id.as_u64() as u8];
    }
    while rest >= 128 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// A server, its client's end and the client's decoder stream, where the client permits a table.
fn server() -> (World, Peer, End, StreamId) {
    let world = World::new(1 << 20, usize::MAX);
    let mut server = Peer::new(Side::Server, &world, Config::default());
    let mut io = world.end(Side::Client);
    let uni = ids(&mut io, Direction::Unidirectional, 2);
    let mut control = vec![0];
    let settings =
        Settings { qpack_max_table_capacity: 4096, qpack_blocked_streams: 16, ..Settings::default() };
    settings.encode(false, &mut control);
    io.put(uni[0], &control);
    io.put(uni[1], &[3]);
    server.pump();
    server.events();
    (world, server, io, uni[1])
}

fn response() -> Response<()> {
    Response::builder().header("x-of-its-own", "the same in all of them").body(()).unwrap()
}

fn is_settled(server: &Peer) -> bool {
    server.connection.shared.compression.encoder.is_settled()
}

#[test]
fn nothing_is_kept_for_a_section_that_is_sent_to_who_gave_up() {
    // The cancellation overtakes the stream, or STOP_SENDING, or neither.
    for overtaken in [0, 1, 2] {
        let (world, mut server, mut io, decoder) = server();
        let ids = ids(&mut io, Direction::Bidirectional, 3);
        for (number, id) in ids.iter().enumerate() {
            let gives_up = number == 2;
            if gives_up && overtaken == 0 {
                io.put(decoder, &cancellation(*id));
                while let Some(notice) = server.io.next_notice() {
                    if notice != memory::Notice::Opened(Direction::Bidirectional) {
                        memory::deliver(&mut server.connection, &mut server.io, notice);
                    }
                }
            }
            io.put(*id, &get(&[]));
        }
        // As the transport tells of streams: all that there are.
        server.connection.on_stream_opened(&mut server.io, Direction::Bidirectional);
        server.pump();
        for (number, id) in ids.iter().enumerate() {
            if number == 2 && overtaken == 1 {
                io.put(decoder, &cancellation(*id));
                server.pump();
            }
            server.connection.send_response(&mut server.io, *id, &response(), true).unwrap();
            if number == 2 && overtaken == 2 {
                io.put(decoder, &cancellation(*id));
            } else if number < 2 {
                // It refers to an entry: the section is acknowledged.
                io.put(decoder, &[0x80 | id.as_u64() as u8]);
            }
            server.pump();
        }
        assert_eq!(world.closed(), None);
        assert!(is_settled(&server), "{overtaken}: the table is not kept as it is");
    }
}

#[test]
fn what_we_give_up_is_not_charged() {
    let (world, mut server, mut io, decoder) = server();
    let mut given_up = Vec::new();
    for round in 0..20 {
        for _ in 0..100 {
            let id = io.open(Direction::Bidirectional).unwrap();
            io.put(id, &get(&[]));
            server.pump();
            server.connection.send_response(&mut server.io, id, &response(), false).unwrap();
            server.connection.reset(&mut server.io, id, ErrorCode::H3_INTERNAL_ERROR);
            given_up.push(id);
        }
        server.events();
        // Those of many streams come at once.
        for id in given_up.drain(..) {
            io.put(decoder, &cancellation(id));
        }
        server.pump();
        assert_eq!(world.closed(), None, "round {round}");
    }
    assert!(is_settled(&server));
}

#[test]
fn what_was_refused_is_not_charged() {
    let (world, mut server, mut io, decoder) = server();
    server.connection.shutdown(&mut server.io).unwrap();
    for _ in 0..2000 {
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &get(&[]));
        server.pump();
        io.put(decoder, &cancellation(id));
        server.pump();
    }
    assert_eq!(world.closed(), None);
}

#[test]
fn who_gives_up_what_was_answered_is_not_charged() {
    let (world, mut server, mut io, decoder) = server();
    for _ in 0..2000 {
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &get(&[]));
        io.finish(id);
        server.pump();
        server.connection.send_response(&mut server.io, id, &response(), true).unwrap();
        server.events();
        io.put(decoder, &cancellation(id));
        server.pump();
    }
    assert_eq!(world.closed(), None);
}

#[test]
fn each_stream_is_given_up_once() {
    for again in [id(0), id(1), id(7), StreamId::new(Side::Server, Direction::Unidirectional, 0)] {
        let (world, mut server, mut io, decoder) = server();
        let ids = ids(&mut io, Direction::Bidirectional, 2);
        ids.iter().for_each(|id| io.put(*id, &get(&[])));
        server.pump();
        server.connection.send_response(&mut server.io, ids[1], &response(), true).unwrap();
        server.connection.reset(&mut server.io, ids[1], ErrorCode::H3_NO_ERROR);
        for _ in 0..1100 {
            io.put(decoder, &cancellation(again));
        }
        server.pump();
        assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)), "{again:?}");
    }
}

#[test]
fn what_is_given_up_before_it_comes_is_remembered_within_bounds() {
    let (world, mut server, mut io, decoder) = server();
    for index in (0..u64::from(u32::MAX)).step_by(1 << 20).take(900) {
        io.put(decoder, &cancellation(id(1 << 30 | index)));
    }
    server.pump();
    assert_eq!((world.closed(), server.connection.held()), (None, 0));
}

#[test]
fn a_server_may_give_up_requests() {
    let world = World::new(1 << 20, usize::MAX);
    let (mut client, mut server) = pair(&world);
    for _ in 0..2000 {
        let request =
            Request::post("https://a.example/").header("x-of-its-own", "the same").body(()).unwrap();
        let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
        pump(&mut client, &mut server);
        server.events();
        server.connection.send_response(&mut server.io, id, &response(), true).unwrap();
        server.connection.stop_sending(&mut server.io, id, ErrorCode::H3_NO_ERROR);
        pump(&mut client, &mut server);
        let _ = client.connection.finish(&mut client.io, id);
        client.events();
    }
    assert_eq!(world.closed(), None);
}
