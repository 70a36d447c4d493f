//! The Huffman code of field strings (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive, in order of symbol, and a longer code
//! continues where the shorter ones end. Everything here is derived, at compile time, from the lengths.

use bytes::BufMut;

/// The length in bits of each symbol's code. The last one is the end-of-string symbol, which must
/// never be sent.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

const SYMBOLS: usize = 257;
const END_OF_STRING: u16 = 256;
const LONGEST: usize = 30;

/// What follows from [`LENGTHS`].
struct Tables {
    /// Each symbol's code.
    codes: [u32; SYMBOLS],
    /// The symbols in order of their codes.
    order: [u16; SYMBOLS],
    /// By length: the first code of that length.
    first: [u32; LONGEST + 1],
    /// By length: where the codes of that length begin in `order`.
    start: [usize; LONGEST + 1],
    /// By length: the first 32-bit window (code left-aligned) that belongs to a longer code. As 64 bits,
    /// because the last one is 2^32.
    limit: [u64; LONGEST + 1],
    /// By the first eight bits: the symbol and the length of its code if that is eight bits or less, else of length 0.
    short: [(u8, u8); 256],
}

static TABLES: Tables = derive();

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn derive() -> Tables {
    let mut tables = Tables {
        codes: [0; SYMBOLS],
        order: [0; SYMBOLS],
        first: [0; LONGEST + 1],
        start: [0; LONGEST + 1],
        limit: [0; LONGEST + 1],
        short: [(0, 0); 256],
    };
    let (mut code, mut placed, mut len) = (0_u32, 0, 1);
    while len <= LONGEST {
        code <<= 1;
        tables.first[len] = code;
        tables.start[len] = placed;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == len {
                tables.codes[symbol] = code;
                tables.order[placed] = symbol as u16;
                if len <= 8 {
                    let mut tail = 0;
                    while tail < 1 << (8 - len) {
                        tables.short[((code as usize) << (8 - len)) + tail] = (symbol as u8, len as u8);
                        tail += 1;
                    }
                }
                placed += 1;
                code += 1;
            }
            symbol += 1;
        }
        tables.limit[len] = (code as u64) << (32 - len);
        len += 1;
    }
    tables
}

/// Why a string cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HuffmanError {
    /// It contains the end-of-string symbol, or does not end in less than eight bits of one.
    Malformed,
    /// It is longer than the caller allows.
    TooLong,
}

/// Bytes that `plain` takes once encoded.
pub(crate) fn encoded_len(plain: &[u8]) -> usize {
    let bits = plain.iter().fold(0_usize, |bits, byte| {
        bits.saturating_add(usize::from(LENGTHS.get(usize::from(*byte)).copied().unwrap_or_default()))
    });
    bits.div_ceil(8)
}

/// Appends `plain`, encoded.
pub(crate) fn encode(plain: &[u8], out: &mut impl BufMut) {
    // Never more than 31 + 30 bits.
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in plain {
        let symbol = usize::from(*byte);
        let (Some(code), Some(len)) = (TABLES.codes.get(symbol), LENGTHS.get(symbol)) else { continue };
        bits = bits.wrapping_shl(u32::from(*len)) | u64::from(*code);
        count = count.saturating_add(u32::from(*len));
        if count >= 32 {
            count = count.saturating_sub(32);
            out.put_u32(bits.wrapping_shr(count) as u32);
        }
    }
    while count >= 8 {
        count = count.saturating_sub(8);
        out.put_u8(bits.wrapping_shr(count) as u8);
    }
    if count > 0 {
        let padding = 8_u32.saturating_sub(count);
        out.put_u8((bits.wrapping_shl(padding) | 0xff_u64.wrapping_shr(count)) as u8);
    }
}

/// Appends `coded`, decoded, of at most `limit` bytes.
pub(crate) fn decode(coded: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    let mut rest = coded.iter();
    let (mut bits, mut count) = (0_u64, 0_u32);
    let mut room = limit;
    loop {
        while count <= 56 {
            let Some(byte) = rest.next() else { break };
            bits = bits << 8 | u64::from(*byte);
            count = count.saturating_add(8);
        }
        if count == 0 {
            return Ok(());
        }
        // The next 32 bits, filled up with ones: what is missing then reads as padding.
        let window = if count >= 32 {
            bits.wrapping_shr(count.saturating_sub(32)) as u32
        } else {
            let missing = 32_u32.saturating_sub(count);
            bits.wrapping_shl(missing) as u32 | u32::MAX.wrapping_shr(count)
        };
        let (symbol, len) = symbol_at(window).ok_or(HuffmanError::Malformed)?;
        if len > count {
            let padding = u32::MAX.wrapping_shl(32_u32.saturating_sub(count));
            let valid = count < 8 && window & padding == padding;
            return if valid { Ok(()) } else { Err(HuffmanError::Malformed) };
        }
        let byte = u8::try_from(symbol).map_err(|_| HuffmanError::Malformed)?;
        room = room.checked_sub(1).ok_or(HuffmanError::TooLong)?;
        out.push(byte);
        count = count.saturating_sub(len);
    }
}

