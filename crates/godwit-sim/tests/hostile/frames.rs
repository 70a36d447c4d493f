//! What a hostile peer says: frames that are mostly well-formed and mostly permitted, so that connections
//! live long enough to be tried, mixed with garbage.

use godwit_base::Rng;
use godwit_wire::frame::{EcnCounts, Frame};
use godwit_wire::{ConnectionId, Direction, ResetToken, Side, StreamId, TransportErrorCode, Writer};

/// Replaces a payload by something else of the same length.
pub(crate) fn corrupt(rng: &mut dyn Rng, payload: &mut [u8]) {
    match rng.below(40) {
        // Single bits and bytes of what was said.
        0 => {
            for _ in 0..=rng.below(3) {
                let at = rng.below(payload.len() as u64) as usize;
                if let Some(byte) = payload.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
        // Noise.
        1 => rng.fill(payload),
        // Frames that are cut off.
        2 => {
            let len = payload.len();
            let mut long = vec![0; len + 64];
            fill(rng, &mut long, true);
            payload.copy_from_slice(&long[..len]);
        }
        // Any frame at all.
        3 => fill(rng, payload, true),
        _ => fill(rng, payload, false),
    }
}

/// Frames until there is no room, then PADDING.
fn fill(rng: &mut dyn Rng, payload: &mut [u8], reckless: bool) {
    payload.fill(0);
    let mut writer = Writer::new(payload);
    let data = [7; 1500];
    for _ in 0..1 + rng.below(6) {
        if write_one(rng, &mut writer, &data, reckless).is_none() {
            break;
        }
    }
    // A frame that did not fit leaves its beginning behind.
    let used = writer.len();
    payload[used..].fill(0);
}

fn write_one(rng: &mut dyn Rng, writer: &mut Writer<'_>, data: &[u8], reckless: bool) -> Option<()> {
    let kinds = if reckless { 26 } else { 14 };
    let id = stream(rng, reckless);
    let offset = number(rng, if reckless { 1 << 62 } else { 60_000 });
    let some = &data[..rng.below(300) as usize];
    let frame = match rng.below(kinds) {
        0 => Frame::Ping,
        1 | 2 => Frame::Stream { id, offset, data: some, fin: rng.below(40) == 0 },
        3 => return acks(rng, writer, reckless),
        4 => Frame::MaxData { limit: number(rng, 1 << 40) },
        5 => Frame::DataBlocked { limit: number(rng, 1 << 40) },
        6 => Frame::MaxStreams { direction: direction(rng), limit: number(rng, 1 << 60) },
        7 => Frame::StreamsBlocked { direction: direction(rng), limit: number(rng, 1 << 60) },
        8 => Frame::PathChallenge { data: rng.next_u64().to_be_bytes() },
        9 => Frame::PathResponse { data: rng.next_u64().to_be_bytes() },
        10 if reckless => new_connection_id(rng),
        10 => Frame::Ping,
        11 => Frame::RetireConnectionId { sequence: if reckless { rng.below(9) } else { 1 + rng.below(3) } },
        12 => Frame::MaxStreamData { id, limit: number(rng, 1 << 40) },
        13 => Frame::StreamDataBlocked { id, limit: number(rng, 1 << 40) },
        14 => Frame::ResetStream { id, code: number(rng, 1 << 62), final_size: number(rng, 1 << 20) },
        15 => Frame::StopSending { id, code: number(rng, 1 << 62) },
        16 => Frame::Crypto { offset: number(rng, 1 << 20), data: some },
        17 => Frame::NewToken { token: &data[..1 + rng.below(100) as usize] },
        18 => Frame::HandshakeDone,
        19 => Frame::Datagram { data: some },
        20 => Frame::ConnectionClose {
            code: TransportErrorCode(number(rng, 1 << 62)),
            frame_type: number(rng, 1 << 62),
            reason: some,
        },
        21 => Frame::ApplicationClose { code: number(rng, 1 << 62), reason: some },
        22 => Frame::Crypto { offset: rng.below(70_000), data: &data[..1] },
        23 | 24 => {
            let (final_size, reliable_size) = (number(rng, 1 << 20), number(rng, 1 << 20));
            Frame::ResetStreamAt { id, code: rng.below(2), final_size, reliable_size }
        }
        _ => return writer.varint(rng.next_u64() >> 2).ok(),
    };
    frame.encode(writer).ok()
}

fn acks(rng: &mut dyn Rng, writer: &mut Writer<'_>, reckless: bool) -> Option<()> {
    let largest = if reckless { number(rng, 1 << 62) } else { rng.below(3) };
    let mut high = largest;
    let mut ranges = vec![];
    for _ in 0..1 + rng.below(4) {
        let low = high.saturating_sub(rng.below(4));
        ranges.push(low..=high);
        match low.checked_sub(2 + rng.below(5)) {
            Some(next) => high = next,
            None => break,
        }
    }
    let ecn = EcnCounts { ect0: rng.below(1000), ect1: 0, ce: rng.below(3) };
    let ecn = Some(ecn).filter(|_| rng.below(3) == 0);
    Frame::encode_ack(writer, number(rng, 1 << 62), ranges.into_iter(), ecn).ok()
}

fn new_connection_id(rng: &mut dyn Rng) -> Frame<'static> {
    let mut cid = [0; 20];
    rng.fill(&mut cid);
    let sequence = number(rng, 1 << 62);
    Frame::NewConnectionId {
        sequence,
        retire_prior_to: rng.below(sequence.saturating_add(1)),
        cid: ConnectionId::new(&cid[..1 + rng.below(20) as usize]).unwrap_or_default(),
        reset_token: ResetToken([9; 16]),
    }
}

fn stream(rng: &mut dyn Rng, reckless: bool) -> StreamId {
    if reckless {
        return StreamId::from_u64(number(rng, 1 << 62));
    }
    let side = if rng.below(2) == 0 { Side::Client } else { Side::Server };
    // The first stream of each side exists; of those not opened yet only the peer's may be named.
    StreamId::new(side, Direction::Bidirectional, 0)
}

fn direction(rng: &mut dyn Rng) -> Direction {
    if rng.below(2) == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
}

/// A number below `bound`, small ones and those next to the bound being likely.
fn number(rng: &mut dyn Rng, bound: u64) -> u64 {
    match rng.below(4) {
        0 => rng.below(bound.min(4)),
        1 => bound.saturating_sub(1 + rng.below(4)),
        _ => rng.below(bound) >> rng.below(50),
    }
}
