//! Version numbers (RFC 9000 section 15, RFC 9369).
//!
//! Two versions from before the standard are known as well, for programs that still ask for them. They are spoken only where
//! that is said: an endpoint's own list has versions 1 and 2.

/// QUIC version 1 (RFC 9000).
pub const V1: u32 = 1;
/// QUIC version 2 (RFC 9369).
pub const V2: u32 = 0x6b33_43cf;
/// The last draft that was widely deployed (draft-ietf-quic-transport-29).
pub const DRAFT_29: u32 = 0xff00_001d;
/// The same under the number that MsQuic has for it.
pub const MSQUIC_1: u32 = 0xabcd_0000;
/// The version field of a Version Negotiation packet.
pub const NEGOTIATION: u32 = 0;

/// True for the versions whose packets this crate can read.
pub const fn is_known(version: u32) -> bool {
    matches!(version, V1 | V2 | DRAFT_29 | MSQUIC_1)
}

/// Whether a handshake begun in the one version can go on in the other (RFC 9368 section 2.2, RFC 9369 section 4). Those from
/// before the standard carry transport parameters elsewhere.
pub const fn are_compatible(one: u32, other: u32) -> bool {
    matches!((one, other), (V1 | V2, V1 | V2) | (DRAFT_29, DRAFT_29) | (MSQUIC_1, MSQUIC_1))
}

/// True for the versions that stand for none and are there to be ignored: 0x?a?a?a?a.
pub const fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// The reserved version that keeps the free bits of `seed`.
pub const fn greased(seed: u32) -> u32 {
    seed & 0xf0f0_f0f0 | 0x0a0a_0a0a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greased_versions_are_reserved_and_no_others_are() {
        assert!((0..64).all(|bit| is_reserved(greased(1 << (bit % 32)))));
        assert!(
            [NEGOTIATION, V1, V2, DRAFT_29, MSQUIC_1, 0x0a0a_0a0b]
                .iter()
                .all(|version| !is_reserved(*version))
        );
    }
}
