//! Networks that are none of the matrices': delays that vary, radios that gather packets, queues that are kept short,
//! policers, rates that change, thin ways back. What is tuned to the matrices alone fails here.
//!
//! `cargo test --release -p godwit-lab --test other_networks -- --nocapture` prints what each carries.

#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use godwit_base::Time;
use godwit_lab::wan::{Controller, Trial};
use godwit_link::{
    Aggregation, Aqm, Cellular, CoDel, DuplexConfig, Jitter, LinkConfig, Loss, Outage, Policer, Probability,
    QueueLimit, Rate,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn megabits(rate: f64) -> Rate {
    Rate::bits_per_second((rate * 1e6) as u64)
}

/// So many Mbit/s and milliseconds there and back, with a queue of one bandwidth-delay product.
fn plain(rate: u64, rtt: u64) -> LinkConfig {
    let rate = Rate::megabits(rate);
    LinkConfig::limited(rate, ms(rtt) / 2, rate.bytes_in(ms(rtt)).max(10_000))
}

fn with(mut link: LinkConfig, change: impl FnOnce(&mut LinkConfig)) -> LinkConfig {
    change(&mut link);
    link
}

/// A link, its rate in Mbit/s that counts as all of it, and how much of that must be used at least, in percent.
struct Network {
    name: &'static str,
    up: LinkConfig,
    down: LinkConfig,
    rate: f64,
    least: f64,
}

/// Packets are lost on the way there only.
fn network(name: &'static str, up: LinkConfig, rate: f64, least: f64) -> Network {
    Network { name, down: with(up.clone(), |link| link.loss = Loss::None), up, rate, least }
}

fn thin_back(name: &'static str, rate: u64, back: f64, least: f64) -> Network {
    let down = LinkConfig::limited(megabits(back), ms(20), 20_000);
    Network { down, ..network(name, plain(rate, 40), rate as f64, least) }
}

fn cellular(name: &'static str, cellular: &Cellular, least: f64) -> Network {
    let trace = cellular.generate(Duration::from_secs(60), 3);
    let opportunities = trace.millis().iter().filter(|at| **at < 10_000).count();
    let link = with(LinkConfig::delayed(ms(20)), |link| {
        link.trace = Some(Arc::new(trace));
        link.queue = QueueLimit::Bytes(300_000);
    });
    network(name, link, opportunities as f64 * 1500.0 * 8.0 / 10e6, least)
}

fn varying() -> Vec<Network> {
    let jitter = |rate, rtt, jitter| with(plain(rate, rtt), |link| link.jitter = jitter);
    let bursts = |rate, rtt, least, most| {
        let aggregation = Some(Aggregation { least: ms(least), most: ms(most) });
        with(plain(rate, rtt), |link| link.aggregation = aggregation)
    };
    let to = |rate, then| {
        let steps = vec![(Time::ZERO + ms(4000), Rate::megabits(then))];
        with(plain(rate, 40), |link| link.rate_steps = steps)
    };
    let outage = Outage { from: Time::ZERO + ms(4000), until: Time::ZERO + ms(5000) };
    vec![
        network("100 Mbit/s, 20 ms, 2 ms of jitter", jitter(100, 20, Jitter::InOrder(ms(2))), 100.0, 85.0),
        network("100 Mbit/s, 40 ms, 10 ms of jitter", jitter(100, 40, Jitter::InOrder(ms(10))), 100.0, 75.0),
        network("30 Mbit/s, 50 ms, 10 ms unordered", jitter(30, 50, Jitter::Unordered(ms(10))), 30.0, 80.0),
        network("50 Mbit/s, 20 ms, in bursts", bursts(50, 20, 1, 5), 50.0, 85.0),
        network("50 Mbit/s, 40 ms, in long bursts", bursts(50, 40, 2, 20), 50.0, 70.0),
        network("50 Mbit/s, then 10", to(50, 10), 26.0, 84.0),
        network("10 Mbit/s, then 50", to(10, 50), 34.0, 70.0),
        network(
            "20 Mbit/s, a second of nothing",
            with(plain(20, 60), |link| link.outages = vec![outage]),
            18.0,
            78.0,
        ),
        cellular("LTE, driving", &Cellular::lte_driving_down(), 84.0),
        cellular("UMTS, driving", &Cellular::umts_driving(), 78.0),
    ]
}

fn steady() -> Vec<Network> {
    let codel = |rate, rtt| with(plain(rate, rtt), |link| link.aqm = Aqm::CoDel(CoDel::default()));
    let lossy = |rate, rtt, percent| {
        with(plain(rate, rtt), |link| link.loss = Loss::Independent(Probability::percent(percent)))
    };
    let policed = |rate: u64, rtt, burst| {
        let policer = Some(Policer { rate: Rate::megabits(rate), burst });
        with(plain(rate * 5, rtt), |link| link.policer = policer)
    };
    vec![
        network("17 Mbit/s, 33 ms", plain(17, 33), 17.0, 88.0),
        network("330 Mbit/s, 90 ms", plain(330, 90), 330.0, 85.0),
        network("3 Mbit/s, 230 ms, 0.5 % lost", lossy(3, 230, 0.5), 3.0, 80.0),
        network("25 Mbit/s, 80 ms, 2 % lost", lossy(25, 80, 2.0), 25.0, 78.0),
        network("20 Mbit/s, 30 ms, CoDel", codel(20, 30), 20.0, 85.0),
        network("200 Mbit/s, 60 ms, CoDel", codel(200, 60), 200.0, 85.0),
        network("20 Mbit/s by a policer, 40 ms", policed(20, 40, 100_000), 20.0, 82.0),
        network("8 Mbit/s by a policer, 80 ms", policed(8, 80, 50_000), 8.0, 82.0),
        thin_back("20 Mbit/s and 0.5 back", 20, 0.5, 84.0),
        thin_back("20 Mbit/s and 0.2 back", 20, 0.2, 80.0),
        thin_back("50 Mbit/s and 0.1 back", 50, 0.1, 55.0),
    ]
}

/// The use of a network in percent, and how it failed, if it did.
fn used(controller: &str, network: &Network) -> (f64, f64, Option<String>) {
    let controller: Controller = controller.parse().unwrap();
    let mut trial = Trial::default();
    trial.transport = controller.transport();
    let mut link = DuplexConfig::symmetric(network.up.clone());
    link.down = network.down.clone();
    let outcome = trial.run_over(link, megabits(network.rate), 5, trial.duration, |_| {});
    (outcome.usage, outcome.waste(), outcome.broken)
}

fn judge(networks: &[Network]) {
    let mut failures = Vec::new();
    for network in networks {
        let (usage, waste, broken) = used("default", network);
        let (cubic, ..) = used("cubic", network);
        let name = network.name;
        println!("{name:<36} {usage:5.1} %, CUBIC {cubic:5.1} %; waste {waste:4.1} %");
        if broken.is_some() || usage < network.least {
            failures.push(format!("{name}: {usage:.1} % of at least {} ({broken:?})", network.least));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_default_uses_steady_networks_that_it_was_not_tuned_to() {
    judge(&steady());
}

#[test]
fn the_default_uses_networks_that_vary() {
    judge(&varying());
}

/// Jitter misleads the trains that tell the rate: where they said too little, a probe soon finds more.
#[test]
fn a_rate_that_was_told_too_low_is_soon_put_right() {
    let jittery = || with(plain(20, 100), |link| link.jitter = Jitter::InOrder(ms(4)));
    let mut trial = Trial::default();
    trial.duration = ms(6000);
    let usage = |seed| {
        let link = DuplexConfig::symmetric(jittery());
        trial.run_over(link, Rate::megabits(20), seed, trial.duration, |_| {}).usage
    };
    let usages: Vec<f64> = (1..=8).map(usage).collect();
    let mean = usages.iter().sum::<f64>() / usages.len() as f64;
    assert!(mean > 81.0, "{mean:.1}: {usages:.1?}");
}
