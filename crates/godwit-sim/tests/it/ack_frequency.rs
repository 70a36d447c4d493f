//! Fewer acknowledgements where the window is large (draft-ietf-quic-ack-frequency).

use crate::{complete, ms, seeds};
use godwit_link::{LinkConfig, Loss, Probability, QueueLimit, Rate};
use godwit_sim::{Exchange, Report, Scenario};
use godwit_transport::CongestionAlgorithm;
use std::time::Duration;

fn transfer(seed: u64, enabled: bool, link: &LinkConfig, exchange: Exchange) -> Report {
    let scenario = Scenario::new(seed).both_ways(link.clone()).plan(vec![exchange], 1);
    // One whose slow start lasts as long as the window grows; and no window of the receiver that grows besides.
    let scenario = scenario.transport(|transport| transport.congestion = CongestionAlgorithm::Cubic.into());
    complete(&scenario.transport(|transport| {
        transport.ack_frequency = enabled;
        (transport.initial_stream_window, transport.initial_connection_window) = (16 << 20, 32 << 20);
    }))
}

#[test]
fn a_bulk_transfer_takes_as_long_with_a_fraction_of_the_acknowledgements() {
    let rate = Rate::megabits(100);
    let link = LinkConfig::limited(rate, ms(25), rate.bytes_in(ms(50)));
    let exchange = Exchange::download(20_000_000);
    let (usual, few) = (transfer(1, false, &link, exchange), transfer(1, true, &link, exchange));
    let acks = [&usual, &few].map(|report| report.up.delivered_packets);
    assert!(acks[1] * 3 < acks[0], "acknowledgements: {acks:?}");
    assert!(few.duration < usual.duration * 102 / 100, "{:?} and {:?}", usual.duration, few.duration);
}

/// Where the window is less than the path could hold, packets that wait for an acknowledgement cost throughput.
#[test]
fn windows_below_the_capacity_of_the_path_suffer_little() {
    let link = LinkConfig::limited(Rate::megabits(100), ms(25), 150_000);
    let exchange = Exchange::download(20_000_000);
    let (usual, few) = (transfer(1, false, &link, exchange), transfer(1, true, &link, exchange));
    let acks = [&usual, &few].map(|report| report.up.delivered_packets);
    assert!(acks[1] * 4 < acks[0], "acknowledgements: {acks:?}");
    assert!(few.duration < usual.duration * 103 / 100, "{:?} and {:?}", usual.duration, few.duration);
}

#[test]
fn losses_are_found_as_early_with_fewer_acknowledgements() {
    let loss = Loss::Independent(Probability::percent(0.1));
    let mut link = LinkConfig::limited(Rate::megabits(100), ms(20), 500_000);
    link.loss = loss;
    let (mut sums, mut acks, mut ptos) = ([Duration::ZERO; 2], [0; 2], [0; 2]);
    for seed in seeds(6, 100) {
        for (at, enabled) in [false, true].into_iter().enumerate() {
            let report = transfer(seed, enabled, &link, Exchange::download(10_000_000));
            sums[at] += report.duration;
            acks[at] += report.up.delivered_packets;
            ptos[at] += report.server_stats.ptos;
        }
    }
    assert!(acks[1] * 4 < acks[0] * 3, "acknowledgements: {acks:?}");
    assert!(sums[1] < sums[0] * 102 / 100, "{sums:?}");
    assert!(ptos[1] <= ptos[0] + 2, "{ptos:?}");
}

/// "Congestion experienced" is told at once, however few acknowledgements there are.
#[test]
fn marks_are_heeded_in_time_with_fewer_acknowledgements() {
    let mark_above = QueueLimit::Bytes(150_000);
    let mut link = LinkConfig::limited(Rate::megabits(100), ms(25), 700_000);
    link.mark_above = mark_above;
    let exchange = Exchange::download(40_000_000);
    let (usual, few) = (transfer(4, false, &link, exchange), transfer(4, true, &link, exchange));
    let acks = [&usual, &few].map(|report| report.up.delivered_packets);
    assert!(acks[1] * 3 < acks[0], "acknowledgements: {acks:?}");
    assert!(few.duration < usual.duration * 105 / 100, "{:?} and {:?}", usual.duration, few.duration);
    assert!(few.server_stats.ecn_sent.ce > 0);
    let marks = [&usual, &few].map(|report| report.server_stats.ecn_sent.ce);
    assert!(marks[1] <= marks[0] * 2, "{marks:?}");
    assert_eq!([usual.down.queue_drops, few.down.queue_drops], [0, 0]);
}

/// Flows that end while the window is being found see no difference: no request for fewer acknowledgements is sent.
#[test]
fn short_flows_are_acknowledged_as_usual() {
    let link = LinkConfig::limited(Rate::megabits(200), ms(25), 2_000_000);
    let exchange = Exchange::download(400_000);
    let (usual, few) = (transfer(3, false, &link, exchange), transfer(3, true, &link, exchange));
    // A probe that is acknowledged at once may tell the rate of the path a round trip earlier or later.
    assert!(usual.duration.abs_diff(few.duration) <= ms(50), "{:?} and {:?}", usual.duration, few.duration);
    let acks = [&usual, &few].map(|report| report.up.delivered_packets);
    assert!(acks[1] * 10 >= acks[0] * 9, "acknowledgements: {acks:?}");
}

#[test]
fn small_windows_are_acknowledged_as_usual() {
    let link = LinkConfig::limited(Rate::megabits(2), ms(5), 10_000);
    let exchange = Exchange::download(300_000);
    let (usual, few) = (transfer(2, false, &link, exchange), transfer(2, true, &link, exchange));
    assert!(few.up.delivered_packets * 10 > usual.up.delivered_packets * 9, "{few:#?}");
}
