//! The stages that not every link has, as who sends over a whole link sees them.

#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::config::Aqm;
use crate::{Aggregation, CoDel, DualPi2, Opportunities, Policer, Rate, Red};
use std::sync::Arc;

/// A UDP payload that is 1500 bytes on the wire: 1 ms at 12 Mbit/s.
const FULL: usize = 1434;

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1_000)
}

/// Sends a full packet every `gap` microseconds, and returns what becomes of each.
fn send(config: LinkConfig, gap: u64, packets: u64, ecn: Ecn) -> (Link, Vec<(Time, Outcome)>) {
    let mut link = Link::new(config, SeededRng::new(7));
    let outcomes = (0..packets).map(|packet| us(packet * gap));
    let outcomes = outcomes.map(|now| (now, link.send_marked(now, FULL, IpVersion::V4, ecn))).collect();
    (link, outcomes)
}

fn delivered(outcomes: &[(Time, Outcome)]) -> Vec<(Time, Delivery)> {
    let deliveries = outcomes.iter().flat_map(|(now, outcome)| outcome.deliveries().map(|one| (*now, one)));
    deliveries.collect()
}

fn at_12_megabits() -> LinkConfig {
    LinkConfig::limited(Rate::megabits(12), Duration::ZERO, u64::MAX)
}

#[test]
fn a_policer_drops_and_delays_nothing() {
    let policer = Policer { rate: Rate::megabits(12), burst: 15_000 };
    let config = LinkConfig { policer: Some(policer), ..LinkConfig::default() };
    // Twice its rate for a second: the burst and what comes at its rate passes.
    let (link, outcomes) = send(config, 500, 2_000, Ecn::NotEct);
    let passed = delivered(&outcomes);
    assert!((1_009..=1_010).contains(&passed.len()), "{}", passed.len());
    assert!(passed.iter().all(|(now, delivery)| delivery.at == *now && delivery.in_order));
    assert_eq!(link.counters().policer_drops, 2_000 - passed.len() as u64);
    assert_eq!(link.counters().drops(), link.counters().policer_drops);
}

#[test]
fn codel_keeps_a_queue_short_that_would_grow_without_end() {
    // A fifth more than the link carries, for 20 seconds.
    let run = |aqm, ecn| send(LinkConfig { aqm, ..at_12_megabits() }, 833, 24_000, ecn);
    let (mut plain, _) = run(Aqm::None, Ecn::Ect0);
    assert!(plain.queue_delay(us(833 * 24_000)) > Duration::from_secs(3));
    let (mut short, outcomes) = run(Aqm::CoDel(CoDel::default()), Ecn::Ect0);
    assert!(short.queue_delay(us(833 * 24_000)) < Duration::from_millis(200));
    let counters = short.counters();
    assert!(counters.aqm_drops > 1_000 && counters.drops() == counters.aqm_drops && counters.marked == 0);
    assert!(outcomes[..100].iter().all(|(_, outcome)| matches!(outcome, Outcome::Delivered { .. })));
    // With marks, nothing is dropped that can be marked, and all else as before.
    let marking = Aqm::CoDel(CoDel { ecn: true, ..CoDel::default() });
    let (marked, outcomes) = run(marking, Ecn::Ect0);
    let with_ce = delivered(&outcomes).iter().filter(|(_, delivery)| delivery.ecn == Ecn::Ce).count() as u64;
    assert_eq!((marked.counters().drops(), with_ce), (0, marked.counters().marked));
    assert!(with_ce > 1_000);
    assert_eq!(run(marking, Ecn::NotEct).0.counters(), short.counters());
}

#[test]
fn red_strikes_some_where_the_queue_is_long_and_none_where_it_is_short() {
    let red = |ecn| Aqm::Red(Red { ecn, ..Red::for_queue(300_000) });
    let run = |gap, aqm, ecn| send(LinkConfig { aqm, ..at_12_megabits() }, gap, 4_000, ecn).0;
    assert_eq!(run(1_000, red(false), Ecn::Ect0).counters().drops(), 0);
    let dropping = run(900, red(false), Ecn::Ect0);
    assert!(dropping.counters().aqm_drops > 50 && dropping.counters().queue_drops == 0);
    assert!(dropping.counters().max_queue_bytes < 250_000, "{}", dropping.counters().max_queue_bytes);
    let marking = run(900, red(true), Ecn::Ect0);
    assert!(marking.counters().marked > 50);
    assert!(marking.counters().max_queue_bytes > dropping.counters().max_queue_bytes);
    assert_eq!(run(900, red(true), Ecn::NotEct).counters().aqm_drops, dropping.counters().aqm_drops);
}

