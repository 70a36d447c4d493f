//! Which part of a file is asked for (RFC 9110 section 14).
//!
//! One range of bytes at a time: several at once, other units and malformed ranges are ignored, as a server may.

use http::HeaderMap;
use http::header::RANGE;

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    /// From this byte on, so many: at least one.
    Part {
        first: u64,
        length: u64,
    },
    /// 416: nothing of what is asked for exists.
    Beyond,
}

/// The range that these headers ask for of a file with `length` bytes.
pub(super) fn asked(headers: &HeaderMap, length: u64) -> Range {
    let mut values = headers.get_all(RANGE).iter();
    let range = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().and_then(|text| parse(text, length)),
        _ => None,
    };
    // Of a file without bytes there are no ranges; the whole of it is what a client can use best.
    range.filter(|_| length > 0).unwrap_or(Range::Whole)
}

fn parse(text: &str, length: u64) -> Option<Range> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = (number(first)?, number(last)?);
    let (first, end) = match (first, last) {
        (None, None) => return None,
        (None, Some(count)) => (length.saturating_sub(count), length),
        (Some(first), None) => (first, length),
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(length)),
    };
    if first >= end {
        return Some(Range::Beyond);
    }
    Some(Range::Part { first, length: end - first })
}

/// `Some(None)` for no number, `None` for nonsense. Numbers beyond all files are as good as the greatest.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(range: &str, length: u64) -> Range {
        asked(&HeaderMap::from_iter([(RANGE, range.parse().unwrap())]), length)
    }

    #[test]
    fn ranges_are_cut_to_the_file() {
        let part = |first, length| Range::Part { first, length };
        for (range, expected) in [
            ("bytes=0-9", part(0, 10)),
            ("bytes=0-0", part(0, 1)),
            ("bytes=90-", part(90, 10)),
            ("bytes=-10", part(90, 10)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=50-1000", part(50, 50)),
            ("Bytes = 1-2", part(1, 2)),
            ("bytes=99999999999999999999999-", Range::Beyond),
            ("bytes=0-99999999999999999999999", part(0, 100)),
            ("bytes=100-", Range::Beyond),
            ("bytes=-0", Range::Beyond),
            ("bytes=5-4", Range::Whole),
            ("bytes=-", Range::Whole),
            ("bytes=a-b", Range::Whole),
            ("bytes=+1-2", Range::Whole),
            ("bytes=0-1,5-6", Range::Whole),
            ("lines=0-1", Range::Whole),
            ("0-1", Range::Whole),
        ] {
            assert_eq!(ask(range, 100), expected, "{range}");
        }
        assert_eq!(ask("bytes=0-", 0), Range::Whole);
    }

    proptest! {
        #[test]
        fn a_part_lies_inside(range in "bytes=[0-9]{0,3}-[0-9]{0,3}", length in 0..500_u64) {
            if let Range::Part { first, length: part } = ask(&range, length) {
                prop_assert!(part > 0 && first + part <= length);
            }
        }
    }
}
