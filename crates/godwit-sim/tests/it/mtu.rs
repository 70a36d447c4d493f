//! The path MTU: found early, missed when it falls, found again (RFC 8899, RFC 9000 section 14).

use crate::{at, complete, judge_all, ms, seeds};
use godwit_link::{LinkConfig, Loss, Probability, Rate};
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, Scenario, Simulation};
use godwit_transport::ConnectionStats;
use std::time::Duration;

/// The peer's max_ack_delay in these scenarios.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// UDP payload of the largest IPv4 packet on a path of 1280 bytes.
const NARROW: u16 = 1_280 - 28;

fn ethernet() -> LinkConfig {
    let mut link = LinkConfig::limited(Rate::megabits(20), ms(20), 100_000);
    link.mtu = Some(1_500);
    link
}

/// Which of the two sends the data.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sender {
    Client,
    Server,
}

impl Sender {
    fn plan(self, bytes: u64) -> Exchange {
        if self == Sender::Client { Exchange::upload(bytes) } else { Exchange::download(bytes) }
    }

    fn stats(self, simulation: &mut Simulation) -> ConnectionStats {
        let (client, server) = simulation.stats();
        if self == Sender::Client { client } else { server }
    }

    /// Stream bytes that have arrived.
    fn progress(self, simulation: &mut Simulation) -> u64 {
        let (client, server) = simulation.stats();
        if self == Sender::Client { server.stream_bytes_received } else { client.stream_bytes_received }
    }
}

/// The longest time without progress in the next two seconds.
fn longest_stall(simulation: &mut Simulation, sender: Sender) -> Duration {
    let start = simulation.network.now();
    let (mut seen, mut since, mut longest) = (sender.progress(simulation), start, Duration::ZERO);
    while simulation.network.now() < start + ms(2_000) {
        simulation.network.run_for(ms(1));
        let (now, progress) = (simulation.network.now(), sender.progress(simulation));
        if progress > seen {
            (seen, since) = (progress, now);
        }
        longest = longest.max(now - since);
    }
    longest
}

fn narrow_in_mid_transfer(seed: u64, sender: Sender) -> Result<(), String> {
    let plan = vec![sender.plan(12_000_000)];
    let mut simulation = Scenario::new(seed).both_ways(ethernet()).plan(plan, 1).build();
    simulation.network.run_until(at(ms(1_000 + 37 * (seed % 20))), |_| false);
    let before = sender.stats(&mut simulation);
    if before.mtu != 1472 || before.mtu_search.probes_sent != 1 {
        return Err(format!("not found at once: {before:?}"));
    }
    let wire = simulation.wire;
    let duplex = simulation.network.fabric().duplex(wire).unwrap();
    duplex.up.set_mtu(Some(1_280));
    duplex.down.set_mtu(Some(1_280));
    let stall = longest_stall(&mut simulation, sender);
    // The least that a probe timeout can be: variation adds to it.
    let pto = before.rtt + MAX_ACK_DELAY;
    if stall > 3 * pto {
        return Err(format!("{stall:?} of silence, of a probe timeout of {pto:?}"));
    }
    let report = simulation.finish();
    let after = if sender == Sender::Client { &report.client_stats } else { &report.server_stats };
    let found = (NARROW - 16..=NARROW).contains(&after.mtu) && after.mtu_search.black_holes == 1;
    if report.ending != Ending::Complete || !found {
        return Err(format!("{:?} with {after:?}", report.ending));
    }
    Ok(())
}

#[test]
fn a_download_over_a_path_that_becomes_narrower_goes_on_within_three_probe_timeouts() {
    judge_all(seeds(8, 100), |seed| narrow_in_mid_transfer(seed, Sender::Server));
}

#[test]
fn an_upload_over_a_path_that_becomes_narrower_goes_on_within_three_probe_timeouts() {
    judge_all(seeds(8, 100), |seed| narrow_in_mid_transfer(seed, Sender::Client));
}

#[test]
fn random_loss_is_no_black_hole() {
    judge_all(seeds(10, 300), |seed| {
        let loss = Loss::Independent(Probability::percent(10.0));
        let mut link = ethernet();
        link.loss = loss;
        let report =
            Scenario::new(seed).both_ways(link).plan(vec![Exchange::two_way(1 << 20, 1 << 20)], 1).run();
        let holes = [report.client_stats, report.server_stats].map(|stats| stats.mtu_search.black_holes);
        if report.ending != Ending::Complete || report.down.lost == 0 || holes != [0, 0] {
            return Err(format!("{:?}, {holes:?} black holes", report.ending));
        }
        Ok(())
    });
}

#[test]
fn the_first_flight_carries_the_probe() {
    let rtt = ms(350);
    let mut link = LinkConfig::limited(Rate::megabits(20), rtt / 2, 1 << 20);
    link.mtu = Some(1_500);
    let plan = vec![Exchange::download(165_000)];
    let mut simulation = Scenario::new(1).both_ways(link).plan(plan, 1).build();
    // The server's handshake is complete and its first data leaves one and a half round trips after the start.
    simulation.network.run_until(at(rtt * 5 / 2 + ms(50)), |_| false);
    let (client, server) = simulation.stats();
    assert_eq!((client.mtu, server.mtu), (1472, 1472));
    let report = simulation.finish();
    assert_eq!(report.server_stats.mtu_search.probes_sent, 1);
    // Handshake, request, and windows of 12, 24, 48 and 96 kB.
    assert!(report.duration < rtt * 6 + ms(100), "{:?}", report.duration);
}

#[test]
fn jumbo_frames_are_used_where_they_are_permitted() {
    let mut link = LinkConfig::limited(Rate::megabits(100), ms(5), 1 << 20);
    link.mtu = Some(9_000);
    let scenario = Scenario::new(3).both_ways(link).plan(vec![Exchange::download(20 << 20)], 1);
    assert_eq!(complete(&scenario).server_stats.mtu, 1472);
    let permitted =
        scenario.transport(|transport| transport.max_mtu = godwit_transport::TransportConfig::ANY_MTU);
    let report = complete(&permitted);
    assert_eq!(report.server_stats.mtu, 8972, "{:?}", report.server_stats);
}

#[test]
fn a_search_over_ipv6_begins_with_what_ethernet_carries() {
    let mut scenario = Scenario::new(4).both_ways(ethernet()).plan(vec![Exchange::download(1 << 20)], 1);
    scenario.ipv6 = true;
    let report = complete(&scenario);
    assert_eq!((report.server_stats.mtu, report.server_stats.mtu_search.probes_lost), (1452, 0));
}
