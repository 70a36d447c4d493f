//! Payloads full of one kind of frame, each permitted alone (RFC 9000, section 19; draft-ietf-quic-ack-frequency).

use crate::heard;
use godwit_wire::frame::Frame;
use godwit_wire::{ConnectionId, Direction, NoRoom, ResetToken, Side, StreamId, Writer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Writes the frame of a number.
type Write = fn(u64, &mut Writer<'_>) -> Result<(), NoRoom>;

/// What is said as it should be before the lies begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// The control stream, and no more.
    Settings,
    /// A request for the big file, whose answer goes on meanwhile, and is read.
    Download,
    /// The same by a client that gives little room at first ([`LITTLE_ROOM`]).
    Trickle,
}

/// Bidirectional streams from the second on that carry nothing else: frames may name them.
pub(crate) const FREE: u64 = 80;

/// Bytes that a client of [`Before::Trickle`] gives room for at first, on each stream and in all.
pub(crate) const LITTLE_ROOM: u64 = 4096;

/// A flood of frames.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) before: Before,
    write: Write,
}

const fn kind(name: &'static str, write: Write) -> Kind {
    Kind { name, before: Before::Settings, write }
}

pub(crate) const KINDS: [Kind; 17] = [
    kind("pings", |_, writer| Frame::Ping.encode(writer)),
    kind("path-challenges", |number, writer| {
        Frame::PathChallenge { data: number.to_be_bytes() }.encode(writer)
    }),
    kind("new-connection-ids", new_connection_id),
    kind("retired-connection-ids", retire),
    kind("crypto", |number, writer| Frame::Crypto { offset: 1000 + number * 2, data: b"x" }.encode(writer)),
    kind("acknowledgements", |_, writer| Frame::encode_ack(writer, 0, [2..=2, 0..=0].into_iter(), None)),
    Kind { name: "ack-ranges", before: Before::Download, write: ack_ranges },
    kind("ack-frequency", |number, writer| {
        let (threshold, reordering) = (number % 3, number % 2);
        let max_ack_delay = 25_000 + number % 7 * 1000;
        Frame::AckFrequency { sequence: number, threshold, max_ack_delay, reordering }.encode(writer)
    }),
    kind("immediate-acks", |_, writer| Frame::ImmediateAck.encode(writer)),
    kind("single-bytes", |number, writer| {
        let (id, offset) = (request(1 + number / 1000 % FREE), 1 + number % 1000 * 2);
        Frame::Stream { id, offset, data: b"x", fin: false }.encode(writer)
    }),
    kind("gaps", |number, writer| {
        let (at, offset) = (number % 200, 1 + number / 200 * 2);
        let direction = if at < 100 { Direction::Bidirectional } else { Direction::Unidirectional };
        // The first of them has the settings on it.
        let id = StreamId::new(Side::Client, direction, (at % 100).max(1));
        Frame::Stream { id, offset, data: b"x", fin: false }.encode(writer)
    }),
    kind("empty-frames", |_, writer| {
        Frame::Stream { id: request(1), offset: 0, data: b"", fin: false }.encode(writer)
    }),
    kind("windows", |_, writer| Frame::MaxData { limit: 1 }.encode(writer)),
    Kind { name: "window-bytes", before: Before::Trickle, write: window_byte },
    kind("resets", |number, writer| {
        Frame::ResetStream { id: request(1 + number % FREE), code: 0x10c, final_size: 0 }.encode(writer)
    }),
    kind("stops", |number, writer| {
        Frame::StopSending { id: request(1 + number % FREE), code: 0x10c }.encode(writer)
    }),
    kind("blocked", |number, writer| Frame::DataBlocked { limit: number }.encode(writer)),
];

fn request(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

/// One of those that the server has issued in each packet, but for the first, which is in use: whenever it has given
/// another, that one is retired too.
fn retire(number: u64, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    if !writer.is_empty() {
        return Err(NoRoom);
    }
    Frame::RetireConnectionId { sequence: 1 + number / 2 }.encode(writer)
}

fn new_connection_id(number: u64, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let sequence = 10 + number;
    let cid = ConnectionId::new(&sequence.to_be_bytes()).unwrap_or_default();
    let mut token = [0; 16];
    token[..8].copy_from_slice(&sequence.to_be_bytes());
    let reset_token = ResetToken(token);
    Frame::NewConnectionId { sequence, retire_prior_to: sequence, cid, reset_token }.encode(writer)
}

/// Every second packet that came, one range for each: true as far as it goes, and all that the server hears.
fn ack_ranges(_: u64, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    if !writer.is_empty() {
        return Err(NoRoom);
    }
    Frame::encode_ack(writer, 0, heard::every_second().into_iter(), None)
}

/// Everything that came is acknowledged, so that the server has no reason to wait but the room that it is given, a byte
/// more with each frame.
fn window_byte(number: u64, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    if writer.is_empty() {
        return Frame::encode_ack(writer, 0, heard::all().into_iter(), None);
    }
    let limit = LITTLE_ROOM + number / 2;
    if number.is_multiple_of(2) {
        Frame::MaxData { limit }.encode(writer)
    } else {
        Frame::MaxStreamData { id: request(0), limit }.encode(writer)
    }
}

/// Whether packets are changed.
static LYING: AtomicBool = AtomicBool::new(false);

/// Numbers frames, for one connection at a time.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Counts packets, of which one in ten is not changed, so that connections live.
static PACKETS: AtomicU64 = AtomicU64::new(0);

/// Packets that were changed.
static CHANGED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn changed() -> u64 {
    CHANGED.load(Ordering::Relaxed)
}

/// The next connection begins as it should; its frames begin with number 0.
pub(crate) fn restart() {
    LYING.store(false, Ordering::Relaxed);
    NUMBER.store(0, Ordering::Relaxed);
    heard::forget();
}

/// From here on packets say what the flood is for.
pub(crate) fn lie() {
    LYING.store(true, Ordering::Relaxed);
}

/// Changes the payload of a packet with this header.
pub(crate) fn change(kind: &Kind, header: &[u8], payload: &mut [u8]) {
    let short = header.first().is_some_and(|first| first & 0x80 == 0);
    if !short || !LYING.load(Ordering::Relaxed) {
        return;
    }
    // Where acknowledgements are what is lied about, honest ones would undo it.
    let honest = PACKETS.fetch_add(1, Ordering::Relaxed).is_multiple_of(10);
    if !honest || kind.before != Before::Settings {
        fill(kind.write, payload);
        CHANGED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Fills a payload.
fn fill(write: Write, payload: &mut [u8]) {
    payload.fill(0);
    let mut writer = Writer::new(payload);
    loop {
        let used = writer.len();
        if write(NUMBER.fetch_add(1, Ordering::Relaxed), &mut writer).is_err() {
            payload[used..].fill(0);
            return;
        }
    }
}
