//! Which bytes a packet carried, as loss recovery remembers it.

use super::parts::RecoveryToken;
use crate::handshake::{CryptoToken, Level};
use crate::streams::StreamToken;

/// What a packet carried that somebody waits for: of which stream of bytes, from where to where.
pub(super) fn range(token: &RecoveryToken) -> Option<(u64, u64, u64)> {
    let (of, offset, len) = match token {
        RecoveryToken::Crypto(CryptoToken { level: Level::Initial, offset, len }) => (u64::MAX, offset, len),
        RecoveryToken::Crypto(CryptoToken { level: Level::Handshake, offset, len }) => {
            (u64::MAX.saturating_sub(1), offset, len)
        }
        RecoveryToken::Stream(StreamToken::Data { id, offset, len, .. }) => (id.as_u64(), offset, len),
        _ => return None,
    };
    Some((of, *offset, offset.saturating_add(u64::from(*len))))
}

/// Whether two packets carried some of the same bytes that somebody waits for.
pub(super) fn overlap(one: &RecoveryToken, other: &RecoveryToken) -> bool {
    let (Some((of, from, to)), Some((of_other, from_other, to_other))) = (range(one), range(other)) else {
        return false;
    };
    of == of_other && from < to_other && from_other < to
}
