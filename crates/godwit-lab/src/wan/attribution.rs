//! Which policy is worth how much to those who wait for small requests.
//!
//! Every combination of the policies is tried over the same network with the same seed. What a policy is worth beside all
//! others is what is lost without it (leave one out). What it is worth by itself depends on which others there are
//! already: its Shapley value is the mean over all orders in which they could have been introduced, so that the values of
//! all add up to the whole gain.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use godwit_transport::TailPolicy;

use super::latencies::Latencies;
use super::profile::Profile;
use super::requests::Requests;
use super::shapley::{Game, RANKS, Times, Value};

/// What is not answered counts as so long.
const NEVER: Duration = Duration::from_secs(120);

/// Something that can be left out.
pub(super) struct Switch {
    pub(super) name: &'static str,
    pub(super) off: fn(&mut Requests),
    /// Who asks for one thing alone cannot notice it.
    pub(super) for_many: bool,
}

impl Switch {
    pub(super) const fn new(name: &'static str, off: fn(&mut Requests)) -> Self {
        Switch { name, off, for_many: false }
    }

    pub(super) const fn for_many(name: &'static str, off: fn(&mut Requests)) -> Self {
        Switch { name, off, for_many: true }
    }
}

const RFC: TailPolicy = TailPolicy::rfc_9002();

/// The policies: what each sets back to RFC 9002.
const POLICIES: [Switch; 6] = [
    Switch::new("known round-trip time", |requests| requests.transport.tail.known_rtt = RFC.known_rtt),
    Switch::new("flights sent twice", |requests| {
        let policy = &mut requests.transport.tail;
        policy.repeated_flight = RFC.repeated_flight;
        policy.repeated_flight_if_lossy = RFC.repeated_flight_if_lossy;
    }),
    Switch::new("tails sent twice", |requests| requests.transport.tail.repeated_tail = RFC.repeated_tail),
    Switch::new("spaced probes", |requests| requests.transport.tail.spaced_probes = RFC.spaced_probes),
    Switch::new("whole flights", |requests| requests.transport.tail.whole_flights = RFC.whole_flights),
    Switch::new("immediate acknowledgement", |requests| requests.transport.tail.immediate_ack = false),
];

/// Policies that are off by default, and how they are switched on.
const ADDED: [Switch; 1] = [Switch::new("capped back-off", |requests| {
    // As little as may be: the first four timeouts in a row are all as long as the first.
    requests.transport.tail.most_backed_off = Some(Duration::ZERO);
})];

/// What something is worth: milliseconds less to wait, by percentile.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Worth {
    /// What it is.
    pub name: &'static str,
    /// What is lost without it beside all others.
    pub left_out: [f64; RANKS.len()],
    /// Its Shapley value.
    pub shapley: [f64; RANKS.len()],
    /// The standard error of that, where not all orders were looked at.
    pub error: Option<[f64; RANKS.len()]>,
}

/// What each of several things is worth over one network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attribution {
    /// The network.
    pub profile: Profile,
    /// How long requests take with none of them, and with all, in milliseconds by percentile.
    pub ends: [[f64; RANKS.len()]; 2],
    /// By each.
    pub worths: Vec<Worth>,
    /// What is off by default, and would be gained with it beside all others.
    pub added: Vec<(&'static str, [f64; RANKS.len()])>,
    /// How many orders were drawn by chance, with which seed; without, all were looked at.
    pub drawn: Option<(usize, u64)>,
}

impl Attribution {
    /// Tries combinations of policies. `progress` is told how many of how many simulations are done.
    pub fn measure(profile: &Profile, requests: &Requests, progress: impl Fn(usize, usize)) -> Self {
        Attribution::among(profile, requests, &POLICIES, &ADDED, progress)
    }

