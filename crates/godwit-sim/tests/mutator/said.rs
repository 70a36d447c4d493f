//! What has been said on a connection, so that lies are close to the truth: next to a limit, on a stream that exists, at
//! the end of what has come.

use godwit_base::{Rng, SeededRng};
use godwit_wire::codec::VARINT_MAX;
use godwit_wire::frame::Frame;
use godwit_wire::{ConnectionId, Direction, Side, StreamId};

/// Numbers and ids of the latest frames.
#[derive(Debug, Default)]
pub(crate) struct Said {
    numbers: Vec<u64>,
    streams: Vec<StreamId>,
    cids: Vec<ConnectionId>,
    challenges: Vec<[u8; 8]>,
    /// How much was said.
    times: usize,
}

impl Said {
    /// How much of each is remembered.
    const KEPT: usize = 48;

    pub(crate) fn learn(&mut self, frame: &Frame<'_>) {
        match *frame {
            Frame::Ack(ack) => self.number(ack.largest),
            Frame::Stream { id, offset, data, .. } => {
                self.stream(id);
                self.number(offset + data.len() as u64);
            }
            Frame::Crypto { offset, data } => self.number(offset + data.len() as u64),
            Frame::MaxStreamData { id, limit } | Frame::StreamDataBlocked { id, limit } => {
                self.stream(id);
                self.number(limit);
            }
            Frame::MaxData { limit }
            | Frame::DataBlocked { limit }
            | Frame::MaxStreams { limit, .. }
            | Frame::StreamsBlocked { limit, .. } => self.number(limit),
            Frame::ResetStream { id, final_size, .. } | Frame::ResetStreamAt { id, final_size, .. } => {
                self.stream(id);
                self.number(final_size);
            }
            Frame::StopSending { id, .. } => self.stream(id),
            Frame::NewConnectionId { sequence, cid, .. } => {
                self.number(sequence);
                keep(&mut self.cids, self.times, cid);
            }
            Frame::RetireConnectionId { sequence } | Frame::AckFrequency { sequence, .. } => {
                self.number(sequence);
            }
            Frame::PathChallenge { data } | Frame::PathResponse { data } => {
                keep(&mut self.challenges, self.times, data);
            }
            _ => {}
        }
    }

    fn number(&mut self, number: u64) {
        self.times += 1;
        keep(&mut self.numbers, self.times, number);
    }

    fn stream(&mut self, id: StreamId) {
        self.times += 1;
        keep(&mut self.streams, self.times, id);
    }

    /// A number: most often one that was said, or next to one.
    pub(crate) fn some_number(&self, rng: &mut SeededRng, anything: bool) -> u64 {
        let known = pick(&self.numbers, rng).unwrap_or(0);
        match rng.below(if anything { 12 } else { 8 }) {
            0 => rng.below(4),
            1 => known,
            2 => known.saturating_add(1),
            3 => known.saturating_sub(1),
            4 | 5 => known.saturating_add(rng.below(3000)),
            6 => known.saturating_sub(rng.below(3000)),
            7 => known.saturating_mul(2),
            8 => VARINT_MAX - rng.below(3),
            9 => 1 << rng.below(62),
            10 => (1 << 60) + rng.below(3),
            _ => rng.next_u64() >> rng.below(64),
        }
        .min(VARINT_MAX)
    }

    /// A stream: most often one that exists, or the next that `sender` may open.
    pub(crate) fn some_stream(&self, rng: &mut SeededRng, sender: Side, anything: bool) -> StreamId {
        let known = pick(&self.streams, rng);
        let own = StreamId::new(sender, some_direction(rng), rng.below(3));
        match rng.below(if anything { 8 } else { 40 }) {
            0 | 1 => own,
            2 if anything => StreamId::from_u64(self.some_number(rng, true)),
            3 if anything => StreamId::new(sender.peer(), own.direction(), own.index()),
            _ => known.unwrap_or(own),
        }
    }

    /// Whether the sender has used a stream of late.
    pub(crate) fn knows(&self, id: StreamId) -> bool {
        self.streams.contains(&id)
    }

    pub(crate) fn some_cid(&self, rng: &mut SeededRng) -> ConnectionId {
        let mut bytes = [0; 20];
        rng.fill(&mut bytes);
        let made = ConnectionId::new(&bytes[..1 + rng.below(20) as usize]).unwrap();
        match rng.below(3) {
            0 => pick(&self.cids, rng).unwrap_or(made),
            _ => made,
        }
    }

    pub(crate) fn some_challenge(&self, rng: &mut SeededRng) -> [u8; 8] {
        let made = rng.next_u64().to_be_bytes();
        if rng.below(2) == 0 { made } else { pick(&self.challenges, rng).unwrap_or(made) }
    }
}

pub(crate) fn some_direction(rng: &mut SeededRng) -> Direction {
    if rng.below(2) == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
}

fn keep<T>(kept: &mut Vec<T>, times: usize, new: T) {
    if kept.len() < Said::KEPT {
        kept.push(new);
    } else {
        kept[times % Said::KEPT] = new;
    }
}

fn pick<T: Copy>(kept: &[T], rng: &mut SeededRng) -> Option<T> {
    kept.get(rng.below(kept.len() as u64) as usize).copied()
}
