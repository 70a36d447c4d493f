//! Which mechanism of QUIC is worth how much to those who wait for small requests.
//!
//! As an [`Attribution`] of policies, but what is left out is replaced by what TCP with TLS does. What the applications can
//! model is modelled there ([`Without`]): round trips of the handshake, and the order of answers. The timers are settings
//! of the transport ([`TailPolicy`]).

use godwit_transport::TailPolicy;

use super::attribution::{Attribution, milliseconds};
use super::profile::Profile;
use super::requests::{Requests, Without};

/// A mechanism that can be left out.
struct Mechanism {
    name: &'static str,
    off: fn(&mut Requests),
}

const MECHANISMS: [Mechanism; 5] = [
    // TCP's round trip before TLS begins.
    Mechanism { name: "handshake of one trip", off: |requests| requests.without.round_trips += 1 },
    Mechanism { name: "independent streams", off: |requests| requests.without.in_order = true },
    Mechanism { name: "one answer after another", off: |requests| requests.without.turns = true },
    // TCP begins with a second, whatever it knows of the network.
    Mechanism {
        name: "known round-trip time",
        off: |requests| requests.transport.tail.known_rtt = TailPolicy::rfc_9002().known_rtt,
    },
    // All that is sent before a timer of RFC 9002 runs out.
    Mechanism {
        name: "sent again in advance",
        off: |requests| {
            let known_rtt = requests.transport.tail.known_rtt;
            requests.transport.tail = TailPolicy::rfc_9002();
            requests.transport.tail.known_rtt = known_rtt;
        },
    },
];

impl Attribution {
    /// Tries all combinations of mechanisms of QUIC, of what `requests` has. `progress` is told how many of how many are
    /// done.
    pub fn of_mechanisms(profile: &Profile, requests: &Requests, progress: impl Fn(usize, usize)) -> Self {
        let coalitions = 1 << MECHANISMS.len();
        let took = |members: usize| {
            let mut requests = requests.clone();
            requests.without = Without::default();
            let left_out = MECHANISMS.iter().enumerate().filter(|(at, _)| members >> at & 1 == 0);
            left_out.for_each(|(_, mechanism)| (mechanism.off)(&mut requests));
            let latencies = requests.run(profile, |_, _| {}).latencies;
            progress(members + 1, coalitions);
            milliseconds(&latencies)
        };
        let times: Vec<_> = (0..coalitions).map(took).collect();
        Attribution::of(profile, &MECHANISMS.map(|mechanism| mechanism.name), &times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::Acquaintance;

    fn measure(profile: Profile, acquaintance: Acquaintance) -> Attribution {
        let requests = Requests { count: 200, acquaintance, ..Requests::default() };
        Attribution::of_mechanisms(&profile, &requests, |_, _| {})
    }

    #[test]
    fn a_round_trip_less_is_worth_a_round_trip() {
        let profile = "uber-a".parse::<Profile>().unwrap().without_loss();
        let found = measure(profile, Acquaintance::Network);
        let handshake = &found.worths[0];
        let rtt = profile.rtt.as_secs_f64() * 1e3;
        assert!((handshake.shapley[0] / rtt - 1.0).abs() < 0.1, "{found}");
        assert!((handshake.left_out[0] / rtt - 1.0).abs() < 0.1, "{found}");
        // A single request has nobody to wait for.
        assert_eq!((found.worths[1].shapley[0], found.worths[2].left_out[0]), (0.0, 0.0), "{found}");
    }

    #[test]
    fn who_asks_for_many_waits_for_the_lost_ones_of_others() {
        let found = measure("uber-a".parse().unwrap(), Acquaintance::Connected);
        let [none, all] = &found.ends;
        assert!(found.worths[1].left_out.iter().any(|worth| *worth > 0.0), "{found}");
        assert!(all.iter().zip(none).all(|(all, none)| all <= none), "{found}");
        let shares: f64 = found.worths.iter().map(|worth| worth.shapley[2]).sum();
        assert!((shares - (none[2] - all[2])).abs() < 1e-6, "{found}");
    }
}
