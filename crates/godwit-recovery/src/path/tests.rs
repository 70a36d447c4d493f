#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::congestion::{Algorithm, SavedState};
use crate::{Outcome, SentInfo, SpaceId, SpaceRecovery};
use godwit_base::SeededRng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn path() -> PathRecovery {
    let settings = PathSettings { congestion: Algorithm::NewReno.into(), ..PathSettings::default() };
    PathRecovery::new(Time::ZERO, &settings)
}

fn send(space: &mut SpaceRecovery<()>, path: &mut PathRecovery, now: Time) {
    let packet_number = space.next_packet_number(&mut SeededRng::new(1));
    let info = SentInfo::ordinary(packet_number, now, 1200);
    space.on_packet_sent(path, info, &[]);
}

fn ack(space: &mut SpaceRecovery<()>, path: &mut PathRecovery, now: Time, upto: u64) {
    let mut ignore = |_: Outcome, ()| {};
    let ranges = std::iter::once(0..=upto);
    space.on_ack_received(path, now, upto, Duration::ZERO, ranges, &mut ignore).unwrap();
}

#[test]
fn a_path_alone_is_found_by_its_own_id() {
    let mut path = PathRecovery::new(Time::ZERO, &PathSettings { id: 3, ..PathSettings::default() });
    assert!(path.find(3).is_some() && path.find(0).is_none());
}

#[test]
fn ack_eliciting_packets_in_flight_are_counted_by_space() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    (0..3).for_each(|_| send(&mut space, &mut path, ms(0)));
    assert_eq!(path.ack_eliciting_in_flight(SpaceId::Handshake), 3);
    assert_eq!(path.ack_eliciting_in_flight(SpaceId::Data), 0);
    ack(&mut space, &mut path, ms(50), 1);
    assert_eq!(path.ack_eliciting_in_flight(SpaceId::Handshake), 1);
}

#[test]
fn the_window_bounds_the_flight() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    assert_eq!((path.window(), path.available()), (12_000, 12_000));
    for _ in 0..10 {
        assert!(path.can_send(1200));
        send(&mut space, &mut path, ms(0));
    }
    assert!(!path.can_send(1) && path.available() == 0);
}

#[test]
fn in_slow_start_a_window_grows_if_more_than_half_of_it_was_used() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    for _ in 0..5 {
        send(&mut space, &mut path, ms(0));
    }
    path.on_app_limited();
    ack(&mut space, &mut path, ms(50), 4);
    assert_eq!(path.window(), 12_000);
    for _ in 0..6 {
        send(&mut space, &mut path, ms(60));
    }
    ack(&mut space, &mut path, ms(110), 10);
    assert_eq!(path.window(), 12_000 + 6 * 1200);
}

#[test]
fn later_only_a_full_window_grows() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    path.on_congestion_experienced(ms(0), Time::ZERO);
    for (packets, grows) in [(7, false), (8, true)] {
        let (before, now) = (path.window(), ms(60 * packets));
        (0..packets).for_each(|_| send(&mut space, &mut path, now));
        let last = space.largest_sent().unwrap();
        ack(&mut space, &mut path, now + Duration::from_millis(50), last);
        assert_eq!(path.window() > before, grows, "{packets} packets");
    }
}

#[test]
fn a_probe_leaves_with_the_first_flight_behind_four_packets_and_takes_no_more_than_an_eighth_of_it() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    path.mtu_search_mut().start(ms(0));
    for packets in 0..4 {
        assert_eq!(path.next_mtu_probe(ms(0), true), None, "behind {packets}");
        send(&mut space, &mut path, ms(0));
    }
    assert_eq!(path.next_mtu_probe(ms(0), true), Some(1472));
    path.on_congestion_experienced(ms(50), ms(0));
    assert_eq!(path.next_mtu_probe(ms(50), true), None);
    ack(&mut space, &mut path, ms(50), 3);
    assert_eq!(path.next_mtu_probe(ms(50), false), Some(1472));
}

