//! The dynamic table between two ends, and an end whose peer makes what it likes of it.

use super::memory::World;
use super::*;
use crate::{BodyRead, Direction, ErrorCode, StreamId, Transport};
use http::{Request, Response};
use memory::ids;

/// Set Dynamic Table Capacity to 4096, and an insertion of `:path: /a`.
const CAPACITY: [u8; 3] = [0x3f, 0xe1, 0x1f];
const INSERT: [u8; 4] = [0xc1, 2, b'/', b'a'];

/// A server, and its client's end with a control stream and an encoder stream.
fn server(config: Config) -> (World, Peer, End, StreamId) {
    let world = World::new(1 << 20, usize::MAX);
    let mut server = Peer::new(Side::Server, &world, config);
    let mut io = world.end(Side::Client);
    let uni = ids(&mut io, Direction::Unidirectional, 2);
    io.put(uni[0], &control());
    io.put(uni[1], &[2]);
    server.pump();
    server.events();
    (world, server, io, uni[1])
}

/// A request that needs so many insertions, and has the first of them.
fn needs(count: u8) -> Vec<u8> {
    // GET, https, no authority, and host by name.
    let relative = count - 1;
    let section = [count + 1, 0, 0xc0 | 17, 0xc0 | 23, 0x80 | relative, 0x50, 1, b'a'];
    frame(FrameType::HEADERS.0, &section)
}

/// What the server's decoder stream has had.
fn feedback(io: &mut End) -> Vec<u8> {
    io.drain(StreamId::new(Side::Server, Direction::Unidirectional, 1))
}

fn paths(peer: &mut Peer) -> Vec<String> {
    let path = |event| match event {
        Event::Request { request, .. } => Some(request.uri().path().to_owned()),
        _ => None,
    };
    peer.events().into_iter().filter_map(path).collect()
}

#[test]
fn a_request_waits_for_what_it_needs() {
    let (world, mut server, mut io, encoder) = server(Config::default());
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &needs(1));
    server.pump();
    assert!(paths(&mut server).is_empty() && server.connection.held() > 0);
    io.put(encoder, &[&CAPACITY[..], &INSERT[..3]].concat());
    server.pump();
    assert!(paths(&mut server).is_empty(), "a byte is missing");
    io.put(encoder, &INSERT[3..]);
    server.pump();
    assert_eq!(paths(&mut server), ["/a"]);
    assert_eq!(
        (feedback(&mut io), world.closed()),
        (vec![3, 0x80], None),
        "the section is acknowledged, hence the entry"
    );
}

#[test]
fn what_comes_behind_a_section_that_waits_stays_behind_it() {
    let (_, mut server, mut io, encoder) = server(Config::default());
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &[get(&[]), data(b"content")].concat());
    // Trailers: x-a with the value that the second insertion has.
    io.put(id, &frame(FrameType::HEADERS.0, &[3, 0, 0x80]));
    io.finish(id);
    server.pump();
    assert_eq!(paths(&mut server), ["/"]);
    let read = |server: &mut Peer| server.connection.read_body(&mut server.io, id, 100);
    assert_eq!(read(&mut server), Ok(BodyRead::Data(Bytes::from_static(b"content"))));
    assert_eq!(read(&mut server), Ok(BodyRead::Blocked));
    assert_eq!(read(&mut server), Ok(BodyRead::Blocked));
    io.put(encoder, &[&CAPACITY[..], &INSERT, &[0x43, b'x', b'-', b'a', 1, b'1']].concat());
    server.pump();
    assert!(matches!(server.events()[..], [Event::DataReadable { .. }]));
    let Ok(BodyRead::Trailers(trailers)) = read(&mut server) else { panic!("no trailers") };
    assert_eq!(trailers["x-a"], "1");
    assert_eq!(read(&mut server), Ok(BodyRead::End));
}

#[test]
fn no_more_streams_wait_than_were_permitted() {
    for (permitted, wait) in [(0, 1), (2, 2), (2, 3)] {
        let config = Config { qpack_blocked_streams: permitted, ..Config::default() };
        let (world, mut server, mut io, encoder) = server(config);
        for _ in 0..wait {
            let id = io.open(Direction::Bidirectional).unwrap();
            io.put(id, &needs(1));
        }
        server.pump();
        let failed = (Side::Server, ErrorCode::QPACK_DECOMPRESSION_FAILED.0);
        assert_eq!(world.closed(), (wait > permitted).then_some(failed), "{wait} of {permitted}");
        if wait <= permitted {
            io.put(encoder, &[&CAPACITY[..], &INSERT].concat());
            server.pump();
            assert_eq!(paths(&mut server).len(), wait);
        }
    }
}

