//! Transfers that compete for one link, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use godwit::TransportConfig;
use godwit_base::{SeededRng, Time};
use godwit_link::{Counters, DuplexConfig, IpVersion, Jitter, LinkConfig, QueueLimit, Rate};
use godwit_sim::apps::{BulkClient, BulkServer, Way};
use godwit_sim::{HostId, Network, SharedId};
use godwit_tls::deterministic;
use godwit_tls::secrets::ServerSecrets;
use godwit_transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig};

const ALPN: &[u8] = b"godwit-wan";

/// A transfer that takes part.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The settings of both its ends.
    pub transport: TransportConfig,
    /// Its round-trip time without a queue.
    pub rtt: Duration,
    /// When it begins.
    pub starts: Duration,
}

/// Transfers that compete for one link, all the same way, each between two hosts of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Contest {
    /// The rate of the link that they share, in both directions.
    pub rate: Rate,
    /// Its queue.
    pub queue: QueueLimit,
    /// Who takes part.
    pub flows: Vec<Flow>,
    /// Which way the data goes.
    pub way: Way,
    /// How long everything takes.
    pub duration: Duration,
    /// From when on rates are compared: each flow should have found its share by then.
    pub measured_from: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shares {
    /// What each flow delivered in the time in which rates are compared, in bits per second.
    pub rates: Vec<f64>,
    /// All of that in percent of what the link carries.
    pub usage: f64,
    /// What the shared queue dropped, in percent of what was sent.
    pub waste: f64,
    /// How long packets waited in it, on average.
    pub queue_delay: Duration,
    /// Why connections ended that did.
    pub broken: Vec<String>,
}

impl Shares {
    /// Jain's index: 1 if all have the same, one over their number if one has all.
    pub fn jain(&self) -> f64 {
        let (sum, squares) =
            self.rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
        if squares > 0.0 { sum * sum / (self.rates.len() as f64 * squares) } else { 0.0 }
    }

    /// The first flow's rate over that of the last.
    pub fn ratio(&self) -> f64 {
        match (self.rates.first(), self.rates.last()) {
            (Some(first), Some(last)) => first / last.max(1.0),
            _ => 0.0,
        }
    }
}

impl Contest {
    /// Flows over a link of so many Mbit/s with a queue of so many packets, for a minute; the rates of its second half
    /// are compared.
    pub fn new(megabits: u32, queue: u32, flows: Vec<Flow>) -> Self {
        Contest {
            rate: Rate::megabits(u64::from(megabits)),
            queue: QueueLimit::Packets(queue as usize),
            flows,
            way: Way::Upload,
            duration: Duration::from_secs(60),
            measured_from: Duration::from_secs(30),
        }
    }

    /// Runs it. The same seed gives the same shares, on every machine.
    pub fn run(&self, seed: u64) -> Shares {
        let mut network = Network::new(seed);
        network.fabric().trace_mut().leave_out_payloads();
        let mut bottleneck = LinkConfig::default();
        bottleneck.rate = Some(self.rate);
        bottleneck.queue = self.queue;
        let shared = network.add_shared_link(DuplexConfig::symmetric(bottleneck));
        let hosts: Vec<(HostId, HostId)> = (1..)
            .zip(&self.flows)
            .map(|(number, flow)| self.add_flow(&mut network, shared, number, flow))
            .collect();
        network.run_until(Time::ZERO + self.measured_from, |_| false);
        let before = self.received(&network, &hosts);
        network.run_until(Time::ZERO + self.duration, |_| false);
        let after = self.received(&network, &hosts);
        let seconds = self.duration.saturating_sub(self.measured_from).as_secs_f64().max(1e-9);
        let rates: Vec<f64> = before
            .iter()
            .zip(&after)
            .map(|(before, after)| 8.0 * (after - before) as f64 / seconds)
            .collect();
        let link = self.counters(&mut network, shared);
        Shares {
            usage: 100.0 * rates.iter().sum::<f64>() / self.rate.as_bits_per_second() as f64,
            rates,
            waste: 100.0 * link.queue_drops as f64 / link.sent_packets.max(1) as f64,
            queue_delay: link.mean_queue_delay(),
            broken: broken(&network, &hosts),
        }
    }