#[test]
fn waiting_for_the_pacer_counts_as_use_unless_the_data_ran_out() {
    for (ran_out, window) in [(false, 12_000 + 6000), (true, 12_000)] {
        let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
        for _ in 0..5 {
            send(&mut space, &mut path, ms(0));
        }
        assert_eq!(path.next_send_time(ms(0), 1200), None);
        assert!(path.next_send_time(ms(0), 60_000).is_some());
        if ran_out {
            path.on_app_limited();
        }
        ack(&mut space, &mut path, ms(50), 4);
        assert_eq!(path.window(), window);
    }
}

#[test]
fn a_ce_mark_reduces_the_window_once_per_round_trip() {
    let mut path = path();
    path.on_congestion_experienced(ms(50), ms(0));
    assert_eq!(path.window(), 9600);
    path.on_congestion_experienced(ms(60), ms(50));
    assert_eq!(path.window(), 9600);
    path.on_congestion_experienced(ms(110), ms(51));
    assert_eq!(path.window(), 7680);
}

/// The packets that may leave now leave; how many.
fn send_all(space: &mut SpaceRecovery<()>, path: &mut PathRecovery, now: Time) -> u64 {
    let mut sent = 0;
    while path.can_send(1200) {
        send(space, path, now);
        sent += 1;
    }
    sent
}

#[test]
fn a_reduction_is_spread_over_the_round_trip_and_then_the_window_is_the_controllers() {
    for (algorithm, window) in [(Algorithm::NewReno, 20), (Algorithm::Cubic, 28)] {
        let settings = PathSettings { congestion: algorithm.into(), ..PathSettings::default() };
        let (mut path, mut space) =
            (PathRecovery::new(Time::ZERO, &settings), SpaceRecovery::new(SpaceId::Handshake));
        for (at, acked) in [(0, 9), (100, 29)] {
            send_all(&mut space, &mut path, ms(at));
            ack(&mut space, &mut path, ms(at + 50), acked);
        }
        assert_eq!(send_all(&mut space, &mut path, ms(200)), 40);
        // The first of 40 is lost. Each acknowledgement lets half a packet out, or seven tenths.
        let mut ignore = |_: Outcome, ()| {};
        let mut after_each = Vec::new();
        for upto in 33..70 {
            let ranges = [31..=upto, 0..=29].into_iter();
            space.on_ack_received(&mut path, ms(250), upto, Duration::ZERO, ranges, &mut ignore).unwrap();
            after_each.push(send_all(&mut space, &mut path, ms(250)));
        }
        assert!(after_each.iter().all(|sent| *sent <= 3), "{algorithm}: {after_each:?}");
        assert!(after_each.chunks(4).all(|four| four.iter().sum::<u64>() > 0), "{algorithm}: {after_each:?}");
        let in_flight = path.bytes_in_flight() / 1200;
        assert!((window - 1..=window).contains(&in_flight), "{algorithm}: {in_flight}");
        let ranges = [31..=70, 0..=29].into_iter();
        space.on_ack_received(&mut path, ms(300), 70, Duration::ZERO, ranges, &mut ignore).unwrap();
        assert_eq!(path.available(), path.window() - path.bytes_in_flight());
    }
}

#[test]
fn a_sender_that_lost_all_of_its_flight_sends_again() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let settings = PathSettings { congestion: algorithm.into(), ..PathSettings::default() };
        let (mut path, mut space) =
            (PathRecovery::new(Time::ZERO, &settings), SpaceRecovery::new(SpaceId::Handshake));
        send_all(&mut space, &mut path, ms(0));
        // The last of ten is acknowledged, which shows all but two to be lost, and those two are by their time.
        let mut ignore = |_: Outcome, ()| {};
        space
            .on_ack_received(&mut path, ms(50), 9, Duration::ZERO, [9..=9].into_iter(), &mut ignore)
            .unwrap();
        assert_eq!((path.bytes_in_flight(), path.can_send(1200)), (2400, true));
        space.on_loss_timer(&mut path, ms(150), &mut ignore);
        assert_eq!(path.bytes_in_flight(), 0);
        assert_eq!(send_all(&mut space, &mut path, ms(150)), path.window() / 1200);
        // The same where nothing of the window was left: a packet once sent in the episode is lost as well.
        for round in 1..5 {
            let (now, last) = (ms(150 + 1000 * round), space.largest_sent().unwrap());
            space
                .on_ack_received(&mut path, now, last, Duration::ZERO, [last..=last].into_iter(), &mut ignore)
                .unwrap();
            send_all(&mut space, &mut path, now);
            space.on_loss_timer(&mut path, now + Duration::from_secs(20), &mut ignore);
            send_all(&mut space, &mut path, now + Duration::from_secs(20));
            assert!(path.bytes_in_flight() > 0, "{algorithm} after {round}");
        }
    }
}

