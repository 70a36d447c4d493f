//! Encrypted Client Hello (RFC 9849): which server is meant stands encrypted in the handshake, by a key that its HTTPS
//! record has told of. Whoever listens sees the name of a front.
//!
//! A server that does not have the key any more says so, shows a certificate for the name of the front, and may name
//! another key (section 6.1.6). Then the connection is made once more: with that key or, if it names none, without.

use rustls::Error;
use rustls::client::EchMode;

/// What is offered by a list of configurations; `None`: nothing in it can be used here.
#[cfg(feature = "aws-lc-rs")]
pub(super) fn mode(list: &[u8]) -> Option<EchMode> {
    use rustls::client::EchConfig;
    use rustls::crypto::aws_lc_rs::hpke::ALL_SUPPORTED_SUITES;
    let config = EchConfig::new(list.to_vec().into(), ALL_SUPPORTED_SUITES);
    let config = config.inspect_err(|error| tracing::debug!(%error, "no Encrypted Client Hello"));
    config.ok().map(EchMode::from)
}

/// Without HPKE nothing can be used.
#[cfg(not(feature = "aws-lc-rs"))]
pub(super) fn mode(_: &[u8]) -> Option<EchMode> {
    None
}

/// The list to try again with, empty if it is to be without, where the server has rejected what was offered.
pub(crate) fn retry(error: &Error) -> Option<Vec<u8>> {
    use rustls::PeerIncompatible;
    use rustls::internal::msgs::codec::Codec;
    let Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(configs)) = error else {
        return None;
    };
    let mut list = Vec::new();
    if let Some(configs) = configs.as_ref().filter(|configs| !configs.is_empty()) {
        configs.encode(&mut list);
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use rustls::PeerIncompatible;

    use super::*;

    #[test]
    fn lists_that_are_none_are_not_used() {
        for list in [&b""[..], b"hello", &[0, 4, 0xfe, 0x0d, 0, 0]] {
            assert!(mode(list).is_none(), "{list:?}");
        }
    }

    #[test]
    fn a_rejection_says_what_to_try_next() {
        let rejected = |configs| Error::from(PeerIncompatible::ServerRejectedEncryptedClientHello(configs));
        assert_eq!(retry(&rejected(None)), Some(Vec::new()));
        assert_eq!(retry(&rejected(Some(Vec::new()))), Some(Vec::new()));
        assert_eq!(retry(&Error::DecryptError), None);
    }
}
