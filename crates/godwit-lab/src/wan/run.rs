//! One transfer over one network, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use godwit::TransportConfig;
use godwit_base::{SeededRng, Time};
use godwit_link::{Counters, DuplexConfig, Rate};
use godwit_sim::apps::{Beside, BulkClient, BulkProgress, BulkServer, Way};
use godwit_sim::{HostId, Network, Stop, WireId};
use godwit_tls::deterministic;
use godwit_tls::secrets::ServerSecrets;
use godwit_transport::observe::ObserverFactory;
use godwit_transport::{
    ClientConfig, ConnectionStats, Endpoint, EndpointConfig, ServerConfig, WindowReserve,
};

use super::cell::Cell;
use super::latencies::Latencies;

const ALPN: &[u8] = b"godwit-wan";
/// A server's address, and a client's.
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 443);
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 2], 5000);

/// No more than ten thousand interrupts a second, as network cards have it. Packets of 200 Mbit/s and more come more often:
/// these are handed over some at a time, in a third less time of the processor, and the use of a link is the same within
/// a hundredth.
const REST: Duration = Duration::from_micros(100);

/// Bytes that an end may send before they are read: more than any of the links holds, so that congestion control alone
/// decides.
const WINDOW: u64 = 256 << 20;

/// What is asked beside, 50 ms after each answer.
const BESIDE: Beside = Beside { request: 500, response: 4000, rest: Duration::from_millis(50) };

/// How a network is tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trial {
    /// The settings of both ends.
    pub transport: TransportConfig,
    /// Which way the data goes.
    pub way: Way,
    /// Whether small requests are made beside it on the same connection, one after the other: 500 bytes up, 4 kB down.
    /// They take their part of the link.
    pub requests_beside: bool,
    /// How long it goes, from the first packet of the handshake.
    pub duration: Duration,
    /// How much of that is simulated, if not all: what the second half of this carried is taken for what the rest of the
    /// time would. The beginning, which carries less, so keeps its share.
    pub simulated: Option<Duration>,
    /// Whether packets are encrypted. What happens is the same without, and takes less time.
    pub encrypted: bool,
    /// How often hosts look for packets: see [`godwit_sim::Fabric::set_rest`].
    pub rest: Duration,
    /// What each end's windows and send buffer may grow into. Default unlimited, as congestion control alone is to decide.
    pub window_reserve: WindowReserve,
    /// Who watches the sender. Default nobody.
    pub observers: ObserverFactory,
}

impl Default for Trial {
    fn default() -> Self {
        let mut transport = TransportConfig::default();
        transport.initial_stream_window = WINDOW;
        transport.max_stream_window = WINDOW;
        transport.initial_connection_window = WINDOW;
        transport.max_connection_window = WINDOW;
        transport.send_buffer = WINDOW;
        Trial {
            transport,
            way: Way::Upload,
            requests_beside: false,
            duration: Duration::from_secs(10),
            simulated: None,
            encrypted: false,
            rest: REST,
            window_reserve: WindowReserve::new(u64::MAX),
            observers: ObserverFactory::default(),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What all chances followed from.
    pub seed: u64,
    /// Bytes that arrived in order.
    pub delivered: u64,
    /// The part of the link's rate that they are, in percent.
    pub usage: f64,
    /// The link that the data went over.
    pub link: Counters,
    /// The most packets that were in a queue at once, of either direction: with room for so many or more, all would have
    /// been the same.
    pub max_queue_packets: u64,
    /// What the sender counted.
    pub sender: ConnectionStats,
    /// What the receiver counted.
    pub receiver: ConnectionStats,
    /// The time that was simulated.
    pub duration: Duration,
    /// Packets that both ends sent.
    pub packets: u64,
    /// The hash over the times, directions and lengths of all packets.
    pub trace: u64,
    /// How long requests beside it took, if any were made. The last one, which was not answered by the end, is among them
    /// with the time that it had waited, if none has waited longer.
    pub beside: Latencies,
    /// Why the connection ended before its time, if it did.
    pub broken: Option<String>,
}

/// A transfer under way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observed {
    /// The time since its beginning.
    pub at: Duration,
    /// Bytes that have arrived in order.
    pub delivered: u64,
    /// What the sender has counted.
    pub sender: ConnectionStats,
    /// What the link has.
    pub link: Counters,
}

/// What an end has counted and seen.
type End = (ConnectionStats, BulkProgress);

impl Outcome {
    /// The part of the sent packets that the queue dropped, in percent.
    pub fn waste(&self) -> f64 {
        100.0 * self.link.queue_drops as f64 / self.link.sent_packets.max(1) as f64
    }
}

impl Trial {
    /// Runs it. The same seed gives the same outcome, on every machine.
    pub fn run(&self, cell: &Cell, seed: u64) -> Outcome {
        self.run_observed(cell, seed, self.simulated(), |_| {})
    }

