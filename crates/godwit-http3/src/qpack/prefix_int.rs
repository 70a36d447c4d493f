//! Integers with a prefix (RFC 9204 section 4.1.1, RFC 7541 section 5.1) and the strings they count.

use bytes::BufMut;
use godwit_wire::Reader;
use godwit_wire::codec::VARINT_MAX;

use super::huffman;

/// Why an integer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntError {
    /// The bytes end within it.
    Truncated,
    /// It does not fit into 62 bits, or is longer than any such number needs.
    TooLarge,
}

/// The most bytes an integer may take: one with the prefix, nine of seven bits each.
pub(crate) const MAX_LEN: usize = 10;

/// Reads an integer whose first byte has `prefix` (1 to 8) bits of it.
pub(crate) fn decode(reader: &mut Reader<'_>, prefix: u32) -> Result<u64, IntError> {
    let first = reader.u8().map_err(|_| IntError::Truncated)?;
    let mask = mask(prefix);
    let mut value = u64::from(first & mask);
    if value < u64::from(mask) {
        return Ok(value);
    }
    for shift in (0..63).step_by(7) {
        let byte = reader.u8().map_err(|_| IntError::Truncated)?;
        // Seven bits shifted by at most 56.
        value = value.saturating_add(u64::from(byte & 0x7f).wrapping_shl(shift));
        if value > VARINT_MAX {
            return Err(IntError::TooLarge);
        }
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(IntError::TooLarge)
}

/// Appends `value` with `prefix` (1 to 8) bits of it in the first byte, whose other bits are `flags`.
pub(crate) fn encode(value: u64, prefix: u32, flags: u8, out: &mut impl BufMut) {
    let mask = mask(prefix);
    if value < u64::from(mask) {
        out.put_u8(flags | value as u8);
        return;
    }
    out.put_u8(flags | mask);
    let mut rest = value.saturating_sub(u64::from(mask));
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

/// Bytes that [`encode`] appends.
pub(crate) fn encoded_len(value: u64, prefix: u32) -> usize {
    let Some(rest) = value.checked_sub(u64::from(mask(prefix))) else { return 1 };
    let bits = u64::BITS.saturating_sub((rest | 1).leading_zeros());
    (bits.div_ceil(7) as usize).saturating_add(1)
}

/// Appends `text` with its length in the last `prefix` bits of the first byte, the Huffman flag in the
/// bit before them and `flags` in the rest; Huffman-coded if that is shorter.
pub(crate) fn encode_string(text: &[u8], prefix: u32, flags: u8, out: &mut impl BufMut) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        let huffman_flag = 1_u8.wrapping_shl(prefix);
        encode(coded as u64, prefix, flags | huffman_flag, out);
        huffman::encode(text, out);
    } else {
        encode(text.len() as u64, prefix, flags, out);
        out.put_slice(text);
    }
}

/// Lowest `prefix` bits set.
const fn mask(prefix: u32) -> u8 {
    0xff_u8.wrapping_shr(8_u32.saturating_sub(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: u64, prefix: u32, flags: u8) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, prefix, flags, &mut out);
        out
    }

    /// RFC 7541 appendix C.1.
    #[test]
    fn integers_of_the_rfc() {
        assert_eq!(encoded(10, 5, 0), [0b01010]);
        assert_eq!(encoded(1337, 5, 0xe0), [0xff, 0b1001_1010, 0b0000_1010]);
        assert_eq!(encoded(42, 8, 0), [42]);
        assert_eq!(decode(&mut Reader::new(&[0xff, 0x9a, 0x0a]), 5), Ok(1337));
    }

    #[test]
    fn limits() {
        let largest = encoded(VARINT_MAX, 3, 0);
        assert!(largest.len() <= MAX_LEN);
        assert_eq!(decode(&mut Reader::new(&largest), 3), Ok(VARINT_MAX));
        assert_eq!(decode(&mut Reader::new(&encoded(VARINT_MAX + 1, 3, 0)), 3), Err(IntError::TooLarge));
        assert_eq!(decode(&mut Reader::new(&encoded(u64::MAX, 8, 0)), 8), Err(IntError::TooLarge));
        // Endless zeros after the prefix.
        let zeros = [[0xff].as_slice(), &[0x80; 40]].concat();
        assert_eq!(decode(&mut Reader::new(&zeros), 8), Err(IntError::TooLarge));
    }

    proptest! {
        #[test]
        fn round_trip(value in 0..=VARINT_MAX, small in 0_u64..600, prefix in 1_u32..=8) {
            for value in [value, small] {
                let bytes = encoded(value, prefix, 0);
                let mut reader = Reader::new(&bytes);
                prop_assert_eq!(decode(&mut reader, prefix), Ok(value));
                prop_assert!(reader.is_empty());
                prop_assert_eq!(encoded_len(value, prefix), bytes.len());
                for cut in 0..bytes.len() {
                    prop_assert_eq!(decode(&mut Reader::new(&bytes[..cut]), prefix), Err(IntError::Truncated));
                }
            }
        }
    }
}
