//! Which addresses share a network, and what the networks of an address hold.

use crate::endpoint::ledger::Ledger;
use crate::endpoint::source::Source;
use crate::keyed_hash::KeyedHash;
use godwit_base::SeededRng;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn hash(seed: u64) -> KeyedHash {
    KeyedHash::new(&mut SeededRng::new(seed))
}

fn source(address: impl Into<IpAddr>) -> Source {
    Source::of(hash(1), address.into())
}

fn v4(address: u32) -> Source {
    source(Ipv4Addr::from(address))
}

fn v6(address: u128) -> Source {
    source(Ipv6Addr::from(address))
}

/// So many as enter, all from networks of their own, or all that there is room for.
fn fill(ledger: &mut Ledger, sources: impl Iterator<Item = Source>) -> usize {
    let mut entered = 0;
    for source in sources {
        if ledger.has_room(source) {
            ledger.enter(source);
            entered += 1;
        }
    }
    entered
}

#[test]
fn networks_are_told_by_every_bit_of_their_prefix_and_by_none_behind_it() {
    // Under one hash two networks may meet at a place, but not under each of three.
    let same = |one: IpAddr, other: IpAddr| {
        let pairs = [1, 2, 3].map(|seed| (Source::of(hash(seed), one), Source::of(hash(seed), other)));
        let narrow = pairs.iter().all(|(one, other)| one.narrow() == other.narrow());
        (narrow, pairs.iter().all(|(one, other)| one.wide() == other.wide()))
    };
    let v4 = |address: u32| IpAddr::from(Ipv4Addr::from(address));
    let v6 = |address: u128| IpAddr::from(Ipv6Addr::from(address));
    for base in [0, 0xc000_0207, u32::MAX] {
        for bit in 0..32 {
            assert_eq!(same(v4(base), v4(base ^ 1 << bit)), (bit < 8, bit < 16), "bit {bit} of {base:#x}");
        }
        let mapped = Ipv4Addr::from(base).to_ipv6_mapped().into();
        assert_eq!(same(mapped, v4(base)), (true, true), "the same address on an IPv6 socket");
        assert_eq!(same(v6(base.into()), v4(base)), (false, false));
    }
    for base in [0x2001_0db8 << 96 | 7, u128::MAX] {
        for bit in 0..128 {
            assert_eq!(same(v6(base), v6(base ^ 1 << bit)), (bit < 80, bit < 96), "bit {bit} of {base:#x}");
        }
    }
}

#[test]
fn a_full_network_leaves_the_share_of_every_other() {
    // A /24 or /48 may hold a quarter, a /16 or /32 half, of 200.
    let hosts4 = (0..256).map(|host| v4(0x0a00_0000 | host));
    let hosts6 = (0..256).map(|host| v6(0x2001_0db8 << 96 | host));
    let nets4 = (0..256).map(|net| v4(0x0a00_0000 | net << 8));
    let nets6 = (0..256).map(|net| v6(0x2001_0db8 << 96 | net << 80));
    let narrow: [(&mut dyn Iterator<Item = Source>, usize, Source); 4] = [
        (&mut hosts4.clone(), 50, v4(0x0a00_0100)),
        (&mut hosts6.clone(), 50, v6(0x2001_0db8 << 96 | 1 << 80)),
        (&mut nets4.clone(), 100, v4(0x0a01_0000)),
        (&mut nets6.clone(), 100, v6(0x2001_0db9 << 96)),
    ];
    for (addresses, share, other) in narrow {
        let mut ledger = Ledger::new(200);
        assert_eq!(fill(&mut ledger, addresses), share);
        assert!(ledger.has_room(other), "{other:?}");
    }
    // And a network of one kind says nothing of those of the other.
    let mut ledger = Ledger::new(200);
    assert_eq!((fill(&mut ledger, nets4), fill(&mut ledger, nets6)), (100, 100));
    assert!(!ledger.has_room(v4(0xc000_0201)), "the whole");
}

#[test]
fn what_a_network_holds_is_what_has_entered_and_not_left() {
    let mut ledger = Ledger::new(200);
    let (one, neighbour, other) = (v4(0x0a00_0001), v4(0x0a00_0002), v4(0x0a00_0101));
    for held in 0..5 {
        assert_eq!((ledger.held_by_neighbours(neighbour), ledger.held_by_neighbours(other)), (held, 0));
        ledger.enter(one);
    }
    for held in (0..5).rev() {
        ledger.leave(neighbour);
        assert_eq!(ledger.held_by_neighbours(one), held);
    }
    ledger.leave(one);
    assert_eq!(fill(&mut ledger, (0..200).map(|net| v4(net << 16))), 200, "nobody leaves who is not there");
}

#[test]
fn strain_is_half_of_any_share_or_many_in_all() {
    let (one, far) = (v4(0x0a00_0001), v4(0xc000_0201));
    for (addresses, most) in [(25, v4(0x0a00_0001)), (50, v4(0x0a00_0100))] {
        let mut ledger = Ledger::new(200);
        for at in 0..addresses {
            assert!(!ledger.is_strained(one, 1000), "{at}");
            let spread = if most == one { 0 } else { at % 4 };
            ledger.enter(v4(0x0a00_0000 | spread << 8 | 9));
        }
        assert!(ledger.is_strained(one, 1000) && !ledger.is_strained(far, 1000));
        let held = addresses as usize;
        assert!(ledger.is_strained(far, held) && !ledger.is_strained(far, held + 1));
    }
}

#[test]
fn only_who_is_in_a_full_network_stands_in_the_way() {
    let mut ledger = Ledger::new(200);
    assert_eq!(fill(&mut ledger, (0..256).map(|host| v4(0x0a00_0000 | host))), 50);
    let (late, inside, beside) = (v4(0x0a00_0009), v4(0x0a00_0003), v4(0x0a00_0101));
    assert!(ledger.stands_in_the_way(late, inside));
    assert!(!ledger.stands_in_the_way(late, beside), "the narrow network is full");
    assert!(ledger.stands_in_the_way(beside, inside), "there is room for that one anyway");
}

#[test]
fn only_who_is_in_a_full_wide_network_stands_in_the_way_of_who_is_in_it() {
    let mut ledger = Ledger::new(200);
    assert_eq!(fill(&mut ledger, (0..100).map(|at| v4(0x0a00_0000 | (at % 4) << 8 | at))), 100);
    let (late, inside, beside) = (v4(0x0a00_0901), v4(0x0a00_0103), v4(0x0a01_0001));
    assert!(!ledger.has_room(late) && ledger.has_room(beside), "half of all is in the wide network");
    assert!(ledger.stands_in_the_way(late, inside));
    assert!(!ledger.stands_in_the_way(late, beside), "the wide network is full all the same");
    ledger.leave(inside);
    assert!(ledger.stands_in_the_way(late, beside), "there is room");
}
