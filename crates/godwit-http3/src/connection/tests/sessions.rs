//! WebTransport sessions and HTTP datagrams: what belongs to whom, and what becomes of what belongs to nobody.

use super::memory::World;
use super::*;
use crate::{BodyRead, DatagramError, Direction, ErrorCode, Protocol, SendError, StreamId, Transport};
use http::{Request, Response};

const BI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;
const FIRST: StreamId = StreamId::new(Side::Client, BI, 0);

fn config(sessions: usize) -> Config {
    Config { max_webtransport_sessions: sessions, ..Config::default() }
}

fn started(world: &World, sessions: usize) -> (Peer, Peer) {
    let mut client = Peer::new(Side::Client, world, config(sessions));
    let mut server = Peer::new(Side::Server, world, config(sessions));
    pump(&mut client, &mut server);
    client.events();
    server.events();
    (client, server)
}

fn connect(protocol: &'static str) -> Request<()> {
    let protocol = Protocol::new(protocol).unwrap();
    Request::connect("https://a.example/wt").extension(protocol).body(()).unwrap()
}

/// Both ends, with a session that the server has granted.
fn session(world: &World) -> (Peer, Peer, StreamId) {
    let (mut client, mut server) = started(world, 4);
    let id = client.connection.send_request(&mut client.io, &connect("webtransport"), false).unwrap();
    pump(&mut client, &mut server);
    assert!(matches!(server.events()[..], [Event::Request { .. }]));
    server.connection.send_response(&mut server.io, id, &Response::new(()), false).unwrap();
    pump(&mut client, &mut server);
    assert!(matches!(client.events()[..], [Event::Response { .. }]));
    (client, server, id)
}

/// The same, of which the client is a raw one that has sent `request` on its first stream.
fn raw_client(request: &[u8]) -> (World, Peer, End) {
    let world = World::new(1 << 20, 1 << 20);
    let server = Peer::new(Side::Server, &world, config(1));
    let mut io = world.end(Side::Client);
    io.open(BI).unwrap();
    if !request.is_empty() {
        io.put(FIRST, request);
    }
    (world, server, io)
}

fn raw_connect() -> Vec<u8> {
    let path = [(":authority", "a.example"), (":path", "/"), (":protocol", "webtransport")];
    headers(&[&[(":method", "CONNECT"), (":scheme", "https")][..], &path].concat())
}

/// The beginning of a session's stream.
fn head(kind: u64, session: u64) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_varint(kind, &mut out);
    frame::put_varint(session, &mut out);
    out
}

#[test]
fn streams_find_their_session_and_only_their_heads_are_read() {
    for chunk in [1, 3, 1 << 20] {
        let world = World::new(1 << 20, chunk);
        let (mut client, mut server, id) = session(&world);
        for direction in [BI, UNI] {
            for from_client in [true, false] {
                let (from, to) =
                    if from_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
                let stream = from.connection.open_session_stream(&mut from.io, id, direction).unwrap();
                from.io.put(stream, b"hello");
                while from.pump() | to.pump() {}
                let events = to.events();
                assert!(
                    matches!(events[..], [Event::SessionStream { id: at, direction: of }] if at == id && of == direction),
                    "{events:?}"
                );
                assert_eq!(to.connection.accept_session_stream(id, direction), Some(stream));
                assert_eq!(to.connection.accept_session_stream(id, direction), None);
                assert_eq!(to.io.drain(stream), b"hello");
            }
        }
        assert_eq!((client.connection.is_closed(), server.connection.is_closed()), (false, false));
        assert_eq!(server.connection.open_requests(), 1, "streams of sessions are no requests");
    }
}

#[test]
fn ordinary_requests_go_on_beside_sessions() {
    for chunk in [1, 1 << 20] {
        let world = World::new(1 << 20, chunk);
        let (mut client, mut server, _) = session(&world);
        let request = Request::get("https://a.example/").body(()).unwrap();
        let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
        pump(&mut client, &mut server);
        assert!(matches!(server.events()[..], [Event::Request { id: at, .. }] if at == id));
    }
}