    /// Tries combinations of what `switches` leave out, and to have each of `added` beside all.
    pub(super) fn among(
        profile: &Profile,
        requests: &Requests,
        switches: &[Switch],
        added: &[Switch],
        progress: impl Fn(usize, usize),
    ) -> Self {
        let alone = |switch: &Switch| switch.for_many && requests.at_once() == 1;
        let idle = switches.iter().enumerate().filter(|(_, switch)| alone(switch));
        let idle = idle.fold(0, |idle, (at, _)| idle | 1 << at);
        let game = Game::new(switches.len(), idle, requests.seed);
        let combinations = game.combinations();
        let count = combinations.len() + added.len();
        let took = |off: &mut dyn Iterator<Item = &Switch>| {
            let mut requests = requests.clone();
            off.for_each(|switch| (switch.off)(&mut requests));
            milliseconds(&requests.run(profile, |_, _| {}).latencies)
        };
        let mut tried = BTreeMap::new();
        for members in combinations {
            let left_out = switches.iter().enumerate().filter(|(at, _)| members >> at & 1 == 0);
            tried.insert(members, took(&mut left_out.map(|(_, switch)| switch)));
            progress(tried.len(), count);
        }
        let ends = game.ends(&tried);
        let gained = added.iter().enumerate().map(|(number, switch)| {
            let with = took(&mut std::iter::once(switch));
            progress(tried.len() + number + 1, count);
            (switch.name, std::array::from_fn(|rank| difference(&ends[1], &with, rank)))
        });
        let added = gained.collect();
        let worths = switches.iter().enumerate().map(|(at, switch)| {
            let Value { left_out, shapley, error } = game.value(at, &tried);
            Worth { name: switch.name, left_out, shapley, error }
        });
        let drawn = game.drawn().map(|orders| (orders, requests.seed));
        Attribution { profile: *profile, ends, worths: worths.collect(), added, drawn }
    }
}

fn difference(without: &Times, with: &Times, rank: usize) -> f64 {
    without.get(rank).zip(with.get(rank)).map_or(0.0, |(without, with)| without - with)
}

/// Milliseconds by percentile.
fn milliseconds(latencies: &Latencies) -> Times {
    RANKS.map(|rank| latencies.per_mille(rank).min(NEVER).as_secs_f64() * 1000.0)
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, of: &str, values: &[f64]| {
            write!(f, "{name:<25} {of:<8}")?;
            values.iter().try_for_each(|value| write!(f, " {value:>7.0}"))?;
            writeln!(f)
        };
        writeln!(
            f,
            "{}: milliseconds until the answer is there, and less of them by each",
            self.profile.name
        )?;
        if let Some((orders, seed)) = self.drawn {
            writeln!(
                f,
                "shapley: the mean over {orders} orders, drawn by chance with seed {seed}; error: its standard error"
            )?;
        }
        writeln!(f, "{:<34} {:>7} {:>7} {:>7} {:>7} {:>7}", "", "p50", "p90", "p95", "p99", "p99.9")?;
        let [none, all] = &self.ends;
        line(f, "none", "", none)?;
        line(f, "all", "", all)?;
        for worth in &self.worths {
            line(f, worth.name, "last", &worth.left_out)?;
            line(f, "", "shapley", &worth.shapley)?;
            if let Some(error) = &worth.error {
                line(f, "", "error", error)?;
            }
        }
        self.added.iter().try_for_each(|(name, gained)| line(f, name, "added", gained))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switching_everything_off_is_the_rfc() {
        let mut requests = Requests::default();
        POLICIES.iter().for_each(|switch| (switch.off)(&mut requests));
        let mut policy = requests.transport.tail;
        (policy.copies, policy.allowance) = (RFC.copies, RFC.allowance);
        // Neither is of RFC 9002, and the second is not for small exchanges.
        (policy.immediate_ack, policy.probed_stalls) = (RFC.immediate_ack, RFC.probed_stalls);
        assert_eq!(policy, RFC);
    }

    #[test]
    fn what_is_off_by_default_is_tried_beside_all_others() {
        let requests = Requests { count: 200, ..Requests::default() };
        let profile = "uber-c".parse().unwrap();
        let found = Attribution::among(&profile, &requests, &POLICIES[..1], &ADDED, |_, _| {});
        let [(name, gained)] = found.added[..] else { panic!("{found}") };
        // Bursts of losses take both the packet and the probe now and then.
        assert!(name == "capped back-off" && gained.iter().any(|gain| *gain != 0.0), "{found}");
    }
}
