//! The rules of draft-ietf-ccwg-bbr, each on a path that is made up of acknowledgements.

#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::bound::Bound;
use super::*;
use crate::RttEstimator;

const MTU: u16 = 1200;
const MS: Duration = Duration::from_millis(1);
/// 40 Mbit/s.
const RATE: u64 = 5_000_000;

/// A path whose acknowledgements are made up, some in every round.
struct Rig {
    bbr: Bbr,
    now: Time,
    rtt: RttEstimator,
    delivered: u64,
    round_began_at: u64,
}

impl Rig {
    fn new() -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let bbr = Bbr::new(&ControllerStart::new(now, MTU, 50 * MS));
        Rig { bbr, now, rtt: RttEstimator::new(50 * MS), delivered: 0, round_began_at: 0 }
    }

    /// A round trip of `rtt` in which packets come at `rate` bytes per second, `lost` packets besides.
    fn round(&mut self, rate: u64, rtt: Duration, lost: u32) {
        self.lossy_round(rate, rtt, lost, false);
    }

    fn lossy_round(&mut self, rate: u64, rtt: Duration, lost: u32, app_limited: bool) {
        const ACKS: u32 = 8;
        let (began, step) = (self.round_began_at, rtt / ACKS);
        let in_flight = in_time(rate, rtt).max(1);
        self.round_began_at = self.delivered;
        for _ in 0..lost {
            let lost = Lost { in_flight: Some(in_flight), ..Lost::new(self.now, MTU.into(), self.now) };
            self.bbr.on_lost(&lost);
        }
        for ack in 0..ACKS {
            self.now += step;
            let bytes = in_time(rate, step);
            self.delivered += bytes;
            // The first acknowledgement of a round is for what was sent in this one, the others are not.
            let prior_delivered = if ack == 0 { self.round_began_at } else { began.min(self.round_began_at) };
            self.rtt.on_sample(self.now, rtt, Duration::ZERO);
            let sample = RateSample {
                delivered: in_flight,
                interval: rtt,
                rate,
                app_limited,
                prior_delivered,
                total_delivered: self.delivered,
                in_flight,
                lost: u64::from(lost) * u64::from(MTU),
                rtt,
            };
            let mut acked = Acked::new(self.now, bytes, &self.rtt);
            (acked.rtt_sample, acked.delivery, acked.bytes_in_flight) = (Some(rtt), Some(sample), in_flight);
            self.bbr.on_ack(&acked);
        }
    }

    /// Rounds at `RATE` and 50 ms until the controller is in this state.
    fn until(&mut self, state: impl Fn(State) -> bool) {
        for _ in 0..200 {
            if state(self.bbr.state) {
                return;
            }
            self.round(RATE, 50 * MS, 0);
        }
        panic!("still in {:?}", self.bbr.state);
    }

    fn cruising() -> Self {
        let mut rig = Rig::new();
        rig.until(|state| state == State::Cruise);
        rig
    }

    fn gain(&self) -> u64 {
        self.bbr.pacing.rate * 100 / RATE
    }
}

#[test]
fn the_search_ends_after_three_rounds_without_growth_by_a_quarter() {
    let mut rig = Rig::new();
    for growing in [1, 2, 4, 8, 10] {
        rig.round(growing * RATE / 10, 50 * MS, 0);
        assert_eq!(rig.bbr.state, State::Startup, "at {growing} tenths");
    }
    let rounds = (0..20).take_while(|_| {
        rig.round(RATE * 11 / 10, 50 * MS, 0);
        rig.bbr.state == State::Startup
    });
    assert_eq!(rounds.count(), 2, "the round that ends it is the third");
}

#[test]
fn slow_paths_are_sent_a_packet_or_two_at_once_and_others_a_millisecond() {
    assert_eq!([VERY_SLOW - 1, VERY_SLOW, SLOW - 1].map(|rate| burst(rate, MTU)), [1200, 2400, 2400]);
    assert_eq!([SLOW, 4 * SLOW].map(|rate| burst(rate, MTU)), [6250, 25_000]);
    assert_eq!(burst(SLOW, 9000), 18_000, "or two packets, where they take longer");
    assert_eq!((time_of(5000, 1_000_000), in_time(1_000_000, 5 * MS)), (5 * MS, 5000));
}