#[test]
fn a_client_keeps_backing_off_until_the_server_has_validated_it() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Initial));
    path.set_peer_validated(false);
    path.on_pto(ms(0));
    send(&mut space, &mut path, ms(0));
    ack(&mut space, &mut path, ms(50), 0);
    assert_eq!(path.pto_count(), 1);
    path.set_peer_validated(true);
    send(&mut space, &mut path, ms(60));
    ack(&mut space, &mut path, ms(110), 1);
    assert_eq!(path.pto_count(), 0);
}

#[test]
fn silence_brings_the_mtu_back_to_the_base() {
    let settings = PathSettings { initial_mtu: 1400, ..PathSettings::default() };
    let mut path = PathRecovery::new(Time::ZERO, &settings);
    for _ in 0..2 {
        path.on_pto(ms(0));
        assert_eq!(path.mtu(), 1400);
    }
    path.on_pto(ms(0));
    assert_eq!(path.mtu(), 1200);
}

#[test]
fn a_refusal_by_the_system_changes_mtu_and_controller() {
    let settings = PathSettings {
        congestion: Algorithm::NewReno.into(),
        initial_mtu: 1472,
        max_mtu: 1472,
        ..PathSettings::default()
    };
    let mut path = PathRecovery::new(Time::ZERO, &settings);
    let window = path.window();
    path.on_datagram_refused(ms(0), 1500, Some(1480));
    assert_eq!((path.mtu(), path.window()), (1472, window));
    assert!(path.full_above() > 1200 && path.full_above() < 1472);
    path.on_datagram_refused(ms(0), 1472, Some(1300));
    assert_eq!(path.mtu(), 1300);
    let mut narrow = PathRecovery::new(Time::ZERO, &PathSettings { initial_mtu: 1300, ..settings });
    for path in [&mut path, &mut narrow] {
        // The least window is two packets of the size that the controller knows.
        (1..20).for_each(|round| path.on_congestion_experienced(ms(100 * round), ms(100 * round - 1)));
    }
    assert_eq!(path.window(), narrow.window());
}

#[test]
fn lesser_packets_that_arrive_where_full_ones_do_not_make_a_black_hole() {
    let settings = PathSettings { initial_mtu: 1400, max_mtu: 1400, ..PathSettings::default() };
    for (size, mtu) in [(1400, 1400), (100, 1200)] {
        let mut path = PathRecovery::new(Time::ZERO, &settings);
        let mut space = SpaceRecovery::<()>::new(SpaceId::Handshake);
        let mut now = Time::ZERO;
        for bytes in [[1400; 9].as_slice(), &[size; 9]].concat() {
            now += Duration::from_millis(1);
            let number = space.next_packet_number(&mut SeededRng::new(1));
            space.on_packet_sent(&mut path, SentInfo::ordinary(number, now, bytes), &[]);
        }
        let arrived = std::iter::once(9..=17);
        now += Duration::from_millis(50);
        space.on_ack_received(&mut path, now, 17, Duration::ZERO, arrived, &mut |_, ()| {}).unwrap();
        assert_eq!(path.mtu(), mtu, "packets of {size} bytes arrive");
    }
}

#[test]
fn what_the_search_has_done_is_told() {
    let (mut path, mut space) = (path(), SpaceRecovery::<()>::new(SpaceId::Handshake));
    path.mtu_search_mut().start(ms(0));
    let size = path.next_mtu_probe(ms(0), false).unwrap();
    let number = space.next_packet_number(&mut SeededRng::new(1));
    let info = SentInfo { mtu_probe: true, ..SentInfo::ordinary(number, ms(0), size.into()) };
    space.on_packet_sent(&mut path, info, &[]);
    assert_eq!(path.mtu_counters(), MtuCounters { probes_sent: 1, ..MtuCounters::default() });
}

/// Probes while it is told to, in a window that stays.
#[derive(Debug)]
struct Probing(Arc<AtomicBool>);

