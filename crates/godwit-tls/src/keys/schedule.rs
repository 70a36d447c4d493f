//! The keys that follow from TLS's secrets (RFC 9001 sections 5.1 and 6.1, RFC 9369 section 3.3), derived here
//! rather than by rustls: those of Initial packets and of later key phases, and all of a client that has moved to another
//! version than the one its TLS was begun with.

use super::{HeaderOpener, HeaderSealer, LevelKeys, Opener, Sealer};
use crate::crypto::hmac::Algorithm;
use crate::key_derivation::{Expander, MAX_BLOCK};
use crate::provider::{self, AeadPacketKey, FoundHeaderKey, FoundPacketKey, HeaderKey, Protection};
use crate::secret_tap::Secret;
use godwit_wire::version::{DRAFT_29, MSQUIC_1, V1, V2, is_reserved};
use rustls::CipherSuite;
use rustls::crypto::cipher::Iv;
use std::fmt;
use zeroize::Zeroize;

/// Bytes of the longest key.
const MAX_KEY: usize = 32;

/// What a version calls its keys.
#[derive(Debug, Clone, Copy)]
struct Labels {
    key: &'static [u8],
    iv: &'static [u8],
    header: &'static [u8],
    update: &'static [u8],
}

static LABELS_V1: Labels =
    Labels { key: b"quic key", iv: b"quic iv", header: b"quic hp", update: b"quic ku" };
static LABELS_V2: Labels =
    Labels { key: b"quicv2 key", iv: b"quicv2 iv", header: b"quicv2 hp", update: b"quicv2 ku" };

/// How a cipher suite and a version turn secrets into keys.
#[derive(Clone, Copy)]
pub struct Schedule {
    protection: &'static Protection,
    hash: Algorithm,
    labels: &'static Labels,
}

impl Schedule {
    /// `None` for a suite or a version that is not known.
    pub fn new(suite: CipherSuite, version: u32) -> Option<Self> {
        let (protection, hash) = provider::protection(suite)?;
        let labels = match version {
            V2 => &LABELS_V2,
            V1 | DRAFT_29 | MSQUIC_1 => &LABELS_V1,
            _ if is_reserved(version) => &LABELS_V1,
            _ => return None,
        };
        Some(Schedule { protection, hash, labels })
    }

    /// The keys of a level, from this end's traffic secret and the peer's.
    pub fn level_keys(&self, local: &[u8], remote: &[u8]) -> LevelKeys {
        let (local, remote) = (Expander::new(self.hash, local), Expander::new(self.hash, remote));
        LevelKeys {
            opener: Opener::new(self.packet_key(&remote)),
            sealer: Sealer::new(self.packet_key(&local)),
            header_opener: HeaderOpener::new(self.header_key(&remote)),
            header_sealer: HeaderSealer::new(self.header_key(&local)),
        }
    }

    fn expander(&self, secret: &Secret) -> Expander {
        Expander::new(self.hash, secret.as_bytes())
    }

    /// The secret of the next phase.
    fn after(&self, secret: &Secret) -> Secret {
        let mut next = [0; MAX_BLOCK];
        let bytes = next.get_mut(..secret.as_bytes().len()).unwrap_or_default();
        // A secret that cannot be derived is one of no bytes, from which no key follows either.
        let derived = self.expander(secret).expand_label(self.labels.update, &[], bytes).is_some();
        let secret = Secret::new(if derived { bytes } else { &[] });
        next.zeroize();
        secret
    }

    fn packet_key(&self, secret: &Expander) -> FoundPacketKey {
        let (mut key, mut iv) = ([0; MAX_KEY], [0; 12]);
        let key = key.get_mut(..self.protection.key_len()).unwrap_or_default();
        let derived = secret.expand_label(self.labels.key, &[], key).is_some()
            && secret.expand_label(self.labels.iv, &[], &mut iv).is_some();
        // A key of no bytes protects nothing.
        let found = AeadPacketKey::new(self.protection, if derived { key } else { &[] }, Iv::from(iv));
        key.zeroize();
        FoundPacketKey::Ours(found)
    }

