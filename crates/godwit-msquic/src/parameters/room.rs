//! Where a program wants a parameter written.

use crate::abi::layout::Layout;
use crate::abi::plain::{as_uninit, bytes_of, bytes_of_members};
use crate::abi::{SettingValues, Settings, Status};
use std::mem::MaybeUninit;

/// The program's memory for a value, and the length that says how much of it there is, and then how much was needed.
pub(crate) struct Room<'a> {
    length: &'a mut u32,
    /// As many bytes as the length has said; none if the program has given nowhere to write.
    buffer: Option<&'a mut [MaybeUninit<u8>]>,
}

impl<'a> Room<'a> {
    pub(crate) const fn new(length: &'a mut u32, buffer: Option<&'a mut [MaybeUninit<u8>]>) -> Self {
        Room { length, buffer }
    }

    /// How many bytes there are.
    pub(super) const fn bytes(&self) -> usize {
        *self.length as usize
    }

    /// Where it begins.
    pub(super) fn start(&mut self) -> Option<*mut u8> {
        self.buffer.as_deref_mut().map(|buffer| buffer.as_mut_ptr().cast())
    }

    /// Says how much is needed, and that it is too little.
    pub(super) fn too_small(&mut self, needed: usize) -> Status {
        *self.length = u32::try_from(needed).unwrap_or(u32::MAX);
        Status::BUFFER_TOO_SMALL
    }

    /// Makes sure of so many bytes, before anything else is looked at.
    ///
    /// # Errors
    /// [`Status::BUFFER_TOO_SMALL`] if there are fewer, [`Status::INVALID_PARAMETER`] if there is nowhere to write.
    pub(super) fn need(&mut self, needed: usize) -> Result<(), Status> {
        if self.bytes() < needed {
            return Err(self.too_small(needed));
        }
        if self.buffer.is_none() { Err(Status::INVALID_PARAMETER) } else { Ok(()) }
    }

    /// The same for a value that has grown: with less than all of it a part will do. Who asks without any room learns how
    /// much all of it needs, and who has too little how much the shortest does.
    ///
    /// # Errors
    /// As [`Room::need`] has them.
    pub(super) fn need_grown(&mut self, least: usize, all: usize) -> Result<(), Status> {
        if self.bytes() == 0 { Err(self.too_small(all)) } else { self.need(least) }
    }

    /// Writes a value that has nothing between its members.
    ///
    /// # Errors
    /// As [`Room::need`] has them.
    pub(super) fn put<T: Copy>(&mut self, value: T) -> Result<(), Status> {
        self.need(size_of::<T>())?;
        self.write(bytes_of(&value));
        Ok(())
    }

    /// Writes all of these bytes.
    ///
    /// # Errors
    /// As [`Room::need`] has them.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), Status> {
        self.need(bytes.len())?;
        self.write(as_uninit(bytes));
        Ok(())
    }

    /// Writes the members of a value, as many as there is room for.
    pub(super) fn put_part<T: Copy>(&mut self, value: T, layout: &Layout) {
        self.write(&bytes_of_members(&value, layout));
    }

    /// Writes the members of a value.
    ///
    /// # Errors
    /// As [`Room::need`] has them.
    pub(super) fn put_members<T: Copy>(&mut self, value: T, layout: &Layout) -> Result<(), Status> {
        self.need(size_of::<T>())?;
        self.put_part(value, layout);
        Ok(())
    }

    /// Writes all of these values, one behind the other.
    ///
    /// # Errors
    /// As [`Room::need`] has them.
    pub(super) fn put_all<T: Copy>(&mut self, values: &[T]) -> Result<(), Status> {
        self.need(size_of_val(values))?;
        let bytes: Vec<MaybeUninit<u8>> = values.iter().flat_map(bytes_of).copied().collect();
        self.write(&bytes);
        Ok(())
    }

    /// Writes the members of a value and bytes behind it, for which there is room.
    pub(super) fn put_behind<T: Copy>(&mut self, value: T, layout: &Layout, behind: &[u8]) {
        let mut bytes = bytes_of_members(&value, layout);
        bytes.extend(as_uninit(behind));
        self.write(&bytes);
    }

    /// Writes settings, and `otherwise` where they say nothing.
    ///
    /// # Errors
    /// As [`Room::need_grown`] has them.
    pub(super) fn put_settings(
        &mut self,
        own: &SettingValues,
        otherwise: &SettingValues,
    ) -> Result<(), Status> {
        self.need_grown(Settings::MIN_SIZE, size_of::<Settings>())?;
        let mut bytes = vec![0; self.bytes().min(size_of::<Settings>())];
        own.write(otherwise, &mut bytes);
        self.write(as_uninit(&bytes));
        Ok(())
    }

    /// Says that there is nothing.
    pub(super) const fn put_nothing(&mut self) {
        *self.length = 0;
    }

    fn write(&mut self, bytes: &[MaybeUninit<u8>]) {
        let Some(buffer) = self.buffer.as_deref_mut() else { return };
        buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        *self.length = u32::try_from(bytes.len().min(buffer.len())).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Layout = Layout { c_name: "", size: 0, fields: &[], bits: &[] };

    /// What a program gets that has so much room for what `write` writes.
    fn ask(
        room: usize,
        write: impl FnOnce(&mut Room<'_>) -> Result<(), Status>,
    ) -> (Result<(), Status>, Vec<u8>) {
        let (mut buffer, mut length) = (vec![MaybeUninit::new(0xa5); 64], room as u32);
        let outcome = write(&mut Room::new(&mut length, Some(&mut buffer[..room])));
        // SAFETY: all bytes had a value at first.
        let bytes = buffer.iter().map(|byte| unsafe { byte.assume_init() });
        (outcome, bytes.take(length as usize).collect())
    }

    #[test]
    fn a_value_needs_its_room_and_takes_no_more() {
        assert_eq!(ask(4, |room| room.put(7_u16)), (Ok(()), vec![7, 0]));
        assert_eq!(ask(1, |room| room.put(7_u16)), (Err(Status::BUFFER_TOO_SMALL), vec![0xa5; 2]));
        assert_eq!(ask(3, |room| room.put_bytes(b"four")).0, Err(Status::BUFFER_TOO_SMALL));
    }

    #[test]
    fn too_little_room_is_said_first_and_nowhere_to_write_then() {
        for (mut length, status) in [(1, Status::BUFFER_TOO_SMALL), (2, Status::INVALID_PARAMETER)] {
            assert_eq!(Room::new(&mut length, None).put(7_u16), Err(status));
            assert_eq!(length, 2);
        }
    }

    #[test]
    fn of_what_has_grown_a_part_will_do() {
        let grown = |room: &mut Room<'_>| {
            room.need_grown(4, 8)?;
            room.put_behind((), &NOTHING, &[0xff; 8]);
            Ok(())
        };
        assert_eq!(ask(0, grown).1.len(), 8);
        assert_eq!(ask(3, grown), (Err(Status::BUFFER_TOO_SMALL), vec![0xa5; 4]));
        assert_eq!(ask(5, grown), (Ok(()), vec![0xff; 5]));
        assert_eq!(ask(9, grown), (Ok(()), vec![0xff; 8]));
    }
}
