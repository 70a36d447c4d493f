#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::{PathSettings, SentInfo, SpaceRecovery};
use godwit_base::SeededRng;

const CONFIRMED: TimerInputs = TimerInputs {
    handshake_confirmed: true,
    has_handshake_keys: true,
    awaits_handshake: false,
    amplification_blocked: false,
    most_backed_off: None,
};

fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn path() -> PathRecovery {
    // PTO without back-off: 100 + 4 * 50 = 300 ms.
    let settings = PathSettings { initial_rtt: Duration::from_millis(100), ..PathSettings::default() };
    PathRecovery::new(Time::ZERO, &settings)
}

fn send(space: &mut SpaceRecovery<()>, path: &mut PathRecovery, now: Time) {
    let packet_number = space.next_packet_number(&mut SeededRng::new(1));
    let info = SentInfo::ordinary(packet_number, now, 100);
    space.on_packet_sent(path, info, &[]);
}

fn ack(space: &mut SpaceRecovery<()>, path: &mut PathRecovery, now: Time, number: u64) {
    let ranges = std::iter::once(number..=number);
    space.on_ack_received(path, now, number, Duration::ZERO, ranges, &mut |_, ()| {}).unwrap();
}

#[test]
fn nothing_in_flight_is_no_timer() {
    assert_eq!(timer(&path(), CONFIRMED), None);
}

#[test]
fn the_pto_follows_the_last_packet_and_doubles() {
    let (mut space, mut path) = (SpaceRecovery::new(SpaceId::Handshake), path());
    send(&mut space, &mut path, ms(10));
    send(&mut space, &mut path, ms(20));
    let due = |path: &PathRecovery| timer(path, CONFIRMED);
    assert_eq!(due(&path), Some((ms(320), TimerKind::Pto(SpaceId::Handshake))));
    path.on_pto(ms(320));
    assert_eq!(due(&path), Some((ms(620), TimerKind::Pto(SpaceId::Handshake))));
    path.on_pto(ms(620));
    assert_eq!(due(&path), Some((ms(1220), TimerKind::Pto(SpaceId::Handshake))));
    for _ in 0..100 {
        path.on_pto(ms(620));
    }
    assert!(due(&path).is_some_and(|(time, _)| time < ms(300 << 17)), "the back-off is capped");
}

#[test]
fn the_data_space_waits_for_confirmation_and_the_peers_delay() {
    let (mut handshake, mut data, mut path) =
        (SpaceRecovery::new(SpaceId::Handshake), SpaceRecovery::new(SpaceId::Data), path());
    send(&mut data, &mut path, ms(0));
    let unconfirmed = TimerInputs { handshake_confirmed: false, ..CONFIRMED };
    let due = timer(&path, unconfirmed);
    assert_eq!(due, Some((ms(300), TimerKind::Pto(SpaceId::Handshake))), "the handshake probes in its place");
    assert_eq!(timer(&path, CONFIRMED), Some((ms(325), TimerKind::Pto(SpaceId::Data))));
    send(&mut handshake, &mut path, ms(100));
    let due = timer(&path, unconfirmed);
    assert_eq!(due, Some((ms(400), TimerKind::Pto(SpaceId::Handshake))));
    let due = timer(&path, CONFIRMED);
    assert_eq!(due, Some((ms(325), TimerKind::Pto(SpaceId::Data))));
}

#[test]
fn probes_in_place_of_data_back_off_though_they_are_acknowledged() {
    let (mut handshake, mut data, mut path) =
        (SpaceRecovery::new(SpaceId::Handshake), SpaceRecovery::new(SpaceId::Data), path());
    send(&mut data, &mut path, ms(0));
    let unconfirmed = TimerInputs { handshake_confirmed: false, ..CONFIRMED };
    // In probe timeouts.
    let wait = |path: &PathRecovery| {
        let (at, kind) = timer(path, unconfirmed).expect("data is in flight");
        assert_eq!(kind, TimerKind::Pto(SpaceId::Handshake));
        at.saturating_since(path.last_activity()).as_nanos() / path.rtt().pto().as_nanos()
    };
    let mut waits = Vec::new();
    for number in 0..5 {
        waits.push(wait(&path));
        let at = path.last_activity() + Duration::from_secs(1);
        path.on_pto(at);
        send(&mut handshake, &mut path, at);
        ack(&mut handshake, &mut path, at + Duration::from_millis(100), number);
        assert_eq!(path.pto_count(), 0);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16]);
    let at = path.last_activity();
    ack(&mut data, &mut path, at, 0);
    send(&mut data, &mut path, at);
    assert_eq!(wait(&path), 1, "data gets through again");
}

#[test]
fn a_server_out_of_credit_sets_no_pto() {
    let (mut space, mut path) = (SpaceRecovery::new(SpaceId::Initial), path());
    send(&mut space, &mut path, ms(0));
    let blocked = TimerInputs { amplification_blocked: true, ..CONFIRMED };
    assert_eq!(timer(&path, blocked), None);
}

#[test]
fn a_client_probes_while_the_server_may_be_out_of_credit() {
    let mut path = path();
    path.set_peer_validated(false);
    let early = TimerInputs { handshake_confirmed: false, has_handshake_keys: false, ..CONFIRMED };
    assert_eq!(timer(&path, early), Some((ms(300), TimerKind::Pto(SpaceId::Initial))));
    let later = TimerInputs { has_handshake_keys: true, ..early };
    assert_eq!(timer(&path, later), Some((ms(300), TimerKind::Pto(SpaceId::Handshake))));
    path.on_pto(ms(300));
    assert_eq!(timer(&path, later), Some((ms(900), TimerKind::Pto(SpaceId::Handshake))));
    path.set_peer_validated(true);
    assert_eq!(timer(&path, later), None);
}

#[test]
fn a_client_probes_until_its_handshake_is_complete() {
    let path = path();
    let waiting = TimerInputs { handshake_confirmed: false, awaits_handshake: true, ..CONFIRMED };
    assert_eq!(timer(&path, waiting), Some((ms(300), TimerKind::Pto(SpaceId::Handshake))));
    let complete = TimerInputs { awaits_handshake: false, ..waiting };
    assert_eq!(timer(&path, complete), None);
}

#[test]
fn a_cap_on_the_back_off_holds_for_a_few_timeouts() {
    let (mut space, mut path) = (SpaceRecovery::new(SpaceId::Handshake), path());
    send(&mut space, &mut path, ms(0));
    let capped = TimerInputs { most_backed_off: Some(Duration::from_millis(1000)), ..CONFIRMED };
    let due = |path: &PathRecovery, inputs| timer(path, inputs).map(|(at, _)| at);
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(due(&path, capped));
        path.on_pto(ms(0));
    }
    assert_eq!(seen, [300, 600, 1000, 1000, 1000, 9600].map(|millis| Some(ms(millis))));
    let less = TimerInputs { most_backed_off: Some(Duration::from_millis(1)), ..CONFIRMED };
    path.reset_pto_count();
    assert_eq!(due(&path, less), Some(ms(300)), "never less than one probe timeout");
}
