//! Thousands of small requests over one network, in virtual time.
//!
//! Many clients share a server, each behind a link of its own, and connect one after the other. A client's first
//! connection only makes it acquainted with the network, unless that is what is looked at. Simulations of a few clients
//! run at once on all processors; what comes of them does not depend on how many there are.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use godwit::TransportConfig;
use godwit_base::{Rng, SeededRng, Time};
use godwit_sim::apps::{RequestClient, RequestPlan, RequestServer, Round};
use godwit_sim::{HostId, Network};
use godwit_tls::deterministic;
use godwit_tls::resumption::{EarlySessions, MemorySessions};
use godwit_tls::secrets::ServerSecrets;
use godwit_transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::latencies::Latencies;
use super::profile::Profile;

const ALPN: &[u8] = b"godwit-wan";
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 443);
/// Clients of one simulation, and connections of each that count.
const CLIENTS: u32 = 20;
const CONNECTIONS: u32 = 10;
/// Rounds on a warm connection that count.
const WARM_ROUNDS: u32 = 10;
/// Requests at once on a warm connection.
const WARM_PARALLEL: u32 = 6;
/// The most that TLS seals at once over TCP.
const RECORD: usize = 16 << 10;
/// Copies of the authority's certificate in the server's chain, so that it is as long as those on the web: 3 kB in three
/// datagrams.
const PADDING_CERTIFICATES: usize = 7;

/// What client and server know of each other when a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Acquaintance {
    /// Nothing: a first connection ever.
    None,
    /// The network: the client has connected over it before, and both ends know what that has left. The handshake is a
    /// full one.
    #[default]
    Network,
    /// As well as that, a session: the handshake is shorter.
    Session,
    /// As well as that, the request goes with the first packets.
    Early,
    /// They are connected, and six requests are made at once.
    Connected,
}

impl Acquaintance {
    /// All of them.
    pub const ALL: [Acquaintance; 5] = [
        Acquaintance::None,
        Acquaintance::Network,
        Acquaintance::Session,
        Acquaintance::Early,
        Acquaintance::Connected,
    ];

    /// What such a request is called.
    pub const fn name(self) -> &'static str {
        match self {
            Acquaintance::None => "first",
            Acquaintance::Network => "cold",
            Acquaintance::Session => "resumed",
            Acquaintance::Early => "0-rtt",
            Acquaintance::Connected => "warm",
        }
    }
}

impl fmt::Display for Acquaintance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Acquaintance {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Acquaintance::ALL
            .into_iter()
            .find(|of| of.name() == name)
            .ok_or_else(|| "expected first, cold, resumed, 0-rtt or warm".to_owned())
    }
}

/// What is asked, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Requests {
    /// The settings of both ends.
    pub transport: TransportConfig,
    /// What the ends know of each other.
    pub acquaintance: Acquaintance,
    /// How many requests are made; in steps, and never fewer.
    pub count: u32,
    /// Bytes of a request and of its answer.
    pub sizes: (usize, usize),
    /// What is done in place of mechanisms of QUIC.
    pub without: Without,
    /// What all chances follow from.
    pub seed: u64,
    /// How many simulations run at a time; 0 is as many as there are processors.
    pub threads: usize,
}

impl Default for Requests {
    fn default() -> Self {
        Requests {
            transport: TransportConfig::default(),
            acquaintance: Acquaintance::default(),
            count: 20_000,
            sizes: (500, 4000),
            without: Without::default(),
            seed: 1,
            threads: 0,
        }
    }
}

/// Mechanisms of QUIC that are left out, modelled by what the applications do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Without {
    /// Round trips that a new connection takes before the first request beside QUIC's: one more is TCP with TLS 1.3, two are
    /// TCP with TLS 1.2. Each is a packet each way that may be lost.
    pub round_trips: u32,
    /// Answers count in the order in which they were asked for, as over one stream of bytes.
    pub in_order: bool,
    /// Answers take turns, packet by packet, in place of one after the other.
    pub turns: bool,
    /// Answers are sealed together in records of 16 KiB, of which nothing can be read before all has come.
    pub records: bool,
}

/// What came of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Answered {
    /// How long they took.
    pub latencies: Latencies,
    /// UDP datagrams that clients sent and got for each round of requests, its connection included if it has one, on
    /// average.
    pub datagrams: f64,
    /// The hash over the times, directions and lengths of all packets.
    pub trace: u64,
}

