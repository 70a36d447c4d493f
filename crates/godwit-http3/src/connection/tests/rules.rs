//! One row for each rule that a peer can break, with the code it is told.

use super::memory::{Notice, World};
use super::*;
use crate::error::ErrorCode;
use crate::{Direction, ReadError, StreamId, Transport};
use http::Request;
use proptest::prelude::*;

/// What a misbehaving peer does.
#[derive(Debug, Clone)]
enum Act {
    /// Opens a unidirectional stream and writes this.
    Uni(Bytes),
    /// The same, and ends it.
    UniEnd(Bytes),
    /// The same, and resets it.
    UniReset(Bytes),
    /// Writes this on the request stream (0), which a raw client opens first.
    Message(Bytes),
    /// Ends the request stream.
    End,
    /// Resets the peer's half of the request stream.
    Reset,
    /// Opens a bidirectional stream from a server.
    ServerBidi,
    /// Refuses the victim's control stream.
    StopControl,
}
use Act::{End, Message, Reset, ServerBidi, StopControl, Uni, UniEnd, UniReset};

/// What the victim does about it.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Closes the connection.
    Connection(ErrorCode),
    /// Resets the request stream.
    Stream(ErrorCode),
    /// Goes on.
    Fine,
}
use Outcome::{Connection as Closes, Fine, Stream as Resets};

const REQUEST: StreamId = StreamId::new(Side::Client, Direction::Bidirectional, 0);

/// Runs `acts` against a victim on `side` that reads everything. A client has sent `request` before.
fn attack(side: Side, request: &Request<()>, acts: &[Act], chunk: usize, eager: bool) -> Outcome {
    let world = World::new(1 << 20, chunk);
    let mut victim = Peer::new(side, &world, Config::default());
    let mut io = world.end(side.peer());
    if side == Side::Client {
        victim.connection.send_request(&mut victim.io, request, true).unwrap();
    } else if acts.iter().any(|act| matches!(act, Message(_) | End | Reset)) {
        io.open(Direction::Bidirectional).unwrap();
    }
    let mut local_fault = None;
    for act in acts {
        match act {
            Uni(bytes) | UniEnd(bytes) | UniReset(bytes) => {
                let id = io.open(Direction::Unidirectional).unwrap();
                io.put(id, bytes);
                match act {
                    UniEnd(_) => io.finish(id),
                    // What was written is to be read before.
                    UniReset(_) => {
                        victim.pump();
                        io.reset(id, 0);
                    }
                    _ => {}
                }
            }
            Message(bytes) => io.put(REQUEST, bytes),
            End => io.finish(REQUEST),
            Reset => io.reset(REQUEST, 0x10c),
            ServerBidi => drop(io.open(Direction::Bidirectional).unwrap()),
            StopControl => io.stop_sending(StreamId::new(side, Direction::Unidirectional, 0), 0),
        }
        if eager {
            local_fault = local_fault.or(run(&mut victim));
        }
    }
    local_fault = local_fault.or(run(&mut victim));
    let reset = world.reset_code(REQUEST, side).or(world.stop_code(REQUEST, side.peer()));
    match (world.closed(), reset, local_fault) {
        (Some((closer, code)), ..) => {
            assert_eq!(closer, side);
            assert!(victim.connection.is_closed());
            Closes(ErrorCode(code))
        }
        (None, Some(code), _) | (None, None, Some(ErrorCode(code))) => Resets(ErrorCode(code)),
        (None, None, None) => Fine,
    }
}

/// Lets the victim work, reading all there is to read.
fn run(victim: &mut Peer) -> Option<ErrorCode> {
    let mut fault = None;
    loop {
        let busy = victim.pump();
        let events = victim.events();
        for event in &events {
            if let Event::Reset { code, local: true, .. } = event {
                fault = Some(*code);
            }
            if let Event::Request { id, .. } | Event::Response { id, .. } | Event::DataReadable { id } = event
            {
                fault = fault.or(read_all(victim, *id));
            }
        }
        if !busy && events.is_empty() {
            return fault;
        }
    }
}

