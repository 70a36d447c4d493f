//! Packet number truncation and recovery (RFC 9000 section 17.1 and appendix A).

use crate::codec::{Malformed, NoRoom, Reader, Writer};

/// A packet number cut to its lowest 1 to 4 bytes, as it stands in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedPacketNumber {
    len: u8,
    value: u32,
}

impl TruncatedPacketNumber {
    /// Cuts `full` to the fewest bytes from which a receiver that has acknowledged `largest_acked` can
    /// recover it (RFC 9000 appendix A.2).
    pub fn new(full: u64, largest_acked: Option<u64>) -> Self {
        let unacked = match largest_acked {
            Some(acked) => full.saturating_sub(acked),
            None => full.saturating_add(1),
        };
        let len = match unacked {
            0..=0x7f => 1,
            0x80..=0x7fff => 2,
            0x8000..=0x7f_ffff => 3,
            _ => 4,
        };
        TruncatedPacketNumber { len, value: full as u32 & mask(len) as u32 }
    }

    /// Cuts `full` to the most bytes there may be, from which it is recovered however late it comes.
    pub const fn longest(full: u64) -> Self {
        TruncatedPacketNumber { len: 4, value: full as u32 }
    }

    /// Reads one of `len` bytes (1 to 4).
    pub fn decode(reader: &mut Reader<'_>, len: usize) -> Result<Self, Malformed> {
        let bytes = reader.bytes(len)?;
        let value = bytes.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        match len {
            1..=4 => Ok(TruncatedPacketNumber { len: len as u8, value }),
            _ => Err(Malformed),
        }
    }

    /// Writes it.
    pub fn encode(self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let bytes = self.value.to_be_bytes();
        let (_, tail) = bytes.split_at(4_usize.saturating_sub(self.len()));
        writer.bytes(tail)
    }

    /// Its length in bytes, 1 to 4.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// The full packet number nearest to `expected`, which is one more than the largest received
    /// (RFC 9000 appendix A.3).
    pub fn expand(self, expected: u64) -> u64 {
        let mask = mask(self.len);
        let window = mask.saturating_add(1);
        let half = window / 2;
        let candidate = expected & !mask | u64::from(self.value);
        if candidate.saturating_add(half) <= expected && candidate < (1_u64 << 62).saturating_sub(window) {
            candidate.saturating_add(window)
        } else if candidate > expected.saturating_add(half) && candidate >= window {
            candidate.saturating_sub(window)
        } else {
            candidate
        }
    }
}

