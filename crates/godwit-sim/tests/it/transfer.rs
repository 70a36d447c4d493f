//! Moving bytes over good and bad links.

use crate::{complete, complete_all, delayed, ms, outage, seeds};
use godwit_link::{
    Corrupt, Damage, DuplexConfig, Duplicate, GilbertElliott, Jitter, LinkConfig, Loss, Probability,
    QueueLimit, Rate, Reorder,
};
use godwit_sim::{Exchange, Scenario};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Everything goes wrong at once.
fn hostile() -> LinkConfig {
    let mut link = LinkConfig::default();
    link.loss = Loss::Independent(Probability::percent(5.0));
    link.queue = QueueLimit::Packets(200);
    link.rate = Some(Rate::megabits(50));
    link.delay = ms(15);
    link.jitter = Jitter::InOrder(ms(2));
    link.reorder = Some(Reorder { probability: Probability::percent(5.0), extra: ms(8) });
    link.duplicate = Some(Duplicate { probability: Probability::percent(3.0), after: ms(1) });
    link.corrupt = Some(Corrupt { probability: Probability::percent(3.0), damage: Damage::Bits(8) });
    link
}

#[test]
fn two_ways_over_a_hostile_link() {
    complete_all(
        seeds(20, 1_000),
        |seed| {
            let plan = vec![Exchange::two_way(MIB, MIB)];
            Scenario::new(seed).both_ways(hostile()).plan(plan, 1)
        },
        |report| {
            assert!(report.up.lost > 0 && report.down.reordered > 0 && report.down.corrupted > 0);
            assert!(
                report.client_stats.stream_bytes_retransmitted > 0
                    && report.client_stats.packets_duplicate > 0
            );
        },
    );
}

#[test]
fn a_long_fat_link_is_filled() {
    // 100 Mbit/s, 50 ms: 625,000 bytes of bandwidth-delay product, five of them in the queue.
    let rate = Rate::megabits(100);
    let link = LinkConfig::limited(rate, ms(25), 5 * rate.bytes_in(ms(50)));
    let scenario = Scenario::new(1).both_ways(link).plan(vec![Exchange::download(100_000_000)], 1);
    let report = complete(&scenario);
    let wire = f64::from(100_000_000) / 8.0;
    assert!(report.goodput() > 0.85 * wire, "goodput {} bytes/s: {report:#?}", report.goodput());
    assert!(report.goodput() < wire);
}

#[test]
fn an_upload_fills_the_link_as_well() {
    let rate = Rate::megabits(20);
    let link = LinkConfig::limited(rate, ms(20), 2 * rate.bytes_in(ms(40)));
    let report = complete(&Scenario::new(2).both_ways(link).plan(vec![Exchange::upload(10_000_000)], 1));
    assert!(report.goodput() > 0.8 * 2_500_000.0, "goodput {} bytes/s: {report:#?}", report.goodput());
}

#[test]
fn asymmetric_rates_do_not_matter() {
    let down = LinkConfig::limited(Rate::megabits(50), ms(10), 200_000);
    let up = LinkConfig::limited(Rate::megabits(3), ms(10), 30_000);
    let mut link = DuplexConfig::default();
    link.up = up;
    link.down = down;
    let report = complete(&Scenario::new(3).link(link).plan(vec![Exchange::download(10_000_000)], 1));
    // Acknowledgements must fit into the thin direction.
    assert!(report.goodput() > 0.7 * 6_250_000.0, "goodput {} bytes/s: {report:#?}", report.goodput());
}

#[test]
fn bursts_of_loss_are_survived() {
    complete_all(
        seeds(5, 200),
        |seed| {
            let loss = Loss::Bursts(GilbertElliott::on_off(ms(800), ms(60)));
            let mut link = LinkConfig::limited(Rate::megabits(30), ms(20), 150_000);
            link.loss = loss;
            Scenario::new(seed).both_ways(link).plan(vec![Exchange::two_way(MIB, MIB)], 1)
        },
        |_| {},
    );
}

#[test]
fn unordered_jitter_is_survived() {
    complete_all(
        seeds(5, 200),
        |seed| {
            let mut link = LinkConfig::default();
            link.jitter = Jitter::Unordered(ms(30));
            link.delay = ms(20);
            Scenario::new(seed).both_ways(link).plan(vec![Exchange::two_way(MIB, MIB)], 1)
        },
        |_| {},
    );
}