#[test]
fn it_tells_where_it_is_and_what_it_has_learnt() {
    let mut rig = Rig::new();
    assert!(rig.bbr.is_slow_start() && !rig.bbr.is_probing());
    for (wanted, probing) in [(State::Cruise, false), (State::Refill, true), (State::Up, true)] {
        rig.until(|state| state == wanted);
        assert!(!rig.bbr.is_slow_start());
        assert_eq!(rig.bbr.is_probing(), probing, "{wanted:?}");
    }
    let saved = rig.bbr.export().unwrap();
    assert_eq!((saved.rtt, saved.window), (50 * MS, rig.bbr.window()));
    assert!(saved.rate.abs_diff(RATE) < RATE / 50, "{}", saved.rate);
}

#[test]
fn a_mark_ends_the_search_and_a_probe() {
    let mut rig = Rig::new();
    rig.round(RATE, 50 * MS, 0);
    rig.bbr.on_ce_congestion(rig.now);
    assert_eq!(rig.bbr.state, State::Drain);
    rig.until(|state| state == State::Up);
    rig.bbr.on_ce_congestion(rig.now);
    assert_eq!(rig.bbr.state, State::Down);
}

/// A probe has just begun, at `RATE` and 50 ms.
fn probing() -> Rig {
    let mut rig = Rig::new();
    rig.until(|state| state == State::Up);
    rig
}

impl Rig {
    /// An acknowledgement so long after the probe began, which shows a rate while so much is in flight.
    fn probed(&mut self, after: Duration, rate: u64, in_flight: u64, lossy: bool) {
        let mut acked = Acked::new(self.now + after, 1200, &self.rtt);
        acked.all_bytes = 1200;
        let sample = RateSample {
            delivered: in_flight,
            interval: 50 * MS,
            rate,
            app_limited: false,
            prior_delivered: 0,
            total_delivered: self.delivered,
            in_flight,
            lost: 0,
            rtt: 50 * MS,
        };
        self.bbr.in_flight = in_flight;
        self.bbr.on_probing_sample(&acked, &sample, lossy);
    }
}

#[test]
fn a_probe_raises_the_bound_that_losses_have_left_and_losses_lower_it() {
    for (bound, raised) in [(50_000, 61_200), (70_000, 71_200)] {
        let mut rig = probing();
        rig.probed(MS, RATE, 60_000, false);
        assert_eq!(rig.bbr.model.inflight_limit.get(), None, "there is none to raise");
        rig.bbr.model.inflight_limit = Bound::of(bound);
        rig.probed(MS, RATE, 60_000, false);
        assert_eq!(rig.bbr.model.inflight_limit.get(), Some(raised));
    }
    let mut rig = probing();
    let least = part(rig.bbr.target(100), 70);
    rig.bbr.model.inflight_limit = Bound::of(10 * least);
    rig.probed(MS, RATE, 2 * least, true);
    assert_eq!((rig.bbr.model.inflight_limit.get(), rig.bbr.state), (Some(2 * least), State::Down));
}

#[test]
fn a_rate_that_grows_three_times_in_a_probe_is_looked_for_anew_unless_there_is_a_queue() {
    for (queue, state) in [(false, State::Startup), (true, State::Up)] {
        let (mut rig, mut rate) = (probing(), RATE);
        rig.bbr.model.on_rtt(rig.now, if queue { 60 * MS } else { 50 * MS });
        rig.probed(MS, part(RATE, 105), 60_000, false);
        for _ in 0..3 {
            assert_eq!(rig.bbr.state, State::Up);
            rate = part(rate, 105) + 1;
            rig.probed(MS, rate, 60_000, false);
        }
        assert_eq!(rig.bbr.state, state, "with a queue: {queue}");
    }
}