    /// Two hosts, the wire between them, and the flow over it.
    fn add_flow(
        &self,
        network: &mut Network,
        shared: SharedId,
        number: u16,
        flow: &Flow,
    ) -> (HostId, HostId) {
        let [high, low] = number.to_be_bytes();
        let (server, client) = (([10, 1, high, low], 443).into(), ([10, 2, high, low], 5000).into());
        let transport = Arc::new(flow.transport.clone());
        let config = ServerConfig::new(deterministic::unprotected_server_config(&[ALPN]), transport.clone());
        let rng = network.rng();
        let endpoint = Endpoint::new(endpoint_config(number), Some(Arc::new(config)), rng);
        let server_host = network.add_host(server, endpoint, BulkServer::new(self.way));
        let config = ClientConfig::new(deterministic::unprotected_client_config(&[ALPN]), transport);
        let rng = network.rng();
        let mut app = BulkClient::new(config, server, self.way);
        app.starts_at = Time::ZERO + flow.starts;
        let client_host = network.add_host(client, Endpoint::new(endpoint_config(number), None, rng), app);
        let mut own = LinkConfig::delayed(flow.rtt / 2);
        // A packet's time on the link, at most: or flows fall into step, and the queue always drops the same one's.
        own.jitter = Jitter::InOrder(self.packet_time());
        if let Some(wire) = network.add_wire(client_host, server_host, DuplexConfig::symmetric(own)) {
            network.fabric().share(wire, shared);
        }
        (client_host, server_host)
    }

    fn packet_time(&self) -> Duration {
        let bits = IpVersion::V4.wire_len(1472) as u64 * 8;
        Duration::from_nanos(bits.saturating_mul(1_000_000_000) / self.rate.as_bits_per_second())
    }

    fn received(&self, network: &Network, hosts: &[(HostId, HostId)]) -> Vec<u64> {
        let received = |(client, server): &(HostId, HostId)| match self.way {
            Way::Upload => network.app::<BulkServer>(*server).map(|app| app.progress.received),
            Way::Download => network.app::<BulkClient>(*client).map(|app| app.progress.received),
        };
        hosts.iter().map(|hosts| received(hosts).unwrap_or(0)).collect()
    }

    fn counters(&self, network: &mut Network, shared: SharedId) -> Counters {
        let link = network.fabric().shared_link(shared).map(|duplex| match self.way {
            Way::Upload => *duplex.up.counters(),
            Way::Download => *duplex.down.counters(),
        });
        link.unwrap_or_default()
    }
}

fn broken(network: &Network, hosts: &[(HostId, HostId)]) -> Vec<String> {
    let closed = |(client, server): &(HostId, HostId)| {
        let client = network.app::<BulkClient>(*client).and_then(|app| app.progress.closed.clone());
        client.or_else(|| network.app::<BulkServer>(*server).and_then(|app| app.progress.closed.clone()))
    };
    hosts.iter().filter_map(closed).map(|reason| reason.to_string()).collect()
}

fn endpoint_config(number: u16) -> EndpointConfig {
    EndpointConfig::new(Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(u64::from(number)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(rtt: u64, starts: u64) -> Flow {
        let (rtt, starts) = (Duration::from_millis(rtt), Duration::from_secs(starts));
        Flow { transport: TransportConfig::default(), rtt, starts }
    }

    #[test]
    fn one_flow_has_the_link_to_itself() {
        let mut contest = Contest::new(10, 100, vec![flow(40, 0)]);
        (contest.duration, contest.measured_from) = (Duration::from_secs(8), Duration::from_secs(3));
        for way in [Way::Upload, Way::Download] {
            contest.way = way;
            let shares = contest.run(1);
            assert_eq!((shares.jain(), shares.broken.len()), (1.0, 0));
            assert!((88.0..93.6).contains(&shares.usage), "{shares:?}");
            // The queue is full at most: 100 packets of 1538 bytes.
            assert!(shares.queue_delay < Duration::from_micros(123_040), "{shares:?}");
            assert_eq!(shares, contest.run(1));
        }
    }

    #[test]
    fn who_has_not_begun_has_nothing() {
        let mut contest = Contest::new(10, 50, vec![flow(40, 0), flow(20, 6)]);
        (contest.duration, contest.measured_from) = (Duration::from_secs(5), Duration::from_secs(2));
        let shares = contest.run(1);
        assert_eq!((shares.rates[1], shares.jain()), (0.0, 0.5));
        contest.duration = Duration::from_secs(20);
        let shares = contest.run(1);
        assert!(shares.jain() > 0.5 && shares.rates[1] > 1e6, "{shares:?}");
        assert!((80.0..93.6).contains(&shares.usage), "{shares:?}");
    }
}
