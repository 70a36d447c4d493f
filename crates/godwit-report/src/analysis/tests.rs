#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use godwit_base::{Rng, SeededRng};

use super::*;
use crate::dimension::Arm;
use crate::line::Facts;

const LINE: &[u8] = br#"{"time":"2026-11-21T05:00:00Z","protocol":"h2","status":200,"request":2,"family":4,"response_bytes":500,"last_byte_ms":1,"delivered_ms":1,"outcome":"ok"}"#;

/// Requests of 2000 users whose latencies scatter around `ms(facts)` by half to double.
fn requests(number: u64, ms: impl Fn(&mut Facts, u64) -> f64) -> Summary {
    let mut rng = SeededRng::new(3);
    let mut summary = Summary::new(&[Metric::LastMile]);
    let mut facts = Facts::read(LINE).unwrap();
    for index in 0..number {
        facts.user = rng.below(2000);
        let typical = ms(&mut facts, index);
        let spread = 2_f64.powf(rng.below(2001) as f64 / 1000.0 - 1.0);
        facts.times = [Some((typical * spread * 1000.0) as u64); 5];
        summary.add(&facts);
    }
    summary
}

fn report(summary: &Summary) -> Report {
    Report::new(summary, None, &Settings::default()).unwrap()
}

fn comparison<'a>(report: &'a Report, title: &str) -> &'a Comparison {
    report.comparisons.iter().find(|comparison| comparison.title == title).unwrap()
}

fn alternate(facts: &mut Facts, index: u64) -> bool {
    let http3 = index % 2 == 1;
    facts.protocol = if http3 { Protocol::Http3 } else { Protocol::Http2 };
    http3
}

#[test]
fn a_clear_difference_is_resolved() {
    let report = report(&requests(40_000, |facts, index| if alternate(facts, index) { 70.0 } else { 100.0 }));
    let all = comparison(&report, "All requests as they came");
    for place in 0..5 {
        let difference = all.differences[place].unwrap();
        assert_eq!(difference.verdict, Verdict::Lower, "{place}");
        let (low, high) = difference.band.unwrap();
        assert!(low < -28.0 && high > -32.0 && low < difference.percent && difference.percent < high);
    }
    assert_eq!(report.verdict, Verdict::Lower);
    assert!(report.headline.contains("less"), "{}", report.headline);
    assert!(report.balance.iter().all(|balance| !balance.unequal));
}

#[test]
fn equal_groups_are_not_told_apart() {
    let report = report(&requests(40_000, |facts, index| {
        alternate(facts, index);
        100.0
    }));
    for comparison in &report.comparisons {
        let mut verdicts = comparison.differences.iter().flatten().map(|difference| difference.verdict);
        assert!(verdicts.clone().all(|verdict| verdict != Verdict::Lower && verdict != Verdict::Higher));
        assert_eq!(verdicts.next_back().unwrap(), Verdict::TooFew, "P99.99 of 20,000 is not to be believed");
    }
    assert!(report.headline.contains("not resolved"), "{}", report.headline);
}

/// HTTP/3 has fewer of the slow first requests, and is as fast as HTTP/2 in each class.
#[test]
fn like_for_like_undoes_a_difference_of_mixes() {
    let report = report(&requests(40_000, |facts, index| {
        let http3 = alternate(facts, index);
        let first = index / 2 % 10 < if http3 { 1 } else { 6 };
        facts.reuse = if first { Reuse::First } else { Reuse::Reused };
        if first { 400.0 } else { 50.0 }
    }));
    let raw = comparison(&report, "All requests as they came").differences[0].unwrap();
    assert!(raw.percent < -50.0, "{raw:?}");
    let fair = comparison(&report, "Like for like").differences[0].unwrap();
    assert_eq!(fair.verdict, Verdict::NotResolved, "{fair:?}");
    let place = report.balance.iter().find(|balance| balance.what == "place on the connection").unwrap();
    assert!(place.unequal);
    assert!(report.notes.iter().any(|note| note.gravity == Gravity::Warning && note.text.contains("60 %")));
}

#[test]
fn kinds_that_only_one_group_has_are_left_out_of_like_for_like() {
    let report = report(&requests(10_000, |facts, index| {
        let http3 = alternate(facts, index);
        let large = !http3 && index % 4 == 0;
        facts.size = if large { 5_000_000 } else { 500 };
        if large { 9000.0 } else { 50.0 }
    }));
    let fair = comparison(&report, "Like for like");
    assert_eq!((fair.control.samples, fair.http3.samples), (2500, 5000));
    assert!(fair.about.contains("50 %"), "{}", fair.about);
}

#[test]
fn a_roll_out_is_compared_by_offer() {
    let summary = requests(40_000, |facts, index| {
        facts.arm = if facts.user.is_multiple_of(2) { Arm::On } else { Arm::Off };
        let http3 = facts.arm == Arm::On && index % 4 != 0;
        facts.protocol = if http3 { Protocol::Http3 } else { Protocol::Http2 };
        if http3 { 50.0 } else { 100.0 }
    });
    let report = report(&summary);
    let arms = report.arms.as_ref().unwrap();
    assert!((arms.really_http3 - 0.75).abs() < 0.02 && arms.stray_http3 == 0.0);
    assert_eq!(arms.comparison.differences[0].unwrap().verdict, Verdict::Lower);
    assert!(report.headline.starts_with("Where HTTP/3 was offered"), "{}", report.headline);
    let wrong = |share| {
        let settings = Settings { expected_share: Some(share), ..Settings::default() };
        Report::new(&summary, None, &settings).unwrap().arms.unwrap().ratio.wrong
    };
    assert!(!wrong(0.5));
    assert!(wrong(0.2));
}

#[test]
fn few_users_give_no_band() {
    let mut summary = Summary::new(&[Metric::LastMile]);
    let mut facts = Facts::read(LINE).unwrap();
    for index in 0..1000 {
        alternate(&mut facts, index);
        facts.times[0] = Some(1000 + index);
        summary.add(&facts);
    }
    let report = report(&summary);
    let difference = report.comparisons[0].differences[0].unwrap();
    assert_eq!((difference.verdict, difference.band), (Verdict::NoBand, None));
    assert!(report.notes.iter().any(|note| note.text.contains("too few users")));
}

#[test]
fn logs_of_one_protocol_have_nothing_to_compare() {
    let report = report(&requests(100, |_, _| 5.0));
    assert!(report.comparisons.is_empty());
    assert!(report.headline.contains("nothing to compare"), "{}", report.headline);
    assert_eq!(report.protocols.len(), 1);
    assert!(Report::new(&Summary::new(&[Metric::FirstByte]), None, &Settings::default()).is_none());
}
