//! Secrets that the application has set: by which stateless reset tokens and the tokens of Retry packets are made at all workers,
//! so that those of several machines behind one address know one another's.
//!
//! The key for tokens changes by itself, at times that follow from the clock alone: tokens of the present and of the one before
//! are accepted (RFC 9000 section 8.1). When the application sets another secret, the one before is that of the secret that
//! was set until then, for as long as the period lasts: clients that were sent a Retry packet just then are let in.

use super::current::pool;
use super::state::State;
use godwit_engine::ShardCx;
use godwit_transport::tls::secrets::{KEY_LEN, ServerSecrets};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the application has set.
struct Chosen {
    reset_key: Option<[u8; KEY_LEN]>,
    tokens: Option<TokenKeys>,
}

/// Where the keys of tokens come from.
struct TokenKeys {
    secret: Vec<u8>,
    /// For how many milliseconds each is the present one; not 0.
    rotation: u64,
    /// What these take the place of, until somebody has looked at the clock.
    replaced: Option<Box<TokenKeys>>,
    /// The last key of those, and in which period of these it was the present one.
    last_before: Option<(u64, [u8; KEY_LEN])>,
}

static CHOSEN: Mutex<Chosen> = Mutex::new(Chosen { reset_key: None, tokens: None });

/// Keys of tokens change.
static IS_ROTATING: AtomicBool = AtomicBool::new(false);

fn chosen() -> MutexGuard<'static, Chosen> {
    CHOSEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has stateless reset tokens follow from this key, of connection ids that are given out from now on.
pub(crate) fn set_reset_key(key: [u8; KEY_LEN]) {
    chosen().reset_key = Some(key);
    tell_workers();
}

/// Has the tokens of Retry packets made with keys that follow from this secret, another one each `rotation` milliseconds.
pub(crate) fn set_token_secret(secret: &[u8], rotation: u32) {
    let mut chosen = chosen();
    let before = chosen.tokens.take();
    chosen.tokens = Some(TokenKeys::new(secret, rotation, before));
    drop(chosen);
    IS_ROTATING.store(true, Ordering::Relaxed);
    tell_workers();
}

fn tell_workers() {
    for worker in pool().map_or(&[][..], |pool| pool.workers()) {
        worker.visit(|cx, state| {
            state.token_period = None;
            state.use_chosen_secrets(cx);
        });
    }
}

impl TokenKeys {
    /// Keys that follow from this secret, in place of those `before`.
    fn new(secret: &[u8], rotation: u32, before: Option<TokenKeys>) -> Self {
        // Of those that nobody has used there are no tokens.
        let replaced = before.map(|mut before| before.replaced.take().unwrap_or_else(|| Box::new(before)));
        TokenKeys {
            secret: secret.to_vec(),
            rotation: u64::from(rotation).max(1),
            replaced,
            last_before: None,
        }
    }

    /// These are used, and not those that they have taken the place of.
    fn begin(&mut self, unix_millis: u64) {
        if let Some(before) = self.replaced.take() {
            let last = before.key(before.period(unix_millis));
            self.last_before = last.map(|key| (self.period(unix_millis), key));
        }
    }

    /// Which period of the clock this is.
    fn period(&self, unix_millis: u64) -> u64 {
        unix_millis.checked_div(self.rotation).unwrap_or(0)
    }

    fn key(&self, period: u64) -> Option<[u8; KEY_LEN]> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(b"godwit retry token");
        mac.update(&period.to_be_bytes());
        Some(mac.finalize().into_bytes().into())
    }

    /// The same secrets, with the keys of this period and the one before.
    fn of_period(&self, secrets: &ServerSecrets, period: u64) -> Option<ServerSecrets> {
        let replaced = self.last_before.filter(|(since, _)| *since == period).map(|(_, key)| key);
        let before = replaced.or_else(|| self.key(period.saturating_sub(1)))?;
        Some(secrets.rotated_to(before).rotated_to(self.key(period)?))
    }
}

