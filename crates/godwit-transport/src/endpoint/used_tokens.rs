//! Address tokens that clients have shown (RFC 9000 section 8.1.4).
//!
//! A token from a NEW_TOKEN frame is good for a day, and whoever has seen it could show it for that long in the name of its
//! address. A few uses are granted, as clients race connections and lose packets; then it is worth nothing. What is
//! remembered is bounded: if more tokens are shown than fit, the oldest are forgotten before their time.

use crate::address_token::NEW_TOKEN_LIFETIME;
use crate::keyed_hash::KeyedHash;
use godwit_base::Time;
use std::collections::HashMap;

/// How often a token is good.
const USES: u8 = 8;
/// Tokens remembered of each half.
const MOST: usize = 1 << 15;

/// See the module.
#[derive(Debug)]
pub(super) struct UsedTokens {
    /// How often each was used since the last change of halves, and before.
    now: HashMap<u64, u8, KeyedHash>,
    before: HashMap<u64, u8, KeyedHash>,
    changed: Time,
}

impl UsedTokens {
    pub(super) fn new(hash: KeyedHash) -> Self {
        let (now, before) = (HashMap::with_hasher(hash), HashMap::with_hasher(hash));
        UsedTokens { now, before, changed: Time::ZERO }
    }

    /// A good token is used once more. False if that is once too often.
    pub(super) fn take(&mut self, now: Time, token: &[u8]) -> bool {
        // Its end authenticates it: no two are alike.
        let Some(end) = token.last_chunk() else { return false };
        let token = u64::from_be_bytes(*end);
        if self.now.len() >= MOST || now.saturating_since(self.changed) >= NEW_TOKEN_LIFETIME {
            self.before = std::mem::replace(&mut self.now, HashMap::with_hasher(*self.before.hasher()));
            self.changed = now;
        }
        let before = self.before.get(&token).copied().unwrap_or(0);
        let uses = self.now.entry(token).or_insert(before);
        let good = *uses < USES;
        *uses = uses.saturating_add(1);
        good
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;
    use std::time::Duration;

    #[test]
    fn a_token_is_good_a_few_times_a_day() {
        let mut used = UsedTokens::new(KeyedHash::new(&mut SeededRng::new(1)));
        let mut now = Time::from_nanos(1);
        let mut uses = |now, token: u64| (0..100).filter(|_| used.take(now, &token.to_be_bytes())).count();
        assert_eq!((uses(now, 1), uses(now, 2)), (8, 8));
        now += Duration::from_secs(20 * 60 * 60);
        assert_eq!((uses(now, 1), uses(now, 3)), (0, 8));
        now += Duration::from_secs(10 * 60 * 60);
        assert_eq!(uses(now, 3), 0, "it is remembered for as long as it could be shown");
        assert!(!used.take(now, &[1]), "that is none");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut used = UsedTokens::new(KeyedHash::new(&mut SeededRng::new(1)));
        let now = Time::from_nanos(1);
        for token in 0..200_000_u64 {
            assert!(used.take(now, &token.to_be_bytes()));
        }
        assert!(used.now.len() <= MOST && used.before.len() <= MOST);
    }
}
