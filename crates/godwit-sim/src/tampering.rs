//! Cryptography that lets a sender lie: payloads are changed after they are written and before they are sealed, so that
//! the receiver finds them authentic (RFC 9001, section 5.3).
//!
//! What an attacker with the keys may say is any peer's right to say: a stranger becomes one by a handshake. Tests and
//! floods take this for an endpoint that goes through the handshake as it should and says anything at all afterwards.

use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{Error, SupportedCipherSuite, Tls13CipherSuite};
use std::sync::Arc;

/// Changes the payload of a packet that is about to be sealed; first comes the packet's header, whose first bit is set
/// in long headers. The length of the payload remains.
pub type Change = Arc<dyn Fn(&[u8], &mut [u8]) + Send + Sync>;

/// Is told of each packet that was opened: its header, and its number. Who lies about what came has to know what did.
pub type Heard = Arc<dyn Fn(&[u8], u64) + Send + Sync>;

/// The same cryptography, but that `change` sees each packet before it is sealed. Cipher suites live as long as the
/// program, as rustls wants them to: one provider is for many connections.
pub fn provider(honest: &CryptoProvider, change: &Change) -> CryptoProvider {
    let heard: Heard = Arc::new(|_, _| ());
    listening(honest, change, &heard)
}

/// The same as [`provider`], but that `heard` is told of each packet that comes as well.
pub fn listening(honest: &CryptoProvider, change: &Change, heard: &Heard) -> CryptoProvider {
    let mut provider = honest.clone();
    provider.cipher_suites =
        provider.cipher_suites.into_iter().filter_map(|suite| tampering(suite, change, heard)).collect();
    provider
}

fn tampering(suite: SupportedCipherSuite, change: &Change, heard: &Heard) -> Option<SupportedCipherSuite> {
    let suite = suite.tls13()?;
    let (change, heard) = (Arc::clone(change), Arc::clone(heard));
    let quic: &'static dyn Algorithm = Box::leak(Box::new(Tampering { honest: suite.quic?, change, heard }));
    let CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit } = suite.common;
    Some(SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(quic),
    }))))
}

struct Tampering {
    honest: &'static dyn Algorithm,
    change: Change,
    heard: Heard,
}

struct TamperingKey {
    honest: Box<dyn PacketKey>,
    change: Change,
    heard: Heard,
}

impl Algorithm for Tampering {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let honest = self.honest.packet_key(key, iv);
        Box::new(TamperingKey { honest, change: Arc::clone(&self.change), heard: Arc::clone(&self.heard) })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.honest.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.honest.aead_key_len()
    }
}

impl PacketKey for TamperingKey {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        (self.change)(header, payload);
        self.honest.encrypt_in_place(number, header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let opened = self.honest.decrypt_in_place(number, header, payload)?;
        (self.heard)(header, number);
        Ok(opened)
    }

    fn tag_len(&self) -> usize {
        self.honest.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.honest.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.honest.integrity_limit()
    }
}
