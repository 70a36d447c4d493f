#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::RttEstimator;

const MTU: u64 = 1200;

fn saved(rtt_ms: u64, window: u64) -> Option<SavedState> {
    Some(SavedState { rtt: Duration::from_millis(rtt_ms), window, rate: 0 })
}

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn rtt(ms: u64) -> RttEstimator {
    let mut rtt = RttEstimator::new(Duration::from_millis(333));
    rtt.on_sample(Time::ZERO, Duration::from_millis(ms), Duration::ZERO);
    rtt
}

/// Packets arrive that were sent a round trip ago: what comes of it, with a window and a flight in packets.
fn ack(
    resume: &mut CarefulResume,
    at: u64,
    packets: u64,
    rtt: &RttEstimator,
    (window, flight): (u64, u64),
) -> Step {
    let mut acked = Acked::new(ms(at), packets * MTU, rtt);
    acked.largest_sent_at = ms(at) - rtt.min();
    acked.bytes_in_flight = (flight + packets) * MTU;
    resume.on_ack(&acked, flight * MTU, window * MTU)
}

#[test]
fn what_is_of_no_use_is_forgotten() {
    assert!(CarefulResume::new(None, 12_000).is_none());
    assert!(CarefulResume::new(saved(0, 1 << 20), 12_000).is_none());
    assert!(CarefulResume::new(saved(50, 24_000), 12_000).is_none());
    // And no window is too large to be capped.
    assert_eq!(CarefulResume::new(saved(50, u64::MAX), 12_000).unwrap().jump, 8 << 20);
}

#[test]
fn a_jump_follows_the_initial_window_on_a_path_as_long_as_it_was() {
    for (long, jumps) in [(24, false), (25, true), (500, true), (501, false)] {
        let mut resume = CarefulResume::new(saved(50, 200 * MTU), 10 * MTU).unwrap();
        let rtt = rtt(long);
        assert_eq!(ack(&mut resume, long, 9, &rtt, (19, 1)), Step::None);
        let step = ack(&mut resume, long, 1, &rtt, (20, 10));
        assert_eq!(step, if jumps { Step::Window(100 * MTU) } else { Step::Normal }, "{long}");
    }
    // Without data there is no jump, but there may be one later; and none to less than there is.
    let mut resume = CarefulResume::new(saved(50, 200 * MTU), 10 * MTU).unwrap();
    let rtt = rtt(50);
    let idle = Acked { window_used: false, ..Acked::new(ms(50), 10 * MTU, &rtt) };
    assert_eq!(resume.on_ack(&idle, 0, 20 * MTU), Step::None);
    assert_eq!(ack(&mut resume, 60, 1, &rtt, (100, 30)), Step::Normal);
}

/// Just after the jump to 100 packets, 50 ms after the beginning, with ten in flight.
fn jumped(rtt: &RttEstimator) -> Box<CarefulResume> {
    let mut resume = CarefulResume::new(saved(50, 200 * MTU), 10 * MTU).unwrap();
    resume.on_sent(ms(50));
    assert_eq!(ack(&mut resume, 50, 10, rtt, (20, 10)), Step::Window(100 * MTU));
    resume
}

#[test]
fn what_arrives_is_validated_and_then_all_is_as_ever() {
    let rtt = rtt(50);
    let mut resume = jumped(&rtt);
    let Pacing { rate, .. } = resume.pacing(100 * MTU, rtt.smoothed(), 1200).unwrap();
    assert_eq!(rate, 100 * MTU * 20, "a window in a round trip");
    resume.on_sent(ms(90));
    assert_eq!(ack(&mut resume, 99, 10, &rtt, (100, 80)), Step::Hold);
    // The first that was sent on trust.
    assert_eq!(ack(&mut resume, 100, 1, &rtt, (100, 79)), Step::Window(80 * MTU));
    assert_eq!(resume.pacing(100 * MTU, rtt.smoothed(), 1200), None);
    resume.on_sent(ms(101));
    assert_eq!(ack(&mut resume, 139, 70, &rtt, (80, 79)), Step::None);
    assert_eq!(ack(&mut resume, 140, 1, &rtt, (80, 79)), Step::Normal);
}

#[test]
fn what_was_sent_on_trust_is_overdue_after_more_than_a_round_trip() {
    let rtt = rtt(50);
    for (after, step) in [(50, Step::Hold), (51, Step::Window(80 * MTU))] {
        let mut resume = jumped(&rtt);
        let early = Acked { largest_sent_at: ms(49), ..Acked::new(ms(50 + after), MTU, &rtt) };
        let early = Acked { bytes_in_flight: 80 * MTU, ..early };
        assert_eq!(resume.on_ack(&early, 79 * MTU, 100 * MTU), step, "{after} ms");
    }
}

#[test]
fn where_there_was_no_data_for_the_jump_the_window_is_as_before_or_what_passed() {
    let rtt = rtt(50);
    let mut resume = jumped(&rtt);
    assert_eq!(ack(&mut resume, 99, 8, &rtt, (100, 3)), Step::Hold);
    assert_eq!(ack(&mut resume, 101, 3, &rtt, (100, 0)), Step::Return(21 * MTU));
    // With nothing left to send there is no jump at all, and what passed is never less than what there was.
    let mut idle = CarefulResume::new(saved(50, 200 * MTU), 10 * MTU).unwrap();
    idle.on_sent(ms(50));
    idle.on_app_limited();
    assert_eq!(ack(&mut idle, 50, 10, &rtt, (20, 0)), Step::None);
    let mut resume = jumped(&rtt);
    assert_eq!(ack(&mut resume, 101, 1, &rtt, (100, 0)), Step::Return(20 * MTU));
}

#[test]
fn a_loss_means_half_of_what_has_passed_until_all_is_known() {
    let rtt = rtt(50);
    let mut resume = jumped(&rtt);
    resume.on_sent(ms(90));
    assert_eq!(ack(&mut resume, 99, 10, &rtt, (100, 80)), Step::Hold);
    // Ten in flight at the jump, and ten that have arrived since.
    assert_eq!(resume.on_congestion(), Some(10 * MTU));
    resume.on_sent(ms(101));
    assert_eq!(ack(&mut resume, 130, 30, &rtt, (10, 10)), Step::Hold);
    assert_eq!(ack(&mut resume, 140, 2, &rtt, (10, 10)), Step::Threshold(52 * MTU));
    // While validating, what was validated counts.
    let mut resume = jumped(&rtt);
    resume.on_sent(ms(90));
    ack(&mut resume, 100, 20, &rtt, (100, 80));
    assert_eq!(ack(&mut resume, 120, 30, &rtt, (100, 50)), Step::None);
    assert_eq!(resume.on_congestion(), Some(30 * MTU));
    // A second loss ends it: the controller reduces what is there.
    assert_eq!(resume.on_congestion(), None);
    // Before the jump a loss is the controller's business, and there will be none.
    assert_eq!(CarefulResume::new(saved(50, 200 * MTU), 10 * MTU).unwrap().on_congestion(), None);
}