/// The symbol whose code `window` begins with, and the code's length.
fn symbol_at(window: u32) -> Option<(u16, u32)> {
    let (symbol, len) = *TABLES.short.get((window >> 24) as usize)?;
    if len > 0 {
        return Some((u16::from(symbol), u32::from(len)));
    }
    // No code has nine bits.
    let len =
        (10..=LONGEST).find(|len| TABLES.limit.get(*len).is_some_and(|limit| u64::from(window) < *limit))?;
    let code = window.wrapping_shr(32_u32.saturating_sub(len as u32));
    let nth = code.checked_sub(*TABLES.first.get(len)?)? as usize;
    let symbol = *TABLES.order.get(TABLES.start.get(len)?.saturating_add(nth))?;
    Some((symbol, len as u32))
}

const _: () = assert!(TABLES_COMPLETE, "the code leaves no bit pattern unused");
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const TABLES_COMPLETE: bool = {
    let tables = derive();
    tables.limit[LONGEST] == 1 << 32 && tables.order[SYMBOLS - 1] == END_OF_STRING
};

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        text.split_whitespace()
            .collect::<String>()
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut out = Vec::new();
        decode(coded, usize::MAX, &mut out).map(|()| out)
    }

    /// RFC 7541 appendices C.4 and C.6.
    #[test]
    fn strings_of_the_rfc() {
        for (plain, coded) in [
            ("www.example.com", "f1e3 c2e5 f23a 6ba0 ab90 f4ff"),
            ("no-cache", "a8eb 1064 9cbf"),
            ("custom-key", "25a8 49e9 5ba9 7d7f"),
            ("custom-value", "25a8 49e9 5bb8 e8b4 bf"),
            ("302", "6402"),
            ("private", "aec3 771a 4b"),
            ("Mon, 21 Oct 2013 20:13:21 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"),
            ("https://www.example.com", "9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3"),
            (
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587
                 3160 65c0 03ed 4ee5 b106 3d50 07",
            ),
        ] {
            let mut out = Vec::new();
            encode(plain.as_bytes(), &mut out);
            assert_eq!(out, hex(coded), "{plain}");
            assert_eq!(encoded_len(plain.as_bytes()), out.len());
            assert_eq!(decoded(&out).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn codes_of_the_rfc() {
        for (symbol, code, len) in [
            (0, 0x1ff8, 13),
            (10, 0x3fff_fffc, 30),
            (b' ', 0x14, 6),
            (b'a', 0x3, 5),
            (b'~', 0x1ffd, 13),
            (127, 0xfff_fffc, 28),
            (199, 0x1ff_ffec, 25),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
        ] {
            let at = usize::from(symbol);
            assert_eq!((TABLES.codes[at], LENGTHS[at]), (code, len), "symbol {symbol}");
        }
        assert_eq!((TABLES.codes[256], LENGTHS[256]), (0x3fff_ffff, 30));
    }

    #[test]
    fn every_byte_alone_and_after_every_alignment() {
        for byte in 0..=255_u8 {
            for before in 0..8 {
                // '0' has a code of five bits: it moves the byte to every alignment.
                let plain: Vec<u8> = [vec![b'0'; before], vec![byte], vec![b'X'; before]].concat();
                let mut out = Vec::new();
                encode(&plain, &mut out);
                assert_eq!(out.len(), encoded_len(&plain));
                assert_eq!(decoded(&out).unwrap(), plain);
            }
        }
    }

    #[test]
    fn bad_endings_are_refused() {
        // A whole byte of padding, the end-of-string symbol itself, padding of zeros.
        assert_eq!(decoded(&[0xff]), Err(HuffmanError::Malformed));
        assert_eq!(decoded(&hex("07ff")), Err(HuffmanError::Malformed));
        assert_eq!(decoded(&[0xff; 4]), Err(HuffmanError::Malformed));
        assert_eq!(decoded(&[0xff; 40]), Err(HuffmanError::Malformed));
        assert_eq!(decoded(&[0b0001_1000]), Err(HuffmanError::Malformed));
        assert_eq!(decoded(&[0b0001_1111]).unwrap(), b"a");
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    #[test]
    fn length_is_limited() {
        let mut coded = Vec::new();
        encode(&[b'0'; 100], &mut coded);
        let mut out = Vec::new();
        assert_eq!(decode(&coded, 99, &mut out), Err(HuffmanError::TooLong));
        assert!(out.len() <= 99);
        out.clear();
        assert_eq!(decode(&coded, 100, &mut out), Ok(()));
    }

    proptest! {
        #[test]
        fn round_trip(plain in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&plain, &mut out);
            prop_assert_eq!(out.len(), encoded_len(&plain));
            prop_assert_eq!(decoded(&out), Ok(plain));
        }

        /// The code is prefix-free and padding is unique: whatever decodes has but one encoding.
        #[test]
        fn what_decodes_encodes_to_the_same(coded in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(plain) = decoded(&coded) {
                let mut out = Vec::new();
                encode(&plain, &mut out);
                prop_assert_eq!(out, coded);
            }
        }
    }
}
