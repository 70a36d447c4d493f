//! Other frames in place of those that were meant: some left out, some twice, some changed, some made up.

use crate::said::{Said, some_direction};
use godwit_base::{Rng, SeededRng};
use godwit_wire::codec::VARINT_MAX;
use godwit_wire::frame::{Ack, EcnCounts, Frame, Frames};
use godwit_wire::header::PacketType;
use godwit_wire::{Direction, ResetToken, Side, StreamId, TransportErrorCode, Writer};
use std::ops::RangeInclusive;

/// How far from the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    /// Frames that a peer may send, with numbers near the true ones: the connection lives for long.
    Gentle,
    /// Any frame, with any number, and bytes that are none.
    Reckless,
}

/// How many kinds of frames are made.
pub(crate) const KINDS: usize = 27;
/// Those of the gentle: they come first.
const GENTLE: u64 = 16;

/// What the middle says for one of both.
pub(crate) struct Speaker<'s> {
    pub(crate) sender: Side,
    pub(crate) packet: PacketType,
    pub(crate) rng: &'s mut SeededRng,
    /// What the sender has said.
    pub(crate) said: &'s mut Said,
    /// What the other has.
    pub(crate) heard: &'s Said,
    pub(crate) temper: Temper,
    /// How many of each kind were made.
    pub(crate) made: &'s mut [u64; KINDS],
}

