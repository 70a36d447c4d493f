//! Which fields have been written of late: what comes again is worth being inserted.
//!
//! Only parts of hashes are kept. What is taken for another field is inserted in vain, and nothing else.

const FIELDS: usize = 256;
const NAMES: usize = 64;

/// A short memory of fields, and of names.
#[derive(Debug)]
pub(super) struct Seen {
    fields: [u16; FIELDS],
    names: [u16; NAMES],
}

impl Seen {
    pub(super) fn new() -> Self {
        Seen { fields: [0; FIELDS], names: [0; NAMES] }
    }

    /// Whether the field with this hash has been written before. From now on it has.
    pub(super) fn field(&mut self, hash: u32) -> bool {
        note(&mut self.fields, hash)
    }

    /// The same of a name.
    pub(super) fn name(&mut self, hash: u32) -> bool {
        note(&mut self.names, hash)
    }
}

fn note(places: &mut [u16], hash: u32) -> bool {
    // 0 is for nothing.
    let tag = hash as u16 | 1;
    let place = (hash >> 16) as usize & places.len().wrapping_sub(1);
    places.get_mut(place).is_some_and(|place| std::mem::replace(place, tag) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_until_another_takes_its_place() {
        let mut seen = Seen::new();
        assert!(!seen.field(0x10_1234) && seen.field(0x10_1234) && !seen.name(0x10_1234));
        assert!(!seen.field(0x10_4321), "the same place");
        assert!(!seen.field(0x11_1234), "the same tag");
        assert!(!seen.field(0x10_1234) && seen.field(0x11_1234));
        assert!(!seen.field(0x20_0000), "nothing has been noted there");
    }
}
