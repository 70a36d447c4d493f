//! Addresses that change under a connection, and packets that belong to nobody.

use crate::{at, delayed, judge_all, ms, seeds, verify};
use godwit_base::{Rng, SeededRng};
use godwit_link::{DuplexConfig, LinkConfig, Loss, Probability, Rate, Rebinding, Translation};
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, ExchangeClient, Network, Report, Scenario};
use std::time::Duration;

fn rebinding(at_ms: &[(u64, Translation)], link: LinkConfig) -> DuplexConfig {
    let rebindings =
        at_ms.iter().map(|(time, change)| Rebinding { at: at(ms(*time)), change: *change }).collect();
    let mut link = DuplexConfig::symmetric(link);
    link.nat.rebindings = rebindings;
    link
}

#[test]
fn rebinding_in_a_transfer_is_followed() {
    let changes = [(1_000, Translation::Port), (2_000, Translation::Address), (3_000, Translation::Port)];
    let link = LinkConfig::limited(Rate::megabits(20), ms(20), 100_000);
    for plan in [Exchange::download(12_000_000), Exchange::upload(12_000_000)] {
        let scenario = Scenario::new(1).link(rebinding(&changes, link.clone())).plan(vec![plan], 1);
        let mut simulation = scenario.build();
        let report = simulation.finish();
        assert_eq!(report.ending, Ending::Complete, "{plan:?}: {report:#?}");
        assert_eq!(report.uploaded + report.downloaded, 12_000_000);
        let moves = simulation.server_app().unwrap().path_changes;
        assert!(moves >= 3, "{moves} moves seen");
        assert!(report.duration < Duration::from_secs(12), "{:?}", report.duration);
    }
}

/// Who downloads may have nothing on its way when its address changes, and the server sends to the old one: without
/// asking why no more comes, one in five such transfers ended by the idle timeout.
#[test]
fn a_download_survives_a_rebinding_at_any_time() {
    let link = LinkConfig::limited(Rate::megabits(20), ms(20), 100_000);
    for step in 0..20 {
        let changes = [(500 + step * 37, Translation::Port)];
        let link = rebinding(&changes, link.clone());
        let report =
            Scenario::new(1).link(link).plan(vec![Exchange::download(3_000_000)], 1).build().finish();
        assert_eq!(report.ending, Ending::Complete, "{changes:?}: {report:#?}");
        assert!(report.duration < Duration::from_secs(3), "{changes:?}: {:?}", report.duration);
    }
}

/// Runs a scenario in which the client's address changes at these times after the handshake: before it is
/// confirmed nobody may move.
pub(crate) fn run_rebound(scenario: &Scenario, changes: &[(Duration, Translation)]) -> Report {
    let mut simulation = scenario.build();
    let client = simulation.client;
    let limit = at(scenario.limit);
    let confirmed = |network: &mut Network| {
        network
            .app::<ExchangeClient>(client)
            .is_none_or(|app| app.confirmed_at.is_some() || app.closed.is_some())
    };
    simulation.network.run_until(limit, confirmed);
    let start = simulation.network.now();
    for (after, change) in changes {
        simulation.network.run_until(start + *after, |_| false);
        simulation.network.fabric().rebind(simulation.wire, *change);
    }
    simulation.finish()
}

#[test]
fn rebinding_is_followed_whatever_is_lost() {
    let changes = [(300, Translation::Port), (600, Translation::Address), (900, Translation::Address)];
    let changes = changes.map(|(after, change)| (ms(after), change));
    judge_all(seeds(10, 500), |seed| {
        let loss = Loss::Independent(Probability::percent(3.0));
        let mut link = LinkConfig::limited(Rate::megabits(10), ms(15), 60_000);
        link.loss = loss;
        let plan = vec![Exchange::two_way(1 << 20, 1 << 20)];
        let mut scenario = Scenario::new(seed).both_ways(link).plan(plan, 1);
        // A client that only listens never learns that it is heard of no more: it must speak by itself.
        scenario.client.keep_alive = Some(Duration::from_secs(2));
        verify(&scenario, &run_rebound(&scenario, &changes))
    });
}

#[test]
fn a_translator_with_a_short_memory_is_no_trouble() {
    let mut link = DuplexConfig::symmetric(delayed(10));
    link.nat.idle_timeout = Some(Duration::from_secs(2));
    let mut scenario = Scenario::new(2).link(link).plan(vec![Exchange::request(10, 1_000)], 1);
    scenario.close_when_done = false;
    let mut simulation = scenario.build();
    for round in 1..=5 {
        simulation.run_to_completion();
        // Longer than the translator remembers, and than the server tries the address before.
        simulation.network.run_for(Duration::from_secs(10));
        simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| {
            assert_eq!(app.completed.len(), round);
            app.add(cx, [Exchange::request(10, 1_000)]);
        });
    }
    simulation.run_to_completion();
    assert_eq!(simulation.client_app().unwrap().completed.len(), 6);
    assert!(simulation.server_app().unwrap().path_changes >= 4);
}

#[test]
fn noise_from_strangers_changes_nothing() {
    let scenario = Scenario::new(3).both_ways(delayed(10)).plan(vec![Exchange::two_way(200_000, 200_000)], 1);
    let mut simulation = scenario.build();
    let mut rng = SeededRng::new(99);
    for round in 0..200_u64 {
        simulation.network.run_until(at(ms(round)), |_| false);
        let mut noise = vec![0; 20 + rng.below(1_400) as usize];
        rng.fill(&mut noise);
        let stranger = ([192, 0, 2, 1], 1_000 + round as u16).into();
        simulation.network.inject(simulation.server, stranger, &noise);
        simulation.network.inject(simulation.client, scenario.server_address(), &noise);
    }
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert_eq!((report.uploaded, report.downloaded), (200_000, 200_000));
}
