//! Which policy is worth how much to those who wait for small requests.
//!
//! Every combination of the policies is tried over the same network with the same seed. What a policy is worth beside all
//! others is what is lost without it (leave one out). What it is worth by itself depends on which others there are
//! already: its Shapley value is the mean over all orders in which they could have been introduced, so that the values of
//! all add up to the whole gain.

use std::fmt;
use std::time::Duration;

use godwit_transport::TailPolicy;

use super::latencies::Latencies;
use super::profile::Profile;
use super::requests::Requests;

/// The percentiles looked at, in thousandths.
pub(super) const RANKS: [usize; 5] = [500, 900, 950, 990, 999];
/// What is not answered counts as so long.
const NEVER: Duration = Duration::from_secs(120);

/// A policy that can be left out.
struct Switch {
    name: &'static str,
    off: fn(&mut TailPolicy, &TailPolicy),
}

/// The policies: what each sets back to RFC 9002.
const SWITCHES: [Switch; 6] = [
    Switch { name: "known round-trip time", off: |policy, rfc| policy.known_rtt = rfc.known_rtt },
    Switch {
        name: "flights sent twice",
        off: |policy, rfc| {
            policy.repeated_flight = rfc.repeated_flight;
            policy.repeated_flight_if_lossy = rfc.repeated_flight_if_lossy;
        },
    },
    Switch { name: "tails sent twice", off: |policy, rfc| policy.repeated_tail = rfc.repeated_tail },
    Switch { name: "spaced probes", off: |policy, rfc| policy.spaced_probes = rfc.spaced_probes },
    Switch { name: "whole flights", off: |policy, rfc| policy.whole_flights = rfc.whole_flights },
    Switch { name: "immediate acknowledgement", off: |policy, _| policy.immediate_ack = false },
];

/// What a policy is worth: milliseconds less to wait, by percentile.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Worth {
    /// The policy.
    pub name: &'static str,
    /// What is lost without it beside all others.
    pub left_out: [f64; RANKS.len()],
    /// Its Shapley value.
    pub shapley: [f64; RANKS.len()],
}

/// What each policy is worth over one network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attribution {
    /// The network.
    pub profile: Profile,
    /// How long requests take with none of the policies, and with all, in milliseconds by percentile.
    pub ends: [[f64; RANKS.len()]; 2],
    /// By policy.
    pub worths: Vec<Worth>,
}

impl Attribution {
    /// Tries all combinations. `progress` is told how many of how many are done.
    pub fn measure(profile: &Profile, requests: &Requests, progress: impl Fn(usize, usize)) -> Self {
        let coalitions = 1 << SWITCHES.len();
        let took = |members: usize| {
            let mut requests = requests.clone();
            let rfc = TailPolicy::rfc_9002();
            for (_, switch) in SWITCHES.iter().enumerate().filter(|(at, _)| members >> at & 1 == 0) {
                (switch.off)(&mut requests.transport.tail, &rfc);
            }
            let latencies = requests.run(profile, |_, _| {}).latencies;
            progress(members + 1, coalitions);
            milliseconds(&latencies)
        };
        let times: Vec<_> = (0..coalitions).map(took).collect();
        Attribution::of(profile, &SWITCHES.map(|switch| switch.name), &times)
    }

    /// Of how long requests took with every set of members, whose bits are the numbers of the sets.
    pub(super) fn of(profile: &Profile, names: &[&'static str], times: &[[f64; RANKS.len()]]) -> Self {
        let ends = [times.first(), times.last()].map(|times| times.copied().unwrap_or_default());
        let worths = names.iter().enumerate().map(|(at, name)| worth(name, at, names.len(), times)).collect();
        Attribution { profile: *profile, ends, worths }
    }
}

/// Milliseconds by percentile.
pub(super) fn milliseconds(latencies: &Latencies) -> [f64; RANKS.len()] {
    RANKS.map(|rank| latencies.per_mille(rank).min(NEVER).as_secs_f64() * 1000.0)
}

fn worth(name: &'static str, at: usize, switches: usize, times: &[[f64; RANKS.len()]]) -> Worth {
    let (mut left_out, mut shapley) = ([0.0; RANKS.len()], [0.0; RANKS.len()]);
    let others = switches - 1;
    for (members, with) in times.iter().enumerate().filter(|(members, _)| members >> at & 1 == 1) {
        let Some(without) = times.get(members & !(1 << at)) else { continue };
        let before = (members.count_ones() - 1) as usize;
        // The share of all orders in which just these come before it.
        let weight = 1.0 / (switches as f64 * binomial(others, before));
        let all = members + 1 == times.len();
        for ((rank, with), without) in with.iter().enumerate().zip(without) {
            let gain = without - with;
            if let Some(value) = shapley.get_mut(rank) {
                *value += weight * gain;
            }
            if let Some(value) = left_out.get_mut(rank).filter(|_| all) {
                *value = gain;
            }
        }
    }
    Worth { name, left_out, shapley }
}

fn binomial(of: usize, chosen: usize) -> f64 {
    (0..chosen).fold(1.0, |product, at| product * (of - at) as f64 / (at + 1) as f64)
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, of: &str, values: &[f64]| {
            write!(f, "{name:<24} {of:<8}")?;
            values.iter().try_for_each(|value| write!(f, " {value:>7.0}"))?;
            writeln!(f)
        };
        writeln!(
            f,
            "{}: milliseconds until the answer is there, and less of them by each",
            self.profile.name
        )?;
        writeln!(f, "{:<33} {:>7} {:>7} {:>7} {:>7} {:>7}", "", "p50", "p90", "p95", "p99", "p99.9")?;
        let [none, all] = &self.ends;
        line(f, "none", "", none)?;
        line(f, "all", "", all)?;
        for worth in &self.worths {
            line(f, worth.name, "last", &worth.left_out)?;
            line(f, "", "shapley", &worth.shapley)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_are_those_of_the_definition() {
        // The first halves what is there, the second takes 10 away, the others do nothing.
        let times: Vec<_> = (0..1_usize << SWITCHES.len())
            .map(|members| {
                let whole = if members & 2 == 0 { 100.0 } else { 90.0 };
                [if members & 1 == 0 { whole } else { whole / 2.0 }; RANKS.len()]
            })
            .collect();
        let worths: Vec<_> = (0..SWITCHES.len()).map(|at| worth("", at, SWITCHES.len(), &times)).collect();
        let first = |values: &dyn Fn(&Worth) -> f64| worths.iter().map(values).collect::<Vec<_>>();
        let close =
            |left: Vec<f64>, right: [f64; 5]| left.iter().zip(right).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close(first(&|worth| worth.shapley[0]), [47.5, 7.5, 0.0, 0.0, 0.0]), "{worths:?}");
        assert!(close(first(&|worth| worth.left_out[4]), [45.0, 5.0, 0.0, 0.0, 0.0]), "{worths:?}");
    }

    #[test]
    fn switching_everything_off_is_the_rfc() {
        let (mut policy, rfc) = (TailPolicy::default(), TailPolicy::rfc_9002());
        SWITCHES.iter().for_each(|switch| (switch.off)(&mut policy, &rfc));
        (policy.copies, policy.allowance) = (rfc.copies, rfc.allowance);
        // Neither is of RFC 9002, and the second is not for small exchanges.
        (policy.immediate_ack, policy.probed_stalls) = (rfc.immediate_ack, rfc.probed_stalls);
        assert_eq!(policy, rfc);
    }
}
