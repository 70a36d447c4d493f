//! BER made DER (X.690, sections 8 and 10), as far as pieces of PKCS #12 differ: some programs write lengths that are not
//! told ahead, and texts in chunks.
//!
//! A text in chunks that has a number in place of its type cannot be told from something with a member: it stays as it is,
//! and who knows what it is puts it together with [`joined`].

use der::asn1::OctetString;
use der::{Decode, Encode, Length, Reader, SliceReader};

/// The bit of what is made of elements.
const CONSTRUCTED: u8 = 0x20;

/// The bits that say that the number of a type follows, which is never so here.
const LONG_TYPE: u8 = 0x1f;

/// A text, and one in chunks.
const TEXT: u8 = 0x04;
const CHUNKS: u8 = TEXT | CONSTRUCTED;

/// The length that is not told ahead, and what stands at the end then.
const OPEN: u8 = 0x80;
const END: &[u8] = &[0, 0];

/// Elements lie in one another so many times at most.
const MAX_DEPTH: usize = 24;

/// One element with nothing behind it, in DER.
pub(super) fn canonical(bytes: &[u8]) -> Option<Vec<u8>> {
    let (element, rest) = element(bytes, MAX_DEPTH)?;
    rest.is_empty().then_some(element)
}

/// Puts the chunks of a text together.
pub(super) fn joined(chunks: &[u8]) -> Option<Vec<u8>> {
    let mut reader = SliceReader::new(chunks).ok()?;
    let mut text = Vec::with_capacity(chunks.len());
    while !reader.is_finished() {
        text.extend_from_slice(OctetString::decode(&mut reader).ok()?.as_bytes());
    }
    Some(text)
}

/// The first element, and what stands behind it.
fn element(bytes: &[u8], depth: usize) -> Option<(Vec<u8>, &[u8])> {
    let depth = depth.checked_sub(1)?;
    let (&kind, rest) = bytes.split_first()?;
    if kind & LONG_TYPE == LONG_TYPE {
        return None;
    }
    let is_constructed = kind & CONSTRUCTED != 0;
    let (content, rest) = match rest.split_first()? {
        (&OPEN, rest) if is_constructed => members(rest, true, depth)?,
        _ => {
            let mut reader = SliceReader::new(rest).ok()?;
            let len = Length::decode(&mut reader).ok()?;
            let content = reader.read_slice(len).ok()?;
            let behind = rest.get(usize::try_from(reader.position()).ok()?..)?;
            let content = if is_constructed { members(content, false, depth)?.0 } else { content.to_vec() };
            (content, behind)
        }
    };
    if kind == CHUNKS {
        Some((written(TEXT, &joined(&content)?)?, rest))
    } else {
        Some((written(kind, &content)?, rest))
    }
}

/// All elements, and what stands behind them: up to the end that is told if it `is_open`, or else to the last byte.
fn members(mut bytes: &[u8], is_open: bool, depth: usize) -> Option<(Vec<u8>, &[u8])> {
    let mut all = Vec::with_capacity(bytes.len());
    loop {
        if is_open && let Some(rest) = bytes.strip_prefix(END) {
            return Some((all, rest));
        }
        if !is_open && bytes.is_empty() {
            return Some((all, bytes));
        }
        let (one, rest) = element(bytes, depth)?;
        all.extend_from_slice(&one);
        bytes = rest;
    }
}

fn written(kind: u8, content: &[u8]) -> Option<Vec<u8>> {
    let len = Length::try_from(content.len()).ok()?.to_der().ok()?;
    Some([&[kind], &*len, content].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_der_stays_as_it_is() {
        let der: &[u8] = include_bytes!("../testdata/modern.p12");
        assert_eq!(canonical(der).unwrap(), der);
    }

    #[test]
    fn lengths_are_told_ahead() {
        assert_eq!(canonical(&[0x30, 0x80, 2, 1, 5, 0, 0]).unwrap(), [0x30, 3, 2, 1, 5]);
        assert_eq!(canonical(&[0x30, 0x80, 0xa0, 0x80, 0, 0, 0, 0]).unwrap(), [0x30, 2, 0xa0, 0]);
        let long = [&[0x30, 0x80, 0x04, 0x81, 200], [7; 200].as_slice(), END].concat();
        assert_eq!(canonical(&long).unwrap()[..6], [0x30, 0x81, 203, 0x04, 0x81, 200]);
    }

    #[test]
    fn chunks_are_put_together() {
        let chunks = [0x24, 0x80, 4, 1, 1, 0x24, 0x80, 4, 2, 2, 3, 0, 0, 4, 0, 0, 0];
        assert_eq!(canonical(&chunks).unwrap(), [4, 3, 1, 2, 3]);
        assert_eq!(canonical(&[0x24, 3, 4, 1, 9]).unwrap(), [4, 1, 9]);
        assert_eq!(canonical(&[0x24, 0x80, 2, 1, 9, 0, 0]), None);
        assert_eq!(joined(&[4, 1, 1, 4, 1, 2]).unwrap(), [1, 2]);
        assert_eq!(joined(&[4, 1, 1, 4, 2, 2]), None);
    }

    #[test]
    fn what_does_not_end_or_has_something_behind_it_is_nothing() {
        for bytes in [
            [].as_slice(),
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0x80, 0],
            &[0x04, 0x80, 0, 0],
            &[0x30, 2, 2, 1],
            &[0x30, 0, 0],
            &[0x1f, 0x22, 0],
        ] {
            assert_eq!(canonical(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth| [[0x30, 0x80].repeat(depth), END.repeat(depth)].concat();
        assert!(canonical(&nested(MAX_DEPTH)).is_some());
        assert_eq!(canonical(&nested(MAX_DEPTH + 1)), None);
        assert_eq!(canonical(&nested(100_000)), None);
    }

    proptest! {
        #[test]
        fn nothing_does_harm_and_what_comes_out_stays(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(der) = canonical(&bytes) {
                prop_assert_eq!(canonical(&der), Some(der));
            }
        }
    }
}
