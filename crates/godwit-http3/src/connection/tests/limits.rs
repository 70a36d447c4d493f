//! What a peer can make this end hold or do has a limit.

use super::memory::World;
use super::*;
use crate::{BodyRead, Direction, ErrorCode, ReadError, SendError, StreamId, Transport};
use http::{Request, Response};
use std::time::Duration;

fn server(config: Config) -> (World, Peer, End) {
    let world = World::new(1 << 22, usize::MAX);
    let server = Peer::new(Side::Server, &world, config);
    let io = world.end(Side::Client);
    (world, server, io)
}

fn status_of(section: &[u8]) -> Option<String> {
    let mut status = None;
    let mut decoder = crate::qpack::Decoder::new();
    // Type and length of a short HEADERS frame take a byte each.
    decoder
        .decode(StreamId::from_u64(0), section.get(2..)?, 10_000, &mut |field| {
            if field.name == b":status" {
                status = Some(String::from_utf8_lossy(field.value).into_owned());
            }
        })
        .ok()?;
    status
}

#[test]
fn large_headers_are_answered_with_431() {
    let filler = "x".repeat(70_000);
    let bomb: Vec<u8> = {
        let section = [&[0, 0][..], &[0xc0 | 57; 1000]].concat();
        frame(1, &section)
    };
    for bytes in [get(&[("a", &filler)]), vec![1, 0xbf, 0xff, 0xff, 0xff], bomb] {
        let (world, mut server, mut io) = server(Config::default());
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &bytes);
        server.pump();
        assert_eq!(world.closed(), None);
        assert!(server.events().iter().all(|event| !matches!(event, Event::Request { .. })));
        assert_eq!(status_of(&io.drain(id)).unwrap(), "431");
        assert_eq!(io.read(id, 1), Ok(crate::Read::Finished));
        assert_eq!(world.stop_code(id, Side::Client), Some(ErrorCode::H3_NO_ERROR.0));
        assert_eq!(server.connection.open_requests(), 0);
    }
}

#[test]
fn headers_and_trailers_share_one_limit() {
    let filler = "x".repeat(40_000);
    let (world, mut server, mut io) = server(Config::default());
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &[get(&[("a", &filler)]), headers(&[("a", &filler)])].concat());
    server.pump();
    assert!(matches!(server.events()[..], [Event::Request { .. }]));
    let read = server.connection.read_body(&mut server.io, id, 10);
    assert_eq!(read, Err(ReadError::Reset { code: ErrorCode::H3_EXCESSIVE_LOAD, local: true }));
    assert_eq!(world.reset_code(id, Side::Server), Some(ErrorCode::H3_EXCESSIVE_LOAD.0));

    // Informational responses too.
    let world = World::new(1 << 22, usize::MAX);
    let mut client = Peer::new(Side::Client, &world, Config::default());
    let request = Request::get("https://a.example/").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
    let mut io = world.end(Side::Server);
    for _ in 0..3 {
        io.put(id, &headers(&[(":status", "103"), ("a", &filler)]));
    }
    client.pump();
    let events = client.events();
    assert!(
        matches!(
            events[..],
            [
                Event::Informational { .. },
                Event::Reset { code: ErrorCode::H3_EXCESSIVE_LOAD, local: true, .. }
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn incomplete_headers_are_limited_over_all_streams() {
    let (world, mut server, mut io) = server(Config { max_buffered_headers: 100_000, ..Config::default() });
    let begun = [&[1, 0x80, 0, 0xc0, 0][..], &[b'x'; 40_000]].concat();
    for id in super::memory::ids(&mut io, Direction::Bidirectional, 4) {
        io.put(id, &begun);
        server.pump();
    }
    // The third does not fit and is refused; then there is room for the fourth.
    let refused: Vec<bool> = (0..4)
        .map(|n| StreamId::new(Side::Client, Direction::Bidirectional, n))
        .map(|id| world.stop_code(id, Side::Client).is_some())
        .collect();
    assert_eq!(refused.iter().filter(|refused| **refused).count(), 2);
    assert_eq!(server.connection.open_requests(), 2);
    // Room comes back with the streams.
    for n in 0..2 {
        io.reset(StreamId::new(Side::Client, Direction::Bidirectional, n), 0);
    }
    server.pump();
    assert_eq!(server.connection.open_requests(), 0);
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &begun);
    server.pump();
    assert_eq!(world.stop_code(id, Side::Client), None);
}

#[test]
fn requests_at_once_are_limited() {
    let (world, mut server, mut io) = server(Config { max_requests: 3, ..Config::default() });
    let ids = super::memory::ids(&mut io, Direction::Bidirectional, 4);
    for id in &ids {
        io.put(*id, &get(&[]));
    }
    server.pump();
    assert_eq!(server.connection.open_requests(), 3);
    assert_eq!(world.reset_code(ids[3], Side::Server), Some(ErrorCode::H3_REQUEST_REJECTED.0));
    assert_eq!(world.closed(), None);
}

/// Sends `bytes` on a request stream, all of which is read, until the connection is closed.
fn flood(bytes: &[u8], rounds: usize) -> Option<(Side, u64)> {
    let (world, mut server, mut io) = server(Config::default());
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &get(&[]));
    for _ in 0..rounds {
        io.put(id, bytes);
        server.pump();
        server.events();
        while let Ok(BodyRead::Data(_)) = server.connection.read_body(&mut server.io, id, 1 << 20) {}
        if world.closed().is_some() {
            break;
        }
    }
    world.closed()
}

#[test]
fn useless_frames_are_limited() {
    let closed = Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0));
    assert_eq!(flood(&data(b""), 900), None);
    assert_eq!(flood(&data(b""), 1100), closed);
    assert_eq!(flood(&frame(0x21, b""), 1100), closed);
    // Long unknown frames cost by the KiB.
    assert_eq!(flood(&frame(0x21, &[0; 10_000]), 80), None);
    assert_eq!(flood(&frame(0x21, &[0; 10_000]), 120), closed);
    // Content pays for them.
    assert_eq!(flood(&[frame(0x21, b""), data(&[0; 4096])].concat(), 5000), None);
}

