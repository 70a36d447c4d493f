//! A hash that nobody can aim at: peers choose much of what is looked up.

use godwit_base::Rng;
use siphasher::sip::SipHasher13;
use std::hash::BuildHasher;

/// Makes hashers (SipHash 1-3) that share a secret key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedHash {
    keys: (u64, u64),
}

impl KeyedHash {
    pub(crate) fn new(rng: &mut dyn Rng) -> Self {
        KeyedHash { keys: (rng.next_u64(), rng.next_u64()) }
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.keys.0, self.keys.1)
    }
}
