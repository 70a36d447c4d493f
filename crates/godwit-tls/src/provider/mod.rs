//! The cryptography handed to rustls: the library's with QUIC packet protection of our own.
//!
//! [`provider`] is the provider for every TLS configuration that is used with QUIC. Its three TLS 1.3
//! cipher suites differ from those of rustls in four things: their header protection keys can compute the
//! masks of many packets in one call (see the module `header_key`), the secrets of session tickets can be had from
//! them (`ticket_secret`), keys are derived with less work (`hkdf`), and none are made for records (`records`).
//! Its groups X25519 and X25519MLKEM768 can have the share of the next key exchange ready (`ready_share`). Configurations
//! made with another provider work too, a little slower, but their tickets do not outlive the process.
//!
//! (RFC 9001 sections 5.3 and 5.4.)

mod algorithm;
mod header_key;
mod hkdf;
mod laid_aside;
mod packet_key;
mod protection;
mod ready_share;
mod records;
pub(crate) mod ticket_secret;

pub(crate) use header_key::{HeaderKey, remove as remove_mask};
pub(crate) use laid_aside::{FoundHeaderKey, FoundPacketKey, laying_aside};
pub(crate) use laid_aside::{header_key as found_header_key, packet_key as found_packet_key};
pub(crate) use packet_key::AeadPacketKey;
pub(crate) use protection::Protection;
pub use ready_share::make_key_share_ready;
pub use records::without_records;

use crate::crypto::hmac::{self, Algorithm as Hash};
use crate::crypto::in_rustls;
use ready_share::ReadyGroup;
use records::RecordAead;
use rustls::crypto::CryptoProvider;
use rustls::crypto::hash::HashAlgorithm;
use rustls::crypto::tls13::Hkdf;
use rustls::quic::Algorithm;
use rustls::{CipherSuite, CipherSuiteCommon, NamedGroup, SupportedCipherSuite, Tls13CipherSuite};
use std::sync::{Arc, LazyLock};
use ticket_secret::TicketHkdf;

struct Suites {
    aes_128: Option<&'static Tls13CipherSuite>,
    aes_256: Option<&'static Tls13CipherSuite>,
    chacha20: Option<&'static Tls13CipherSuite>,
}

static SUITES: LazyLock<Suites> = LazyLock::new(|| {
    use in_rustls::cipher_suite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    Suites {
        aes_128: with_quic(TLS13_AES_128_GCM_SHA256, &algorithm::OF_AES_128_GCM),
        aes_256: with_quic(TLS13_AES_256_GCM_SHA384, &algorithm::OF_AES_256_GCM),
        chacha20: with_quic(TLS13_CHACHA20_POLY1305_SHA256, &algorithm::OF_CHACHA20_POLY1305),
    }
});

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let mut provider = in_rustls::default_provider();
    let ours = [SUITES.aes_128, SUITES.aes_256, SUITES.chacha20];
    let rest = provider.cipher_suites.iter().copied().filter(|suite| suite.tls13().is_none());
    // The sort keeps the order of the others: X25519 is next, and clients send a share of it beside the hybrid one.
    provider.kx_groups.sort_by_key(|group| group.name() != NamedGroup::X25519MLKEM768);
    provider.kx_groups.iter_mut().for_each(|group| *group = ReadyGroup::over(*group));
    provider.cipher_suites =
        ours.into_iter().flatten().map(SupportedCipherSuite::Tls13).chain(rest).collect();
    Arc::new(provider)
});

/// The library's provider with our QUIC packet protection. AES-128-GCM is preferred, and for the key exchange the
/// post-quantum hybrid X25519MLKEM768, which ring does not have; signatures and the cipher suites of TLS 1.2 are those
/// of rustls.
pub fn provider() -> Arc<CryptoProvider> {
    PROVIDER.clone()
}

/// The provider as rustls has it, for TLS that has nothing to do with QUIC.
pub fn rustls_provider() -> CryptoProvider {
    in_rustls::default_provider()
}

/// Whether the protection of QUIC packets of a suite is ours, with nothing before it.
pub(crate) fn is_ours(suite: SupportedCipherSuite) -> bool {
    let ours = [&algorithm::OF_AES_128_GCM, &algorithm::OF_AES_256_GCM, &algorithm::OF_CHACHA20_POLY1305];
    let quic = suite.tls13().and_then(|suite| suite.quic);
    quic.is_some_and(|quic| ours.into_iter().any(|ours| std::ptr::addr_eq(quic, ours)))
}

/// The packet protection of a cipher suite of TLS 1.3, and the hash function of its key schedule.
pub(crate) fn protection(suite: CipherSuite) -> Option<(&'static Protection, Hash)> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some((algorithm::OF_AES_128_GCM.0, hmac::HMAC_SHA256)),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some((algorithm::OF_AES_256_GCM.0, hmac::HMAC_SHA384)),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => {
            Some((algorithm::OF_CHACHA20_POLY1305.0, hmac::HMAC_SHA256))
        }
        _ => None,
    }
}

/// A suite of rustls with another QUIC packet protection. It lives as long as the process, and is made
/// once.
pub(crate) fn with_quic(
    original: SupportedCipherSuite,
    quic: &'static dyn Algorithm,
) -> Option<&'static Tls13CipherSuite> {
    let original = original.tls13()?;
    let hkdf: &dyn Hkdf = match original.common.hash_provider.algorithm() {
        HashAlgorithm::SHA256 => &hkdf::OF_SHA256,
        HashAlgorithm::SHA384 => &hkdf::OF_SHA384,
        _ => original.hkdf_provider,
    };
    Some(Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: original.common.suite,
            hash_provider: original.common.hash_provider,
            confidentiality_limit: original.common.confidentiality_limit,
        },
        hkdf_provider: Box::leak(Box::new(TicketHkdf(hkdf))),
        aead_alg: Box::leak(Box::new(RecordAead(original.aead_alg))),
        quic: Some(quic),
    })))
}

#[cfg(test)]
pub(crate) fn chacha20_suite() -> Option<rustls::quic::Suite> {
    SUITES.chacha20.and_then(Tls13CipherSuite::quic_suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::cipher::{AeadKey, Iv};
    use rustls::quic::{HeaderProtectionKey, PacketKey};

    /// Something that somebody has put before the protection of packets.
    struct Before(&'static dyn Algorithm);

    impl Algorithm for Before {
        fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
            self.0.packet_key(key, iv)
        }

        fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
            self.0.header_protection_key(key)
        }

        fn aead_key_len(&self) -> usize {
            self.0.aead_key_len()
        }
    }

    #[test]
    fn what_stands_before_our_protection_is_not_taken_for_it() {
        for suite in provider().cipher_suites.iter().filter_map(SupportedCipherSuite::tls13) {
            assert!(is_ours(SupportedCipherSuite::Tls13(suite)));
            let CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit } = suite.common;
            let other = Tls13CipherSuite {
                common: CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit },
                hkdf_provider: suite.hkdf_provider,
                aead_alg: suite.aead_alg,
                quic: Some(Box::leak(Box::new(Before(suite.quic.unwrap())))),
            };
            assert!(!is_ours(SupportedCipherSuite::Tls13(Box::leak(Box::new(other)))));
        }
        assert!(rustls_provider().cipher_suites.iter().all(|suite| !is_ours(*suite)));
    }
}
