//! Random choices in integers, so that they fall the same way on every machine.

use godwit_base::Rng;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A probability with a resolution of 2^-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u64);

impl Probability {
    /// It does not happen.
    pub const NEVER: Probability = Probability(0);
    /// It happens every time.
    pub const ALWAYS: Probability = Probability(u64::MAX);

    /// The probability `p`; what lies outside 0 to 1 is taken to the nearer end, and NaN to 0.
    pub fn new(p: f64) -> Self {
        const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
        // The product is exact (a power of two) and the conversion saturates.
        Probability((p * TWO_TO_64) as u64)
    }

    /// `percent` of a hundred.
    pub fn percent(percent: f64) -> Self {
        Probability::new(percent / 100.0)
    }

    /// The nearest floating-point number.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / u64::MAX as f64
    }

    /// Decides once. Never and always draw no number.
    pub fn draw(self, rng: &mut impl Rng) -> bool {
        match self {
            Probability::NEVER => false,
            Probability::ALWAYS => true,
            Probability(threshold) => rng.next_u64() < threshold,
        }
    }
}

/// A duration drawn evenly from zero to `most`, both included.
pub(crate) fn uniform(rng: &mut impl Rng, most: Duration) -> Duration {
    Duration::from_nanos(rng.below(nanos(most).saturating_add(1)))
}

/// A duration from the exponential distribution of this mean.
///
/// This is the inverse method, -ln(u) * mean, with the logarithm taken in fixed point: the platform's
/// `ln` may differ in the last bit from one machine to another.
pub(crate) fn exponential(rng: &mut impl Rng, mean: Duration) -> Duration {
    let minus_ln = minus_ln_q32(rng.next_u64() | 1);
    let product = u128::from(nanos(mean)) * u128::from(minus_ln);
    Duration::from_nanos(u64::try_from(product >> 32).unwrap_or(u64::MAX))
}

/// -ln(u / 2^64) with 32 bits behind the point. `u` must not be 0.
fn minus_ln_q32(u: u64) -> u64 {
    const LN_2_Q32: u128 = 2_977_044_472;
    let zeros = u.leading_zeros();
    // The mantissa in [1, 2) with 63 bits behind the point; each squaring shifts one bit of its base-two
    // logarithm in front of the point.
    let mut mantissa = u128::from(u.wrapping_shl(zeros));
    let mut fraction = 0_u64;
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> 63;
        let bit = u64::from(mantissa >> 64 != 0);
        mantissa >>= bit;
        fraction = (fraction << 1) | bit;
    }
    let minus_log2 = ((u64::from(zeros) + 1) << 32) - fraction;
    ((u128::from(minus_log2) * LN_2_Q32) >> 32) as u64
}

/// A share as people write it: one of so many (`1/10000`) or percent (`3.5%`). A bare number says neither, and is refused.
impl FromStr for Probability {
    type Err = WrongShare;

    fn from_str(text: &str) -> Result<Self, WrongShare> {
        let number =
            |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        let share = match (text.split_once('/'), text.strip_suffix('%')) {
            (Some((part, whole)), None) => number(part).zip(number(whole)).map(|(part, whole)| part / whole),
            (None, Some(percent)) => number(percent).map(|percent| percent / 100.0),
            _ => None,
        };
        // Of NaN, which is nothing of nothing, this is false.
        share.filter(|share| *share <= 1.0).map(Probability::new).ok_or(WrongShare)
    }
}

/// What was written is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongShare;

impl fmt::Display for WrongShare {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("expected one of so many or percent, such as 1/10000 or 3.5%")
    }
}

impl Error for WrongShare {}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SeededRng;

    #[test]
    fn shares_are_written_as_one_of_many_or_percent() {
        for (text, share) in
            [("1/10000", 1e-4), ("3.5%", 0.035), ("0%", 0.0), ("0/1", 0.0), ("1/1", 1.0), (" 7 %", 0.07)]
        {
            assert_eq!(text.parse(), Ok(Probability::new(share)), "{text}");
        }
        for wrong in
            ["", "1000", "0.035", "%", "1/", "/2", "1/0", "0/0", "2/1", "101%", "-1%", "NaN%", "inf%", "1/2%"]
        {
            assert_eq!(wrong.parse::<Probability>(), Err(WrongShare), "{wrong}");
        }
    }

    #[test]
    fn conversions_keep_the_ends() {
        assert_eq!(Probability::new(0.0), Probability::NEVER);
        assert_eq!(Probability::new(-3.0), Probability::NEVER);
        assert_eq!(Probability::new(f64::NAN), Probability::NEVER);
        assert_eq!(Probability::new(1.0), Probability::ALWAYS);
        assert_eq!(Probability::new(7.0), Probability::ALWAYS);
        assert_eq!(Probability::percent(50.0), Probability(1 << 63));
        assert!((Probability::new(0.05).as_f64() - 0.05).abs() < 1e-12);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn draws_lie_within_the_binomial_bounds() {
        let mut rng = SeededRng::new(3);
        for p in [0.001, 0.05, 0.5, 0.99] {
            let n = 200_000;
            let hits = (0..n).filter(|_| Probability::new(p).draw(&mut rng)).count();
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            let off = (hits as f64 - f64::from(n) * p).abs();
            assert!(off < 4.0 * sigma, "p {p}: {hits} of {n}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn logarithm_agrees_with_the_library() {
        let mut rng = SeededRng::new(4);
        for _ in 0..10_000 {
            let u = rng.next_u64() >> rng.below(64) | 1;
            let expected = -((u as f64) / 2f64.powi(64)).ln();
            let ours = minus_ln_q32(u) as f64 / 2f64.powi(32);
            assert!((ours - expected).abs() < 1e-8, "u {u}: {ours} for {expected}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn exponential_has_its_mean_and_its_tail() {
        let (mut rng, mean, n) = (SeededRng::new(5), Duration::from_millis(40), 100_000);
        let draws: Vec<_> = (0..n).map(|_| exponential(&mut rng, mean)).collect();
        let sum: Duration = draws.iter().sum();
        // The standard error of the mean is 40 ms / sqrt(n).
        let off = (sum / n).abs_diff(mean);
        assert!(off < Duration::from_micros(510), "mean off by {off:?}");
        let tail = draws.iter().filter(|d| **d > mean).count() as f64 / f64::from(n);
        assert!((tail - (-1f64).exp()).abs() < 0.0062, "tail {tail}");
    }

    #[test]
    fn uniform_reaches_both_ends() {
        let mut rng = SeededRng::new(6);
        let most = Duration::from_nanos(3);
        let draws: Vec<_> = (0..200).map(|_| uniform(&mut rng, most)).collect();
        assert_eq!(draws.iter().min(), Some(&Duration::ZERO));
        assert_eq!(draws.iter().max(), Some(&most));
    }
}
