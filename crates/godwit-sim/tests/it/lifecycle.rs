//! How connections end, and how they are kept from ending.

use crate::{at, delayed, ms};
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, ExchangeClient, Scenario, Stop};
use godwit_transport::ConnectionError;
use std::time::Duration;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn closing_is_told_to_the_peer() {
    let mut simulation =
        Scenario::new(1).both_ways(delayed(10)).plan(vec![Exchange::request(10, 10)], 1).build();
    simulation.network.act(simulation.client, |app: &mut ExchangeClient, _| app.close_when_done = false);
    simulation.run_to_completion();
    let code = 0x1234;
    simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| app.close(cx, code));
    assert_eq!(simulation.network.run_for(secs(60)), Stop::Idle);
    assert_eq!(simulation.client_app().unwrap().closed, Some(ConnectionError::ClosedLocally));
    match &simulation.server_app().unwrap().closed[..] {
        [(_, _, ConnectionError::PeerApplication { code: seen, .. })] => assert_eq!(*seen, code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn silence_ends_both_ends_at_the_idle_timeout() {
    let mut scenario = Scenario::new(2).both_ways(delayed(10));
    scenario.close_when_done = false;
    scenario.client.max_idle_timeout = secs(20);
    scenario.server.max_idle_timeout = secs(5);
    let mut simulation = scenario.build();
    // The lower of the two counts.
    assert_eq!(simulation.network.run_until(at(secs(60)), |_| false), Stop::Idle);
    let now = simulation.network.now();
    assert!(now > at(secs(5)) && now < at(ms(5_500)), "{now:?}");
    assert_eq!(simulation.client_app().unwrap().closed, Some(ConnectionError::TimedOut));
    assert_eq!(simulation.server_app().unwrap().closed[0].2, ConnectionError::TimedOut);
}

#[test]
fn keep_alive_keeps_alive() {
    let mut scenario = Scenario::new(3).both_ways(delayed(10));
    scenario.close_when_done = false;
    scenario = scenario.transport(|transport| transport.max_idle_timeout = secs(5));
    scenario.client.keep_alive = Some(secs(2));
    let mut simulation = scenario.build();
    assert_eq!(simulation.network.run_for(secs(1)), Stop::Limit);
    let before = simulation.network.fabric().trace().packets();
    assert_eq!(simulation.network.run_for(secs(100)), Stop::Limit);
    assert_eq!(simulation.client_app().unwrap().closed, None);
    assert!(simulation.server_app().unwrap().closed.is_empty());
    // A packet and its acknowledgement every two seconds, and little else.
    let packets = simulation.network.fabric().trace().packets() - before;
    assert!((80..=140).contains(&packets), "{packets} packets");
}

#[test]
fn a_server_that_lost_its_state_resets_its_clients() {
    let scenario = Scenario::new(4).both_ways(delayed(10)).plan(vec![Exchange::download(1 << 20)], 1);
    let mut simulation = scenario.build();
    simulation.network.run_until(at(ms(45)), |_| false);
    let endpoint = scenario.server_endpoint(&mut simulation.network);
    simulation.network.replace_endpoint(simulation.server, endpoint);
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Broken(Some(ConnectionError::Reset)), "{report:#?}");
    assert!(report.duration < secs(2), "{:?}", report.duration);
}

#[test]
fn a_server_with_other_secrets_cannot_reset() {
    let scenario = Scenario::new(5)
        .both_ways(delayed(10))
        .transport(|transport| transport.max_idle_timeout = secs(5))
        .plan(vec![Exchange::download(1 << 20)], 1);
    let mut simulation = scenario.build();
    simulation.network.run_until(at(ms(45)), |_| false);
    let endpoint = Scenario::new(6).server_endpoint(&mut simulation.network);
    simulation.network.replace_endpoint(simulation.server, endpoint);
    assert_eq!(simulation.finish().ending, Ending::Broken(Some(ConnectionError::TimedOut)));
}

#[test]
fn a_lost_close_is_made_good_by_the_idle_timeout() {
    let scenario = Scenario::new(7).both_ways(delayed(10)).plan(vec![Exchange::request(10, 10)], 1);
    let mut simulation = scenario.build();
    simulation.network.act(simulation.client, |app: &mut ExchangeClient, _| app.close_when_done = false);
    simulation.run_to_completion();
    simulation.network.run_for(secs(1));
    simulation.network.fabric().set_filter(Some(Box::new(|_| false)));
    simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| app.close(cx, 0));
    assert_eq!(simulation.network.run_for(secs(100)), Stop::Idle);
    assert_eq!(simulation.server_app().unwrap().closed[0].2, ConnectionError::TimedOut);
}
