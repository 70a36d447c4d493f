//! The networks of the test cases, and what is written down of the datagrams that cross them.

use super::trace::{Kind, Seen, Trace};
use godwit_base::Time;
use godwit_link::{
    Corrupt, Damage, LinkConfig, Loss, NatConfig, Outage, Probability, QueueLimit, Rate, Rebinding,
    Translation,
};
use godwit_relay::udp::{End, Observer, Options, Passing};
use std::net::SocketAddr;
use std::time::Duration;

/// The runner's link: 10 Mbit/s, 15 ms, 25 packets.
const DELAY: Duration = Duration::from_millis(15);
const RATE: Rate = Rate::megabits(10);
const QUEUE: usize = 25;
/// Packets in a row that are lost or damaged at most.
const BURST: u32 = 3;
/// For as long as outages and rebindings are planned.
const HORIZON: u64 = 400;

/// What the network does in a test case.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    delay: Duration,
    /// Numbers of the datagrams to the server that are lost, from 1.
    lost_up: Vec<u64>,
    /// Percent lost, or damaged, in either direction.
    loss: f64,
    corruption: f64,
    /// Seconds on, and then off.
    blackhole: Option<(u64, u64)>,
    rebinding: Option<Translation>,
}

impl Scenario {
    /// The link that most cases have.
    pub(super) fn simple() -> Scenario {
        Scenario {
            delay: DELAY,
            lost_up: Vec::new(),
            loss: 0.0,
            corruption: 0.0,
            blackhole: None,
            rebinding: None,
        }
    }

    pub(super) fn delay(self, delay: Duration) -> Scenario {
        Scenario { delay, ..self }
    }

    pub(super) fn losing(self, up: &[u64]) -> Scenario {
        Scenario { lost_up: up.to_vec(), ..self }
    }

    pub(super) fn loss(self, percent: f64) -> Scenario {
        Scenario { loss: percent, ..self }
    }

    pub(super) fn corruption(self, percent: f64) -> Scenario {
        Scenario { corruption: percent, ..self }
    }

    pub(super) fn blackhole(self, on: u64, off: u64) -> Scenario {
        Scenario { blackhole: Some((on, off)), ..self }
    }

    pub(super) fn rebinding(self, change: Translation) -> Scenario {
        Scenario { rebinding: Some(change), ..self }
    }

    /// For the relay.
    pub(super) fn options(&self, seed: u64) -> Options {
        let mut options = Options::default();
        options.link = self.link();
        options.nat = self.nat();
        options.up.lost.clone_from(&self.lost_up);
        options.up.most_in_a_row = Some(BURST);
        options.down.most_in_a_row = Some(BURST);
        options.seed = seed;
        options
    }

    fn link(&self) -> LinkConfig {
        let second = |second: u64| Time::ZERO + Duration::from_secs(second);
        let outages = self.blackhole.into_iter().flat_map(|(on, off)| {
            (0..HORIZON / (on + off)).map(move |turn| {
                let from = turn * (on + off) + on;
                Outage { from: second(from), until: second(from + off) }
            })
        });
        let corrupt =
            Corrupt { probability: Probability::percent(self.corruption), damage: Damage::Bytes(3) };
        let mut link = LinkConfig::default();
        link.delay = self.delay;
        link.rate = Some(RATE);
        link.queue = QueueLimit::Packets(QUEUE);
        link.loss = Loss::Independent(Probability::percent(self.loss));
        link.corrupt = (self.corruption > 0.0).then_some(corrupt);
        link.outages = outages.collect();
        link
    }

    fn nat(&self) -> NatConfig {
        let at = |second| Time::ZERO + Duration::from_secs(second);
        let every = (0..HORIZON / 5).map(|turn| at(1 + 5 * turn));
        let rebindings = self.rebinding.into_iter();
        let rebindings = rebindings.flat_map(|change| every.clone().map(move |at| Rebinding { at, change }));
        let mut nat = NatConfig::default();
        nat.rebindings = rebindings.collect();
        nat
    }
}

/// Writes down what passes.
#[derive(Debug)]
pub(super) struct Witness {
    pub(super) trace: Trace,
    /// How many addresses the server has.
    pub(super) fronts: usize,
}

impl Observer for Witness {
    fn on_datagram(&mut self, at: Duration, end: End, passing: Passing<'_>) -> bool {
        let Passing { way, front, client, ecn, data, .. } = passing;
        let Trace { client: at_client, server: at_server, client_addresses, server_addresses, flooded } =
            &mut self.trace;
        *flooded |= at_client.len().max(at_server.len()) >= Trace::MOST;
        if *flooded {
            return false;
        }
        let (seen, known) = match end {
            End::Client => (at_client, client_addresses),
            End::Server => (at_server, server_addresses),
        };
        let path = front + number(known, client) * self.fronts;
        seen.push(Seen { at, ..Seen::new(way, path, ecn, data) });
        true
    }

    /// As in the runner, a Version Negotiation packet is never damaged: damaged Initial packets provoke some, and a
    /// client can see that they are wrong only if they list its version.
    fn may_be_damaged(&self, data: &[u8]) -> bool {
        !Seen::new(godwit_relay::Way::Up, 0, godwit_base::Ecn::NotEct, data).has(Kind::VersionNegotiation)
    }
}

/// The number of an address, which may be new.
fn number(known: &mut Vec<SocketAddr>, address: SocketAddr) -> usize {
    known.iter().position(|known| *known == address).unwrap_or_else(|| {
        known.push(address);
        known.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_negotiates_versions_is_not_damaged() {
        let witness = Witness { trace: Trace::default(), fronts: 1 };
        let may =
            |first: u8, version: u8| witness.may_be_damaged(&[first, 0, 0, 0, version, 0, 0, 0, 0, 0, 1]);
        assert!(may(0x40, 1));
        assert!(!may(0xc0, 0));
    }
}
