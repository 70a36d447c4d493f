//! Error codes of applications.

use godwit_wire::codec::VARINT_MAX;
use std::fmt;

/// An application's error code, with which it closes connections and gives up streams: below 2^62, because that is what
/// frames can carry (RFC 9000 section 20.2).
///
/// Numbers of 32 bits always are such codes, also where a plain number stands in a program; larger ones are
/// [tried](TryFrom).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ApplicationCode(u64);

/// A number that is no [`ApplicationCode`]: 2^62 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeTooLarge(u64);

impl ApplicationCode {
    /// The number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl From<u32> for ApplicationCode {
    fn from(code: u32) -> Self {
        ApplicationCode(code.into())
    }
}

impl TryFrom<u64> for ApplicationCode {
    type Error = CodeTooLarge;

    fn try_from(code: u64) -> Result<Self, CodeTooLarge> {
        if code <= VARINT_MAX { Ok(ApplicationCode(code)) } else { Err(CodeTooLarge(code)) }
    }
}

/// What came from a peer, or has a name, is below 2^62.
#[cfg(feature = "http3")]
impl From<godwit_http3::ErrorCode> for ApplicationCode {
    fn from(code: godwit_http3::ErrorCode) -> Self {
        ApplicationCode(code.value())
    }
}

impl From<ApplicationCode> for u64 {
    fn from(code: ApplicationCode) -> u64 {
        code.0
    }
}

impl fmt::Display for CodeTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an error code must be below 2^62, and {} is not", self.0)
    }
}

impl std::error::Error for CodeTooLarge {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_frame_cannot_carry_is_refused() {
        assert_eq!(ApplicationCode::from(7), ApplicationCode::try_from(7_u64).unwrap());
        assert_eq!(ApplicationCode::try_from(VARINT_MAX).unwrap().value(), VARINT_MAX);
        let error = ApplicationCode::try_from(VARINT_MAX + 1).unwrap_err();
        assert_eq!(error.to_string(), "an error code must be below 2^62, and 4611686018427387904 is not");
    }
}
