//! Whole exchanges between two well-behaved ends.

use super::memory::World;
use super::*;
use crate::{BodyRead, Direction, ErrorCode, Protocol, ReadError, SendError, StreamId, Transport};
use http::{HeaderMap, HeaderValue, Request, Response};

const REQUEST: StreamId = StreamId::new(Side::Client, Direction::Bidirectional, 0);

/// Sends `content` and then trailers, as the transport takes it.
struct Upload {
    content: Bytes,
    trailers: Option<HeaderMap>,
}

impl Upload {
    fn new(content: &Bytes, trailers: bool) -> Upload {
        let mut map = HeaderMap::new();
        map.insert("x-checksum", HeaderValue::from_static("1234"));
        Upload { content: content.clone(), trailers: trailers.then_some(map) }
    }

    /// True when done.
    fn drive(&mut self, peer: &mut Peer, id: StreamId) -> bool {
        let taken = peer.connection.send_data(&mut peer.io, id, self.content.clone()).unwrap();
        self.content = self.content.slice(taken..);
        if !self.content.is_empty() {
            return false;
        }
        match self.trailers.take() {
            Some(trailers) => peer.connection.send_trailers(&mut peer.io, id, &trailers).unwrap(),
            None => peer.connection.finish(&mut peer.io, id).unwrap(),
        }
        true
    }
}

/// What arrived of one message.
#[derive(Default)]
struct Download {
    pieces: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    end: bool,
}

impl Download {
    fn drive(&mut self, peer: &mut Peer, id: StreamId, max: usize) {
        while !self.end {
            match peer.connection.read_body(&mut peer.io, id, max).unwrap() {
                BodyRead::Data(data) => {
                    assert!(!data.is_empty() && data.len() <= max);
                    self.pieces.push(data);
                }
                BodyRead::Trailers(trailers) => self.trailers = Some(trailers),
                BodyRead::End => self.end = true,
                BodyRead::Blocked => return,
            }
        }
    }
}

