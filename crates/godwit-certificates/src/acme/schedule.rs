//! When to ask for a certificate, and when to ask again.
//!
//! A certificate is renewed when two thirds of its life are over, or when the server says (RFC 9773). The exact
//! moment is spread, by a number that follows from the certificate, so that many servers do not ask together and a
//! restart does not change it.
//!
//! After a failure the wait doubles each time. Where it begins depends on who is to blame: Let's Encrypt, for one,
//! allows five failed proofs for a name in an hour.

use std::time::Duration;

use super::problem::Kind;

const HOUR: u64 = 3600;
/// How long after a certificate was issued to ask for the next one at the earliest: a server that issues what is
/// due already must not be asked without end.
const AT_LEAST: i64 = 3600;

/// Something that is valid for a time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl Span {
    fn length(self) -> i64 {
        self.end.saturating_sub(self.begin).max(0)
    }
}

/// From 0 to 999, always the same for a certificate.
pub(super) fn spread_of(certificate: &[u8]) -> i64 {
    let hash = godwit_tls::sha256(certificate);
    let number = hash.iter().take(4).fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
    number % 1000
}

/// When a certificate is to be renewed. `window` is what its server suggests, `issued` when this program got it,
/// if it did.
pub(super) fn due(validity: Span, window: Option<Span>, issued: Option<i64>, spread: i64) -> i64 {
    let life = validity.length();
    let by_age = validity.end - life / 3 - life / 36 * spread / 1000;
    // A suggestion that leaves no time for a second attempt is not followed.
    let latest = validity.end - life / 6;
    let wanted = match window {
        Some(window) => (window.begin + window.length() / 1000 * spread).min(latest),
        None => by_age,
    };
    let earliest = issued.map(|at| at + AT_LEAST.min(life / 4));
    wanted.max(earliest.unwrap_or(i64::MIN))
}

/// How long to wait after so many failures in a row, the last one of this kind. `asked` is what the server wants,
/// `chance` is from 0 to 255.
pub(super) fn wait(failures: u32, kind: Kind, asked: Option<Duration>, chance: u8) -> Duration {
    let (first, most) = match kind {
        Kind::Unreachable => (10, HOUR),
        Kind::NotProved => (300, 6 * HOUR),
        Kind::Refused => (HOUR, 24 * HOUR),
        Kind::Limited => (HOUR, 24 * HOUR),
    };
    let doubled = first << failures.saturating_sub(1).min(20);
    let seconds = doubled.min(most).max(asked.map_or(0, |asked| asked.as_secs().min(7 * 24 * HOUR)));
    let more = seconds * 1000 / 10 * u64::from(chance) / 255;
    Duration::from_millis(seconds * 1000 + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;
    const NINETY: Span = Span { begin: 0, end: 90 * DAY };

    #[test]
    fn two_thirds_of_the_life_are_lived() {
        assert_eq!(due(NINETY, None, None, 0), 60 * DAY);
        let early = due(NINETY, None, None, 999);
        assert!(early < 60 * DAY && early > 57 * DAY, "{early}");
        let short = due(Span { begin: 0, end: 60 }, None, Some(0), 0);
        assert_eq!(short, 40);
    }

    #[test]
    fn the_server_may_say_when() {
        let window = Span { begin: 30 * DAY, end: 32 * DAY };
        assert_eq!(due(NINETY, Some(window), None, 0), 30 * DAY);
        let late = due(NINETY, Some(window), None, 999);
        assert!(late > 31 * DAY && late <= 32 * DAY, "{late}");
        let revoked = Span { begin: -10, end: -5 };
        assert_eq!(due(NINETY, Some(revoked), None, 500), -10, "at once");
        let too_late = Span { begin: 89 * DAY, end: 90 * DAY };
        assert_eq!(due(NINETY, Some(too_late), None, 0), 75 * DAY);
    }

    #[test]
    fn nobody_is_asked_without_end() {
        let revoked = Span { begin: 0, end: 0 };
        assert_eq!(due(NINETY, Some(revoked), Some(5 * DAY), 0), 5 * DAY + 3600);
        let dead = Span { begin: 0, end: 0 };
        assert_eq!(due(dead, None, Some(100), 0), 100, "it has no life to wait for");
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        let seconds = |failures, kind| wait(failures, kind, None, 0).as_secs();
        assert_eq!([1, 2, 3].map(|n| seconds(n, Kind::Unreachable)), [10, 20, 40]);
        assert_eq!([1, 2, 3].map(|n| seconds(n, Kind::NotProved)), [300, 600, 1200]);
        assert_eq!(seconds(u32::MAX, Kind::NotProved), 6 * 3600);
        assert_eq!(seconds(1, Kind::Limited), 3600);
        assert_eq!(wait(1, Kind::Limited, Some(Duration::from_secs(9000)), 0).as_secs(), 9000);
        assert_eq!(wait(1, Kind::Unreachable, None, 255).as_millis(), 11_000);
    }

    #[test]
    fn five_failures_within_an_hour_are_avoided() {
        let mut at = Duration::ZERO;
        let mut within = 0;
        for failures in 1..10 {
            if at < Duration::from_secs(3600) {
                within += 1;
            }
            at += wait(failures, Kind::NotProved, None, 0);
        }
        assert!(within < 5, "{within}");
    }

    #[test]
    fn certificates_are_spread() {
        let spread: Vec<_> = (0..100_u8).map(|n| spread_of(&[n])).collect();
        assert!(spread.iter().all(|spread| (0..1000).contains(spread)));
        assert!(spread.iter().max() > Some(&900) && spread.iter().min() < Some(&100));
    }
}