#[test]
fn sessions_go_on_after_a_goaway_and_requests_do_not_begin() {
    for chunk in [1, 1 << 20] {
        let world = World::new(1 << 20, chunk);
        let (mut client, mut server, id) = session(&world);
        server.connection.shutdown(&mut server.io).unwrap();
        // Both are under way before the client hears of it.
        let stream = client.connection.open_session_stream(&mut client.io, id, BI).unwrap();
        client.io.put(stream, b"hello");
        let request = Request::get("https://a.example/").body(()).unwrap();
        let request = client.connection.send_request(&mut client.io, &request, true).unwrap();
        pump(&mut client, &mut server);
        assert!(matches!(server.events()[..], [Event::SessionStream { .. }]));
        assert_eq!(server.connection.accept_session_stream(id, BI), Some(stream));
        assert_eq!(server.io.drain(stream), b"hello");
        let events = client.events();
        let rejected = |event: &Event| matches!(event, Event::Reset { id, code, .. } if *id == request && *code == ErrorCode::H3_REQUEST_REJECTED);
        assert!(events.iter().any(rejected), "{events:?}");
        assert!(!server.connection.has_request(request) && server.connection.has_request(id));
    }
}

#[test]
fn when_a_session_ends_its_streams_are_given_up() {
    let world = World::new(1 << 20, 1 << 20);
    let (mut client, mut server, id) = session(&world);
    let own = server.connection.open_session_stream(&mut server.io, id, UNI).unwrap();
    let theirs = client.connection.open_session_stream(&mut client.io, id, BI).unwrap();
    let forgotten = client.connection.open_session_stream(&mut client.io, id, BI).unwrap();
    pump(&mut client, &mut server);
    server.events();
    server.connection.forget_session_stream(id, forgotten);
    client.connection.finish(&mut client.io, id).unwrap();
    server.connection.finish(&mut server.io, id).unwrap();
    pump(&mut client, &mut server);
    assert_eq!(server.connection.read_body(&mut server.io, id, 10), Ok(BodyRead::End));
    let events = server.events();
    let gone = |event: &Event| matches!(event, Event::TunnelClosed { id: at, streams } if *at == id && *streams == [theirs, own]);
    assert!(events.iter().any(gone), "{events:?}");
    let code = Some(ErrorCode::WT_SESSION_GONE.value());
    assert_eq!(world.reset_code(own, Side::Server), code);
    assert_eq!(world.reset_code(theirs, Side::Server), code);
    assert_eq!(world.stop_code(theirs, Side::Client), code);
    assert_eq!(world.reset_code(forgotten, Side::Server), None);
    assert!(!server.connection.has_session(id) && !server.connection.has_flow(id));
    let refused = server.connection.open_session_stream(&mut server.io, id, UNI);
    assert_eq!(refused, Err(SendError::UnknownStream));
    let late = client.connection.send_datagram(&mut client.io, id, b"late");
    assert!(matches!(late, Ok(()) | Err(DatagramError::Closed)));
}

#[test]
fn a_stream_may_come_before_its_session_but_not_too_many() {
    let (world, mut server, mut io) = raw_client(&[]);
    let early: Vec<_> = (0..40).map(|_| io.open(UNI).unwrap()).collect();
    early.iter().for_each(|id| io.put(*id, &head(0x54, 0)));
    server.pump();
    let rejected: Vec<_> = early.iter().filter(|id| world.stop_code(**id, Side::Client).is_some()).collect();
    assert_eq!(rejected.len(), 8);
    let code = Some(ErrorCode::WT_BUFFERED_STREAM_REJECTED.value());
    assert!(rejected.iter().all(|id| world.stop_code(**id, Side::Client) == code));
    io.put(FIRST, &raw_connect());
    server.pump();
    assert_eq!(server.events().len(), 33, "the request and 32 streams");
    assert_eq!(server.connection.accept_session_stream(FIRST, UNI), Some(early[0]));
}

