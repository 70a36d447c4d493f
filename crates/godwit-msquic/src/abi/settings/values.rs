//! What is set, and to what: read from the memory of a program, whose settings may be shorter or longer than ours, and
//! written there.

use super::super::status::Status;
use super::{Setting, Settings};
use std::mem::offset_of;

/// Settings and their values; those that are not set have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingValues {
    is_set: u64,
    values: [u64; Setting::COUNT],
}

/// How writing settings into the memory of a program went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsWritten {
    /// As much as there was room for was written: this many bytes.
    Bytes(usize),
    /// There was not room enough; this many bytes are needed.
    TooSmall(usize),
}

impl Default for SettingValues {
    /// Nothing is set.
    fn default() -> Self {
        Self { is_set: 0, values: [0; Setting::COUNT] }
    }
}

impl SettingValues {
    /// All of them, with what holds where nothing is set.
    pub fn defaults() -> Self {
        let mut values = Self::default();
        for setting in Setting::ALL {
            values.set(setting, setting.place().default);
        }
        values
    }

    /// Reads what a program has set. Settings that its memory is too short for are not set, whatever their bits say.
    ///
    /// # Errors
    ///
    /// [`Status::INVALID_PARAMETER`] where the memory is shorter than [`Settings::MIN_SIZE`].
    pub fn read(bytes: &[u8]) -> Result<Self, Status> {
        if bytes.len() < Settings::MIN_SIZE {
            return Err(Status::INVALID_PARAMETER);
        }
        let is_set = number(bytes, offset_of!(Settings, is_set_flags), 8).ok_or(Status::INVALID_PARAMETER)?;
        let mut values = Self::default();
        for setting in Setting::ALL.into_iter().filter(|setting| is_set & setting.bit() != 0) {
            let place = setting.place();
            if let Some(member) = number(bytes, place.offset, place.size) {
                values.set(setting, member >> place.shift & place.max());
            }
        }
        Ok(values)
    }

    /// Writes the values of all settings into a program's memory, with the bits of those that are set. What is not set is
    /// written as it is in `otherwise`. A program that asks with no memory at all learns how much all of it needs.
    pub fn write(&self, otherwise: &Self, bytes: &mut [u8]) -> SettingsWritten {
        match bytes.len() {
            0 => return SettingsWritten::TooSmall(size_of::<Settings>()),
            length if length < Settings::MIN_SIZE => return SettingsWritten::TooSmall(Settings::MIN_SIZE),
            _ => {}
        }
        put(bytes, offset_of!(Settings, is_set_flags), 8, 0, u64::MAX, 0);
        for setting in Setting::ALL {
            let place = setting.place();
            let value = self.get(setting).or(otherwise.get(setting)).unwrap_or_default();
            if put(bytes, place.offset, place.size, place.shift, place.max(), value) {
                let is_set = u64::from(self.is_set & setting.bit() != 0);
                put(bytes, offset_of!(Settings, is_set_flags), 8, setting as u32, 1, is_set);
            }
        }
        SettingsWritten::Bytes(bytes.len().min(size_of::<Settings>()))
    }

    /// The value of a setting, if it is set.
    pub fn get(&self, setting: Setting) -> Option<u64> {
        let value = self.values.get(usize::from(setting as u8)).copied()?;
        (self.is_set & setting.bit() != 0).then_some(value)
    }

    /// Sets a setting. Of a value for which it has no room, the lower bits are taken.
    pub fn set(&mut self, setting: Setting, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(setting as u8)) {
            *place = value & setting.place().max();
            self.is_set |= setting.bit();
        }
    }

    /// Takes a setting back.
    pub fn clear(&mut self, setting: Setting) {
        self.is_set &= !setting.bit();
        if let Some(place) = self.values.get_mut(usize::from(setting as u8)) {
            *place = 0;
        }
    }

    /// Those that are set, in the order of their bits.
    pub fn iter(&self) -> impl Iterator<Item = (Setting, u64)> {
        Setting::ALL.into_iter().filter_map(|setting| self.get(setting).map(|value| (setting, value)))
    }

    /// The first of those that are set whose value is not one that it may have ([`Setting::accepts`]).
    pub fn refused(&self) -> Option<Setting> {
        self.iter().find(|(setting, value)| !setting.accepts(*value)).map(|(setting, _)| setting)
    }

    /// The bits of those that are set.
    pub const fn is_set_flags(&self) -> u64 {
        self.is_set
    }
}

/// The number that lies there, if the memory is long enough.
fn number(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let member = bytes.get(offset..offset.checked_add(size)?)?;
    let mut all = [0; 8];
    all.get_mut(..size)?.copy_from_slice(member);
    Some(u64::from_le_bytes(all))
}