fn read_all(victim: &mut Peer, id: StreamId) -> Option<ErrorCode> {
    loop {
        match victim.connection.read_body(&mut victim.io, id, 1000) {
            Ok(crate::BodyRead::Data(_) | crate::BodyRead::Trailers(_)) => {}
            Ok(crate::BodyRead::End | crate::BodyRead::Blocked) => return None,
            Err(ReadError::Reset { code, local: true }) => return Some(code),
            Err(_) => return None,
        }
    }
}

fn plain() -> Request<()> {
    Request::get("https://a.example/").body(()).unwrap()
}

/// Expects the outcome however the bytes are cut up.
fn check(side: Side, request: &Request<()>, name: &str, acts: &[Act], expected: &Outcome) {
    for chunk in [usize::MAX, 1, 2, 3, 7] {
        for eager in [false, true] {
            let outcome = attack(side, request, acts, chunk, eager);
            assert_eq!(&outcome, expected, "{name}, against a {side:?}, chunks of {chunk}, eager {eager}");
        }
    }
}

fn ctl(frames: &[Vec<u8>]) -> Act {
    Uni(join(&[&[control()], frames].concat()))
}

fn msg(parts: &[Vec<u8>]) -> Act {
    Message(join(parts))
}

fn uni(stream_type: u8) -> Bytes {
    Bytes::from(vec![stream_type])
}