#[test]
fn a_stream_of_a_request_that_is_no_session_is_told_so() {
    for request in [get(&[]), vec![]] {
        let (world, mut server, mut io) = raw_client(&[]);
        let early = io.open(BI).unwrap();
        io.put(early, &head(0x41, 0));
        server.pump();
        if request.is_empty() {
            io.reset(FIRST, 1);
        } else {
            io.put(FIRST, &request);
        }
        server.pump();
        let late = io.open(UNI).unwrap();
        io.put(late, &head(0x54, 0));
        server.pump();
        let gone = Some(ErrorCode::WT_SESSION_GONE.value());
        assert_eq!(world.stop_code(late, Side::Client), gone);
        assert_eq!(world.stop_code(early, Side::Client), gone, "{request:?}");
        assert!(!server.connection.is_closed());
    }
}

#[test]
fn more_sessions_than_permitted_are_rejected() {
    let (world, mut server, mut io) = raw_client(&raw_connect());
    let second = io.open(BI).unwrap();
    io.put(second, &raw_connect());
    server.pump();
    assert_eq!(server.events().len(), 1);
    assert_eq!(world.reset_code(second, Side::Server), Some(ErrorCode::H3_REQUEST_REJECTED.value()));
}

#[test]
fn what_a_client_can_do_wrong() {
    let on_uni = |bytes: Vec<u8>| (UNI, bytes);
    let on_bi = |bytes: Vec<u8>| (BI, bytes);
    for (name, (direction, bytes), code) in [
        ("a session that is no request", on_uni(head(0x54, 2)), ErrorCode::H3_ID_ERROR),
        ("a session of a server", on_bi(head(0x41, 1)), ErrorCode::H3_ID_ERROR),
        (
            "a stream's head behind a frame",
            on_bi([frame(0x21, b"x"), head(0x41, 0)].concat()),
            ErrorCode::H3_FRAME_ERROR,
        ),
    ] {
        let (world, mut server, mut io) = raw_client(&raw_connect());
        let id = io.open(direction).unwrap();
        io.put(id, &bytes);
        server.pump();
        assert_eq!(world.closed(), Some((Side::Server, code.value())), "{name}");
    }
}

#[test]
fn what_a_server_can_do_wrong() {
    let stream = |direction, kind, session| (Some(direction), head(kind, session));
    for (name, (direction, bytes), code) in [
        ("a bidirectional stream of no session", stream(BI, 0x1, 0), ErrorCode::H3_STREAM_CREATION_ERROR),
        ("a session that was never asked for", stream(BI, 0x41, 4), ErrorCode::H3_ID_ERROR),
        ("the same on another stream", stream(UNI, 0x54, 4), ErrorCode::H3_ID_ERROR),
        ("a datagram of no request", (None, vec![1]), ErrorCode::H3_ID_ERROR),
        ("a datagram of no stream", (None, vec![0xff; 8]), ErrorCode::H3_DATAGRAM_ERROR),
        ("a datagram of nothing", (None, vec![0x40]), ErrorCode::H3_DATAGRAM_ERROR),
    ] {
        let world = World::new(1 << 20, 1 << 20);
        let (mut client, mut server, _) = session(&world);
        match direction {
            Some(direction) => {
                let id = server.io.open(direction).unwrap();
                server.io.put(id, &bytes);
            }
            None => server.io.send_datagram(bytes.into()).unwrap(),
        }
        client.pump();
        assert_eq!(world.closed(), Some((Side::Client, code.value())), "{name}");
    }
}

#[test]
fn without_it_nothing_is_different() {
    let world = World::new(1 << 20, 1 << 20);
    let (mut client, mut server) = pair(&world);
    let refused = client.connection.send_request(&mut client.io, &connect("webtransport"), false);
    assert!(matches!(refused, Err(SendError::NotPermitted(_))));
    let uni = client.io.open(UNI).unwrap();
    client.io.put(uni, &head(0x54, 0));
    let request = client.io.open(BI).unwrap();
    client.io.put(request, &[frame(0x41, b"abc"), get(&[])].concat());
    client.io.send_datagram(Bytes::from_static(&[0x40])).unwrap();
    server.pump();
    let refused = Some(ErrorCode::H3_STREAM_CREATION_ERROR.value());
    assert_eq!((world.closed(), world.stop_code(uni, Side::Client)), (None, refused));
    assert!(matches!(server.events()[..], [Event::Request { .. }]), "a frame of an unknown type is ignored");
}