#[test]
fn who_gives_up_waits_no_more() {
    let config = Config { qpack_blocked_streams: 1, ..Config::default() };
    let (world, mut server, mut io, _) = server(config);
    for n in 0..10_u8 {
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &needs(1));
        server.pump();
        assert_eq!(world.closed(), None, "the one before has left");
        io.reset(id, ErrorCode::H3_REQUEST_CANCELLED.0);
        server.pump();
        let cancellation = 0x40 | (n * 4);
        assert_eq!(feedback(&mut io), if n == 0 { vec![3, cancellation] } else { vec![cancellation] });
        assert_eq!(server.connection.open_requests(), 0);
    }
}

#[test]
fn references_count_as_often_as_they_are_made() {
    let (world, mut server, mut io, encoder) = server(Config::default());
    let value = "v".repeat(1000);
    let insert = [&[0x43, b'x', b'-', b'a', 0x7f, 0xe9, 0x06][..], value.as_bytes()].concat();
    io.put(encoder, &[&CAPACITY[..], &insert].concat());
    let id = io.open(Direction::Bidirectional).unwrap();
    // 100 bytes that would be 103 500.
    io.put(id, &frame(FrameType::HEADERS.0, &[&[2, 0][..], &[0x80; 100]].concat()));
    server.pump();
    assert!(paths(&mut server).is_empty());
    assert_eq!(
        (world.closed(), world.stop_code(id, Side::Client)),
        (None, Some(ErrorCode::H3_NO_ERROR.0)),
        "431"
    );
    // The insertion is acknowledged; the section is not, which is not read to its end.
    assert_eq!(feedback(&mut io), [3, 1, 0x40]);
}

#[test]
fn a_decoder_stream_that_nobody_reads_is_bounded() {
    let world = World::new(64, usize::MAX);
    let config = Config { abandoned_allowance: 1 << 20, ..Config::default() };
    let mut server = Peer::new(Side::Server, &world, config);
    let mut io = world.end(Side::Client);
    let uni = ids(&mut io, Direction::Unidirectional, 2);
    io.put(uni[0], &control());
    io.put(uni[1], &[&[2][..], &CAPACITY, &INSERT].concat());
    for _ in 0..20_000 {
        let id = io.open(Direction::Bidirectional).unwrap();
        io.reset(id, 0x10c);
        server.pump();
        if let Some(closed) = world.closed() {
            assert_eq!(closed, (Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0));
            return;
        }
    }
    panic!("20000 cancellations are held");
}

#[test]
fn who_makes_no_use_of_the_table_need_not_read_the_decoder_stream() {
    let world = World::new(64, usize::MAX);
    let config = Config { abandoned_allowance: 1 << 20, ..Config::default() };
    let mut server = Peer::new(Side::Server, &world, config);
    let mut io = world.end(Side::Client);
    for _ in 0..20_000 {
        let id = io.open(Direction::Bidirectional).unwrap();
        io.reset(id, 0x10c);
        server.pump();
    }
    assert_eq!(world.closed(), None);
}

/// Bytes that a client's requests for these paths take, one after the other, on the request streams and on the encoder stream.
fn sent(world: &World, paths: &[&str], config: &Config) -> Vec<(usize, usize)> {
    let (mut client, mut server) = pair_of(world, config);
    let mut io = world.end(Side::Server);
    let mut sent = Vec::new();
    for path in paths {
        let request = Request::get(format!("https://www.a.example{path}")).header("x-agent", "one of a kind");
        let id = client.connection.send_request(&mut client.io, &request.body(()).unwrap(), true).unwrap();
        let encoder = StreamId::new(Side::Client, Direction::Unidirectional, 1);
        let inserts = if io_has(world, encoder) { world.queued(encoder, Side::Client) } else { 0 };
        sent.push((world.queued(id, Side::Client), inserts));
        pump(&mut client, &mut server);
        assert_eq!(super::table::paths(&mut server), [*path]);
        let response = Response::builder().header("server", "of its own").body(()).unwrap();
        server.connection.send_response(&mut server.io, id, &response, true).unwrap();
        pump(&mut client, &mut server);
        assert!(
            matches!(&client.events()[..], [Event::Response { response, end: true, .. }] if response.headers()["server"] == "of its own")
        );
    }
    let _ = io.next_notice();
    sent
}

fn io_has(world: &World, id: StreamId) -> bool {
    world.has(id, Side::Client)
}

#[test]
fn what_comes_again_is_sent_once() {
    let world = World::new(1 << 20, usize::MAX);
    let sent = sent(&world, &["/long/path"; 4], &Config::default());
    assert!(sent[0].1 > 20, "what is likely to come again is inserted at once: {sent:?}");
    assert!(sent[1].0 < 12, "{sent:?}");
    assert!(sent[2] == sent[3] && sent[2].1 == 0 && sent[2].0 < 12, "{sent:?}");
}

#[test]
fn without_a_table_all_is_as_before() {
    let world = World::new(1 << 20, usize::MAX);
    let sent = sent(&world, &["/long/path"; 4], &without_table());
    assert!(sent.iter().all(|request| *request == sent[0] && request.1 == 0), "{sent:?}");
}

