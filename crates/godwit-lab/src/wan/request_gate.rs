//! Whether small requests take longer than they did.
//!
//! The 99th percentiles of 20,000 requests are checked in, by network and kind. The same seed gives the same requests on
//! every machine, so that they change only with what is simulated.

use std::time::Duration;

use super::request_table::RequestTable;

/// Network, kind and the 99th percentile in milliseconds.
const CHECKED_IN: &str = include_str!("../../data/wan-requests.csv");
/// What a 99th percentile may rise to, in percent.
const MOST: u32 = 105;

impl RequestTable {
    /// What takes more than a twentieth longer than the result that is checked in, or has none; empty if all is well.
    pub fn slower(&self) -> Vec<String> {
        self.slower_than(CHECKED_IN)
    }

    fn slower_than(&self, before: &str) -> Vec<String> {
        let judge = |row: &super::RequestRow| {
            let (profile, kind) = (self.profile.name, row.acquaintance.name());
            let p99 = row.answered.latencies.per_mille(990);
            let Some(before) = find(before, profile, kind) else {
                return Some(format!("{profile} {kind}: no result is checked in"));
            };
            (p99 > before * MOST / 100)
                .then(|| format!("{profile} {kind}: P99 was {before:?} and is {p99:?} now"))
        };
        self.rows.iter().filter_map(judge).collect()
    }
}

fn find(results: &str, profile: &str, kind: &str) -> Option<Duration> {
    let of = |line: &str| {
        let mut fields = line.split(',');
        let same = fields.next() == Some(profile) && fields.next() == Some(kind);
        let p99 = fields.next().filter(|_| same)?.parse().ok()?;
        Some(Duration::from_millis(p99))
    };
    results.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::{Acquaintance, Requests};

    fn measured(profile: &str, count: u32) -> RequestTable {
        let requests = Requests { count, ..Requests::default() };
        RequestTable::measure(&profile.parse().unwrap(), &requests, &[Acquaintance::Network], |_, _| {})
    }

    #[test]
    fn a_twentieth_is_permitted_and_no_more() {
        let table = measured("uber-a", 200);
        let p99 = table.rows[0].answered.latencies.per_mille(990).as_millis();
        let against = |before: u128| table.slower_than(&format!("Profile,Kind,P99\nuber-a,cold,{before}\n"));
        assert!(against(p99).is_empty() && against(p99 * 100 / 104).is_empty());
        assert!(against(p99 * 100 / 106)[0].starts_with("uber-a cold: P99 was"));
        assert!(table.slower_than("uber-b,cold,9999\nuber-a,warm,9999\n")[0].ends_with("checked in"));
    }

    /// All 20,000 requests only where the simulations are long.
    #[test]
    fn requests_are_not_slower_than_they_were() {
        for profile in ["uber-a", "uber-c"] {
            assert!(find(CHECKED_IN, profile, "cold").is_some(), "{profile}");
            if std::env::var_os("GODWIT_FULL").is_some() {
                assert_eq!(measured(profile, 20_000).slower(), Vec::<String>::new());
            }
        }
    }
}