#[test]
fn datagrams_find_their_exchange() {
    let world = World::new(1 << 20, 1 << 20);
    let (mut client, mut server, id) = session(&world);
    assert_eq!(client.connection.max_datagram_len(&client.io, id), Some(1199));
    assert_eq!(
        client.connection.send_datagram(&mut client.io, id, &[0; 1200]),
        Err(DatagramError::TooLarge { max: 1199 })
    );
    for payload in [&b"one"[..], b"", b"three"] {
        client.connection.send_datagram(&mut client.io, id, payload).unwrap();
    }
    pump(&mut client, &mut server);
    assert!(matches!(server.events()[..], [Event::DatagramsReadable { id: at }] if at == id), "told once");
    for payload in [&b"one"[..], b"", b"three"] {
        assert_eq!(server.connection.read_datagram(id).unwrap(), payload);
    }
    assert_eq!(server.connection.read_datagram(id), None);
    server.connection.send_datagram(&mut server.io, id, b"back").unwrap();
    client.connection.send_datagram(&mut client.io, id, b"again").unwrap();
    pump(&mut client, &mut server);
    assert_eq!(client.connection.read_datagram(id).unwrap(), &b"back"[..]);
    assert!(matches!(server.events()[..], [Event::DatagramsReadable { .. }]), "told again");
    let other = StreamId::new(Side::Client, BI, 7);
    assert_eq!(client.connection.send_datagram(&mut client.io, other, b"x"), Err(DatagramError::Closed));
}

#[test]
fn datagrams_that_nobody_fetches_make_room_for_newer_ones() {
    let world = World::new(1 << 20, 1 << 20);
    let (mut client, mut server, id) = session(&world);
    for number in 0..1000_u16 {
        client.connection.send_datagram(&mut client.io, id, &number.to_be_bytes()).unwrap();
        pump(&mut client, &mut server);
    }
    let left: Vec<_> = std::iter::from_fn(|| server.connection.read_datagram(id)).collect();
    assert_eq!((left.len(), &left[0][..]), (256, &(1000_u16 - 256).to_be_bytes()[..]));
    for _ in 0..256 {
        client.connection.send_datagram(&mut client.io, id, &[0; 1199]).unwrap();
    }
    pump(&mut client, &mut server);
    let held = server.connection.held();
    let left = std::iter::from_fn(|| server.connection.read_datagram(id)).count();
    assert_eq!(left, (256 << 10) / 1199);
    assert!(left as u64 * 1199 <= held && server.connection.held() < 1199, "{held}");
}

#[test]
fn datagrams_may_come_before_their_request_but_not_too_many() {
    let (_world, mut server, mut io) = raw_client(&[]);
    for number in 0..40 {
        io.send_datagram(Bytes::copy_from_slice(&[0, number])).unwrap();
    }
    server.pump();
    io.put(FIRST, &raw_connect());
    server.pump();
    assert!(matches!(server.events()[..], [Event::Request { .. }]));
    let left: Vec<_> = std::iter::from_fn(|| server.connection.read_datagram(FIRST)).collect();
    assert_eq!((left.len(), &left[0][..]), (32, &[8][..]));
}

#[test]
fn a_request_without_a_tunnel_has_no_datagrams() {
    let (_world, mut server, mut io) = raw_client(&get(&[]));
    io.send_datagram(Bytes::from_static(&[0, 1])).unwrap();
    server.pump();
    assert!(matches!(server.events()[..], [Event::Request { .. }]));
    assert!(!server.connection.has_flow(FIRST) && server.connection.read_datagram(FIRST).is_none());
}
