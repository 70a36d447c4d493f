#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::config::{Corrupt, Duplicate, QueueLimit, Reorder};
use crate::{Damage, Loss, Probability, Rate};
use proptest::prelude::*;
use std::time::Duration;

const V4: IpVersion = IpVersion::V4;

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1_000)
}

fn link(config: LinkConfig) -> Link {
    Link::new(config, SeededRng::new(42))
}

fn arrivals(link: &mut Link, now: Time, len: usize) -> Vec<Time> {
    link.send(now, len, V4).deliveries().map(|delivery| delivery.at).collect()
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn a_perfect_link_delivers_at_once() {
    let mut link = link(LinkConfig::default());
    for step in 0..1_000 {
        let expected =
            Delivery { at: us(step), in_order: true, marked: false, ecn: Ecn::NotEct, corruption: None };
        let outcome = link.send(us(step), 65_000, V4);
        assert_eq!(outcome, Outcome::Delivered { first: expected, copy: None });
    }
    assert_eq!(link.counters().delivered_bytes, 65_000_000);
    assert_eq!(link.counters().drops(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn goodput_is_the_rate() {
    // 1434 bytes of payload are 1500 on the wire, 12,000 bits: at 7 Mbit/s a period that is no whole
    // number of nanoseconds. A sender that keeps the queue filled gets exactly the rate all the same.
    let rate = Rate::megabits(7);
    let mut link = link(LinkConfig::limited(rate, Duration::from_millis(30), u64::MAX));
    let n = 70_000_u64;
    let last = (0..n).map(|_| arrivals(&mut link, Time::ZERO, 1434)[0]).last().unwrap();
    assert_eq!(last.as_nanos(), n * 12_000 * 1_000_000_000 / 7_000_000 + 30_000_000);
    assert_eq!(IpVersion::V6.wire_len(1434), 1520);
}

#[test]
fn queue_delay_is_queue_over_rate() {
    let (rate, limit) = (Rate::megabits(12), 60_000);
    let mut link = link(LinkConfig::limited(rate, Duration::ZERO, limit));
    // 40 packets of 1500 bytes on the wire fill the queue; the last one leaves when all are sent.
    let sent: Vec<_> = (0..100).map(|_| arrivals(&mut link, Time::ZERO, 1434)).collect();
    assert!(sent[..40].iter().all(|at| at.len() == 1) && sent[40..].iter().all(Vec::is_empty));
    assert_eq!(sent[39], [us(limit * 8 / 12)]);
    assert_eq!(link.counters().queue_drops, 60);
    assert_eq!((link.counters().max_queue_packets, link.counters().max_queue_bytes), (40, limit));
    // A packet takes 1 ms: at 1 ms there is room for one, and only one.
    assert_eq!(link.queue(us(1_000)), (39, 58_500));
    assert_eq!(arrivals(&mut link, us(1_000), 1434), [us(41_000)]);
    assert!(arrivals(&mut link, us(1_000), 1434).is_empty());
    assert_eq!(link.queue(us(41_000)), (0, 0));
}

#[test]
fn an_empty_queue_takes_any_packet() {
    for queue in [QueueLimit::Packets(0), QueueLimit::Bytes(10), QueueLimit::Packets(1)] {
        let rate = Some(Rate::megabits(12));
        let mut link = link(LinkConfig { rate, queue, ..LinkConfig::default() });
        assert_eq!(arrivals(&mut link, Time::ZERO, 1434), [us(1_000)]);
        assert!(arrivals(&mut link, us(999), 1434).is_empty());
        assert_eq!(arrivals(&mut link, us(1_000), 1434), [us(2_000)]);
    }
}

#[test]
fn packets_are_marked_above_the_threshold() {
    let mark_above = QueueLimit::Packets(10);
    let mut link = link(LinkConfig { rate: Some(Rate::megabits(1)), mark_above, ..LinkConfig::default() });
    let marks: Vec<_> =
        (0..15).flat_map(|_| link.send(Time::ZERO, 100, V4).deliveries()).map(|d| d.marked).collect();
    assert_eq!(marks.iter().position(|marked| *marked), Some(10));
    assert_eq!(link.counters().marked, 5);
}

#[test]
fn codepoints_are_handled_on_the_way_in() {
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    let rate = Some(Rate::megabits(1));
    for (ecn, expected) in [
        (EcnHandling::Pass, [Some(NotEct), Some(Ect0), Some(Ect1), Some(Ce)]),
        (EcnHandling::Bleach, [Some(NotEct); 4]),
        (EcnHandling::Drop, [Some(NotEct), None, None, None]),
        (EcnHandling::Remark, [Some(NotEct), Some(Ect1), Some(Ect1), Some(Ce)]),
        (EcnHandling::Congest, [Some(NotEct), Some(Ce), Some(Ce), Some(Ce)]),
    ] {
        let mut link = link(LinkConfig { ecn, ..LinkConfig::default() });
        for (sent, expected) in [NotEct, Ect0, Ect1, Ce].into_iter().zip(expected) {
            let arrived = link.send_marked(us(0), 100, V4, sent).deliveries().next().map(|first| first.ecn);
            assert_eq!(arrived, expected, "{ecn:?} {sent:?}");
        }
        let dropped = expected.iter().filter(|arrived| arrived.is_none()).count() as u64;
        assert_eq!((link.counters().ecn_drops, link.counters().drops()), (dropped, dropped));
        // The queue behind marks what still can be marked.
        let mut full = Link::new(
            LinkConfig { ecn, rate, mark_above: QueueLimit::Packets(0), ..LinkConfig::default() },
            SeededRng::new(1),
        );
        full.send(us(0), 100, V4);
        let arrived = full.send_marked(us(0), 100, V4, Ect0).deliveries().next().map(|second| second.ecn);
        assert_eq!(arrived, expected[1].map(|passed| if passed == NotEct { NotEct } else { Ce }));
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn loss_lies_within_the_binomial_bounds() {
    for (seed, p) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.3)] {
        let config = LinkConfig { loss: Loss::Independent(Probability::new(p)), ..LinkConfig::default() };
        let mut link = Link::new(config, SeededRng::new(seed));
        let n = 100_000_u32;
        for step in 0..n {
            link.send(us(u64::from(step)), 1200, V4);
        }
        let expected = f64::from(n) * p;
        let sigma = (expected * (1.0 - p)).sqrt();
        let lost = link.counters().lost as f64;
        assert!((lost - expected).abs() < 4.0 * sigma, "p {p}: lost {lost}");
        assert_eq!(link.counters().delivered_packets + link.counters().lost, u64::from(n));
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn ordered_jitter_keeps_order_and_unordered_does_not() {
    let most = Duration::from_micros(500);
    for (jitter, ordered) in [(Jitter::InOrder(most), true), (Jitter::Unordered(most), false)] {
        let mut link = link(LinkConfig { delay: Duration::from_millis(1), jitter, ..LinkConfig::default() });
        let times: Vec<_> = (0..5_000).map(|step| arrivals(&mut link, us(step * 10), 100)[0]).collect();
        assert_eq!(times.is_sorted(), ordered);
        for (step, at) in times.iter().enumerate() {
            let delay = *at - us(step as u64 * 10);
            assert!((1_000..=1_500).contains(&delay.as_micros()), "{delay:?}");
        }
        assert_eq!(link.counters().reordered == 0, ordered);
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn reordering_holds_back_the_stated_share_by_the_stated_time() {
    let extra = Duration::from_millis(3);
    let reorder = Some(Reorder { probability: Probability::new(0.1), extra });
    let mut link = link(LinkConfig { reorder, ..LinkConfig::default() });
    let n = 20_000_u64;
    let mut held = 0;
    for step in 0..n {
        let Outcome::Delivered { first, .. } = link.send(us(step * 100), 100, V4) else { panic!("dropped") };
        let late = first.at - us(step * 100);
        assert!(late.is_zero() && first.in_order || late == extra && !first.in_order);
        held += u64::from(!first.in_order);
    }
    assert_eq!(held, link.counters().reordered);
    assert!((held as f64 - 2_000.0).abs() < 4.0 * 1_800f64.sqrt(), "{held} held back");
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn duplicates_follow_their_originals() {
    let after = Duration::from_micros(70);
    let duplicate = Some(Duplicate { probability: Probability::new(0.25), after });
    let mut link = link(LinkConfig { duplicate, ..LinkConfig::default() });
    for step in 0..10_000 {
        match arrivals(&mut link, us(step), 10)[..] {
            [first] => assert_eq!(first, us(step)),
            [first, copy] => assert_eq!((first, copy), (us(step), us(step + 70))),
            _ => panic!("lost"),
        }
    }
    let copies = link.counters().duplicated as f64;
    assert!((copies - 2_500.0).abs() < 4.0 * 1_875f64.sqrt(), "{copies} copies");
    assert_eq!(link.counters().delivered_packets, 10_000 + link.counters().duplicated);
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn corruption_strikes_the_stated_share() {
    let corrupt = Some(Corrupt { probability: Probability::new(0.2), damage: Damage::Bits(4) });
    let mut link = link(LinkConfig { corrupt, ..LinkConfig::default() });
    let hits = (0..10_000)
        .flat_map(|step| link.send(us(step), 10, V4).deliveries())
        .filter(|delivery| delivery.corruption.is_some())
        .count();
    assert_eq!(hits as u64, link.counters().corrupted);
    assert!((hits as f64 - 2_000.0).abs() < 4.0 * 1_600f64.sqrt(), "{hits} damaged");
}

#[test]
fn the_mtu_counts_the_ip_packet() {
    let mut link = link(LinkConfig { mtu: Some(1500), ..LinkConfig::default() });
    assert_eq!(arrivals(&mut link, us(0), 1472).len(), 1);
    assert_eq!(link.send(us(0), 1473, V4), Outcome::Dropped(DropReason::TooLarge));
    assert_eq!(link.send(us(0), 1452, IpVersion::V6).deliveries().count(), 1);
    assert_eq!(link.send(us(0), 1453, IpVersion::V6), Outcome::Dropped(DropReason::TooLarge));
    assert_eq!(link.counters().mtu_drops, 2);
}

#[test]
fn outages_lose_what_leaves_in_them() {
    let outage = |from, until| Outage { from: us(from), until: us(until) };
    let outages = vec![outage(500, 600), outage(100, 200), outage(150, 250), outage(160, 170)];
    let mut link = link(LinkConfig { outages, delay: Duration::from_micros(50), ..LinkConfig::default() });
    let lost: Vec<_> = (0..700).filter(|step| arrivals(&mut link, us(*step), 10).is_empty()).collect();
    assert_eq!(lost, (100..250).chain(500..600).collect::<Vec<_>>());
    link.add_outage(outage(700, 701));
    assert_eq!(link.send(us(700), 10, V4), Outcome::Dropped(DropReason::Outage));
    assert_eq!(link.counters().outage_drops, 251);
}

#[test]
#[cfg_attr(miri, ignore = "needs many packets, of which each does the same")]
fn stages_draw_from_their_own_generators() {
    let lossy = LinkConfig { loss: Loss::Independent(Probability::new(0.1)), ..LinkConfig::default() };
    let more = LinkConfig {
        reorder: Some(Reorder { probability: Probability::new(0.3), extra: Duration::from_millis(1) }),
        duplicate: Some(Duplicate { probability: Probability::new(0.3), after: Duration::ZERO }),
        ..lossy.clone()
    };
    let (mut plain, mut rich) = (link(lossy), link(more));
    for step in 0..5_000 {
        let (a, b) = (arrivals(&mut plain, us(step), 10), arrivals(&mut rich, us(step), 10));
        assert_eq!(a.is_empty(), b.is_empty(), "step {step}");
    }
}

#[test]
fn both_directions_have_their_own_luck() {
    let lossy = LinkConfig { loss: Loss::Independent(Probability::new(0.5)), ..LinkConfig::default() };
    let mut duplex = Duplex::new(DuplexConfig::symmetric(lossy), 1);
    let up: Vec<_> = (0..64).map(|step| arrivals(&mut duplex.up, us(step), 1).len()).collect();
    let down: Vec<_> = (0..64).map(|step| arrivals(&mut duplex.down, us(step), 1).len()).collect();
    assert_ne!(up, down);
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let rate = prop::option::of((1_u64..10_000).prop_map(|kilobits| Rate::bits_per_second(kilobits * 1_000)));
    let queue = prop_oneof![
        Just(QueueLimit::Unlimited),
        (0_usize..50).prop_map(QueueLimit::Packets),
        (0_u64..50_000).prop_map(QueueLimit::Bytes)
    ];
    let p = || (0.0..0.5_f64).prop_map(Probability::new);
    let jitter = (0_u8..3, 0_u64..5_000).prop_map(|(kind, most)| match kind {
        0 => Jitter::None,
        1 => Jitter::InOrder(Duration::from_micros(most)),
        _ => Jitter::Unordered(Duration::from_micros(most)),
    });
    (rate, queue, p(), p(), p(), p(), jitter, 0_u64..2_000).prop_map(
        |(rate, queue, loss, reorder, duplicate, corrupt, jitter, micros)| LinkConfig {
            loss: Loss::Independent(loss),
            queue,
            rate,
            delay: Duration::from_micros(micros),
            jitter,
            reorder: Some(Reorder { probability: reorder, extra: Duration::from_micros(micros) }),
            duplicate: Some(Duplicate { probability: duplicate, after: Duration::from_micros(micros / 2) }),
            corrupt: Some(Corrupt { probability: corrupt, damage: Damage::Bytes(3) }),
            ..LinkConfig::default()
        },
    )
}

/// Datagrams of a case at most: fewer under Miri, which is slow.
const MAX_DATAGRAMS: usize = if cfg!(miri) { 10 } else { 300 };

proptest! {
    #[test]
    fn whatever_the_link(config in any_config(), seed: u64, gaps in prop::collection::vec(0_u64..3_000, 1..MAX_DATAGRAMS)) {
        let mut a = Link::new(config.clone(), SeededRng::new(seed));
        let mut b = Link::new(config.clone(), SeededRng::new(seed));
        let (mut now, mut last_in_order) = (Time::ZERO, Time::ZERO);
        for gap in gaps {
            now += Duration::from_micros(gap);
            let outcome = a.send(now, gap as usize, V4);
            prop_assert_eq!(outcome, b.send(now, gap as usize, V4));
            for delivery in outcome.deliveries() {
                prop_assert!(delivery.at >= now + config.delay);
                if delivery.in_order {
                    prop_assert!(delivery.at >= last_in_order);
                    last_in_order = delivery.at;
                }
            }
        }
        let counters = a.counters();
        prop_assert_eq!(counters, b.counters());
        prop_assert_eq!(counters.delivered_packets + counters.drops(), counters.sent_packets + counters.duplicated);
    }
}