#[test]
fn useless_control_traffic_is_limited() {
    for bytes in [id_frame(FrameType::GOAWAY, 0), id_frame(FrameType::MAX_PUSH_ID, 0), frame(0x21, b"")] {
        let (world, mut server, mut io) = server(Config::default());
        let id = io.open(Direction::Unidirectional).unwrap();
        io.put(id, &control());
        io.put(id, &bytes.repeat(900));
        server.pump();
        assert_eq!(world.closed(), None);
        server.events();
        io.put(id, &bytes.repeat(200));
        server.pump();
        assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)));
    }
    // Streams of unknown types.
    let (world, mut server, mut io) = server(Config::default());
    for _ in 0..1100 {
        let id = io.open(Direction::Unidirectional).unwrap();
        io.write(id, &mut Bytes::from_static(&[0x21, 0])).unwrap();
        server.pump();
    }
    assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)));
    // Streams that end, or are given up, before they say what they are.
    for give_up in [true, false] {
        let (world, mut server, mut io) = self::server(Config::default());
        for _ in 0..1100 {
            let id = io.open(Direction::Unidirectional).unwrap();
            if give_up {
                io.reset(id, 0);
            } else {
                io.finish(id);
            }
            server.pump();
        }
        assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)));
    }
    // Streams that never say what they are.
    let (world, mut server, mut io) = self::server(Config::default());
    for _ in 0..200 {
        io.open(Direction::Unidirectional).unwrap();
    }
    server.pump();
    assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)));
}

#[test]
fn origins_said_again_and_again_are_limited() {
    let world = World::new(1 << 20, 1 << 20);
    let config = Config { useless_allowance: 100, ..Config::default() };
    let (mut client, mut io) = (Peer::new(Side::Client, &world, config), world.end(Side::Server));
    let id = io.open(Direction::Unidirectional).unwrap();
    io.put(id, &control());
    // Fifteen KiB each: what has been said is known, and work all the same.
    let origins = frame(12, &b"\0\x09https://a".repeat(1396));
    io.put(id, &origins.repeat(6));
    client.pump();
    assert_eq!((world.closed(), client.connection.origins().map(<[_]>::len)), (None, Some(1)));
    io.put(id, &origins);
    client.pump();
    assert_eq!(world.closed(), Some((Side::Client, ErrorCode::H3_EXCESSIVE_LOAD.0)));
}