#[test]
fn a_black_hole_of_two_seconds_is_crossed() {
    let outages = vec![outage(ms(1_000), ms(3_000))];
    let mut link = LinkConfig::limited(Rate::megabits(20), ms(20), 100_000);
    link.outages = outages;
    let report = complete(&Scenario::new(4).both_ways(link).plan(vec![Exchange::download(5 * MIB)], 1));
    assert!(report.down.outage_drops > 0);
    // 2.1 s of sending, 2 s of darkness, and the wait of the last probe timeout.
    assert!(report.duration < Duration::from_secs(8), "{:?}", report.duration);
}

/// By the back-off alone, probes of some of these transfers would leave too early and then too late: half a minute after
/// the last packet came both ends have given up.
#[test]
fn transfers_survive_outages_that_end_before_the_idle_timeout() {
    for (seed, from) in (0..4_u64).map(|step| (step, 1_000 + 337 * step)) {
        for seconds in [18_u64, 24] {
            let mut link = LinkConfig::limited(Rate::megabits(20), ms(30), 200_000);
            link.outages = vec![outage(ms(from), ms(from + 1000 * seconds))];
            let plan = vec![Exchange::two_way(8 * MIB, 8 * MIB)];
            let report = complete(&Scenario::new(seed).both_ways(link).plan(plan, 1));
            assert!(report.down.outage_drops > 0);
            assert!(report.duration < Duration::from_secs(45), "{:?} with {seconds} s", report.duration);
        }
    }
}

#[test]
fn the_mtu_search_finds_what_passes() {
    for (mtu, seed) in [(1_500, 1), (1_420, 2), (1_280, 3)] {
        let mut link = LinkConfig::limited(Rate::megabits(20), ms(10), 100_000);
        link.mtu = Some(mtu);
        let plan = vec![Exchange::two_way(2 * MIB, 2 * MIB)];
        let report = complete(&Scenario::new(seed).both_ways(link).plan(plan, 1));
        let mean = report.down.delivered_bytes / report.down.delivered_packets;
        assert!(report.down.mtu_drops < 40, "{} packets too large for {mtu}", report.down.mtu_drops);
        assert!(mean > 900, "mean packet {mean} bytes with an MTU of {mtu}");
    }
}

#[test]
fn datagrams_of_ipv6_hosts_arrive() {
    let mut scenario = Scenario::new(5).both_ways(delayed(5)).plan(vec![Exchange::two_way(MIB, MIB)], 1);
    scenario.ipv6 = true;
    complete(&scenario);
}

#[test]
fn keys_are_updated_on_the_way() {
    complete_all(
        seeds(5, 200),
        |seed| {
            Scenario::new(seed)
                .both_ways(hostile())
                .transport(|transport| transport.key_update_after = Some(50))
                .plan(vec![Exchange::two_way(3 * MIB, 3 * MIB)], 1)
        },
        |report| {
            // Some 3600 packets each way.
            assert!((5..=50).contains(&report.client_stats.key_updates), "{report:#?}");
            assert_eq!(report.client_stats.key_updates.abs_diff(report.server_stats.key_updates) / 2, 0);
        },
    );
}

/// Acknowledgements wait behind the data that goes the other way, and come in lumps.
#[test]
fn data_both_ways_does_not_make_the_path_seem_faster() {
    for (rate, delay) in [(20, 20), (10, 20), (20, 40), (50, 10), (100, 50), (4, 100)] {
        let bandwidth = Rate::megabits(rate);
        let link = LinkConfig::limited(bandwidth, ms(delay), 2 * bandwidth.bytes_in(ms(2 * delay)));
        let bytes = bandwidth.bytes_in(ms(5_000));
        let report =
            complete(&Scenario::new(3).both_ways(link).plan(vec![Exchange::two_way(bytes, bytes)], 1));
        for way in [&report.up, &report.down] {
            let dropped = way.queue_drops * 100 / way.sent_packets;
            assert!(dropped <= 3, "{rate} Mbit/s, {delay} ms: {dropped} % dropped by the queue");
        }
        assert!(report.duration < ms(9_000), "{rate} Mbit/s, {delay} ms: {:?}", report.duration);
    }
}
