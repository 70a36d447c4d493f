//! By which groups the two ends agree on keys.

use crate::Error;
use rustls::NamedGroup;
use rustls::crypto::CryptoProvider;
use std::str::FromStr;

/// The groups of a key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeyExchange {
    /// Those of the library: the post-quantum hybrid X25519MLKEM768 before all others.
    #[default]
    Hybrid,
    /// X25519 alone, with which other implementations are measured.
    X25519,
}

impl FromStr for KeyExchange {
    type Err = Error;

    fn from_str(name: &str) -> Result<KeyExchange, Error> {
        match name {
            "hybrid" => Ok(KeyExchange::Hybrid),
            "x25519" => Ok(KeyExchange::X25519),
            _ => Err(Error::new(format!("{name:?}: expected hybrid or x25519"))),
        }
    }
}

impl KeyExchange {
    /// Leaves of the groups only these.
    pub(super) fn restrict(self, provider: &mut CryptoProvider) {
        if self == KeyExchange::X25519 {
            provider.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x25519_is_offered_alone_or_behind_the_hybrid() {
        let groups = |name: &str| {
            let mut provider = CryptoProvider::clone(&godwit::crypto_provider());
            name.parse::<KeyExchange>().unwrap().restrict(&mut provider);
            provider.kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>()
        };
        assert_eq!(groups("x25519"), [NamedGroup::X25519]);
        assert_eq!(groups("hybrid")[..2], [NamedGroup::X25519MLKEM768, NamedGroup::X25519]);
        assert_eq!(
            "P-256".parse::<KeyExchange>().unwrap_err().to_string(),
            "\"P-256\": expected hybrid or x25519"
        );
    }
}
