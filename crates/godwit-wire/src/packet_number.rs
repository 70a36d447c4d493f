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
