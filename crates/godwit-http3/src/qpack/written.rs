//! Fields as they were written last: most messages have most of their fields in common with those before them.
//!
//! Invariants: what is found here is what would be written anew, as field lines are without state of their own; fields that
//! are sensitive never come here; memory is bounded, for each thread by [`PLACES`] fields of [`LONGEST`] bytes.

use std::cell::RefCell;

/// Fields that are remembered by each thread.
const PLACES: usize = 1 << PLACES_BITS;
const PLACES_BITS: u32 = 6;

/// The most bytes that name and value have together.
const LONGEST: usize = 192;

/// A field, and what it became.
#[derive(Debug, Default)]
struct Written {
    name: usize,
    /// The name, the value and what was written, one after the other.
    bytes: Vec<u8>,
    /// Where what was written begins.
    line: usize,
}

thread_local! {
    static WRITTEN: RefCell<[Written; PLACES]> =
        const { RefCell::new([const { Written { name: 0, bytes: Vec::new(), line: 0 } }; PLACES]) };
}

/// Whether a field may be remembered: it is short, and none of those that are mostly somebody's secret.
pub(super) fn may_remember(name: &[u8], value: &[u8]) -> bool {
    let secret = matches!(name, b"cookie" | b"set-cookie" | b"authorization" | b"proxy-authorization");
    name.len().saturating_add(value.len()) <= LONGEST && !secret
}

/// Gives `out`, for a field with this [hash](super::hash::field), what `write` appends for a field that it [may remember](may_remember), perhaps from when it was written before.
pub(super) fn line(
    hash: u32,
    name: &[u8],
    value: &[u8],
    write: impl FnOnce(&mut Vec<u8>),
    out: impl FnOnce(&[u8]),
) {
    WRITTEN.with_borrow_mut(|written| {
        let Some(place) = written.get_mut((hash >> (u32::BITS - PLACES_BITS)) as usize) else { return };
        if !place.is_of(name, value) {
            place.bytes.clear();
            place.bytes.extend_from_slice(name);
            place.bytes.extend_from_slice(value);
            (place.name, place.line) = (name.len(), place.bytes.len());
            write(&mut place.bytes);
        }
        out(place.bytes.get(place.line..).unwrap_or_default());
    });
}

impl Written {
    fn is_of(&self, name: &[u8], value: &[u8]) -> bool {
        let field = self.bytes.get(..self.line).and_then(|field| field.split_at_checked(self.name));
        // One that has never been written has a line of no bytes, which is none.
        field == Some((name, value)) && self.line < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// Writes a field as `line` does, and tells whether it was written anew.
    fn put(name: &[u8], value: &[u8]) -> (Vec<u8>, bool) {
        let (new, mut out) = (Cell::new(false), Vec::new());
        let write = |line: &mut Vec<u8>| {
            new.set(true);
            line.extend([name, b"=", value].concat());
        };
        line(hash::field(name, value), name, value, write, |line| out.extend_from_slice(line));
        (out, new.get())
    }

    #[test]
    fn what_was_written_before_is_not_written_anew() {
        assert_eq!(put(b"via", b"1.1 a"), (b"via=1.1 a".to_vec(), true));
        assert_eq!(put(b"via", b"1.1 a"), (b"via=1.1 a".to_vec(), false));
        assert_eq!(put(b"via", b"1.1 b"), (b"via=1.1 b".to_vec(), true));
        // The same bytes, and another field.
        assert_eq!(put(b"vi", b"a1.1 a"), (b"vi=a1.1 a".to_vec(), true));
    }

    #[test]
    fn long_fields_are_not_remembered() {
        let value = [b'v'; LONGEST];
        assert!(may_remember(b"", &value) && !may_remember(b"n", &value));
        let mut out = Vec::new();
        super::super::Encoder::new(&mut out).field(b"n", &value, false);
        WRITTEN.with_borrow(|written| assert!(written.iter().all(|place| place.bytes.is_empty())));
        super::super::Encoder::new(&mut out).field(b"", &value, false);
        WRITTEN.with_borrow(|written| assert!(written.iter().any(|place| place.line == LONGEST)));
    }

    proptest! {
        #[test]
        fn nothing_is_taken_for_another(fields in prop::collection::vec(("[ab]{0,3}", "[ab]{0,3}"), 1..200)) {
            for (name, value) in &fields {
                prop_assert_eq!(put(name.as_bytes(), value.as_bytes()).0, format!("{name}={value}").into_bytes());
            }
        }
    }
}
