//! What a program sets a parameter to.

use crate::abi::plain::{Plain, read};
use crate::abi::{Boolean, Status};
use std::ptr::NonNull;

/// The program's memory with a value in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    /// None if the program has given no place, whatever it says of the length.
    bytes: Option<&'a [u8]>,
    length: u32,
}

impl<'a> Given<'a> {
    pub(crate) const fn new(bytes: Option<&'a [u8]>, length: u32) -> Self {
        Given { bytes, length }
    }

    /// How many bytes the program says there are.
    pub(super) const fn length(&self) -> usize {
        self.length as usize
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if there are none.
    pub(super) fn bytes(&self) -> Result<&'a [u8], Status> {
        self.bytes.ok_or(Status::INVALID_PARAMETER)
    }

    /// That it is as long as such a value, which is looked at before anything else.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if it is not.
    pub(super) fn is_of<T: Plain>(&self) -> Result<(), Status> {
        if self.length() == size_of::<T>() { Ok(()) } else { Err(Status::INVALID_PARAMETER) }
    }

    /// The value, which is all that there is.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if the length is another, or there is nothing.
    pub(super) fn exactly<T: Plain>(&self) -> Result<T, Status> {
        self.is_of::<T>()?;
        self.at_least()
    }

    /// The value with which it begins.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if there is less.
    pub(super) fn at_least<T: Plain>(&self) -> Result<T, Status> {
        read(self.bytes()?).ok_or(Status::INVALID_PARAMETER)
    }

    /// Where such a value is, which is all that there is.
    pub(super) fn place<T>(&self) -> Option<NonNull<T>> {
        let bytes = self.bytes.filter(|bytes| bytes.len() == size_of::<T>())?;
        NonNull::new(bytes.as_ptr().cast_mut().cast())
    }

    /// Yes or no, which is all that there is.
    ///
    /// # Errors
    /// As [`Given::exactly`] has them.
    pub(super) fn yes_or_no(&self) -> Result<bool, Status> {
        self.exactly::<u8>().map(|byte| Boolean(byte).is_true())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_length() {
        let given = |bytes: &'static [u8]| Given::new(Some(bytes), bytes.len() as u32);
        assert_eq!(given(&[1, 2]).exactly::<u16>(), Ok(0x0201));
        for wrong in [&[][..], &[1], &[1, 2, 3]] {
            assert_eq!(given(wrong).exactly::<u16>(), Err(Status::INVALID_PARAMETER));
        }
        assert_eq!(given(&[1, 2, 3]).at_least::<u16>(), Ok(0x0201));
        assert_eq!(given(&[1]).at_least::<u16>(), Err(Status::INVALID_PARAMETER));
        assert_eq!((given(&[9]).yes_or_no(), given(&[0]).yes_or_no()), (Ok(true), Ok(false)));
    }

    #[test]
    fn a_length_without_a_value_is_none() {
        let nowhere = Given::new(None, 2);
        assert_eq!(nowhere.is_of::<u16>(), Ok(()));
        assert_eq!(nowhere.exactly::<u16>(), Err(Status::INVALID_PARAMETER));
        assert_eq!(nowhere.bytes(), Err(Status::INVALID_PARAMETER));
    }
}
