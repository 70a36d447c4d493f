//! Payloads full of one kind of frame, each permitted alone (RFC 9000, section 19).

use godwit_wire::frame::Frame;
use godwit_wire::{ConnectionId, Direction, NoRoom, ResetToken, Side, StreamId, Writer};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the frame of a number.
type Write = fn(u64, &mut Writer<'_>) -> Result<(), NoRoom>;

pub(crate) const KINDS: [(&str, Write); 11] = [
    ("pings", |_, writer| Frame::Ping.encode(writer)),
    ("path-challenges", |number, writer| Frame::PathChallenge { data: number.to_be_bytes() }.encode(writer)),
    ("new-connection-ids", new_connection_id),
    ("retired-connection-ids", |number, writer| {
        Frame::RetireConnectionId { sequence: 1 + number }.encode(writer)
    }),
    ("crypto", |number, writer| {
        Frame::Crypto { offset: 10_000 + number % 20_000 * 2, data: b"x" }.encode(writer)
    }),
    ("acknowledgements", |_, writer| Frame::encode_ack(writer, 0, [2..=2, 0..=0].into_iter(), None)),
    ("single-bytes", |number, writer| {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, 1 + number / 1000 % 80);
        Frame::Stream { id, offset: 1 + number % 1000 * 2, data: b"x", fin: false }.encode(writer)
    }),
    ("empty-frames", |_, writer| {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, 1);
        Frame::Stream { id, offset: 0, data: b"", fin: false }.encode(writer)
    }),
    ("windows", |_, writer| Frame::MaxData { limit: 1 }.encode(writer)),
    ("resets", |number, writer| {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, number);
        Frame::ResetStream { id, code: 0x10c, final_size: 0 }.encode(writer)
    }),
    ("blocked", |number, writer| Frame::DataBlocked { limit: number }.encode(writer)),
];

fn new_connection_id(number: u64, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let sequence = 10 + number;
    let cid = ConnectionId::new(&sequence.to_be_bytes()).unwrap_or_default();
    let mut token = [0; 16];
    token[..8].copy_from_slice(&sequence.to_be_bytes());
    let reset_token = ResetToken(token);
    Frame::NewConnectionId { sequence, retire_prior_to: sequence, cid, reset_token }.encode(writer)
}

/// Numbers frames. A connection that is closed for them begins anew, with numbers that go on from [`restart`].
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The next connection's frames begin with number 0.
pub(crate) fn restart() {
    NUMBER.store(0, Ordering::Relaxed);
}

/// Fills a payload.
pub(crate) fn fill(write: Write, payload: &mut [u8]) {
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
