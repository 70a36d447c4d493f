//! Connection ids (RFC 9000 section 5.1) and stateless reset tokens (section 10.3).

use crate::constants::RESET_TOKEN_LEN;
use std::fmt;

/// A connection id of 0 to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; Self::MAX_LEN],
}

impl ConnectionId {
    /// The longest connection id of versions 1 and 2.
    pub const MAX_LEN: usize = 20;
    /// The zero-length connection id.
    pub const EMPTY: ConnectionId = ConnectionId { len: 0, bytes: [0; Self::MAX_LEN] };

    /// From its bytes; `None` if there are more than 20.
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut cid = Self::EMPTY;
        cid.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        cid.len = u8::try_from(bytes.len()).ok()?;
        Some(cid)
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Its length in bytes.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True for the zero-length connection id.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A stateless reset token: 16 bytes that let an endpoint without state end a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResetToken(pub [u8; RESET_TOKEN_LEN]);

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A secret: whoever knows it can end the connection.
        f.write_str("ResetToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_0_to_20() {
        let bytes = [0xab; 21];
        for len in 0..=20 {
            let (bytes, _) = bytes.split_at(len);
            let cid = ConnectionId::new(bytes).unwrap();
            assert_eq!((cid.as_bytes(), cid.len(), cid.is_empty()), (bytes, len, len == 0));
            assert_eq!(cid.to_string(), "ab".repeat(len));
        }
        assert_eq!(ConnectionId::new(&bytes), None);
    }

    #[test]
    fn tokens_are_not_printed() {
        assert_eq!(format!("{:?}", ResetToken([7; 16])), "ResetToken(..)");
    }
}