impl crate::congestion::CongestionController for Probing {
    fn on_ack(&mut self, _: &Acked<'_>) {}
    fn on_congestion(&mut self, _: Time) {}
    fn on_persistent_congestion(&mut self) {}
    fn on_mtu_changed(&mut self, _: u16) {}
    fn window(&self) -> u64 {
        1 << 20
    }
    fn is_probing(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A path with such a controller.
fn probing() -> (PathRecovery, Arc<AtomicBool>) {
    let probing = Arc::default();
    let congestion = crate::CongestionControl::custom({
        let probing = Arc::clone(&probing);
        move |_| Probing(Arc::clone(&probing))
    });
    let settings = PathSettings { congestion, ..PathSettings::default() };
    (PathRecovery::new(Time::ZERO, &settings), probing)
}

#[test]
fn a_sender_that_was_woken_late_makes_up_for_it() {
    let sent_after_a_wait = |late| {
        let (mut path, _) = probing();
        let mut space = SpaceRecovery::new(SpaceId::Handshake);
        let mut burst = |path: &mut PathRecovery, now| {
            let paced = std::iter::from_fn(|| {
                path.next_send_time(now, 1200).is_none().then(|| send(&mut space, path, now))
            });
            paced.count()
        };
        assert!(burst(&mut path, ms(50)) > 0);
        path.on_late(Duration::from_millis(late));
        burst(&mut path, ms(60))
    };
    let (in_time, late) = (sent_after_a_wait(0), sent_after_a_wait(5));
    assert!(late > in_time, "{late} and {in_time}");
}

#[test]
fn on_paths_that_are_not_short_probes_are_made_with_few_acknowledgements() {
    for (rtt, tried) in [(7, false), (8, true), (50, true)] {
        let (mut path, probing) = probing();
        let mut space = SpaceRecovery::new(SpaceId::Handshake);
        for (number, is_probing) in [false, true, true, false].into_iter().enumerate() {
            probing.store(is_probing, Ordering::Relaxed);
            let now = ms(100 * number as u64);
            send(&mut space, &mut path, now);
            ack(&mut space, &mut path, now + Duration::from_millis(rtt), number as u64);
            assert_eq!(path.tries_few_acks(), is_probing && tried, "{number}, {rtt} ms");
        }
    }
}

#[test]
fn what_never_left_is_no_congestion() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    send(&mut space, &mut path, ms(0));
    ack(&mut space, &mut path, ms(50), 0);
    for time in [60, 61, 200, 900] {
        (0..2).for_each(|_| send(&mut space, &mut path, ms(time)));
        path.on_refused(ms(time));
    }
    let window = path.window();
    send(&mut space, &mut path, ms(1000));
    let mut lost = 0;
    let mut count = |outcome: Outcome, ()| lost += u32::from(outcome == Outcome::Lost);
    let number = 9;
    let summary = space.on_ack_received(
        &mut path,
        ms(1050),
        number,
        Duration::ZERO,
        [number..=number].into_iter(),
        &mut count,
    );
    let summary = summary.unwrap().lost;
    assert_eq!((summary.packets, lost), (8, 0), "no tokens were sent");
    assert!(!summary.congestion && !summary.persistent_congestion && path.window() >= window);
    assert_eq!((path.stats().packets_lost, path.stats().bytes_lost), (0, 8 * 1200));
    assert_eq!(path.bytes_in_flight(), 0);
    // The same for all that happens later is congestion again.
    (0..5).for_each(|_| send(&mut space, &mut path, ms(1100)));
    let last = number + 5;
    let ranges = [last..=last].into_iter();
    let summary = space.on_ack_received(&mut path, ms(1150), last, Duration::ZERO, ranges, &mut |_, ()| {});
    assert!(summary.unwrap().lost.congestion && path.window() < window);
}

#[test]
fn reductions_that_overlap_are_each_undone() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let settings = PathSettings { congestion: algorithm.into(), ..PathSettings::default() };
        let (mut path, mut space) =
            (PathRecovery::new(Time::ZERO, &settings), SpaceRecovery::new(SpaceId::Handshake));
        let mut ignore = |_: Outcome, ()| {};
        let mut acked =
            |path: &mut PathRecovery, space: &mut SpaceRecovery<()>, at, largest, ranges: Vec<_>| {
                space
                    .on_ack_received(path, ms(at), largest, Duration::ZERO, ranges.into_iter(), &mut ignore)
                    .unwrap();
            };
        for (at, upto) in [(0, 9), (100, 29)] {
            send_all(&mut space, &mut path, ms(at));
            acked(&mut path, &mut space, at + 50, upto, vec![0..=upto]);
        }
        send_all(&mut space, &mut path, ms(200));
        let full = path.window();
        // 30 is missing, and then, of what was sent after that was found out, 70 as well.
        acked(&mut path, &mut space, 250, 69, vec![31..=69, 0..=29]);
        send_all(&mut space, &mut path, ms(260));
        let last = space.largest_sent().unwrap();
        acked(&mut path, &mut space, 310, last, vec![71..=last, 31..=69, 0..=29]);
        assert_eq!(path.stats().congestion_events, 2);
        let reduced = path.window();
        assert!(reduced < full * 6 / 10, "{algorithm}");
        // Both come, the first one first.
        acked(&mut path, &mut space, 311, last, vec![71..=last, 0..=69]);
        let between = path.window();
        assert!(between > reduced && between < full, "{algorithm}: {reduced} {between} {full}");
        acked(&mut path, &mut space, 312, last, vec![0..=last]);
        assert!(path.window() >= full * 99 / 100, "{algorithm}: {} of {full}", path.window());
        assert_eq!(path.stats().congestion_undone, 2);
    }
}