#[test]
fn a_probe_that_finds_no_more_ends_after_a_full_round_trip_or_three_of_any_kind() {
    let full = probing().bbr.target(125);
    for (in_flight, after, state) in [
        (full, 50 * MS, State::Up),
        (full, 51 * MS, State::Down),
        (full - 1, 51 * MS, State::Up),
        (full - 1, 150 * MS, State::Up),
        (full - 1, 151 * MS, State::Down),
    ] {
        let mut rig = probing();
        // From when the rate has grown for the last time.
        rig.probed(Duration::ZERO, part(RATE, 105) + 1, in_flight, false);
        rig.probed(after, RATE, in_flight, false);
        assert_eq!(rig.bbr.state, state, "{in_flight} after {after:?}");
    }
}

#[test]
fn a_probe_ends_at_once_when_many_losses_follow_what_it_sent() {
    for (packets, since, state) in [(20, 3000, State::Down), (20, 2000, State::Up), (1, 3000, State::Up)] {
        let mut rig = probing();
        rig.bbr.model.on_rtt(rig.now, 60 * MS);
        for _ in 0..packets {
            // Of 100,000 bytes that were in flight two percent may be lost.
            let (in_flight, lost_since) = (Some(100_000), Some(since));
            rig.bbr.on_lost(&Lost { in_flight, lost_since, ..Lost::new(rig.now, 1200, rig.now) });
        }
        assert_eq!(rig.bbr.state, state, "{packets} packets, {since} bytes since");
    }
}

#[test]
fn a_search_that_was_misled_is_made_up_for_after_three_rounds() {
    for (soon, rounds, state) in
        [(false, 3, State::Cruise), (true, 2, State::Cruise), (true, 3, State::Refill)]
    {
        let mut rig = Rig::cruising();
        rig.bbr.probe.soon = soon;
        (rig.bbr.probe.turn_at, rig.bbr.probe.turn_round) = (rig.now, rig.bbr.model.rounds - rounds);
        rig.probed(MS, RATE, 60_000, false);
        assert_eq!(rig.bbr.state, state, "{rounds} rounds");
    }
}

#[test]
fn losses_that_were_none_lift_the_bounds() {
    let mut rig = Rig::cruising();
    (0..3).for_each(|_| rig.round(RATE / 2, 60 * MS, 20));
    assert!(rig.bbr.model.inflight_short.get().is_some());
    rig.bbr.on_spurious_congestion();
    assert!(rig.bbr.model.inflight_short.get().is_none());
    assert_eq!(rig.bbr.state, State::Cruise);
    // And if they have ended the search for the rate, it goes on.
    rig.bbr.probe.misled = true;
    rig.bbr.on_spurious_congestion();
    assert_eq!(rig.bbr.state, State::Startup);
}

#[test]
fn the_initial_window_is_of_the_mtu_that_is_found_before_the_first_sample() {
    let mut rig = Rig::new();
    rig.bbr.on_mtu_changed(1472);
    assert_eq!(rig.bbr.window(), initial_window(1472));
    let mut rig = Rig::new();
    rig.round(RATE / 100, 50 * MS, 0);
    let window = rig.bbr.window();
    rig.bbr.on_mtu_changed(9000);
    assert_eq!(rig.bbr.window(), window, "the path has told of itself");
}

#[test]
fn it_asks_for_the_samples_that_it_works_by() {
    assert!(Rig::new().bbr.wants_rate_samples());
}

#[test]
fn a_sender_with_nothing_to_send_has_not_found_the_rate() {
    let mut rig = Rig::new();
    (0..20).for_each(|_| rig.lossy_round(RATE, 50 * MS, 0, true));
    assert_eq!(rig.bbr.state, State::Startup);
}

#[test]
fn losses_end_the_search_and_bound_what_is_in_flight_by_the_product_at_least() {
    let mut rig = Rig::new();
    (0..2).for_each(|_| rig.round(RATE, 50 * MS, 0));
    rig.round(RATE, 80 * MS, 20);
    rig.round(RATE, 80 * MS, 20);
    assert_ne!(rig.bbr.state, State::Startup);
    let limit = rig.bbr.model.inflight_limit.get();
    assert!(limit.is_some_and(|limit| limit >= in_time(RATE, 50 * MS)), "{limit:?}");
}