    fn header_key(&self, secret: &Expander) -> FoundHeaderKey {
        let mut key = [0; MAX_KEY];
        let bytes = key.get_mut(..self.protection.key_len()).unwrap_or_default();
        let derived = secret.expand_label(self.labels.header, &[], bytes).is_some();
        let found = HeaderKey::new(self.protection, if derived { bytes } else { &[] });
        bytes.zeroize();
        FoundHeaderKey::Ours(found)
    }
}

/// The 1-RTT secrets of both directions, one key phase after the other.
#[derive(Clone)]
pub struct Ratchet {
    schedule: Schedule,
    local: Secret,
    remote: Secret,
}

impl Ratchet {
    /// From the secrets of the first phase, this end's and the peer's.
    pub const fn new(schedule: Schedule, local: Secret, remote: Secret) -> Self {
        Ratchet { schedule, local, remote }
    }

    /// The keys of the next phase.
    pub fn next_phase(&mut self) -> (Opener, Sealer) {
        let schedule = self.schedule;
        (self.local, self.remote) = (schedule.after(&self.local), schedule.after(&self.remote));
        let key = |secret: &Secret| schedule.packet_key(&schedule.expander(secret));
        (Opener::new(key(&self.remote)), Sealer::new(key(&self.local)))
    }

    /// What opens packets of the next phase.
    pub(super) fn next_opener(&self) -> Opener {
        let remote = self.schedule.after(&self.remote);
        Opener::new(self.schedule.packet_key(&self.schedule.expander(&remote)))
    }
}

impl fmt::Debug for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ratchet(..)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    /// RFC 9001 appendix A.5 and RFC 9369 appendix A.5.
    #[test]
    fn secrets_of_the_samples() {
        let secret = unhex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let samples = [
            (
                V1,
                "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
                "e0459b3474bdd0e44a41c144",
            ),
            (
                V2,
                "3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2",
                "a6b5bc6ab7dafce30ffff5dd",
            ),
        ];
        let updates = [
            "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9",
            "c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88",
        ];
        for ((version, key, iv), update) in samples.into_iter().zip(updates) {
            let schedule = Schedule::new(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, version).unwrap();
            let derive = |label, len| {
                let mut out = vec![0; len];
                Expander::new(schedule.hash, &secret).expand_label(label, &[], &mut out).unwrap();
                out
            };
            assert_eq!(derive(schedule.labels.key, 32), unhex(key));
            assert_eq!(derive(schedule.labels.iv, 12), unhex(iv));
            assert_eq!(derive(schedule.labels.update, 32), unhex(update));
        }
        let header = "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2";
        let schedule = Schedule::new(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, V2).unwrap();
        let mut out = [0; 32];
        let expander = Expander::new(schedule.hash, &secret);
        expander.expand_label(schedule.labels.header, &[], &mut out).unwrap();
        assert_eq!(out.to_vec(), unhex(header));
    }

    #[test]
    fn both_ends_derive_the_same_keys_for_every_suite_and_phase() {
        for suite in [
            CipherSuite::TLS13_AES_128_GCM_SHA256,
            CipherSuite::TLS13_AES_256_GCM_SHA384,
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        ] {
            let schedule = Schedule::new(suite, V2).unwrap();
            let len = if suite == CipherSuite::TLS13_AES_256_GCM_SHA384 { 48 } else { 32 };
            let (one, two) = (vec![1; len], vec![2; len]);
            let (ours, theirs) = (schedule.level_keys(&one, &two), schedule.level_keys(&two, &one));
            check(&ours.sealer, &theirs.opener);
            check(&theirs.sealer, &ours.opener);
            let mut ours = Ratchet::new(schedule, Secret::new(&one), Secret::new(&two));
            let mut theirs = Ratchet::new(schedule, Secret::new(&two), Secret::new(&one));
            for _ in 0..3 {
                let ((opener, sealer), (their_opener, their_sealer)) =
                    (ours.next_phase(), theirs.next_phase());
                check(&sealer, &their_opener);
                check(&their_sealer, &opener);
            }
        }
    }

    fn check(sealer: &Sealer, opener: &Opener) {
        let mut payload = [7; 40];
        sealer.seal(0, 5, b"header", &mut payload).unwrap();
        assert_eq!(opener.open(0, 5, b"header", &mut payload), Some(24));
    }
}
