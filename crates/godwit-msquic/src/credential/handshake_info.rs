//! What a handshake has agreed upon, in the numbers of the ABI.

use crate::abi::{
    CipherAlgorithm, CipherSuite, HandshakeInfo, HashAlgorithm, KeyExchangeAlgorithm, Status, TlsGroup,
    TlsProtocolVersion,
};
use rustls::{CipherSuite as Suite, NamedGroup};

/// What is told of a suite, and of the group of the key exchange if that is known (it is not where there was none: a
/// session was resumed without one).
///
/// # Errors
/// [`Status::NOT_SUPPORTED`] if the suite is none of TLS 1.3 that QUIC uses.
pub(crate) fn handshake_info(suite: Suite, group: Option<NamedGroup>) -> Result<HandshakeInfo, Status> {
    use {CipherAlgorithm as Cipher, HashAlgorithm as Hash};
    let (cipher_algorithm, cipher_strength, hash, cipher_suite) = match suite {
        Suite::TLS13_AES_128_GCM_SHA256 => {
            (Cipher::AES_128, 128, Hash::SHA_256, CipherSuite::AES_128_GCM_SHA256)
        }
        Suite::TLS13_AES_256_GCM_SHA384 => {
            (Cipher::AES_256, 256, Hash::SHA_384, CipherSuite::AES_256_GCM_SHA384)
        }
        Suite::TLS13_CHACHA20_POLY1305_SHA256 => {
            (Cipher::CHACHA20, 256, Hash::SHA_256, CipherSuite::CHACHA20_POLY1305_SHA256)
        }
        _ => return Err(Status::NOT_SUPPORTED),
    };
    Ok(HandshakeInfo {
        tls_protocol_version: TlsProtocolVersion::TLS_1_3,
        cipher_algorithm,
        cipher_strength,
        hash,
        // Neither is told with OpenSSL.
        hash_strength: 0,
        key_exchange_algorithm: KeyExchangeAlgorithm::NONE,
        key_exchange_strength: 0,
        cipher_suite,
        tls_group: group.map_or(TlsGroup::UNKNOWN, |group| TlsGroup(u16::from(group).into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_told_as_openssl_has_them() {
        let told = |suite| handshake_info(suite, Some(NamedGroup::X25519)).unwrap();
        let aes_128 = told(Suite::TLS13_AES_128_GCM_SHA256);
        assert_eq!((aes_128.cipher_algorithm, aes_128.cipher_strength), (CipherAlgorithm(0x660e), 128));
        assert_eq!((aes_128.hash, aes_128.hash_strength), (HashAlgorithm(0x800c), 0));
        let aes_256 = told(Suite::TLS13_AES_256_GCM_SHA384);
        assert_eq!((aes_256.cipher_algorithm, aes_256.cipher_strength), (CipherAlgorithm(0x6610), 256));
        assert_eq!(aes_256.hash, HashAlgorithm(0x800d));
        let chacha = told(Suite::TLS13_CHACHA20_POLY1305_SHA256);
        assert_eq!((chacha.cipher_algorithm, chacha.cipher_strength), (CipherAlgorithm(0x6612), 256));
        for (info, number) in [(aes_128, 0x1301), (aes_256, 0x1302), (chacha, 0x1303)] {
            assert_eq!((info.cipher_suite, info.tls_group), (CipherSuite(number), TlsGroup(29)));
            assert_eq!(info.tls_protocol_version, TlsProtocolVersion(0x3000));
        }
    }

    #[test]
    fn groups_keep_their_numbers_and_strange_suites_are_refused() {
        let group = |group| handshake_info(Suite::TLS13_AES_128_GCM_SHA256, group).unwrap().tls_group;
        assert_eq!(group(Some(NamedGroup::X25519MLKEM768)), TlsGroup::X25519MLKEM768);
        assert_eq!(group(Some(NamedGroup::secp384r1)), TlsGroup::SECP384R1);
        assert_eq!(group(None), TlsGroup::UNKNOWN);
        let strange = handshake_info(Suite::TLS13_AES_128_CCM_SHA256, None);
        assert_eq!(strange, Err(Status::NOT_SUPPORTED));
    }
}
