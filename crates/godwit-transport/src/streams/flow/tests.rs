use super::*;
use crate::WindowReserve;

const RTT: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn limit_is_announced_when_half_is_consumed() {
    let mut window = ReceiveWindow::new(1000, 1000);
    window.on_received(at(0), 800);
    assert!(!window.on_consumed(at(1), RTT, 499));
    assert!(window.on_consumed(at(1), RTT, 1));
    assert_eq!(window.limit(), 1500);
    assert!(window.check(700).is_ok());
    assert!(window.check(701).is_err());
}

#[test]
fn window_grows_only_while_it_is_used_up_quickly() {
    let mut window = ReceiveWindow::new(1000, 3000);
    window.on_received(at(0), 1000);
    assert!(window.on_consumed(at(199), RTT, 500));
    assert_eq!((window.size(), window.limit()), (2000, 2500));
    window.on_received(at(199), 1500);
    assert!(window.on_consumed(at(399), RTT, 1000));
    assert_eq!(window.size(), 2000, "200 ms is two round trips: fast enough a sender is not held back");
    assert!(window.on_consumed(at(400), RTT, 1000));
    assert_eq!(window.size(), 3000, "never beyond the maximum");
}

const MIB: u64 = 1 << 20;

fn shared(reserve: &WindowReserve) -> (ReceiveWindow, Share) {
    let mut share = Share::default();
    share.attach(reserve);
    (ReceiveWindow::new(16 * MIB, 192 * MIB), share)
}

/// The peer sends all it may and it is read, half a window at a time, so many times and so fast.
fn fill(window: &mut ReceiveWindow, share: &mut Share, now: &mut Time, times: u32, took: Duration) {
    for _ in 0..times {
        window.on_received(*now, window.limit().saturating_sub(window.received()));
        *now += took;
        window.on_consumed_of_all(*now, RTT, window.size().div_ceil(2), share);
    }
}

#[test]
fn beyond_its_own_the_window_of_a_connection_grows_only_if_it_is_used_up_at_once() {
    let reserve = WindowReserve::new(320 * MIB);
    let (mut window, mut share) = shared(&reserve);
    let mut now = at(0);
    fill(&mut window, &mut share, &mut now, 9, RTT * 3 / 2);
    let own = "its own, which half a window in two round trips is enough for";
    assert_eq!((window.size(), reserve.taken()), (32 * MIB, 0), "{own}");
    fill(&mut window, &mut share, &mut now, 9, RTT / 2);
    assert_eq!(window.size(), 192 * MIB);
    assert!(reserve.taken() >= 96 * MIB && reserve.taken() <= 160 * MIB, "{reserve:?}");
    drop(share);
    assert_eq!(reserve.taken(), 0);
}

#[test]
fn who_idles_holds_what_was_announced_and_no_more_once_that_is_used() {
    let reserve = WindowReserve::new(320 * MIB);
    let (mut window, mut share) = shared(&reserve);
    let mut now = at(0);
    fill(&mut window, &mut share, &mut now, 9, RTT / 2);
    let size = window.size();
    // Almost to where more would be announced.
    let left = window.limit() - window.consumed() - size / 2 - 1;
    assert!(!window.on_consumed_of_all(now, RTT, left, &mut share));
    assert!(reserve.taken() <= (size / 2 - OWN_WINDOW) + MIB, "{reserve:?}");
    // It comes back after a while: what it uses is not announced anew, down to its own.
    for _ in 0..6 {
        now += Duration::from_secs(60);
        window.on_received(now, 0);
        window.on_consumed_of_all(now, RTT, window.size() / 2 + 1, &mut share);
    }
    assert_eq!((window.size(), reserve.taken()), (OWN_WINDOW, 0));
}