#[test]
fn where_none_may_wait_only_what_has_arrived_is_referred_to() {
    let world = World::new(1 << 20, usize::MAX);
    let config = Config { qpack_blocked_streams: 0, ..Config::default() };
    let sent = sent(&world, &["/long/path"; 4], &config);
    assert!(sent[0].1 == 0 && sent[1].1 > 20 && sent[1].0 == sent[0].0, "{sent:?}");
    assert!(sent[2].0 < sent[0].0 / 2 && sent[3].1 == 0 && sent[3].0 < 12, "{sent:?}");
}

#[test]
fn acknowledgements_are_gathered_but_not_for_ever() {
    let (_, mut server, mut io, encoder) = server(Config::default());
    io.put(encoder, &[&CAPACITY[..], &INSERT].concat());
    server.pump();
    assert_eq!(feedback(&mut io), [3, 1]);
    for number in 1..=8_u8 {
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &needs(1));
        server.pump();
        let said: Vec<u8> = if number < 8 { Vec::new() } else { (0..8).map(|n| 0x80 | (n * 4)).collect() };
        assert_eq!(feedback(&mut io), said, "{number}");
    }
    // What a peer learns with the first cancellation is all that it may free.
    let ids = ids(&mut io, Direction::Bidirectional, 2);
    io.put(ids[0], &needs(1));
    server.pump();
    assert!(feedback(&mut io).is_empty());
    io.reset(ids[1], 0x10c);
    server.pump();
    assert_eq!(feedback(&mut io), [0x80 | (8 * 4), 0x40 | (9 * 4)]);
}

#[test]
fn tables_count_as_memory() {
    let (_, mut server, mut io, encoder) = server(Config::default());
    let held = |server: &Peer| server.connection.held();
    assert_eq!(held(&server), 0);
    io.put(encoder, &[&CAPACITY[..], &INSERT].concat());
    server.pump();
    let one = held(&server);
    assert!(one > 7 + 32, "an entry: {one}");
    // A name of 100 bytes, of which 50 come.
    io.put(encoder, &[&[0x5f, 69][..], &[b'n'; 50]].concat());
    server.pump();
    assert_eq!(held(&server), one + 52);
    // A section that waits, and what has come behind it.
    let id = io.open(Direction::Bidirectional).unwrap();
    let section = needs(2);
    io.put(id, &section);
    server.pump();
    let waits = held(&server);
    io.put(id, &data(&[0; 1000]));
    server.pump();
    assert_eq!(held(&server), waits + 1003);
    server.connection.close(&mut server.io);
    assert_eq!(held(&server), 0);

    let world = World::new(1 << 20, usize::MAX);
    let (mut client, mut server) = pair(&world);
    let request = Request::get("https://www.a.example/a/path").body(()).unwrap();
    for _ in 0..2 {
        client.connection.send_request(&mut client.io, &request, true).unwrap();
        pump(&mut client, &mut server);
    }
    assert!(held(&client) > 100, "our own table");
}

#[test]
fn much_that_comes_behind_a_section_that_waits_is_read_when_it_waits_no_more() {
    for chunk in [usize::MAX, 700] {
        let world = World::new(1 << 20, chunk);
        let mut client = Peer::new(Side::Client, &world, Config::default());
        let mut io = world.end(Side::Server);
        let uni = ids(&mut io, Direction::Unidirectional, 2);
        io.put(uni[0], &control());
        io.put(uni[1], &[2]);
        let request = Request::get("https://a.example/").body(()).unwrap();
        let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
        // Both an informational response and the final one need the insertion x-a: 1.
        let informational = frame(FrameType::HEADERS.0, &[2, 0, 0xc0 | 24, 0x80]);
        let head = frame(FrameType::HEADERS.0, &[2, 0, 0xc0 | 25, 0x80]);
        let content: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        let message = [informational, head, data(&content[..3000]), data(&content[3000..])].concat();
        for piece in message.chunks(900) {
            io.put(id, piece);
            client.pump();
            assert!(client.connection.held() < 5000, "the rest stays where it is");
        }
        io.finish(id);
        client.pump();
        let events = client.events();
        assert!(matches!(events[..], [Event::Settings]), "{events:?}");
        io.put(uni[1], &[&CAPACITY[..], &[0x43, b'x', b'-', b'a', 1, b'1']].concat());
        client.pump();
        let events = client.events();
        let [Event::Informational { .. }, Event::Response { response, end: false, .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(response.headers()["x-a"], "1");
        let mut read = Vec::new();
        while let Ok(BodyRead::Data(data)) = client.connection.read_body(&mut client.io, id, 1000) {
            read.extend_from_slice(&data);
        }
        assert_eq!(read, content);
    }
}