/// Puts a value into some bits of the number that lies there; says whether the memory is long enough.
fn put(bytes: &mut [u8], offset: usize, size: usize, shift: u32, max: u64, value: u64) -> bool {
    let Some(before) = number(bytes, offset, size) else { return false };
    let now = before & !(max << shift) | (value & max) << shift;
    let member = bytes.iter_mut().skip(offset).take(size);
    member.zip(now.to_le_bytes()).for_each(|(byte, new)| *byte = new);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bits of all settings together.
    const ALL_BITS: u64 = (1 << Setting::COUNT) - 1;

    /// Settings with these bits and nothing else, of the size of ours.
    fn only_bits(is_set: u64) -> [u8; size_of::<Settings>()] {
        let mut bytes = [0; size_of::<Settings>()];
        bytes[..8].copy_from_slice(&is_set.to_le_bytes());
        bytes
    }

    #[test]
    fn a_program_sets_what_its_bits_say() {
        let mut bytes = only_bits(Setting::IdleTimeoutMs.bit() | Setting::ServerResumptionLevel.bit());
        bytes[24..32].copy_from_slice(&5000_u64.to_le_bytes());
        bytes[106] = 0b1110_1111;
        let values = SettingValues::read(&bytes).unwrap();
        let found: Vec<_> = values.iter().collect();
        assert_eq!(found, [(Setting::IdleTimeoutMs, 5000), (Setting::ServerResumptionLevel, 2)]);
    }

    #[test]
    fn an_older_program_has_not_set_what_it_does_not_know() {
        let all = only_bits(u64::MAX);
        for (length, missing) in [
            (Settings::MIN_SIZE, vec![31, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45]),
            (115, vec![31, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45]),
            (116, vec![34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45]),
            (127, vec![34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45]),
            (128, vec![35, 36, 37]),
            (132, vec![36, 37]),
            (136, vec![37]),
            (140, vec![]),
            (144, vec![]),
        ] {
            let values = SettingValues::read(&all[..length]).unwrap();
            let without = Setting::ALL.into_iter().filter(|setting| values.get(*setting).is_none());
            assert_eq!(without.map(|setting| setting as u8).collect::<Vec<_>>(), missing, "{length}");
        }
    }

    #[test]
    fn what_is_too_short_or_longer_than_ours() {
        assert_eq!(Settings::MIN_SIZE, 109);
        assert_eq!(SettingValues::read(&[0; 108]), Err(Status::INVALID_PARAMETER));
        assert_eq!(SettingValues::read(&[]), Err(Status::INVALID_PARAMETER));
        let mut longer = only_bits(Setting::StreamRecvWindowUnidiDefault.bit()).to_vec();
        longer[136..140].copy_from_slice(&1024_u32.to_le_bytes());
        longer.extend([0xff; 64]);
        let values = SettingValues::read(&longer).unwrap();
        assert_eq!(values.get(Setting::StreamRecvWindowUnidiDefault), Some(1024));
    }

    #[test]
    fn a_program_that_asks_learns_how_much_room_it_needs() {
        let values = SettingValues::defaults();
        assert_eq!(values.write(&values, &mut []), SettingsWritten::TooSmall(144));
        assert_eq!(values.write(&values, &mut [0; 1]), SettingsWritten::TooSmall(109));
        assert_eq!(values.write(&values, &mut [0; 108]), SettingsWritten::TooSmall(109));
        assert_eq!(values.write(&values, &mut [0; 109]), SettingsWritten::Bytes(109));
        assert_eq!(values.write(&values, &mut [0; 200]), SettingsWritten::Bytes(144));
    }

    #[test]
    fn what_is_not_set_is_written_as_it_is_otherwise() {
        let mut values = SettingValues::default();
        values.set(Setting::IdleTimeoutMs, 7);
        let mut bytes = [0xff; size_of::<Settings>()];
        values.write(&SettingValues::defaults(), &mut bytes);
        assert_eq!(bytes[..8], Setting::IdleTimeoutMs.bit().to_le_bytes());
        assert_eq!(bytes[16..24], 10_000_u64.to_le_bytes());
        assert_eq!(bytes[24..32], 7_u64.to_le_bytes());
        assert_eq!(bytes[106], 0b0000_0111);
    }

    #[test]
    fn what_is_taken_back_is_not_set() {
        let mut values = SettingValues::defaults();
        values.clear(Setting::MaximumMtu);
        assert_eq!(values.get(Setting::MaximumMtu), None);
        assert_eq!(values.is_set_flags(), ALL_BITS & !Setting::MaximumMtu.bit());
    }

    #[test]
    fn only_what_is_set_can_be_refused() {
        let mut values = SettingValues::default();
        assert_eq!(values.refused(), None);
        values.set(Setting::InitialRttMs, 0);
        assert_eq!(values.refused(), Some(Setting::InitialRttMs));
        assert_eq!(SettingValues::defaults().refused(), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(is_set: u64, values: [u64; Setting::COUNT], length in Settings::MIN_SIZE..200) {
            let mut before = SettingValues::default();
            for (setting, value) in Setting::ALL.into_iter().zip(values) {
                if is_set & setting.bit() != 0 {
                    before.set(setting, value);
                }
            }
            let mut bytes = vec![0xa5; length];
            let written = before.write(&SettingValues::defaults(), &mut bytes);
            prop_assert_eq!(written, SettingsWritten::Bytes(length.min(size_of::<Settings>())));
            prop_assert!(bytes.iter().skip(144).all(|byte| *byte == 0xa5));
            let mut fits = before;
            for setting in Setting::ALL.into_iter().filter(|setting| setting.place().end() > length) {
                fits.clear(setting);
            }
            prop_assert_eq!(SettingValues::read(&bytes), Ok(fits));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let values = SettingValues::read(&bytes);
            prop_assert_eq!(values.is_ok(), bytes.len() >= Settings::MIN_SIZE);
            for (setting, value) in values.unwrap_or_default().iter() {
                prop_assert!(value <= setting.place().max());
            }
        }
    }
}
