//! Requests over one network, by what client and server know of each other.

use std::fmt;
use std::time::Duration;

use godwit_transport::TailPolicy;

use super::profile::Profile;
use super::requests::{Acquaintance, Answered, Requests};

/// Requests without loss by which datagrams are counted: they differ only by where packets meet.
const COUNTED: u32 = 1;
/// With loss, one in so many is made by RFC 9002 as well: a mean needs fewer than a percentile.
const COMPARED: u32 = 2;

/// What came of requests of several kinds over one network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestTable {
    /// The network.
    pub profile: Profile,
    /// By kind.
    pub rows: Vec<RequestRow>,
}

/// What came of requests of one kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestRow {
    /// Their kind.
    pub acquaintance: Acquaintance,
    /// What came of them.
    pub answered: Answered,
    /// Datagrams of each round over the same network with the timers of RFC 9002 and nothing sent twice
    /// ([`TailPolicy::rfc_9002`]).
    pub rfc_9002: f64,
    /// Datagrams of each round if nothing is lost.
    pub lossless: f64,
    /// The same by RFC 9002.
    pub least: f64,
}

impl RequestRow {
    /// Datagrams more than by RFC 9002 over the same network: what it costs that answers are there sooner. Those of the
    /// server are counted where they arrive.
    pub fn extra(&self) -> f64 {
        self.answered.datagrams - self.rfc_9002
    }
}

impl RequestTable {
    /// Makes `requests` of each of these kinds. `progress` is told how much of how much is done.
    pub fn measure(
        profile: &Profile,
        requests: &Requests,
        kinds: &[Acquaintance],
        progress: impl Fn(usize, usize) + Sync,
    ) -> Self {
        let row = |(number, kind): (usize, &Acquaintance)| {
            let requests = Requests { acquaintance: *kind, ..requests.clone() };
            let answered = requests.run(profile, |done, of| progress(of * number + done, of * kinds.len()));
            let mut few = Requests { count: COUNTED, ..requests.clone() };
            let lossless = few.run(&profile.without_loss(), |_, _| {}).datagrams;
            few.transport.tail = TailPolicy::rfc_9002();
            let least = few.run(&profile.without_loss(), |_, _| {}).datagrams;
            few.count = requests.count / COMPARED;
            let rfc_9002 = few.run(profile, |_, _| {}).datagrams;
            RequestRow { acquaintance: *kind, answered, rfc_9002, lossless, least }
        };
        RequestTable { profile: *profile, rows: kinds.iter().enumerate().map(row).collect() }
    }
}

impl fmt::Display for RequestTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}, {} ms: milliseconds until the answer is there",
            self.profile.name,
            self.profile.rtt.as_millis()
        )?;
        writeln!(
            f,
            "{:<8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>8} {:>9} {:>6} {:>8} {:>6}",
            "kind",
            "count",
            "p50",
            "p75",
            "p90",
            "p95",
            "p99",
            "p99.9",
            "mean",
            "> 3 RTT",
            "datagrams",
            "extra",
            "lossless",
            "least"
        )?;
        for row in &self.rows {
            let RequestRow { acquaintance, answered, lossless, least, .. } = row;
            let latencies = &answered.latencies;
            write!(f, "{acquaintance:<8} {:>7}", latencies.len())?;
            for rank in [500, 750, 900, 950, 990, 999] {
                write!(f, " {:>6}", Milliseconds(latencies.per_mille(rank)))?;
            }
            let slow = 100.0 * latencies.share_above(self.profile.rtt * 3);
            writeln!(
                f,
                " {:>6} {slow:>6.2} % {:>9.2} {:>6.2} {lossless:>8.2} {least:>6.2}",
                Milliseconds(latencies.mean()),
                answered.datagrams,
                row.extra()
            )?;
        }
        Ok(())
    }
}

struct Milliseconds(Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Duration::MAX => f.pad("never"),
            // Rounded, as all figures beside it.
            time => f.pad(&format!("{:.0}", time.as_secs_f64() * 1000.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(profile: &str, kinds: &[Acquaintance], tail: TailPolicy, count: u32) -> RequestTable {
        let mut requests = Requests { count, ..Requests::default() };
        requests.transport.tail = tail;
        RequestTable::measure(&profile.parse().unwrap(), &requests, kinds, |_, _| {})
    }

    #[test]
    fn nothing_is_bought_with_many_datagrams_where_nothing_is_lost() {
        let kinds = [Acquaintance::None, Acquaintance::Network, Acquaintance::Connected];
        for profile in ["uber-a", "lte"] {
            for (row, most) in
                measure(profile, &kinds, TailPolicy::default(), 400).rows.iter().zip([4.0, 4.0, 2.0])
            {
                let extra = row.lossless - row.least;
                // Where acknowledgements meet is up to chance.
                assert!((-0.5..=most).contains(&extra), "{profile} {}: {extra}", row.acquaintance);
            }
        }
    }

    #[test]
    fn who_is_frugal_sends_few_datagrams_more_wherever_he_is() {
        let (cold, warm) = (Acquaintance::Network, Acquaintance::Connected);
        // Of warm rounds over the worst network so few are too much up to chance.
        for (profile, kind, most) in [("uber-a", cold, 4.0), ("uber-c", cold, 4.0), ("uber-a", warm, 2.0)] {
            let table = measure(profile, &[kind], TailPolicy::frugal(), 1200);
            let extra = table.rows.first().unwrap().extra();
            assert!(extra <= most, "{profile} {kind}: {extra}");
        }
    }

    #[test]
    fn few_wait_long_in_a_network_that_is_known_to_be_lossy() {
        for (profile, p50, p95, p99) in [("uber-a", 708, 1000, 1500), ("uber-c", 1550, 2900, 3300)] {
            let table = measure(profile, &[Acquaintance::Network], TailPolicy::default(), 1600);
            let latencies = &table.rows.first().unwrap().answered.latencies;
            let ranks = [(500, p50), (950, p95), (990, p99)];
            for (rank, most) in ranks {
                assert!(latencies.per_mille(rank) <= Duration::from_millis(most), "{rank}: {table}");
            }
        }
    }
}
