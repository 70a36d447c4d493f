//! What becomes of a connection, at the boundaries.

use super::*;

/// The limit, in units.
const LIMIT: u64 = 64;

/// What becomes of the last of these connections of one network, which was told that it may have so much, beside other
/// networks that hold so much.
fn judged(others: &[u32], network: &[u32], most: Option<u32>) -> Verdict {
    let all = MemoryLimit::new(LIMIT << UNIT_BITS);
    let holdings = Holdings::new(KeyedHash::new(&mut SeededRng::new(1)), all.clone());
    let hold =
        |place: usize, units: u32| all.exchange((place, place), PLACES, Amount::default(), Amount::of(units));
    others.iter().enumerate().for_each(|(at, units)| _ = hold(at + 1, *units));
    let sums: Vec<_> = network.iter().map(|units| hold(0, *units)).collect();
    holdings.judge(*network.last().unwrap(), most, sums.last().unwrap())
}

#[test]
fn alone_a_network_has_half_of_the_limit() {
    assert_eq!(judged(&[], &[32], None), Enough);
    assert_eq!(judged(&[], &[33], None), Scarce);
    assert_eq!(judged(&[], &[20, 13], None), Scarce, "all of its connections count");
}

#[test]
fn nobody_is_asked_for_an_equal_part_before_the_limit_is_exceeded() {
    assert_eq!(judged(&[20, 20], &[24], None), Enough, "exactly as much as there is");
    assert_eq!(judged(&[20, 20], &[25], None), Scarce);
    // 64 for three networks: 21 for each.
    assert_eq!(judged(&[40, 10], &[21], None), Enough);
    assert_eq!(judged(&[40, 10], &[22], None), Scarce);
}

#[test]
fn who_holds_the_average_or_more_is_closed_beyond_what_it_was_told() {
    assert_eq!(judged(&[], &[20, 20], Some(20)), Scarce);
    assert_eq!(judged(&[], &[20, 20], Some(19)), TooMuch);
    assert_eq!(judged(&[], &[21, 19], Some(5)), Scarce, "it holds less than the other");
}

#[test]
fn where_a_network_has_more_than_three_quarters_everybody_is_closed_beyond_what_was_told() {
    assert_eq!(judged(&[], &[40, 8], Some(5)), Scarce);
    assert_eq!(judged(&[], &[41, 8], Some(5)), TooMuch);
    assert_eq!(judged(&[], &[41, 8], Some(8)), Scarce, "it has what it was told");
}

#[test]
fn where_a_network_has_more_than_all_only_little_may_be_held() {
    assert_eq!(judged(&[], &[44, 20], Some(100)), Scarce);
    assert_eq!(judged(&[], &[45, 20], Some(100)), TooMuch);
    for (now, verdict) in [(15, Scarce), (16, Scarce), (17, TooMuch), (18, TooMuch)] {
        assert_eq!(judged(&[], &[65 - now, now], Some(100)), verdict, "{now}");
    }
    assert_eq!(judged(&[], &[45, 20], None), Scarce, "everybody is told first");
}
