//! What everything else is made of: handles, truth, 62-bit integers, buffers, and the limits of lengths.

use super::layout::{layout, numbers};

/// What a [`Handle`] points to, of which the application knows nothing.
///
/// In C: `struct QUIC_HANDLE`.
#[repr(C)]
#[derive(Debug)]
pub struct Opaque {
    nothing: [u8; 0],
}

/// A registration, configuration, listener, connection or stream, as the application holds it.
///
/// In C: `HQUIC`.
pub type Handle = *mut Opaque;

/// A number of up to 62 bits: stream ids and the error codes of applications (RFC 9000, section 16).
///
/// In C: `QUIC_UINT62`.
pub type Uint62 = u64;

/// Yes or no in a byte; every value but 0 is yes.
///
/// In C: `BOOLEAN`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Boolean(pub u8);

impl Boolean {
    /// No. In C: `FALSE`.
    pub const FALSE: Self = Self(0);
    /// Yes. In C: `TRUE`.
    pub const TRUE: Self = Self(1);

    /// Whether it is yes.
    pub const fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Boolean {
    fn from(yes: bool) -> Self {
        Self(yes.into())
    }
}

impl PartialEq for Boolean {
    fn eq(&self, other: &Self) -> bool {
        self.is_true() == other.is_true()
    }
}

impl Eq for Boolean {}

/// One piece of memory.
///
/// In C: `QUIC_BUFFER`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    /// Bytes in it.
    pub length: u32,
    /// Where it begins. Whoever sends only reads there.
    pub buffer: *mut u8,
}

layout! { Buffer, "QUIC_BUFFER", 16 { length, "Length", 0; buffer, "Buffer", 8; } }

numbers! {
    /// The largest of numbers that have a limit of their own.
    UINT62: Uint62 {
        /// The largest number of 62 bits.
        UINT62_MAX = (1 << 62) - 1, "QUIC_UINT62_MAX";
    }
}

numbers! {
    /// The limits of lengths, in bytes but for the number of ticket keys, and the versions of the function table.
    LIMITS: u32 {
        /// The longest ALPN; none is empty.
        MAX_ALPN_LENGTH = 255, "QUIC_MAX_ALPN_LENGTH";
        /// The longest server name.
        MAX_SNI_LENGTH = 65_535, "QUIC_MAX_SNI_LENGTH";
        /// The most that a server may put into a resumption ticket.
        MAX_RESUMPTION_APP_DATA_LENGTH = 1000, "QUIC_MAX_RESUMPTION_APP_DATA_LENGTH";
        /// The length of the key for stateless resets, which is always this.
        STATELESS_RESET_KEY_LENGTH = 32, "QUIC_STATELESS_RESET_KEY_LENGTH";
        /// How many keys for tickets a configuration may have.
        MAX_TICKET_KEY_COUNT = 16, "QUIC_MAX_TICKET_KEY_COUNT";
        /// The longest secret in [`TlsSecrets`](super::TlsSecrets).
        TLS_SECRETS_MAX_SECRET_LENGTH = 64, "QUIC_TLS_SECRETS_MAX_SECRET_LEN";
        /// The first version of the function table, which is refused.
        API_VERSION_1 = 1, "QUIC_API_VERSION_1";
        /// The version of [`ApiTable`](super::ApiTable).
        API_VERSION_2 = 2, "QUIC_API_VERSION_2";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_but_zero_is_yes() {
        assert_eq!(Boolean::from(true), Boolean(7));
        assert_eq!(Boolean::from(false), Boolean::FALSE);
        assert_ne!(Boolean(2), Boolean::FALSE);
    }
}