    /// Runs it, and shows the sender as it is at the end of every such span of time.
    pub fn run_observed(
        &self,
        cell: &Cell,
        seed: u64,
        every: Duration,
        observe: impl FnMut(&Observed),
    ) -> Outcome {
        self.run_over(cell.link(), Rate::megabits(u64::from(cell.rate)), seed, every, observe)
    }

    /// The same over any link, whose use is counted in parts of `rate`.
    pub fn run_over(
        &self,
        link: DuplexConfig,
        rate: Rate,
        seed: u64,
        every: Duration,
        mut observe: impl FnMut(&Observed),
    ) -> Outcome {
        let mut network = Network::new(seed);
        network.fabric().trace_mut().leave_out_payloads();
        network.fabric().set_rest(self.rest);
        let server = self.add_server(&mut network, seed);
        let client = self.add_client(&mut network, seed);
        let wire = network.add_wire(client, server, link);
        let (end, mut at, mut stop) = (Time::ZERO + self.simulated(), Time::ZERO, Stop::Limit);
        let (half, mut in_half) = (Time::ZERO + self.simulated() / 2, 0);
        while at < end && stop == Stop::Limit {
            let before = at;
            at = (at + every.max(Duration::from_millis(1))).min(end);
            if before < half && half <= at {
                network.run_until(half, |_| false);
                in_half = self.ends(&mut network, client, server).1.1.received;
            }
            stop = network.run_until(at, |_| false);
            let (sender, receiver) = self.ends(&mut network, client, server);
            let link = wire.map(|wire| self.link(&mut network, wire)).unwrap_or_default();
            observe(&Observed {
                at: at - Time::ZERO,
                delivered: receiver.1.received,
                sender: sender.0,
                link,
            });
        }
        let (sender, receiver) = self.ends(&mut network, client, server);
        let beside = beside(if self.way == Way::Upload { &sender.1 } else { &receiver.1 }, end);
        let broken = sender.1.closed.or(receiver.1.closed).map(|reason| reason.to_string());
        let broken =
            broken.or_else(|| (stop != Stop::Limit).then(|| format!("the simulation ended: {stop:?}")));
        let delivered = receiver.1.received;
        Outcome {
            seed,
            delivered,
            usage: 100.0 * self.scaled(delivered, in_half) / rate.bytes_in(self.duration).max(1) as f64,
            link: wire.map(|wire| self.link(&mut network, wire)).unwrap_or_default(),
            max_queue_packets: wire.map(|wire| max_queue_packets(&mut network, wire)).unwrap_or_default(),
            sender: sender.0,
            receiver: receiver.0,
            duration: self.simulated(),
            packets: network.fabric().trace().packets(),
            trace: network.fabric().trace().hash(),
            beside,
            broken,
        }
    }

    fn simulated(&self) -> Duration {
        self.simulated.unwrap_or(self.duration).min(self.duration)
    }

