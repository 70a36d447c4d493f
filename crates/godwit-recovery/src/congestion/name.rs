//! The algorithms by their names, as people write them.

use super::Algorithm;
use std::fmt;
use std::str::FromStr;

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 4] = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague];

    /// Its name: `newreno`, `cubic`, `bbr` or `prague`.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::NewReno => "newreno",
            Algorithm::Cubic => "cubic",
            Algorithm::Bbr => "bbr",
            Algorithm::Prague => "prague",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or(UnknownAlgorithm)
    }
}

/// A name that none of the algorithms has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Algorithm::ALL.map(Algorithm::name).join(", ");
        write!(f, "there is no such congestion controller; expected one of {names}")
    }
}

impl std::error::Error for UnknownAlgorithm {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
        }
        let refused = "vegas".parse::<Algorithm>().unwrap_err().to_string();
        assert!(refused.ends_with("expected one of newreno, cubic, bbr, prague"), "{refused}");
    }
}