impl Requests {
    /// Makes them. The same seed gives the same, on every machine.
    pub fn run(&self, profile: &Profile, progress: impl Fn(usize, usize) + Sync) -> Answered {
        let simulations = self.simulations() as usize;
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(simulations)));
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= simulations {
                    return;
                }
                let outcome = self.simulate(profile, number as u64);
                let Ok(mut done) = done.lock() else { return };
                done.push((number, outcome));
                progress(done.len(), simulations);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads() {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_default();
        done.sort_by_key(|(number, _)| *number);
        sum_up(done.into_iter().map(|(_, outcome)| outcome))
    }

    fn simulations(&self) -> u32 {
        self.count.div_ceil(self.requests_each())
    }

    /// How many are made: `count` in whole steps.
    pub(super) fn asked(&self) -> u32 {
        self.simulations().saturating_mul(self.requests_each())
    }

    /// How many are made at once.
    pub(super) fn at_once(&self) -> u32 {
        if self.acquaintance == Acquaintance::Connected { WARM_PARALLEL } else { 1 }
    }

    fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }

    /// Requests of one simulation.
    fn requests_each(&self) -> u32 {
        match self.acquaintance {
            Acquaintance::None => CLIENTS * CONNECTIONS,
            Acquaintance::Connected => CLIENTS * WARM_ROUNDS * WARM_PARALLEL,
            _ => CLIENTS * CONNECTIONS,
        }
    }

    /// What each client does. What it does first is not counted.
    fn plan(&self, profile: &Profile) -> RequestPlan {
        let mut plan = RequestPlan::default();
        // Bursts begin with a good time.
        plan.start = Duration::from_secs(10);
        (plan.connections, plan.rounds) = (CONNECTIONS + 1, 1);
        plan.request = self.sizes.0;
        plan.rest = profile.rtt * 4 + Duration::from_millis(500);
        plan.limit = Duration::from_secs(120);
        (plan.round_trips_before, plan.in_order) = (self.without.round_trips, self.without.in_order);
        (plan.record, plan.turns) = (if self.without.records { RECORD } else { 0 }, self.without.turns);
        match self.acquaintance {
            Acquaintance::None => plan.connections = CONNECTIONS,
            Acquaintance::Connected => {
                (plan.connections, plan.rounds, plan.parallel) = (1, WARM_ROUNDS + 1, WARM_PARALLEL);
            }
            Acquaintance::Early => plan.early = true,
            Acquaintance::Network | Acquaintance::Session => {}
        }
        plan
    }

    fn counts(&self, round: &Round) -> bool {
        match self.acquaintance {
            Acquaintance::None => true,
            Acquaintance::Connected => round.round > 0,
            _ => round.connection > 0,
        }
    }

    fn simulate(&self, profile: &Profile, number: u64) -> (Vec<Round>, u64) {
        let seed = SeededRng::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64();
        let mut network = Network::new(seed);
        network.fabric().trace_mut().leave_out_payloads();
        let server = self.add_server(&mut network, seed);
        let clients: Vec<HostId> = (0..CLIENTS)
            .map(|client| {
                let host = self.add_client(&mut network, profile, seed, client);
                network.add_wire(host, server, profile.link());
                host
            })
            .collect();
        let of =
            |network: &Network, host: HostId| network.app::<RequestClient>(host).map(RequestClient::is_done);
        let mut waiting = clients.clone();
        network.run_until(Time::MAX, |network| {
            // From the back: the first to be looked at is the last to be done.
            while waiting.last().is_some_and(|host| of(network, *host) == Some(true)) {
                waiting.pop();
            }
            waiting.is_empty()
        });
        let rounds = clients
            .iter()
            .flat_map(|host| {
                network.app::<RequestClient>(*host).map(|app| app.rounds.clone()).unwrap_or_default()
            })
            .filter(|round| self.counts(round))
            .collect();
        (rounds, network.fabric().trace().hash())
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = self.transport.clone();
        transport.handshake_timeout = Duration::from_secs(120);
        transport.max_idle_timeout = Duration::from_secs(300);
        Arc::new(transport)
    }

    fn add_server(&self, network: &mut Network, seed: u64) -> HostId {
        let mut tls = deterministic::unprotected_server_config(&[ALPN]).as_ref().clone();
        lengthen_chain(&mut tls);
        match self.acquaintance {
            Acquaintance::Session | Acquaintance::Early => {
                tls.session_storage = Arc::new(EarlySessions::new(100_000));
                tls.send_tls13_tickets = 2;
                tls.max_early_data_size = u32::MAX;
            }
            _ => tls.session_storage = Arc::new(NoServerSessionStorage {}),
        }
        let config = ServerConfig::new(Arc::new(tls), self.transport());
        let rng = network.rng();
        let endpoint = Endpoint::new(endpoint_config(seed), Some(Arc::new(config)), rng);
        let mut app = RequestServer::new(self.sizes.1);
        app.take_turns = self.without.turns.then_some(true);
        network.add_host(SERVER.into(), endpoint, app)
    }

    fn add_client(&self, network: &mut Network, profile: &Profile, seed: u64, number: u32) -> HostId {
        let mut tls = deterministic::unprotected_client_config(&[ALPN]).as_ref().clone();
        tls.enable_early_data = self.acquaintance == Acquaintance::Early;
        let mut config = ClientConfig::new(Arc::new(tls), self.transport());
        if self.acquaintance != Acquaintance::None {
            config.resumption.store = Some(Arc::new(MemorySessions::new(1)));
        }
        let rng = network.rng();
        let endpoint = Endpoint::new(endpoint_config(seed), None, rng);
        let [.., high, low] = number.to_be_bytes();
        let app = RequestClient::new(config, SERVER.into(), self.plan(profile));
        network.add_host(([10, 1, high, low], 5000).into(), endpoint, app)
    }
}

