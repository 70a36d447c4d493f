//! UDP that dies in the midst of a download, or right after the handshake: when things go on.

use std::time::Duration;

use godwit_base::Time;
use godwit_sim::apps::{Exchange, ExchangeClient};

use super::world::{Path, Udp};
use crate::decision::watch::{Sample, Step, Watch};

const LENGTH: u64 = 2_000_000;

/// How long after the death of UDP the first byte of the rest comes over TCP, and whether the watch was wrong before.
fn rescued_after(path: &Path, seed: u64, dies_at: u64) -> (Duration, bool) {
    let (mut simulation, dead) = path.quic(seed, Some(path.rtt));
    let client = simulation.client;
    simulation.network.run_until(Time::ZERO + Duration::from_secs(60), |network| {
        network.app::<ExchangeClient>(client).is_some_and(|app| app.connected_at.is_some())
    });
    simulation.network.act(client, |app: &mut ExchangeClient, cx| app.add(cx, [Exchange::download(LENGTH)]));
    let mut died = (dies_at == 0).then(|| simulation.network.now());
    dead.set(died.is_some());
    let mut early = false;
    let mut watch: Option<Watch> = None;
    loop {
        let now = simulation.network.now();
        if died.is_none() && simulation.client_app().is_some_and(|app| app.verified_so_far() >= dies_at) {
            dead.set(true);
            died = Some(now);
        }
        let (stats, _) = simulation.stats();
        let sample = Sample {
            received: stats.datagrams_received,
            rtt: stats.rtt,
            rtt_variance: stats.rtt_variance,
            in_flight: stats.bytes_in_flight,
        };
        let since = now - Time::ZERO;
        let watch = watch.get_or_insert_with(|| Watch::new(since, &sample, None));
        let wait = match watch.look(since, &sample) {
            Step::Wait(wait) | Step::Recovered(wait) => wait,
            Step::Ask(wait) => {
                let ping = |app: &mut ExchangeClient, cx: &mut godwit_sim::Context<'_>| {
                    app.conn.and_then(|conn| cx.endpoint.with(conn, |conn| conn.ping()))
                };
                simulation.network.act(client, ping);
                wait
            }
            Step::Suspect(wait) => match died {
                Some(died) => {
                    let made = path.tcp(seed).connect().unwrap();
                    let answer = path.tcp(seed ^ 0x4e57).request(path.rtt).unwrap();
                    return (now - died + made.took + answer, early);
                }
                None => {
                    early = true;
                    wait
                }
            },
        };
        let until = now + wait.min(Duration::from_secs(1));
        let half = |app: &ExchangeClient| app.verified_so_far() >= dies_at;
        simulation.network.run_until(until, |network| {
            died.is_none() && network.app::<ExchangeClient>(client).is_some_and(half)
        });
        // With nothing more to happen the clock stands still: then only the watch's own time passes.
        if simulation.network.now() == now && died.is_some() {
            panic!("the clock stands still");
        }
        assert!(simulation.network.now() < Time::ZERO + Duration::from_secs(300), "it never ends");
    }
}

#[test]
fn a_download_goes_on_within_three_seconds() {
    println!(
        "from the death of UDP to the first byte of the rest over TCP: the longest of 5; false alarms before"
    );
    for rtt in [20, 100, 350, 425, 725, 2300] {
        for loss in [0.0, 2.0] {
            let path = Path { rtt: Duration::from_millis(rtt), loss, queue: 625_000, udp: Udp::Works };
            let all: Vec<_> = (0..5).map(|seed| rescued_after(&path, seed, LENGTH / 2)).collect();
            let longest = all.iter().map(|(after, _)| *after).max().unwrap();
            let wrong = all.iter().filter(|(_, early)| *early).count();
            println!("{rtt:>5} ms, {loss} %: {longest:.2?}, {wrong}");
            if rtt <= 350 && loss == 0.0 {
                assert!(longest <= Duration::from_secs(3), "{rtt} ms, {loss} %: {longest:?}");
                assert_eq!(wrong, 0, "{rtt} ms, {loss} %");
            }
        }
    }
}

#[test]
fn a_request_is_not_left_alone_where_only_handshakes_pass() {
    println!("from the handshake to the answer over TCP, where nothing else passes: the longest of 5");
    for rtt in [20, 100, 350, 425, 725, 2300] {
        let path = Path { rtt: Duration::from_millis(rtt), loss: 0.0, queue: 625_000, udp: Udp::Works };
        let all = (0..5).map(|seed| rescued_after(&path, seed, 0).0);
        let longest = all.max().unwrap();
        println!("{rtt:>5} ms: {longest:.2?}");
        assert!(longest <= Duration::from_secs(1) + path.rtt * 8, "{rtt}: {longest:?}");
    }
}
