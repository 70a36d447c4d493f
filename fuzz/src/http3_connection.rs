//! A connection of `godwit-http3` and a peer that writes anything on any stream. The function panics if the connection does,
//! or if it matters in what pieces the streams come; it returns whether a message was understood and the connection lives.

use super::program::{Step, steps};
use bytes::Bytes;
use godwit_base::Time;
use godwit_http3::{
    BodyRead, Config, Connection, Direction, Event, Read, Side, StreamError, StreamId, Transport,
};
use http::{HeaderMap, Request, Response};
use std::collections::{BTreeMap, VecDeque};

/// What a step does with its stream after its bytes, beside the stream's number in the low four bits.
pub mod step {
    /// The stream ends.
    pub const END: u8 = 0x10;
    /// The stream is reset.
    pub const RESET: u8 = 0x20;
    /// The other direction is unwanted.
    pub const STOP: u8 = 0x40;
    /// The stream's number counts unidirectional streams; otherwise those of requests.
    pub const UNI: u8 = 0x80;
}

/// The first byte is odd for a server, even for a client, which has asked for something twice; then follow the steps of
/// the peer.
pub fn connection(bytes: &[u8]) -> bool {
    let Some((side, program)) = bytes.split_first() else { return false };
    let side = if side & 1 == 1 { Side::Server } else { Side::Client };
    let steps = steps(program);
    let whole = run(side, &steps, usize::MAX);
    let pieces = run(side, &steps, 1);
    // An encoder that drops entries which are still needed is caught only if the stream that needs them has not been read before.
    const QPACK: [Option<u64>; 2] = [Some(0x200), Some(0x201)];
    if QPACK.contains(&pieces.code) || QPACK.contains(&whole.code) {
        return false;
    }
    assert_eq!((pieces.closed, pieces.code), (whole.closed, whole.code), "streams end the same in pieces");
    // What else came together with the error that closes a connection may go unsaid.
    assert!(whole.closed || pieces == whole, "streams read the same in pieces: {whole:?} {pieces:?}");
    !whole.closed && whole.messages.values().any(|message| !message.heads.is_empty())
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    messages: BTreeMap<StreamId, Message>,
    settings: usize,
    goaways: Vec<u64>,
    closed: bool,
    /// The code with which the transport was closed.
    code: Option<u64>,
}

#[derive(Debug, Default, PartialEq)]
struct Message {
    heads: Vec<String>,
    body: Vec<u8>,
    trailers: Vec<String>,
    ended: bool,
    failed: Option<String>,
}