#[test]
fn instructions_of_an_encoder_are_limited() {
    // Duplicates of an entry, and the same capacity over and over.
    for instruction in [&[0x00][..], &[0x3f, 0xe1, 0x1f]] {
        let (world, mut server, mut io) = server(Config::default());
        let id = io.open(Direction::Unidirectional).unwrap();
        io.put(id, &[2, 0x3f, 0xe1, 0x1f, 0xc1, 2, b'/', b'a']);
        io.put(id, &instruction.repeat(28_000));
        server.pump();
        assert_eq!(world.closed(), None);
        io.put(id, &instruction.repeat(8_000));
        server.pump();
        assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)));
    }
}

/// A client that gives up each request in the way given; the number after which it is disconnected.
fn rapid(give_up: impl Fn(&mut End, StreamId), serve: impl Fn(usize) -> bool) -> Option<usize> {
    rapid_every(Duration::ZERO, 1000, give_up, serve)
}

/// As [`rapid`], a request at a time and so far apart.
fn rapid_every(
    pause: Duration,
    requests: usize,
    give_up: impl Fn(&mut End, StreamId),
    serve: impl Fn(usize) -> bool,
) -> Option<usize> {
    let (world, mut server, mut io) = server(Config::default());
    let ok = Response::builder().status(200).body(()).unwrap();
    for n in 0..requests {
        world.pass(pause);
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &get(&[]));
        server.pump();
        server.events();
        if serve(n) {
            server.connection.send_response(&mut server.io, id, &ok, true).unwrap();
        }
        give_up(&mut io, id);
        server.pump();
        let _ = server.connection.read_body(&mut server.io, id, 10);
        server.connection.reset(&mut server.io, id, ErrorCode::H3_REQUEST_CANCELLED);
        if world.closed().is_some() {
            assert_eq!(world.closed(), Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0)));
            return Some(n);
        }
        assert_eq!(server.connection.open_requests(), 0);
    }
    None
}

#[test]
fn abandoned_requests_are_limited() {
    let (never, always) = (|_| false, |_| true);
    assert_eq!(rapid(|io, id| io.reset(id, 0x10c), never), Some(256));
    assert_eq!(rapid(|io, id| io.stop_sending(id, 0x10c), never), Some(256));
    // Errors that make the server give up count as well.
    assert_eq!(rapid(|io, id| io.put(id, &headers(&[("A", "b")])), never), Some(256));
    // Requests that were served do not, and make up for others.
    assert_eq!(rapid(|io, id| io.reset(id, 0x10c), always), None);
    assert_eq!(rapid(|io, id| io.finish(id), always), None);
    let end = |io: &mut End, id: StreamId| {
        io.finish(id);
        io.stop_sending(id, 0x10c);
    };
    assert_eq!(rapid(end, |n| n % 2 == 0), None);
    assert_eq!(rapid(end, |n| n % 3 == 0), Some(256 * 3 - 1));
}

#[test]
fn who_gives_up_now_and_then_may_do_so_for_ever() {
    let never = |_| false;
    let reset = |io: &mut End, id: StreamId| io.reset(id, 0x10c);
    let stop = |io: &mut End, id: StreamId| io.stop_sending(id, 0x10c);
    let err = |io: &mut End, id: StreamId| io.put(id, &headers(&[("A", "b")]));
    // A page whose stream of events is closed 1000 times within some minutes, and a search field.
    assert_eq!(rapid_every(Duration::from_millis(500), 1000, stop, never), None);
    assert_eq!(rapid_every(Duration::from_millis(63), 5000, reset, never), None);
    // Ten times as many as come back are a flood, whoever resets.
    let pause = Duration::from_micros(6250);
    for end in [rapid_every(pause, 1000, reset, never), rapid_every(pause, 1000, stop, never)] {
        assert_eq!(end, Some(284));
    }
    assert_eq!(rapid_every(pause, 1000, err, never), Some(284));
}