/// A path that resumes a window of 200 packets, after its initial window has arrived in 50 ms, as it did then.
fn resumed(algorithm: Algorithm) -> (PathRecovery, SpaceRecovery<()>) {
    let saved = SavedState { rtt: Duration::from_millis(50), window: 200 * 1200, rate: 0 };
    let settings =
        PathSettings { congestion: algorithm.into(), saved: Some(saved), ..PathSettings::default() };
    let (mut path, mut space) =
        (PathRecovery::new(Time::ZERO, &settings), SpaceRecovery::new(SpaceId::Handshake));
    assert_eq!(send_all(&mut space, &mut path, ms(0)), 10);
    ack(&mut space, &mut path, ms(50), 9);
    (path, space)
}

#[test]
fn a_path_that_was_never_heard_from_has_nothing_to_resume() {
    let (mut path, mut space) = (path(), SpaceRecovery::new(SpaceId::Handshake));
    assert_eq!(path.resumable(), None);
    send(&mut space, &mut path, ms(0));
    ack(&mut space, &mut path, ms(50), 0);
    let saved = path.resumable().unwrap();
    assert_eq!((saved.rtt, saved.window), (Duration::from_millis(50), path.window()));
}

#[test]
fn a_window_is_resumed_by_those_who_cannot_find_it_faster() {
    for algorithm in Algorithm::ALL {
        let (mut path, mut space) = resumed(algorithm);
        if algorithm == Algorithm::Bbr {
            assert!(path.window() < 100 * 1200);
            assert_eq!(path.resumable(), None);
            continue;
        }
        assert_eq!(path.window(), 100 * 1200, "{algorithm}");
        assert_eq!(path.resumable(), None, "{algorithm}: it has not passed yet");
        // A window in a round trip, and not at once.
        let mut sent = 0;
        for half in 100..200 {
            let now = Time::from_nanos(half * 500_000);
            while path.can_send(1200) && path.next_send_time(now, 1200).is_none() {
                send(&mut space, &mut path, now);
                sent += 1;
            }
            assert!(sent <= (half - 99) + 14, "{algorithm}: {sent} at {half}");
        }
        assert!(sent >= 96, "{algorithm}: {sent}");
        ack(&mut space, &mut path, ms(100), 30);
        assert!(path.window() <= 100 * 1200, "{algorithm}");
        let last = space.largest_sent().unwrap();
        ack(&mut space, &mut path, ms(150), last);
        // All of it has arrived: slow start goes on.
        assert!(
            path.window() > 130 * 1200 && path.controller().is_slow_start(),
            "{algorithm}: {}",
            path.window()
        );
        assert_eq!(path.resumable().map(|saved| saved.window), Some(path.window()));
    }
}

