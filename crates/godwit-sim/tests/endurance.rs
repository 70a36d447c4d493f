//! A connection that lives for a day, in virtual time: keys change again and again, the link loses packets and is gone for
//! some seconds every hour, and in the evening there is neither a byte missing nor a byte of memory more in use than in
//! the morning.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]

use godwit_base::Time;
use godwit_link::{LinkConfig, Loss, Outage, Probability, Rate};
use godwit_sim::app::Application;
use godwit_sim::apps::ExchangeServer;
use godwit_sim::{Exchange, ExchangeClient, Scenario, Simulation};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MINUTE: Duration = Duration::from_secs(60);
const HOURS: u64 = 24;
/// Packets sealed with one key.
const KEY_LIFE: u64 = 400;
/// Live bytes that may come and go: queues keep the room they once needed.
const SLACK: usize = 64 << 10;

/// The allocator counts for all tests of this program: one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// A link on which one packet in a hundred is lost, and which is down for five seconds in every hour.
fn link() -> LinkConfig {
    let mut link = LinkConfig::limited(Rate::megabits(20), Duration::from_millis(20), 100_000);
    link.loss = Loss::Independent(Probability::percent(1.0));
    link.outages = (0..HOURS)
        .map(|hour| {
            let from = Time::ZERO + MINUTE * (60 * hour as u32 + 29) + Duration::from_secs(1);
            Outage { from, until: from + Duration::from_secs(5) }
        })
        .collect();
    link
}

/// What is done in an hour, minute by minute.
fn hour(simulation: &mut Simulation) {
    for minute in 0..60_u64 {
        let mut plan = vec![Exchange::request(500 + minute, 5000)];
        match minute {
            // In the middle of this the link is gone.
            29 => plan.push(Exchange::download(5 << 20)),
            45 => plan.extend([Exchange::two_way(300_000, 300_000); 3]),
            _ => {}
        }
        simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| app.add(cx, plan));
        simulation.network.run_for(MINUTE);
    }
}

#[test]
fn a_day_of_key_updates_loses_nothing_and_keeps_nothing() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut scenario = Scenario::new(24).both_ways(link()).transport(|transport| {
        transport.keep_alive = Some(Duration::from_secs(20));
        transport.key_update_after = Some(KEY_LIFE);
    });
    scenario.close_when_done = false;
    scenario.concurrency = 8;
    let mut simulation = scenario.build();
    let (mut lives, mut updates, mut moved) = (Vec::new(), Vec::new(), 0);
    for _ in 0..HOURS {
        hour(&mut simulation);
        let completed = simulation.network.act(simulation.client, |app: &mut ExchangeClient, _| {
            assert_eq!((&app.failure, &app.closed, app.is_done()), (&None, &None, true));
            let completed = app.completed.iter().map(|done| done.exchange.upload).sum::<u64>();
            app.completed = Vec::new();
            completed
        });
        moved += completed.unwrap();
        let (client, server) = simulation.stats();
        updates.push((client.key_updates, server.key_updates));
        lives.push(live());
    }
    let server = simulation.server_app().unwrap();
    assert_eq!(
        (server.verified, &server.failures),
        (moved, &Vec::new()),
        "what was acknowledged has arrived"
    );
    println!("key updates: {updates:?}\nlive bytes: {lives:?}");
    assert!(updates.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{updates:?}");
    let (first, last) = (lives[0], lives[lives.len() - 1]);
    assert!(last <= first + SLACK, "{first} bytes were live after an hour, {last} after a day: {lives:?}");
    simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| app.close(cx, 0));
    simulation.network.run_for(MINUTE);
    assert_eq!(simulation.server_app().unwrap().closed.len(), 1);
}

/// Connections that come and go, each with a request: 2,000, or 10,000 with GODWIT_FULL.
#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let count = if std::env::var_os("GODWIT_FULL").is_some() { 10_000 } else { 2000 };
    let scenario = Scenario::new(7).both_ways(LinkConfig::delayed(Duration::from_millis(1)));
    let mut simulation = scenario.build();
    // That of the scenario itself is not counted.
    simulation.network.run_for(MINUTE);
    simulation.network.act(simulation.server, |app: &mut ExchangeServer, _| app.closed.clear());
    let (mut lives, plan) = (Vec::new(), vec![Exchange::request(500, 5000)]);
    for number in 0..count {
        let visitor =
            ExchangeClient::new(scenario.client_config(), scenario.server_address(), plan.clone(), 1);
        simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| {
            *app = visitor;
            app.on_start(cx);
        });
        simulation.network.run_for(Duration::from_secs(2));
        let served = simulation.network.act(simulation.server, |app: &mut ExchangeServer, _| {
            let served = app.closed.len();
            (app.accepted, app.confirmed, app.closed) = (Vec::new(), Vec::new(), Vec::new());
            served
        });
        assert_eq!(served, Some(1), "connection {number}");
        if number % (count / 10) == count / 10 - 1 {
            // What was said of address tokens and tickets is forgotten by then.
            simulation.network.run_for(MINUTE);
            lives.push(live());
        }
    }
    println!("live bytes: {lives:?}");
    let (first, last) = (lives[0], lives[lives.len() - 1]);
    assert!(last <= first + SLACK, "{first} bytes were live after a tenth, {last} at the end: {lives:?}");
}
