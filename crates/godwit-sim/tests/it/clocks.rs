//! The delay of one direction (draft-huitema-quic-ts).

use crate::{complete, ms};
use godwit_link::{LinkConfig, Rate};
use godwit_sim::{Exchange, Report, Scenario};
use godwit_transport::CongestionAlgorithm;
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(20);

fn download(timestamps: bool) -> Report {
    let link = LinkConfig::limited(Rate::megabits(20), DELAY, 1_000_000);
    let scenario = Scenario::new(1).both_ways(link).plan(vec![Exchange::download(8_000_000)], 1);
    complete(&scenario.transport(|transport| {
        transport.congestion = CongestionAlgorithm::Cubic.into();
        transport.timestamps = timestamps;
    }))
}

#[test]
fn a_queue_delays_the_direction_in_which_it_stands() {
    let report = download(true);
    let (server, client) = (report.server_stats, report.client_stats);
    assert!(server.rtt > ms(100), "the queue is long: {server:?}");
    let queue = server.one_way_delay.unwrap().abs_diff(server.rtt - DELAY);
    assert!(queue < ms(10), "all of it stands on the way to the client: {server:?}");
    assert!(client.one_way_delay.unwrap().abs_diff(DELAY) < ms(5), "{client:?}");
}

#[test]
fn without_timestamps_nothing_is_said_of_one_direction() {
    let report = download(false);
    assert_eq!([report.server_stats, report.client_stats].map(|it| it.one_way_delay), [None; 2]);
}
