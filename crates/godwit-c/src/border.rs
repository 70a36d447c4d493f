//! The border: what is around every function, so that each failure is told and no panic gets out.

use crate::abi::{self, Plain};
use crate::failure::Failure;
use crate::given;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does something for C, and says what came of it.
///
/// # Safety
/// `error` is null, or there is a `godwit_error` as long as its size says.
pub(crate) unsafe fn call(error: *mut abi::Error, act: impl FnOnce() -> Result<(), Failure>) -> i32 {
    // SAFETY: the caller's promise.
    if !error.is_null() && unsafe { given::room(error) }.is_err() {
        return abi::ERROR_SIZE;
    }
    let outcome = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        let text = format!("a defect of the library, which is to be reported: {words}");
        Err(Failure::new(abi::ERROR_INTERNAL, text))
    });
    let status = outcome.as_ref().map_or_else(|failure| failure.status, |()| abi::OK);
    if !error.is_null() {
        let told = outcome.map_or_else(|failure| failure.to_abi(), |()| abi::Error::zeroed());
        // SAFETY: the caller's promise.
        unsafe { tell(error, told) };
    }
    status
}

/// Writes an error where there may be less room than for all of its message, which stands at its end.
///
/// # Safety
/// There is a `godwit_error` as long as its size says, and that will do.
unsafe fn tell(place: *mut abi::Error, mut told: abi::Error) {
    // SAFETY: its size is the first thing in it.
    let room = unsafe { (*place).size } as usize;
    let message = room.saturating_sub(std::mem::offset_of!(abi::Error, message));
    if let Some(left) = told.message.get(..message).filter(|_| (told.message_length as usize) >= message) {
        let text = String::from_utf8_lossy(left).into_owned();
        let fits = text.floor_char_boundary(message.saturating_sub(1));
        told.message_length = fits as u32;
        told.message.iter_mut().skip(fits).for_each(|byte| *byte = 0);
    }
    // SAFETY: the caller's promise.
    let _ = unsafe { given::give(place, &told) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_and_words() {
        let mut error = abi::Error::zeroed();
        // SAFETY: there is one.
        let status = unsafe { call(&mut error, || panic!("on purpose")) };
        assert_eq!((status, error.status), (abi::ERROR_INTERNAL, abi::ERROR_INTERNAL));
        let text = String::from_utf8_lossy(&error.message);
        assert!(text.contains("on purpose"), "{text}");
        // SAFETY: as above.
        assert_eq!(unsafe { call(&mut error, || Ok(())) }, abi::OK);
        assert_eq!((error.status, error.message_length, error.message[0]), (abi::OK, 0, 0));
    }

    #[test]
    fn a_short_error_gets_a_short_message_and_a_shorter_one_nothing() {
        let mut error = abi::Error::zeroed();
        error.message = [b'x'; 484];
        error.size = 36;
        let fail = || Err(Failure::argument("something that is longer than eight letters"));
        // SAFETY: there is one.
        assert_eq!(unsafe { call(&mut error, fail) }, abi::ERROR_ARGUMENT);
        assert_eq!((&error.message[..9], error.message_length), (&b"somethi\0x"[..], 7));
        error.size = 31;
        // SAFETY: as above.
        assert_eq!(unsafe { call(&mut error, fail) }, abi::ERROR_SIZE);
    }
}