#[test]
fn few_losses_without_a_queue_are_no_congestion() {
    let mut rig = Rig::cruising();
    let before = rig.bbr.pacing.rate;
    rig.round(RATE, 50 * MS, 4);
    rig.round(RATE, 50 * MS, 4);
    assert_eq!((rig.bbr.model.rate(), rig.bbr.pacing.rate), (RATE, before));
}

#[test]
fn many_losses_are_congestion_without_a_queue_as_well() {
    let mut rig = Rig::cruising();
    // A third of what was sent.
    (0..2).for_each(|_| rig.round(RATE / 2, 50 * MS, 50));
    assert!(rig.bbr.model.rate() < RATE, "{}", rig.bbr.model.rate());
}

#[test]
fn too_many_losses_end_a_probe_at_once() {
    let mut rig = Rig::cruising();
    rig.until(|state| state == State::Up);
    let (now, in_flight) = (rig.now, in_time(RATE, 50 * MS));
    for lost in 1..=100_u64 {
        let since = Some(lost * u64::from(MTU));
        let lost = Lost { in_flight: Some(in_flight), lost_since: since, ..Lost::new(now, MTU.into(), now) };
        rig.bbr.on_lost(&lost);
        if rig.bbr.state == State::Down {
            let limit = rig.bbr.model.inflight_limit.get();
            assert!(limit.is_some_and(|limit| limit < in_flight), "{limit:?} of {in_flight}");
            return;
        }
    }
    panic!("still in {:?}", rig.bbr.state);
}

#[test]
fn the_lowest_round_trip_time_is_forgotten_after_ten_seconds() {
    let mut rig = Rig::cruising();
    let began = rig.now;
    rig.bbr.model.on_rtt(began, 50 * MS);
    for (seconds, lowest) in [(5, 50 * MS), (10, 50 * MS), (11, 80 * MS)] {
        rig.bbr.model.on_rtt(began + Duration::from_secs(seconds), 80 * MS);
        assert_eq!(rig.bbr.model.min_rtt(), lowest, "after {seconds} s");
    }
}

#[test]
fn losses_outside_of_probes_lower_the_bounds_by_beta_and_not_below_what_is_delivered() {
    let mut rig = Rig::cruising();
    let queued = 60 * MS;
    for slower in [RATE / 2, RATE / 2, RATE / 2] {
        rig.round(slower, queued, 20);
    }
    let bound = rig.bbr.model.rate();
    assert!((RATE / 2..RATE * 3 / 4).contains(&bound), "{bound}");
    assert_eq!(rig.bbr.model.max_rate(), RATE, "what the path can is not forgotten");
}

#[test]
fn gains_are_those_of_the_states_less_one_percent() {
    let mut rig = Rig::cruising();
    assert_eq!(rig.gain(), 99);
    rig.until(|state| state == State::Refill);
    assert_eq!(rig.gain(), 99);
    rig.until(|state| state == State::Up);
    assert!((123..=124).contains(&rig.gain()), "{}", rig.gain());
    rig.bbr.start_down(rig.now);
    rig.bbr.update_pacing();
    assert!((88..=90).contains(&rig.gain()), "{}", rig.gain());
}

#[test]
fn a_probe_comes_after_two_and_a_half_seconds_or_as_often_as_reno_loses_a_packet() {
    for (rtt, most) in [(50 * MS, Duration::from_millis(2600)), (2 * MS, 64 * 2 * MS)] {
        let mut rig = Rig::new();
        for _ in 0..200 {
            rig.round(RATE, rtt, 0);
            if rig.bbr.state == State::Cruise {
                break;
            }
        }
        rig.bbr.probe.soon = false;
        let began = rig.bbr.probe.turn_at;
        while rig.bbr.state == State::Cruise {
            rig.round(RATE, rtt, 0);
        }
        assert_eq!(rig.bbr.state, State::Refill);
        let waited = rig.now.saturating_since(began);
        assert!(waited <= most, "{waited:?} at {rtt:?}");
    }
}

#[test]
fn room_is_left_below_the_bound_while_cruising() {
    let mut rig = Rig::cruising();
    let product = in_time(RATE, 50 * MS);
    rig.bbr.model.inflight_limit = Bound::of(product * 2);
    assert_eq!(rig.bbr.cap(), part(product * 2, 85));
    rig.bbr.state = State::Up;
    assert_eq!(rig.bbr.cap(), product * 2);
}

