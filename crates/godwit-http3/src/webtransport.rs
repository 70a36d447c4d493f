//! The numbers of WebTransport over HTTP/3 (draft-ietf-webtrans-http3), and how its error codes become those of HTTP/3.
//!
//! Drafts differ in how support is announced; all of them are understood, and announced, side by side. Streams, capsules
//! and error codes have been the same since draft 2.

use crate::error::ErrorCode;

/// The name in `:protocol`.
pub const PROTOCOL: &str = "webtransport";

/// The type of a unidirectional stream of a session.
pub(crate) const UNI_STREAM: u64 = 0x54;

/// What a bidirectional stream of a session begins with, as the type of a frame.
pub(crate) const BIDI_STREAM: u64 = 0x41;

/// The first of the HTTP/3 error codes for applications.
const FIRST_CODE: u64 = 0x52e4_a40f_a8db;
/// The last of them.
const LAST_CODE: u64 = 0x52e5_ac98_3162;

/// The HTTP/3 error code for an application's code.
pub const fn to_http3(code: u32) -> ErrorCode {
    // One code in 31 is reserved to be ignored (RFC 9114 section 8.1).
    let code = code as u64;
    ErrorCode(FIRST_CODE.saturating_add(code).saturating_add(code / 0x1e))
}

/// The application's code that an HTTP/3 error code stands for, if it is one.
pub const fn from_http3(code: u64) -> Option<u32> {
    if code < FIRST_CODE || code > LAST_CODE || code.wrapping_sub(0x21).is_multiple_of(0x1f) {
        return None;
    }
    let shifted = code.wrapping_sub(FIRST_CODE);
    // It fits, for the range is not longer.
    Some(shifted.wrapping_sub(shifted / 0x1f) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_and_skip_those_that_are_reserved() {
        for code in (0..=1000).chain([u32::MAX - 1000, u32::MAX / 2, u32::MAX - 1, u32::MAX]) {
            let wire = to_http3(code).value();
            assert!(!(wire - 0x21).is_multiple_of(0x1f), "{code}");
            assert_eq!(from_http3(wire), Some(code));
        }
        assert_eq!(to_http3(0).value(), 0x52e4_a40f_a8db);
        assert_eq!(to_http3(u32::MAX).value(), 0x52e5_ac98_3162);
        assert_eq!(from_http3(to_http3(u32::MAX).value() + 1), None);
        assert_eq!(from_http3(to_http3(0).value() - 1), None);
        assert_eq!(from_http3(0x100), None);
        let between = (to_http3(0).value()..to_http3(60).value()).filter(|code| from_http3(*code).is_none());
        assert_eq!(between.count(), 2);
    }
}