impl State {
    /// Looks at the clock, where keys change with it.
    pub(super) fn rotate_secrets(&mut self, cx: &mut ShardCx<'_>) {
        if IS_ROTATING.load(Ordering::Relaxed) {
            self.use_chosen_secrets(cx);
        }
    }

    /// Uses what the application has set, unless it is in use.
    pub(super) fn use_chosen_secrets(&mut self, cx: &mut ShardCx<'_>) {
        let mut chosen = chosen();
        let millis = cx.wall().as_unix_micros() / 1000;
        if let Some(tokens) = &mut chosen.tokens {
            tokens.begin(millis);
        }
        let period = chosen.tokens.as_ref().map_or(0, |tokens| tokens.period(millis));
        if self.token_period.replace(period) == Some(period) {
            return;
        }
        let mut secrets = Arc::clone(cx.endpoint().secrets());
        if let Some(key) = chosen.reset_key {
            secrets = Arc::new(secrets.with_reset_key(key));
        }
        if let Some(rotated) = chosen.tokens.as_ref().and_then(|tokens| tokens.of_period(&secrets, period)) {
            secrets = Arc::new(rotated);
        }
        cx.endpoint_mut().set_secrets(secrets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    /// A token of these keys in a period, that others open or not.
    fn token_of(keys: &TokenKeys, period: u64) -> impl Fn(&ServerSecrets) -> bool + use<> {
        let mut rng = SeededRng::new(period);
        let sealer = keys.of_period(&ServerSecrets::from_rng(&mut rng), period).unwrap();
        let mut token = [9; 80];
        sealer.seal_token(&mut rng, 1, &mut token).unwrap();
        move |secrets| secrets.open_token(1, &mut token.clone()).is_some()
    }

    #[test]
    fn tokens_of_others_with_the_same_secret_are_accepted_for_two_periods() {
        let keys = TokenKeys::new(&[7; 32], 30_000, None);
        assert_eq!((keys.period(29_999), keys.period(30_000)), (0, 1));
        let other = ServerSecrets::from_rng(&mut SeededRng::new(1));
        let opens = token_of(&keys, 5);
        let accepted = |period| opens(&keys.of_period(&other, period).unwrap());
        assert_eq!([4, 5, 6, 7].map(accepted), [false, true, true, false]);
        assert!(!opens(&other));
        let foreign = TokenKeys::new(&[8; 32], 30_000, None);
        assert!(!opens(&foreign.of_period(&other, 5).unwrap()));
    }

    #[test]
    fn tokens_of_the_secret_that_was_set_before_are_accepted_for_the_rest_of_the_period() {
        let other = ServerSecrets::from_rng(&mut SeededRng::new(1));
        let mut first = TokenKeys::new(&[7; 32], 1000, None);
        first.begin(5000);
        let opens = token_of(&first, 5);
        let mut second = TokenKeys::new(&[8; 32], 500, Some(first));
        second.begin(5700);
        // Somebody else looks later.
        second.begin(5900);
        assert_eq!(second.period(5700), 11);
        assert_eq!([11, 12].map(|period| opens(&second.of_period(&other, period).unwrap())), [true, false]);
        let own = token_of(&second, 11);
        assert_eq!(
            [11, 12, 13].map(|period| own(&second.of_period(&other, period).unwrap())),
            [true, true, false]
        );
    }

    #[test]
    fn a_secret_that_nobody_has_used_leaves_the_one_before_it() {
        let other = ServerSecrets::from_rng(&mut SeededRng::new(1));
        let mut first = TokenKeys::new(&[7; 32], 1000, None);
        first.begin(5000);
        let opens = token_of(&first, 5);
        let unused = TokenKeys::new(&[8; 32], 1000, Some(first));
        let mut third = TokenKeys::new(&[9; 32], 1000, Some(unused));
        third.begin(5001);
        assert!(opens(&third.of_period(&other, 5).unwrap()));
        let mut fourth = TokenKeys::new(&[10; 32], 1000, Some(third));
        fourth.begin(5002);
        assert!(!opens(&fourth.of_period(&other, 5).unwrap()), "two secrets before");
    }
}
