//! One client, one server, a link, and something to transfer: built in a line, run in another.

use crate::apps::{Exchange, ExchangeClient, ExchangeServer, Policy};
use crate::fabric::{HostId, WireId};
use crate::network::{Network, Stop};
use godwit_base::{SeededRng, Time};
use godwit_link::{Counters, DuplexConfig, LinkConfig};
use godwit_transport::ConnectionStats;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{
    ClientConfig, ConnectionError, Endpoint, EndpointConfig, ServerConfig, TransportConfig,
};
use godwit_wire::version;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The application protocol of simulated connections.
const ALPN: &[u8] = b"godwit-sim";

/// What to simulate. The default is a perfect link and nothing to transfer: connect and close.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Everything random follows from it.
    pub seed: u64,
    /// The link between client and server.
    pub link: DuplexConfig,
    /// The client's settings.
    pub client: TransportConfig,
    /// The server's settings.
    pub server: TransportConfig,
    /// The version with which the client begins.
    pub version: u32,
    /// The versions that the server speaks.
    pub server_versions: Vec<u32>,
    /// The version to which the server moves clients that offer it.
    pub upgrade_to: Option<u32>,
    /// What the server does with those who want to connect.
    pub policy: Policy,
    /// What the client does.
    pub plan: Vec<Exchange>,
    /// How many exchanges it does at a time.
    pub concurrency: usize,
    /// Whether the client closes after the last exchange. Default true.
    pub close_when_done: bool,
    /// The run ends after this much simulated time at the latest. Default 15 minutes.
    pub limit: Duration,
    /// Whether the hosts have IPv6 addresses.
    pub ipv6: bool,
    /// Packets kept in the log.
    pub log_limit: usize,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            seed: 0,
            link: DuplexConfig::default(),
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            version: version::V1,
            server_versions: vec![version::V1, version::V2],
            upgrade_to: None,
            policy: Policy::Accept,
            plan: Vec::new(),
            concurrency: 1,
            close_when_done: true,
            limit: Duration::from_secs(900),
            ipv6: false,
            log_limit: 0,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Every exchange was done, every byte was right, and both sides closed as they should.
    Complete,
    /// The connection ended before the work was done.
    Broken(Option<ConnectionError>),
    /// A byte was wrong, or a call was refused that should not have been.
    Failed(String),
    /// Nothing was going to happen any more, or time stood still, before the work was done.
    Hung(Stop),
    /// The work was not done when time was up.
    TooSlow,
}

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// When the client had done its work, or when the run ended.
    pub duration: Duration,
    /// How long the client waited for the handshake.
    pub connected_after: Option<Duration>,
    /// Bytes that the server received and found right.
    pub uploaded: u64,
    /// Bytes that the client received and found right.
    pub downloaded: u64,
    /// The link from client to server.
    pub up: Counters,
    /// The link from server to client.
    pub down: Counters,
    /// Why the client's connection ended.
    pub client_closed: Option<ConnectionError>,
    /// Why the server's first connection ended.
    pub server_closed: Option<ConnectionError>,
    /// What the client's connection counted until its work was done.
    pub client_stats: ConnectionStats,
    /// What the server's first connection counted until then.
    pub server_stats: ConnectionStats,
    /// The hash over all packets.
    pub trace_hash: u64,
    /// Packets sent by both.
    pub packets: u64,
    /// Whether both ends came to rest: nothing was left to happen when the run ended.
    pub at_rest: bool,
}

