//! Who has enough, and who has not.
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod verdicts;

use super::Verdict::{Enough, Scarce, TooMuch};
use super::*;
use godwit_base::SeededRng;

const MIB: u32 = 1 << (20 - UNIT_BITS);

fn holdings(mib: u64) -> (Holdings, MemoryLimit) {
    let all = MemoryLimit::new(mib << 20);
    (Holdings::new(KeyedHash::new(&mut SeededRng::new(1)), all.clone()), all)
}

/// A narrow network of a wide one of its own.
fn from(holdings: &Holdings, net: u8) -> Source {
    holdings.source(IpAddr::from([10 + net / 250, net, 0, 1]))
}

/// A connection from `source` that takes units one by one for as long as it may, and has been told what it may have as soon
/// as there is not enough.
fn greed(holdings: &mut Holdings, source: Source, permitted: u32, most: u32) -> u32 {
    let (mut now, mut told) = (0, None);
    while now < most {
        match holdings.change(source, now, now + 1, told) {
            Enough => told = None,
            Scarce => told = told.or(Some(now + 1 + permitted)),
            TooMuch => {
                holdings.change(source, now + 1, now, told);
                break;
            }
        }
        now += 1;
    }
    now
}

#[test]
fn a_network_has_half_without_being_slowed() {
    let (mut holdings, all) = holdings(100);
    let one = from(&holdings, 1);
    (0..50).for_each(|_| assert_eq!(holdings.change(one, 0, MIB, None), Enough));
    assert_eq!(holdings.change(one, 0, MIB, None), Scarce, "nobody is closed who has not been told");
    assert_eq!(holdings.change(one, MIB, 2 * MIB, Some(MIB)), TooMuch);
    assert_eq!(holdings.change(from(&holdings, 2), 0, MIB, None), Enough, "others are not concerned");
    assert_eq!(all.held(), 53 << 20, "it counts until it is gone");
    holdings.change(one, 2 * MIB, 0, None);
    assert_eq!(holdings.change(one, MIB, MIB - 1, Some(MIB)), Enough);
}

#[test]
fn who_has_less_than_the_others_of_its_network_is_slowed_only() {
    let (mut holdings, _all) = holdings(100);
    let one = from(&holdings, 1);
    holdings.change(one, 0, 60 * MIB, None);
    assert_eq!(holdings.change(one, 0, MIB, Some(1)), Scarce);
    assert_eq!(holdings.change(one, 60 * MIB, 61 * MIB, Some(60 * MIB)), TooMuch);
    assert_eq!(holdings.change(one, 61 * MIB, 60 * MIB, Some(60 * MIB)), Scarce);
}

#[test]
fn connections_below_the_average_of_their_network_do_not_have_all() {
    for permitted in [0, 16, MIB, 32 * MIB] {
        let (mut holdings, all) = holdings(100);
        let one = from(&holdings, 1);
        (0..24).for_each(|_| _ = greed(&mut holdings, one, permitted, 2 * MIB));
        (0..200).for_each(|_| _ = greed(&mut holdings, one, permitted, 2 * MIB - 2));
        let least = u64::from(200 * LITTLE) << UNIT_BITS;
        assert!(all.held() <= (101 << 20) + least, "{permitted}: {}", all.held() >> 20);
        // Who is alone has enough beside them.
        let other = from(&holdings, 2);
        assert_eq!(greed(&mut holdings, other, 0, 2 * MIB), 2 * MIB);
    }
}

#[test]
fn beyond_the_limit_each_network_has_an_equal_part() {
    let (mut holdings, _all) = holdings(100);
    for net in 0..100 {
        assert_eq!(holdings.change(from(&holdings, net), 0, MIB, None), Enough);
    }
    let (greedy, modest) = (from(&holdings, 200), from(&holdings, 201));
    assert_eq!(holdings.change(modest, 0, MIB / 2, None), Enough);
    assert_eq!(holdings.change(greedy, 0, 2 * MIB, None), Scarce);
    assert_eq!(holdings.change(greedy, 2 * MIB, 3 * MIB, Some(2 * MIB)), TooMuch);
}

#[test]
fn many_networks_of_a_wide_one_take_no_part_from_others() {
    let (mut holdings, all) = holdings(100);
    for net in 0..10_000_u16 {
        let [high, low] = net.to_be_bytes();
        let address = [0x20, 1, 0xd, 0xb8, high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let source = holdings.source(IpAddr::from(address));
        holdings.change(source, 0, 1, None);
    }
    assert!(all.held() > 150 << 20);
    let other = from(&holdings, 2);
    assert_eq!(greed(&mut holdings, other, 0, 2 * MIB), 2 * MIB);
}

#[test]
fn endpoints_share_a_limit_and_what_networks_have_of_it() {
    let (mut first, all) = holdings(100);
    let mut second = Holdings::new(KeyedHash::new(&mut SeededRng::new(2)), all.clone());
    assert_eq!(from(&first, 7), from(&second, 7));
    for _ in 0..25 {
        assert_eq!(first.change(from(&first, 7), 0, MIB, None), Enough);
        assert_eq!(second.change(from(&second, 7), 0, MIB, None), Enough);
    }
    assert_eq!(second.change(from(&second, 7), 0, MIB, None), Scarce);
    drop(second);
    assert_eq!(all.held(), 25 << 20);
    assert_eq!(first.change(from(&first, 7), 0, 2 * MIB, None), Enough);
    drop(first);
    assert_eq!(all.held(), 0);
}
