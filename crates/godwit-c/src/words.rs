//! Text in fixed room and numbers, as C wants them, and what does not change: names of statuses and the version.

use crate::abi;
use http::Version;
use std::ffi::c_char;
use std::fmt::Display;
use std::time::Duration;

/// Text with a zero byte at its end, and its length: what does not fit is left away, at the border of a letter. Zero bytes
/// in it become question marks, so that nobody takes it for shorter than it is.
pub(crate) fn fixed<const ROOM: usize>(text: &str) -> ([u8; ROOM], usize) {
    let mut place = [0; ROOM];
    let length = text.floor_char_boundary(ROOM.saturating_sub(1));
    for (to, from) in place.iter_mut().zip(text.bytes().take(length)) {
        *to = if from == 0 { b'?' } else { from };
    }
    (place, length)
}

/// An address, or nothing.
pub(crate) fn address<const ROOM: usize>(address: Option<impl Display>) -> [u8; ROOM] {
    address.map_or([0; ROOM], |address| fixed(&address.to_string()).0)
}

/// Nanoseconds, as far as they go.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// As the header numbers versions of HTTP.
pub(crate) fn protocol(version: Version) -> u32 {
    match version {
        Version::HTTP_09 | Version::HTTP_10 => abi::HTTP_1_0,
        Version::HTTP_2 => abi::HTTP_2,
        Version::HTTP_3 => abi::HTTP_3,
        _ => abi::HTTP_1_1,
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn godwit_status_name(status: i32) -> *const c_char {
    let found = abi::STATUSES.iter().find(|(known, _)| *known == status);
    found.map_or(c"GODWIT_ERROR_UNKNOWN", |(_, name)| name).as_ptr()
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn godwit_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn what_does_not_fit_is_left_away_at_the_border_of_a_letter() {
        assert_eq!(fixed::<8>("abc"), (*b"abc\0\0\0\0\0", 3));
        assert_eq!(fixed::<4>("abcd"), (*b"abc\0", 3));
        assert_eq!(fixed::<4>("ab\u{e9}"), (*b"ab\0\0", 2));
        assert_eq!(fixed::<4>("a\0b"), (*b"a?b\0", 3));
    }

    #[test]
    fn names_are_those_of_the_header() {
        // SAFETY: these are texts.
        let name = |status| unsafe { CStr::from_ptr(godwit_status_name(status)) };
        assert_eq!(name(0), c"GODWIT_OK");
        assert_eq!(name(abi::ERROR_INTERNAL), c"GODWIT_ERROR_INTERNAL");
        assert_eq!(name(-1), c"GODWIT_ERROR_UNKNOWN");
        // SAFETY: as above.
        let version = unsafe { CStr::from_ptr(godwit_version()) };
        assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