const fn mask(len: u8) -> u64 {
    match len {
        1 => 0xff,
        2 => 0xffff,
        3 => 0xff_ffff,
        _ => 0xffff_ffff,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::*;
    use proptest::prelude::*;

    fn bytes_of(number: TruncatedPacketNumber) -> Vec<u8> {
        let mut buffer = [0; 4];
        let mut writer = Writer::new(&mut buffer);
        number.encode(&mut writer).unwrap();
        writer.written().to_vec()
    }

    /// RFC 9000 appendix A.2.
    #[test]
    fn truncation_of_the_appendix() {
        let acked = Some(0xab_e8b3);
        assert_eq!(bytes_of(TruncatedPacketNumber::new(0xac_5c02, acked)), [0x5c, 0x02]);
        assert_eq!(bytes_of(TruncatedPacketNumber::new(0xac_e8fe, acked)), [0xac, 0xe8, 0xfe]);
    }

    /// RFC 9000 appendix A.3.
    #[test]
    fn expansion_of_the_appendix() {
        let number = TruncatedPacketNumber::decode(&mut Reader::new(&[0x9b, 0x32]), 2).unwrap();
        assert_eq!(number.expand(0xa82f_30ea + 1), 0xa82f_9b32);
    }

    #[test]
    fn lengths_are_1_to_4() {
        let bytes = [1, 2, 3, 4, 5];
        for len in 0..=5 {
            let number = TruncatedPacketNumber::decode(&mut Reader::new(&bytes), len);
            assert_eq!(number.is_ok_and(|number| number.len() == len), (1..=4).contains(&len));
        }
    }

    /// The number below 2^62 that ends in `number` and is nearest to `expected`; of two as near, either.
    fn is_nearest(full: u64, number: TruncatedPacketNumber, expected: u64) -> bool {
        let window = 1_u64 << (8 * number.len());
        let others = [full.checked_sub(window), Some(full + window).filter(|other| *other < 1 << 62)];
        full % window == u64::from(number.value)
            && full < 1 << 62
            && others.into_iter().flatten().all(|other| full.abs_diff(expected) <= other.abs_diff(expected))
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_number_of_one_byte_is_expanded_to_the_nearest() {
        let top = 1_u64 << 62;
        for expected in (0..=1024).chain(top - 1024..top) {
            for value in 0..=0xff {
                let number = TruncatedPacketNumber { len: 1, value };
                assert!(is_nearest(number.expand(expected), number, expected), "{value} at {expected}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_number_of_two_bytes_is_expanded_to_the_nearest() {
        let top = 1_u64 << 62;
        let edges = [0, 1 << 15, 1 << 16, 3 << 15, 1 << 40, top - (1 << 16), top - (1 << 15), top - 1];
        for expected in edges.into_iter().flat_map(|edge: u64| edge.saturating_sub(2)..(edge + 3).min(top)) {
            for value in 0..=0xffff {
                let number = TruncatedPacketNumber { len: 2, value };
                assert!(is_nearest(number.expand(expected), number, expected), "{value} at {expected}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts over all there are")]
    fn every_distance_of_one_and_two_bytes_is_bridged_from_both_ends() {
        for unacked in 1..=0x8000_u64 {
            let len = if unacked < 0x80 {
                1
            } else if unacked < 0x8000 {
                2
            } else {
                3
            };
            for acked in [None, Some(0), Some(0xff), Some(0x1_0000), Some((1 << 62) - 1 - unacked)] {
                let full = acked.map_or(unacked - 1, |acked| acked + unacked);
                let number = TruncatedPacketNumber::new(full, acked);
                assert_eq!(number.len(), len, "{full} after {acked:?}");
                // The receiver has all that was acknowledged, and perhaps all that came before this one.
                for expected in [acked.map_or(0, |acked| acked + 1), full] {
                    assert_eq!(number.expand(expected), full, "after {acked:?}, expecting {expected}");
                }
            }
        }
    }

    #[test]
    fn the_longest_is_recovered_however_late_it_comes() {
        let full = 0x7_1234_5678;
        let number = TruncatedPacketNumber::longest(full);
        assert_eq!(bytes_of(number), [0x12, 0x34, 0x56, 0x78]);
        for later in [0, 1 << 30, (1 << 31) - 1] {
            assert_eq!(number.expand(full + later), full, "{later:#x}");
        }
        assert_ne!(number.expand(full + (1 << 31)), full, "what is half of all numbers behind");
    }

    proptest! {
        #[test]
        fn the_receiver_finds_the_number(
            full in 0_u64..1 << 62, unacked in 1_u64..1 << 31, received in 0_u64..1 << 31, none_acked: bool,
        ) {
            let full = if none_acked { full % ((1 << 31) - 1) } else { full.max(unacked) };
            let acked = if none_acked { None } else { Some(full - unacked.min(full)) };
            // What was acknowledged has been received, and perhaps what came after it.
            let lowest = acked.map_or(0, |acked| acked.saturating_add(1)).min(full);
            let expected = lowest + received % (full - lowest + 1);
            let number = TruncatedPacketNumber::new(full, acked);
            prop_assert_eq!(bytes_of(number).len(), number.len());
            prop_assert_eq!(number.expand(expected), full);
        }

        #[test]
        fn expansion_finds_the_nearest(value: u32, len in 1..=4_usize, expected in 0_u64..1 << 62) {
            let bytes = value.to_be_bytes();
            let number = TruncatedPacketNumber::decode(&mut Reader::new(&bytes), len).unwrap();
            let full = number.expand(expected);
            let window = 1_u64 << (8 * len);
            prop_assert_eq!(full % window, u64::from(number.value));
            prop_assert!(full < 1 << 62);
            let at_an_edge = expected < window || expected > (1 << 62) - window;
            prop_assert!(at_an_edge || full.abs_diff(expected) <= window / 2);
        }
    }
}
