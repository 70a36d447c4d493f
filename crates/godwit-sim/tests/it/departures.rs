//! Packets that the system holds back until they may leave.

use godwit_base::Time;
use godwit_link::{LinkConfig, QueueLimit, Rate};
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, Report, Scenario};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// What a server is like that sends.
#[derive(Clone, Copy)]
struct Sender {
    tick: Duration,
    keeps_departure_times: bool,
}

/// Wakes when it asked to be.
const PUNCTUAL: Sender = Sender { tick: Duration::ZERO, keeps_departure_times: false };
/// Wakes every millisecond.
const COARSE: Sender = Sender { tick: Duration::from_millis(1), ..PUNCTUAL };
/// The same, but what it sends is held back.
const HELD: Sender = Sender { keeps_departure_times: true, ..COARSE };

/// A transfer over a shallow queue: what leaves in bunches is lost. With the times at which the server's packets left.
fn transfer(sender: Sender, bytes: u64, seed: u64) -> (Report, Vec<Time>) {
    let mut link = LinkConfig::delayed(Duration::from_micros(2500));
    (link.rate, link.queue) = (Some(Rate::megabits(20)), QueueLimit::Packets(2));
    let mut scenario = Scenario::new(seed).both_ways(link).plan(vec![Exchange::download(bytes)], 1);
    scenario.log_limit = usize::MAX;
    let mut simulation = scenario.build();
    simulation.network.set_tick(simulation.server, sender.tick);
    if sender.keeps_departure_times {
        simulation.network.keep_departure_times(simulation.server);
    }
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    let server = simulation.server;
    let log = simulation.network.fabric().trace().log();
    let times = log.iter().filter(|entry| entry.from == server && entry.len > 1000).map(|entry| entry.at);
    (report, times.collect())
}

/// The share of packets that left less than a tenth of a millisecond behind the one before: at this rate each takes 0.6.
fn bunched(times: &[Time]) -> f64 {
    let pairs = times.windows(2).filter(|pair| pair[1] - pair[0] < Duration::from_micros(100));
    pairs.count() as f64 / times.len() as f64
}

#[test]
fn packets_are_spaced_although_the_host_wakes_late() {
    for seed in 1..=3 {
        let [punctual, coarse, held] = [PUNCTUAL, COARSE, HELD].map(|sender| transfer(sender, 4 * MIB, seed));
        let goodput = |(report, _): &(Report, _)| report.goodput() * 8e-6;
        let (in_time, late, exact) = (goodput(&punctual), goodput(&coarse), goodput(&held));
        // The link carries 20 Mbit/s.
        assert!(in_time > 17.0 && late < 16.0, "{in_time:.2} {late:.2} {exact:.2}");
        assert!(exact > 0.99 * in_time, "{in_time:.2} {late:.2} {exact:.2}");
        let shares = [&punctual, &coarse, &held].map(|(_, times)| bunched(times));
        assert!(shares[1] > 0.2 && shares[2] <= shares[0], "{shares:.3?}");
        // Nothing overtakes, and the time in the host is no part of the round trip: it is that of the smallest packet that
        // was acknowledged alone, and those differ by less than 250 bytes.
        let (report, _) = &held;
        assert_eq!((report.server_stats.spurious_losses, report.down.reordered), (0, 0));
        let [held, punctual] = [&held, &punctual].map(|(report, _)| report.server_stats.min_rtt);
        assert!(held.abs_diff(punctual) < Duration::from_micros(100), "{held:?} {punctual:?}");
    }
}
