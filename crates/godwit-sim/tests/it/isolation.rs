//! One connection in trouble does not disturb another.

use crate::{at, delayed, ms};
use godwit_link::{Corrupt, Damage, DuplexConfig, Loss, Probability};
use godwit_sim::{Exchange, ExchangeClient, Scenario};
use std::time::Duration;

#[test]
fn a_connection_in_trouble_disturbs_nobody() {
    let scenario = Scenario::new(1).both_ways(delayed(10)).plan(vec![Exchange::two_way(500_000, 500_000)], 1);
    let alone = scenario.run();
    let mut troubled = scenario.clone();
    let mut link = delayed(30);
    link.loss = Loss::Independent(Probability::percent(40.0));
    link.corrupt = Some(Corrupt { probability: Probability::percent(30.0), damage: Damage::Bytes(20) });
    troubled.link = DuplexConfig::symmetric(link);
    let mut simulation = scenario.build();
    for number in 3..6 {
        troubled.add_client(&mut simulation.network, simulation.server, number).unwrap();
    }
    simulation.run_to_completion();
    let app = simulation.client_app().unwrap();
    assert_eq!((app.failure.as_ref(), app.verified), (None, 500_000));
    let together = simulation.network.now() - godwit_base::Time::ZERO;
    assert!(
        together.abs_diff(alone.duration) < ms(20),
        "{together:?} beside others, {:?} alone",
        alone.duration
    );
}

#[test]
fn many_clients_are_served() {
    let mut scenario =
        Scenario::new(2).both_ways(delayed(10)).plan(vec![Exchange::two_way(20_000, 20_000)], 1);
    let mut simulation = scenario.build();
    let mut clients = vec![simulation.client];
    for number in 3..53 {
        scenario.link = DuplexConfig::symmetric(delayed(u64::from(number)));
        clients.push(scenario.add_client(&mut simulation.network, simulation.server, number).unwrap().0);
    }
    simulation.network.run_until(at(Duration::from_secs(60)), |_| false);
    for client in clients {
        let app = simulation.network.app::<ExchangeClient>(client).unwrap();
        assert_eq!((app.failure.as_ref(), app.verified), (None, 20_000), "{client:?}");
    }
    let server = simulation.server_app().unwrap();
    assert_eq!((server.accepted.len(), server.closed.len(), server.verified), (51, 51, 51 * 20_000));
}