impl Speaker<'_> {
    /// Puts other frames in place of those in `payload`, whose length remains.
    pub(crate) fn rewrite(&mut self, payload: &mut [u8]) {
        let honest = payload.to_vec();
        // Now and then everybody is.
        if self.rng.below(150) == 0 {
            self.temper = Temper::Reckless;
        }
        let reckless = self.temper == Temper::Reckless;
        if reckless && self.rng.below(40) == 0 {
            return self.spoil(payload);
        }
        let mut writer = Writer::new(payload);
        for frame in Frames::new(&honest).map_while(Result::ok) {
            if matches!(frame, Frame::Padding(_)) {
                continue;
            }
            self.said.learn(&frame);
            match self.rng.below(14) {
                0 => {}
                1 => {
                    self.write(&mut writer, frame);
                    self.write(&mut writer, frame);
                }
                2 | 3 => self.write_changed(&mut writer, frame),
                4 | 5 => {
                    self.write_made(&mut writer);
                    self.write(&mut writer, frame);
                }
                _ => self.write(&mut writer, frame),
            }
        }
        for _ in 0..self.rng.below(4) {
            self.write_made(&mut writer);
        }
        let used = writer.len();
        payload[used..].fill(0);
    }

    /// Bits, or everything.
    fn spoil(&mut self, payload: &mut [u8]) {
        if self.rng.below(4) == 0 {
            return self.rng.fill(payload);
        }
        for _ in 0..=self.rng.below(3) {
            let at = self.rng.below(payload.len() as u64) as usize;
            if let Some(byte) = payload.get_mut(at) {
                *byte ^= 1 << self.rng.below(8);
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.said.some_number(self.rng, self.temper == Temper::Reckless)
    }

    fn stream(&mut self) -> StreamId {
        self.said.some_stream(self.rng, self.sender, self.temper == Temper::Reckless)
    }

    /// A stream on which the other sends.
    fn their_stream(&mut self) -> StreamId {
        self.heard.some_stream(self.rng, self.sender.peer(), self.temper == Temper::Reckless)
    }

    fn write_changed(&mut self, writer: &mut Writer<'_>, frame: Frame<'_>) {
        let number = self.number();
        let id = self.stream();
        let first = self.rng.below(2) == 0;
        let changed = match frame {
            Frame::Ack(ack) => return self.write_odd_ack(writer, &ack),
            Frame::Stream { id, data, fin, .. } if first => {
                Frame::Stream { id, offset: number.min(VARINT_MAX - data.len() as u64), data, fin }
            }
            Frame::Stream { offset, data, fin, .. } if self.rng.below(4) == 0 => {
                Frame::Stream { id, offset, data, fin }
            }
            Frame::Stream { id, offset, data, .. } => {
                let fin = self.rng.below(60) == 0;
                let some = self.rng.below(data.len() as u64 + 1) as usize;
                Frame::Stream { id, offset, data: &data[some..], fin }
            }
            Frame::Crypto { data, .. } if first => {
                Frame::Crypto { offset: number.min(VARINT_MAX - data.len() as u64), data }
            }
            Frame::Crypto { offset, data } => {
                let some = self.rng.below(data.len() as u64 + 1) as usize;
                Frame::Crypto { offset: offset + some as u64, data: &data[some..] }
            }
            Frame::NewConnectionId { sequence, cid, reset_token, .. } if first => {
                let retire_prior_to = self.rng.below(sequence + 1);
                Frame::NewConnectionId { sequence, retire_prior_to, cid, reset_token }
            }
            Frame::NewConnectionId { retire_prior_to, cid, reset_token, .. } => {
                let sequence = number.max(retire_prior_to);
                Frame::NewConnectionId { sequence, retire_prior_to, cid, reset_token }
            }
            Frame::MaxStreamData { limit, .. } => Frame::MaxStreamData { id: self.their_stream(), limit },
            Frame::ResetStream { id, code, .. } => Frame::ResetStream { id, code, final_size: number },
            Frame::Datagram { data } => Frame::Datagram { data: &data[data.len() / 2..] },
            _ => return self.write_made(writer),
        };
        self.write(writer, changed);
    }

    /// A frame of any kind.
    fn write_made(&mut self, writer: &mut Writer<'_>) {
        let reckless = self.temper == Temper::Reckless;
        let kind = self.rng.below(if reckless { KINDS as u64 } else { GENTLE });
        self.made[kind as usize] += 1;
        let id = self.stream();
        let their_id = self.their_stream();
        let (limit, other) = (self.number(), self.number());
        let direction = some_direction(self.rng);
        let data = &[7; 1200][..self.rng.below(400) as usize];
        let frame = match kind {
            0 => Frame::Ping,
            1 => Frame::ImmediateAck,
            2 => self.ack_frequency(),
            3 => Frame::PathChallenge { data: self.said.some_challenge(self.rng) },
            4 => Frame::PathResponse { data: self.said.some_challenge(self.rng) },
            5 => Frame::Datagram { data },
            6 => Frame::MaxData { limit },
            7 => Frame::DataBlocked { limit },
            8 => Frame::MaxStreams { direction, limit: limit.min(1 << 60) },
            9 => Frame::StreamsBlocked { direction, limit: limit.min(1 << 60) },
            10 => Frame::StreamDataBlocked { id, limit },
            11 => Frame::MaxStreamData { id: their_id, limit },
            12 => self.new_connection_id(),
            13 => Frame::RetireConnectionId { sequence: self.rng.below(6) },
            14 => {
                let offset = limit.min(VARINT_MAX - data.len() as u64);
                Frame::Stream { id, offset, data, fin: self.rng.below(60) == 0 }
            }
            15 => Frame::NewToken { token: &[5; 300][..1 + self.rng.below(299) as usize] },
            16 => Frame::ResetStream { id, code: other, final_size: limit },
            17 => {
                let (reliable_size, final_size) = (limit.min(other), limit.max(other));
                Frame::ResetStreamAt { id, code: self.rng.below(2), final_size, reliable_size }
            }
            18 => Frame::StopSending { id: their_id, code: other },
            19 => Frame::Crypto { offset: limit.min(VARINT_MAX - data.len() as u64), data },
            20 => Frame::HandshakeDone,
            21 => Frame::ConnectionClose { code: TransportErrorCode(other), frame_type: limit, reason: data },
            22 => Frame::ApplicationClose { code: other, reason: data },
            23 => return self.write_made_ack(writer),
            25 => Frame::Timestamp { micros: other },
            24 => Frame::Crypto { offset: self.rng.below(70_000), data: &data[..data.len().min(1)] },
            _ => {
                // A type that is none, most often.
                let _ = writer.varint(other);
                return;
            }
        };
        self.write(writer, frame);
    }

    fn ack_frequency(&mut self) -> Frame<'static> {
        let number = self.number();
        let [threshold, mut max_ack_delay, reordering] = [(); 3].map(|()| match self.rng.below(4) {
            0 => self.rng.below(4),
            1 => self.rng.below(300),
            2 => self.rng.below(1 << 24),
            _ => self.said.some_number(self.rng, true),
        });
        if self.temper == Temper::Gentle {
            max_ack_delay = 1_000 + self.rng.below((1 << 24) - 1_000);
        }
        let sequence = if self.rng.below(2) == 0 { self.rng.below(50) } else { number };
        Frame::AckFrequency { sequence, threshold, max_ack_delay, reordering }
    }

    fn new_connection_id(&mut self) -> Frame<'static> {
        let sequence = if self.temper == Temper::Gentle { self.rng.below(12) } else { self.number() };
        let mut token = [0; 16];
        self.rng.fill(&mut token);
        Frame::NewConnectionId {
            sequence,
            retire_prior_to: sequence.saturating_sub(self.rng.below(5)),
            cid: self.said.some_cid(self.rng),
            reset_token: ResetToken(token),
        }
    }

    /// Packets acknowledged that were, but in other pieces; and by the reckless some that were not.
    fn write_odd_ack(&mut self, writer: &mut Writer<'_>, ack: &Ack<'_>) {
        let mut ranges: Vec<RangeInclusive<u64>> = ack.ranges.into_iter().collect();
        let reckless = self.temper == Temper::Reckless;
        let mut delay = ack.delay;
        match self.rng.below(if reckless { 7 } else { 4 }) {
            0 => {
                ranges = ranges
                    .iter()
                    .flat_map(|range| range.clone().rev().step_by(2).take(80))
                    .map(|number| number..=number)
                    .take(400)
                    .collect();
            }
            1 => drop(ranges.remove(0)),
            2 => delay = self.number(),
            3 => ranges = vec![*ranges[ranges.len() - 1].start()..=*ranges[ranges.len() - 1].start()],
            4 => ranges.insert(0, ack.largest + 2..=ack.largest + 2 + self.rng.below(3)),
            5 => ranges = vec![0..=ack.largest + self.rng.below(3)],
            _ => ranges = vec![*ranges[0].start()..=ack.largest + self.rng.below(3)],
        }
        let some = |rng: &mut SeededRng| rng.next_u64() >> (2 + rng.below(62));
        let ecn = match self.rng.below(6) {
            0 => None,
            1 => Some([(); 3].map(|()| some(self.rng))),
            _ => ack.ecn.map(|ecn| [ecn.ect0, ecn.ect1, ecn.ce]),
        };
        let ecn = ecn.map(|[ect0, ect1, ce]| EcnCounts { ect0, ect1, ce });
        let _ = Frame::encode_ack(writer, delay, ranges.into_iter(), ecn);
    }

    fn write_made_ack(&mut self, writer: &mut Writer<'_>) {
        let (mut high, mut ranges) = (self.number(), vec![]);
        for _ in 0..1 + self.rng.below(60) {
            let low = high.saturating_sub(self.rng.below(4));
            ranges.push(low..=high);
            let Some(next) = low.checked_sub(2 + self.rng.below(5)) else { break };
            high = next;
        }
        let _ = Frame::encode_ack(writer, self.number(), ranges.into_iter(), None);
    }

    /// Writes a frame, or as much of its data as there is room for, or nothing. The gentle write what the packet may
    /// carry.
    fn write(&mut self, writer: &mut Writer<'_>, mut frame: Frame<'_>) {
        if self.temper == Temper::Gentle && !self.may_say(&frame) {
            return;
        }
        while frame.encode(writer).is_err() {
            let (Frame::Stream { data, .. } | Frame::Crypto { data, .. } | Frame::Datagram { data }) =
                &mut frame
            else {
                return;
            };
            if data.is_empty() {
                return;
            }
            *data = &data[..data.len() / 2];
        }
    }

    fn may_say(&mut self, frame: &Frame<'_>) -> bool {
        let own = |id: StreamId| id.direction() == Direction::Bidirectional || id.initiator() == self.sender;
        frame.permitted_in(self.packet)
            && match *frame {
                Frame::NewToken { .. } => self.sender == Side::Server,
                Frame::Stream { id, .. } | Frame::StreamDataBlocked { id, .. } => own(id),
                Frame::MaxStreamData { id, .. } => self.heard.knows(id),
                // These are most often wrong.
                Frame::RetireConnectionId { .. } | Frame::NewConnectionId { .. } => self.rng.below(6) == 0,
                _ => true,
            }
    }
}