#[test]
fn critical_streams() {
    use ErrorCode as Code;
    let grease = frame(frame::reserved(7), b"abc");
    let rows: Vec<(&str, Vec<Act>, Outcome)> = vec![
        ("settings", vec![ctl(&[])], Fine),
        ("settings and grease", vec![ctl(std::slice::from_ref(&grease))], Fine),
        ("empty control stream", vec![Uni(uni(0))], Fine),
        (
            "grease before settings",
            vec![Uni(join(&[vec![0], grease, settings()]))],
            Closes(Code::H3_MISSING_SETTINGS),
        ),
        (
            "GOAWAY first",
            vec![Uni(join(&[vec![0], id_frame(FrameType::GOAWAY, 0)]))],
            Closes(Code::H3_MISSING_SETTINGS),
        ),
        ("DATA first", vec![Uni(join(&[vec![0], data(b"x")]))], Closes(Code::H3_MISSING_SETTINGS)),
        ("SETTINGS twice", vec![ctl(&[settings()])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("DATA on control", vec![ctl(&[data(b"x")])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HEADERS on control", vec![ctl(&[get(&[])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("PUSH_PROMISE on control", vec![ctl(&[frame(5, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HTTP/2 PRIORITY", vec![ctl(&[frame(2, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HTTP/2 PING", vec![ctl(&[frame(6, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HTTP/2 WINDOW_UPDATE", vec![ctl(&[frame(8, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HTTP/2 CONTINUATION", vec![ctl(&[frame(9, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HTTP/2 setting", vec![Uni(join(&[vec![0], frame(4, &[2, 0])]))], Closes(Code::H3_SETTINGS_ERROR)),
        (
            "setting twice",
            vec![Uni(join(&[vec![0], frame(4, &[6, 0, 6, 0])]))],
            Closes(Code::H3_SETTINGS_ERROR),
        ),
        ("setting cut short", vec![Uni(join(&[vec![0], frame(4, &[6])]))], Closes(Code::H3_FRAME_ERROR)),
        (
            "huge SETTINGS",
            vec![Uni(join(&[vec![0], vec![4, 0x80, 1, 0, 0]]))],
            Closes(Code::H3_EXCESSIVE_LOAD),
        ),
        ("two control streams", vec![ctl(&[]), Uni(uni(0))], Closes(Code::H3_STREAM_CREATION_ERROR)),
        ("two encoder streams", vec![Uni(uni(2)), Uni(uni(2))], Closes(Code::H3_STREAM_CREATION_ERROR)),
        ("two decoder streams", vec![Uni(uni(3)), Uni(uni(3))], Closes(Code::H3_STREAM_CREATION_ERROR)),
        ("control ended", vec![UniEnd(join(&[control()]))], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        ("control reset", vec![UniReset(join(&[control()]))], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        ("encoder ended", vec![UniEnd(uni(2))], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        ("decoder reset", vec![UniReset(uni(3))], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        ("our control refused", vec![StopControl], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        ("unknown stream", vec![Uni(join(&[vec![0x21], vec![9; 50]])), ctl(&[])], Fine),
        ("stream ended without a type", vec![UniEnd(Bytes::from_static(&[0x40])), ctl(&[])], Fine),
        ("stream reset without a type", vec![UniReset(Bytes::from_static(&[0x40])), ctl(&[])], Fine),
        ("CANCEL_PUSH", vec![ctl(&[id_frame(FrameType::CANCEL_PUSH, 0)])], Closes(Code::H3_ID_ERROR)),
        ("empty GOAWAY", vec![ctl(&[frame(7, &[])])], Closes(Code::H3_FRAME_ERROR)),
        ("GOAWAY cut short", vec![ctl(&[frame(7, &[0x40])])], Closes(Code::H3_FRAME_ERROR)),
        ("long GOAWAY", vec![ctl(&[frame(7, &[0, 0])])], Closes(Code::H3_FRAME_ERROR)),
        ("longer GOAWAY", vec![ctl(&[frame(7, &[0; 9])])], Closes(Code::H3_FRAME_ERROR)),
        (
            "growing GOAWAY",
            vec![ctl(&[id_frame(FrameType::GOAWAY, 4), id_frame(FrameType::GOAWAY, 8)])],
            Closes(Code::H3_ID_ERROR),
        ),
    ];
    for (name, acts, expected) in rows {
        check(Side::Server, &plain(), name, &acts, &expected);
        check(Side::Client, &plain(), name, &acts, &expected);
    }
}

#[test]
fn control_frames_of_one_side() {
    use ErrorCode as Code;
    let max = |id| id_frame(FrameType::MAX_PUSH_ID, id);
    let goaway = |id| id_frame(FrameType::GOAWAY, id);
    for (side, name, acts, expected) in [
        (Side::Server, "MAX_PUSH_ID", vec![ctl(&[max(1), max(1), max(3)])], Fine),
        (Side::Server, "MAX_PUSH_ID reduced", vec![ctl(&[max(3), max(1)])], Closes(Code::H3_ID_ERROR)),
        (Side::Server, "bad MAX_PUSH_ID", vec![ctl(&[frame(13, &[])])], Closes(Code::H3_FRAME_ERROR)),
        (Side::Client, "MAX_PUSH_ID", vec![ctl(&[max(1)])], Closes(Code::H3_FRAME_UNEXPECTED)),
        (Side::Server, "push stream", vec![Uni(uni(1))], Closes(Code::H3_STREAM_CREATION_ERROR)),
        (Side::Client, "push stream", vec![Uni(uni(1))], Closes(Code::H3_ID_ERROR)),
        (Side::Client, "server's stream", vec![ServerBidi], Closes(Code::H3_STREAM_CREATION_ERROR)),
        (Side::Client, "GOAWAY for another type", vec![ctl(&[goaway(1)])], Closes(Code::H3_ID_ERROR)),
        (Side::Client, "GOAWAY for another direction", vec![ctl(&[goaway(2)])], Closes(Code::H3_ID_ERROR)),
        (Side::Client, "GOAWAY above", vec![ctl(&[goaway(4), goaway(4)])], Fine),
        (Side::Client, "GOAWAY below", vec![ctl(&[goaway(0)])], Resets(Code::H3_REQUEST_CANCELLED)),
        (Side::Client, "ORIGIN", vec![ctl(&[frame(12, b"\0\x09https://a"), frame(12, &[])])], Fine),
        (
            Side::Client,
            "ORIGIN cut short",
            vec![ctl(&[frame(12, b"\0\x0ahttps://a")])],
            Closes(Code::H3_FRAME_ERROR),
        ),
        (Side::Client, "ORIGIN too long to be read", vec![ctl(&[frame(12, &[0xff; 17000])])], Fine),
        // It is for a client to read (RFC 8336 section 2.1).
        (Side::Server, "ORIGIN", vec![ctl(&[frame(12, b"\0")])], Fine),
        (Side::Server, "GOAWAY with a push id", vec![ctl(&[goaway(3), goaway(1)])], Fine),
    ] {
        check(side, &plain(), name, &acts, &expected);
    }
}

#[test]
fn streams_of_qpack() {
    use ErrorCode as Code;
    let rows: Vec<(&str, Vec<Act>, Outcome)> = vec![
        (
            "insertion",
            vec![Uni(Bytes::from_static(&[2, 0xc0, 1, b'a']))],
            Closes(Code::QPACK_ENCODER_STREAM_ERROR),
        ),
        (
            "capacity",
            vec![Uni(Bytes::from_static(&[2, 0x3f, 0xe2, 0x1f]))],
            Closes(Code::QPACK_ENCODER_STREAM_ERROR),
        ),
        ("capacity as permitted", vec![Uni(Bytes::from_static(&[2, 0x3f, 0xe1, 0x1f]))], Fine),
        (
            "entry larger than the capacity",
            vec![Uni(Bytes::from_static(&[2, 0x3f, 0x0d, 0xc0, 3, b'a', b'b', b'c']))],
            Closes(Code::QPACK_ENCODER_STREAM_ERROR),
        ),
        ("entry as large", vec![Uni(Bytes::from_static(&[2, 0x3f, 0x0d, 0xc0, 2, b'a', b'b']))], Fine),
        (
            "insertion with an unknown name",
            vec![Uni(Bytes::from_static(&[2, 0x3f, 0xe1, 0x1f, 0x80, 1, b'a']))],
            Closes(Code::QPACK_ENCODER_STREAM_ERROR),
        ),
        (
            "insertion with static entry 99",
            vec![Uni(Bytes::from_static(&[2, 0x3f, 0xe1, 0x1f, 0xff, 36]))],
            Closes(Code::QPACK_ENCODER_STREAM_ERROR),
        ),
        (
            "duplicate of an unknown entry",
            vec![Uni(Bytes::from_static(&[2, 0x3f, 0xe1, 0x1f, 0x00]))],
            Closes(Code::QPACK_ENCODER_STREAM_ERROR),
        ),
        ("capacity 0", vec![Uni(Bytes::from_static(&[2, 0x20]))], Fine),
        (
            "acknowledgement",
            vec![Uni(Bytes::from_static(&[3, 0x80]))],
            Closes(Code::QPACK_DECODER_STREAM_ERROR),
        ),
        ("increment", vec![Uni(Bytes::from_static(&[3, 0x01]))], Closes(Code::QPACK_DECODER_STREAM_ERROR)),
        ("cancellation", vec![Uni(Bytes::from_static(&[3, 0x44]))], Fine),
        (
            "too many cancellations, and worse behind them",
            vec![Uni([&[3][..], &[0x44; 2000], &[0x80]].concat().into())],
            Closes(Code::H3_EXCESSIVE_LOAD),
        ),
        (
            "too many instructions, and worse behind them",
            vec![Uni([&[2][..], &[0x20; 40_000], &[0]].concat().into())],
            Closes(Code::H3_EXCESSIVE_LOAD),
        ),
    ];
    for (name, acts, expected) in rows {
        for side in [Side::Client, Side::Server] {
            check(side, &plain(), name, &acts, &expected);
        }
    }
}

#[test]
fn requests() {
    use ErrorCode as Code;
    let grease = frame(frame::reserved(0), b"abc");
    let trailers = headers(&[("a", "b")]);
    let connect = headers(&[(":method", "CONNECT"), (":authority", "a:1")]);
    let post = |len| get(&[("content-length", len)]);
    let not_fields = frame(1, &[0, 0, 0x80]);
    let rows: Vec<(&str, Vec<Act>, Outcome)> = vec![
        ("request", vec![msg(&[get(&[])]), End], Fine),
        (
            "all of it",
            vec![
                msg(&[grease.clone(), get(&[]), grease.clone(), data(b"xy"), data(b"")]),
                msg(&[data(b"z"), grease.clone(), trailers.clone(), grease]),
                End,
            ],
            Fine,
        ),
        ("DATA first", vec![msg(&[data(b"x")])], Closes(Code::H3_FRAME_UNEXPECTED)),
        (
            "DATA after trailers",
            vec![msg(&[get(&[]), trailers.clone(), data(b"")])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (
            "HEADERS after trailers",
            vec![msg(&[get(&[]), trailers.clone(), trailers.clone()])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        ("SETTINGS", vec![msg(&[settings()])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("ORIGIN", vec![msg(&[frame(12, &[])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("late SETTINGS", vec![msg(&[get(&[]), settings()])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("GOAWAY", vec![msg(&[frame(7, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("CANCEL_PUSH", vec![msg(&[frame(3, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("MAX_PUSH_ID", vec![msg(&[frame(13, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("PUSH_PROMISE", vec![msg(&[frame(5, &[0])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("HTTP/2 PING", vec![msg(&[get(&[]), frame(6, &[])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        ("end before anything", vec![End], Resets(Code::H3_REQUEST_INCOMPLETE)),
        ("end before HEADERS", vec![msg(&[frame(0x21, b"")]), End], Resets(Code::H3_REQUEST_INCOMPLETE)),
        ("end in a type", vec![msg(&[vec![0x40]]), End], Closes(Code::H3_FRAME_ERROR)),
        ("end in a length", vec![msg(&[vec![0x01]]), End], Closes(Code::H3_FRAME_ERROR)),
        ("end in HEADERS", vec![msg(&[vec![0x01, 5, 0]]), End], Closes(Code::H3_FRAME_ERROR)),
        ("end in DATA", vec![msg(&[get(&[]), vec![0, 5, 1]]), End], Closes(Code::H3_FRAME_ERROR)),
        ("end before DATA", vec![msg(&[get(&[]), vec![0, 5]]), End], Closes(Code::H3_FRAME_ERROR)),
        ("end in an unknown frame", vec![msg(&[get(&[]), vec![0x21, 5]]), End], Closes(Code::H3_FRAME_ERROR)),
        ("reset in a frame", vec![msg(&[vec![0x01, 5, 0]]), Reset], Resets(Code::H3_REQUEST_REJECTED)),
        (
            "not fields",
            vec![msg(std::slice::from_ref(&not_fields))],
            Closes(Code::QPACK_DECOMPRESSION_FAILED),
        ),
        ("trailers not fields", vec![msg(&[get(&[]), not_fields])], Closes(Code::QPACK_DECOMPRESSION_FAILED)),
        ("empty HEADERS", vec![msg(&[frame(1, &[])])], Closes(Code::QPACK_DECOMPRESSION_FAILED)),
        ("no fields", vec![msg(&[headers(&[])])], Resets(Code::H3_MESSAGE_ERROR)),
        ("uppercase", vec![msg(&[get(&[("A", "b")])])], Resets(Code::H3_MESSAGE_ERROR)),
        ("connection", vec![msg(&[get(&[("connection", "close")])])], Resets(Code::H3_MESSAGE_ERROR)),
        ("pseudo-header twice", vec![msg(&[get(&[(":path", "/")])])], Resets(Code::H3_MESSAGE_ERROR)),
        (
            "pseudo-header late",
            vec![msg(&[headers(&[("a", "b"), (":path", "/")])])],
            Resets(Code::H3_MESSAGE_ERROR),
        ),
        ("extended CONNECT", vec![msg(&[get(&[(":protocol", "x")])])], Resets(Code::H3_MESSAGE_ERROR)),
        (
            "pseudo-header among trailers",
            vec![msg(&[get(&[]), headers(&[(":path", "/")])])],
            Resets(Code::H3_MESSAGE_ERROR),
        ),
        ("right length", vec![msg(&[post("3"), data(b"ab"), data(b"c")]), End], Fine),
        ("too much", vec![msg(&[post("3"), data(b"abcd")])], Resets(Code::H3_MESSAGE_ERROR)),
        ("too little", vec![msg(&[post("3"), data(b"ab")]), End], Resets(Code::H3_MESSAGE_ERROR)),
        ("nothing", vec![msg(&[post("3")]), End], Resets(Code::H3_MESSAGE_ERROR)),
        ("too little, trailers", vec![msg(&[post("3"), trailers.clone()])], Resets(Code::H3_MESSAGE_ERROR)),
        ("tunnel", vec![msg(&[connect.clone(), data(b"x"), frame(0x21, b"")]), End], Fine),
        ("trailers in a tunnel", vec![msg(&[connect, trailers])], Closes(Code::H3_FRAME_UNEXPECTED)),
    ];
    for (name, acts, expected) in rows {
        check(Side::Server, &plain(), name, &acts, &expected);
    }
}

#[test]
fn responses() {
    use ErrorCode as Code;
    let status = |status| headers(&[(":status", status)]);
    let ok = |len| headers(&[(":status", "200"), ("content-length", len)]);
    let get = plain();
    let head = Request::head("https://a.example/").body(()).unwrap();
    let connect = Request::connect("a.example:443").body(()).unwrap();
    let early = || msg(&[status("103"), status("100"), status("204")]);
    let rows: Vec<(&Request<()>, &str, Vec<Act>, Outcome)> = vec![
        (&get, "informational first", vec![early(), End], Fine),
        (&get, "only informational", vec![msg(&[status("103")]), End], Resets(Code::H3_MESSAGE_ERROR)),
        (&get, "nothing", vec![End], Resets(Code::H3_MESSAGE_ERROR)),
        (&get, "101", vec![msg(&[status("101")])], Resets(Code::H3_MESSAGE_ERROR)),
        (&get, "no status", vec![msg(&[headers(&[("a", "b")])])], Resets(Code::H3_MESSAGE_ERROR)),
        (&get, "request fields", vec![msg(&[super::get(&[])])], Resets(Code::H3_MESSAGE_ERROR)),
        (&get, "DATA after 1xx", vec![msg(&[status("103"), data(b"")])], Closes(Code::H3_FRAME_UNEXPECTED)),
        (
            &get,
            "a second response",
            vec![msg(&[status("200"), status("200")])],
            Resets(Code::H3_MESSAGE_ERROR),
        ),
        (&get, "too little", vec![msg(&[ok("3")]), End], Resets(Code::H3_MESSAGE_ERROR)),
        (&get, "push", vec![msg(&[frame(5, &[0, 0, 0])])], Closes(Code::H3_ID_ERROR)),
        (
            &get,
            "push after headers",
            vec![msg(&[status("200"), frame(5, &[0, 0, 0])])],
            Closes(Code::H3_ID_ERROR),
        ),
        (&get, "SETTINGS", vec![msg(&[settings()])], Closes(Code::H3_FRAME_UNEXPECTED)),
        (&get, "ORIGIN", vec![msg(&[frame(12, &[])])], Closes(Code::H3_FRAME_UNEXPECTED)),
        (&get, "204 with content", vec![msg(&[status("204"), data(b"x")])], Resets(Code::H3_MESSAGE_ERROR)),
        (&head, "HEAD", vec![msg(&[ok("3")]), End], Fine),
        (&head, "HEAD with content", vec![msg(&[ok("3"), data(b"abc")])], Resets(Code::H3_MESSAGE_ERROR)),
        (&connect, "tunnel", vec![msg(&[ok("3"), data(b"x")]), End], Fine),
        (
            &connect,
            "trailers in a tunnel",
            vec![msg(&[status("200"), headers(&[("a", "b")])])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (&connect, "no tunnel", vec![msg(&[status("407"), headers(&[("a", "b")])]), End], Fine),
    ];
    for (request, name, acts, expected) in rows {
        check(Side::Client, request, name, &acts, &expected);
    }
}

#[test]
fn more_about_critical_streams() {
    use ErrorCode as Code;
    let wrong_settings = |payload: &[u8]| vec![Uni(join(&[vec![0], frame(4, payload)]))];
    // It names two GiB that never come.
    let endless = |frame_type: u8| vec![ctl(&[vec![frame_type, 0xc0, 0, 0, 0, 0x80, 0, 0, 0]])];
    let rows: Vec<(&str, Vec<Act>, Outcome)> = vec![
        ("decoder ended", vec![UniEnd(uni(3))], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        ("encoder reset", vec![UniReset(uni(2))], Closes(Code::H3_CLOSED_CRITICAL_STREAM)),
        (
            "encoder ended within an instruction",
            vec![UniEnd(Bytes::from_static(&[2, 0x3f]))],
            Closes(Code::H3_CLOSED_CRITICAL_STREAM),
        ),
        (
            "decoder ended within an instruction",
            vec![UniEnd(Bytes::from_static(&[3, 0x7f]))],
            Closes(Code::H3_CLOSED_CRITICAL_STREAM),
        ),
        ("increment of 0", vec![Uni(Bytes::from_static(&[3, 0]))], Closes(Code::QPACK_DECODER_STREAM_ERROR)),
        (
            "HTTP/2 setting behind a reserved one",
            wrong_settings(&[0x21, 0, 2, 0]),
            Closes(Code::H3_SETTINGS_ERROR),
        ),
        (
            "unknown setting twice",
            wrong_settings(&[0x40, 0x40, 0, 0x40, 0x40, 0]),
            Closes(Code::H3_SETTINGS_ERROR),
        ),
        ("extended CONNECT neither on nor off", wrong_settings(&[8, 2]), Closes(Code::H3_SETTINGS_ERROR)),
        ("datagrams neither on nor off", wrong_settings(&[0x33, 2]), Closes(Code::H3_SETTINGS_ERROR)),
        ("endless GOAWAY", endless(7), Closes(Code::H3_EXCESSIVE_LOAD)),
        ("endless CANCEL_PUSH", endless(3), Closes(Code::H3_EXCESSIVE_LOAD)),
        ("empty CANCEL_PUSH", vec![ctl(&[frame(3, &[])])], Closes(Code::H3_FRAME_ERROR)),
        ("HEADERS first", vec![Uni(join(&[vec![0], get(&[])]))], Closes(Code::H3_MISSING_SETTINGS)),
        (
            "control reset before its settings",
            vec![UniReset(uni(0))],
            Closes(Code::H3_CLOSED_CRITICAL_STREAM),
        ),
        // RFC 9218 is an extension that this end does not speak: its frame is one of unknown type.
        (
            "PRIORITY_UPDATE",
            vec![ctl(&[frame(0xf_0700, b"\0u=1"), frame(0xf_0701, b""), frame(0xf_0700, b"")])],
            Fine,
        ),
    ];
    for (name, acts, expected) in rows {
        check(Side::Server, &plain(), name, &acts, &expected);
        check(Side::Client, &plain(), name, &acts, &expected);
    }
}

#[test]
fn more_about_requests() {
    use ErrorCode as Code;
    let malformed = || Resets(Code::H3_MESSAGE_ERROR);
    let fields = |section: &[u8]| frame(1, &[&[0, 0], section].concat());
    let without = |gone: &str| {
        let all = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];
        headers(&all.into_iter().filter(|(name, _)| *name != gone).collect::<Vec<_>>())
    };
    let unmet = || vec![msg(&[get(&[("content-length", "5")])]), msg(&[data(b"")]), End];
    let head = || get(&[]);
    let rows: Vec<(&str, Vec<Act>, Outcome)> = vec![
        ("static entry 99", vec![msg(&[fields(&[0xff, 36])])], Closes(Code::QPACK_DECOMPRESSION_FAILED)),
        ("dynamic entry 0", vec![msg(&[fields(&[0x80])])], Closes(Code::QPACK_DECOMPRESSION_FAILED)),
        ("post-base entry", vec![msg(&[fields(&[0x10])])], Closes(Code::QPACK_DECOMPRESSION_FAILED)),
        ("no :method", vec![msg(&[without(":method")])], malformed()),
        ("no :scheme", vec![msg(&[without(":scheme")])], malformed()),
        ("no :authority", vec![msg(&[without(":authority")])], malformed()),
        ("no :path", vec![msg(&[without(":path")])], malformed()),
        ("unknown pseudo-header", vec![msg(&[get(&[(":foo", "bar")])])], malformed()),
        ("a response's pseudo-header", vec![msg(&[get(&[(":status", "200")])])], malformed()),
        ("keep-alive", vec![msg(&[get(&[("keep-alive", "timeout=5")])])], malformed()),
        ("proxy-connection", vec![msg(&[get(&[("proxy-connection", "keep-alive")])])], malformed()),
        ("transfer-encoding", vec![msg(&[get(&[("transfer-encoding", "chunked")])])], malformed()),
        ("upgrade", vec![msg(&[get(&[("upgrade", "websocket")])])], malformed()),
        ("te: gzip", vec![msg(&[get(&[("te", "gzip")])])], malformed()),
        ("te: trailers", vec![msg(&[get(&[("te", "trailers")])]), End], Fine),
        ("connection among trailers", vec![msg(&[head(), headers(&[("connection", "close")])])], malformed()),
        ("length not kept", unmet(), malformed()),
        (
            "PUSH_PROMISE behind a body",
            vec![msg(&[head(), data(b"x"), frame(5, &[0])])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (
            "GOAWAY behind a body",
            vec![msg(&[head(), data(b"x"), frame(7, &[0])])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (
            "MAX_PUSH_ID behind trailers",
            vec![msg(&[head(), headers(&[]), frame(13, &[0])])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (
            "HTTP/2 PRIORITY on a request",
            vec![msg(&[frame(2, &[0]), head()])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (
            "HTTP/2 WINDOW_UPDATE on a request",
            vec![msg(&[head(), frame(8, &[0])])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        (
            "HTTP/2 CONTINUATION on a request",
            vec![msg(&[head(), frame(9, &[0])])],
            Closes(Code::H3_FRAME_UNEXPECTED),
        ),
        ("PRIORITY_UPDATE on a request", vec![msg(&[head(), frame(0xf_0700, b"\0u=1")]), End], Fine),
        (
            "a request of an unknown frame and an end",
            vec![msg(&[frame(0xf_0700, b"")]), End],
            Resets(Code::H3_REQUEST_INCOMPLETE),
        ),
    ];
    for (name, acts, expected) in rows {
        check(Side::Server, &plain(), name, &acts, &expected);
    }
}

#[test]
fn nothing_is_done_after_the_connection_failed() {
    let world = World::new(1 << 20, usize::MAX);
    let mut server = Peer::new(Side::Server, &world, Config::default());
    let mut io = world.end(Side::Client);
    let streams = super::memory::ids(&mut io, Direction::Bidirectional, 2);
    io.put(streams[0], &data(b"x"));
    io.put(streams[1], &get(&[]));
    server.pump();
    assert_eq!(world.closed(), Some((Side::Server, 0x105)));
    let events = server.events();
    assert!(matches!(&events[..], [Event::Closed { error }] if error.code == ErrorCode::H3_FRAME_UNEXPECTED));
    memory::deliver(&mut server.connection, &mut server.io, Notice::Readable(streams[1]));
    assert!(server.events().is_empty());
    assert_eq!(server.connection.read_body(&mut server.io, streams[1], 1), Err(ReadError::Closed));
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(get(&[])),
        Just(get(&[("content-length", "3")])),
        Just(data(b"abc")),
        Just(headers(&[("a", "b")])),
        Just(settings()),
        Just(vec![0x21, 3]),
        prop::collection::vec(any::<u8>(), 0..12),
    ]
}

proptest! {
    /// Whatever comes, and however it is cut up, the outcome is the same.
    #[test]
    fn cutting_changes_nothing(
        uni in prop::collection::vec(any::<u8>(), 0..40),
        message in prop::collection::vec(piece(), 0..6),
        end in any::<bool>(),
        chunk in 1_usize..9,
        side in prop_oneof![Just(Side::Client), Just(Side::Server)],
    ) {
        // One stream at a time: which of two errors is found first may depend on the cuts.
        let mut acts = vec![msg(&message)];
        if end {
            acts.push(End);
        }
        let whole = attack(side, &plain(), &acts, usize::MAX, false);
        prop_assert_eq!(&attack(side, &plain(), &acts, chunk, true), &whole);
        let acts = [Uni(join(&[control(), uni.clone()])), Uni(Bytes::from(uni))];
        let whole = attack(side, &plain(), &acts, usize::MAX, true);
        prop_assert_eq!(attack(side, &plain(), &acts, chunk, true), whole);
    }
}
