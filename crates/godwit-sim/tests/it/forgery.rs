//! Packets from forged addresses (RFC 9000 sections 9.3.1 to 9.3.3): whoever sees packets can send copies of them
//! from elsewhere. The server may follow for a while; it sends no one more than three times what came from there,
//! and it finds back.

use crate::{at, ms};
use godwit_base::Time;
use godwit_link::{LinkConfig, Rate};
use godwit_sim::fabric::Filtered;
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, Scenario, Simulation};
use godwit_transport::CongestionAlgorithm;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// What is done to the client's packets, from one second on.
#[derive(Debug, Clone, Copy)]
struct Attack {
    lasts: Duration,
    /// The packets themselves are taken out; otherwise they come later than the copies.
    suppress: bool,
    /// From so many addresses in turn the copies seem to come.
    addresses: u16,
}

fn forged(number: u16) -> SocketAddr {
    ([192, 0, 2, 1], 1_000 + number).into()
}

/// Bytes that the server sent to each forged address.
fn sent_astray(simulation: &mut Simulation) -> BTreeMap<SocketAddr, usize> {
    let mut sent = BTreeMap::new();
    let server = simulation.server;
    for entry in simulation.network.fabric().trace().log() {
        if entry.from == server && entry.remote.ip() == forged(0).ip() {
            *sent.entry(entry.remote).or_default() += entry.len;
        }
    }
    sent
}

/// Runs a transfer under attack; returns how long it took, and how many bytes went astray.
fn run(plan: Exchange, attack: Option<Attack>) -> (Duration, usize) {
    let link = LinkConfig::limited(Rate::megabits(20), ms(20), 100_000);
    let mut scenario = Scenario::new(1).both_ways(link).plan(vec![plan], 1);
    // One under which the client acknowledges often.
    scenario = scenario.transport(|transport| transport.congestion = CongestionAlgorithm::Cubic.into());
    scenario.log_limit = 1 << 20;
    // A client that only listens never learns that it is heard of no more: it must speak by itself.
    scenario.client.keep_alive = Some(Duration::from_secs(1));
    let mut simulation = scenario.build();
    let mut astray = 0;
    if let Some(attack) = attack {
        astray = mislead(&mut simulation, attack);
    }
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{plan:?} {attack:?}: {report:#?}");
    (report.duration, astray)
}

fn mislead(simulation: &mut Simulation, attack: Attack) -> usize {
    let (client, server, end) = (simulation.client, simulation.server, at(ms(1_000)) + attack.lasts);
    simulation.network.run_until(at(ms(1_000)), |_| false);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let copies = Rc::clone(&seen);
    simulation.network.fabric().set_filter(Some(Box::new(move |packet: Filtered<'_>| {
        let copied = packet.from == client;
        if copied {
            copies.borrow_mut().push(packet.bytes.clone());
        }
        !(copied && attack.suppress)
    })));
    let mut received = BTreeMap::<SocketAddr, usize>::new();
    let mut next = 0;
    while simulation.network.now() < end {
        simulation.network.run_for(ms(1));
        for copy in seen.borrow_mut().drain(..) {
            let from = forged(next % attack.addresses);
            next += 1;
            simulation.network.inject(server, from, &copy);
            *received.entry(from).or_default() += copy.len();
        }
        judge(simulation, &received);
    }
    assert!(next > 10, "{next} copies");
    simulation.network.fabric().set_filter(None);
    // What was begun by then is carried on with, and no further than before.
    simulation.network.run_for(ms(100));
    judge(simulation, &received);
    simulation.network.run_until(Time::MAX, |network| {
        let app = network.app::<godwit_sim::ExchangeClient>(client);
        app.is_none_or(|app| app.closed.is_some())
    });
    judge(simulation, &received);
    sent_astray(simulation).values().sum()
}

fn judge(simulation: &mut Simulation, received: &BTreeMap<SocketAddr, usize>) {
    for (address, sent) in sent_astray(simulation) {
        let received = received.get(&address).copied().unwrap_or(0);
        assert!(sent <= 3 * received, "{sent} bytes to {address} for {received}");
    }
}

#[test]
fn copies_from_a_forged_address_are_answered_within_bounds_and_then_forgotten() {
    for plan in [Exchange::download(8_000_000), Exchange::upload(8_000_000)] {
        let (undisturbed, _) = run(plan, None);
        for suppress in [false, true] {
            let lasts = ms(200);
            let (took, astray) = run(plan, Some(Attack { lasts, suppress, addresses: 1 }));
            assert!(astray > 0, "the server did not follow at all");
            // The copies prove nothing, and the first packet that is none leads back.
            let allowed = undisturbed + lasts + Duration::from_secs(2);
            assert!(took < allowed, "{plan:?}, {suppress}: {took:?} where {allowed:?} is allowed");
        }
    }
}

#[test]
fn copies_from_many_addresses_are_no_better() {
    let (undisturbed, _) = run(Exchange::download(8_000_000), None);
    for suppress in [false, true] {
        let attack = Attack { lasts: ms(300), suppress, addresses: 50 };
        let (took, astray) = run(Exchange::download(8_000_000), Some(attack));
        assert!(astray > 0);
        assert!(took < undisturbed + Duration::from_secs(4), "{suppress}: {took:?} for {undisturbed:?}");
    }
}
