//! Many streams, their limits, and streams that end in one direction first.

use crate::{complete, complete_all, delayed, ms, seeds};
use godwit_link::{LinkConfig, Loss, Probability, Rate};
use godwit_sim::{Exchange, Scenario};

#[test]
fn a_thousand_streams_pass_through_a_limit_of_ten() {
    let mut scenario =
        Scenario::new(1).both_ways(delayed(10)).plan(vec![Exchange::request(100, 1_000); 1_000], 50);
    scenario.server.max_bidi_streams = 10;
    let report = complete(&scenario);
    // Ten at a time, each of one round trip; a limit raised late would cost twice that and more.
    assert!(report.duration < ms(2 * 20 * 100 + 200), "{:?}", report.duration);
}

#[test]
fn a_thousand_streams_survive_loss() {
    complete_all(
        seeds(3, 100),
        |seed| {
            let loss = Loss::Independent(Probability::percent(3.0));
            let mut link = LinkConfig::limited(Rate::megabits(20), ms(10), 100_000);
            link.loss = loss;
            let mut scenario =
                Scenario::new(seed).both_ways(link).plan(vec![Exchange::request(300, 2_000); 1_000], 40);
            scenario.server.max_bidi_streams = 16;
            scenario
        },
        |_| {},
    );
}

#[test]
fn unidirectional_streams_have_their_own_limit() {
    let mut scenario = Scenario::new(2).both_ways(delayed(10)).plan(vec![Exchange::one_way(5_000); 300], 30);
    scenario.server.max_uni_streams = 7;
    complete(&scenario);
}

#[test]
fn half_closed_streams_still_carry_the_answer() {
    let plan =
        vec![Exchange::request(1_000, 1_000_000), Exchange::request(1_000_000, 0), Exchange::request(0, 0)];
    complete(&Scenario::new(3).both_ways(delayed(10)).plan(plan, 1));
}

#[test]
fn parallel_streams_share_small_windows() {
    let scenario = Scenario::new(4)
        .both_ways(LinkConfig::limited(Rate::megabits(50), ms(10), 300_000))
        .transport(|transport| {
            transport.initial_stream_window = 8 << 10;
            transport.max_stream_window = 32 << 10;
            transport.initial_connection_window = 20 << 10;
            transport.max_connection_window = 64 << 10;
        })
        .plan(vec![Exchange::two_way(300_000, 300_000); 8], 8);
    complete(&scenario);
}

#[test]
fn empty_streams_end() {
    complete(&Scenario::new(5).both_ways(delayed(1)).plan(vec![Exchange::two_way(0, 0); 20], 20));
}