/// Puts certificates into the chain that nobody needs.
fn lengthen_chain(tls: &mut rustls::ServerConfig) {
    let mut chain = deterministic::certificates();
    chain.extend(std::iter::repeat_n(deterministic::authority(), PADDING_CERTIFICATES));
    if let Ok(key) = tls.crypto_provider().key_provider.load_private_key(deterministic::key()) {
        tls.cert_resolver = Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)));
    }
}

fn endpoint_config(seed: u64) -> EndpointConfig {
    EndpointConfig::new(Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed))))
}

fn sum_up(outcomes: impl Iterator<Item = (Vec<Round>, u64)>) -> Answered {
    let (mut times, mut failed, mut datagrams, mut rounds, mut trace) = (Vec::new(), 0, 0_u64, 0_u64, 0_u64);
    for (of_simulation, hash) in outcomes {
        trace = trace.rotate_left(5) ^ hash;
        for round in of_simulation {
            datagrams += round.datagrams;
            rounds += 1;
            failed += round.failed as usize;
            times.extend(round.took);
        }
    }
    Answered {
        latencies: Latencies::new(times, failed),
        datagrams: datagrams as f64 / rounds.max(1) as f64,
        trace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few(acquaintance: Acquaintance) -> Requests {
        Requests { acquaintance, count: 300, threads: 1, ..Requests::default() }
    }

    #[test]
    fn without_loss_each_kind_takes_its_round_trips() {
        let profile = "uber-a".parse::<Profile>().unwrap().without_loss();
        for (kind, round_trips) in Acquaintance::ALL.into_iter().zip([2, 2, 2, 1, 1]) {
            let latencies = few(kind).run(&profile, |_, _| {}).latencies;
            let (least, most) = (profile.rtt * round_trips, profile.rtt * (round_trips + 1));
            assert!(
                least < latencies.per_mille(1) && latencies.per_mille(500) < most,
                "{kind}: {latencies:?}"
            );
            assert_eq!((latencies.failed(), latencies.len() >= 300), (0, true), "{kind}");
        }
    }

    #[test]
    fn threads_change_nothing_and_seeds_do() {
        let profile: Profile = "uber-c".parse().unwrap();
        let one = few(Acquaintance::Network).run(&profile, |_, _| {});
        let many = Requests { threads: 3, ..few(Acquaintance::Network) }.run(&profile, |_, _| {});
        assert_eq!((one.trace, &one.latencies), (many.trace, &many.latencies));
        let other = Requests { seed: 2, ..few(Acquaintance::Network) }.run(&profile, |_, _| {});
        assert_ne!(one.trace, other.trace);
        assert!(one.latencies.per_mille(990) > profile.rtt * 3, "losses are felt: {:?}", one.latencies);
    }

    #[test]
    fn every_request_is_answered_in_full_however_it_is_cut_into_packets() {
        let profile = "uber-a".parse::<Profile>().unwrap().without_loss();
        // Of some of them, the last packet has next to nothing.
        for request in (440..500).step_by(5) {
            let requests = Requests { sizes: (request, 4000), ..few(Acquaintance::Connected) };
            let (rounds, _) = requests.simulate(&profile, 0);
            let whole = rounds.iter().filter(|round| round.bytes == 6 * 4000).count();
            assert_eq!((rounds.len(), whole), (200, 200), "{request}");
        }
    }
}
