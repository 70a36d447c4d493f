//! The times of requests by the names that they are asked for by.

use std::str::FromStr;

use crate::dimension::Metric;

impl Metric {
    /// Its name: `last-mile`, `first-byte`, `last-byte`, `delivered` or `upstream`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Metric::LastMile => "last-mile",
            Metric::FirstByte => "first-byte",
            Metric::LastByte => "last-byte",
            Metric::Delivered => "delivered",
            Metric::Upstream => "upstream",
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(name: &str) -> Result<Metric, String> {
        Metric::ALL.iter().find(|metric| metric.name() == name).copied().ok_or_else(|| {
            let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused() {
        for metric in Metric::ALL {
            assert_eq!(metric.name().parse(), Ok(*metric));
        }
        assert!("mood".parse::<Metric>().unwrap_err().contains("last-mile"));
    }
}