fn run(side: Side, steps: &[Step<'_>], piece: usize) -> Outcome {
    let mut io = Io { side, ..Io::default() };
    let mut config = Config::default();
    config.max_field_section_size = 4096;
    config.max_buffered_headers = 8192;
    config.enable_connect_protocol = true;
    config.max_webtransport_sessions = 2;
    config.grease = false;
    let mut connection = Connection::new(side, config);
    connection.start(&mut io);
    if side == Side::Client {
        for method in ["GET", "HEAD"] {
            let request = Request::builder().method(method).uri("https://a.example/").body(());
            let sent = connection.send_request(&mut io, &request.expect("a request"), true);
            assert!(sent.is_ok(), "{sent:?}");
        }
    }
    let mut outcome = Outcome::default();
    for (what, bytes) in steps {
        let uni = what & step::UNI > 0;
        let id = io.incoming(u64::from(what & 15) % 4, uni);
        let last = what & (step::END | step::RESET);
        let pieces = bytes.chunks(piece.min(bytes.len()).max(1));
        for piece in pieces {
            io.push(id, piece);
            tell(&mut connection, &mut io, id, &mut outcome);
        }
        match last {
            0 => {}
            step::END => io.end(id, None),
            _ => io.end(id, Some(0x10c)),
        }
        tell(&mut connection, &mut io, id, &mut outcome);
        if what & step::STOP > 0 && !uni {
            connection.on_stopped(&mut io, id, 0x10c);
            fetch(&mut connection, &mut io, &mut outcome);
        }
    }
    outcome.closed = connection.is_closed();
    assert_eq!(outcome.closed, io.code.is_some(), "who closes says so");
    outcome.code = io.code;
    connection.on_closed();
    assert_eq!(connection.open_requests(), 0);
    outcome
}

/// The connection learns what has come on a stream.
fn tell(connection: &mut Connection, io: &mut Io, id: StreamId, outcome: &mut Outcome) {
    if io.take_opened() {
        connection.on_stream_opened(io, Direction::Bidirectional);
        connection.on_stream_opened(io, Direction::Unidirectional);
    }
    connection.on_readable(io, id);
    fetch(connection, io, outcome);
}

/// The application takes what there is.
fn fetch(connection: &mut Connection, io: &mut Io, outcome: &mut Outcome) {
    while let Some(event) = connection.poll_event() {
        match event {
            Event::Settings => outcome.settings += 1,
            Event::GoAway { id } => outcome.goaways.push(id),
            Event::SessionStream { id, direction } => {
                let stream = connection.accept_session_stream(id, direction);
                assert!(
                    stream.is_some() || !connection.has_session(id),
                    "a stream that was told of is there"
                );
                outcome.messages.entry(id).or_default().heads.push(format!("{stream:?}"));
            }
            Event::Request { id, request, .. } => {
                check(request.headers());
                outcome.messages.entry(id).or_default().heads.push(format!("{request:?}"));
                let response = Response::builder().status(200).header("a", "b").body(()).expect("a response");
                let _ = connection.send_response(io, id, &response, true);
                read(connection, io, id, outcome);
            }
            Event::Informational { id, response } => {
                check(response.headers());
                outcome.messages.entry(id).or_default().heads.push(format!("{response:?}"));
            }
            Event::Response { id, response, .. } => {
                check(response.headers());
                outcome.messages.entry(id).or_default().heads.push(format!("{response:?}"));
                read(connection, io, id, outcome);
            }
            Event::DataReadable { id } => read(connection, io, id, outcome),
            Event::Reset { id, code, local } => {
                let message = outcome.messages.entry(id).or_default();
                message.failed = Some(format!("{code} {local}"));
            }
            _ => {}
        }
    }
}

fn check(fields: &HeaderMap) {
    for (name, value) in fields {
        assert!(!name.as_str().contains(|c: char| c.is_ascii_uppercase() || c == ':'), "{name}");
        assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{value:?}");
    }
}

fn read(connection: &mut Connection, io: &mut Io, id: StreamId, outcome: &mut Outcome) {
    let message = outcome.messages.entry(id).or_default();
    loop {
        match connection.read_body(io, id, 100) {
            Ok(BodyRead::Data(data)) => {
                assert!((1..=100).contains(&data.len()));
                message.body.extend(data);
            }
            Ok(BodyRead::Trailers(trailers)) => {
                check(&trailers);
                message.trailers.push(format!("{trailers:?}"));
            }
            Ok(BodyRead::End) => {
                message.ended = true;
                break;
            }
            Ok(BodyRead::Blocked) => break,
            Err(error) => {
                // Of one that is over nothing more is known.
                if !message.ended && message.failed.is_none() {
                    message.failed = Some(format!("{error}"));
                }
                break;
            }
        }
    }
}

/// The streams, as far as the peer has written on them.
struct Io {
    side: Side,
    halves: BTreeMap<StreamId, Half>,
    /// By the peer, and by us, unidirectional ones last.
    accepted: [u64; 2],
    opened: [u64; 2],
    own: [u64; 2],
    news: bool,
    code: Option<u64>,
}

impl Default for Io {
    fn default() -> Self {
        let (halves, accepted, opened, own) = Default::default();
        Io { side: Side::Client, halves, accepted, opened, own, news: false, code: None }
    }
}

#[derive(Default)]
struct Half {
    data: VecDeque<Bytes>,
    end: Option<Option<u64>>,
    unwanted: bool,
}

impl Io {
    /// The stream on which the peer writes: one of its own, or one of the client's requests.
    fn incoming(&mut self, index: u64, uni: bool) -> StreamId {
        if !uni && self.side == Side::Client {
            return StreamId::new(Side::Client, Direction::Bidirectional, index % 2);
        }
        let direction = if uni { Direction::Unidirectional } else { Direction::Bidirectional };
        let opened = &mut self.opened[usize::from(uni)];
        self.news |= *opened <= index;
        *opened = (*opened).max(index + 1);
        StreamId::new(self.side.peer(), direction, index)
    }

    fn take_opened(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    fn push(&mut self, id: StreamId, piece: &[u8]) {
        let half = self.halves.entry(id).or_default();
        if half.end.is_none() && !half.unwanted {
            half.data.push_back(Bytes::copy_from_slice(piece));
        }
    }

    fn end(&mut self, id: StreamId, reset: Option<u64>) {
        let half = self.halves.entry(id).or_default();
        if half.end.is_none() {
            half.end = Some(reset);
            if reset.is_some() {
                half.data.clear();
            }
        }
    }
}

impl Transport for Io {
    /// No time passes: what a peer may do in a while is the least then.
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let own = &mut self.own[usize::from(direction == Direction::Unidirectional)];
        *own += 1;
        Some(StreamId::new(self.side, direction, *own - 1))
    }

    fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let which = usize::from(direction == Direction::Unidirectional);
        let next = self.accepted[which];
        (next < self.opened[which]).then(|| {
            self.accepted[which] += 1;
            StreamId::new(self.side.peer(), direction, next)
        })
    }

    fn write(&mut self, _id: StreamId, data: &mut Bytes) -> Result<(), StreamError> {
        data.clear();
        Ok(())
    }

    fn finish(&mut self, _id: StreamId) {}

    fn reset(&mut self, _id: StreamId, _code: u64) {}

    fn stop_sending(&mut self, id: StreamId, _code: u64) {
        let half = self.halves.entry(id).or_default();
        half.unwanted = true;
        half.data.clear();
    }

    fn read(&mut self, id: StreamId, max: usize) -> Result<Read, StreamError> {
        assert!(max > 0);
        let half = self.halves.entry(id).or_default();
        if half.unwanted {
            return Err(StreamError::Unknown);
        }
        if let Some(front) = half.data.front_mut() {
            let piece = front.split_to(max.min(front.len()));
            if front.is_empty() {
                half.data.pop_front();
            }
            return Ok(Read::Data(piece));
        }
        match half.end {
            None => Ok(Read::Blocked),
            Some(None) => Ok(Read::Finished),
            Some(Some(code)) => Err(StreamError::Reset(code)),
        }
    }

    fn close(&mut self, code: u64, _reason: &str) {
        self.code.get_or_insert(code);
    }
}
