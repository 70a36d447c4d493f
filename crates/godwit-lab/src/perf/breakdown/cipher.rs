//! Packet protection that is timed.

use super::{Part, timed as time};
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuiteCommon, Error, SupportedCipherSuite, Tls13CipherSuite};
use std::sync::Arc;

/// The same cryptography, with the protection of packets timed. Its suites live as long as the process: one run needs them
/// once.
pub(in crate::perf) fn timed(provider: &CryptoProvider) -> Arc<CryptoProvider> {
    let mut provider = provider.clone();
    let suites = provider.cipher_suites.iter().filter_map(SupportedCipherSuite::tls13);
    provider.cipher_suites = suites.map(|suite| SupportedCipherSuite::Tls13(with_clock(suite))).collect();
    Arc::new(provider)
}

fn with_clock(suite: &'static Tls13CipherSuite) -> &'static Tls13CipherSuite {
    let Some(algorithm) = suite.quic else { return suite };
    Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(Box::leak(Box::new(WithClock(algorithm)))),
    }))
}

/// Whatever makes keys, or is one, with a clock around it.
struct WithClock<T>(T);

impl Algorithm for WithClock<&'static dyn Algorithm> {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        Box::new(WithClock(self.0.packet_key(key, iv)))
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(WithClock(self.0.header_protection_key(key)))
    }

    fn aead_key_len(&self) -> usize {
        self.0.aead_key_len()
    }
}

impl PacketKey for WithClock<Box<dyn PacketKey>> {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        time(Part::Crypto, || self.0.encrypt_in_place(number, header, payload))
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        time(Part::Crypto, || self.0.encrypt_in_place_for_path(path, number, header, payload))
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        time(Part::Crypto, || self.0.decrypt_in_place(number, header, payload))
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        time(Part::Crypto, || self.0.decrypt_in_place_for_path(path, number, header, payload))
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

impl HeaderProtectionKey for WithClock<Box<dyn HeaderProtectionKey>> {
    fn encrypt_in_place(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), Error> {
        time(Part::Crypto, || self.0.encrypt_in_place(sample, first, number))
    }

    fn decrypt_in_place(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), Error> {
        time(Part::Crypto, || self.0.decrypt_in_place(sample, first, number))
    }

    fn sample_len(&self) -> usize {
        self.0.sample_len()
    }
}
