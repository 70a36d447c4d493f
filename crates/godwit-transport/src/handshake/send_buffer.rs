//! CRYPTO data to send: kept until it is acknowledged, sent again when it is lost.

use super::{CryptoToken, Level};
use crate::packet::PacketBuilder;
use godwit_base::IntervalSet;
use godwit_wire::varint_len;

/// The type of a CRYPTO frame (RFC 9000 section 19.6).
const CRYPTO: u64 = 0x06;

/// The sending half of one CRYPTO stream.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    /// The bytes from `base` on.
    data: Vec<u8>,
    /// Everything before this has been acknowledged.
    base: u64,
    /// Everything from here on has not been sent.
    unsent: u64,
    lost: IntervalSet,
    acked: IntervalSet,
}

impl SendBuffer {
    /// The first byte is at this offset.
    pub(super) const fn beginning_at(offset: u64) -> Self {
        SendBuffer {
            data: Vec::new(),
            base: offset,
            unsent: offset,
            lost: IntervalSet::new(),
            acked: IntervalSet::new(),
        }
    }

    /// Where new data is appended.
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.data
    }

    /// True if there is data to send or to send again.
    pub(super) fn wants_to_send(&self) -> bool {
        self.unsent < self.end() || !self.lost.is_empty()
    }

    /// True if nothing has been sent, and all of it is no more than `most` bytes.
    pub(super) fn is_unsent_within(&self, most: u64) -> bool {
        self.unsent == 0 && self.wants_to_send() && self.end() <= most
    }

    /// Bytes sent for the first time.
    #[inline]
    pub(super) const fn sent(&self) -> u64 {
        self.unsent
    }

    /// True if everything has arrived.
    pub(super) fn is_acked(&self) -> bool {
        self.data.is_empty()
    }

    /// Writes CRYPTO frames until there is nothing to send or no room. Lost data goes first.
    pub(super) fn write<T: From<CryptoToken>>(&mut self, level: Level, packet: &mut PacketBuilder<'_, T>) {
        while let Some((offset, waiting)) = self.next() {
            let Some(len) = data_room(offset, waiting, packet.writer().remaining()) else { return };
            let Some(data) = self.get(offset, len) else { return };
            let writer = packet.writer();
            let before = writer.len();
            let written = writer
                .varint(CRYPTO)
                .and_then(|()| writer.varint(offset))
                .and_then(|()| writer.prefixed(data));
            if written.is_err() {
                writer.truncate(before);
                return;
            }
            let end = offset.saturating_add(len as u64);
            self.lost.remove(offset..end);
            self.unsent = self.unsent.max(end);
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            packet.carries(CryptoToken { level, offset, len });
        }
    }

    /// A packet with these bytes has been acknowledged.
    pub(super) fn on_acked(&mut self, offset: u64, len: u32) {
        let end = offset.saturating_add(u64::from(len)).min(self.unsent);
        let start = offset.max(self.base);
        self.acked.insert(start..end);
        self.lost.remove(start..end);
        let Some(front) = self.acked.first().filter(|front| front.start == self.base) else { return };
        self.acked.pop_first();
        let gone = usize::try_from(front.end.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.base = front.end;
        if gone >= self.data.len() {
            self.data = Vec::new();
        } else {
            self.data.drain(..gone);
        }
    }

    /// A packet with these bytes has been lost, or they are to be sent again as a probe.
    pub(super) fn on_lost(&mut self, offset: u64, len: u32) {
        let end = offset.saturating_add(u64::from(len)).min(self.unsent);
        let lost = offset.max(self.base)..end;
        self.lost.insert(lost.clone());
        for acked in self.acked.iter().filter(|acked| acked.start < lost.end && lost.start < acked.end) {
            self.lost.remove(acked);
        }
    }

    /// The next bytes to send: offset and how many.
    fn next(&self) -> Option<(u64, u64)> {
        if let Some(lost) = self.lost.first() {
            return Some((lost.start, lost.end.saturating_sub(lost.start)));
        }
        let waiting = self.end().saturating_sub(self.unsent);
        (waiting > 0).then_some((self.unsent, waiting))
    }

    fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.base)?).ok()?;
        self.data.get(start..start.checked_add(len)?)
    }

    fn end(&self) -> u64 {
        self.base.saturating_add(self.data.len() as u64)
    }
}

