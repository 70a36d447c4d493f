//! Keys that follow from what anyone can see: those of Initial packets (RFC 9001 section 5.2, RFC 9369
//! section 3.3) and the integrity tag of Retry packets (RFC 9001 section 5.8, RFC 9369 section 3.3.3).

use super::{LevelKeys, Schedule, TAG_LEN};
use crate::crypto::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use crate::crypto::hmac::HMAC_SHA256;
use crate::key_derivation::Expander;
use godwit_wire::version::{DRAFT_29, MSQUIC_1, V1, V2, is_reserved};
use godwit_wire::{ConnectionId, Side};
use rustls::CipherSuite;
use rustls::quic::Version;

/// RFC 9001 section 5.2.
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];

/// RFC 9369 section 3.3.1.
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
    0xbd, 0x2e, 0xd9,
];

/// draft-ietf-quic-tls-29 section 5.2.
const SALT_DRAFT_29: [u8; 20] = [
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0, 0x43,
    0x90, 0xa8, 0x99,
];

/// The QUIC version as rustls names it, or `None` for one that is not spoken.
///
/// A reserved version is begun with as version 1 is: no server reads that far.
pub const fn tls_version(version: u32) -> Option<Version> {
    match version {
        V1 => Some(Version::V1),
        V2 => Some(Version::V2),
        DRAFT_29 | MSQUIC_1 => Some(Version::V1Draft),
        _ if is_reserved(version) => Some(Version::V1),
        _ => None,
    }
}

/// The keys of Initial packets on `side`, from the Destination Connection ID of the client's first Initial
/// packet (after a Retry: of the first one that answers it). `None` if `version` is not spoken.
pub fn initial(version: u32, client_dcid: &ConnectionId, side: Side) -> Option<LevelKeys> {
    let salt: &[u8] = match version {
        V1 => &SALT_V1,
        V2 => &SALT_V2,
        DRAFT_29 | MSQUIC_1 => &SALT_DRAFT_29,
        _ if is_reserved(version) => &SALT_V1,
        _ => return None,
    };
    let schedule = Schedule::new(CipherSuite::TLS13_AES_128_GCM_SHA256, version)?;
    let common = Expander::extract(HMAC_SHA256, Some(salt), client_dcid.as_bytes());
    let (mut client, mut server) = ([0; 32], [0; 32]);
    common.expand_label(b"client in", &[], &mut client)?;
    common.expand_label(b"server in", &[], &mut server)?;
    Some(match side {
        Side::Client => schedule.level_keys(&client, &server),
        Side::Server => schedule.level_keys(&server, &client),
    })
}

/// The tag that ends a Retry packet: `retry` is the packet up to the tag, `original_dcid` the Destination
/// Connection ID of the Initial packet it answers. `None` if `version` is not spoken.
pub fn retry_integrity_tag(
    version: u32,
    original_dcid: &ConnectionId,
    retry: &[u8],
) -> Option<[u8; TAG_LEN]> {
    let (key, nonce) = match version {
        V1 => (
            0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128,
            [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb],
        ),
        V2 => (
            0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92_u128,
            [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a],
        ),
        // draft-ietf-quic-tls-29 section 5.8.
        DRAFT_29 | MSQUIC_1 => (
            0xccce_187e_d09a_09d0_5728_155a_6cb9_6be1_u128,
            [0xe5, 0x49, 0x30, 0xf9, 0x7f, 0x21, 0x36, 0xf0, 0x53, 0x0a, 0x8c, 0x1c],
        ),
        _ => return None,
    };
    let cid = original_dcid.as_bytes();
    let mut pseudo_packet = Vec::with_capacity(retry.len().saturating_add(cid.len()).saturating_add(1));
    pseudo_packet.push(u8::try_from(cid.len()).ok()?);
    pseudo_packet.extend_from_slice(cid);
    pseudo_packet.extend_from_slice(retry);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key.to_be_bytes()).ok()?);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&pseudo_packet), &mut []).ok()?;
    tag.as_ref().try_into().ok()
}