#[test]
fn the_round_trip_time_is_probed_for_after_five_seconds_with_half_of_the_product_in_flight() {
    let mut rig = Rig::cruising();
    let from = rig.now;
    while !matches!(rig.bbr.state, State::ProbeRtt { .. }) {
        assert!(rig.now.saturating_since(from) < Duration::from_secs(7), "{:?}", rig.bbr.state);
        rig.round(RATE, 80 * MS, 0);
    }
    assert!(rig.now.saturating_since(from) > PROBE_RTT_INTERVAL);
    let since = rig.now;
    rig.round(RATE / 4, 50 * MS, 0);
    let product = in_time(RATE, 50 * MS);
    assert!(rig.bbr.window <= product * 6 / 10, "{} of {product}", rig.bbr.window);
    while matches!(rig.bbr.state, State::ProbeRtt { .. }) {
        rig.round(RATE / 4, 50 * MS, 0);
    }
    assert!(rig.now.saturating_since(since) >= PROBE_RTT_DURATION);
    assert!(rig.bbr.window >= product, "it goes on at once");
}

#[test]
fn the_window_is_never_below_four_packets() {
    let mut rig = Rig::cruising();
    rig.bbr.on_persistent_congestion();
    assert_eq!(rig.bbr.window, 4 * u64::from(MTU));
    for _ in 0..50 {
        rig.bbr.on_ce_congestion(rig.now);
    }
    assert_eq!(rig.bbr.window, 4 * u64::from(MTU));
    assert!(rig.bbr.pacing.rate > 0);
}

#[test]
fn a_late_sample_of_a_sender_with_nothing_to_send_does_not_lower_the_rate() {
    let mut rig = Rig::cruising();
    (0..100).for_each(|_| rig.lossy_round(RATE / 10, 50 * MS, 0, true));
    assert_eq!(rig.bbr.model.max_rate(), RATE);
}

#[test]
fn a_queue_that_stays_is_given_way_to_once_and_then_again_only_if_it_still_does() {
    let mut rig = Rig::cruising();
    let queued = 70 * MS;
    (0..4).for_each(|_| rig.round(RATE, queued, 0));
    assert!(rig.bbr.model.behind_queue && rig.gain() < 90, "{}", rig.gain());
    rig.round(RATE, queued, 1);
    rig.round(RATE, queued, 1);
    let once = rig.bbr.model.rate();
    assert_eq!(once, part(RATE, 70));
    rig.round(RATE, queued, 0);
    assert_eq!(rig.bbr.model.rate(), once);
}

/// Sends so many packets after a silence. Returns how many of them left fast.
fn flight_after_silence(rig: &mut Rig, slow: u64, packets: u64) -> u64 {
    let mut fast = 0;
    for number in 1..=packets {
        rig.bbr.on_sent(&Sent::new(rig.now, MTU.into(), number * u64::from(MTU)));
        fast += u64::from(rig.bbr.pacing.rate > 10 * slow);
    }
    rig.now += 50 * MS;
    fast
}

#[test]
fn what_comes_after_a_silence_leaves_at_once_as_far_as_the_path_has_taken_it() {
    let mut rig = Rig::cruising();
    // Its rate is low.
    (0..20).for_each(|_| rig.bbr.model.on_marked(RATE));
    rig.bbr.update_pacing();
    let slow = rig.bbr.pacing.rate;
    // The packet that ends what may leave at once is followed slowly.
    assert_eq!(flight_after_silence(&mut rig, slow, 60), 9);
    assert_eq!(flight_after_silence(&mut rig, slow, 60), 19);
    assert_eq!(flight_after_silence(&mut rig, slow, 5), 5);
    for left in [19, 9, 4, 1, 1] {
        for _ in 0..3 {
            rig.bbr.on_lost(&Lost::new(rig.now, MTU.into(), rig.bbr.idle_end.sent_until()));
        }
        assert_eq!(flight_after_silence(&mut rig, slow, 60), left);
    }
    assert_eq!(flight_after_silence(&mut rig, slow, 60), 3, "what is taken again is more again");
}