impl Report {
    /// Verified bytes per second in the busier direction.
    pub fn goodput(&self) -> f64 {
        self.uploaded.max(self.downloaded) as f64 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// A scenario that can be run in pieces and meddled with.
#[derive(Debug)]
pub struct Simulation {
    /// The network with its two hosts.
    pub network: Network,
    /// The host with the [`ExchangeClient`].
    pub client: HostId,
    /// The host with the [`ExchangeServer`].
    pub server: HostId,
    /// The wire between them.
    pub wire: WireId,
    limit: Time,
}

impl Scenario {
    /// A scenario with this seed.
    pub fn new(seed: u64) -> Self {
        Scenario { seed, ..Scenario::default() }
    }

    /// The link between the two.
    #[must_use]
    pub fn link(mut self, link: DuplexConfig) -> Self {
        self.link = link;
        self
    }

    /// The same link in both directions.
    #[must_use]
    pub fn both_ways(self, link: LinkConfig) -> Self {
        self.link(DuplexConfig::symmetric(link))
    }

    /// What the client does, and how many exchanges at a time.
    #[must_use]
    pub fn plan(mut self, plan: Vec<Exchange>, concurrency: usize) -> Self {
        self.plan = plan;
        self.concurrency = concurrency;
        self
    }

    /// Changes the settings of both ends.
    #[must_use]
    pub fn transport(mut self, mut change: impl FnMut(&mut TransportConfig)) -> Self {
        change(&mut self.client);
        change(&mut self.server);
        self
    }

    /// The address of the server.
    pub fn server_address(&self) -> SocketAddr {
        if self.ipv6 { ([0xfd00, 0, 0, 0, 0, 0, 0, 1], 443).into() } else { ([10, 0, 0, 1], 443).into() }
    }

    /// The address of the client with this number.
    pub fn client_address(&self, number: u16) -> SocketAddr {
        let [high, low] = number.to_be_bytes();
        if self.ipv6 {
            ([0xfd00, 0, 0, 1, 0, 0, 0, number], 5000).into()
        } else {
            ([10, 1, high, low], 5000).into()
        }
    }

    /// An endpoint configuration whose secrets follow from the seed.
    pub fn endpoint_config(&self, versions: Vec<u32>) -> EndpointConfig {
        let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(self.seed)));
        let mut config = EndpointConfig::new(secrets);
        config.max_connections = 10_000;
        config.versions = versions;
        config
    }

    /// A server's endpoint. One made later with the same scenario has the same secrets but another state.
    pub fn server_endpoint(&self, network: &mut Network) -> Endpoint {
        let config = ServerConfig::new(deterministic::server_config(&[ALPN]), Arc::new(self.server.clone()));
        let rng = network.rng();
        let mut endpoint = self.endpoint_config(self.server_versions.clone());
        endpoint.upgrade_to = self.upgrade_to;
        Endpoint::new(endpoint, Some(Arc::new(config)), rng)
    }

    /// What the client connects with.
    pub fn client_config(&self) -> ClientConfig {
        let tls = deterministic::client_config(&[ALPN]);
        let mut config = ClientConfig::new(tls, Arc::new(self.client.clone()));
        config.version = self.version;
        config
    }

    /// Another client on its own link to the server of a simulation. `None` if there is no such server.
    pub fn add_client(&self, network: &mut Network, server: HostId, number: u16) -> Option<(HostId, WireId)> {
        let versions = vec![self.version, version::V1, version::V2];
        let rng = network.rng();
        let endpoint = Endpoint::new(self.endpoint_config(versions), None, rng);
        let mut app = ExchangeClient::new(
            self.client_config(),
            self.server_address(),
            self.plan.clone(),
            self.concurrency,
        );
        app.close_when_done = self.close_when_done;
        let client = network.add_host(self.client_address(number), endpoint, app);
        let wire = network.add_wire(client, server, self.link.clone())?;
        Some((client, wire))
    }

    /// Builds the network.
    pub fn build(&self) -> Simulation {
        let mut network = Network::new(self.seed);
        network.fabric().trace_mut().keep_log(self.log_limit);
        let endpoint = self.server_endpoint(&mut network);
        let server = network.add_host(self.server_address(), endpoint, ExchangeServer::new(self.policy));
        let joined = self.add_client(&mut network, server, 2);
        let (client, wire) = joined.unwrap_or((server, WireId(0)));
        Simulation { network, client, server, wire, limit: Time::ZERO + self.limit }
    }

