//! Which fields have been written of late, and how likely those of a name are to come again: by this it is judged what is worth
//! being inserted.
//!
//! Only parts of hashes are kept. What is taken for another field is inserted in vain, or not, and nothing else.

use super::frequency::{Frequency, ONCE};

const FIELDS: usize = 256;
const NAMES: usize = 64;

/// How likely a field is to come again of whose name nothing is known, in 1/256.
const UNKNOWN: u8 = 128;

/// How quickly it is learned otherwise: by this part of the difference with each field.
const LEARNED: u32 = 10;

/// What counts for less came too long ago to be called again.
const AGAIN: u32 = ONCE / 16;

/// A short memory of fields, and of names.
#[derive(Debug)]
pub(super) struct Seen {
    fields: [Place; FIELDS],
    names: [Name; NAMES],
}

/// What has been written that has this tag, which is part of its hash, and 0 for nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    tag: u16,
    frequency: Frequency,
}

#[derive(Debug, Clone, Copy, Default)]
struct Name {
    place: Place,
    /// How likely a field with it is to come again, in 1/256.
    likely: u8,
}

/// What is known of a field that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// How often the field has come, and is likely to come, as [`ONCE`] has it.
    pub(super) field: u32,
    /// How often the name has come with fields that were written in full.
    pub(super) name: u32,
}

impl Seen {
    pub(super) fn new() -> Self {
        Seen { fields: [Place::default(); FIELDS], names: [Name::default(); NAMES] }
    }

    /// A field is written in full in this section, which has these hashes; what was known of it before. Of one whose name is
    /// `mostly_new` it is not expected that it comes again, until it is learned otherwise.
    pub(super) fn field(&mut self, hash: u32, name_hash: u32, mostly_new: bool, section: u16) -> Known {
        let before = place(&mut self.fields, hash).map_or(0, |place| place.note(hash, section));
        let name = place(&mut self.names, name_hash);
        let (name, likely) = name.map_or((0, 0), |name| {
            if name.place.tag != tag(name_hash) {
                name.likely = if mostly_new { 0 } else { UNKNOWN };
            }
            let likely = name.likely;
            name.learn(before >= AGAIN);
            (name.place.note(name_hash, section), likely)
        });
        // By its name more can be told than from one that came before.
        let likely = u32::from(likely).saturating_mul(ONCE) / 256;
        let field = before.saturating_mul(5).saturating_add(likely.saturating_mul(8)) / 10;
        Known { field, name }
    }

    /// A field with a name of this hash has come again, and was not written in full.
    #[inline]
    pub(super) fn came_again(&mut self, name_hash: u32) {
        if let Some(name) = place(&mut self.names, name_hash).filter(|name| name.place.tag == tag(name_hash))
        {
            name.learn(true);
        }
    }
}

impl Place {
    /// It comes in this section; how often it had come before.
    fn note(&mut self, hash: u32, section: u16) -> u32 {
        if self.tag != tag(hash) {
            *self = Place { tag: tag(hash), frequency: Frequency::default() };
        }
        let before = self.frequency.at(section);
        self.frequency.add(ONCE, section);
        before
    }
}

impl Name {
    fn learn(&mut self, came_again: bool) {
        let likely = u32::from(self.likely);
        let learned = match came_again {
            true => likely.saturating_add(255_u32.saturating_sub(likely).div_ceil(LEARNED)),
            false => likely.saturating_sub(likely.div_ceil(LEARNED)),
        };
        self.likely = learned.min(255) as u8;
    }
}

fn tag(hash: u32) -> u16 {
    hash as u16 | 1
}

fn place<T>(places: &mut [T], hash: u32) -> Option<&mut T> {
    let at = (hash >> 16) as usize & places.len().wrapping_sub(1);
    places.get_mut(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: u32 = 0x7_0001;

    #[test]
    fn what_was_noted_is_known_until_another_takes_its_place() {
        let mut seen = Seen::new();
        let mut again = |hash| seen.field(hash, NAME, true, 1).field >= ONCE / 2;
        assert!(!again(0x10_1234) && again(0x10_1234));
        assert!(!again(0x10_4321), "the same place");
        assert!(!again(0x11_1234), "the same tag");
        assert!(!again(0x10_1234) && again(0x11_1234));
        assert!(!again(0x20_0000), "nothing has been noted there");
    }

    #[test]
    fn names_are_learned() {
        let mut seen = Seen::new();
        assert_eq!(seen.field(1, NAME, false, 1), Known { field: ONCE * 2 / 5, name: 0 });
        let known = (2..40).map(|hash| seen.field(hash << 16, NAME, false, 1)).last().unwrap();
        assert!(known.field < ONCE / 8 && known.name >= 8 * ONCE, "they are always new: {known:?}");
        (0..40).for_each(|_| seen.came_again(NAME));
        assert!(seen.field(50 << 16, NAME, false, 1).field > ONCE * 3 / 4, "they come again");
        assert_eq!(seen.field(51 << 16, NAME + 0x1_0000, true, 1).field, 0);
    }
}
