//! The cipher suites that are offered and accepted.

use crate::abi::AllowedCipherSuiteFlags;
use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// All of them, by the order in which MsQuic prefers them with OpenSSL.
const ORDER: [(AllowedCipherSuiteFlags, CipherSuite); 3] = [
    (AllowedCipherSuiteFlags::AES_256_GCM_SHA384, CipherSuite::TLS13_AES_256_GCM_SHA384),
    (AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    (AllowedCipherSuiteFlags::AES_128_GCM_SHA256, CipherSuite::TLS13_AES_128_GCM_SHA256),
];

/// The cryptography of QUIC, with the suites that are allowed; all of them if nothing is said.
pub(super) fn provider(allowed: Option<AllowedCipherSuiteFlags>) -> Arc<CryptoProvider> {
    let all = godwit_tls::provider();
    let is_allowed = |flag| allowed.is_none_or(|allowed| allowed.contains(flag));
    let cipher_suites = ORDER
        .iter()
        .filter(|(flag, _)| is_allowed(*flag))
        .filter_map(|(_, name)| all.cipher_suites.iter().find(|suite| suite.suite() == *name).copied())
        .collect();
    Arc::new(CryptoProvider { cipher_suites, ..CryptoProvider::clone(&all) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(allowed: Option<AllowedCipherSuiteFlags>) -> Vec<CipherSuite> {
        provider(allowed).cipher_suites.iter().map(rustls::SupportedCipherSuite::suite).collect()
    }

    #[test]
    fn they_stand_in_the_order_of_msquic() {
        let all = ORDER.map(|(_, suite)| suite);
        assert_eq!(names(None), all);
        assert_eq!(names(Some(AllowedCipherSuiteFlags(7))), all);
    }

    #[test]
    fn what_is_not_allowed_is_not_there() {
        for (flag, suite) in ORDER {
            assert_eq!(names(Some(flag)), [suite]);
            let others = AllowedCipherSuiteFlags(7 & !flag.0);
            assert_eq!(names(Some(others)).len(), 2);
            assert!(!names(Some(others)).contains(&suite));
        }
    }
}