/// Uploads, answers 103 and 200, and sends the upload back, over streams that hold `window` bytes.
fn echo(window: usize, chunk: usize, max: usize, content: &Bytes, trailers: bool) -> (Download, Download) {
    let world = World::new(window, chunk);
    let (mut client, mut server) = pair(&world);
    let request = Request::post("https://a.example/echo").header("cookie", "a=1").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
    let mut uploads = [Some(Upload::new(content, trailers)), None];
    let (mut received, mut returned) = (Download::default(), Download::default());
    let (mut informed, mut answered) = (false, false);
    if uploads[0].as_mut().unwrap().drive(&mut client, id) {
        uploads[0] = None;
    }
    for _ in 0..200_000 {
        let busy = client.pump() | server.pump();
        for event in server.events() {
            match event {
                Event::Request { id: at, request, end } => {
                    assert_eq!((at, request.headers()["cookie"].as_bytes()), (id, &b"a=1"[..]));
                    assert!(!end || (content.is_empty() && !trailers));
                    let hints = Response::builder().status(103).header("link", "</x>").body(()).unwrap();
                    server.connection.send_informational(&mut server.io, id, &hints).unwrap();
                    received.drive(&mut server, id, max);
                }
                Event::DataReadable { .. } => received.drive(&mut server, id, max),
                Event::Writable { .. } => {
                    let upload = uploads[1].as_mut().unwrap();
                    if upload.drive(&mut server, id) {
                        uploads[1] = None;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        if received.end && !answered {
            answered = true;
            let response = Response::builder().status(200).header("etag", "x").body(()).unwrap();
            server.connection.send_response(&mut server.io, id, &response, false).unwrap();
            let mut upload = Upload::new(content, trailers);
            uploads[1] = (!upload.drive(&mut server, id)).then_some(upload);
        }
        for event in client.events() {
            match event {
                Event::Informational { response, .. } => {
                    assert_eq!(response.status(), 103);
                    informed = true;
                }
                Event::Response { response, end, .. } => {
                    assert!(informed && (!end || (content.is_empty() && !trailers)));
                    assert_eq!(response.headers()["etag"], "x");
                    returned.end = end;
                    returned.drive(&mut client, id, max);
                }
                Event::DataReadable { .. } => returned.drive(&mut client, id, max),
                Event::Writable { .. } => {
                    if uploads[0].as_mut().unwrap().drive(&mut client, id) {
                        uploads[0] = None;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        if !busy && returned.end {
            break;
        }
    }
    assert_eq!(world.closed(), None);
    assert_eq!((client.connection.open_requests(), server.connection.open_requests()), (0, 0));
    (received, returned)
}

#[test]
fn a_server_says_for_which_origins_it_answers() {
    let world = World::new(1 << 22, usize::MAX);
    let origins = vec!["https://a.example".to_owned(), "https://B.example:8443".to_owned()];
    let (client, server) = pair_of(&world, &Config { origins, ..Config::default() });
    let told = client.connection.origins().unwrap();
    assert_eq!(told, ["https://a.example", "https://b.example:8443"]);
    assert!(server.connection.origins().is_none(), "clients have none");
    let (client, _) = pair(&World::new(1 << 22, usize::MAX));
    assert!(client.connection.origins().is_none());
}

#[test]
fn bodies_trailers_and_informational_responses() {
    let content: Bytes = (0..150_000_u32).map(|n| (n % 251) as u8).collect();
    for (window, chunk, max, len) in [
        (1 << 20, usize::MAX, usize::MAX, 150_000),
        (1000, usize::MAX, 300, 150_000),
        (1 << 20, 1, 1000, 3000),
        (40, 3, 1, 3000),
        (3, 1, 5, 500),
        (1 << 20, usize::MAX, 100, 0),
    ] {
        for trailers in [false, true] {
            let content = content.slice(..len);
            let (received, returned) = echo(window, chunk, max, &content, trailers);
            for download in [&received, &returned] {
                assert_eq!(download.pieces.concat(), content, "window {window}, chunk {chunk}");
                assert_eq!(download.trailers.is_some(), trailers);
                if let Some(map) = &download.trailers {
                    assert_eq!(map["x-checksum"], "1234");
                }
            }
        }
    }
}

#[test]
fn a_head_takes_the_first_frame_of_the_content_with_it() {
    for window in [1 << 20, 1000, 40, 3] {
        for len in [0, 1, 768, 769, 5000, 65_536, 65_537, 150_000] {
            for end in [true, false] {
                let content: Bytes = (0..len).map(|n| (n % 251) as u8).collect();
                let (mut client, mut server) = pair(&World::new(window, usize::MAX));
                let request = Request::get("https://a.example/").body(()).unwrap();
                let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
                pump(&mut client, &mut server);
                assert_eq!(server.events().len(), 1);
                let head = Response::builder().header("etag", "x").body(()).unwrap();
                let server_io = &mut server.io;
                let taken = server.connection.send_response_with(server_io, id, &head, &content, end);
                assert_eq!(taken, Ok(len.min(65_536) as usize), "window {window}, {len} bytes");
                let rest = content.slice(taken.unwrap()..);
                let mut upload = (!rest.is_empty() || !end).then(|| Upload::new(&rest, false));
                let mut download = Download::default();
                for _ in 0..100_000 {
                    if upload.as_mut().is_some_and(|upload| upload.drive(&mut server, id)) {
                        upload = None;
                    }
                    pump(&mut client, &mut server);
                    for event in client.events() {
                        if let Event::Response { end, response, .. } = event {
                            assert_eq!(response.headers()["etag"], "x");
                            download.end = end;
                        }
                    }
                    server.events();
                    download.drive(&mut client, id, usize::MAX);
                    if download.end {
                        break;
                    }
                }
                assert_eq!(download.pieces.concat(), content, "window {window}, {len} bytes, {end}");
                assert_eq!((client.connection.open_requests(), server.connection.open_requests()), (0, 0));
            }
        }
    }
}

#[test]
fn content_is_never_copied() {
    let content = Bytes::from(vec![7; 100_000]);
    let range = content.as_ptr_range();
    let (received, returned) = echo(5000, usize::MAX, 1 << 20, &content, false);
    for piece in received.pieces.iter().chain(&returned.pieces) {
        assert!(range.contains(&piece.as_ptr()));
    }
}

#[test]
fn messages_without_content_end_at_once() {
    let (mut client, mut server) = pair(&World::new(1 << 20, usize::MAX));
    let request = Request::get("https://a.example/").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
    server.pump();
    assert!(matches!(server.events()[..], [Event::Request { end: true, .. }]));
    assert_eq!(server.connection.open_requests(), 1);
    let response = Response::builder().status(204).body(()).unwrap();
    server.connection.send_response(&mut server.io, id, &response, true).unwrap();
    client.pump();
    assert!(matches!(client.events()[..], [Event::Response { end: true, .. }]));
    assert_eq!((client.connection.open_requests(), server.connection.open_requests()), (0, 0));
    let after = client.connection.read_body(&mut client.io, id, 10);
    assert_eq!(after, Err(ReadError::UnknownStream));
}

#[test]
fn what_is_not_read_holds_the_sender_back() {
    let world = World::new(10_000, usize::MAX);
    let (mut client, mut server) = pair(&world);
    let request = Request::post("https://a.example/").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
    let content = Bytes::from(vec![1; 1 << 20]);
    let mut taken = 0;
    for _ in 0..20 {
        taken += client.connection.send_data(&mut client.io, id, content.slice(taken..)).unwrap();
        pump(&mut client, &mut server);
    }
    // One window, what the server read to find the header section, and the rest of one frame.
    assert!(taken <= 10_000 + 4096 + (64 << 10), "{taken}");
    assert_eq!(world.queued(id, Side::Client), 10_000);
    assert!(client.events().is_empty(), "no Writable yet");
    assert!(matches!(server.events()[..], [Event::Request { end: false, .. }]));
    while !matches!(server.connection.read_body(&mut server.io, id, 50_000).unwrap(), BodyRead::Blocked) {
        pump(&mut client, &mut server);
    }
    pump(&mut client, &mut server);
    assert!(matches!(client.events()[..], [Event::Writable { .. }]));
}

#[test]
fn every_cut_of_a_request() {
    let bytes =
        [get(&[("content-length", "3")]), frame(0x21, b"?"), data(b"abc"), headers(&[("t", "u")])].concat();
    for cut in 0..=bytes.len() {
        let world = World::new(1 << 20, usize::MAX);
        let mut server = Peer::new(Side::Server, &world, Config::default());
        let mut io = world.end(Side::Client);
        let id = io.open(Direction::Bidirectional).unwrap();
        let mut download = Download::default();
        let mut requests = 0;
        let (head, tail) = bytes.split_at(cut);
        for part in [head, tail, &[]] {
            match part {
                [] => io.finish(id),
                part => io.put(id, part),
            }
            server.pump();
            for event in server.events() {
                requests += usize::from(matches!(event, Event::Request { .. }));
                download.drive(&mut server, id, 100);
            }
            if part.is_empty() {
                break;
            }
        }
        // An empty first part ended the stream before anything came.
        if cut > 0 {
            assert_eq!((requests, download.pieces.concat().as_slice()), (1, &b"abc"[..]), "cut at {cut}");
            assert_eq!(download.trailers.unwrap()["t"], "u");
            assert!(download.end, "cut at {cut}");
        }
    }
}

#[test]
fn settings_and_the_same_bytes_each_time() {
    let start = |config: Config| {
        let world = World::new(1 << 20, usize::MAX);
        let _peer = Peer::new(Side::Server, &world, config);
        world.end(Side::Client).drain(StreamId::new(Side::Server, Direction::Unidirectional, 0))
    };
    let bytes = start(Config::default());
    assert_eq!(bytes, start(Config::default()));
    assert_eq!(bytes[..2], [0, 4]);
    let len = usize::from(bytes[2]);
    let settings = Settings::decode(&bytes[3..3 + len]).unwrap();
    assert_eq!(settings.max_field_section_size, Some(64 << 10));
    assert_eq!((settings.qpack_max_table_capacity, settings.qpack_blocked_streams), (4096, 16));
    assert!(bytes.len() > 3 + len, "a reserved frame follows");
    let plain = start(Config { grease: false, enable_connect_protocol: true, ..Config::default() });
    let settings = Settings::decode(&plain[3..]).unwrap();
    assert!(settings.enable_connect_protocol);
}

#[test]
fn extended_connect_is_negotiated() {
    let world = World::new(1 << 20, usize::MAX);
    let config = Config { enable_connect_protocol: true, ..Config::default() };
    let mut client = Peer::new(Side::Client, &world, Config::default());
    let mut server = Peer::new(Side::Server, &world, config);
    let mut request = Request::connect("https://a.example/chat").body(()).unwrap();
    request.extensions_mut().insert(Protocol::new("websocket").unwrap());
    let early = client.connection.send_request(&mut client.io, &request, false);
    assert!(matches!(early, Err(SendError::NotPermitted(_))));
    pump(&mut client, &mut server);
    server.events();
    client.connection.send_request(&mut client.io, &request, false).unwrap();
    server.pump();
    let events = server.events();
    let [Event::Request { request, end: false, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(request.extensions().get::<Protocol>().unwrap().as_str(), "websocket");
}

#[test]
fn graceful_shutdown_of_a_server() {
    let world = World::new(1 << 20, usize::MAX);
    let (mut client, mut server) = pair(&world);
    let request = Request::get("https://a.example/").body(()).unwrap();
    let send = |client: &mut Peer| client.connection.send_request(&mut client.io, &request, true);
    let first = send(&mut client).unwrap();
    server.pump();
    server.connection.shutdown(&mut server.io).unwrap();
    // Sent before the GOAWAY arrives.
    let second = send(&mut client).unwrap();
    pump(&mut client, &mut server);
    assert_eq!(world.reset_code(second, Side::Server), Some(ErrorCode::H3_REQUEST_REJECTED.0));
    let events = client.events();
    assert!(
        events.iter().any(|event| matches!(event, Event::GoAway { id: 4 }))
            && events.iter().any(|event| matches!(
                event,
                Event::Reset { id, code: ErrorCode::H3_REQUEST_REJECTED, local: false } if *id == second
            )),
        "{events:?}"
    );
    assert_eq!(send(&mut client), Err(SendError::GoingAway));
    assert_eq!(server.events().len(), 1, "the second request was never told");
    let response = Response::builder().status(200).body(()).unwrap();
    server.connection.send_response(&mut server.io, first, &response, true).unwrap();
    pump(&mut client, &mut server);
    assert!(matches!(client.events()[..], [Event::Response { end: true, .. }]));
    assert_eq!(server.connection.open_requests(), 0);
    assert!(server.connection.goaway(&mut server.io, 8).is_err(), "ids do not grow");
    assert!(server.connection.goaway(&mut server.io, 0).is_err(), "the first request was taken");
    server.connection.shutdown(&mut server.io).unwrap();
    client.pump();
    assert!(client.events().is_empty(), "the GOAWAY stands");
    server.connection.close(&mut server.io);
    assert_eq!(world.closed(), Some((Side::Server, 0x100)));
}

#[test]
fn a_notice_before_the_shutdown() {
    let (mut client, mut server) = pair(&World::new(1 << 20, usize::MAX));
    let request = Request::get("https://a.example/").body(()).unwrap();
    server.connection.goaway(&mut server.io, (1 << 62) - 4).unwrap();
    // On its way already, and still served.
    client.connection.send_request(&mut client.io, &request, true).unwrap();
    pump(&mut client, &mut server);
    assert!(matches!(server.events()[..], [Event::Request { .. }]));
    server.connection.shutdown(&mut server.io).unwrap();
    pump(&mut client, &mut server);
    assert!(matches!(
        client.events()[..],
        [Event::GoAway { id: 0x3fff_ffff_ffff_fffc }, Event::GoAway { id: 4 }]
    ));
    assert_eq!(client.connection.open_requests(), 1);
}

#[test]
fn cancelling() {
    let world = World::new(1 << 20, usize::MAX);
    let (mut client, mut server) = pair(&world);
    let request = Request::post("https://a.example/").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
    pump(&mut client, &mut server);
    server.events();
    client.connection.reset(&mut client.io, id, ErrorCode::H3_REQUEST_CANCELLED);
    pump(&mut client, &mut server);
    let code = ErrorCode::H3_REQUEST_CANCELLED;
    let events = server.events();
    assert!(events.iter().any(|event| matches!(event, Event::StopSending { code: c, .. } if *c == code)));
    let read = server.connection.read_body(&mut server.io, id, 10);
    assert_eq!(read, Err(ReadError::Reset { code, local: false }));
    assert_eq!(server.connection.open_requests(), 0);

    // A server that needs no more of the request.
    let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
    pump(&mut client, &mut server);
    let response = Response::builder().status(413).body(()).unwrap();
    server.connection.send_response(&mut server.io, id, &response, true).unwrap();
    server.connection.stop_sending(&mut server.io, id, ErrorCode::H3_NO_ERROR);
    pump(&mut client, &mut server);
    let events = client.events();
    assert!(
        events.iter().any(|event| matches!(event, Event::StopSending { code: ErrorCode::H3_NO_ERROR, .. }))
    );
    assert!(events.iter().any(|event| matches!(event, Event::Response { end: true, .. })));
    assert_eq!((client.connection.open_requests(), server.connection.open_requests()), (0, 0));
}

#[test]
fn a_frame_that_was_taken_is_pending_until_the_transport_has_it() {
    let (mut client, mut server) = pair(&World::new(10_000, usize::MAX));
    let request = Request::post("https://a.example/").body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, false).unwrap();
    assert!(!client.connection.has_pending(id), "there was room for the head");
    let content = Bytes::from(vec![1; 60_000]);
    assert_eq!(client.connection.send_data(&mut client.io, id, content), Ok(60_000));
    let mut read = 0;
    while client.connection.has_pending(id) {
        assert!(read <= 50_000, "{read} of 60,000 were read");
        pump(&mut client, &mut server);
        while let Ok(BodyRead::Data(data)) = server.connection.read_body(&mut server.io, id, usize::MAX) {
            read += data.len();
        }
    }
    assert!(read >= 40_000, "the rest is the transport's: {read}");
    assert!(!client.connection.has_pending(StreamId::new(Side::Client, Direction::Bidirectional, 7)));
}

#[test]
fn calls_at_the_wrong_time() {
    let (mut client, mut server) = pair(&World::new(1 << 20, usize::MAX));
    let request = Request::get("https://a.example/").body(()).unwrap();
    let ok = Response::builder().status(200).body(()).unwrap();
    let hints = Response::builder().status(103).body(()).unwrap();
    let id = client.connection.send_request(&mut client.io, &request, true).unwrap();
    assert_eq!(id, REQUEST);
    pump(&mut client, &mut server);
    let refused = |result| matches!(result, Err(SendError::NotPermitted(_)));
    assert!(refused(client.connection.send_data(&mut client.io, id, Bytes::from_static(b"x")).map(drop)));
    assert!(refused(client.connection.send_response(&mut client.io, id, &ok, true)));
    assert!(refused(server.connection.send_request(&mut server.io, &request, true).map(drop)));
    assert!(refused(server.connection.finish(&mut server.io, id)));
    assert!(refused(server.connection.send_response(&mut server.io, id, &hints, false)));
    assert!(refused(server.connection.send_informational(&mut server.io, id, &ok)));
    server.connection.send_response(&mut server.io, id, &ok, false).unwrap();
    assert!(refused(server.connection.send_response(&mut server.io, id, &ok, false)));
    assert!(refused(server.connection.send_informational(&mut server.io, id, &hints)));
    server.connection.send_trailers(&mut server.io, id, &HeaderMap::new()).unwrap();
    assert_eq!(server.connection.finish(&mut server.io, id), Err(SendError::UnknownStream));
}