    /// Builds the network and runs it to the end.
    pub fn run(&self) -> Report {
        self.build().finish()
    }
}

impl Simulation {
    /// The client's application.
    pub fn client_app(&self) -> Option<&ExchangeClient> {
        self.network.app(self.client)
    }

    /// The server's application.
    pub fn server_app(&self) -> Option<&ExchangeServer> {
        self.network.app(self.server)
    }

    /// The counters of the client's connection and of the first that the server accepted; zero where
    /// there is none.
    pub fn stats(&mut self) -> (ConnectionStats, ConnectionStats) {
        let client = self.network.act(self.client, |app: &mut ExchangeClient, cx| {
            app.conn.and_then(|conn| cx.endpoint.connection(conn)).map(|conn| conn.stats())
        });
        let server = self.network.act(self.server, |app: &mut ExchangeServer, cx| {
            app.accepted.first().and_then(|conn| cx.endpoint.connection(*conn)).map(|conn| conn.stats())
        });
        (client.flatten().unwrap_or_default(), server.flatten().unwrap_or_default())
    }

    /// Runs until the client has done all its work or its connection has ended.
    pub fn run_to_completion(&mut self) -> Stop {
        let client = self.client;
        self.network.run_until(self.limit, |network| {
            network.app::<ExchangeClient>(client).is_none_or(|app| {
                app.failure.is_some() || app.closed.is_some() || app.connected_at.is_some() && app.is_done()
            })
        })
    }

    /// Runs the work, then lets both sides close and drain, and reports.
    pub fn finish(&mut self) -> Report {
        let stop = self.run_to_completion();
        let duration = self.network.now() - Time::ZERO;
        let stats = self.stats();
        let closes = self.client_app().is_some_and(|app| app.close_when_done);
        let rest = if closes && stop == Stop::Condition {
            self.network.run_until(self.limit, |_| false)
        } else {
            stop
        };
        self.report((stop, rest), duration, stats)
    }

    fn report(
        &mut self,
        (stop, rest): (Stop, Stop),
        duration: Duration,
        (client_stats, server_stats): (ConnectionStats, ConnectionStats),
    ) -> Report {
        let link = self.network.fabric().duplex(self.wire);
        let (up, down) =
            link.map_or_else(Default::default, |link| (*link.up.counters(), *link.down.counters()));
        let (trace_hash, packets) = {
            let trace = self.network.fabric().trace();
            (trace.hash(), trace.packets())
        };
        let ending = self.ending(stop, rest);
        let client = self.client_app();
        let server = self.server_app();
        Report {
            ending,
            duration,
            connected_after: client.and_then(|app| app.connected_at).map(|at| at - Time::ZERO),
            uploaded: server.map_or(0, |app| app.verified),
            downloaded: client.map_or(0, |app| app.verified_so_far()),
            up,
            down,
            client_closed: client.and_then(|app| app.closed.clone()),
            server_closed: server.and_then(|app| app.closed.first().map(|(_, _, reason)| reason.clone())),
            client_stats,
            server_stats,
            trace_hash,
            packets,
            at_rest: rest == Stop::Idle,
        }
    }

    fn ending(&self, stop: Stop, rest: Stop) -> Ending {
        let (Some(client), Some(server)) = (self.client_app(), self.server_app()) else {
            return Ending::Hung(stop);
        };
        let failure = client.failure.clone().or_else(|| server.failures.first().map(|(_, why)| why.clone()));
        if let Some(failure) = failure {
            return Ending::Failed(failure);
        }
        match stop {
            Stop::Condition if client.connected_at.is_some() && client.is_done() => match rest {
                Stop::Stuck => Ending::Hung(rest),
                _ => Ending::Complete,
            },
            Stop::Condition => Ending::Broken(client.closed.clone()),
            Stop::Limit => Ending::TooSlow,
            Stop::Idle | Stop::Stuck => Ending::Hung(stop),
        }
    }
}
