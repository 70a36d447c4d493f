//! Requests over one network, by what client and server know of each other.

use std::fmt;
use std::time::Duration;

use super::profile::Profile;
use super::requests::{Acquaintance, Answered, Requests};

/// Requests without loss by which datagrams are counted: they differ only by where packets meet.
const COUNTED: u32 = 1;

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
    /// Datagrams of each round if nothing is lost.
    pub lossless: f64,
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
            let few = Requests { count: COUNTED, ..requests.clone() };
            let lossless = few.run(&profile.without_loss(), |_, _| {}).datagrams;
            RequestRow { acquaintance: *kind, answered, lossless }
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
            "{:<8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>8} {:>9} {:>8}",
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
            "lossless"
        )?;
        for RequestRow { acquaintance, answered, lossless } in &self.rows {
            let latencies = &answered.latencies;
            write!(f, "{acquaintance:<8} {:>7}", latencies.len())?;
            for rank in [500, 750, 900, 950, 990, 999] {
                write!(f, " {:>6}", Milliseconds(latencies.per_mille(rank)))?;
            }
            let slow = 100.0 * latencies.share_above(self.profile.rtt * 3);
            writeln!(
                f,
                " {:>6} {slow:>6.2} % {:>9.2} {lossless:>8.2}",
                Milliseconds(latencies.mean()),
                answered.datagrams
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
