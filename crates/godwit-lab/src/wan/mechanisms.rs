//! Which mechanism of QUIC is worth how much to those who wait for small requests.
//!
//! As an [`Attribution`] of policies, but what is left out is replaced by what TCP with TLS does. What the applications can
//! model is modelled there ([`Without`]): round trips of the handshake, the order of answers and records. The timers and
//! what acknowledgements tell are settings of the transport ([`TailPolicy`], [`godwit_transport::Laboratory`]).

use std::time::Duration;

use godwit_transport::TailPolicy;

use super::attribution::{Attribution, Switch};
use super::profile::Profile;
use super::requests::{Requests, Without};

/// What Linux adds to the round-trip time at least.
const LEAST_RTO: Duration = Duration::from_millis(200);
/// All up to some byte, and three SACK blocks.
const RANGES: u8 = 4;

const MECHANISMS: [Switch; 10] = [
    // TCP's round trip before TLS begins.
    Switch::new("handshake of one trip", |requests| requests.without.round_trips += 1),
    Switch::for_many("independent streams", |requests| requests.without.in_order = true),
    Switch::for_many("one answer after another", |requests| requests.without.turns = true),
    // An answer ends where its record does, unless another shares it.
    Switch::for_many("records of one packet", |requests| requests.without.records = true),
    Switch::new("packets numbered anew", |requests| requests.transport.laboratory.ambiguous_repeats = true),
    // TCP begins with a second, whatever it knows of the network.
    Switch::new("known round-trip time", |requests| {
        requests.transport.tail.known_rtt = TailPolicy::rfc_9002().known_rtt;
    }),
    // All that is sent before a timer of RFC 9002 runs out.
    Switch::new("sent again in advance", |requests| {
        let known_rtt = requests.transport.tail.known_rtt;
        requests.transport.tail = TailPolicy::rfc_9002();
        requests.transport.tail.known_rtt = known_rtt;
    }),
    Switch::new("probe timeout", |requests| {
        requests.transport.laboratory.retransmission_timer = Some(LEAST_RTO);
    }),
    Switch::new("many ranges", |requests| requests.transport.laboratory.most_ack_ranges = RANGES),
    Switch::new("pacing", |requests| requests.transport.laboratory.unpaced = true),
];

impl Attribution {
    /// Tries combinations of mechanisms of QUIC, of what `requests` has. `progress` is told how many of how many simulations
    /// are done.
    pub fn of_mechanisms(profile: &Profile, requests: &Requests, progress: impl Fn(usize, usize)) -> Self {
        let requests = Requests { without: Without::default(), ..requests.clone() };
        Attribution::among(profile, &requests, &MECHANISMS, &[], progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::Acquaintance;

    fn measure(profile: Profile, acquaintance: Acquaintance, switches: &[Switch]) -> Attribution {
        let requests = Requests { count: 200, acquaintance, ..Requests::default() };
        Attribution::among(&profile, &requests, switches, &[], |_, _| {})
    }

    #[test]
    fn a_round_trip_less_is_worth_a_round_trip() {
        let profile = "uber-a".parse::<Profile>().unwrap().without_loss();
        let found = measure(profile, Acquaintance::Network, &MECHANISMS[..4]);
        let handshake = &found.worths[0];
        let rtt = profile.rtt.as_secs_f64() * 1e3;
        assert!((handshake.shapley[0] / rtt - 1.0).abs() < 0.1, "{found}");
        assert!((handshake.left_out[0] / rtt - 1.0).abs() < 0.1, "{found}");
        // A single request has nobody to wait for.
        assert_eq!((found.worths[1].shapley[0], found.worths[2].left_out[0]), (0.0, 0.0), "{found}");
        assert!(found.drawn.is_none());
    }

    #[test]
    fn who_asks_for_many_waits_for_the_lost_ones_of_others() {
        let found = measure("uber-a".parse().unwrap(), Acquaintance::Connected, &MECHANISMS[1..4]);
        let [none, all] = &found.ends;
        assert!(found.worths[0].left_out.iter().any(|worth| *worth > 0.0), "{found}");
        assert!(found.worths[2].left_out.iter().any(|worth| *worth > 0.0), "records: {found}");
        assert!(all.iter().zip(none).all(|(all, none)| all <= none), "{found}");
        let shares: f64 = found.worths.iter().map(|worth| worth.shapley[2]).sum();
        assert!((shares - (none[2] - all[2])).abs() < 1e-6, "{found}");
    }

    #[test]
    fn timers_of_tcp_keep_those_waiting_who_lost_something() {
        let found = measure("uber-a".parse().unwrap(), Acquaintance::Network, &MECHANISMS[4..8]);
        let [none, all] = &found.ends;
        // A packet number left out is a range in an acknowledgement, whose bytes take less than a microsecond.
        assert!(all[0] <= none[0] + 0.001 && all[2] < none[2], "{found}");
        assert!(found.worths[3].shapley[2] > 0.0, "a probe timeout is shorter: {found}");
    }

    #[test]
    fn so_many_mechanisms_are_looked_at_in_orders_by_chance() {
        let requests = Requests { count: 1, acquaintance: Acquaintance::Connected, ..Requests::default() };
        let profile = "lte".parse().unwrap();
        // Half of them, twice: what a switch does a second time is nothing new.
        let twice: Vec<Switch> = (0..9).map(|at| Switch { ..MECHANISMS[1 + at % 2] }).collect();
        let found = Attribution::among(&profile, &requests, &twice, &[], |_, _| {});
        let text = found.to_string();
        assert!(text.contains("64 orders, drawn by chance with seed 1") && text.contains("error"), "{text}");
    }
}
