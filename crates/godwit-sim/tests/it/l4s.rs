//! Prague at a bottleneck with two coupled queues: the link is used, its packets hardly wait, and it gets on with CUBIC.

use crate::{complete, ms};
use godwit_base::{SeededRng, Time};
use godwit_link::{Aqm, Counters, DualPi2, DuplexConfig, EcnHandling, Jitter, LinkConfig, Rate};
use godwit_sim::apps::{BulkClient, BulkServer, Way};
use godwit_sim::{Exchange, HostId, Network, Scenario, SharedId};
use godwit_transport::tls::deterministic;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{
    ClientConfig, CongestionAlgorithm, EcnState, Endpoint, EndpointConfig, ServerConfig, TransportConfig,
};
use std::sync::Arc;
use std::time::Duration;

const ALPN: &[u8] = b"godwit-l4s";
const PRAGUE: CongestionAlgorithm = CongestionAlgorithm::Prague;
const CUBIC: CongestionAlgorithm = CongestionAlgorithm::Cubic;

/// What came of flows that shared a link, in the second half of the time.
#[derive(Debug)]
struct Outcome {
    /// Mbit/s of each.
    rates: Vec<f64>,
    /// Of all the time.
    link: Counters,
}

impl Outcome {
    fn used(&self, megabits: u64) -> f64 {
        self.rates.iter().sum::<f64>() / megabits as f64
    }
}

fn bottleneck(megabits: u64, aqm: Aqm) -> LinkConfig {
    let rate = Rate::megabits(megabits);
    let mut link = LinkConfig::limited(rate, Duration::ZERO, rate.bytes_in(ms(250)));
    link.aqm = aqm;
    link
}

/// Uploads for so many seconds over one link.
fn share(flows: &[CongestionAlgorithm], megabits: u64, rtt: Duration, aqm: Aqm, seconds: u64) -> Outcome {
    let mut network = Network::new(1);
    let shared = network.add_shared_link(DuplexConfig::symmetric(bottleneck(megabits, aqm)));
    let hosts: Vec<HostId> =
        (1..).zip(flows).map(|(number, cc)| add(&mut network, shared, number, *cc, rtt)).collect();
    let received = |network: &Network| -> Vec<u64> {
        hosts.iter().map(|host| network.app::<BulkServer>(*host).unwrap().progress.received).collect()
    };
    let half = Duration::from_secs(seconds) / 2;
    network.run_until(Time::ZERO + half, |_| false);
    let before = received(&network);
    network.run_until(Time::ZERO + half * 2, |_| false);
    let after = received(&network);
    let rate = |(before, after): (&u64, &u64)| (after - before) as f64 * 8e-6 / half.as_secs_f64();
    let link = *network.fabric().shared_link(shared).unwrap().up.counters();
    Outcome { rates: before.iter().zip(&after).map(rate).collect(), link }
}

/// A client that sends to a server of its own, and the server.
fn add(
    network: &mut Network,
    shared: SharedId,
    number: u8,
    cc: CongestionAlgorithm,
    rtt: Duration,
) -> HostId {
    let mut transport = TransportConfig::default();
    transport.congestion = cc.into();
    let transport = Arc::new(transport);
    let (server, client) = (([10, 1, 0, number], 443).into(), ([10, 2, 0, number], 5000).into());
    let secrets =
        || EndpointConfig::new(Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(u64::from(number)))));
    let config = ServerConfig::new(deterministic::unprotected_server_config(&[ALPN]), transport.clone());
    let rng = network.rng();
    let endpoint = Endpoint::new(secrets(), Some(Arc::new(config)), rng);
    let server_host = network.add_host(server, endpoint, BulkServer::new(Way::Upload));
    let config = ClientConfig::new(deterministic::unprotected_client_config(&[ALPN]), transport);
    let mut app = BulkClient::new(config, server, Way::Upload);
    app.starts_at = Time::ZERO + ms(700) * u32::from(number - 1);
    let rng = network.rng();
    let client_host = network.add_host(client, Endpoint::new(secrets(), None, rng), app);
    let mut own = LinkConfig::delayed(rtt / 2);
    own.jitter = Jitter::InOrder(Duration::from_micros(100));
    let wire = network.add_wire(client_host, server_host, DuplexConfig::symmetric(own)).unwrap();
    network.fabric().share(wire, shared);
    server_host
}