    /// What the whole time would have carried.
    fn scaled(&self, delivered: u64, in_half: u64) -> f64 {
        let half = (self.simulated() / 2).as_secs_f64();
        let rest = self.duration.saturating_sub(self.simulated()).as_secs_f64();
        delivered as f64 + delivered.saturating_sub(in_half) as f64 / half.max(f64::EPSILON) * rest
    }

    /// The sender and the receiver.
    fn ends(&self, network: &mut Network, client: HostId, server: HostId) -> (End, End) {
        let client = network.act(client, |app: &mut BulkClient, cx| {
            (stats(cx.endpoint, &app.progress), app.progress.clone())
        });
        let server = network.act(server, |app: &mut BulkServer, cx| {
            (stats(cx.endpoint, &app.progress), app.progress.clone())
        });
        let (client, server) = (client.unwrap_or_default(), server.unwrap_or_default());
        match self.way {
            Way::Upload => (client, server),
            Way::Download => (server, client),
        }
    }

    fn link(&self, network: &mut Network, wire: WireId) -> Counters {
        let way = |duplex: &mut godwit_link::Duplex| match self.way {
            Way::Upload => *duplex.up.counters(),
            Way::Download => *duplex.down.counters(),
        };
        network.fabric().duplex(wire).map(way).unwrap_or_default()
    }

    fn add_server(&self, network: &mut Network, seed: u64) -> HostId {
        let tls = match self.encrypted {
            true => deterministic::server_config(&[ALPN]),
            false => deterministic::unprotected_server_config(&[ALPN]),
        };
        let config = ServerConfig::new(tls, Arc::new(self.transport.clone()));
        let rng = network.rng();
        let endpoint = self.endpoint_config(seed, Way::Download);
        let endpoint = Endpoint::new(endpoint, Some(Arc::new(config)), rng);
        let mut app = BulkServer::new(self.way);
        app.beside = self.beside();
        network.add_host(SERVER.into(), endpoint, app)
    }

    fn add_client(&self, network: &mut Network, seed: u64) -> HostId {
        let tls = match self.encrypted {
            true => deterministic::client_config(&[ALPN]),
            false => deterministic::unprotected_client_config(&[ALPN]),
        };
        let config = ClientConfig::new(tls, Arc::new(self.transport.clone()));
        let rng = network.rng();
        let endpoint = Endpoint::new(self.endpoint_config(seed, Way::Upload), None, rng);
        let mut app = BulkClient::new(config, SERVER.into(), self.way);
        app.beside = self.beside();
        network.add_host(CLIENT.into(), endpoint, app)
    }

    fn beside(&self) -> Option<Beside> {
        self.requests_beside.then_some(BESIDE)
    }

