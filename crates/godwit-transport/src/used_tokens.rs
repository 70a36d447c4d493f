//! Address tokens that clients have shown (RFC 9000 section 8.1.4).

use crate::address_token::NEW_TOKEN_LIFETIME;
use godwit_base::WallTime;
use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, PoisonError};

/// How often a token is good.
const USES: u8 = 8;
/// Tokens remembered of each half.
const MOST: usize = 1 << 15;

/// Which address tokens clients have shown. Copies are the same record: endpoints that accept one another's tokens, as those
/// with the same secrets do, should share one.
///
/// A token from a NEW_TOKEN frame is good for a day, and whoever has seen it could show it for that long in the name of its
/// address. Eight uses are granted, as clients race connections and lose packets; then it is worth nothing. What is
/// remembered is bounded, to 65,536 tokens: if more are shown, the oldest are forgotten before their time.
#[derive(Debug, Clone, Default)]
pub struct UsedTokens(Arc<Mutex<Uses>>);

/// What is hashed is authenticated by a secret key: nobody can aim at a place.
type Half = HashMap<u64, u8, BuildHasherDefault<SipHasher13>>;

#[derive(Debug, Default)]
struct Uses {
    /// How often each was used since the last change of halves, and before.
    now: Half,
    before: Half,
    changed: WallTime,
}

impl UsedTokens {
    /// A record of no token.
    #[must_use]
    pub fn new() -> Self {
        UsedTokens::default()
    }

    /// True if both are the same record.
    #[must_use]
    pub fn is_same_as(&self, other: &UsedTokens) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A good token is used once more. False if that is once too often.
    pub(crate) fn take(&self, now: WallTime, token: &[u8]) -> bool {
        // Its end authenticates it: no two are alike.
        let Some(end) = token.last_chunk() else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(now, u64::from_be_bytes(*end))
    }
}

impl Uses {
    fn take(&mut self, now: WallTime, token: u64) -> bool {
        if self.now.len() >= MOST || now.saturating_since(self.changed) >= NEW_TOKEN_LIFETIME {
            self.before = std::mem::take(&mut self.now);
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
    use std::time::Duration;

    #[test]
    fn a_token_is_good_a_few_times_a_day() {
        let used = UsedTokens::new();
        let mut now = WallTime::from_unix_micros(1_700_000_000_000_000);
        let uses = |now, token: u64| (0..100).filter(|_| used.take(now, &token.to_be_bytes())).count();
        assert_eq!((uses(now, 1), uses(now, 2)), (8, 8));
        now = now + Duration::from_secs(20 * 60 * 60);
        assert_eq!((uses(now, 1), uses(now, 3)), (0, 8));
        now = now + Duration::from_secs(10 * 60 * 60);
        assert_eq!(uses(now, 3), 0, "it is remembered for as long as it could be shown");
        assert!(!used.take(now, &[1]), "that is none");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let used = UsedTokens::new();
        for token in 0..200_000_u64 {
            assert!(used.take(WallTime::default(), &token.to_be_bytes()));
        }
        let uses = used.0.lock().unwrap();
        assert!(uses.now.len() <= MOST && uses.before.len() <= MOST);
    }
}