#[test]
fn rates_and_delays_change_when_they_should() {
    let ms = Duration::from_millis;
    let mut config = LinkConfig { delay: ms(10), ..at_12_megabits() };
    config.rate_steps = vec![(us(100_000), Rate::bits_per_second(1_200_000))];
    config.delay_steps = vec![(us(300_000), ms(10)), (us(200_000), ms(40))];
    let (_, outcomes) = send(config, 1_000, 125, Ecn::NotEct);
    let arrivals: Vec<_> = delivered(&outcomes).iter().map(|(_, delivery)| delivery.at).collect();
    // A millisecond each at first, ten times that from 100 ms on; then 10, 40 and again 10 ms of delay.
    let departs = |packet: u64| if packet < 100 { (packet + 1) * 1_000 } else { (packet - 89) * 10_000 };
    for (packet, arrival) in (0..).zip(arrivals) {
        let departs = departs(packet);
        let delay = if (200_000..300_000).contains(&departs) { 40_000 } else { 10_000 };
        assert_eq!(arrival, us(departs + delay), "{packet}");
    }
    // What left before the way became shorter is overtaken, and whatever overtakes is not said to be in order.
    let in_order: Vec<_> = delivered(&outcomes).iter().map(|(_, delivery)| delivery.in_order).collect();
    let overtaking: Vec<_> =
        (0..125).filter(|packet| !in_order[*packet]).map(|at| departs(at as u64)).collect();
    assert_eq!(overtaking, [300_000, 310_000]);
}

#[test]
fn a_trace_delivers_at_its_opportunities_and_a_radio_in_bursts() {
    let trace = Arc::new(Opportunities::new(vec![2, 4, 4, 10]).unwrap());
    let config = LinkConfig { trace: Some(trace), delay: Duration::from_millis(1), ..LinkConfig::default() };
    // A packet takes all but 38 bytes of an opportunity; the next one goes with what follows that.
    let (_, outcomes) = send(config, 0, 6, Ecn::NotEct);
    let arrivals = delivered(&outcomes).into_iter().map(|(_, one)| one.at.as_micros());
    assert_eq!(arrivals.collect::<Vec<_>>(), [3_000, 5_000, 5_000, 11_000, 13_000, 15_000]);

    let aggregation = Aggregation { least: Duration::from_millis(2), most: Duration::from_millis(6) };
    let config = LinkConfig { aggregation: Some(aggregation), ..at_12_megabits() };
    let (_, outcomes) = send(config, 1_000, 1_000, Ecn::NotEct);
    let mut bursts: Vec<_> = delivered(&outcomes).iter().map(|(_, one)| one.at).collect();
    assert!(
        delivered(&outcomes)
            .iter()
            .all(|(now, one)| one.in_order && one.at - *now <= Duration::from_millis(7))
    );
    bursts.dedup();
    assert!((200..=400).contains(&bursts.len()), "{}", bursts.len());
    assert!(bursts.windows(2).all(|two| two[1] - two[0] >= aggregation.least));
}

#[test]
fn two_coupled_queues_carry_what_one_does_and_only_one_is_long() {
    // Nine tenths of the link for classic packets and a fifth of it for the others, for 20 seconds: 1.1 times what it
    // carries. Neither listens.
    let config = LinkConfig { aqm: Aqm::DualPi2(DualPi2::default()), ..at_12_megabits() };
    let mut link = Link::new(config, SeededRng::new(7));
    let (mut last, mut delivered, mut low) = (Time::ZERO, [0_u64; 2], Duration::ZERO);
    for tenth in 0..200_000_u64 {
        let now = us(tenth * 100);
        for (due, which, ecn) in [(tenth * 9 % 100 < 9, 0, Ecn::NotEct), (tenth % 50 == 0, 1, Ecn::Ect1)] {
            for one in due
                .then(|| link.send_marked(now, FULL, IpVersion::V4, ecn))
                .into_iter()
                .flat_map(Outcome::deliveries)
            {
                delivered[which] += 1;
                last = last.max(one.at);
                low = low.max(if which == 1 { one.at - now } else { Duration::ZERO });
                assert!(one.ecn != Ecn::Ce || which == 1);
            }
        }
    }
    // A millisecond each: the link was busy all the time, with no more than it carries.
    let (all, took) = (delivered[0] + delivered[1], last.as_micros() / 1_000);
    assert!(all <= took && all * 100 > took * 97, "{all} in {took} ms");
    assert!(delivered[1] == 4_000, "{delivered:?}");
    assert!(low < Duration::from_millis(4), "{low:?}");
    let (short, long) = link.counters().mean_delays_by_queue();
    assert!(short < Duration::from_millis(2) && long > Duration::from_millis(5), "{short:?} {long:?}");
    assert!(link.counters().aqm_drops > 1_500 && link.counters().queue_drops == 0);
}

#[test]
fn a_queue_with_both_kinds_keeps_to_its_limit_and_the_order_of_each() {
    let aqm = Aqm::DualPi2(DualPi2::default());
    let config = LinkConfig { aqm, queue: crate::QueueLimit::Packets(50), ..at_12_megabits() };
    let mut link = Link::new(config, SeededRng::new(7));
    let mut last = [Time::ZERO; 2];
    for packet in 0..2_000_u64 {
        let which = usize::from(packet % 3 == 0);
        let ecn = [Ecn::Ect0, Ecn::Ect1][which];
        for one in link.send_marked(us(packet * 400), FULL, IpVersion::V4, ecn).deliveries() {
            assert!(one.at >= last[which], "{packet}");
            last[which] = one.at;
        }
        assert!(link.queue(us(packet * 400)).0 <= 50);
    }
    assert!(link.counters().queue_drops > 500 && link.counters().max_queue_packets == 50);
}