#[test]
fn what_idle_peers_hold_leaves_something_for_others() {
    let reserve = WindowReserve::new(320 * MIB);
    let mut idle = Vec::new();
    for _ in 0..1000 {
        let (mut window, mut share) = shared(&reserve);
        fill(&mut window, &mut share, &mut at(0), 9, RTT / 2);
        assert!(reserve.taken() <= reserve.size());
        let announced = window.limit() - window.consumed();
        assert!(announced <= OWN_WINDOW + share.receive(u64::MAX, announced), "all of it is counted");
        idle.push((window, share));
    }
    idle.truncate(2);
    let (mut window, mut share) = shared(&reserve);
    fill(&mut window, &mut share, &mut at(0), 9, RTT / 2);
    assert!(window.size() >= OWN_WINDOW + 32 * MIB, "{} {reserve:?}", window.size());
}

#[test]
fn bytes_nobody_reads_give_back_too() {
    let reserve = WindowReserve::new(320 * MIB);
    let (mut window, mut share) = shared(&reserve);
    fill(&mut window, &mut share, &mut at(0), 9, RTT / 2);
    let taken = reserve.taken();
    assert!(!window.on_discarded_of_all(2 * MIB, &mut share));
    assert!(reserve.taken() <= taken - MIB, "{reserve:?}");
}

#[test]
fn the_maximum_can_change() {
    let mut window = ReceiveWindow::new(1000, 1000);
    window.set_max(4000);
    window.on_received(at(0), 1000);
    assert!(window.on_consumed(at(100), RTT, 500));
    assert_eq!(window.size(), 2000);
    window.set_max(100);
    assert!(window.on_consumed(at(101), RTT, 1000));
    assert_eq!((window.size(), window.limit()), (2000, 3500), "what was announced stays");
}

#[test]
fn a_peer_that_says_it_is_held_back_gets_more_once_for_each_limit() {
    let mut window = ReceiveWindow::new(1000, 1 << 20);
    window.on_received(at(0), 700);
    window.consumed = 700;
    assert!(!window.on_blocked(at(0), 1000), "it is not");
    window.on_received(at(0), 100);
    assert!(window.on_blocked(at(0), 1000));
    assert_eq!((window.size(), window.limit()), (32_000, 32_700));
    window.on_received(at(1), 31_900);
    assert!(!window.on_blocked(at(1), 32_700), "nobody reads");
    window.consumed = 32_700;
    assert!(!window.on_blocked(at(1), 32_700), "once for each limit");
    assert!(window.on_consumed(at(900), RTT, 0));
    window.on_received(at(901), 32_000);
    window.consumed += 32_000;
    assert!(window.on_blocked(at(901), 64_700));
    assert_eq!(window.size(), 1_024_000);
}

#[test]
fn what_is_shared_only_doubles_for_who_is_held_back() {
    let reserve = WindowReserve::new(320 * MIB);
    let (mut window, mut share) = shared(&reserve);
    for size in [32, 64, 128, 192] {
        window.on_received(at(0), window.limit() - window.received());
        window.consumed = window.received();
        assert!(window.on_blocked_of_all(at(0), window.limit(), &mut share));
        assert_eq!(window.size(), size * MIB);
        window.epoch = Epoch::Announced(at(0));
    }
    window.on_received(at(0), window.limit().saturating_sub(window.received()));
    window.consumed = window.received();
    assert!(!window.on_blocked_of_all(at(0), window.limit(), &mut share), "it is as large as it may be");
    assert_eq!(reserve.taken(), 160 * MIB);
}

#[test]
fn discarded_bytes_are_credited_without_growth() {
    let mut window = ReceiveWindow::new(1000, 4000);
    window.on_received(at(0), 1000);
    assert!(window.on_discarded(1000));
    assert_eq!((window.size(), window.limit()), (1000, 2000));
}

#[test]
fn blocked_is_told_once_per_limit() {
    let mut credit = SendCredit::default();
    assert!(credit.newly_blocked());
    assert!(!credit.newly_blocked());
    assert!(credit.raise(10));
    credit.on_sent(10);
    assert!(credit.newly_blocked());
    assert!(!credit.raise(5));
}

