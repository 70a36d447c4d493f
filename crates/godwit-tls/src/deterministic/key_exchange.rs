//! X25519 (RFC 7748) with private keys from the thread's seeded generator.

use crate::crypto::X25519PrivateKey;
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};

#[derive(Debug)]
pub(super) struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut bytes = [0; 32];
        super::fill(&mut bytes);
        let private = X25519PrivateKey::new(&bytes).ok_or(GetRandomFailed)?;
        let public = private.public_key().ok_or(GetRandomFailed)?;
        Ok(Box::new(Exchange { private, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Exchange {
    private: X25519PrivateKey,
    public: [u8; 32],
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        let shared = |peer: &[u8; 32]| self.private.agree(peer, |secret| SharedSecret::from(secret));
        peer_pub_key.try_into().ok().and_then(shared).ok_or(PeerMisbehaved::InvalidKeyShare.into())
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
