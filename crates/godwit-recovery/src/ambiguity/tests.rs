#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use crate::congestion::Algorithm;
use crate::{AckSummary, Outcome, PathRecovery, PathSettings, SentInfo, SpaceId, SpaceRecovery};
use godwit_base::{SeededRng, Time};
use std::ops::RangeInclusive;
use std::time::Duration;

fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Has no bytes.
const PING: char = '-';

/// A sender whose tokens stand for what a packet carries.
struct Sender {
    path: PathRecovery,
    space: SpaceRecovery<char>,
    outcomes: Vec<(Outcome, char)>,
}

impl Sender {
    fn new(ambiguous: bool) -> Self {
        let settings = PathSettings { congestion: Algorithm::NewReno.into(), ..PathSettings::default() };
        let path = PathRecovery::new(Time::ZERO, &settings);
        let mut space = SpaceRecovery::new(SpaceId::Data);
        if ambiguous {
            space.make_repeats_ambiguous(|one, other| one == other && *one != PING);
        }
        Sender { path, space, outcomes: Vec::new() }
    }

    fn send(&mut self, now: Time, carrying: &str) {
        for token in carrying.chars() {
            let number = self.space.next_packet_number(&mut SeededRng::new(1));
            self.space.on_packet_sent(&mut self.path, SentInfo::ordinary(number, now, 1200), &[token]);
        }
    }

    fn ack(&mut self, now: Time, ranges: &[RangeInclusive<u64>]) -> AckSummary {
        let (largest, outcomes) = (*ranges[0].end(), &mut self.outcomes);
        let mut note = |outcome, token| outcomes.push((outcome, token));
        let ranges = ranges.iter().cloned();
        self.space.on_ack_received(&mut self.path, now, largest, Duration::ZERO, ranges, &mut note).unwrap()
    }
}

#[test]
fn what_was_sent_twice_gives_no_sample_and_keeps_the_timer_backed_off() {
    for ambiguous in [false, true] {
        let mut sender = Sender::new(ambiguous);
        sender.send(ms(0), "a");
        sender.path.on_pto(ms(1000));
        sender.send(ms(1000), "a");
        // Either of them.
        for number in [0, 1] {
            let sample = sender.ack(ms(1000), &[number..=number]).rtt_sample;
            assert_eq!(sample.is_none(), ambiguous, "packet {number}");
            assert_eq!(sender.path.pto_count(), u32::from(ambiguous));
            assert_eq!(sender.path.rtt().first_sample_at().is_none(), ambiguous);
        }
        // What is sent once is as it was.
        sender.send(ms(1100), "b");
        assert_eq!(sender.ack(ms(1150), &[2..=2]).rtt_sample, Some(Duration::from_millis(50)));
        assert_eq!(sender.path.pto_count(), 0);
        assert_eq!(sender.path.bytes_in_flight(), 0);
    }
}

#[test]
fn what_has_no_bytes_gives_no_sample() {
    let mut sender = Sender::new(true);
    sender.send(ms(0), "-");
    assert_eq!(sender.ack(ms(50), &[0..=0]).rtt_sample, None);
}

#[test]
fn nobody_learns_that_a_loss_was_none() {
    for ambiguous in [false, true] {
        let mut sender = Sender::new(ambiguous);
        sender.send(ms(0), "abcd");
        sender.ack(ms(50), &[1..=3]);
        assert_eq!(sender.outcomes.last(), Some(&(Outcome::Lost, 'a')));
        let reduced = sender.path.window();
        sender.send(ms(50), "a");
        sender.ack(ms(60), &[0..=0]);
        // The contents have arrived, whichever packet it was.
        assert_eq!(sender.outcomes.last(), Some(&(Outcome::Spurious, 'a')));
        let (undone, noticed) = (sender.path.window() > reduced, sender.path.stats().spurious_losses);
        assert_eq!((undone, noticed), (!ambiguous, u64::from(!ambiguous)));
        assert_eq!(sender.path.packet_threshold() > 3, !ambiguous);
    }
}

#[test]
fn what_came_before_it_was_sent_again_is_not_ambiguous() {
    let mut sender = Sender::new(true);
    sender.send(ms(0), "abcd");
    sender.ack(ms(50), &[1..=3]);
    sender.ack(ms(60), &[0..=0]);
    assert_eq!((sender.path.stats().spurious_losses, sender.path.stats().congestion_undone), (1, 1));
}