/// The size of a window of the connection when half of it has been used up within `took` milliseconds.
fn size_after(size: u64, took: u64, rtt: Duration, share: &mut Share) -> u64 {
    let mut window = ReceiveWindow::new(size, 192 * MIB);
    window.on_received(at(0), size / 2);
    assert!(window.on_consumed_of_all(at(took), rtt, size / 2, share));
    window.size()
}

#[test]
fn how_fast_half_of_a_shared_window_is_used_up_says_whether_it_grows_stays_or_shrinks() {
    for (size, took, rtt, expected) in [
        // Its own: less than two round trips.
        (16, 199, RTT, 32),
        (16, 200, RTT, 16),
        (16, 60_000, RTT, 16),
        // Beyond: less than one and a half.
        (32, 149, RTT, 64),
        (32, 150, RTT, 32),
        (32, 60_000, RTT, 32),
        (64, 150, RTT, 64),
        // Not within a second, nor within eight round trips.
        (64, 1000, RTT, 64),
        (64, 1001, RTT, 32),
        (64, 1600, RTT * 2, 64),
        (64, 1601, RTT * 2, 32),
        (48, 1001, RTT, 32),
    ] {
        let reserve = WindowReserve::new(320 * MIB);
        let (_, mut share) = shared(&reserve);
        assert_eq!(size_after(size * MIB, took, rtt, &mut share), expected * MIB, "{size} MiB in {took} ms");
    }
}

#[test]
fn a_window_that_is_not_shared_grows_as_that_of_a_stream_and_never_shrinks() {
    for (took, expected) in [(199, 128), (200, 64), (60_000, 64)] {
        assert_eq!(size_after(64 * MIB, took, RTT, &mut Share::default()), expected * MIB, "{took} ms");
    }
}

#[test]
fn who_comes_back_after_five_seconds_of_silence_has_less() {
    // So slow that half a window in five seconds is fast enough.
    let rtt = Duration::from_secs(1);
    for (silence, expected) in [(5000, 64), (5001, 32)] {
        let reserve = WindowReserve::new(320 * MIB);
        let (_, mut share) = shared(&reserve);
        let mut window = ReceiveWindow::new(64 * MIB, 192 * MIB);
        window.on_received(at(0), 32 * MIB);
        assert!(window.on_consumed_of_all(at(8000), rtt, 32 * MIB, &mut share));
        assert_eq!(window.size(), 64 * MIB);
        window.on_received(at(8000 + silence), 32 * MIB);
        assert!(window.on_consumed_of_all(at(8000 + silence), rtt, 32 * MIB, &mut share));
        assert_eq!(window.size(), expected * MIB, "{silence} ms");
    }
}

#[test]
fn what_was_announced_is_taken_until_it_is_used_and_no_longer() {
    let reserve = WindowReserve::new(320 * MIB);
    let (mut window, mut share) = shared(&reserve);
    let mut now = at(0);
    fill(&mut window, &mut share, &mut now, 9, RTT / 2);
    assert_eq!((window.size(), window.limit() - window.consumed()), (192 * MIB, 192 * MIB));
    assert_eq!(reserve.taken(), 160 * MIB);
    assert!(!window.on_consumed_of_all(now, RTT, 10 * MIB, &mut share));
    assert_eq!(reserve.taken(), 150 * MIB);
    assert!(!window.on_discarded_of_all(10 * MIB, &mut share));
    assert_eq!(reserve.taken(), 140 * MIB);
}

#[test]
fn a_window_that_has_to_shrink_gives_back_what_is_not_its_own() {
    let reserve = WindowReserve::new(320 * MIB);
    let (mut window, mut share) = shared(&reserve);
    let mut now = at(0);
    fill(&mut window, &mut share, &mut now, 9, RTT / 2);
    window.shrink(64 << 10);
    assert!(!window.on_consumed_of_all(now, RTT, 100 * MIB, &mut share));
    assert_eq!(reserve.taken(), 60 * MIB, "what was announced stays");
    assert!(window.on_consumed_of_all(now, RTT, 92 * MIB, &mut share));
    assert_eq!((window.size(), reserve.taken()), (64 << 10, 0));
}