#[test]
fn how_many_may_be_given_up_can_be_set() {
    let config = Config { abandoned_allowance: 3, abandoned_per_second: 2, ..Config::default() };
    let (world, mut server, mut io) = server(config);
    let mut give_up = |pause: Duration| {
        world.pass(pause);
        let id = io.open(Direction::Bidirectional).unwrap();
        io.put(id, &get(&[]));
        server.pump();
        io.stop_sending(id, 0x10c);
        server.pump();
        world.closed()
    };
    assert_eq!([0; 3].map(|_| give_up(Duration::ZERO)), [None; 3]);
    assert_eq!([500; 5].map(|millis| give_up(Duration::from_millis(millis))), [None; 5]);
    let closed = Some((Side::Server, ErrorCode::H3_EXCESSIVE_LOAD.0));
    assert_eq!(give_up(Duration::from_millis(499)), closed);
}

#[test]
fn useless_frames_now_and_then_do_no_harm() {
    let (world, mut server, mut io) = server(Config::default());
    let id = io.open(Direction::Unidirectional).unwrap();
    io.put(id, &control());
    // A browser that says with every change of its page what is urgent now (RFC 9218).
    for _ in 0..5000 {
        io.put(id, &frame(0xf0700, b"\0u=3"));
        server.pump();
        world.pass(Duration::from_millis(100));
    }
    assert_eq!(world.closed(), None);
}

#[test]
fn the_peers_limits_are_kept() {
    let world = World::new(1 << 20, usize::MAX);
    let config = Config { max_field_section_size: 500, ..Config::default() };
    let mut client = Peer::new(Side::Client, &world, Config::default());
    let mut server = Peer::new(Side::Server, &world, config);
    pump(&mut client, &mut server);
    world.limit_requests(1);
    let large = Request::get("https://a.example/").header("a", "b".repeat(400)).body(()).unwrap();
    let sent = client.connection.send_request(&mut client.io, &large, true);
    assert_eq!(sent, Err(SendError::FieldsTooLarge));
    let small = Request::get("https://a.example/").body(()).unwrap();
    client.connection.send_request(&mut client.io, &small, true).unwrap();
    let sent = client.connection.send_request(&mut client.io, &small, true);
    assert_eq!(sent, Err(SendError::NoStreams));
}

#[test]
fn informational_responses_that_nobody_reads_are_left_out() {
    const WINDOW: usize = 4000;
    let world = World::new(WINDOW, usize::MAX);
    let (mut client, mut server) = static_pair(&world);
    let request = Request::get("https://a.example/").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
    server.pump();
    let hints = Response::builder().status(103).header("link", "x".repeat(100)).body(()).unwrap();
    for _ in 0..10_000 {
        server.connection.send_informational(&mut server.io, id, &hints).unwrap();
    }
    let response = Response::builder().status(200).body(()).unwrap();
    server.connection.send_response(&mut server.io, id, &response, true).unwrap();
    pump(&mut client, &mut server);
    let events = client.events();
    let informational = events.iter().filter(|event| matches!(event, Event::Informational { .. })).count();
    assert!((20..=50).contains(&informational), "what fits and one more: {informational}");
    assert!(matches!(events.last(), Some(Event::Response { end: true, .. })), "and the final one is not");
}

#[test]
fn the_first_continue_is_never_left_out() {
    const WINDOW: usize = 4000;
    let world = World::new(WINDOW, usize::MAX);
    let (mut client, mut server) = static_pair(&world);
    let request = Request::post("https://a.example/").header("expect", "100-continue").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
    server.pump();
    let hints = Response::builder().status(103).header("link", "x".repeat(100)).body(()).unwrap();
    let go_on = Response::builder().status(100).body(()).unwrap();
    for _ in 0..100 {
        server.connection.send_informational(&mut server.io, id, &hints).unwrap();
    }
    for _ in 0..10_000 {
        server.connection.send_informational(&mut server.io, id, &go_on).unwrap();
    }
    pump(&mut client, &mut server);
    let statuses = |client: &mut Peer| {
        let events = client.events().into_iter();
        let status = |event| match event {
            Event::Informational { response, .. } => Some(response.status().as_u16()),
            _ => None,
        };
        events.filter_map(status).collect::<Vec<_>>()
    };
    let seen = statuses(&mut client);
    assert!(seen.len() > 10 && seen.iter().filter(|status| **status == 100).count() == 1, "{seen:?}");
    assert_eq!(seen.last(), Some(&100), "after what came before it");
    server.connection.send_informational(&mut server.io, id, &go_on).unwrap();
    pump(&mut client, &mut server);
    assert_eq!(statuses(&mut client), [100], "now there is room again");
}

