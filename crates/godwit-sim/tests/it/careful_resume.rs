//! The second transfer over a path that the first has found wide (RFC 9959): sooner done, in both directions, and hardly
//! later where the path has become narrow in between. The server knows from the client's token.

use crate::ms;
use godwit_base::Time;
use godwit_link::{DuplexConfig, LinkConfig, Rate};
use godwit_sim::app::Application;
use godwit_sim::apps::{ExchangeClient, ExchangeServer, Policy};
use godwit_sim::{Exchange, HostId, Network, Scenario};
use godwit_transport::tls::resumption::MemorySessions;
use godwit_transport::{ClientConfig, CongestionAlgorithm, Endpoint};
use godwit_wire::version;
use std::sync::Arc;
use std::time::Duration;

/// When the second visit begins; the first is over then.
const SECOND: Duration = Duration::from_secs(30);

struct World {
    scenario: Scenario,
    network: Network,
    server: HostId,
    home: HostId,
    config: ClientConfig,
}

impl World {
    fn new(cc: CongestionAlgorithm, link: &LinkConfig) -> Self {
        // Nor must what the receiver permits hold a sender back that resumes.
        let scenario = Scenario::new(6).transport(|transport| {
            transport.congestion = cc.into();
            transport.initial_stream_window = 8 << 20;
            transport.initial_connection_window = 8 << 20;
        });
        let mut network = Network::new(scenario.seed);
        let endpoint = scenario.server_endpoint(&mut network);
        let server =
            network.add_host(scenario.server_address(), endpoint, ExchangeServer::new(Policy::Accept));
        let mut config = scenario.client_config();
        config.resumption.store = Some(Arc::new(MemorySessions::default()));
        let mut nobody = scenario.endpoint_config(vec![version::V1]);
        nobody.max_connections = 0;
        let rng = network.rng();
        let app = ExchangeClient::new(config.clone(), scenario.server_address(), Vec::new(), 1);
        let home = network.add_host(scenario.client_address(2), Endpoint::new(nobody, None, rng), app);
        network.add_wire(home, server, DuplexConfig::symmetric(link.clone())).unwrap();
        network.run_for(Duration::ZERO);
        World { scenario, network, server, home, config }
    }

    /// One exchange by a client that knows what it was told on earlier visits, with a server that knows nothing. How long
    /// it took from the first packet.
    fn visit(&mut self, exchange: Exchange) -> Duration {
        let began = self.network.now();
        let endpoint = self.scenario.server_endpoint(&mut self.network);
        self.network.replace_endpoint(self.server, endpoint);
        let rng = self.network.rng();
        let versions = vec![version::V1, version::V2];
        let endpoint = Endpoint::new(self.scenario.endpoint_config(versions), None, rng);
        self.network.replace_endpoint(self.home, endpoint);
        let new = ExchangeClient::new(self.config.clone(), self.scenario.server_address(), vec![exchange], 1);
        self.network.act(self.home, |old: &mut ExchangeClient, cx| {
            *old = new;
            old.on_start(cx);
        });
        let home = self.home;
        self.network.run_until(Time::ZERO + Duration::from_secs(300), |network| {
            network.app::<ExchangeClient>(home).unwrap().closed.is_some()
        });
        let app = self.network.app::<ExchangeClient>(self.home).unwrap();
        assert!(app.failure.is_none() && app.completed.len() == 1, "{:?}", app.failure);
        app.completed[0].ended - began
    }

    fn wait_until(&mut self, at: Duration) {
        self.network.run_for(Time::ZERO + at - self.network.now());
    }
}

/// 50 Mbit/s and 200 ms, with a queue of so many bytes; another rate from the second visit on.
fn link(queue: u64, then: Rate) -> LinkConfig {
    let mut link = LinkConfig::limited(Rate::megabits(50), ms(100), queue);
    link.rate_steps = vec![(Time::ZERO + SECOND, then)];
    link
}

/// How long an exchange takes that is the second, and one of which nothing is known before.
fn second_and_only(
    cc: CongestionAlgorithm,
    first: Exchange,
    second: Exchange,
    link: &LinkConfig,
) -> (Duration, Duration) {
    let mut world = World::new(cc, link);
    world.visit(first);
    assert!(world.network.now() < Time::ZERO + SECOND);
    world.wait_until(SECOND);
    let second_visit = world.visit(second);
    let mut world = World::new(cc, link);
    world.wait_until(SECOND);
    (second_visit, world.visit(second))
}

const RESUMING: [CongestionAlgorithm; 3] =
    [CongestionAlgorithm::Cubic, CongestionAlgorithm::NewReno, CongestionAlgorithm::Prague];

#[test]
fn what_is_known_of_a_path_saves_round_trips_in_both_directions() {
    for cc in RESUMING {
        for (first, second) in [
            (Exchange::download(8_000_000), Exchange::download(2_000_000)),
            (Exchange::upload(8_000_000), Exchange::upload(2_000_000)),
        ] {
            let (resumed, without) = second_and_only(cc, first, second, &link(1_250_000, Rate::megabits(50)));
            let way = if first.upload > 0 { "up" } else { "down" };
            assert!(resumed + ms(400) <= without, "{cc}, {way}: {resumed:?}, {without:?} without");
        }
    }
}

#[test]
fn a_path_that_has_become_narrow_costs_little() {
    for cc in RESUMING {
        // The one queue takes in what was sent on trust, and the other hardly any of it.
        for (queue, then) in [(1_250_000, 5), (1_250_000, 20), (100_000, 5), (100_000, 20)] {
            let (first, second) = (Exchange::download(8_000_000), Exchange::download(3_000_000));
            let link = link(queue, Rate::megabits(then));
            let (resumed, without) = second_and_only(cc, first, second, &link);
            assert!(resumed <= without * 5 / 4, "{cc}, {queue}, {then}: {resumed:?}, {without:?} without");
        }
    }
}

#[test]
fn a_short_visit_does_not_make_the_path_forgotten() {
    let link = link(1_250_000, Rate::megabits(50));
    let visits = |shorter: u32| {
        let mut world = World::new(CongestionAlgorithm::Cubic, &link);
        world.visit(Exchange::download(8_000_000));
        world.wait_until(SECOND);
        (0..shorter).for_each(|_| _ = world.visit(Exchange::download(3000)));
        world.visit(Exchange::download(2_000_000))
    };
    let mut world = World::new(CongestionAlgorithm::Cubic, &link);
    let unknown = world.visit(Exchange::download(2_000_000));
    let (one, many) = (visits(1), visits(8));
    assert!(one + ms(200) <= unknown, "{one:?}, {unknown:?} without");
    assert!(many + ms(50) >= unknown, "in the end it is: {many:?}, {unknown:?} without");
}
