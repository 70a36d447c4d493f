//! The record layer of TLS (RFC 8446 section 5), which QUIC does not have (RFC 9001 section 3).
//!
//! rustls makes keys for it nevertheless, and for each of them what a library of cryptography computes with. Within
//! [`without_records`] the AEADs of [`super::provider`] give it something that takes no memory and protects nothing; it is
//! never used. Everywhere else they are those of rustls.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{ConnectionTrafficSecrets, Error};
use std::cell::Cell;

thread_local! {
    static WITHOUT: Cell<bool> = const { Cell::new(false) };
}

/// Puts back what was before, even if TLS panics.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        WITHOUT.set(self.0);
    }
}

/// Calls `act`, in which TLS for QUIC does its work.
pub fn without_records<R>(act: impl FnOnce() -> R) -> R {
    let _before = Before(WITHOUT.replace(true));
    act()
}

/// An AEAD of TLS, for records if there are any.
pub(super) struct RecordAead(pub(super) &'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for RecordAead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        if WITHOUT.get() { Box::new(NoRecords) } else { self.0.encrypter(key, iv) }
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        if WITHOUT.get() { Box::new(NoRecords) } else { self.0.decrypter(key, iv) }
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

struct NoRecords;

impl MessageEncrypter for NoRecords {
    fn encrypt(&mut self, _: OutboundPlainMessage<'_>, _: u64) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len
    }
}

impl MessageDecrypter for NoRecords {
    fn decrypt<'a>(&mut self, _: InboundOpaqueMessage<'a>, _: u64) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use rustls::crypto::cipher::OutboundChunks;
    use rustls::{CipherSuite, ContentType, ProtocolVersion};

    #[test]
    fn records_are_protected_everywhere_but_in_quic() {
        let provider = crate::provider();
        let suite = provider
            .cipher_suites
            .iter()
            .find(|suite| suite.suite() == CipherSuite::TLS13_AES_256_GCM_SHA384)
            .and_then(|suite| suite.tls13())
            .unwrap();
        let seal = || {
            let mut key = suite.aead_alg.encrypter(AeadKey::from([1; 32]), Iv::from([2; 12]));
            let message = OutboundPlainMessage {
                typ: ContentType::ApplicationData,
                version: ProtocolVersion::TLSv1_2,
                payload: OutboundChunks::Single(b"hello"),
            };
            key.encrypt(message, 0).is_ok()
        };
        assert!(seal());
        assert!(!without_records(seal), "there is no record to seal");
        assert!(seal());
    }
}