#[test]
fn headers_that_have_not_come_in_full_are_counted_until_they_are_gone() {
    let (world, mut server, mut io) = server(without_table());
    let begun = [&[1, 0x80, 0, 0xc0, 0][..], &[b'x'; 40_000]].concat();
    let ids = super::memory::ids(&mut io, Direction::Bidirectional, 4);
    for (id, held) in ids.iter().zip([40_000, 80_000, 120_000, 160_000]) {
        io.put(*id, &begun);
        server.pump();
        assert_eq!(server.connection.held(), held);
    }
    io.reset(ids[0], 0);
    server.pump();
    assert_eq!(server.connection.held(), 120_000);
    server.connection.reset(&mut server.io, ids[1], ErrorCode::H3_REQUEST_REJECTED);
    assert_eq!(server.connection.held(), 80_000);
    server.connection.close(&mut server.io);
    assert_eq!(server.connection.held(), 0);
    assert!(world.closed().is_some());
}

#[test]
fn heads_and_what_waits_for_the_transport_are_counted_until_the_exchange_is_over() {
    for is_scarce in [false, true] {
        let world = World::new(1000, usize::MAX);
        if is_scarce {
            world.set_memory_scarce();
        }
        let (mut client, mut server) = static_pair(&world);
        let request = Request::get("https://a.example/").header("name", "x".repeat(10_000)).body(()).unwrap();
        let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
        let pending = client.connection.held();
        assert!((6_000..10_000).contains(&pending), "of a head of 10,000 bytes, compressed: {pending}");
        pump(&mut client, &mut server);
        assert!(matches!(server.events()[..], [Event::Request { end: true, .. }]));
        assert_eq!(client.connection.held(), 0);
        let head = server.connection.held();
        assert!((10_000..10_500).contains(&head), "{head}");
        let response = Response::new(());
        server.connection.send_response(&mut server.io, id, &response, false).unwrap();
        let content = Bytes::from(vec![7; 60_000]);
        let taken = server.connection.send_data(&mut server.io, id, content).unwrap();
        let waits = server.connection.held() - head;
        let expected = if is_scarce { 1_000..2_000 } else { 59_000..60_000 };
        assert!(expected.contains(&waits), "{waits} of {taken}");
        pump(&mut client, &mut server);
        assert!(client.connection.held() < 200, "what the response's head counts");
        let mut read = 0;
        while read < taken {
            while let Ok(BodyRead::Data(data)) = client.connection.read_body(&mut client.io, id, usize::MAX) {
                read += data.len();
            }
            pump(&mut client, &mut server);
        }
        assert_eq!(server.connection.held(), head);
        server.connection.finish(&mut server.io, id).unwrap();
        pump(&mut client, &mut server);
        assert_eq!(client.connection.read_body(&mut client.io, id, usize::MAX), Ok(BodyRead::End));
        assert_eq!((client.connection.held(), server.connection.held()), (0, 0));
    }
}

#[test]
fn what_was_read_and_nobody_asked_for_is_counted() {
    let (_world, mut server, mut io) = server(without_table());
    let id = io.open(Direction::Bidirectional).unwrap();
    io.put(id, &join(&[get(&[]), data(&[1; 100]), data(&[2; 3000])]));
    server.pump();
    let before = server.connection.held();
    assert!(before > 3100, "it came with the head: {before}");
    let read = server.connection.read_body(&mut server.io, id, usize::MAX).unwrap();
    assert_eq!(read, BodyRead::Data(Bytes::from(vec![1; 100])));
    assert_eq!(before - server.connection.held(), 103, "a DATA frame of 100 bytes");
    io.reset(id, 0);
    server.pump();
    while server.connection.read_body(&mut server.io, id, usize::MAX).is_ok() {}
    server.connection.reset(&mut server.io, id, ErrorCode::H3_REQUEST_CANCELLED);
    assert_eq!(server.connection.held(), 0);
}
