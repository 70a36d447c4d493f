//! A seed: a client and a server on a link, and some connections between them, one after another.

use crate::heap;
use crate::initial::Initials;
use crate::middle::{self, Counts};
use crate::talker::{Dialling, Talker};
use godwit_base::{Rng, SeededRng, Time};
use godwit_link::{DuplexConfig, Jitter, LinkConfig, Loss, Probability};
use godwit_sim::{HostId, Network, Stop};
use godwit_transport::tls::resumption::MemorySessions;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use godwit_wire::{Side, version};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Connections of a seed.
const CONNECTIONS: u32 = 3;
/// Each talks for a second and a half, and is silent until it is given up at the latest.
const LONGEST: Duration = Duration::from_secs(90);
/// Turns of the clock that all of that takes, at most.
const MOST_STEPS: u64 = 200_000;

/// What came of a seed.
pub(crate) struct Lived {
    pub(crate) counts: Counts,
    /// Bytes more than before, at most.
    pub(crate) most_held: usize,
    /// Handshakes completed.
    pub(crate) established: u64,
    /// Connections begun with 0-RTT.
    pub(crate) early: u64,
}

/// Lives through a seed.
pub(crate) fn live(seed: u64) -> Lived {
    middle::begin(seed);
    let before = heap::live();
    heap::begin();
    let mut world = World::new(seed);
    world.run(seed);
    let (established, early) = world.close(seed);
    drop(world);
    Lived { counts: middle::end(), most_held: heap::peak().saturating_sub(before), established, early }
}

struct World {
    network: Network,
    client: HostId,
    server: HostId,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = SeededRng::new(seed ^ 0x5eed);
        let mut network = Network::new(seed);
        let (client_tls, server_tls) = middle::configs();
        let mut endpoint = |network: &mut Network, server: Option<ServerConfig>| {
            let secrets = ServerSecrets::from_rng(&mut SeededRng::new(rng.next_u64()));
            let mut config = EndpointConfig::new(Arc::new(secrets));
            config.max_connections = 8;
            config.versions = vec![version::V1];
            Endpoint::new(config, server.map(Arc::new), network.rng())
        };
        let server = ServerConfig::new(server_tls, Arc::new(transport(seed ^ 1)));
        let server = endpoint(&mut network, Some(server));
        let address: SocketAddr = ([10, 0, 0, 1], 443).into();
        let server = network.add_host(address, server, Talker::new(seed ^ 2, None));
        let mut config = ClientConfig::new(client_tls, Arc::new(transport(seed ^ 3)));
        config.resumption.store = Some(Arc::new(MemorySessions::new(4)));
        let client = endpoint(&mut network, None);
        let dialling = Dialling { config, server: address, left: CONNECTIONS };
        let talker = Talker::new(seed ^ 4, Some(dialling));
        let client = network.add_host(([10, 1, 0, 2], 5000).into(), client, talker);
        network.add_wire(client, server, DuplexConfig::symmetric(link(seed ^ 5))).unwrap();
        let mut initials = Initials::default();
        network.fabric().set_filter(Some(Box::new(move |packet| {
            let sender = if packet.from == client { Side::Client } else { Side::Server };
            initials.pass(sender, packet.bytes);
            true
        })));
        World { network, client, server }
    }

    /// Until nothing is left to happen.
    fn run(&mut self, seed: u64) {
        let mut steps = 0;
        let stop = self.network.run_until(Time::ZERO + LONGEST, |_| {
            heap::look();
            steps += 1;
            steps > MOST_STEPS
        });
        let now = self.network.now();
        assert_eq!(stop, Stop::Idle, "seed {seed}: both ends come to rest; {steps} steps, {now:?}");
    }

    /// Both ends have let go of everything. Returns how many handshakes were completed, and how many began with 0-RTT.
    fn close(&mut self, seed: u64) -> (u64, u64) {
        let [client, server] = [self.client, self.server].map(|host| {
            self.network.act(host, |talker: &mut Talker, cx| {
                assert_eq!(cx.endpoint.connections(), 0, "seed {seed}: no connection is left");
                assert!(cx.endpoint.is_idle(), "seed {seed}: nothing is left to do");
                (talker.established, talker.early)
            })
        });
        (server.unwrap().0, client.unwrap().1)
    }
}

fn transport(seed: u64) -> TransportConfig {
    let mut rng = SeededRng::new(seed);
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_secs(5);
    transport.handshake_timeout = Duration::from_secs(3);
    transport.initial_stream_window = 16 << 10;
    transport.max_stream_window = 128 << 10;
    transport.initial_connection_window = 64 << 10;
    transport.max_connection_window = 256 << 10;
    transport.send_buffer = 256 << 10;
    transport.datagrams.send_buffer = 32 << 10;
    transport.datagrams.receive_buffer = 32 << 10;
    transport.max_bidi_streams = 1 + rng.below(20);
    transport.max_uni_streams = 1 + rng.below(20);
    transport.active_cid_limit = 2 + rng.below(5);
    transport.ack_frequency = rng.below(10) > 0;
    transport.key_update_after = (rng.below(2) == 0).then_some(20 + rng.below(100));
    transport.ecn = rng.below(3) > 0;
    transport.grease_quic_bit = rng.below(2) == 0;
    transport
}

fn link(seed: u64) -> LinkConfig {
    let mut rng = SeededRng::new(seed);
    let mut link = LinkConfig::delayed(Duration::from_millis(1 + rng.below(40)));
    link.loss = match rng.below(3) {
        0 => Loss::Independent(Probability::percent(rng.below(10) as f64)),
        _ => Loss::None,
    };
    if rng.below(3) == 0 {
        link.jitter = Jitter::Unordered(Duration::from_millis(rng.below(10)));
    }
    link
}
