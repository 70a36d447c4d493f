//! Numbers by which fields are looked for, cheap rather than good: whoever finds something by them compares it.

/// Of a field, by its lengths and some of its bytes, in which most differ that differ at all.
#[inline]
pub(super) fn field(name: &[u8], value: &[u8]) -> u32 {
    let lengths = (name.len() as u64) << 32 | value.len() as u64;
    let mut hash = mix(lengths ^ last(name).rotate_left(32), last(value));
    if value.len() > 8 {
        hash = mix(hash, first(value));
        let middle = value.get(value.len() / 2..).unwrap_or_default();
        hash = mix(hash, first(middle));
    }
    (hash >> 32) as u32
}

/// Of a field's name.
#[inline]
pub(super) fn name(name: &[u8]) -> u32 {
    (mix(name.len() as u64 ^ last(name), first(name)) >> 32) as u32
}

fn mix(hash: u64, more: u64) -> u64 {
    // The fractional part of the golden ratio: its product has the bits of all of them at its top.
    (hash.rotate_left(26) ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn first(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

fn last(bytes: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}
