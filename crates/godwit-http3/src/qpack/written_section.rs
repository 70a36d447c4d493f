//! What is known of a field section when it has been written: what it needs of the dynamic table (RFC 9204 section 4.5.1).

use super::prefix_int;
use bytes::BufMut;

/// A section that has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The Required Insert Count.
    pub(super) required: u64,
    /// The oldest entry referred to, if there is any.
    pub(super) oldest: u64,
    /// The Required Insert Count as it stands on the wire.
    encoded: u64,
    base: u64,
}

impl Written {
    /// Where the peer's table has at most so many entries.
    pub(super) fn new(required: u64, oldest: u64, base: u64, max_entries: u64) -> Self {
        let encoded = match required.checked_rem(max_entries.saturating_mul(2)) {
            Some(wrapped) if required > 0 => wrapped.saturating_add(1),
            _ => 0,
        };
        Written { required, oldest, encoded, base }
    }

    /// Bytes that [`Written::put_prefix`] appends.
    pub fn prefix_len(&self) -> usize {
        prefix_int::encoded_len(self.encoded, 8).saturating_add(prefix_int::encoded_len(self.delta().0, 7))
    }

    /// Appends what stands before the field lines (section 4.5.1).
    pub fn put_prefix(&self, out: &mut impl BufMut) {
        prefix_int::encode(self.encoded, 8, 0, out);
        let (delta, sign) = self.delta();
        prefix_int::encode(delta, 7, sign, out);
    }

    /// The Base on the wire: how far it is from the Required Insert Count, and the bit that says on which side.
    fn delta(&self) -> (u64, u8) {
        match self.base.checked_sub(self.required) {
            _ if self.required == 0 => (0, 0),
            Some(delta) => (delta, 0),
            None => (self.required.saturating_sub(self.base).saturating_sub(1), 0b1000_0000),
        }
    }
}
