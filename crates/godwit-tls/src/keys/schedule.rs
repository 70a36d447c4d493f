//! The keys that follow from TLS's secrets (RFC 9001 sections 5.1 and 6.1, RFC 9369 section 3.3), derived here
//! rather than by rustls: for a client that has moved to another version than the one its TLS was begun with.

use super::{HeaderOpener, HeaderSealer, LevelKeys, Opener, Sealer};
use crate::crypto::hkdf::{Algorithm, KeyType, Prk};
use crate::provider::{self, FoundHeaderKey, FoundPacketKey, Protection};
use godwit_wire::version::{V1, V2};
use rustls::CipherSuite;
use rustls::crypto::cipher::Iv;
use std::fmt;

/// Bytes of the longest secret: that of SHA-384.
const MAX_SECRET: usize = 48;

/// Bytes of the longest key.
const MAX_KEY: usize = 32;

/// What a version calls its keys.
#[derive(Debug, Clone, Copy)]
struct Labels {
    key: &'static str,
    iv: &'static str,
    header: &'static str,
    update: &'static str,
}

const LABELS_V1: Labels = Labels { key: "quic key", iv: "quic iv", header: "quic hp", update: "quic ku" };
const LABELS_V2: Labels =
    Labels { key: "quicv2 key", iv: "quicv2 iv", header: "quicv2 hp", update: "quicv2 ku" };

/// How a cipher suite and a version turn secrets into keys.
#[derive(Clone, Copy)]
pub struct Schedule {
    protection: &'static Protection,
    hash: Algorithm,
    labels: Labels,
}

impl Schedule {
    /// `None` for a suite or a version that is not known.
    pub fn new(suite: CipherSuite, version: u32) -> Option<Self> {
        let (protection, hash) = provider::protection(suite)?;
        let labels = match version {
            V1 => LABELS_V1,
            V2 => LABELS_V2,
            _ => return None,
        };
        Some(Schedule { protection, hash, labels })
    }

    /// The keys of a level, from this end's traffic secret and the peer's.
    pub fn level_keys(&self, local: &[u8], remote: &[u8]) -> LevelKeys {
        LevelKeys {
            opener: Opener::new(self.packet_key(remote)),
            sealer: Sealer::new(self.packet_key(local)),
            header_opener: HeaderOpener::new(self.header_key(remote)),
            header_sealer: HeaderSealer::new(self.header_key(local)),
        }
    }

    fn packet_key(&self, secret: &[u8]) -> FoundPacketKey {
        let (mut key, mut iv) = ([0; MAX_KEY], [0; 12]);
        let key = key.get_mut(..self.protection.key_len()).unwrap_or_default();
        let derived = self.expand(secret, self.labels.key, key).is_some()
            && self.expand(secret, self.labels.iv, &mut iv).is_some();
        // A key of no bytes protects nothing.
        FoundPacketKey::Ours(self.protection.packet_key(if derived { key } else { &[] }, Iv::from(iv)))
    }

    fn header_key(&self, secret: &[u8]) -> FoundHeaderKey {
        let mut key = [0; MAX_KEY];
        let bytes = key.get_mut(..self.protection.key_len()).unwrap_or_default();
        let derived = self.expand(secret, self.labels.header, bytes).is_some();
        FoundHeaderKey::Ours(self.protection.header_key(if derived { bytes } else { &[] }))
    }

    fn expand(&self, secret: &[u8], label: &str, out: &mut [u8]) -> Option<()> {
        expand_label(self.hash, secret, label.as_bytes(), &[], out)
    }
}

/// HKDF-Expand-Label of RFC 8446 section 7.1. `None` if the label, the context or the output is too long.
pub(crate) fn expand_label(
    hash: Algorithm,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Option<()> {
    const PREFIX: &[u8] = b"tls13 ";
    let len = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_len = [u8::try_from(PREFIX.len().checked_add(label.len())?).ok()?];
    let context_len = [u8::try_from(context.len()).ok()?];
    let info = [&len[..], &label_len, PREFIX, label, &context_len, context];
    let prk = Prk::new_less_safe(hash, secret);
    prk.expand(&info, Len(out.len())).ok()?.fill(out).ok()
}

/// The length of an output, as the library wants it.
struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// The 1-RTT secrets of both directions, one key phase after the other.
#[derive(Clone)]
pub struct Ratchet {
    schedule: Schedule,
    local: Secret,
    remote: Secret,
}

/// A traffic secret.
#[derive(Clone)]
struct Secret {
    bytes: [u8; MAX_SECRET],
    len: usize,
}

impl Secret {
    fn new(secret: &[u8]) -> Self {
        let mut bytes = [0; MAX_SECRET];
        bytes.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
        Secret { bytes, len: secret.len().min(MAX_SECRET) }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.fill(0);
    }
}

impl Ratchet {
    /// From the secrets of the first phase, this end's and the peer's.
    pub fn new(schedule: Schedule, local: &[u8], remote: &[u8]) -> Self {
        Ratchet { schedule, local: Secret::new(local), remote: Secret::new(remote) }
    }

    /// The keys of the next phase.
    pub fn next_phase(&mut self) -> (Opener, Sealer) {
        for secret in [&mut self.local, &mut self.remote] {
            let mut next = Secret { bytes: [0; MAX_SECRET], len: secret.len };
            let bytes = next.bytes.get_mut(..secret.len).unwrap_or_default();
            // A secret that cannot be derived is one of no bytes, from which no key follows either.
            if self.schedule.expand(secret.as_bytes(), self.schedule.labels.update, bytes).is_none() {
                next.len = 0;
            }
            *secret = next;
        }
        let opener = Opener::new(self.schedule.packet_key(self.remote.as_bytes()));
        (opener, Sealer::new(self.schedule.packet_key(self.local.as_bytes())))
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
                schedule.expand(&secret, label, &mut out).unwrap();
                out
            };
            assert_eq!(derive(schedule.labels.key, 32), unhex(key));
            assert_eq!(derive(schedule.labels.iv, 12), unhex(iv));
            assert_eq!(derive(schedule.labels.update, 32), unhex(update));
        }
        let header = "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2";
        let schedule = Schedule::new(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, V2).unwrap();
        let mut out = [0; 32];
        schedule.expand(&secret, schedule.labels.header, &mut out).unwrap();
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
            let mut ours = Ratchet::new(schedule, &one, &two);
            let mut theirs = Ratchet::new(schedule, &two, &one);
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
