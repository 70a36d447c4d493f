//! X25519 (RFC 7748) with private keys from the thread's seeded generator.

use aws_lc_rs::agreement::{PrivateKey, PublicKey, UnparsedPublicKey, X25519, agree};
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};

#[derive(Debug)]
pub(super) struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut bytes = [0; 32];
        super::fill(&mut bytes);
        let private = PrivateKey::from_private_key(&X25519, &bytes).map_err(|_| GetRandomFailed)?;
        let public = private.compute_public_key().map_err(|_| GetRandomFailed)?;
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
    private: PrivateKey,
    public: PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        let refused = Error::from(PeerMisbehaved::InvalidKeyShare);
        if peer_pub_key.len() != 32 {
            return Err(refused);
        }
        let peer = UnparsedPublicKey::new(&X25519, peer_pub_key);
        agree(&self.private, peer, refused, |secret| Ok(SharedSecret::from(secret)))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