/// Bytes of data that fit into `room` with the frame's header, at most `waiting`; `None` if not one does.
fn data_room(offset: u64, waiting: u64, room: usize) -> Option<usize> {
    let after_offset = room.checked_sub(1)?.checked_sub(varint_len(offset))?;
    let most = after_offset.min(usize::try_from(waiting).unwrap_or(usize::MAX));
    let len = after_offset.checked_sub(varint_len(most as u64))?.min(most);
    (len > 0).then_some(len)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use crate::packet::testing::payload;
    use godwit_wire::Reader;
    use proptest::prelude::*;

    fn frames(mut reader: Reader<'_>) -> Vec<(u64, Vec<u8>)> {
        let mut frames = Vec::new();
        while !reader.is_empty() {
            assert_eq!(reader.varint(), Ok(CRYPTO));
            frames.push((reader.varint().unwrap(), reader.prefixed().unwrap().to_vec()));
        }
        frames
    }

    proptest! {
        #[test]
        fn all_data_arrives_over_a_lossy_pipe(
            len in 1usize..5000, rooms in prop::collection::vec((0usize..1200, 0u8..4), 1..40),
        ) {
            let stream: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let (mut buffer, mut arrived) = (SendBuffer::beginning_at(0), vec![None; len]);
            buffer.tail().extend_from_slice(&stream);
            let mut rooms = rooms.into_iter().chain(std::iter::repeat((1200, 3)));
            let mut rounds = 0;
            while buffer.wants_to_send() {
                let (room, fate) = rooms.next().unwrap();
                let (written, tokens, ()) = payload::<CryptoToken, _>(room, |packet| buffer.write(Level::OneRtt, packet));
                let sent = frames(Reader::new(&written));
                prop_assert_eq!(sent.len(), tokens.len());
                for ((offset, data), token) in sent.into_iter().zip(tokens) {
                    prop_assert_eq!(token, CryptoToken { level: Level::OneRtt, offset, len: data.len() as u32 });
                    let at = offset as usize;
                    prop_assert_eq!(&data[..], &stream[at..at + data.len()]);
                    if fate != 0 {
                        arrived[at..at + data.len()].fill(Some(()));
                        buffer.on_acked(offset, data.len() as u32);
                    }
                    if fate <= 1 {
                        // Lost, or believed lost although it arrived.
                        buffer.on_lost(offset, data.len() as u32);
                    }
                }
                rounds += 1;
                prop_assert!(rounds < 200, "it comes to an end");
            }
            prop_assert!(arrived.iter().all(Option::is_some));
            prop_assert_eq!(buffer.data.capacity(), 0, "nothing is kept");
        }

        #[test]
        fn the_room_is_used_but_not_exceeded(offset in 0u64..1 << 40, waiting in 1u64..100_000, room in 0usize..70_000) {
            if let Some(len) = data_room(offset, waiting, room) {
                let size = |len: usize| 1 + varint_len(offset) + varint_len(len as u64) + len;
                prop_assert!(size(len) <= room && len as u64 <= waiting);
                prop_assert!(len as u64 == waiting || size(len) + 2 >= room, "at most a length byte or two are lost");
            }
        }
    }

    #[test]
    fn a_little_room_is_left_alone() {
        let mut buffer = SendBuffer::beginning_at(0);
        buffer.tail().extend_from_slice(b"hello");
        let (written, tokens, ()) =
            payload::<CryptoToken, _>(3, |packet| buffer.write(Level::OneRtt, packet));
        assert!(written.is_empty() && tokens.is_empty() && buffer.wants_to_send());
    }
}