fn dual() -> Aqm {
    Aqm::DualPi2(DualPi2::default())
}

#[test]
fn prague_fills_a_link_and_its_packets_hardly_wait() {
    for (megabits, rtt) in [(50, 20), (20, 50), (100, 10)] {
        let prague = share(&[PRAGUE], megabits, ms(rtt), dual(), 20);
        let cubic = share(&[CUBIC], megabits, ms(rtt), dual(), 20);
        let (low, _) = prague.link.mean_delays_by_queue();
        let (_, classic) = cubic.link.mean_delays_by_queue();
        assert!(prague.used(megabits) > 0.9, "{megabits} {rtt}: {prague:?}");
        assert!(low < ms(1) && low * 4 < classic, "{megabits} {rtt}: {low:?} and {classic:?}");
        assert!(prague.link.marked > 100 && prague.link.drops() == 0, "{megabits} {rtt}: {prague:?}");
    }
}

#[test]
fn prague_and_cubic_share_alike_and_only_cubic_waits() {
    for flows in [[PRAGUE, CUBIC], [CUBIC, PRAGUE]] {
        let outcome = share(&flows, 50, ms(20), dual(), 40);
        let share = outcome.rates[0] / outcome.rates[1];
        assert!((0.5..=2.0).contains(&share), "{flows:?}: {outcome:?}");
        assert!(outcome.used(50) > 0.9, "{flows:?}: {outcome:?}");
        let (low, classic) = outcome.link.mean_delays_by_queue();
        assert!(low < ms(1) && low * 4 < classic, "{low:?} and {classic:?}");
    }
}

#[test]
fn two_prague_flows_share_alike() {
    let outcome = share(&[PRAGUE, PRAGUE], 50, ms(20), dual(), 40);
    let share = outcome.rates[0] / outcome.rates[1];
    assert!((0.5..=2.0).contains(&share) && outcome.used(50) > 0.9, "{outcome:?}");
}

#[test]
fn where_nothing_marks_prague_is_cubic() {
    let (prague, cubic) =
        (share(&[PRAGUE], 20, ms(50), Aqm::None, 20), share(&[CUBIC], 20, ms(50), Aqm::None, 20));
    assert!(prague.used(20) > cubic.used(20) - 0.03, "{prague:?} {cubic:?}");
}

#[test]
fn paths_that_erase_or_change_the_marks_are_found_out() {
    for handling in [EcnHandling::Bleach, EcnHandling::Drop] {
        let mut link = bottleneck(20, dual());
        (link.delay, link.ecn) = (ms(20), handling);
        let run = |cc: CongestionAlgorithm, seed: u64| {
            let plan = vec![Exchange::two_way(4_000_000, 4_000_000)];
            let scenario = Scenario::new(seed).both_ways(link.clone()).plan(plan, 1);
            complete(&scenario.transport(|transport| {
                transport.congestion = cc.into();
                (transport.initial_stream_window, transport.initial_connection_window) = (16 << 20, 32 << 20);
            }))
        };
        // A single one takes between two and four seconds, by chance.
        let (mut took, mut allowed) = (Duration::ZERO, Duration::ZERO);
        for seed in 1..=10 {
            let (prague, cubic) = (run(PRAGUE, seed), run(CUBIC, seed));
            let states = [prague.client_stats.ecn, prague.server_stats.ecn];
            let all_failed = states.iter().all(|state| matches!(state, EcnState::Failed(_)));
            assert!(all_failed, "{handling:?}, seed {seed}: {states:?}");
            took += prague.duration;
            allowed += cubic.duration * 11 / 10;
        }
        assert!(took < allowed, "{handling:?}: {took:?} of {allowed:?}");
    }
}