#[test]
fn a_resumed_window_that_is_too_large_costs_what_it_was_too_large_by() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let (mut path, mut space) = resumed(algorithm);
        assert_eq!(send_all(&mut space, &mut path, ms(60)), 100, "{algorithm}");
        // 20 of the 100 arrive, then all but the last are lost.
        ack(&mut space, &mut path, ms(110), 29);
        let mut ignore = |_: Outcome, ()| {};
        let ranges = [109..=109, 0..=29].into_iter();
        space.on_ack_received(&mut path, ms(120), 109, Duration::ZERO, ranges, &mut ignore).unwrap();
        // Half of what has been shown to pass.
        assert!((10..=11).contains(&(path.window() / 1200)), "{algorithm}: {}", path.window());
        space.on_loss_timer(&mut path, ms(200), &mut ignore);
        assert!(send_all(&mut space, &mut path, ms(200)) > 0, "{algorithm}");
        let last = space.largest_sent().unwrap();
        ack(&mut space, &mut path, ms(260), last);
        assert!(path.window() < 30 * 1200, "{algorithm}: {}", path.window());
        assert!(path.controller().slow_start_threshold().unwrap() <= 40 * 1200, "{algorithm}");
    }
}

fn in_laboratory(laboratory: crate::Laboratory) -> PathRecovery {
    let congestion = Algorithm::NewReno.into();
    PathRecovery::new(Time::ZERO, &PathSettings { congestion, laboratory, ..PathSettings::default() })
}

#[test]
fn without_pacing_the_whole_window_leaves_at_once() {
    let laboratory = crate::Laboratory { unpaced: true, ..crate::Laboratory::default() };
    for (mut path, expected) in [(path(), 10), (in_laboratory(laboratory), 40)] {
        let mut space = SpaceRecovery::new(SpaceId::Handshake);
        path.controller.set_window(48_000, None);
        let mut left = 0;
        while path.can_send(1200) && path.next_send_time(ms(0), 1200).is_none() {
            send(&mut space, &mut path, ms(0));
            left += 1;
        }
        assert_eq!(left, expected);
    }
}

#[test]
fn a_retransmission_timer_has_a_least_margin_and_gives_up_the_window() {
    let margin = Duration::from_millis(200);
    let laboratory = crate::Laboratory { retransmission_timer: Some(margin), ..crate::Laboratory::default() };
    let mut path = in_laboratory(laboratory);
    // Samples that do not vary: four times their variation is next to nothing.
    for at in 1..100 {
        path.on_rtt_sample(ms(50 * at), Duration::from_millis(50), Duration::ZERO);
    }
    assert_eq!(path.rtt().pto(), Duration::from_millis(250));
    path.set_peer_max_ack_delay(Duration::from_millis(25));
    assert_eq!(path.peer_max_ack_delay(), Duration::ZERO);
    let mut space = SpaceRecovery::<()>::new(SpaceId::Data);
    (0..10).for_each(|_| send(&mut space, &mut path, ms(5000)));
    let timer = crate::timer(&path, CONFIRMED);
    assert_eq!(timer, Some((ms(5250), crate::TimerKind::Pto(SpaceId::Data))));
    path.on_pto(ms(5250));
    space.declare_all_lost(&mut path, ms(5250), &mut |_, ()| {});
    path.on_retransmission_timeout(ms(5250));
    assert_eq!((path.window(), path.bytes_in_flight()), (2400, 0));
    // Slow start ends at half of what there was, however often the timer goes off in a row.
    path.on_pto(ms(5750));
    path.on_retransmission_timeout(ms(5750));
    assert_eq!((path.stats().congestion_events, path.window()), (1, 2400));
}

#[test]
fn what_the_path_takes_tells_no_less_margin() {
    let margin = Duration::from_millis(200);
    let laboratory = crate::Laboratory { retransmission_timer: Some(margin), ..crate::Laboratory::default() };
    let mut path = in_laboratory(laboratory);
    path.set_initial_rtt(Duration::from_millis(10));
    assert_eq!(path.rtt().pto(), Duration::from_millis(210));
}

const CONFIRMED: crate::TimerInputs = crate::TimerInputs {
    handshake_confirmed: true,
    has_handshake_keys: true,
    awaits_handshake: false,
    amplification_blocked: false,
    most_backed_off: None,
};
