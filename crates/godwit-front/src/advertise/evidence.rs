//! Who was told of HTTP/3, who tried it, and with whom it worked: remembered by hash for as long as there is room.
//!
//! From this follows why a request came by TCP:
//! - **not advertised**: nobody has told this client, or not lately enough for it to remember: a first visit;
//! - **other address**: the same user (by cookie) was told at another address: it has moved to another network, or
//!   uses the other IP version. What is remembered of addresses would say "not advertised";
//! - **no attempt**: it was told, and no QUIC packet came from its address since: UDP is blocked on its side, or it
//!   has HTTP/3 switched off;
//! - **attempt failed**: QUIC packets came since it was told, and no handshake was finished: answers do not reach
//!   it, or not those of full size;
//! - not known, if HTTP/3 works from that address: several clients may share it, and one that has a connection over
//!   TCP may go on using it. Nor is it known while an attempt is young.
//!
//! At most [`CAPACITY`] entries of each of two generations are kept: when one is full, the older one is forgotten. An
//! entry that is used moves to the younger one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use godwit_report::record::WhyNotH3;

const CAPACITY: usize = 32_768;
/// An attempt may still succeed.
const YOUNG: u32 = 3;

/// What can be known of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// It was told of HTTP/3.
    Told,
    /// A first packet of a QUIC connection came.
    Attempt,
    /// A QUIC handshake was finished.
    Finished,
}

/// When things happened last: seconds since the start, plus one; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    told: u32,
    attempt: u32,
    finished: u32,
}

type Generation = HashMap<u64, Seen, BuildHasherDefault<AsItIs>>;

#[derive(Debug)]
pub(super) struct Evidence(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

impl Evidence {
    pub(super) fn new() -> Evidence {
        Evidence(Mutex::default())
    }

    /// Notes a fact about whoever has this hash.
    pub(super) fn note(&self, whom: u64, fact: Fact, now: Duration) {
        let now = seconds(now);
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = generations.entry(whom);
        match fact {
            Fact::Told => seen.told = now,
            Fact::Attempt => seen.attempt = now,
            Fact::Finished => seen.finished = now,
        }
    }

    /// Why somebody at this address, or this user, came by TCP. What was told is remembered by clients for `age`.
    pub(super) fn why(
        &self,
        address: u64,
        user: Option<u64>,
        age: Duration,
        now: Duration,
    ) -> Option<WhyNotH3> {
        let (now, age) = (seconds(now), u32::try_from(age.as_secs()).unwrap_or(u32::MAX));
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = generations.get(address);
        let fresh = |told: u32| told > 0 && now.saturating_sub(told) <= age;
        if !fresh(seen.told) {
            let elsewhere = user.is_some_and(|user| fresh(generations.get(user).told));
            return Some(if elsewhere { WhyNotH3::OtherAddress } else { WhyNotH3::NotAdvertised });
        }
        if seen.finished > 0 && seen.finished >= seen.attempt {
            return None;
        }
        match seen.attempt {
            0 => Some(WhyNotH3::NoAttempt),
            attempt if now.saturating_sub(attempt) < YOUNG => None,
            _ => Some(WhyNotH3::AttemptFailed),
        }
    }
}

impl Generations {
    fn get(&self, whom: u64) -> Seen {
        self.young.get(&whom).or_else(|| self.old.get(&whom)).copied().unwrap_or_default()
    }

    fn entry(&mut self, whom: u64) -> &mut Seen {
        if self.young.len() >= CAPACITY && !self.young.contains_key(&whom) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(whom).or_insert_with(|| old.remove(&whom).unwrap_or_default())
    }
}

fn seconds(since: Duration) -> u32 {
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX).saturating_add(1)
}

/// The keys are keyed hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_reason_follows_from_what_was_seen() {
        let evidence = Evidence::new();
        let why = |now| evidence.why(1, Some(2), DAY, at(now));
        assert_eq!(why(0), Some(WhyNotH3::NotAdvertised), "the first visit");
        evidence.note(1, Fact::Told, at(0));
        assert_eq!(why(0), Some(WhyNotH3::NoAttempt));
        assert_eq!(why(86_401), Some(WhyNotH3::NotAdvertised), "it has forgotten");
        evidence.note(1, Fact::Attempt, at(10));
        assert_eq!(why(11), None, "it may still succeed");
        assert_eq!(why(13), Some(WhyNotH3::AttemptFailed));
        evidence.note(1, Fact::Finished, at(14));
        assert_eq!(why(15), None, "it works from there");
        evidence.note(1, Fact::Attempt, at(100));
        assert_eq!(why(200), Some(WhyNotH3::AttemptFailed), "no longer");
    }

    #[test]
    fn a_user_who_has_moved_is_told_from_a_new_one() {
        let evidence = Evidence::new();
        evidence.note(2, Fact::Told, at(0));
        assert_eq!(evidence.why(1, Some(2), DAY, at(5)), Some(WhyNotH3::OtherAddress));
        assert_eq!(evidence.why(1, Some(3), DAY, at(5)), Some(WhyNotH3::NotAdvertised));
        assert_eq!(evidence.why(1, None, DAY, at(5)), Some(WhyNotH3::NotAdvertised));
    }

    #[test]
    fn what_is_used_is_kept_and_the_rest_forgotten() {
        let evidence = Evidence::new();
        evidence.note(u64::MAX, Fact::Told, at(0));
        for whom in 0..(CAPACITY as u64 * 4) {
            evidence.note(whom, Fact::Told, at(0));
            if whom % 1000 == 0 {
                evidence.note(u64::MAX, Fact::Attempt, at(0));
            }
        }
        let generations = evidence.0.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * CAPACITY);
        assert!(generations.get(u64::MAX).told > 0);
        assert!(generations.get(0).told == 0);
    }
}
