//! What happens to connections when there is little memory.

use super::strangers::abandoned;
use super::*;
use crate::MemoryLimit;
use crate::endpoint::source::PLACES;
use crate::memory_limit::{Amount, UNIT_BITS};

/// An endpoint whose connections may hold 64 units.
fn rig() -> (Rig, MemoryLimit) {
    let limit = MemoryLimit::new(64 << UNIT_BITS);
    let rig = Rig::with(false, |config| config.memory_limit = limit.clone());
    (rig, limit)
}

fn is_open(rig: &Rig, key: ConnKey) -> bool {
    rig.endpoint.connection(key).unwrap().is_open()
}

#[test]
fn who_is_told_what_it_may_hold_may_hold_that_until_there_is_enough_again() {
    let (mut rig, _limit) = rig();
    let key = abandoned(&mut rig, 1, "10.0.0.1:7").unwrap();
    let most = |rig: &Rig| rig.endpoint.slots.get(key.0).unwrap().most_held;
    rig.endpoint.on_held(key, 32);
    assert_eq!(most(&rig), 0);
    rig.endpoint.on_held(key, 33);
    let permitted = rig.endpoint.connection(key).unwrap().machine.may_yet_hold() >> UNIT_BITS;
    assert!(permitted > 0);
    let told = 33 + 16 + u32::try_from(permitted).unwrap();
    assert_eq!(most(&rig), told, "what it holds, a little, and what was permitted before");
    rig.endpoint.on_held(key, 34);
    assert_eq!(most(&rig), told, "it is told once");
    rig.endpoint.on_held(key, 32);
    assert_eq!(most(&rig), 0);
    rig.endpoint.on_held(key, 40);
    assert_eq!(most(&rig), told + 7);
}

#[test]
fn who_has_too_much_is_closed_when_it_takes_more_and_not_when_it_gives_back() {
    let (mut rig, _limit) = rig();
    let key = abandoned(&mut rig, 1, "10.0.0.1:7").unwrap();
    for units in [80, 79, 79, 70, 70] {
        rig.endpoint.on_held(key, units);
        assert!(is_open(&rig, key), "{units}");
    }
    rig.endpoint.on_held(key, 71);
    assert!(!is_open(&rig, key));
}

#[test]
fn when_twice_the_limit_is_held_an_open_connection_gives_way_that_holds_something() {
    let (mut rig, limit) = rig();
    let closed = abandoned(&mut rig, 1, "10.0.0.1:7").unwrap();
    let beside = abandoned(&mut rig, 2, "10.0.0.1:8").unwrap();
    let other = abandoned(&mut rig, 3, "10.9.0.1:7").unwrap();
    rig.endpoint.with(closed, |connection| connection.abort(rig.now, "test"));
    rig.endpoint.on_held(closed, 100);
    rig.endpoint.on_held(other, 28);
    assert_eq!(limit.held(), 128 << UNIT_BITS);
    assert!(is_open(&rig, other), "exactly twice is not too much");
    rig.endpoint.on_held(other, 29);
    assert!(!is_open(&rig, other));
    assert!(is_open(&rig, beside), "it holds nothing that would be given back");
}

#[test]
fn nobody_gives_way_when_nobody_takes_more() {
    let (mut rig, limit) = rig();
    let key = abandoned(&mut rig, 1, "10.0.0.1:7").unwrap();
    rig.endpoint.on_held(key, 5);
    // Another endpoint that has the same limit.
    limit.exchange((PLACES - 1, PLACES - 1), PLACES, Amount::default(), Amount::of(200));
    for units in [5, 4] {
        rig.endpoint.on_held(key, units);
        assert!(is_open(&rig, key), "{units}");
    }
    rig.endpoint.on_held(key, 5);
    assert!(!is_open(&rig, key));
}