    /// That of the end which sends if the data goes this way.
    fn endpoint_config(&self, seed: u64, sends: Way) -> EndpointConfig {
        let secrets = ServerSecrets::from_rng(&mut SeededRng::new(seed));
        let mut config = EndpointConfig::new(Arc::new(secrets));
        config.window_reserve = WindowReserve::new(self.window_reserve.size());
        if self.way == sends {
            config.observe = self.observers.clone();
        }
        config
    }
}

/// Of the end that asks.
fn beside(client: &BulkProgress, end: Time) -> Latencies {
    let mut times = client.beside.clone();
    let waited = client.asked_at.map(|asked| end.saturating_since(asked));
    times.extend(waited.filter(|waited| times.iter().all(|time| time < waited)));
    Latencies::new(times, 0)
}

fn max_queue_packets(network: &mut Network, wire: WireId) -> u64 {
    let [up, down] = network
        .fabric()
        .duplex(wire)
        .map(|duplex| [&duplex.up, &duplex.down].map(|link| link.counters().max_queue_packets))
        .unwrap_or_default();
    up.max(down)
}

fn stats(endpoint: &Endpoint, progress: &BulkProgress) -> ConnectionStats {
    let conn = progress.conn.and_then(|conn| endpoint.connection(conn));
    conn.map(|conn| conn.stats()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lossy() -> Cell {
        Cell::with_queue_ratio(20, 50, 1.0).unwrap().with(1000, (1000, 10))
    }

    #[test]
    fn what_happens_is_the_same_with_keys_and_without() {
        let trial = Trial { duration: Duration::from_secs(1), ..Trial::default() };
        // In the second, packets come so late that their numbers are guessed wrong and they cannot be opened.
        let late = Cell::with_queue_ratio(50, 5, 1.0).unwrap().with(0, (1000, 75));
        for (cell, undecryptable) in [(lossy(), false), (late, true)] {
            let plain = trial.run(&cell, 7);
            let encrypted = Trial { encrypted: true, ..trial.clone() }.run(&cell, 7);
            assert!(plain.packets > 1000 && plain.broken.is_none(), "{plain:?}");
            assert_eq!((plain.trace, plain.delivered), (encrypted.trace, encrypted.delivered));
            assert_eq!(plain.receiver.packets_undecryptable.total() > 0, undecryptable);
            assert_ne!(plain.trace, trial.run(&cell, 8).trace);
        }
    }

    /// Over the longest and fastest of the paths, with what a program gets that sets nothing.
    #[test]
    fn windows_follow_the_path_by_themselves() {
        let long = Cell::with_queue_ratio(1000, 500, 0.2).unwrap();
        let unbound = Trial { duration: Duration::from_secs(18), ..Trial::default() };
        let mut bound = unbound.clone();
        bound.transport = TransportConfig::default();
        bound.transport.congestion = unbound.transport.congestion.clone();
        bound.window_reserve = WindowReserve::default();
        // While they grow, and once they have.
        let halves = |trial: &Trial| {
            let mut delivered = Vec::new();
            trial.run_observed(&long, 1, Duration::from_secs(1), |now| delivered.push(now.delivered));
            (delivered[8], delivered[17] - delivered[11])
        };
        let (unbound, own) = (halves(&unbound), halves(&bound));
        assert!(own.0 * 10 >= unbound.0 * 6 && unbound.0 > 700_000_000, "{own:?} of {unbound:?}");
        assert!(own.1 * 10 >= unbound.1 * 9 && unbound.1 > 660_000_000, "{own:?} of {unbound:?}");
        bound.transport.max_stream_window = 16 << 20;
        bound.transport.max_connection_window = 32 << 20;
        assert!(halves(&bound).1 * 2 < unbound.1, "this shows nothing");
    }

    #[test]
    fn requests_beside_wait_for_the_queue() {
        for way in [Way::Upload, Way::Download] {
            let alone = Trial { way, duration: Duration::from_secs(4), ..Trial::default() };
            let beside = Trial { requests_beside: true, ..alone.clone() };
            let cell = Cell::with_queue_ratio(10, 50, 1.0).unwrap();
            let (alone, beside) = (alone.run(&cell, 1), beside.run(&cell, 1));
            assert!(alone.beside.is_empty() && beside.broken.is_none());
            let [median, most] = [500, 1000].map(|rank| beside.beside.per_mille(rank));
            assert!(beside.beside.len() > 15 && median >= Duration::from_millis(50), "{:?}", beside.beside);
            assert!(most < Duration::from_secs(1), "{:?}", beside.beside);
            assert!(beside.usage > alone.usage - 20.0, "{} {}", beside.usage, alone.usage);
        }
    }

    #[test]
    fn both_ways_use_a_good_link() {
        let good = Cell::with_queue_ratio(10, 50, 5.0).unwrap();
        for way in [Way::Upload, Way::Download] {
            let outcome = Trial { way, ..Trial::default() }.run(&good, 1);
            assert!((85.0..93.5).contains(&outcome.usage) && outcome.broken.is_none(), "{outcome:?}");
        }
    }
}
