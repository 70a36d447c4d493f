//! Packet and header protection (RFC 9001 sections 5 and 6).
//!
//! An [`Opener`] and a [`Sealer`] protect payloads, a [`HeaderOpener`] and a [`HeaderSealer`] protect
//! packet numbers; [`LevelKeys`] are the four of one encryption level. The 1-RTT level has keys that
//! change: see [`OneRtt`]. Everything works in place and nothing here allocates per packet.

mod apart;
mod header;
mod initial;
mod one_rtt;
mod schedule;
#[cfg(test)]
mod test_vectors;
#[cfg(test)]
mod tests;

pub use apart::{ProtectionKeys, UnprotectedPacket};
pub use header::{HeaderOpener, HeaderSealer, Mask, MasksAhead, PacketSpan};
pub use initial::{initial, retry_integrity_tag, tls_version};
pub use one_rtt::{KeysUsed, OneRtt};
pub use schedule::{Ratchet, Schedule};

use crate::provider::{self, FoundPacketKey};
use rustls::SupportedCipherSuite;
use rustls::quic::{DirectionalKeys, Keys, PacketKey};
use std::fmt;

/// Bytes that sealing adds to a payload: the tag of every AEAD that QUIC uses.
pub const TAG_LEN: usize = 16;

/// A packet could not be protected: the buffer is too small for what was asked, or the AEAD failed.
/// Either is a defect at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealFailed;

/// The keys of one encryption level, in both directions.
pub struct LevelKeys {
    /// Opens received payloads.
    pub opener: Opener,
    /// Seals payloads to send.
    pub sealer: Sealer,
    /// Removes header protection.
    pub header_opener: HeaderOpener,
    /// Adds header protection.
    pub header_sealer: HeaderSealer,
}

impl LevelKeys {
    /// Whether they are our provider's, and were laid aside on their way out of TLS.
    pub(crate) const fn are_laid_aside(&self) -> bool {
        matches!(self.sealer.key, FoundPacketKey::Ours(_))
    }

    /// From what TLS gives, best within [`from_tls`].
    pub fn new(keys: Keys) -> Self {
        LevelKeys {
            opener: Opener::new(provider::found_packet_key(keys.remote.packet)),
            sealer: Sealer::new(provider::found_packet_key(keys.local.packet)),
            header_opener: HeaderOpener::new(provider::found_header_key(keys.remote.header)),
            header_sealer: HeaderSealer::new(provider::found_header_key(keys.local.header)),
        }
    }
}

impl fmt::Debug for LevelKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LevelKeys(..)")
    }
}

/// The keys of 0-RTT packets, which only clients send (RFC 9001 section 5.6).
pub enum EarlyKeys {
    /// A client's.
    Seal {
        /// Seals payloads to send.
        sealer: Sealer,
        /// Adds header protection.
        header_sealer: HeaderSealer,
    },
    /// A server's.
    Open {
        /// Opens received payloads.
        opener: Opener,
        /// Removes header protection.
        header_opener: HeaderOpener,
    },
}

impl EarlyKeys {
    /// From what TLS gives to a client (`sealing`) or a server, best within [`from_tls`].
    pub fn new(keys: DirectionalKeys, sealing: bool) -> Self {
        let header = provider::found_header_key(keys.header);
        let key = provider::found_packet_key(keys.packet);
        if sealing {
            EarlyKeys::Seal { sealer: Sealer::new(key), header_sealer: HeaderSealer::new(header) }
        } else {
            EarlyKeys::Open { opener: Opener::new(key), header_opener: HeaderOpener::new(header) }
        }
    }
}

impl fmt::Debug for EarlyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlyKeys(..)")
    }
}

/// Has TLS make keys and calls [`LevelKeys::new`] or its like with them, both in `act`: they then come without an
/// allocation for each, and can be [forgotten](OneRtt::forget) while they are of no use.
///
/// That is so for the `suite` of the handshake if it is one of our provider's. Whoever puts something of his own before our
/// protection of packets has it used.
pub fn from_tls<R>(suite: Option<SupportedCipherSuite>, act: impl FnOnce() -> R) -> R {
    if suite.is_some_and(provider::is_ours) { provider::laying_aside(act) } else { act() }
}

/// Removes packet protection.
pub struct Opener {
    key: FoundPacketKey,
}

impl Opener {
    const fn new(key: FoundPacketKey) -> Self {
        Opener { key }
    }

    /// Decrypts `payload`, whose last [`TAG_LEN`] bytes are the tag, in place. Returns how many bytes at
    /// its front are plaintext, or `None` if it is not authentic (its bytes are then worthless).
    ///
    /// `header` is the whole header, unprotected, up to and with the packet number. `path` is the path id
    /// of multipath QUIC, 0 without it.
    #[inline]
    pub fn open(&self, path: u32, pn: u64, header: &[u8], payload: &mut [u8]) -> Option<usize> {
        let plain = match (&self.key, path) {
            (FoundPacketKey::Ours(key), 0) => key.decrypt_in_place(pn, header, payload),
            (key, 0) => key.any().decrypt_in_place(pn, header, payload),
            (key, _) => key.any().decrypt_in_place_for_path(path, pn, header, payload),
        };
        plain.ok().map(<[u8]>::len)
    }

    /// Forged packets that may be tried on a connection that uses this AEAD (RFC 9001 section 6.6).
    #[inline]
    pub fn integrity_limit(&self) -> u64 {
        self.key.any().integrity_limit()
    }
}

/// Adds packet protection.
pub struct Sealer {
    key: FoundPacketKey,
}

impl Sealer {
    const fn new(key: FoundPacketKey) -> Self {
        Sealer { key }
    }

    /// The same once more, if the key can be copied.
    fn another(&self) -> Option<Self> {
        self.key.another().map(Sealer::new)
    }

    /// Encrypts all but the last [`TAG_LEN`] bytes of `payload_and_tag_room` in place and puts the tag
    /// into those.
    ///
    /// `header` is the whole header, unprotected, up to and with the packet number. A packet number must
    /// never be used twice on a path.
    #[inline]
    pub fn seal(
        &self,
        path: u32,
        pn: u64,
        header: &[u8],
        payload_and_tag_room: &mut [u8],
    ) -> Result<(), SealFailed> {
        let (payload, room) = payload_and_tag_room.split_last_chunk_mut::<TAG_LEN>().ok_or(SealFailed)?;
        let tag = match (&self.key, path) {
            (FoundPacketKey::Ours(key), 0) => key.encrypt_in_place(pn, header, payload),
            (key, 0) => key.any().encrypt_in_place(pn, header, payload),
            (key, _) => key.any().encrypt_in_place_for_path(path, pn, header, payload),
        };
        let tag = tag.map_err(|_| SealFailed)?;
        *room = tag.as_ref().try_into().map_err(|_| SealFailed)?;
        Ok(())
    }

    /// Packets that may be sealed with this key (RFC 9001 section 6.6).
    #[inline]
    pub fn confidentiality_limit(&self) -> u64 {
        self.key.any().confidentiality_limit()
    }
}
